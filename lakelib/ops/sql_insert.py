"""Use case: INSERT. The rows of a query go into a table, as `append` or, where it has a key, `upsert` brings them
there; or take the place of all of its rows, or of those of partitions, as by `overwrite`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from lakelib.dataclass import dataclass
from lakelib.errors import ConflictError, InvalidInputError
from lakelib.model.table import CommitKind, Snapshot, TableInfo
from lakelib.model.text import choose_from
from lakelib.ops import overwrite, sql, write
from lakelib.ops.patience import MOST_CHANGES, Overtaken, do_again
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_change import Told, tell_changed
from lakelib.ops.sql_plan import QueryExplanation, QueryPlan
from lakelib.ops.sql_source import source_of
from lakelib.plan.sql_insert import Insert, shape_insert
from lakelib.work.sources import RowSource

DYNAMIC = "dynamic"


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertChange:
    """Rows are known to fit, and not read yet."""

    runtime: Runtime
    insert: Insert
    table: TableInfo
    plan: QueryPlan
    target: overwrite.StaticTarget
    """The partition that all rows are in, as far as the statement says."""

    @property
    def takes_away(self) -> bool:
        return self.insert.may_take_away

    def explain(self) -> QueryExplanation:
        return sql.explain_plan(self.runtime, self.plan, f"{self.word} {self.table.full_name}: {self._means}")

    def carry_out(self, request: WriteRequest) -> Told:
        """What is made of the rows that it replaces is planned anew where others change them meanwhile."""
        return tell_changed(self.insert.parsed.text, self.word, self.table.full_name, self._published, request)

    def stage(self, request: WriteRequest) -> UUID:
        source, request = self._source(), replace(request, made_from=self._made_from)
        if self.insert.overwrites:
            return overwrite.stage_overwrite(self.runtime, self.table.ref, source, self._partitions, request)
        return write.stage_write(self.runtime, self.table.ref, self._kind, source, request)

    @property
    def word(self) -> str:
        return self.insert.word

    def _published(self, request: WriteRequest) -> Snapshot:
        change = self

        def attempt() -> Snapshot | Overtaken:
            nonlocal change
            try:
                return change._written(request)
            except ConflictError as error:
                if change._made_from is None:
                    raise
                change = plan_insert(self.runtime, self.insert)
                return Overtaken(error)

        return do_again(attempt, most_tries=MOST_CHANGES)

    @property
    def _means(self) -> str:
        if not self.insert.overwrites:
            return "rows are upserted" if self.table.primary_key_ids else "rows are appended"
        match self._partitions:
            case "all":
                return "rows take the place of all that is there"
            case "dynamic":
                return "rows take the place of the partitions that they are in"
            case _:
                return "rows take the place of the partitions that are named"

    def _written(self, request: WriteRequest) -> Snapshot:
        source, request = self._source(), replace(request, made_from=self._made_from)
        if self.insert.overwrites:
            return overwrite.overwrite(self.runtime, self.table.ref, source, self._partitions, request)
        return write.write(self.runtime, self.table.ref, self._kind, source, request)

    @property
    def _kind(self) -> CommitKind:
        return CommitKind.UPSERT if self.table.primary_key_ids else CommitKind.APPEND

    @property
    def _made_from(self) -> int | None:
        """The snapshot of the table itself that rows are read of, which take the place of others of it."""
        reads_itself = any(each.name == self.table.full_name for each in self.insert.source.references)
        replaces = self.insert.overwrites or bool(self.table.primary_key_ids)
        return self.table.head_id if reads_itself and replaces else None

    def _source(self) -> RowSource:
        return source_of(self.runtime, self.plan).with_constants(self.target.constants)

    @property
    def _partitions(self) -> str | Mapping[str, Any]:
        partition = self.insert.partition
        if partition is None:
            return "all"
        return DYNAMIC if partition.dynamic else partition.values


def plan_insert(runtime: Runtime, insert: Insert) -> InsertChange:
    """Raises InvalidInputError for columns that are not there and rows that do not fit, NotFoundError for tables."""
    found = sql.look_up(runtime, [insert.table, *insert.source.references])
    table = found[insert.table.name]
    target = _target(insert, table)
    plan = sql.plan_statement(
        runtime, insert.source, found, lambda query: shape_insert(insert, table.schema, table.full_name, query)
    )
    return InsertChange(runtime=runtime, insert=insert, table=table, plan=plan, target=target)


def _target(insert: Insert, table: TableInfo) -> overwrite.StaticTarget:
    partition = insert.partition
    if partition is None:
        return overwrite.StaticTarget(values={})
    known = [column.name for column in table.partition_by]
    for name in (*partition.values, *(each.name for each in partition.dynamic)):
        if name.casefold() not in {*map(str.casefold, known)}:
            raise InvalidInputError(
                f"{name!r} is no partition column of {table.full_name}{partition.place}.",
                kind="invalid_partitions",
                remedy=choose_from("Its partition columns", name, known),
            )
    return overwrite.parse_target(table, partition.values or "all")
