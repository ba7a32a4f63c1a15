"""Pure. Casts values as Spark does in ANSI mode and in UTC; what it refuses becomes NULL, for the caller to tell."""

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.rows.calendar_parts import DAY_MICROSECONDS

WHOLE_TEXT = r"\A[+-]?[0-9]{1,30}\z"
_NUMBER_TEXT = r"(?i)\A[+-]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})(e[+-]?[0-9]{1,3})?\z"
_SPECIAL_TEXT = r"(?i)\A([+-]?(inf|infinity)|nan)\z"
_DATE_TEXT = r"\A[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])\z"
_BLANK = "".join(map(chr, range(33)))
"""What Spark takes off the ends of a text that it reads."""
_YEARS_OF_FOUR_DIGITS = (-719_162, 2_932_896)
_ROOMY = 60
"""Digits: of whatever is cast to a decimal, and some more."""
_MOST_DAYS = 2**63 // DAY_MICROSECONDS
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")


def can_cast(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether it is known here what Spark makes of each value."""
    return given == wanted or _cast(given, wanted) is not None


def cast_values(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The values in another type, one that `can_cast` takes; NULL where Spark has an error."""
    if values.type == wanted:
        return values
    cast = _cast(values.type, wanted)
    if cast is None:
        raise ValueError(f"{values.type} as {wanted}")
    return cast(values, wanted)


_Cast = Callable[[pa.Array, pa.DataType], pa.Array]


def _cast(given: pa.DataType, wanted: pa.DataType) -> _Cast | None:
    types = pa.types
    if types.is_integer(wanted):
        return next((cast for test, cast in _TO_WHOLE if test(given)), None)
    if types.is_floating(wanted):
        return next((cast for test, cast in _TO_FLOAT if test(given)), None)
    if types.is_decimal(wanted) and (types.is_integer(given) or types.is_decimal(given)):
        return _rescaled
    if types.is_boolean(wanted):
        if types.is_integer(given):
            return lambda values, _: pc.not_equal(values, pa.scalar(0, values.type))
        return _read_boolean if types.is_string(given) else None
    if types.is_string(wanted):
        return _date_text if types.is_date(given) else _text if _has_plain_text(given) else None
    if types.is_date(wanted):
        return _day if types.is_timestamp(given) else _read_date if types.is_string(given) else None
    if types.is_timestamp(wanted):
        return _moment if types.is_date(given) or types.is_timestamp(given) else None
    return None


def _has_plain_text(given: pa.DataType) -> bool:
    return bool(pa.types.is_integer(given) or pa.types.is_boolean(given))


def _text(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    return values.cast(wanted)


# To whole numbers


def _narrowed(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(values.type) or values.type.bit_width <= wanted.bit_width:
        return values.cast(wanted)
    limits = np.iinfo(wanted.to_pandas_dtype())
    fits = pc.and_(
        pc.greater_equal(values, pa.scalar(limits.min, values.type)),
        pc.less_equal(values, pa.scalar(limits.max, values.type)),
    )
    return pc.if_else(fits, values, pa.scalar(None, values.type)).cast(wanted)


def _truncated(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Towards zero, of a float."""
    limits = np.iinfo(wanted.to_pandas_dtype())
    whole = pc.trunc(values.cast(pa.float64()))
    fits = pc.and_(pc.greater_equal(whole, float(limits.min)), pc.less(whole, float(limits.max + 1)))
    return pc.if_else(fits, whole, pa.scalar(None, pa.float64())).cast(wanted)


def _whole_part(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Of a decimal, towards zero."""
    limits = np.iinfo(wanted.to_pandas_dtype())
    whole = pc.trunc(values).cast(pa.decimal256(76, 0))
    fits = pc.and_(
        pc.greater_equal(whole, pa.scalar(limits.min).cast(whole.type)),
        pc.less_equal(whole, pa.scalar(limits.max).cast(whole.type)),
    )
    return pc.if_else(fits, whole, pa.scalar(None, whole.type)).cast(wanted)


def _read_whole(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    text = _where_like(_trimmed(values), WHOLE_TEXT)
    digits = pc.replace_substring_regex(text, r"\A\+", "")
    return _whole_part(digits.cast(pa.decimal128(38, 0)), wanted)


_TO_WHOLE: tuple[tuple[Callable[[pa.DataType], bool], _Cast], ...] = (
    (lambda given: pa.types.is_integer(given) or pa.types.is_boolean(given), _narrowed),
    (pa.types.is_floating, _truncated),
    (pa.types.is_decimal, _whole_part),
    (pa.types.is_string, _read_whole),
)

# To floats


def _nearest(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    return values.cast(wanted, safe=False)


def _of_digits(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """A decimal's digits, read: that is the nearest one."""
    return values.cast(pa.string()).cast(wanted)


def _read_float(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    trimmed = _trimmed(values)
    text = _where_like(trimmed, f"{_NUMBER_TEXT}|{_SPECIAL_TEXT}")
    return pc.replace_substring_regex(text, r"\A\+", "").cast(wanted)


_TO_FLOAT: tuple[tuple[Callable[[pa.DataType], bool], _Cast], ...] = (
    (lambda given: pa.types.is_integer(given) or pa.types.is_floating(given), _nearest),
    (pa.types.is_decimal, _of_digits),
    (pa.types.is_string, _read_float),
)

# To decimals


def _rescaled(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Rounded half up where there are fewer places."""
    scale = 0 if pa.types.is_integer(values.type) else values.type.scale
    wide = values.cast(pa.decimal256(_ROOMY, scale))
    if scale > wanted.scale:
        wide = pc.round(wide, wanted.scale, round_mode="half_towards_infinity")
    limit = Decimal(10 ** (wanted.precision - wanted.scale))
    fits = pc.and_(pc.less(wide, pa.scalar(limit, wide.type)), pc.greater(wide, pa.scalar(-limit, wide.type)))
    return pc.if_else(fits, wide, pa.scalar(None, wide.type)).cast(wanted)


# To others


def _read_boolean(values: pa.Array, _: pa.DataType) -> pa.Array:
    words = pc.ascii_lower(_trimmed(values))
    is_true, is_false = (pc.is_in(words, value_set=pa.array(each)) for each in (_TRUE, _FALSE))
    return pc.if_else(pc.or_(is_true, is_false), is_true, pa.scalar(None, pa.bool_()))


def _date_text(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    first, last = (pa.scalar(day, pa.int32()) for day in _YEARS_OF_FOUR_DIGITS)
    days = values.view(pa.int32())
    fits = pc.and_(pc.greater_equal(days, first), pc.less_equal(days, last))
    return pc.if_else(fits, days, pa.scalar(None, pa.int32())).view(values.type).cast(wanted)


def _read_date(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    text = _where_like(_trimmed(values), _DATE_TEXT)
    year, month, day = (
        pc.utf8_slice_codeunits(text, *place).cast(pa.int32()).fill_null(1).to_numpy(zero_copy_only=False)
        for place in ((0, 4), (5, 7), (8, 10))
    )
    months = ((year.astype(np.int64) - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    is_wrong = (days.astype("datetime64[M]") != months) | text.is_null().to_numpy(zero_copy_only=False)
    return pa.array(days.astype(np.int64).astype(np.int32), mask=is_wrong).view(wanted)


def _day(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    moments = values.view(pa.int64())
    days = moments.fill_null(0).to_numpy(zero_copy_only=False) // DAY_MICROSECONDS
    return pa.array(days.astype(np.int32), mask=moments.is_null().to_numpy(zero_copy_only=False)).view(wanted)


def _moment(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """With a zone or without one, it is of UTC."""
    if pa.types.is_timestamp(values.type):
        return values.view(pa.int64()).view(wanted)
    days = values.view(pa.int32()).cast(pa.int64())
    fits = pc.and_(pc.less(days, _MOST_DAYS), pc.greater(days, -_MOST_DAYS))
    days = pc.if_else(fits, days, pa.scalar(None, pa.int64()))
    return pc.multiply(days, DAY_MICROSECONDS).view(wanted)


# Text


def _trimmed(values: pa.Array) -> pa.Array:
    return pc.utf8_trim(values, _BLANK)


def _where_like(values: pa.Array, pattern: str) -> pa.Array:
    return pc.if_else(pc.match_substring_regex(values, pattern), values, pa.scalar(None, values.type))
