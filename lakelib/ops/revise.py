"""Use cases: rows of a table are updated, merged with others, deleted by what a query says of them.

Step by step: what is meant, as one query whose rows are the change (`ops.revise_plan`); those rows are written, those
that go as delete marks, for one commit. It depends on all that it was computed from: whoever changes that meanwhile
makes it look again.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import field, replace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.changes import DELETE, UPSERT
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
from lakelib.ops.sql_plan import Known, QueryExplanation
from lakelib.ops.write import WrittenRows, propose, with_moves
from lakelib.plan.revise import Action, Revision, has
from lakelib.plan.revise_query import CHANGE, WRONG
from lakelib.plan.revise_values import LOST, MOVED, OLDER
from lakelib.rows.convert import shown_key
from lakelib.work import engines
from lakelib.work.write import WriteWork, WrittenFiles, write_batches

_FILE_KIND = "revise"
_BEYOND = 1 << 30
"""No column of a table has such an id."""
_OVERTAKEN = OVERTAKEN | {Reason.SCHEMA_CHANGED}
_WORD = f"{CHANGE}_word"
"""Whether a row is written, or a delete mark for it."""
_REMEDIES = {
    MOVED: "Delete the row, and insert the one that it is to be.",
    OLDER: "Set the columns of its sequence to what is not lower than it was, or leave them.",
    LOST: "Delete the row, and upsert what it is to be: NULL replaces nothing in a table with partial updates, and"
    " columns of a group are set with its sequence.",
}
_KINDS = {MOVED: "key_update_refused", OLDER: "older_row", LOST: "update_refused"}
_TROUBLES = {
    MOVED: "would have another key, or another partition, than the row that it was",
    OLDER: "would be older than the row that it was, and so would not be seen",
    LOST: "would be NULL, or has no sequence, where the table keeps what it has",
}


def revise(
    runtime: Runtime,
    ref: TableRef,
    revision: Revision,
    given: Known | None,
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
    given: Known | None,
    request: WriteRequest,
    planned: Planned | None = None,
) -> UUID:
    """As a staged commit. It conflicts with whatever changes the table from now on."""
    return stage_work(runtime, ref, request, _work(runtime, ref, revision, given, request, planned))


def explain_revision(runtime: Runtime, ref: TableRef, revision: Revision, given: Known | None) -> QueryExplanation:
    """What is read of each table, and what the engine makes of the query whose rows are the change."""
    planned = plan_revision(runtime, ref.full_name, ref.id, revision, given)
    return sql.explain_plan(runtime, planned.plan)


def count_revised(runtime: Runtime, planned: Planned) -> Effect:
    """How many rows would come, change and go. They are computed, and nothing is written. Raises InvalidInputError for
    rows that cannot be changed so."""
    return _Changed(runtime=runtime, planned=planned).counted()


def _work(
    runtime: Runtime,
    ref: TableRef,
    revision: Revision,
    given: Known | None,
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
    changed = _Changed(runtime=runtime, planned=planned)
    written = _write(runtime, table, changed, holds_deletes=has(revision, Action.DELETE))
    brings = has(revision, Action.UPDATE) or has(revision, Action.INSERT)
    if table.options.cross_partition and brings:
        written = with_moves(runtime, table, written, None)
    return propose(
        table,
        CommitKind.UPSERT if brings else CommitKind.DELETE,
        request if planned.is_upsert else replace(request, made_from=table.head_id),
        written,
        read_scope=NO_READ if planned.is_upsert else ReadScope(beneath=runtime.staged.get(table.id, ())),
        effect=changed.effect,
    )


def _propose_replaced(runtime: Runtime, planned: Planned, request: WriteRequest) -> Proposal:
    """Of a table whose rows have no key: files without the rows, and the rows as they are to be."""
    assert planned.replaces is not None
    table = planned.table
    changed = _Changed(runtime=runtime, planned=planned)
    written = _write(runtime, table, changed, holds_deletes=False)
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
        effect=changed.effect,
    )


def _write(runtime: Runtime, table: TableInfo, changed: "_Changed", *, holds_deletes: bool) -> WrittenRows:
    """Rows and delete marks together: each is for a key of its own. An error leaves no file behind."""
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
        required_ids=frozenset(table.primary_key_ids),
        buffer_bytes=table.options.write_buffer_bytes,
    )
    done = changed.write(work, holds_deletes)
    return WrittenRows(files=done.files, rows_in=done.rows_in)


@dataclass(slots=True, kw_only=True)
class _Changed:
    """The rows of the change, counted as they go by."""

    runtime: Runtime
    planned: Planned
    _counts: dict[int, int] = field(default_factory=dict)

    def write(self, work: WriteWork, with_words: bool) -> WrittenFiles:
        """An error leaves no file behind."""
        if self.runtime.session is not None:
            return self._write_on_spark(work, with_words)
        alignment = work.align(self.schema(with_words))
        return write_batches(work, alignment, self.batches(with_words), self.runtime.threads)

    def _write_on_spark(self, work: WriteWork, with_words: bool) -> WrittenFiles:
        """What goes by cannot be looked at there: it is computed twice, the first time to be counted."""
        frame = frame_of(self.runtime, self.planned.plan)
        self._look_over(frame)
        words = {each.value: DELETE if each is Action.DELETE else UPSERT for each in Action}
        rows = engines.with_words(frame, self.schema(with_words).names, CHANGE, _WORD, words)
        return engines.open_source(rows).write(work, threads=self.runtime.threads, distribution="auto")

    def counted(self) -> Effect:
        """What the rows would do."""
        if self.runtime.session is not None:
            self._look_over(frame_of(self.runtime, self.planned.plan))
        else:
            deque(self.batches(with_words=False), maxlen=0)
        return self.effect

    def _look_over(self, frame: Any) -> None:
        is_checked = WRONG in self.planned.plan.schema.names
        if is_checked or self.planned.is_counted:
            counted, wrong = engines.look_over(frame, CHANGE, WRONG if is_checked else None)
            self._check(wrong)
            if self.planned.is_counted:
                self._counts.update(counted)

    def schema(self, with_words: bool) -> pa.Schema:
        own = [each for each in self.planned.plan.schema if each.name not in (CHANGE, WRONG)]
        return pa.schema([*own, *([(_WORD, pa.string())] if with_words else [])])

    def batches(self, with_words: bool) -> Iterator[pa.RecordBatch]:
        schema = self.schema(with_words)
        for batch in sql.stream_batches(self.runtime, self.planned.plan):
            self._check(batch)
            rows = batch
            if self.planned.is_counted:
                self._count(batch)
            if with_words:
                is_delete = pc.equal(batch.column(CHANGE), Action.DELETE.value)
                rows = batch.append_column(_WORD, pc.if_else(is_delete, DELETE, UPSERT))
            yield rows.select(schema.names)

    @property
    def effect(self) -> Effect:
        """What the rows that went by have done."""
        if not self.planned.is_counted:
            return UNKNOWN
        inserted, updated, deleted = (
            self._counts.get(each.value, 0) for each in (Action.INSERT, Action.UPDATE, Action.DELETE)
        )
        return Effect(inserted=inserted, updated=updated, deleted=deleted)

    def _count(self, batch: pa.RecordBatch) -> None:
        for each in pc.value_counts(batch.column(CHANGE)).to_pylist():
            self._counts[each["values"]] = self._counts.get(each["values"], 0) + each["counts"]

    def _check(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Raises InvalidInputError for a row that cannot be changed so."""
        if WRONG not in batch.schema.names:
            return
        wrong = batch.filter(pc.is_valid(batch.column(WRONG)))
        if wrong.num_rows:
            table = self.planned.table
            trouble = wrong.column(WRONG)[0].as_py()
            named = shown_key(wrong, [column.name for column in table.primary_key])
            raise InvalidInputError(
                f"The row {named} of {table.full_name} {_TROUBLES[trouble]}.",
                kind=_KINDS[trouble],
                remedy=_REMEDIES[trouble],
            )
