"""Pure. Compares a table with what its spec says: what it lacks, and what cannot be brought in line."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from lakelib.dataclass import dataclass
from lakelib.model.merge import MergeEngine, OnDelete
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
    merge: Any = MergeEngine.DEDUPLICATE.value
    """In the names of columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    add: tuple[Column, ...]
    """Columns that the table lacks."""
    widen: tuple[tuple[str, str], ...]
    """Names and wider types of columns that the table has."""
    nullable: tuple[str, ...]
    """Names of columns that are NOT NULL in the table alone."""
    functions: Mapping[str, str]
    """Of columns that the table lacks, where it aggregates."""
    other: tuple[str, ...]
    """What no evolution of the schema changes, in words."""

    comment: tuple[tuple[str, str], ...] = ()
    """Names and comments of columns that the table says something else of, or nothing. It is no reason to refuse."""

    @property
    def may_follow(self) -> bool:
        """Whether the table is not as declared, and can follow."""
        return bool(self.add or self.widen or self.nullable)

    def in_words(self) -> list[str]:
        added = [f"column {each.name!r} ({each.type}) is declared, and the table lacks it" for each in self.add]
        widened = [
            f"column {name!r} is declared as {kind}, which is wider than the table's" for name, kind in self.widen
        ]
        loosened = [f"column {name!r} is declared nullable, and the table's is NOT NULL" for name in self.nullable]
        return [*self.other, *added, *widened, *loosened]


def compare_table(table: TableInfo, wanted: Wanted, *, may_have_more: bool) -> Differences:
    """With `may_have_more` the table may have nullable columns and wider types that rows brought, undeclared."""
    add, widen, nullable, other = [], [], [], list(_layout(table, wanted))
    for column in wanted.columns:
        found = table.schema.find(column.name)
        if found is None and column.nullable:
            add.append(column)
        elif found is None:
            other.append(f"column {column.name!r} is declared NOT NULL, and the table lacks it")
        elif found.type != column.type and is_wider(column.type, found.type):
            widen.append((found.name, column.type))
        else:
            other += _column(column, found, may_have_more)
        if found is not None and column.nullable and not found.nullable:
            nullable.append(found.name)
    declared = {column.name.casefold() for column in wanted.columns}
    other += [
        f"the table has the column {column.name!r} ({column.type}), which is not declared"
        for column in table.schema.columns
        if column.name.casefold() not in declared and not (may_have_more and column.nullable)
    ]
    functions = _functions(wanted.merge)
    return Differences(
        add=tuple(add),
        widen=tuple(widen),
        nullable=tuple(nullable),
        functions={column.name: functions[column.name] for column in add if column.name in functions},
        other=tuple(other),
        comment=tuple(_comments(table, wanted)),
    )


def _comments(table: TableInfo, wanted: Wanted) -> Iterator[tuple[str, str]]:
    for column in wanted.columns:
        found = table.schema.find(column.name)
        if found is not None and column.comment and column.comment != found.comment:
            yield found.name, column.comment


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
    differences += _merging(table, wanted)
    if wanted.buckets != table.buckets:
        differences.append(
            f"buckets are declared as {_counted(wanted.buckets)}, and the table's are {_counted(table.buckets)}"
        )
    return differences


def _merging(table: TableInfo, wanted: Wanted) -> list[str]:
    """Whether versions become one as it is declared. What columns do that the table lacks is of no account here."""
    lacking = {column.name.casefold() for column in wanted.columns if table.schema.find(column.name) is None}
    declared, has = _folded(wanted.merge, lacking), _folded(table.merge.in_names(table.schema), set())
    if declared == has:
        return []
    return [f"merge is declared as {declared}, and the table's is {has}"]


def _folded(merge: Any, without: Collection[str]) -> dict[str, Any]:
    """With what stands for itself said, and names without regard to case."""
    told: Mapping[str, Any] = {"engine": merge} if isinstance(merge, str) else merge
    functions: Mapping[str, str] = {name.casefold(): function for name, function in _functions(merge).items()}
    groups = [
        {part: [name.casefold() for name in names] for part, names in each.items()} for each in told.get("groups", ())
    ]
    found: dict[str, Any] = {
        "engine": told["engine"],
        "groups": groups,
        "on_delete": told.get("on_delete", OnDelete.ROW.value),
        "retract": told.get("retract", False),
        "functions": {name: function for name, function in functions.items() if name not in without},
    }
    usual: dict[str, Any] = {"groups": [], "on_delete": OnDelete.ROW.value, "retract": False, "functions": {}}
    return {word: value for word, value in found.items() if word not in usual or value != usual[word]}


def _functions(merge: Any) -> Mapping[str, str]:
    found: Mapping[str, str] = {} if isinstance(merge, str) else merge.get("functions", {})
    return found


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(names)})"


def _counted(buckets: Buckets) -> str:
    return buckets.mode if buckets.fixed_depth is None else str(1 << buckets.fixed_depth)


def _column(wanted: Column, found: Column, may_have_more: bool) -> list[str]:
    differences = []
    if wanted.type != found.type and not (may_have_more and is_wider(found.type, wanted.type)):
        differences.append(f"column {found.name!r} is declared as {wanted.type}, and the table's is {found.type}")
    if found.nullable and not wanted.nullable:
        differences.append(f"column {found.name!r} is declared NOT NULL, and the table's is nullable")
    return differences
