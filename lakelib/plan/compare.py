"""Pure. Compares a table with what its spec says: what it lacks, and what cannot be brought in line."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakelib.model.schema import Column
from lakelib.model.table import Buckets, TableInfo
from lakelib.plan.evolve import is_wider


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A table as it is declared."""

    columns: tuple[Column, ...]
    """Their ids are of no account."""
    primary_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    sequence_by: tuple[str, ...]
    buckets: Buckets


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    add: tuple[tuple[str, str], ...]
    """Names and types of columns that the table lacks."""
    widen: tuple[tuple[str, str], ...]
    """Names and wider types of columns that the table has."""
    other: tuple[str, ...]
    """What no evolution of the schema changes, in words."""

    def in_words(self) -> list[str]:
        added = [f"column {name!r} ({kind}) is declared, and the table lacks it" for name, kind in self.add]
        widened = [
            f"column {name!r} is declared as {kind}, which is wider than the table's" for name, kind in self.widen
        ]
        return [*self.other, *added, *widened]


def compare_table(table: TableInfo, wanted: Wanted, *, may_have_more: bool) -> Differences:
    """With `may_have_more` the table may have nullable columns and wider types that rows brought, undeclared."""
    add, widen, other = [], [], list(_layout(table, wanted))
    for column in wanted.columns:
        found = table.schema.find(column.name)
        if found is None and column.nullable:
            add.append((column.name, column.type))
        elif found is None:
            other.append(f"column {column.name!r} is declared NOT NULL, and the table lacks it")
        elif found.type != column.type and is_wider(column.type, found.type):
            widen.append((found.name, column.type))
        else:
            other += _column(column, found, may_have_more)
    declared = {column.name.casefold() for column in wanted.columns}
    other += [
        f"the table has the column {column.name!r} ({column.type}), which is not declared"
        for column in table.schema.columns
        if column.name.casefold() not in declared and not (may_have_more and column.nullable)
    ]
    return Differences(add=tuple(add), widen=tuple(widen), other=tuple(other))


def _layout(table: TableInfo, wanted: Wanted) -> list[str]:
    pairs = (
        ("primary_key", wanted.primary_key, table.primary_key),
        ("partition_by", wanted.partition_by, table.partition_by),
        ("sequence_by", wanted.sequence_by, table.sequence_by),
    )
    differences = [
        f"{what} is declared as {_listed(names)}, and the table's is {_listed([column.name for column in columns])}"
        for what, names, columns in pairs
        if [name.casefold() for name in names] != [column.name.casefold() for column in columns]
    ]
    if wanted.buckets != table.buckets:
        differences.append(
            f"buckets are declared as {_counted(wanted.buckets)}, and the table's are {_counted(table.buckets)}"
        )
    return differences


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(names)})"


def _counted(buckets: Buckets) -> str:
    return buckets.mode if buckets.fixed_depth is None else str(1 << buckets.fixed_depth)


def _column(wanted: Column, found: Column, may_have_more: bool) -> list[str]:
    differences = []
    if wanted.type != found.type and not (may_have_more and is_wider(found.type, wanted.type)):
        differences.append(f"column {found.name!r} is declared as {wanted.type}, and the table's is {found.type}")
    if wanted.nullable != found.nullable:
        declared, has = ("nullable", "NOT NULL") if wanted.nullable else ("NOT NULL", "nullable")
        differences.append(f"column {found.name!r} is declared {declared}, and the table's is {has}")
    return differences
