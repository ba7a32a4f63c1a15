"""Pure. When the partitions of a table that is filled by the clock are due, and in which order. And cron expressions:
five fields (minute, hour, day of month, month, day of week) or a name such as @daily.

A partition is due at the first tick of cron after its step is over, by the date of the schedule's time zone. So each is
due once: whatever the clock does on that day, and however often cron ticks. Ticks are local times, whatever the clock
does. A tick is on a day of its months that its days of the month name, or, if days of the week are named too, its days
of the week.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.specs.partition_keys import Step, format_partition, parse_partition, step_after, step_before, step_of

_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    ("day of week", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
NAMES: Mapping[str, str] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}
EXPECTED = 'five fields (minute, hour, day of month, month, day of week) such as "0 2 * * *", or one of ' + ", ".join(
    NAMES
)
_ITEM = re.compile(r"(\*|[a-z0-9]+(?:-[a-z0-9]+)?)(?:/(\d+))?", re.ASCII)
_LONGEST_MONTHS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
_DAYS_OF_ANY_MONTH = 28
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """What an expression names, each field in rising order."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    """0 is Sunday."""

    @property
    def is_daily(self) -> bool:
        """Whether there are ticks on every day."""
        return len(self.days) == 31 and len(self.months) == 12 and len(self.weekdays) == 7

    def ticks_once_a(self, every: Step) -> bool:
        """Whether each step has one tick, and no more."""
        if len(self.minutes) > 1:
            return False
        match every:
            case "hour":
                return len(self.hours) == 24 and self.is_daily
            case "day":
                return len(self.hours) == 1 and self.is_daily
            case "month":
                is_there = len(self.days) == 1 and self.days[0] <= _DAYS_OF_ANY_MONTH
                return len(self.hours) == 1 and is_there and len(self.months) == 12 and len(self.weekdays) == 7
            case _:
                return True

    def first_from(self, moment: datetime) -> datetime:
        """The first tick that is not before the moment."""
        day = moment.date()
        while True:
            tick = next((tick for tick in self._ticks_on(day) if tick >= moment), None)
            if tick is not None:
                return tick
            day += timedelta(days=1)

    def last_until(self, moment: datetime) -> datetime:
        """The last tick that is not after the moment."""
        day = moment.date()
        while True:
            tick = max((tick for tick in self._ticks_on(day) if tick <= moment), default=None)
            if tick is not None:
                return tick
            day -= timedelta(days=1)

    def _ticks_on(self, day: date) -> Iterator[datetime]:
        if self._is_on(day.day, day.month, day.isoweekday() % 7):
            for hour in self.hours:
                for minute in self.minutes:
                    yield datetime.combine(day, time(hour, minute))

    def _is_on(self, day: int, month: int, weekday: int) -> bool:
        is_day, is_weekday = day in self.days, weekday in self.weekdays
        either = len(self.days) < 31 and len(self.weekdays) < 7
        return month in self.months and (is_day or is_weekday if either else is_day and is_weekday)


def parse_cron(text: str) -> Cron:
    """Raises ValueError that says what is expected, and of which field."""
    fields = NAMES.get(text, text).split()
    if len(fields) != len(_FIELDS):
        raise ValueError(EXPECTED)
    minutes, hours, days, months, weekdays = (
        _numbers(field, *known) for field, known in zip(fields, _FIELDS, strict=True)
    )
    found = Cron(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=tuple(sorted({weekday % 7 for weekday in weekdays})),
    )
    if len(found.weekdays) == 7 and all(days[0] > _LONGEST_MONTHS.get(month, 31) for month in months):
        raise ValueError("a day of month that one of its months has")
    return found


def _numbers(field: str, name: str, least: int, most: int, words: tuple[str, ...]) -> tuple[int, ...]:
    found: set[int] = set()
    for item in field.lower().split(","):
        numbers = _numbers_of(item, least, most, words)
        if not numbers:
            raise ValueError(
                f"{name} as *, a number from {least} to {most}, a range, a step, or a list of these; not {item!r}"
            )
        found.update(numbers)
    return tuple(sorted(found))


def _numbers_of(item: str, least: int, most: int, words: tuple[str, ...]) -> range:
    """Empty for what is none."""
    nothing = range(0)
    matched = _ITEM.fullmatch(item)
    if matched is None or (matched[2] is not None and not 1 <= int(matched[2]) <= most):
        return nothing
    step = int(matched[2] or 1)
    if matched[1] == "*":
        return range(least, most + 1, step)
    ends = [_number(part, least, words) for part in matched[1].split("-")]
    if any(end is None or not least <= end <= most for end in ends) or (len(ends) == 1 and matched[2] is not None):
        return nothing
    return range(ends[0] or 0, (ends[-1] or 0) + 1, step)


def _number(text: str, least: int, words: tuple[str, ...]) -> int | None:
    if text in words:
        return words.index(text) + least
    return int(text) if text.isdecimal() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """The partitions of a table that is cut by time. Moments have a zone; those that it gives are in UTC."""

    every: Step
    cron: Cron
    zone: ZoneInfo

    def begin_of(self, key: str) -> datetime:
        """When the partition's step begins. Raises InvalidInputError for a key that is none of the table's, or of a
        year that the zone's clock does not show."""
        step = self._step(key)
        try:
            return moment_of(step, self.zone)
        except OverflowError:
            raise InvalidInputError(
                f"The partition key {key!r} is of a year that the clocks of {self.zone} do not show.",
                kind="invalid_partition_key",
                remedy="Give a key of this era.",
            ) from None

    def due(self, key: str) -> datetime:
        """From when on the partition is ingested. Raises InvalidInputError for a key that is none."""
        return self._due(self._step(key))

    def next_key(self, last: str | None, earliest: datetime | None, *, catchup: bool, now: datetime) -> str:
        """The partition to be ingested after the last one. It is due at the earliest moment or later; without `catchup`
        not before the newest tick either, whatever was left out until then."""
        steps = [] if last is None else [step_after(self.every, self._step(last))]
        if earliest is not None and not (catchup and steps):
            steps.append(self._first_due_from(earliest))
        if not catchup or not steps:
            steps.append(self._first_due_from(self._newest_due(now)))
        return format_partition(self.every, max(steps))

    def key_before(self, moment: datetime) -> str:
        """The partition whose step was the last to end."""
        return format_partition(self.every, step_before(self.every, self._local(moment)))

    def keys_from(self, begin: datetime, end: datetime) -> tuple[str, ...]:
        """Those whose steps begin between two moments, both included."""
        step, found = step_before(self.every, self._local(begin)), []
        while moment_of(step, self.zone) <= end:
            if moment_of(step, self.zone) >= begin:
                found.append(format_partition(self.every, step))
            step = step_after(self.every, step)
        return tuple(found)

    def _step(self, key: str) -> datetime:
        step = parse_partition(self.every, key)
        assert step is not None
        return step

    def _due(self, step: datetime) -> datetime:
        return moment_of(self.cron.first_from(step_after(self.every, step)), self.zone)

    def _local(self, moment: datetime) -> datetime:
        return moment.astimezone(self.zone).replace(tzinfo=None)

    def _first_due_from(self, moment: datetime) -> datetime:
        """It is the one that the tick before lies in: that tick came too early for it."""
        tick = self.cron.first_from(self._local(moment))
        while moment_of(before := self.cron.last_until(tick - _MINUTE), self.zone) >= moment:
            tick = before
        return step_of(self.every, before)

    def _newest_due(self, now: datetime) -> datetime:
        """The last moment by which partitions were due; others may be due at the same."""
        tick = self.cron.last_until(self._local(now))
        while moment_of(tick, self.zone) > now:
            tick = self.cron.last_until(tick - _MINUTE)
        return self._due(step_before(self.every, tick))


def calendar_of(every: Step, cron: str, timezone: str) -> Calendar:
    return Calendar(every=every, cron=parse_cron(cron), zone=ZoneInfo(timezone))


def moment_of(local: datetime, zone: ZoneInfo) -> datetime:
    """When the zone's clock shows a time, in UTC: the later moment, if it does so twice; the first moment after it, if
    it never does."""
    before = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    if before.astimezone(zone).replace(tzinfo=None) >= local:
        return before
    after = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) // timedelta(seconds=2) * timedelta(seconds=1)
        is_before = middle.astimezone(zone).replace(tzinfo=None) < local
        before, after = (middle, after) if is_before else (before, middle)
    return after
