"""Pure. What a check asks of each row, carried out on batches.

A test says for each row whether it is as expected. What it says of NULLs that the check leaves out does not matter; of
all others NULL, neither true nor false, means no.
"""

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import reduce
from itertools import combinations
from math import ceil, floor, inf, isinf
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.gates.rows import Rows, as_floats, without_minus
from lakelib.rows.buffers import array_of_bytes, array_of_numbers
from lakelib.rows.values import raw_values

_EXACT = Context(prec=200)

Mask = Any
"""Arrow's booleans, one of each row; or True or False, of all of them."""


class RowTest(Protocol):
    def holds(self, rows: Rows) -> Mask: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull:
    column: str

    def holds(self, rows: Rows) -> Mask:
        return rows.is_null(self.column)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotNull:
    column: str

    def holds(self, rows: Rows) -> Mask:
        return pc.invert(rows.is_null(self.column)) if rows.null_count(self.column) else True


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """A range of numbers, of which either end may be open."""

    low: Any = None
    high: Any = None
    strict_low: bool = False
    strict_high: bool = False

    def holds(self, value: Any) -> bool:
        above = self.low is None or (value > self.low if self.strict_low else value >= self.low)
        below = self.high is None or (value < self.high if self.strict_high else value <= self.high)
        return bool(above and below)


@dataclass(frozen=True, slots=True, kw_only=True)
class InLimits:
    """Whether the values lie in a range. All but floats are compared exactly; NaN lies in none."""

    column: str
    limits: Limits

    def holds(self, rows: Rows) -> Mask:
        values = rows.column(self.column)
        if pa.types.is_floating(values.type):
            return _floats_in(as_floats(values), self.limits)
        return _exact_in(values, self.limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthInLimits:
    column: str
    limits: Limits

    def holds(self, rows: Rows) -> Mask:
        return _exact_in(rows.length(self.column), self.limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class InSet:
    column: str
    members: tuple[Any, ...]
    negated: bool = False

    def holds(self, rows: Rows) -> Mask:
        values = rows.column(self.column)
        members = rows.kept(id(self), lambda: members_array(self.members, values.type))
        found = pc.is_in(values, value_set=members)
        return pc.invert(found) if self.negated else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """Whether the values, as text, hold a match of one pattern, or of all; or of none."""

    column: str
    patterns: tuple[str, ...]
    """As RE2 takes them."""
    every: bool = False
    negated: bool = False

    def holds(self, rows: Rows) -> Mask:
        text = rows.text(self.column)
        found = reduce(
            pc.and_ if self.every else pc.or_, (pc.match_substring_regex(text, pattern) for pattern in self.patterns)
        )
        return pc.invert(found) if self.negated else found


@dataclass(frozen=True, slots=True, kw_only=True)
class PairGreater:
    left: str
    right: str
    or_equal: bool = False

    def holds(self, rows: Rows) -> Mask:
        compare = pc.greater_equal if self.or_equal else pc.greater
        return compare(*_comparable([rows.column(self.left), rows.column(self.right)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class PairIn:
    left: str
    right: str
    pairs: tuple[tuple[Any, Any], ...]

    def holds(self, rows: Rows) -> Mask:
        left, right = rows.column(self.left), rows.column(self.right)
        found = (pc.and_(_is(left, first), _is(right, second)) for first, second in self.pairs)
        return reduce(pc.or_, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class SumEquals:
    columns: tuple[str, ...]
    total: Any

    def holds(self, rows: Rows) -> Mask:
        columns = [rows.column(name) for name in self.columns]
        if any(pa.types.is_floating(column.type) for column in columns):
            found = reduce(pc.add, (as_floats(column) for column in columns))
            return pc.equal(found, pa.scalar(float(self.total)))
        scale = max(column.type.scale if pa.types.is_decimal(column.type) else 0 for column in columns)
        found = reduce(lambda left, right: _wide(pc.add(left, right), scale), (_wide(each, scale) for each in columns))
        return _exact_in(found, Limits(low=self.total, high=self.total))


@dataclass(frozen=True, slots=True, kw_only=True)
class AllEqual:
    """Whether all columns hold the same; NULL is the same as NULL."""

    columns: tuple[str, ...]

    def holds(self, rows: Rows) -> Mask:
        first, *others = _comparable([rows.column(name) for name in self.columns])
        return reduce(pc.and_, (_same(first, other) for other in others))


@dataclass(frozen=True, slots=True, kw_only=True)
class AllDifferent:
    columns: tuple[str, ...]

    def holds(self, rows: Rows) -> Mask:
        columns = _comparable([rows.column(name) for name in self.columns])
        return pc.invert(reduce(pc.or_, (_same(left, right) for left, right in combinations(columns, 2))))


@dataclass(frozen=True, slots=True, kw_only=True)
class PassesApart:
    """A test that Python carries out, text by text, in a process of its own."""

    column: str
    kind: str
    """ "patterns", "json", "json schema", "moment"."""
    argument: Any = None


def members_array(members: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The members that a column of the type can hold; no other is equal to any of its values."""
    if pa.types.is_floating(kind):
        return without_minus(array_of_numbers(np.array([float(member) for member in members])).cast(kind))
    if pa.types.is_decimal(kind) or pa.types.is_integer(kind):
        scale = kind.scale if pa.types.is_decimal(kind) else 0
        units = [exact * 10**scale for exact in map(_fraction, members) if not isinstance(exact, float)]
        most = _most_units(kind)
        return _of_units([int(unit) for unit in units if unit.denominator == 1 and -most - 1 <= unit <= most], kind)
    if pa.types.is_string(kind):
        return array_of_bytes([member.encode() for member in members], kind)
    return pa.array(list(members), kind)


# Ranges


def _floats_in(values: pa.Array, limits: Limits) -> Mask:
    masks = []
    for bound, strict, is_low in ((limits.low, limits.strict_low, True), (limits.high, limits.strict_high, False)):
        if bound is None:
            continue
        near = bound if isinstance(bound, float) else _near_float(Fraction(bound))
        if not isinstance(bound, float) and not isinf(near) and Fraction(near) != bound:
            # Between the bound and the float next to it there is no float.
            strict = near < bound if is_low else near > bound
        compare = (pc.greater if strict else pc.greater_equal) if is_low else (pc.less if strict else pc.less_equal)
        masks.append(compare(values, array_of_numbers(np.array([near]))[0]))
    if not masks:
        return True
    return reduce(pc.and_, masks)


def _exact_in(values: pa.Array, limits: Limits) -> Mask:
    kind = values.type
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    low = None if limits.low is None else _units_from(limits.low, kind, scale, limits.strict_low)
    high = None if limits.high is None else _units_to(limits.high, kind, scale, limits.strict_high)
    most = _most_units(kind)
    if (low is not None and low > most) or (high is not None and high < -most - 1):
        return False
    masks = []
    if low is not None and low > -most - 1:
        masks.append(pc.greater_equal(values, _of_units([low], kind)[0]))
    if high is not None and high < most:
        masks.append(pc.less_equal(values, _of_units([high], kind)[0]))
    return reduce(pc.and_, masks) if masks else True


def _units_from(bound: Any, kind: pa.DataType, scale: int, strict: bool) -> float:
    """The least whole number of the type's smallest steps that is not below the bound."""
    exact = _in_units(bound, kind, scale)
    if isinstance(exact, float):
        return exact
    return floor(exact) + 1 if strict else ceil(exact)


def _units_to(bound: Any, kind: pa.DataType, scale: int, strict: bool) -> float:
    exact = _in_units(bound, kind, scale)
    if isinstance(exact, float):
        return exact
    return ceil(exact) - 1 if strict else floor(exact)


def _in_units(bound: Any, kind: pa.DataType, scale: int) -> Fraction | float:
    if pa.types.is_temporal(kind):
        (units,) = raw_values(pa.array([bound], kind))
        assert isinstance(units, int)
        return Fraction(units)
    exact = _fraction(bound)
    return exact if isinstance(exact, float) else exact * 10**scale


def _fraction(number: Any) -> Fraction | float:
    """A number as it is written, 0.1 is a tenth; infinities as they are."""
    if isinstance(number, float):
        return number if isinf(number) else Fraction(repr(number))
    return Fraction(number)


def _near_float(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return inf if exact > 0 else -inf


def _most_units(kind: pa.DataType) -> int:
    if pa.types.is_decimal(kind):
        return int(10**kind.precision - 1)
    return int(2 ** (kind.bit_width - 1) - 1)


def _of_units(units: Sequence[float], kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(int(unit)).scaleb(-kind.scale, _EXACT) for unit in units], kind)
    whole = array_of_numbers(np.array([int(unit) for unit in units], f"<i{kind.bit_width // 8}"))
    return whole.view(kind)


# Columns beside each other


def _comparable(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """In one type: Arrow compares no decimals of different widths."""
    kinds = {column.type for column in columns}
    if len(kinds) == 1:
        return list(columns)
    if any(pa.types.is_floating(kind) for kind in kinds):
        return [as_floats(column) for column in columns]
    if any(pa.types.is_decimal(kind) for kind in kinds):
        scale = max(kind.scale if pa.types.is_decimal(kind) else 0 for kind in kinds)
        return [_wide(column, scale) for column in columns]
    if any(pa.types.is_timestamp(kind) for kind in kinds):
        return [column.cast(pa.timestamp("us")) for column in columns]
    return [column.cast(pa.int64()) for column in columns]


def _wide(column: pa.Array, scale: int) -> pa.Array:
    return column.cast(pa.decimal256(75, scale))


def _same(left: pa.Array, right: pa.Array) -> pa.Array:
    if not left.null_count and not right.null_count:
        return pc.equal(left, right)
    both = pc.and_(left.is_null(), right.is_null())
    return pc.or_(both, pc.fill_null(pc.equal(left, right), False))


def _is(column: pa.Array, value: Any) -> pa.Array:
    """Whether values are this one, which may be None."""
    if value is None:
        return column.is_null()
    members = members_array([value], column.type)
    return pc.is_in(column, value_set=members)
