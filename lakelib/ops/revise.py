"""Use cases: rows of a table are updated, merged with others, deleted by what a query says of them.

Step by step: what is meant, as one query whose rows are the change (`ops.revise_plan`); those rows are written, those
that go as delete marks, for one commit. It depends on all that it was computed from: whoever changes that meanwhile
makes it look again.
"""

from collections import Counter
from dataclasses import replace
from uuid import UUID

from lakelib.errors import InvalidInputError
from lakelib.model.commit import Conflict, Reason
from lakelib.model.effect import UNKNOWN, Effect
from lakelib.model.schema import Column, TableSchema
from lakelib.model.table import NO_READ, CommitKind, Proposal, ReadScope, Snapshot, TableInfo, TableRef
from lakelib.ops import sql
from lakelib.ops.commit import Redo, Work, commit_work, stage_work
from lakelib.ops.delete import OVERTAKEN, find_doomed
from lakelib.ops.merging import order_names, run_target
from lakelib.ops.moves import delete_written
from lakelib.ops.replace import behind
from lakelib.ops.request import WriteRequest
from lakelib.ops.revise_plan import Planned, plan_revision
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_frame import frame_of
from lakelib.ops.sql_plan import Given, QueryExplanation
from lakelib.ops.sql_source import source_of
from lakelib.ops.write import WrittenRows, propose, with_moves
from lakelib.plan.revise import Action, Revision, has
from lakelib.plan.revise_query import CHANGE, WRONG
from lakelib.plan.revise_values import LOST, MOVED, OLDER
from lakelib.work import engines
from lakelib.work.revised import Revised, Trouble
from lakelib.work.write import WriteWork, WrittenFiles

_FILE_KIND = "revise"
_BEYOND = 1 << 30
"""No column of a table has such an id."""
_OVERTAKEN = OVERTAKEN | {Reason.SCHEMA_CHANGED}
_WORD = f"{CHANGE}_word"
"""Whether a row is written, or a delete mark for it."""
_TROUBLES = {
    MOVED: Trouble(
        kind="key_update_refused",
        what="would have another key, or another partition, than the row that it was",
        remedy="Delete the row, and insert the one that it is to be.",
    ),
    OLDER: Trouble(
        kind="older_row",
        what="would be older than the row that it was, and so would not be seen",
        remedy="Set the columns of its sequence to what is not lower than it was, or leave them.",
    ),
    LOST: Trouble(
        kind="update_refused",
        what="would be NULL, or has no sequence, where the table keeps what it has",
        remedy="Delete the row, and upsert what it is to be: NULL replaces nothing in a table with partial updates, and"
        " columns of a group are set with its sequence.",
    ),
}


def revise(
    runtime: Runtime,
    ref: TableRef,
    revision: Revision,
    given: Given | None,
    request: WriteRequest,
    planned: Planned | None = None,
) -> Snapshot:
    """Carries it out and publishes. Looks again, and computes anew, what others have changed meanwhile. What was
    `planned` of it counts as long as the table is as it was then."""
    return commit_work(runtime, ref, request, _work(runtime, ref, revision, given, request, planned))


def stage_revision(
    runtime: Runtime,
    ref: TableRef,
    revision: Revision,
    given: Given | None,
    request: WriteRequest,
    planned: Planned | None = None,
) -> UUID:
    """As a staged commit. It conflicts with whatever changes the table from now on."""
    return stage_work(runtime, ref, request, _work(runtime, ref, revision, given, request, planned))


def explain_revision(runtime: Runtime, ref: TableRef, revision: Revision, given: Given | None) -> QueryExplanation:
    """What is read of each table, and what the engine makes of the query whose rows are the change."""
    planned = plan_revision(runtime, ref.full_name, ref.id, revision, given)
    return sql.explain_plan(runtime, planned.plan)


def count_revised(runtime: Runtime, planned: Planned) -> Effect:
    """How many rows would come, change and go. They are computed, and nothing is written. Raises InvalidInputError for
    rows that cannot be changed so."""
    if not planned.is_counted:
        return UNKNOWN
    revised = _revised(planned.table, holds_deletes=False)
    if runtime.session is not None:
        return _effect_of(engines.count_revised(frame_of(runtime, planned.plan), revised))
    changes: Counter[int] = Counter()
    for batch in sql.stream_batches(runtime, planned.plan):
        revised.check(batch)
        changes.update(revised.counts(batch))
    return _effect_of(changes)


def _work(
    runtime: Runtime,
    ref: TableRef,
    revision: Revision,
    given: Given | None,
    request: WriteRequest,
    first: Planned | None = None,
) -> Work:
    _check_options(request)

    def prepare(table: TableInfo) -> Proposal:
        planned = first
        if planned is None or planned.table != table:
            planned = plan_revision(runtime, ref.full_name, ref.id, revision, given)
        return _propose(runtime, planned, revision, request)

    def redo(conflict: Conflict, proposal: Proposal) -> Redo:
        return Redo.ANEW if set(conflict.reasons) <= _OVERTAKEN else Redo.NOT

    return Work(prepare=prepare, redo=redo, looks_again=True)


def _check_options(request: WriteRequest) -> None:
    """Raises InvalidInputError for what is asked of rows that are handed in."""
    for name in ("merge_schema", "explicit_cast", "aux_order"):
        if getattr(request, name):
            raise InvalidInputError(
                f"{name} is for rows that are handed in, and here they are computed.",
                kind="invalid_option",
                remedy="Cast values in the expressions, and change the schema before, with evolve.",
            )


def _propose(runtime: Runtime, planned: Planned, revision: Revision, request: WriteRequest) -> Proposal:
    table = planned.table
    if planned.replaces is not None:
        return _propose_replaced(runtime, planned, request)
    done = _write(runtime, planned, holds_deletes=has(revision, Action.DELETE))
    written = WrittenRows(files=done.files, rows_in=done.rows_in)
    brings = has(revision, Action.UPDATE) or has(revision, Action.INSERT)
    if table.options.cross_partition and brings:
        written = with_moves(runtime, table, written, None)
    return propose(
        table,
        CommitKind.UPSERT if brings else CommitKind.DELETE,
        request if planned.is_upsert else replace(request, made_from=table.head_id),
        written,
        read_scope=NO_READ if planned.is_upsert else ReadScope(beneath=runtime.staged.get(table.id, ())),
        effect=_effect(planned, done),
    )


def _propose_replaced(runtime: Runtime, planned: Planned, request: WriteRequest) -> Proposal:
    """Of a table whose rows have no key: files without the rows, and the rows as they are to be."""
    assert planned.replaces is not None
    table = planned.table
    done = _write(runtime, planned, holds_deletes=False)
    written = WrittenRows(files=done.files, rows_in=done.rows_in)
    try:
        doomed = find_doomed(runtime, table, planned.replaces)
    except BaseException:
        delete_written(runtime, table, written.files)
        raise
    return propose(
        table,
        CommitKind.REPLACE,
        replace(request, made_from=table.head_id),
        behind(doomed, written),
        removed_file_ids=doomed.removed_file_ids,
        read_scope=doomed.scope,
        effect=_effect(planned, done),
    )


def _write(runtime: Runtime, planned: Planned, *, holds_deletes: bool) -> WrittenFiles:
    """Rows and delete marks together: each is for a key of its own. An error leaves no file behind."""
    table = planned.table
    schema = table.schema
    columns = schema.columns
    if holds_deletes:  # of a row that goes but the key is told
        word = Column(id=_BEYOND, name=_WORD, type="string")
        columns = (*(replace(column, nullable=True) for column in columns), word)
    work = WriteWork(
        storage=runtime.storage,
        target=run_target(
            table,
            schema,
            file_kind=_FILE_KIND,
            order_names=order_names(table, schema) if table.sequence_ids else (),
            holds_deletes=holds_deletes,
            one_partition=table.options.cross_partition,
        ),
        wanted=TableSchema(id=schema.id, columns=columns),
        deletes_in=_WORD if holds_deletes else None,
        revised=None if planned.is_upsert else _revised(table, holds_deletes),
        required_ids=frozenset(table.primary_key_ids),
        buffer_bytes=table.options.write_buffer_bytes,
    )
    return source_of(runtime, planned.plan).write(work, threads=runtime.threads, distribution="auto")


def _revised(table: TableInfo, holds_deletes: bool) -> Revised:
    return Revised(
        change=CHANGE,
        delete=Action.DELETE.value,
        word=_WORD if holds_deletes else None,
        wrong=WRONG,
        troubles=_TROUBLES,
        table=table.full_name,
        key=tuple(column.name for column in table.primary_key),
    )


def _effect(planned: Planned, done: WrittenFiles) -> Effect:
    return _effect_of(done.changes) if planned.is_counted else UNKNOWN


def _effect_of(changes: Counter[int]) -> Effect:
    inserted, updated, deleted = (changes[each.value] for each in (Action.INSERT, Action.UPDATE, Action.DELETE))
    return Effect(inserted=inserted, updated=updated, deleted=deleted)
