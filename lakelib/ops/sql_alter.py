"""Use cases: ALTER TABLE, DROP TABLE, TRUNCATE TABLE."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from lakelib.dataclass import dataclass
from lakelib.errors import NotFoundError
from lakelib.model.options import parse_options
from lakelib.model.table import Snapshot, TableInfo
from lakelib.ops import create, evolve, overwrite, sql
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_change import Told, refuse_options, tell, tell_changed
from lakelib.ops.sql_plan import QueryExplanation
from lakelib.plan.sql_alter import AlterTable, DropTable, Truncate
from lakelib.plan.sql_parts import find_column
from lakelib.rows.types import arrow_schema
from lakelib.work.sources import RowSource, open_arrow


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterChange:
    """Columns that are named are there, and the change is possible."""

    runtime: Runtime
    alter: AlterTable
    table: TableInfo

    @property
    def takes_away(self) -> bool:
        return self.alter.may_take_away

    def explain(self) -> QueryExplanation:
        if self.alter.options:
            means = f"sets {', '.join(f'{name} = {value}' for name, value in self.alter.options.items())}"
        else:
            change = self.alter.change
            means = "" if change.is_none else evolve.preview_change(self.table, change)
        return QueryExplanation(change=f"ALTER TABLE {self.table.full_name}: {means or 'changes nothing'}")

    def carry_out(self, request: WriteRequest) -> Told:
        return tell(self.alter.parsed.text, "ALTER TABLE", self.table.full_name, self._changed(request))

    def _changed(self, request: WriteRequest) -> Snapshot | None:
        if not self.alter.change.is_none:
            return evolve.evolve(self.runtime, self.table.ref, self.alter.change, request)
        refuse_options(request, "Setting properties of a table")
        if self.alter.options:
            evolve.set_options(self.runtime, self.table.ref, self.alter.options)
        return None


def plan_alter(runtime: Runtime, alter: AlterTable) -> AlterChange:
    """Raises InvalidInputError for a change that is not possible, NotFoundError."""
    table = sql.look_up(runtime, [alter.table])[alter.table.name]
    for each in alter.named:
        find_column(table.schema, each, table.full_name)
    there = {name.casefold() for name in table.schema.names}
    missing = {each.name for each in alter.if_there if each.name.casefold() not in there}
    known = {each.name.casefold() for each in alter.unless_there if each.name.casefold() in there}
    change = replace(
        alter.change,
        drop=[name for name in alter.change.drop if name not in missing],
        add=[column for column in alter.change.add if column.name.casefold() not in known],  # type: ignore[union-attr]
    )
    if known and change.move:
        change = replace(change, move={name: to for name, to in change.move.items() if name.casefold() not in known})
    if not change.is_none:
        evolve.preview_change(table, change)
    if alter.options:
        parse_options({**table.options.as_mapping(), **alter.options})
    return AlterChange(runtime=runtime, alter=replace(alter, change=change), table=table)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropChange:
    """DROP TABLE."""

    runtime: Runtime
    drop: DropTable
    is_there: bool

    @property
    def takes_away(self) -> bool:
        return self.is_there

    def explain(self) -> QueryExplanation:
        means = "it is dropped, with its history" if self.is_there else "there is none"
        return QueryExplanation(change=f"DROP TABLE {self.drop.table.name}: {means}")

    def carry_out(self, request: WriteRequest) -> Told:
        refuse_options(request, "DROP TABLE")
        if self.is_there:
            create.drop_table(self.runtime, self.drop.table.name)
        return tell(self.drop.parsed.text, "DROP TABLE", self.drop.table.name)


def plan_drop(runtime: Runtime, drop: DropTable) -> DropChange:
    """Raises NotFoundError, unless that is said to be right."""
    try:
        sql.look_up(runtime, [drop.table])
    except NotFoundError:
        if not drop.if_exists:
            raise
        return DropChange(runtime=runtime, drop=drop, is_there=False)
    return DropChange(runtime=runtime, drop=drop, is_there=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateChange:
    """TRUNCATE TABLE: an overwrite by no rows."""

    runtime: Runtime
    truncate: Truncate
    table: TableInfo
    takes_away: bool = True
    word: str = "TRUNCATE TABLE"

    def explain(self) -> QueryExplanation:
        means = "all rows go" if self.truncate.partition is None else "the rows of the partitions that are named go"
        return QueryExplanation(change=f"{self.word} {self.table.full_name}: {means}")

    def carry_out(self, request: WriteRequest) -> Told:
        def publish(asked: WriteRequest) -> Snapshot:
            return overwrite.overwrite(self.runtime, self.table.ref, self._nothing(), self._partitions, asked)

        return tell_changed(self.truncate.parsed.text, self.word, self.table.full_name, publish, request)

    def stage(self, request: WriteRequest) -> UUID:
        return overwrite.stage_overwrite(self.runtime, self.table.ref, self._nothing(), self._partitions, request)

    @property
    def _partitions(self) -> str | Mapping[str, Any]:
        return "all" if self.truncate.partition is None else self.truncate.partition.values

    def _nothing(self) -> RowSource:
        return open_arrow(arrow_schema(self.table.schema.columns).empty_table())


def plan_truncate(runtime: Runtime, truncate: Truncate) -> TruncateChange:
    """Raises InvalidInputError for what is no partition, NotFoundError."""
    table = sql.look_up(runtime, [truncate.table])[truncate.table.name]
    if truncate.partition is not None:
        overwrite.parse_target(table, truncate.partition.values)
    return TruncateChange(runtime=runtime, truncate=truncate, table=table)
