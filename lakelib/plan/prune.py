"""Pure. Decides from bounds and partition values where a predicate may be TRUE, which keys it asks for, and which
predicates may have no answer for a row: those are asked of the rows alone that all else leaves."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import TypeVar

from lakelib.dataclass import dataclass
from lakelib.model.files import DataFile, PartitionKey
from lakelib.model.predicate import (
    OPPOSITE,
    And,
    Compare,
    CompareColumns,
    Comparison,
    Computed,
    Constant,
    Fixed,
    Function,
    In,
    IsNull,
    Like,
    Matches,
    Not,
    Or,
    Predicate,
    Raw,
    Tested,
    columns_of,
    computed_in,
    conjuncts_of,
)
from lakelib.model.schema import Column
from lakelib.model.sortable import encode
from lakelib.rows.filter import ANY_TEXT, split_pattern
from lakelib.rows.values import INTEGER_BITS, decimal_parts

T = TypeVar("T")
_OVERFLOWING = (Function.ADD, Function.SUBTRACT, Function.MULTIPLY, Function.NEGATE, Function.ABS)
"""Of whole numbers: the result may have no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is known of one column over some rows. Bounds are sortable encodings of values; None is unknown."""

    lower: bytes | None = None
    upper: bytes | None = None
    null_count: int | None = None
    row_count: int

    @property
    def may_have_null(self) -> bool:
        return self.row_count > 0 and self.null_count != 0

    @property
    def may_have_value(self) -> bool:
        return self.row_count > 0 and self.null_count != self.row_count


def may_match(predicate: Predicate, bounds: Callable[[Column], Bounds]) -> bool:
    """Whether the predicate may be TRUE for some row; False is certain, True is not. Of what is computed nothing is
    known."""

    def known(tested: Tested | Fixed) -> Bounds:
        return bounds(tested) if isinstance(tested, Column) else Bounds(row_count=1)

    return _may_be(predicate, True, known)


def may_ever_match(predicate: Predicate) -> bool:
    """Whether the predicate may be TRUE for any row at all, whatever the rows hold."""
    return may_match(predicate, lambda column: Bounds(row_count=1))


def _may_be(predicate: Predicate, wanted: bool, bounds: Callable[[Tested | Fixed], Bounds]) -> bool:
    """Whether the predicate may be TRUE (or, if that is wanted, FALSE) for some row: NOT turns one into the other."""
    match predicate:
        case Constant(value=value):
            return value is wanted
        case Not(part=part):
            return _may_be(part, not wanted, bounds)
        case And(parts=parts):
            return (all if wanted else any)(_may_be(part, wanted, bounds) for part in parts)
        case Or(parts=parts):
            return (any if wanted else all)(_may_be(part, wanted, bounds) for part in parts)
        case IsNull(column=column):
            known = bounds(column)
            return known.may_have_null if wanted else known.may_have_value
        case CompareColumns(left=left, op=op, right=right):
            return _may_compare(bounds(left), op if wanted else OPPOSITE[op], bounds(right))
        case Compare(column=column, op=op, value=raw):
            point = encode(column.type, raw)
            literal = Bounds(lower=point, upper=point, null_count=0, row_count=1)
            return _may_compare(bounds(column), op if wanted else OPPOSITE[op], literal)
        case In():
            return _may_be_in(predicate, wanted, bounds(predicate.column))
        case Like(column=column, pattern=pattern):
            return _may_be_like(pattern, wanted, bounds(column))
        case Matches(column=column):
            return bounds(column).may_have_value


def _may_compare(left: Bounds, op: Comparison, right: Bounds) -> bool:
    if not (left.may_have_value and right.may_have_value):
        return False
    match op:
        case Comparison.EQ:
            return _may_be_up_to(left, right) and _may_be_up_to(right, left)
        case Comparison.NE:
            return not (_is_point(left) and _is_point(right) and left.lower == right.lower)
        case Comparison.LT:
            return _may_be_below(left, right)
        case Comparison.LE:
            return _may_be_up_to(left, right)
        case Comparison.GT:
            return _may_be_below(right, left)
        case Comparison.GE:
            return _may_be_up_to(right, left)


def _may_be_below(left: Bounds, right: Bounds) -> bool:
    return left.lower is None or right.upper is None or left.lower < right.upper


def _may_be_up_to(left: Bounds, right: Bounds) -> bool:
    return left.lower is None or right.upper is None or left.lower <= right.upper


def _is_point(known: Bounds) -> bool:
    """Whether all values are one and the same."""
    return known.lower is not None and known.lower == known.upper


def _may_be_in(predicate: In, wanted: bool, known: Bounds) -> bool:
    if not known.may_have_value:
        return False
    points = _sorted_encodings(predicate.column.type, _Same(predicate.values))
    if not wanted:
        return not (_is_point(known) and known.lower is not None and _holds(points, known.lower))
    at = 0 if known.lower is None else bisect_left(points, known.lower)
    return at < len(points) and (known.upper is None or points[at] <= known.upper)


def _holds(points: Sequence[bytes], point: bytes) -> bool:
    at = bisect_left(points, point)
    return at < len(points) and points[at] == point


class _Same:
    """A list of values, equal only to the very same list: hashing a long one takes longer than a search in it."""

    def __init__(self, values: tuple[Raw, ...]) -> None:
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.values is other.values

    def __hash__(self) -> int:
        return id(self.values)


@lru_cache(maxsize=64)
def _sorted_encodings(type_text: str, same: _Same) -> tuple[bytes, ...]:
    """Cached, because one list of values is held against the bounds of many files."""
    return tuple(sorted(encode(type_text, raw) for raw in same.values))


def _may_be_like(pattern: str, wanted: bool, known: Bounds) -> bool:
    if not known.may_have_value:
        return False
    pieces = split_pattern(pattern)
    prefix = pieces[0][0].encode() if pieces and not pieces[0][1] else b""
    rest = pieces[1:] if prefix else pieces
    if not rest:
        point = Bounds(lower=prefix, upper=prefix, null_count=0, row_count=1)
        return _may_compare(known, Comparison.EQ if wanted else Comparison.NE, point)
    if wanted:
        starts_low_enough = known.lower is None or known.lower[: len(prefix)] <= prefix
        return starts_low_enough and (known.upper is None or known.upper >= prefix)
    return rest != [(ANY_TEXT, True)] or not _all_start_with(known, prefix)


def _all_start_with(known: Bounds, prefix: bytes) -> bool:
    if not prefix:
        return True
    return all(bound is not None and bound.startswith(prefix) for bound in (known.lower, known.upper))


def file_may_match(predicate: Predicate, file: DataFile) -> bool:
    """Whether some row of the file may match. Of hidden columns nothing is known."""

    def known(column: Column) -> Bounds:
        place = column.id - 1
        stored = file.bounds
        if place < 0 or not column.tells_bounds(file.schema_id):
            return Bounds(row_count=file.row_count)
        return Bounds(
            lower=_at(stored.lower, place),
            upper=_at(stored.upper, place),
            null_count=_at(stored.null_counts, place),
            row_count=file.row_count,
        )

    return may_match(predicate, known)


def _at(values: Sequence[T | None], place: int) -> T | None:
    return values[place] if place < len(values) else None


def partition_may_match(predicate: Predicate, partition_columns: Sequence[Column], key: PartitionKey) -> bool:
    """Whether some row of the partition may match, given only its partition values."""
    values = {column.id: value for column, value in zip(partition_columns, key, strict=True)}

    def known(column: Column) -> Bounds:
        if column.id not in values:
            return Bounds(row_count=1)
        value = values[column.id]
        return Bounds(lower=value, upper=value, null_count=1 if value is None else 0, row_count=1)

    return may_match(predicate, known)


def key_part(predicate: Predicate | None, key_ids: Collection[int]) -> Predicate | None:
    """The conjuncts that look only at key columns: they hold for all versions of a row, or for none. Those that may
    fail are not asked of versions that nobody sees."""
    allowed = frozenset(key_ids)
    parts = tuple(part for part in conjuncts_of(predicate) if columns_of(part) <= allowed and not may_fail(part))
    if len(parts) < 2:
        return parts[0] if parts else None
    return And(parts=parts)


def key_tuples(
    predicate: Predicate | None, key_columns: Sequence[Column], limit: int = 1000
) -> list[tuple[Raw, ...]] | None:
    """Every key that can match, if the conjuncts fix each key column by = or IN; None if not, or beyond `limit`."""
    conjuncts = conjuncts_of(predicate)
    fixed = [_fixed_values(conjuncts, column) for column in key_columns]
    known = [values for values in fixed if values is not None]
    if not fixed or len(known) < len(fixed) or prod(map(len, known)) > limit:
        return None
    return list(product(*known))


def _fixed_values(conjuncts: Sequence[Predicate], column: Column) -> list[Raw] | None:
    """The values that all conjuncts about the column leave; None if none of them fixes it."""
    left: list[Raw] | None = None
    for conjunct in conjuncts:
        values = _listed_values(conjunct, column)
        if values is not None:
            allowed = frozenset(values)
            left = values if left is None else [raw for raw in left if raw in allowed]
    return left


def _listed_values(predicate: Predicate, column: Column) -> list[Raw] | None:
    """The distinct values of the column for which the predicate may be TRUE, if it is =, IN, or an OR of these."""
    match predicate:
        case Compare(column=Column(id=column_id), op=Comparison.EQ, value=raw) if column_id == column.id:
            return [raw]
        case In(column=Column(id=column_id), values=values) if column_id == column.id:
            return list(dict.fromkeys(values))
        case Constant(value=value) if value is not True:
            return []
        case Or(parts=parts):
            lists = [_listed_values(part, column) for part in parts]
            if not lists or any(values is None for values in lists):
                return None
            return list(dict.fromkeys(raw for values in lists if values is not None for raw in values))
        case _:
            return None


# What may fail


_FLOATS = ("float", "double")
_ALWAYS_FIT = {("timestamp", "date"), ("timestamp", "timestamp_ntz"), ("timestamp_ntz", "timestamp")} | {
    ("timestamp_ntz", "date"),
    ("boolean", "string"),
}
_MOST_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def may_fail(predicate: Predicate) -> bool:
    """Whether there may be rows for which it is an error to ask."""
    return any(map(_may_fail, computed_in(predicate)))


def _may_fail(computed: Computed) -> bool:
    match computed.function:
        case Function.DIVIDE | Function.REMAINDER:
            divisor = computed.arguments[1]
            return not isinstance(divisor, Fixed) or not divisor.value or decimal_parts(computed.type) is not None
        case Function.LATER | Function.MONTHS_LATER:
            return True
        case Function.CAST:
            return not _fits(computed.arguments[0].type, computed.type)
    return computed.function in _OVERFLOWING and computed.type in INTEGER_BITS


def _fits(given: str, wanted: str) -> bool:
    """Whether each value of the one type is one of the other, if perhaps not with all its digits."""
    if given == wanted or (given, wanted) in _ALWAYS_FIT:
        return True
    if given == "boolean":
        return wanted in INTEGER_BITS
    if given in INTEGER_BITS:
        if wanted in INTEGER_BITS:
            return INTEGER_BITS[given] <= INTEGER_BITS[wanted]
        room = decimal_parts(wanted)
        return wanted in (*_FLOATS, "string") or (room is not None and _MOST_DIGITS[given] <= room[0] - room[1])
    own, room = decimal_parts(given), decimal_parts(wanted)
    if own is not None and room is not None:
        return own[1] <= room[1] and own[0] - own[1] <= room[0] - room[1]
    return wanted in _FLOATS and (own is not None or given in _FLOATS)
