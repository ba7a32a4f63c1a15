"""Pure. Turns one value between its three forms: raw (as stored), Python (as people see it), and text."""

import operator
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from lakelib.errors import InvalidInputError
from lakelib.model import sortable
from lakelib.model.files import PartitionKey
from lakelib.model.predicate import Raw
from lakelib.model.schema import Column

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}

_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_NAIVE = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_EXACT = Context(prec=200)

_DECIMAL_TYPE = re.compile(r"decimal\((\d+),(\d+)\)\Z")
_INTEGER_TEXT = re.compile(r"\s*[+-]?\d{1,60}\s*\Z", re.ASCII)
_DECIMAL_TEXT = re.compile(r"\s*[+-]?(\d{1,60}(\.\d{0,60})?|\.\d{1,60})([eE][+-]?\d{1,3})?\s*\Z", re.ASCII)
_FLOAT_WORD = re.compile(r"\s*[+-]?(nan|inf|infinity)\s*\Z", re.IGNORECASE)
_DATE_TEXT = re.compile(r"\s*(\d{4}-\d\d-\d\d)\s*\Z", re.ASCII)
_TIMESTAMP_TEXT = re.compile(
    r"\s*(?P<day>\d{4}-\d\d-\d\d)"
    r"(?:[T ](?P<minute>\d\d:\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,30}))?)?"
    r"\s*(?P<zone>Z|UTC|[+-]\d\d(?::?\d\d)?)?)?\s*\Z",
    re.ASCII,
)


def decimal_parts(type_text: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type; None for any other type."""
    match = _DECIMAL_TYPE.match(type_text)
    return (int(match[1]), int(match[2])) if match else None


def raw_values(array: pa.Array) -> list[Raw | None]:
    """The raw values (see `model.sortable`) of an array of a sortable type, exact over the type's whole range."""
    given, types = array.type, pa.types
    if types.is_dictionary(given):
        return raw_values(array.dictionary_decode())
    if types.is_date32(given):
        return _listed(array.view(pa.int32()))
    if types.is_timestamp(given) and given.unit == "us":
        return _listed(array.view(pa.int64()))
    if types.is_decimal128(given):
        stored: list[bytes | None] = array.view(pa.binary(16)).to_pylist()
        return [None if value is None else int.from_bytes(value, "little", signed=True) for value in stored]
    if types.is_nested(given) or types.is_temporal(given) or types.is_decimal(given):
        raise ValueError(f"{given} is not the Arrow type of a sortable column")
    return _listed(array)


def _listed(array: pa.Array) -> list[Raw | None]:
    values: list[Raw | None] = array.to_pylist()
    return values


def python_value(type_text: str, raw: Raw) -> Any:
    """What people see: date, datetime (aware and in UTC for timestamp, naive for timestamp_ntz), Decimal, int, str, …

    Dates and timestamps that Python's own types cannot hold come as ISO text.
    """
    parts = decimal_parts(type_text)
    if parts is not None:
        return Decimal(int(raw)).scaleb(-parts[1], _EXACT)
    try:
        if type_text == "date":
            return _EPOCH_DAY + timedelta(days=int(raw))
        if type_text == "timestamp":
            return _EPOCH + timedelta(microseconds=int(raw))
        if type_text == "timestamp_ntz":
            return _EPOCH_NAIVE + timedelta(microseconds=int(raw))
    except OverflowError:
        return _far_text(type_text, int(raw))
    return raw


def _far_text(type_text: str, raw: int) -> str:
    if type_text == "date":
        return str(np.datetime64(raw, "D"))
    return str(np.datetime64(raw, "us")) + ("Z" if type_text == "timestamp" else "")


def raw_value(type_text: str, python_value: Any) -> Raw:
    """The raw value of a Python value of the type's natural class, or of text of it.

    A timestamp without a zone is taken as UTC. Raises InvalidInputError, saying what was expected, for anything that
    is not exactly a value of the type; None is not a value.
    """
    parts = decimal_parts(type_text)
    if parts is not None:
        return _raw_decimal(type_text, *parts, python_value)
    if type_text in INTEGER_BITS:
        return _raw_integer(type_text, python_value)
    converter = _CONVERTERS.get(type_text)
    if converter is None:
        raise InvalidInputError(
            f"A value of type {type_text} cannot be given here.",
            kind="wrong_value",
            remedy="Only columns that are not nested can be compared with a value.",
        )
    return converter(python_value)


def _raw_integer(type_text: str, value: Any) -> int:
    bits = INTEGER_BITS[type_text]
    expected = f"a whole number of {bits} bits"
    if isinstance(value, str) and _INTEGER_TEXT.match(value):
        number = int(value)
    elif isinstance(value, str | bool | np.bool_):
        raise wrong_value(type_text, value, expected)
    else:
        try:
            number = operator.index(value)
        except TypeError:
            raise wrong_value(type_text, value, expected) from None
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise wrong_value(type_text, value, expected)
    return number


def _raw_decimal(type_text: str, precision: int, scale: int, value: Any) -> int:
    expected = f"a number with at most {precision - scale} digits before the point and {scale} after it"
    number = _as_decimal(value)
    if number is None:
        raise wrong_value(type_text, value, expected)
    unscaled = number.scaleb(scale, _EXACT)
    whole = int(unscaled)
    if whole != unscaled or abs(whole) >= 10**precision:
        raise wrong_value(type_text, value, expected)
    return whole


def _as_decimal(value: Any) -> Decimal | None:
    """An exact number of sane size; None for anything else, NaN and infinity included."""
    if isinstance(value, str):
        return parse_number(value)
    if isinstance(value, Decimal):
        return (
            value
            if value.is_finite() and -100 < value.adjusted() < 100 and len(value.as_tuple().digits) < 100
            else None
        )
    if isinstance(value, bool | np.bool_):
        return None
    try:
        number = operator.index(value)
    except TypeError:
        return None
    return Decimal(number) if abs(number) < 10**60 else None


def parse_number(text: str) -> Decimal | None:
    """The exact number that a text spells in decimal digits; None if it spells none."""
    if not _DECIMAL_TEXT.match(text):
        return None
    try:
        return _EXACT.create_decimal(text.strip())
    except InvalidOperation:
        return None


def _raw_float(type_text: str) -> Callable[[Any], float]:
    def convert(value: Any) -> float:
        if isinstance(value, str):
            if not (_DECIMAL_TEXT.match(value) or _FLOAT_WORD.match(value)):
                raise wrong_value(type_text, value, "a number")
            return float(value)
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | Decimal | np.number):
            raise wrong_value(type_text, value, "a number")
        try:
            return float(value)
        except OverflowError:
            raise wrong_value(type_text, value, "a number that the type can hold") from None

    return convert


def _raw_boolean(value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    word = value.strip().lower() if isinstance(value, str) else None
    if word not in ("true", "false"):
        raise wrong_value("boolean", value, "true or false")
    return word == "true"


def _raw_string(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong_value("string", value, "text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise wrong_value("string", value, "text without lone surrogates") from None
    return str(value)


def _raw_binary(value: Any) -> bytes:
    if isinstance(value, str):
        return _raw_string(value).encode()
    if not isinstance(value, bytes | bytearray | memoryview):
        raise wrong_value("binary", value, "bytes, or text for its UTF-8 bytes")
    return bytes(value)


def _raw_date(value: Any) -> int:
    day = _parse_date(value) if isinstance(value, str) else value
    if not isinstance(day, date) or isinstance(day, datetime):
        raise wrong_value("date", value, "a date like 2026-11-18")
    return (day - _EPOCH_DAY).days


def _parse_date(text: str) -> date | None:
    match = _DATE_TEXT.match(text)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def _raw_timestamp(value: Any) -> int:
    moment = parse_timestamp(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        raise wrong_value("timestamp", value, "a timestamp like 2026-11-18 10:30:00.123456Z (UTC if no zone is given)")
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return (aware - _EPOCH) // _MICROSECOND


def _raw_timestamp_ntz(value: Any) -> int:
    moment = parse_timestamp(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime) or moment.tzinfo is not None:
        raise wrong_value("timestamp_ntz", value, "a timestamp without a zone, like 2026-11-18 10:30:00.123456")
    return (moment - _EPOCH_NAIVE) // _MICROSECOND


def parse_timestamp(text: str) -> datetime | None:
    """The moment that an ISO text spells, naive if it names no zone; None if it spells none in whole microseconds."""
    match = _TIMESTAMP_TEXT.match(text)
    if match is None:
        return None
    fraction = (match["fraction"] or "0").ljust(6, "0")
    if fraction[6:].strip("0"):
        return None
    zone = (match["zone"] or "").replace("UTC", "Z")
    try:
        return datetime.fromisoformat(
            f"{match['day']}T{match['minute'] or '00:00'}:{match['second'] or '00'}.{fraction[:6]}{zone}"
        )
    except ValueError:
        return None


_CONVERTERS: dict[str, Callable[[Any], Raw]] = {
    "boolean": _raw_boolean,
    "float": _raw_float("float"),
    "double": _raw_float("double"),
    "string": _raw_string,
    "binary": _raw_binary,
    "date": _raw_date,
    "timestamp": _raw_timestamp,
    "timestamp_ntz": _raw_timestamp_ntz,
}


def wrong_value(type_text: str, value: Any, expected: str) -> InvalidInputError:
    """The error for a value that a column of the type cannot hold."""
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:80] + "…"
    return InvalidInputError(
        f"{shown} is not a value of type {type_text}.", kind="wrong_value", remedy=f"Give {expected}."
    )


def partition_values(partition_by: Sequence[Column], key: PartitionKey) -> dict[str, Any]:
    """A partition's values as Python's, by column."""
    return {
        column.name: None if part is None else python_value(column.type, sortable.decode(column.type, part))
        for column, part in zip(partition_by, key, strict=True)
    }
