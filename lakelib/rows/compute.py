"""Pure. Computes values of rows, as Spark does in ANSI mode and in UTC: what it refuses fails for that row."""

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.model.predicate import Computed, Fixed, Function, Tested
from lakelib.model.schema import Column
from lakelib.rows.calendar_parts import PARTS, later, months_later, part_of
from lakelib.rows.cast import cast_values
from lakelib.rows.raw_arrays import arrow_values
from lakelib.rows.types import arrow_type
from lakelib.rows.values import decimal_parts, raw_values

_MOST_PLACES = 38
"""Behind the point of a decimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """One value a row."""

    array: "pa.Array | pa.ChunkedArray"
    failed: pa.Array | None = None
    """TRUE where there is no value, for it cannot be computed, FALSE elsewhere; None: each row has one."""
    reason: str = ""
    """Why the first of them failed."""


def values_of(tested: Tested | Fixed, table: pa.Table | pa.RecordBatch) -> Values:
    """What a column has, or what is computed of some, row by row; columns are found by name."""
    match tested:
        case Column(name=name):
            return Values(array=table.column(name))
        case Fixed(type=kind, value=raw):
            scalar = arrow_values(kind, [raw])
            return Values(array=pa.nulls(table.num_rows, scalar.type) if raw is None else _repeated(scalar, table))
        case Computed():
            return _computed(tested, table)


def _repeated(one: pa.Array, table: pa.Table | pa.RecordBatch) -> pa.Array:
    return one.take(pa.array(np.zeros(table.num_rows, np.int64)))


def _computed(computed: Computed, table: pa.Table | pa.RecordBatch) -> Values:
    match computed:
        case Computed(function=Function.FIELD, arguments=(struct, Fixed(value=name))):
            parent = values_of(struct, table)
            return Values(array=pc.struct_field(_whole(parent.array), str(name)), failed=parent.failed)
        case Computed(function=Function.CAST | Function.TRY_CAST, arguments=(given,), type=kind):
            before = values_of(given, table)
            after = cast_values(_whole(before.array), arrow_type(kind))
            if computed.function is Function.TRY_CAST:
                return Values(array=after, failed=before.failed, reason=before.reason)
            found = Values(
                array=after, failed=_unlike(before.array, after), reason=f"a value that is no {kind} as {given.type}"
            )
            return _failing(found, (before,))
    arguments = [values_of(each, table) for each in computed.arguments]
    arrays = [_whole(each.array) for each in arguments]
    if computed.function is Function.COALESCE:
        return _first_known(arguments, arrays)
    if computed.function in PARTS:
        return _failing(Values(array=part_of(computed.function, arrays[0])), arguments)
    places = decimal_parts(computed.type) if computed.function is Function.DIVIDE else None
    made = _KERNELS[computed.function](arrays) if places is None else _exact_quotients(arrays, computed.type, *places)
    if computed.function in (Function.DIVIDE, Function.REMAINDER):
        arguments.reverse()  # Spark looks at the divisor first
    return _failing(made if isinstance(made, Values) else Values(array=made), arguments)


def _first_known(arguments: Sequence[Values], arrays: Sequence[pa.Array]) -> Values:
    """Of each row those arguments count that come before the first known one, and that one."""
    failed, reason, undecided = None, "", None
    for each, array in zip(arguments, arrays, strict=True):
        if each.failed is not None:
            counts = each.failed if undecided is None else pc.and_(each.failed, undecided)
            failed, reason = counts if failed is None else pc.or_(failed, counts), reason or each.reason
        unknown = array.is_null()
        undecided = unknown if undecided is None else pc.and_(undecided, unknown)
    return Values(array=pc.coalesce(*arrays), failed=failed, reason=reason)


def _failing(found: Values, arguments: Sequence[Values]) -> Values:
    """With the rows of which an argument has failed, in the order in which they are asked."""
    return joined_failures([*arguments, found], found.array)


def joined_failures(asked: Sequence[Values], array: "pa.Array | pa.ChunkedArray") -> Values:
    """The array, and where it has failed: one that is asked after a NULL is not asked."""
    failed, reason, known = None, "", None
    for each in asked:
        if each.failed is not None:
            counts = each.failed if known is None else pc.and_(each.failed, known)
            failed = counts if failed is None else pc.or_(failed, counts)
            reason = reason or (each.reason if pc.any(counts).as_py() else "")
        if each.array.null_count:
            valid = _whole(each.array.is_valid())
            # A row that has failed has no value, either, and counts already.
            known = valid if known is None else pc.and_(known, valid)
    return Values(array=array, failed=failed, reason=reason)


def _whole(array: "pa.Array | pa.ChunkedArray") -> pa.Array:
    if not isinstance(array, pa.ChunkedArray):
        return array
    return (
        array.chunk(0)
        if array.num_chunks == 1
        else pa.concat_arrays(array.chunks)
        if array.num_chunks
        else (pa.nulls(0, array.type))
    )


def _unlike(before: "pa.Array | pa.ChunkedArray", after: pa.Array) -> pa.Array | None:
    """Rows whose value became none."""
    if after.null_count == before.null_count:
        return None
    return pc.and_not(after.is_null(), _whole(before).is_null())


# Numbers


def _added(arrays: Sequence[pa.Array]) -> "pa.Array | Values":
    return _arithmetic(arrays, np.add, pc.add)


def _subtracted(arrays: Sequence[pa.Array]) -> "pa.Array | Values":
    return _arithmetic(arrays, np.subtract, pc.subtract)


def _multiplied(arrays: Sequence[pa.Array]) -> "pa.Array | Values":
    return _arithmetic(arrays, np.multiply, pc.multiply)


def _negated(arrays: Sequence[pa.Array]) -> "pa.Array | Values":
    (array,) = arrays
    if not pa.types.is_integer(array.type):
        return pc.negate(array)
    return _without_least(array, pc.negate(array))


def _absolute(arrays: Sequence[pa.Array]) -> "pa.Array | Values":
    (array,) = arrays
    return _without_least(array, pc.abs(array)) if pa.types.is_integer(array.type) else pc.abs(array)


def _without_least(array: pa.Array, found: pa.Array) -> "pa.Array | Values":
    """There is one negative number more than there are positive ones."""
    least = pa.scalar(np.iinfo(array.type.to_pandas_dtype()).min, array.type)
    return _failed_where(found, pc.equal(array, least), _overflow(array.type))


def _arithmetic(
    arrays: Sequence[pa.Array], compute: Callable[..., np.ndarray], kernel: Callable[..., pa.Array]
) -> "pa.Array | Values":
    left, right = arrays
    if not pa.types.is_integer(left.type):
        return kernel(left, right)
    found = kernel(left, right)
    a, b, c = _numbers(left), _numbers(right), _numbers(found)
    if left.type.bit_width < 64:
        overflows = compute(a.astype(np.int64), b.astype(np.int64)) != c
    else:
        overflows = _overflows(a, b, c, compute)
    return _failed_where(found, _where(overflows, left, right), _overflow(left.type))


def _overflows(a: np.ndarray, b: np.ndarray, c: np.ndarray, compute: Callable[..., np.ndarray]) -> np.ndarray:
    """Whether `c`, computed in 64 bits, is not what `a` and `b` make."""
    if compute is np.add:
        return ((a ^ c) & (b ^ c)) < 0  # type: ignore[no-any-return]
    if compute is np.subtract:
        return ((a ^ b) & (a ^ c)) < 0  # type: ignore[no-any-return]
    least = np.iinfo(np.int64).min
    divisor = np.where((a == 0) | (a == -1), 1, a)
    wrong = (a != 0) & (a != -1) & ((c // divisor != b) | (c % divisor != 0))
    return wrong | ((a == -1) & (b == least))  # type: ignore[no-any-return]


def _divided(arrays: Sequence[pa.Array]) -> Values | pa.Array:
    left, right = arrays
    with np.errstate(all="ignore"):
        found = _numbers(left) / _numbers(right)
    return _failed_at_zero(found, left, right)


def _exact_quotients(arrays: Sequence[pa.Array], kind: str, digits: int, places: int) -> Values | pa.Array:
    """Rounded half up twice, as Spark does: to all the places that a decimal may have, and to those that it has."""
    left, right = arrays
    above, unit = 10 ** (_MOST_PLACES + right.type.scale - left.type.scale), 10 ** (_MOST_PLACES - places)
    found: list[int | None] = []
    zeros: list[bool] = []
    for one, other in zip(raw_values(left), raw_values(right), strict=True):
        is_zero = one is not None and other == 0
        quotient = None if one is None or not other else _rounded(_rounded(int(one) * above, int(other)), unit)
        zeros.append(is_zero)
        found.append(quotient)
    outside = [each is not None and abs(each) >= 10**digits for each in found]
    array = arrow_values(kind, [None if wrong else each for each, wrong in zip(found, outside, strict=True)])
    if any(outside) and not any(zeros):
        return Values(array=array, failed=pa.array(outside), reason=f"a number beyond {kind}")
    failed = pa.array([zero or wrong for zero, wrong in zip(zeros, outside, strict=True)], pa.bool_())
    return _failed_where(array, failed, "a division by zero")


def _rounded(number: int, divisor: int) -> int:
    """The quotient, half up: away from zero."""
    found = (2 * abs(number) + abs(divisor)) // (2 * abs(divisor))
    return found if (number < 0) == (divisor < 0) else -found


def _later(kernel: Callable[[pa.Array, pa.Array], tuple[pa.Array, pa.Array]]) -> Callable[..., "Values | pa.Array"]:
    def compute(arrays: Sequence[pa.Array]) -> "Values | pa.Array":
        found, failed = kernel(*arrays)
        return _failed_where(found, failed, "a day or a moment beyond those that there are")

    return compute


def _remaining(arrays: Sequence[pa.Array]) -> Values | pa.Array:
    """With the sign of what is divided."""
    left, right = arrays
    divisor = _numbers(right)
    if pa.types.is_integer(right.type):
        divisor = np.where(divisor == 0, 1, divisor)
    with np.errstate(all="ignore"):
        found = np.fmod(_numbers(left), divisor)
    return _failed_at_zero(found, left, right)


def _failed_at_zero(found: np.ndarray, left: pa.Array, right: pa.Array) -> Values | pa.Array:
    known = _where(np.ones(len(left), np.bool_), left, right)
    array = pc.if_else(known, pa.array(found, left.type, from_pandas=False), pa.scalar(None, left.type))
    return _failed_where(array, pc.and_(known, pc.fill_null(pc.equal(right, 0), False)), "a division by zero")


def _numbers(array: pa.Array) -> np.ndarray:
    """Its values, and any where there is none."""
    filled = pc.fill_null(array, pa.scalar(1, array.type)) if array.null_count else array
    return filled.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _where(found: np.ndarray, *arrays: pa.Array) -> pa.Array:
    """Where it was found and there are values."""
    return reduce(pc.and_, (each.is_valid() for each in arrays if each.null_count), pa.array(found))


def _failed_where(found: pa.Array, failed: pa.Array, reason: str) -> "pa.Array | Values":
    failed = pc.fill_null(failed, False) if failed.null_count else failed
    return Values(array=found, failed=failed, reason=reason) if pc.any(failed).as_py() else found


def _overflow(kind: pa.DataType) -> str:
    return f"a number beyond {kind.bit_width} bits"


# Text


def _lowered(arrays: Sequence[pa.Array]) -> pa.Array:
    return _cased(arrays[0], pc.utf8_lower, str.lower, "\u0130\u03a3")


def _uppered(arrays: Sequence[pa.Array]) -> pa.Array:
    return _cased(arrays[0], pc.utf8_upper, str.upper, None)


def _cased(
    array: pa.Array, kernel: Callable[[pa.Array], pa.Array], change: Callable[[str], str], special: str | None
) -> pa.Array:
    """Arrow changes each character for one. Where one may become several, or it matters where it stands, Python does
    it, by the same tables of Unicode as Java."""
    pattern = r"[^\x00-\x7f]" if special is None else f"[{special}]"
    odd = pc.match_substring_regex(array, pattern)
    if not pc.any(odd).as_py():
        return kernel(array)
    coded = array.filter(odd).dictionary_encode()
    changed = pa.array([change(text) for text in coded.dictionary.to_pylist()], array.type)
    return pc.replace_with_mask(kernel(array), pc.fill_null(odd, False), changed.take(coded.indices))


def _trimmed(arrays: Sequence[pa.Array]) -> pa.Array:
    return pc.utf8_trim(arrays[0], " ")


def _length(arrays: Sequence[pa.Array]) -> pa.Array:
    return pc.utf8_length(arrays[0]).cast(pa.int32())


_KERNELS: dict[Function, Callable[[Sequence[pa.Array]], Values | pa.Array]] = {
    Function.ADD: _added,
    Function.SUBTRACT: _subtracted,
    Function.MULTIPLY: _multiplied,
    Function.DIVIDE: _divided,
    Function.REMAINDER: _remaining,
    Function.NEGATE: _negated,
    Function.ABS: _absolute,
    Function.LOWER: _lowered,
    Function.UPPER: _uppered,
    Function.LENGTH: _length,
    Function.TRIM: _trimmed,
    Function.LATER: _later(later),
    Function.MONTHS_LATER: _later(months_later),
}
