"""Pure. When the partitions of a table that is filled by the clock are due, and in which order.

A partition is due at the first tick of cron after its step is over, by the date of the schedule's time zone. So each is
due once: whatever the clock does on that day, and however often cron ticks.
"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.specs.cron import Cron, parse_cron
from lakelib.specs.partition_keys import Step, format_partition, parse_partition, step_after, step_before, step_of

_MINUTE = timedelta(minutes=1)


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
