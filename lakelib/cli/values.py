"""How the command `lake` writes values: short and readable for people, exact and safe in JSON for programs."""

import base64
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID


def json_text(value: Any, indent: int | None = None) -> str:
    return json.dumps(json_value(value), indent=indent, ensure_ascii=False, allow_nan=False)


def json_value(value: Any) -> Any:
    """What JSON can hold. Decimals, dates and times are text, bytes are base64, NaN and infinities are text too."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else special_float(value)
        case Enum():
            return json_value(value.value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal() | UUID():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case Mapping():
            return {str(name): json_value(each) for name, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [json_value(each) for each in value]
    if is_dataclass(value):
        return {field.name: json_value(getattr(value, field.name)) for field in fields(value)}
    return str(value)


def csv_lines(document: Any) -> Iterator[str]:
    """The objects of a document, a line each, below the names of their fields. NULL is nothing, the empty text is `""`,
    and what is nested is JSON."""
    found = json_value(document)
    records = found if isinstance(found, list) else [found]
    names = list(dict.fromkeys(name for each in records for name in each))
    if names:
        yield ",".join(map(_csv_cell, names))
    for each in records:
        yield ",".join(_csv_cell(each.get(name)) for name in names)


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if not text or set(text) & set('",\r\n') else text


def special_float(value: float) -> str:
    """What JSON has no number for."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def readable_count(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def readable_time(moment: datetime | None) -> str:
    """In UTC, to the second."""
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def readable_seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def readable_age(age: timedelta) -> str:
    """About how long ago: `12 s`, `3 min`, `5 h`, `4 d`."""
    seconds = max(0, int(age.total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:,} {unit}"
    return f"{seconds} s"


def readable_values(values: Mapping[str, Any]) -> str:
    """The values of a partition: `dt=2026-11-18, region=NULL`."""
    return ", ".join(f"{name}={readable_value(value)}" for name, value in values.items())


def readable_value(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case str():
            return escaped(value) if value else "''"
        case bool():
            return "true" if value else "false"
        case datetime():
            text = value.isoformat(sep=" ")
            return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
        case int() | Decimal() | date():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else special_float(value)
        case bytes():
            return "x" + value.hex()
    return escaped(json_text(value))


def escaped_lines(text: str) -> str:
    """As `escaped`; lines stay lines."""
    return "\n".join(map(escaped, text.split("\n")))


def escaped(text: str) -> str:
    """Control characters, which could move the cursor or paint the terminal, as escapes."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
