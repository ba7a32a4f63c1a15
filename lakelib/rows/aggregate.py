"""Pure. The merge engine "aggregate": each column has what its function makes of all values that were given.

NULL is left out, as in SQL, but by `first` and `last`. Columns without a function have the newest value that is not
NULL. Where values may be taken back, a row of values that are taken back counts in the other direction.
"""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.schema import OP_COLUMN, Column, Op
from lakelib.rows.buffers import array_of_mask, array_of_numbers, fixed_values, valid_rows, whole_array
from lakelib.rows.by_column import ByColumn, Made, hidden_column
from lakelib.rows.distinct import estimates, merged_sketches, single_sketches
from lakelib.rows.keys import Rows
from lakelib.rows.versions import Mask, Versions, collect_list, collect_set, join_text, merge_maps

_FAR = float(2**62)
_MANY_DIGITS = 30
"""Of decimals with fewer digits no billion is more than Arrow's sums hold; of others they are wrapped in silence."""

_PICKS = frozenset({"first", "last", "first_non_null", "last_non_null"})

INVERSE = frozenset({"sum", "count"})
"""The functions from which a value can be taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(ByColumn):
    retract: bool = False

    def at(self, column: Column) -> tuple[Column, ...]:
        return ByColumn.at(self, column) if _name(column) in _PICKS else ()

    def beside(self, column: Column) -> tuple[Column, ...]:
        return (*self.at(column), *self._taken_back(column), *self._sketch(column))

    def _taken_back(self, column: Column) -> tuple[Column, ...]:
        """Of a sum: all that was added, and how many values are in it."""
        if not self.retract or _name(column) != "sum":
            return ()
        return (
            hidden_column(column, f"sum_{column.id}", 0, column.type),
            hidden_column(column, f"count_{column.id}", 1, "bigint"),
        )

    def _sketch(self, column: Column) -> tuple[Column, ...]:
        """Of a number of distinct values: what tells which there were."""
        if _name(column) != "approx_count_distinct":
            return ()
        return (hidden_column(column, f"sketch_{column.id}", 0, "binary"),)

    def lifted(self, rows: pa.Table) -> Made:
        sign = _signs(rows)
        lifted: dict[str, pa.Array] = {}
        for column in self.free_columns:
            values, name = whole_array(rows.column(column.name)), _name(column)
            if name not in INVERSE:
                _check_not_taken_back(values, sign, column)
            if name == "count":
                lifted[column.name] = _counts(values, sign)
            elif self._sketch(column):
                lifted[column.name] = _counts(values, sign)
                lifted[self._sketch(column)[0].name] = single_sketches(values)
            elif name in _COLLECTED:
                each = Versions(rows=rows.select([column.name]), starts=np.arange(rows.num_rows))
                lifted[column.name] = _collected(each, column)
            elif self._taken_back(column):
                added, count = (each.name for each in self._taken_back(column))
                lifted[added] = _negated(values, sign, column)
                lifted[count] = _counts(values, sign)
        return lifted

    def made(self, versions: Versions, column: Column) -> Made:
        name = _name(column)
        if name in _PICKS:
            mask = versions.given(column.name) if name.endswith("_non_null") else versions.of_rows()
            return self.picked(versions, column, mask, oldest=name.startswith("first"))
        if name in _BY_VALUE:
            pick = versions.lowest if _BY_VALUE[name] else versions.highest
            rows = pick([column.name], versions.given(column.name))
            return {column.name: versions.take(column.name, rows)}
        if self._taken_back(column):
            return self._sum_taken_back(versions, column)
        if self._sketch(column):
            return self._distinct(versions, column)
        if name in _COLLECTED:
            return {column.name: _collected(versions, column)}
        return {column.name: _REDUCED[name](versions, column.name, column)}

    def _sum_taken_back(self, versions: Versions, column: Column) -> Made:
        added, count = (each.name for each in self._taken_back(column))
        total = _sum(versions, added, column)
        counted = _count(versions, count, column)
        none = pc.equal(counted, 0)
        return {column.name: pc.if_else(none, pa.scalar(None, total.type), total), added: total, count: counted}

    def _distinct(self, versions: Versions, column: Column) -> Made:
        name = self._sketch(column)[0].name
        sketches = merged_sketches(whole_array(versions.rows.column(name)), versions.given(name), versions.starts)
        numbers = pc.fill_null(estimates(sketches), 0)
        known = array_of_mask(versions.any(versions.given(column.name)))
        return {column.name: pc.if_else(known, numbers, pa.scalar(None, pa.int64())), name: sketches}


def _name(column: Column) -> str:
    return "last_non_null" if column.function is None else column.function.partition("(")[0]


def _signs(rows: pa.Table) -> npt.NDArray[np.int64]:
    """-1 for a row whose values are taken back."""
    if OP_COLUMN not in rows.column_names:
        return np.ones(rows.num_rows, np.int64)
    ops = fixed_values(whole_array(rows.column(OP_COLUMN)), "i1")
    return np.where(ops == Op.VALUES, -1, 1)


def _check_not_taken_back(values: pa.Array, sign: npt.NDArray[np.int64], column: Column) -> None:
    if (sign < 0).any() and values.filter(array_of_mask(sign < 0)).null_count < np.count_nonzero(sign < 0):
        raise InvalidInputError(
            f"A value of column {column.name!r} cannot be taken back: {_name(column)} has no inverse.",
            kind="no_inverse",
            remedy="Leave the column out, or NULL, in what is deleted.",
        )


def _counts(values: pa.Array, sign: npt.NDArray[np.int64]) -> pa.Array:
    valid = valid_rows(values)
    return array_of_numbers(sign if valid is None else np.where(valid, sign, 0))


def _negated(values: pa.Array, sign: npt.NDArray[np.int64], column: Column) -> pa.Array:
    """Only the lowest integer has no other side."""
    if (sign > 0).all():
        return values
    negative = array_of_mask(sign < 0)
    try:
        return pc.if_else(negative, pc.negate_checked(pc.if_else(negative, values, pa.scalar(0, values.type))), values)
    except pa.ArrowInvalid:
        raise _too_large(column) from None


# Reduced to one value


def _sum(versions: Versions, name: str, column: Column) -> pa.Array:
    given = versions.given(name)
    values = whole_array(versions.rows.column(name))
    if pa.types.is_decimal(values.type):
        return _sum_of_decimals(versions, values, given, column)
    numbers = np.where(given, _filled(values), 0)
    total = _in_doubles(np.add, numbers, versions)
    if numbers.dtype.kind == "f":
        return _some(total, versions, given, values.type)
    exact = np.add.reduceat(numbers, versions.starts)
    _check_range(exact, total, column)
    return _some(exact, versions, given, values.type)


def _product(versions: Versions, name: str, column: Column) -> pa.Array:
    given = versions.given(name)
    values = whole_array(versions.rows.column(name))
    numbers = np.where(given, _filled(values), 1)
    product = _in_doubles(np.multiply, numbers, versions)
    if numbers.dtype.kind == "f":
        return _some(product, versions, given, values.type)
    exact = np.multiply.reduceat(numbers, versions.starts)
    _check_range(exact, product, column)
    return _some(exact, versions, given, values.type)


def _in_doubles(reduce: np.ufunc, numbers: npt.NDArray[np.generic], versions: Versions) -> npt.NDArray[np.float64]:
    """What is beyond all numbers is so in silence, as in SQL."""
    with np.errstate(over="ignore", invalid="ignore"):
        found: npt.NDArray[np.float64] = reduce.reduceat(numbers.astype(np.float64), versions.starts)
    return found


def _count(versions: Versions, name: str, column: Column) -> pa.Array:
    """Each version has how many values it stands for."""
    given = versions.given(name)
    numbers = np.where(given, _filled(whole_array(versions.rows.column(name))), 0)
    return _some(np.add.reduceat(numbers, versions.starts), versions, given, pa.int64())


def _sum_of_decimals(versions: Versions, values: pa.Array, given: Mask, column: Column) -> pa.Array:
    masked = pc.if_else(array_of_mask(given), values, pa.scalar(None, values.type))
    if values.type.precision >= _MANY_DIGITS:
        masked = masked.cast(pa.decimal256(76, values.type.scale))
    keys = array_of_numbers(versions.numbers())
    summed = pa.table({"key": keys, "value": masked}).group_by("key", use_threads=False).aggregate([("value", "sum")])
    try:
        return whole_array(summed.column("value_sum")).cast(values.type)
    except pa.ArrowInvalid:
        raise _too_large(column) from None


def _filled(values: pa.Array) -> npt.NDArray[np.generic]:
    zero = pa.scalar(0, values.type)
    filled: npt.NDArray[np.generic] = pc.fill_null(values, zero).to_numpy(zero_copy_only=False)
    return filled


def _some(numbers: npt.NDArray[np.generic], versions: Versions, given: Mask, kind: pa.DataType) -> pa.Array:
    """The numbers, NULL where no value was given."""
    found = array_of_numbers(numbers).cast(kind, safe=False)
    some = versions.any(given)
    return found if some.all() else pc.if_else(array_of_mask(some), found, pa.scalar(None, kind))


def _check_range(exact: npt.NDArray[np.generic], about: npt.NDArray[np.float64], column: Column) -> None:
    """What has been wrapped to 64 bits is far from what doubles say. Only a product that is 0 may be none of them."""
    if (np.abs(exact.astype(np.float64) - about) > _FAR).any():
        raise _too_large(column)


def _too_large(column: Column) -> InvalidInputError:
    return InvalidInputError(
        f"What {column.function} makes of column {column.name!r} does not fit {column.type}.",
        kind="value_out_of_range",
        remedy="Give the values a column of a wider type.",
    )


# Collected


def _collected(versions: Versions, column: Column) -> pa.Array:
    given = versions.given(column.name)
    values = whole_array(versions.rows.column(column.name))
    if _name(column) == "listagg":
        return join_text(values, given, versions.starts, delimiter_of(column.function))
    return _COLLECTED[_name(column)](values, given, versions.starts)


def delimiter_of(function: str | None) -> str:
    """Between the parentheses of "listagg(; )"."""
    _, _, rest = (function or "").partition("(")
    return rest[:-1] if rest else ","


_REDUCED: Mapping[str, Callable[[Versions, str, Column], pa.Array]] = {
    "sum": _sum,
    "product": _product,
    "count": _count,
}
_BY_VALUE = {"min": True, "bool_and": True, "max": False, "bool_or": False}
"""The functions that take one of the values: whether the lowest."""

_COLLECTED: Mapping[str, Callable[[pa.Array, Mask, Rows], pa.Array]] = {
    "collect_list": collect_list,
    "collect_set": collect_set,
    "merge_map": merge_maps,
    "listagg": collect_list,
}
