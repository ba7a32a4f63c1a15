"""Pure. Converts Arrow arrays from one type to another without ever losing a value unseen."""

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.rows.buffers import whole_array
from lakelib.rows.types import is_list_like, type_text
from lakelib.rows.values import python_value, raw_values

Convert = Callable[[pa.Array], pa.Array]
"""Converts one array; raises pa.ArrowException on the first value that does not convert."""

_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_MANTISSA_BITS = {16: 11, 32: 24, 64: 53}
ZONED_TEXT = r"\d\d:\d\d.*(Z|[+-]\d\d(:?\d\d)?)$"
"""A pattern, for RE2 and for Java, of moments in text that name a zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How much a conversion may do."""

    explicit: bool = False
    """Also between types where some values do not fit; each value is then checked."""
    drop_extra: bool = False
    """Drop the fields of a struct that the target lacks, instead of refusing them."""


_SHOWN = 6
"""Of a row so many columns are shown: enough to find it."""


class RefusedError(Exception):
    """No conversion between two types under the rules. `path` leads to a nested field; '' is the column itself."""

    def __init__(self, path: str, source: pa.DataType, target: pa.DataType | None, remedy: str) -> None:
        super().__init__(path, source, target, remedy)
        self.path = path
        self.source = source
        self.target = target
        self.remedy = remedy


def plan_conversion(source: pa.DataType, target: pa.DataType, rules: Rules, path: str = "") -> Convert | None:
    """How arrays of one type become arrays of another; None if they are that already. Raises RefusedError.

    `target` is the Arrow type of a column. Without `rules.explicit` only types whose every value fits are converted,
    and timestamps and dates of another unit, whose values are checked.
    """
    if source == target:
        return None
    if pa.types.is_null(source):
        return lambda array: pa.nulls(len(array), target)
    if pa.types.is_dictionary(source):
        return _plan_decoded(source.value_type, target, rules, path)
    if pa.types.is_run_end_encoded(source):
        return _then(pc.run_end_decode, source.value_type, target, rules, path)
    if isinstance(source, pa.BaseExtensionType) and rules.explicit:
        return _then(lambda array: array.storage, source.storage_type, target, rules, path)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return _plan_struct(source, target, rules, path)
    if is_list_like(source) and pa.types.is_list(target):
        return _plan_list(source, target, rules, path)
    if pa.types.is_map(source) and pa.types.is_map(target):
        return _plan_map(source, target, rules, path)
    return _plan_leaf(source, target, rules, path)


def _then(first: Convert, middle: pa.DataType, target: pa.DataType, rules: Rules, path: str) -> Convert:
    rest = plan_conversion(middle, target, rules, path)
    return first if rest is None else lambda array: rest(first(array))


def _plan_decoded(values: pa.DataType, target: pa.DataType, rules: Rules, path: str) -> Convert:
    """Dictionary arrays as their values. Arrow cannot decode views of text or bytes: they become plain ones before."""
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(values)
    if plain is None:
        return _then(lambda array: array.dictionary_decode(), values, target, rules, path)
    return _then(lambda array: array.dictionary.cast(plain).take(array.indices), plain, target, rules, path)


def _plan_struct(source: pa.DataType, target: pa.DataType, rules: Rules, path: str) -> Convert:
    places = _matched_fields(source, target, rules, path)
    fields = list(target)
    steps = [
        None
        if place is None
        else plan_conversion(source.field(place).type, field.type, rules, _joined(path, field.name))
        for place, field in zip(places, fields, strict=True)
    ]

    def convert(array: pa.Array) -> pa.Array:
        given = array.flatten()
        children = []
        for place, step, field in zip(places, steps, fields, strict=True):
            child = pa.nulls(len(array), field.type) if place is None else given[place]
            children.append(child if step is None else step(child))
        return pa.StructArray.from_arrays(children, fields=fields, mask=_null_mask(array))

    return convert


def _matched_fields(source: pa.DataType, target: pa.DataType, rules: Rules, path: str) -> list[int | None]:
    """For each field of the target its place in the source, matched without regard to case."""
    places: dict[str, int] = {}
    for place, field in enumerate(source):
        if field.name.casefold() in places:
            remedy = f"Rename one of the fields named {field.name!r} (without regard to case)."
            raise RefusedError(_joined(path, field.name), field.type, None, remedy)
        places[field.name.casefold()] = place
    matched = [places.pop(field.name.casefold(), None) for field in target]
    if places and not rules.drop_extra:
        extra = source.field(min(places.values()))
        remedy = "Drop the field from the data, or give merge_schema=True to add it to the table."
        raise RefusedError(_joined(path, extra.name), extra.type, None, remedy)
    return matched


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _plan_list(source: pa.DataType, target: pa.DataType, rules: Rules, path: str) -> Convert:
    step = plan_conversion(source.value_type, target.value_type, rules, _joined(path, "element"))

    def convert(array: pa.Array) -> pa.Array:
        values = pc.list_flatten(array)
        items = values if step is None else step(values)
        return pa.ListArray.from_arrays(_offsets(array), items, type=target, mask=_null_mask(array))

    return convert


def _plan_map(source: pa.DataType, target: pa.DataType, rules: Rules, path: str) -> Convert:
    key_step = plan_conversion(source.key_type, target.key_type, rules, _joined(path, "key"))
    item_step = plan_conversion(source.item_type, target.item_type, rules, _joined(path, "value"))
    as_list = pa.list_(pa.struct([pa.field("key", source.key_type, nullable=False), ("value", source.item_type)]))

    def convert(array: pa.Array) -> pa.Array:
        entries = array.cast(as_list)
        keys, items = pc.list_flatten(entries).flatten()
        keys = keys if key_step is None else key_step(keys)
        items = items if item_step is None else item_step(items)
        return pa.MapArray.from_arrays(_offsets(entries), keys, items, type=target, mask=_null_mask(array))

    return convert


def _offsets(array: pa.Array) -> pa.Array:
    """Where each list of the flattened array starts; a NULL list has no items."""
    lengths = pc.if_else(array.is_valid(), pc.list_value_length(array), 0).cast(pa.int64())
    ends = pc.cumulative_sum(lengths)
    return pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int32())


def _null_mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _plan_leaf(source: pa.DataType, target: pa.DataType, rules: Rules, path: str) -> Convert:
    if rules.explicit and is_finer(source, target):
        return lambda array: _rounded(array, target)
    if fits(source, target):
        return lambda array: array.cast(target)
    if not rules.explicit:
        raise RefusedError(path, source, target, "Cast the column before writing, or give explicit_cast=True.")
    if not _is_castable(source, target):
        raise RefusedError(
            path, source, target, "No cast leads from one to the other: convert the column before writing."
        )
    return _checked_cast(source, target)


def fits(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether each value of a type that is not nested has its equal in the target type (up to timestamps' units)."""
    types = pa.types
    if source == target or types.is_null(source):
        return True
    if types.is_integer(source):
        return _integer_fits(source, target)
    if types.is_floating(source):
        return bool(types.is_floating(target) and source.bit_width <= target.bit_width)
    if types.is_decimal(source):
        return bool(
            types.is_decimal(target)
            and source.scale <= target.scale
            and source.precision - source.scale <= target.precision - target.scale
        )
    if types.is_timestamp(source):
        return bool(types.is_timestamp(target) and (source.tz is None) == (target.tz is None))
    return any(is_kind(source) and is_kind(target) for is_kind in (_is_text, _is_bytes, types.is_date))


def is_finer(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether both are moments, and those of the source may lie between those of the target."""
    types = pa.types
    if not (types.is_timestamp(source) and types.is_timestamp(target)):
        return False
    return (source.tz is None) == (target.tz is None) and (source.unit, target.unit) == ("ns", "us")


def _rounded(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Nanoseconds as the nearest microsecond; from the middle to the later one."""
    nanos = array.cast(pa.timestamp("ns")).cast(pa.int64())
    values = nanos.fill_null(0).to_numpy()
    micros = values // 1000 + (values % 1000 >= 500)
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(micros, pa.int64(), mask=mask).cast(target)


def _integer_fits(source: pa.DataType, target: pa.DataType) -> bool:
    types = pa.types
    value_bits = source.bit_width - (1 if types.is_signed_integer(source) else 0)
    if types.is_signed_integer(target):
        return bool(value_bits <= target.bit_width - 1)
    if types.is_floating(target):
        return bool(value_bits <= _MANTISSA_BITS[target.bit_width])
    if types.is_decimal(target):
        return bool(_DIGITS[source.bit_width] <= target.precision - target.scale)
    return False


def _is_text(given: pa.DataType) -> bool:
    return bool(pa.types.is_string(given) or pa.types.is_large_string(given) or pa.types.is_string_view(given))


def _is_bytes(given: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(given)
        or types.is_large_binary(given)
        or types.is_fixed_size_binary(given)
        or types.is_binary_view(given)
    )


def _is_castable(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether Arrow can cast, and the cast has one meaning: between numbers and times it would depend on a unit."""
    ends = (source, target)
    if any(_is_number(end) for end in ends) and any(pa.types.is_temporal(end) for end in ends):
        return False
    try:
        pa.nulls(0, source).cast(target)
    except pa.ArrowNotImplementedError:
        return False
    return True


def _is_number(given: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(given) or types.is_floating(given) or types.is_decimal(given) or types.is_boolean(given)
    )


def _checked_cast(source: pa.DataType, target: pa.DataType) -> Convert:
    """Arrow's safe cast, with a check where it may lose a value. Into a float, the nearest number will do; from
    a float, a decimal that reads back as the same float.

    Three casts go through text: Arrow refuses whole numbers that would fit a decimal, is one bit off the nearest float
    for some decimals, and takes a float's last bits for digits: 142.2 is 142.20, not 142.19999999999998863.
    """
    types = pa.types
    if _is_text(source) and types.is_integer(target):
        return lambda array: _decimal_digits(array).cast(target)
    if _is_text(source) and types.is_timestamp(target) and target.tz is not None:
        return lambda array: _text_as_utc(array).cast(target)
    if (types.is_decimal(source) and types.is_floating(target)) or (
        types.is_decimal(target) and (types.is_integer(source) or types.is_floating(source))
    ):
        return lambda array: array.cast(pa.string()).cast(target)
    if types.is_floating(target):
        return lambda array: _finite_cast(array, target)
    loses_silently = types.is_timestamp(source) or types.is_boolean(target) or types.is_floating(source)
    if loses_silently and not _is_text(target) and not _is_text(source):
        return lambda array: _reversible_cast(array, target)
    return lambda array: array.cast(target)


def _decimal_digits(array: pa.Array) -> pa.Array:
    """The text, none of which is a number in hexadecimal: Arrow would take `0x10` for 16, as few others do."""
    text = array.cast(pa.string())
    if pc.any(pc.match_substring_regex(text, r"^0[xX]")).as_py():
        raise pa.ArrowInvalid("a number is written in hexadecimal")
    return text


def _text_as_utc(array: pa.Array) -> pa.Array:
    """Timestamps in text, with the zone Z where none is named."""
    text = array.cast(pa.string())
    with_time = pc.if_else(pc.match_substring_regex(text, r":"), text, pc.binary_join_element_wise(text, " 00:00", ""))
    zoned = pc.match_substring_regex(text, ZONED_TEXT)
    return pc.if_else(zoned, text, pc.binary_join_element_wise(with_time, "Z", ""))


def _finite_cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    converted = array.cast(target)
    overflown = pc.is_inf(converted)
    if _is_text(array.type):
        overflown = pc.and_not(overflown, pc.match_substring(array, "inf", ignore_case=True))
    elif pa.types.is_floating(array.type):
        overflown = pc.and_not(overflown, pc.is_inf(array))
    if pc.any(overflown).as_py():
        raise pa.ArrowInvalid(f"a number is beyond the range of {target}")
    return converted


def _reversible_cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    converted = array.cast(target)
    if pc.all(pc.equal(converted.cast(array.type, safe=False), array)).as_py() is False:
        raise pa.ArrowInvalid(f"a value has no equal in {target}")
    return converted


def first_failing_row(convert: Convert, array: pa.Array) -> int:
    """The first row with which those before it do not convert, given that all together do not."""
    good, bad = 0, len(array)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if _converts(convert, array.slice(0, middle)) else (good, middle)
    return bad - 1


def failing_rows(convert: Convert, array: pa.Array, most: int) -> list[int]:
    """The first rows that do not convert, each by itself."""
    found: list[int] = []
    waiting = [(0, len(array))]
    while waiting and len(found) < most:
        start, count = waiting.pop()
        if _converts(convert, array.slice(start, count)):
            continue
        if count == 1:
            found.append(start)
            continue
        half = count // 2
        waiting += [(start + half, count - half), (start, half)]
    return found


def _converts(convert: Convert, array: pa.Array) -> bool:
    try:
        convert(array)
    except pa.ArrowException:
        return False
    return True


def shown_value(array: pa.Array, row: int) -> str:
    """One value of an array, as text for a message."""
    cell = array.slice(row, 1)
    try:
        shown = _shown_time(cell) if pa.types.is_timestamp(array.type) else repr(cell[0].as_py())
    except (pa.ArrowException, ValueError, OverflowError):
        shown = str(cell).strip("[] \n")
    return shown if len(shown) <= 100 else shown[:100] + "…"


def shown_row(batch: pa.RecordBatch, row: int) -> str:
    """The first values of a row, as text for a message."""
    shown = [
        f"{name} = {shown_value(batch.column(place), row)}" for place, name in enumerate(batch.schema.names[:_SHOWN])
    ]
    return ", ".join(shown + (["…"] if batch.num_columns > _SHOWN else []))


def shown_key(rows: pa.Table | pa.RecordBatch, names: Iterable[str]) -> str:
    """What the first of these rows has in these columns, as text for a message."""
    return ", ".join(f"{name} {_shown_plainly(rows.column(name))}" for name in names)


def python_rows(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """As Python has them; dates and timestamps that its own classes may not hold are text."""
    columns = [_python_values(whole_array(column)) for column in rows.columns]
    return [dict(zip(rows.schema.names, values, strict=True)) for values in zip(*columns, strict=True)]


def _python_values(array: pa.Array) -> list[Any]:
    try:
        return list(array.to_pylist())
    except (ValueError, OverflowError):
        if pa.types.is_nested(array.type):
            return [shown_value(array, row) for row in range(len(array))]
        text = type_text(array.type)
        return [None if raw is None else python_value(text, raw) for raw in raw_values(array)]


def _shown_plainly(array: pa.Array) -> str:
    try:
        value = array[0].as_py()
    except (ValueError, OverflowError):  # a date or timestamp that Python's own class may not hold
        return shown_value(array, 0)
    return repr(value) if isinstance(value, str) else str(value)


def _shown_time(cell: pa.Array) -> str:
    """A timestamp of any unit and year, which Python's own class may not hold."""
    moment = cell.cast(pa.timestamp(cell.type.unit)).to_numpy(zero_copy_only=False)[0]
    return str(moment) + ("Z" if cell.type.tz is not None else "")
