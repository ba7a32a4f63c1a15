"""Use case: a statement of SQL, of whatever kind. A query is planned, and read when its rows are asked for; what
changes something is done at once."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pyarrow as pa

from lakelib.catalog.commits import is_in_the_way, load_commit
from lakelib.dataclass import dataclass
from lakelib.errors import ConflictError, InvalidInputError
from lakelib.model.table import CommitKind, Snapshot, TableInfo, TableRef
from lakelib.ops import sql_alter, sql_call, sql_create, sql_insert, sql_revise, sql_show, write
from lakelib.ops.commit import find_done
from lakelib.ops.decide import end_all
from lakelib.ops.gates import gate_of
from lakelib.ops.judge import Judging, judge, require_passed
from lakelib.ops.moves import look_beneath
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql import explain_plan, look_up, plan_statement
from lakelib.ops.sql_change import Change, RowsChange, Told, explained, parse_options, tell
from lakelib.ops.sql_plan import QueryExplanation, QueryPlan
from lakelib.ops.sql_understood import understand
from lakelib.plan import sql_kinds
from lakelib.plan.sql_alter import AlterTable, DropTable, Truncate
from lakelib.plan.sql_call import Call
from lakelib.plan.sql_create import CreateNamespace, CreateTable
from lakelib.plan.sql_insert import Insert
from lakelib.plan.sql_revise import Revise
from lakelib.plan.sql_statement import Statement
from lakelib.rows.types import arrow_type
from lakelib.work.engines import open_source


def run(runtime: Runtime, text: str, options: Mapping[str, Any] | None, values: Mapping[str, Any]) -> QueryPlan | Told:
    """A query's plan, or what was done. Raises as `prepare` does, and what the use case raises that a statement
    means."""
    parse_options(options)
    return carry_out(prepare(runtime, text, values, options), options)


def carry_out(prepared: QueryPlan | Told | Change, options: Mapping[str, Any] | None) -> QueryPlan | Told:
    """Does what is to be done."""
    if options and (isinstance(prepared, QueryPlan) or (isinstance(prepared, Told) and not prepared.is_explained)):
        raise InvalidInputError(
            "A query changes nothing, and takes no options.",
            kind="invalid_option",
            remedy="Give the values of parameters by name: lake.sql('… $day', day=…).",
        )
    if isinstance(prepared, QueryPlan | Told):
        return prepared
    return prepared.carry_out(parse_options(options))


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneChange:
    """A statement whose work was published before, under its idempotency key. Its tables are not looked at again,
    whatever has become of them since."""

    runtime: Runtime
    statement: Insert | Revise
    table: TableInfo
    snapshot: Snapshot
    """That has done it."""

    @property
    def takes_away(self) -> bool:
        return False

    @property
    def word(self) -> str:
        return self.statement.word

    def explain(self) -> QueryExplanation:
        return QueryExplanation(change=f"{self.word} {self.table.full_name}: snapshot {self.snapshot.id} has done it")

    def carry_out(self, request: WriteRequest) -> Told:
        return tell(self.statement.parsed.text, self.word, self.table.full_name, self.snapshot)

    def stage(self, request: WriteRequest) -> UUID:
        """A commit of no rows, which as a part of its transaction becomes the snapshot that has done it."""
        columns = [(column.name, arrow_type(column.type)) for column in self.table.schema.columns]
        rows = open_source(pa.schema(columns).empty_table())
        return write.stage_write(self.runtime, self.table.ref, CommitKind.APPEND, rows, request)


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedStatement:
    """A statement of a transaction, whose change waits to be published with the others."""

    ref: TableRef
    commit_id: UUID
    judging: Judging | None
    """What it was judged by."""
    told: Told
    was_done: bool
    """Whether its work was published before: it brings nothing."""


def stage(
    runtime: Runtime, text: str, options: Mapping[str, Any] | None, values: Mapping[str, Any]
) -> QueryPlan | Told | StagedStatement:
    """A query's plan, or what was staged: judged on top of what the transaction has staged before, if the table or the
    options ask for a gate. Raises InvalidInputError for a statement that changes more than rows, ConflictError for one
    that cannot be published behind those, and RejectedError."""
    prepared = prepare(runtime, text, values, options)
    if isinstance(prepared, QueryPlan | Told):
        return carry_out(prepared, options)
    if not isinstance(prepared, RowsChange):
        raise not_in_transaction()
    request, table = parse_options(options), prepared.table
    was_done = isinstance(prepared, DoneChange)
    judging = None if was_done else gate_of(runtime, table, request)
    commit_id = prepared.stage(request)
    try:
        _check_beneath(runtime, prepared, commit_id)
        look_beneath(runtime, table, commit_id)
        if judging is not None:
            require_passed(judge(runtime, commit_id, judging, runtime.staged.get(table.id, ())))
    except BaseException:
        end_all(runtime, [commit_id], "its transaction ended before")
        raise
    done = prepared.snapshot if isinstance(prepared, DoneChange) else None
    told = tell(text, prepared.word, table.full_name, done, staged=load_commit(runtime.catalog, commit_id))
    return StagedStatement(ref=table.ref, commit_id=commit_id, judging=judging, told=told, was_done=was_done)


def not_in_transaction() -> InvalidInputError:
    return InvalidInputError(
        "In a transaction are statements that change rows, and queries.",
        kind="not_in_transaction",
        remedy="Carry it out before the transaction, or after it: lake.sql(…).",
    )


def _check_beneath(runtime: Runtime, change: RowsChange, commit_id: UUID) -> None:
    """Raises ConflictError for what could not be published behind what the transaction has staged before it."""
    beneath = runtime.staged.get(change.table.id, ())
    if beneath and is_in_the_way(runtime.catalog, commit_id, beneath):
        raise ConflictError(
            f"{change.word} takes rows of {change.table.full_name} out, or the place of some, that a statement before"
            " it in the transaction has changed.",
            kind="rows_added",
            remedy="Publish what comes before it first; or have one statement do the work of both.",
        )


def prepare(
    runtime: Runtime, text: str, values: Mapping[str, Any], options: Mapping[str, Any] | None = None
) -> QueryPlan | Told | Change:
    """A query's plan, or a statement that is ready to be carried out, or what EXPLAIN tells of one. Nothing has
    changed. Of a statement whose work was published before, under the key that the options give, nothing else is
    looked at. Raises InvalidInputError for what is no SQL, or none that is known, NotFoundError for tables and
    snapshots that are not there."""
    understood = understand(text, values)
    if isinstance(understood, Statement):
        plan = plan_statement(runtime, understood, look_up(runtime, understood.references))
        return explained(text, explain_plan(runtime, plan)) if plan.is_explained and runtime.session is None else plan
    if isinstance(understood, sql_kinds.Show):
        return sql_show.show(runtime, understood)
    if isinstance(understood, Insert | Revise) and not understood.parsed.is_explained:
        done = _find_done(runtime, understood, parse_options(options))
        if done is not None:
            return done
    change = _plan_change(runtime, understood)
    return explained(text, change.explain()) if understood.parsed.is_explained else change


def _find_done(runtime: Runtime, statement: Insert | Revise, request: WriteRequest) -> DoneChange | None:
    """None if it is to be done. Raises NotFoundError for a table that is not there."""
    if request.idempotency_key is None:
        return None
    table = look_up(runtime, [statement.table])[statement.table.name]
    snapshot = find_done(runtime, table, request)
    if snapshot is None:
        return None
    return DoneChange(runtime=runtime, statement=statement, table=table, snapshot=snapshot)


def _plan_change(runtime: Runtime, understood: sql_kinds.Change) -> Change:
    match understood:
        case Insert():
            return sql_insert.plan_insert(runtime, understood)
        case Revise():
            return sql_revise.plan_revise(runtime, understood)
        case CreateTable():
            return sql_create.plan_create(runtime, understood)
        case CreateNamespace():
            return sql_create.NamespaceChange(runtime=runtime, create=understood)
        case AlterTable():
            return sql_alter.plan_alter(runtime, understood)
        case DropTable():
            return sql_alter.plan_drop(runtime, understood)
        case Truncate():
            return sql_alter.plan_truncate(runtime, understood)
        case Call():
            return sql_call.plan_call(runtime, understood)
