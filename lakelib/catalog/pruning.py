"""Predicates as SQL conditions over partitions and over the bounds of files.

A condition is TRUE wherever a matching row may be. It follows the predicate by two questions, "may it be TRUE?" and
"may it be FALSE?", so that NOT only swaps them; what the bounds cannot tell is answered with yes, and so is what would
make the statement too long.

Whether one of many values lies in a range is answered by two binary searches: `width_bucket(x, sorted)` is how many of
the sorted values are not above x.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from lakelib.dataclass import dataclass
from lakelib.model import sortable
from lakelib.model.predicate import OPPOSITE, And, Compare, Comparison, Constant, In, IsNull, Not, Or, Predicate
from lakelib.model.schema import Column
from lakelib.model.table import MAX_DEPTH

YES = "true"
NO = "false"
_MOST_VALUES = 1000
"""A longer list of values is searched as so many ranges: each file is held against it."""

_MOST_PARAMETERS = 2000
"""PostgreSQL takes 65,535 parameters, and plans a statement of thousands slowly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """SQL text with named parameters."""

    text: str
    parameters: dict[str, Any]


def partition_condition(predicate: Predicate | None, partition_by: Sequence[Column]) -> Condition:
    """Over `lake.partition p`: partitions that may hold a matching row."""
    positions = {column.id: position for position, column in enumerate(partition_by, start=1)}
    condition = _condition(predicate, _PartitionValues(positions=positions))
    if predicate is None or not partition_by:
        return condition
    return _within_keys(condition, *_first_values(predicate, partition_by[0]))


def file_condition(predicate: Predicate | None, usable_ids: frozenset[int]) -> Condition:
    """Over `lake.data_file f`: files that may hold a matching row, judged by columns of `usable_ids` alone."""
    return _condition(predicate, _FileBounds(usable_ids=usable_ids))


def prefix_condition(hash_prefixes: Sequence[int] | None) -> Condition:
    """Over `lake.data_file f`: files that may hold a key, given the first MAX_DEPTH bits of the hash of each key."""
    if hash_prefixes is None:
        return Condition(text=YES, parameters={})
    first = f"f.prefix << {MAX_DEPTH} - f.depth"
    past = f"(f.prefix + 1) << {MAX_DEPTH} - f.depth"
    values = "%(hash_prefixes)s::bigint[]"
    text = f"width_bucket(({past}) - 1, {values}) > width_bucket(({first}) - 1, {values})"
    return Condition(text=text, parameters={"hash_prefixes": sorted(hash_prefixes)})


class _PartitionValues:
    """A partition column has one value in all rows: both its bounds."""

    def __init__(self, *, positions: dict[int, int]) -> None:
        self._positions = positions

    def knows(self, column: Column) -> bool:
        return column.id in self._positions

    def lower(self, column: Column) -> str:
        return f"p.key[{self._positions[column.id]}]"

    upper = lower

    def may_be_null(self, column: Column) -> str:
        return f"{self.lower(column)} is null"

    def may_be_set(self, column: Column) -> str:
        return f"{self.lower(column)} is not null"


class _FileBounds:
    """Bounds of a file's column are unknown where the array has no entry."""

    def __init__(self, *, usable_ids: frozenset[int]) -> None:
        self._usable_ids = usable_ids

    def knows(self, column: Column) -> bool:
        return column.id in self._usable_ids and sortable.is_sortable(column.type)

    def lower(self, column: Column) -> str:
        return self._bound("f.lower_bounds", column)

    def upper(self, column: Column) -> str:
        return self._bound("f.upper_bounds", column)

    def _bound(self, bounds: str, column: Column) -> str:
        known = f"{bounds}[{column.id}]"
        since = column.scale_since
        return f"case when f.schema_id >= {since} then {known} end" if since else known

    def may_be_null(self, column: Column) -> str:
        return f"coalesce(f.null_counts[{column.id}] > 0, true)"

    def may_be_set(self, column: Column) -> str:
        return f"coalesce(f.null_counts[{column.id}] < f.row_count, true)"


_Bounds = _PartitionValues | _FileBounds


@dataclass(slots=True)
class _Parameters:
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def are_full(self) -> bool:
        return len(self.values) >= _MOST_PARAMETERS

    def add(self, value: Any) -> str:
        name = f"v{len(self.values)}"
        self.values[name] = value
        return f"%({name})s"


def _condition(predicate: Predicate | None, bounds: _Bounds) -> Condition:
    parameters = _Parameters()
    text = YES if predicate is None else _may_be(True, predicate, bounds, parameters)
    return Condition(text=text, parameters=parameters.values)


def _may_be(wanted: bool, predicate: Predicate, bounds: _Bounds, parameters: _Parameters) -> str:
    match predicate:
        case Constant(value=value):
            return YES if value is wanted else NO
        case Not(part=part):
            return _may_be(not wanted, part, bounds, parameters)
        case And(parts=parts):
            return _joined("and" if wanted else "or", _each(wanted, parts, bounds, parameters))
        case Or(parts=parts):
            return _joined("or" if wanted else "and", _each(wanted, parts, bounds, parameters))
        case _ if parameters.are_full:
            return YES
        case IsNull(column=Column() as column) if bounds.knows(column):
            return bounds.may_be_null(column) if wanted else bounds.may_be_set(column)
        case Compare(column=Column() as column, op=op, value=value) if bounds.knows(column):
            encoded = parameters.add(sortable.encode(column.type, value))
            return _set_and(column, bounds, _compare(op if wanted else OPPOSITE[op], column, bounds, encoded))
        case In(column=Column() as column, values=values) if bounds.knows(column):
            points = sorted({sortable.encode(column.type, value) for value in values})
            return _set_and(column, bounds, _membership(wanted, column, bounds, points, parameters))
        case _:
            return YES


def _first_values(predicate: Predicate, first: Column) -> tuple[bytes | None, bytes | None]:
    """The least and the greatest value of the first partition column wherever the predicate is TRUE, if it says."""
    match predicate:
        case And(parts=parts):
            found = [_first_values(part, first) for part in parts]
            least = [lower for lower, _ in found if lower is not None]
            greatest = [upper for _, upper in found if upper is not None]
            return max(least, default=None), min(greatest, default=None)
        case Compare(column=Column() as column, op=op, value=value) if column.id == first.id:
            encoded = sortable.encode(column.type, value)
            return (
                encoded if op in (Comparison.EQ, Comparison.GE, Comparison.GT) else None,
                encoded if op in (Comparison.EQ, Comparison.LE, Comparison.LT) else None,
            )
        case In(column=Column() as column, values=values) if column.id == first.id and values:
            points = [sortable.encode(column.type, value) for value in values]
            return min(points), max(points)
    return None, None


def _within_keys(condition: Condition, least: bytes | None, greatest: bytes | None) -> Condition:
    """The same, said of the whole key as well: an index knows those. A key is above its own beginning."""
    texts, parameters = [condition.text], dict(condition.parameters)
    if least is not None:
        texts.append("p.key >= array[%(least)s]::bytea[]")
        parameters["least"] = least
    if greatest is not None:
        texts.append("p.key < array[%(beyond)s]::bytea[]")
        parameters["beyond"] = greatest + b"\x00"
    return Condition(text=_joined("and", texts), parameters=parameters)


def _each(wanted: bool, parts: Sequence[Predicate], bounds: _Bounds, parameters: _Parameters) -> list[str]:
    """The conditions of the parts. Small parts come first: the long ones are those that find no room."""
    return [_may_be(wanted, part, bounds, parameters) for part in sorted(parts, key=_count_leaves)]


def _count_leaves(predicate: Predicate) -> int:
    match predicate:
        case Not(part=part):
            return _count_leaves(part)
        case And(parts=parts) | Or(parts=parts):
            return sum(map(_count_leaves, parts))
        case _:
            return 1


def _compare(op: Comparison, column: Column, bounds: _Bounds, value: str) -> str:
    lower, upper = bounds.lower(column), bounds.upper(column)
    match op:
        case Comparison.EQ:
            return f"coalesce({lower} <= {value}, true) and coalesce({upper} >= {value}, true)"
        case Comparison.NE:
            return f"not coalesce({lower} = {value} and {upper} = {value}, false)"
        case Comparison.LT | Comparison.LE:
            return f"coalesce({lower} {op.value} {value}, true)"
        case Comparison.GT | Comparison.GE:
            return f"coalesce({upper} {op.value} {value}, true)"


def _membership(wanted: bool, column: Column, bounds: _Bounds, points: Sequence[bytes], parameters: _Parameters) -> str:
    lower, upper = bounds.lower(column), bounds.upper(column)
    if not wanted and len(points) > _MOST_VALUES:
        return YES
    ranges = _as_ranges(points)
    starts = parameters.add([first for first, _ in ranges]) + "::bytea[]"
    # The least value above v is v and a zero byte: of the ranges that end below a bound these are not above it.
    ends = parameters.add([last + b"\x00" for _, last in ranges]) + "::bytea[]"
    begun = f"coalesce(width_bucket({upper}, {starts}), cardinality({starts}))"
    inside = f"{begun} > coalesce(width_bucket({lower}, {ends}), 0)"
    return inside if wanted else f"not coalesce({lower} = {upper} and {inside}, false)"


def _as_ranges(points: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Neighbouring points as ranges from first to last, no more than _MOST_VALUES; up to there each point is one."""
    size = max(1, -(-len(points) // _MOST_VALUES))
    return [(group[0], group[-1]) for start in range(0, len(points), size) if (group := points[start : start + size])]


def _set_and(column: Column, bounds: _Bounds, condition: str) -> str:
    """A comparison is neither TRUE nor FALSE for NULL."""
    return f"({bounds.may_be_set(column)} and {condition})"


def _joined(word: str, conditions: list[str]) -> str:
    neutral, decisive = (YES, NO) if word == "and" else (NO, YES)
    left = [condition for condition in conditions if condition != neutral]
    if not left:
        return neutral
    return decisive if decisive in left else "(" + f" {word} ".join(left) + ")"
