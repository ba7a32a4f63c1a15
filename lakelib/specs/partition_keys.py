"""Pure. Keys of partitions: the text that a run, a path and a tag carry for the part of a table that they are about.

A key says a step of time, in UTC where it says an hour: "2026-11-18", "2026-11-18T05", "2026-11". A table that is not
cut by time has the one key "all".
"""

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from lakelib.errors import InvalidInputError

Step = Literal["day", "hour", "month", "none"]

WHOLE = "all"
KEY_FORMATS: dict[Step, str] = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H", "month": "%Y-%m", "none": WHOLE}
"""As strftime takes them."""

_LENGTHS = {"month": len("2026-11"), "day": len("2026-11-18"), "hour": len("2026-11-18T05")}
_EXAMPLES = {"day": "2026-11-18", "hour": "2026-11-18T05", "month": "2026-11", "none": WHOLE}


def parse_partition(every: Step, key: str) -> datetime | None:
    """The moment at which the step begins, without a zone; None for "all". Raises InvalidInputError."""
    if every == "none" and key == WHOLE:
        return None
    if every != "none" and isinstance(key, str) and len(key) == _LENGTHS[every] and key.isascii():
        try:
            begin = datetime.fromisoformat(f"{key}-01" if every == "month" else key)
        except ValueError:
            pass
        else:
            if format_partition(every, begin) == key:
                return begin
    what = "a table that is not cut by time" if every == "none" else f"a {every}"
    raise InvalidInputError(
        f"The partition key {key!r} is not that of {what}.",
        kind="invalid_partition_key",
        remedy=f"Give a key such as {_EXAMPLES[every]!r}.",
    )


def format_partition(every: Step, moment: date | datetime) -> str:
    """The key of the step that a moment lies in. Moments are taken as they are written: convert them to UTC before."""
    if every == "none":
        return WHOLE
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    return moment.isoformat(timespec="hours")[: _LENGTHS[every]]


def partition_keys(every: Step, first: str, last: str) -> tuple[str, ...]:
    """All keys from the first to the last, both included. Raises InvalidInputError for a key that is none, and for a
    last one before the first."""
    begin, end = parse_partition(every, first), parse_partition(every, last)
    if begin is None or end is None:
        return (WHOLE,)
    if end < begin:
        raise InvalidInputError(
            f"The range of partition keys ends with {last!r}, before its first, {first!r}.",
            kind="invalid_partition_range",
            remedy="Give the earlier key first.",
        )
    keys = []
    while True:
        keys.append(format_partition(every, begin))
        if begin == end:
            return tuple(keys)
        begin = step_after(every, begin)


def step_after(every: Step, begin: datetime) -> datetime:
    """The beginning of the next step, from that of a step."""
    match every:
        case "hour":
            return begin + timedelta(hours=1)
        case "day":
            return begin + timedelta(days=1)
        case _:
            return begin.replace(year=begin.year + begin.month // 12, month=begin.month % 12 + 1)


def step_of(every: Step, moment: datetime) -> datetime:
    """The beginning of the step that a moment lies in."""
    hour = moment.replace(minute=0, second=0, microsecond=0, fold=0)
    match every:
        case "hour":
            return hour
        case "day":
            return hour.replace(hour=0)
        case _:
            return hour.replace(day=1, hour=0)


def step_before(every: Step, moment: datetime) -> datetime:
    """The beginning of the step before the one that a moment lies in."""
    return step_of(every, step_of(every, moment) - timedelta(hours=1))


def key_of_value(every: Step, value: object) -> str | None:
    """The key of the step that a value of the key's column lies in; None for one that has none: NULL, or text that is
    no key."""
    match value:
        case _ if every == "none":
            return WHOLE
        case datetime() if value.tzinfo is not None:
            return format_partition(every, value.astimezone(UTC).replace(tzinfo=None))
        case date():
            return format_partition(every, value)
        case str():
            with suppress(InvalidInputError):
                parse_partition(every, value)
                return value
    return None


def column_value(every: Step, key: str, column_type: str) -> str:
    """What the rows of a partition have in the key's column, as text: a month is its first day in a DATE, an hour its
    beginning in a TIMESTAMP; in a STRING it is the key itself. Raises InvalidInputError for a key that is none."""
    begin = parse_partition(every, key)
    if begin is None or column_type == "string":
        return key
    return begin.date().isoformat() if column_type == "date" else begin.isoformat(sep=" ", timespec="seconds")
