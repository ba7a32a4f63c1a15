"""Pure. Parts of days and moments, in UTC, of any year."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.model.predicate import Function

DAY_MICROSECONDS = 86_400_000_000
_MOST_DATE = 2**31 - 1
_MOST_DAYS = 2**63 // DAY_MICROSECONDS - 1
_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000


def part_of(function: Function, moments: pa.Array) -> pa.Array:
    """Of each date or timestamp the part that the function names; NULL of NULL."""
    is_date = pa.types.is_date32(moments.type)
    raw = moments.view(pa.int32()).cast(pa.int64()) if is_date else moments.view(pa.int64())
    stored = raw.fill_null(0).to_numpy(zero_copy_only=False)
    if function in _OF_TIMES:
        unit, most = _OF_TIMES[function]
        found = np.zeros_like(stored) if is_date else stored // unit % most
    else:
        found = _OF_DAYS[function](stored if is_date else stored // DAY_MICROSECONDS)
    return pa.array(found.astype(np.int32), mask=raw.is_null().to_numpy(zero_copy_only=False))


def later(moments: pa.Array, counts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """So many days later, or microseconds of a timestamp; and where that is beyond what there is."""
    stored, added, known = _stored(moments), _numbers(counts), _both(moments, counts)
    found = stored + added
    overflows = (stored ^ found) & (added ^ found) < 0
    return _moments(moments.type, found, known, overflows)


def months_later(moments: pa.Array, counts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """On the last day of a month that is too short, at the same time of day; and where that is beyond what there is."""
    stored, known = _stored(moments), _both(moments, counts)
    is_date = pa.types.is_date32(moments.type)
    days, rest = (stored, 0) if is_date else (stored // DAY_MICROSECONDS, stored % DAY_MICROSECONDS)
    months = _dates(days).astype("datetime64[M]").astype(np.int64) + _numbers(counts)
    first, after = (_of_month(each) for each in (months, months + 1))
    found = first + np.minimum(days - _first_of(days, "M"), after - first - 1)
    if is_date:
        return _moments(moments.type, found, known, np.zeros(len(found), np.bool_))
    overflows = np.abs(found) > _MOST_DAYS
    return _moments(moments.type, np.where(overflows, 0, found) * DAY_MICROSECONDS + rest, known, overflows)


def _of_month(months: np.ndarray) -> np.ndarray:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _stored(moments: pa.Array) -> np.ndarray:
    is_date = pa.types.is_date32(moments.type)
    raw = moments.view(pa.int32()).cast(pa.int64()) if is_date else moments.view(pa.int64())
    return _numbers(raw)


def _numbers(array: pa.Array) -> np.ndarray:
    found: np.ndarray = array.fill_null(0).to_numpy(zero_copy_only=False)
    return found.astype(np.int64, copy=False)


def _both(one: pa.Array, other: pa.Array) -> np.ndarray:
    return pc.and_(one.is_valid(), other.is_valid()).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _moments(
    kind: pa.DataType, found: np.ndarray, known: np.ndarray, overflows: np.ndarray
) -> tuple[pa.Array, pa.Array]:
    if pa.types.is_date32(kind):
        overflows = overflows | (np.abs(found) >= _MOST_DATE)
        found = np.where(overflows, 0, found).astype(np.int32)
    failed = overflows & known
    return pa.array(found, mask=~known | failed).view(kind), pa.array(failed)


def _first_of(days: np.ndarray, unit: str) -> np.ndarray:
    """The first day of each day's month or year."""
    return _dates(days).astype(f"datetime64[{unit}]").astype("datetime64[D]").astype(np.int64)


def _dates(days: np.ndarray) -> np.ndarray:
    return days.astype("datetime64[D]")


def _year(days: np.ndarray) -> np.ndarray:
    return _dates(days).astype("datetime64[Y]").astype(np.int64) + 1970


def _month(days: np.ndarray) -> np.ndarray:
    return _dates(days).astype("datetime64[M]").astype(np.int64) % 12 + 1


def _weekday(days: np.ndarray) -> np.ndarray:
    """The first of January 1970 was a Thursday."""
    return (days + 3) % 7


def _week(days: np.ndarray) -> np.ndarray:
    """A week belongs to the year that its Thursday is in."""
    thursdays = days - _weekday(days) + 3
    found: np.ndarray = (thursdays - _first_of(thursdays, "Y")) // 7 + 1
    return found


_OF_TIMES = {Function.HOUR: (_HOUR, 24), Function.MINUTE: (_MINUTE, 60), Function.SECOND: (_SECOND, 60)}
_OF_DAYS: dict[Function, Callable[[np.ndarray], np.ndarray]] = {
    Function.YEAR: _year,
    Function.QUARTER: lambda days: (_month(days) + 2) // 3,
    Function.MONTH: _month,
    Function.DAY: lambda days: days - _first_of(days, "M") + 1,
    Function.DAY_OF_YEAR: lambda days: days - _first_of(days, "Y") + 1,
    Function.DAY_OF_WEEK: lambda days: (days + 4) % 7 + 1,
    Function.WEEK_DAY: _weekday,
    Function.WEEK: _week,
}
PARTS = frozenset((*_OF_TIMES, *_OF_DAYS))
"""The functions that take a part of a day or of a moment."""
