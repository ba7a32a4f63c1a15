"""Use cases: UPDATE, DELETE and MERGE INTO, as the builders do them. A DELETE whose condition a scan's predicate can be
is one by predicate, unless it is of rows that its transaction has staged."""

from uuid import UUID

from lakelib.dataclass import dataclass
from lakelib.model.effect import UNKNOWN, Effect
from lakelib.model.merge import OnDelete
from lakelib.model.predicate import Predicate
from lakelib.model.table import Snapshot, TableInfo
from lakelib.ops import delete, sql
from lakelib.ops.explain import explain_scan
from lakelib.ops.read import ScanRequest, count_rows, plan_scan
from lakelib.ops.request import WriteRequest
from lakelib.ops.revise import count_revised, revise, stage_revision
from lakelib.ops.revise_plan import Planned, check_planned, plan_revision
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_change import Told, tell_changed
from lakelib.ops.sql_plan import QueryExplanation
from lakelib.plan.revise_query import bound_where
from lakelib.plan.sql_revise import Revise


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteChange:
    """A DELETE by a predicate."""

    runtime: Runtime
    statement: Revise
    table: TableInfo
    where: Predicate

    @property
    def takes_away(self) -> bool:
        return True

    def explain(self) -> QueryExplanation:
        scan = explain_scan(self.runtime, plan_scan(self.runtime, self.table, ScanRequest(where=self.where)))
        return QueryExplanation(change=f"DELETE {self.table.full_name}: rows are deleted by a predicate", scans=(scan,))

    def count(self) -> Effect:
        """What it would do to rows."""
        if self.table.merge.on_delete is not OnDelete.ROW:
            return UNKNOWN
        scan = plan_scan(self.runtime, self.table, ScanRequest(where=self.where))
        return Effect(inserted=0, updated=0, deleted=count_rows(self.runtime, scan, self.runtime.session))

    def carry_out(self, request: WriteRequest) -> Told:
        def publish(asked: WriteRequest) -> Snapshot:
            return delete.delete_where(self.runtime, self.table.ref, self.where, asked)

        return tell_changed(self.statement.parsed.text, self.word, self.table.full_name, publish, request)

    def stage(self, request: WriteRequest) -> UUID:
        return delete.stage_delete_where(self.runtime, self.table.ref, self.where, request)

    @property
    def word(self) -> str:
        return self.statement.word


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviseChange:
    """Any other."""

    runtime: Runtime
    statement: Revise
    table: TableInfo
    planned: Planned

    @property
    def takes_away(self) -> bool:
        return self.statement.may_take_away

    def explain(self) -> QueryExplanation:
        means = "rows are upserted" if self.planned.is_upsert else "the query's rows are the change"
        return sql.explain_plan(self.runtime, self.planned.plan, f"{self.word} {self.table.full_name}: {means}")

    def count(self) -> Effect:
        """What it would do to rows."""
        return count_revised(self.runtime, self.planned)

    def carry_out(self, request: WriteRequest) -> Told:
        def publish(asked: WriteRequest) -> Snapshot:
            return revise(self.runtime, self.table.ref, self.statement.revision, None, asked, self.planned)

        return tell_changed(self.statement.parsed.text, self.word, self.table.full_name, publish, request)

    def stage(self, request: WriteRequest) -> UUID:
        return stage_revision(self.runtime, self.table.ref, self.statement.revision, None, request, self.planned)

    @property
    def word(self) -> str:
        return self.statement.word


def check_revise(runtime: Runtime, statement: Revise) -> None:
    """Raises what `plan_revise` does, as far as no rows have to be looked at."""
    table = sql.look_up(runtime, [statement.table])[statement.table.name]
    check_planned(runtime, table.full_name, table.id, statement.revision)


def plan_revise(runtime: Runtime, statement: Revise) -> DeleteChange | ReviseChange:
    """Raises InvalidInputError for what cannot be meant, or cannot be done to such a table; NotFoundError."""
    name = statement.table.name
    table = sql.look_up(runtime, [statement.table])[name]
    where = bound_where(statement.revision, table) if statement.word == "DELETE" else None
    sees_staged = bool(runtime.staged.get(table.id)) and table.primary_key_ids
    if where is not None and not sees_staged:
        return DeleteChange(runtime=runtime, statement=statement, table=table, where=where)
    planned = plan_revision(runtime, name, table.id, statement.revision, None)
    return ReviseChange(runtime=runtime, statement=statement, table=planned.table, planned=planned)
