"""Pure. Which partitions of a table ought to be there by now, and which have fallen behind what they were made from.

A table's partitions go by keys (specs.partition_keys). Where a table is cut finer by time than one that is made from
it, several of its partitions belong to one of that. Where it is cut coarser, or not at all, it is looked things up in:
as it was when a partition was made is as it was meant, and it makes nothing stale.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from functools import lru_cache

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model import sortable
from lakelib.model.status import Standing
from lakelib.specs.calendar import Calendar, calendar_of, moment_of
from lakelib.specs.partition_keys import (
    WHOLE,
    Step,
    format_partition,
    parse_partition,
    partition_keys,
    step_before,
)
from lakelib.specs.table_fields import Schedule

_EPOCH = datetime(1970, 1, 1)
_FINER: Mapping[Step, int] = {"hour": 0, "day": 1, "month": 2, "none": 3}
_MOST_KEYS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Keying:
    """How a table is cut by time: how far its keys are apart, and the place in its partitions' keys and the type there.
    Without a type its partitions do not tell the time: it has copies of days, not rows."""

    every: Step
    place: int = 0
    type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """A partition was made from an input at a snapshot, and a later one has changed it there."""

    input: str
    seen: int
    changed: int


@lru_cache(maxsize=_MOST_KEYS)
def is_key(every: Step, key: str) -> bool:
    """Whether it is a partition key of that step: what a commit calls its partition may be anything."""
    try:
        parse_partition(every, key)
    except InvalidInputError:
        return False
    return True


def keys_changed(keying: Keying, changed: Mapping[bytes | None, int], runs: Mapping[str, int]) -> dict[str, int]:
    """By partition key the last snapshot that changed rows there, or published that there are none."""
    found = dict(runs)
    for part, snapshot_id in changed.items():
        key = key_of_part(keying.every, keying.type, part)
        if key is not None and snapshot_id > found.get(key, 0):
            found[key] = snapshot_id
    return found


@lru_cache(maxsize=_MOST_KEYS)
def key_of_part(every: Step, type_text: str, part: bytes | None) -> str | None:
    """The key that rows with such a partition value belong to; None for a value that is none."""
    if every == "none":
        return WHOLE
    if part is None or not type_text:
        return None
    try:
        raw = sortable.decode(type_text, part)
        if type_text == "string":
            parse_partition(every, str(raw))
            return str(raw)
        length = timedelta(days=int(raw)) if type_text == "date" else timedelta(microseconds=int(raw))
        return format_partition(every, _EPOCH + length)
    except (InvalidInputError, ValueError, OverflowError):
        return None


def changes_for(every: Step, input_every: Step, changed: Mapping[str, int]) -> Mapping[str, int]:
    """The changes of an input by the keys of a table that is made from it; none where the input is a lookup."""
    if every == input_every:
        return changed
    if _FINER[input_every] > _FINER[every]:
        return {}
    found: dict[str, int] = {}
    for key, snapshot_id in changed.items():
        coarse = coarser_key(input_every, every, key)
        found[coarse] = max(snapshot_id, found.get(coarse, 0))
    return found


@lru_cache(maxsize=_MOST_KEYS)
def coarser_key(every: Step, coarser: Step, key: str) -> str:
    begin = parse_partition(every, key)
    return WHOLE if begin is None else format_partition(coarser, begin)


def find_behind(
    runs: Mapping[str, int], reads: Mapping[str, Mapping[int, int]], inputs: Mapping[str, Mapping[str, int]]
) -> dict[str, Behind]:
    """The partitions that have fallen behind: their newest runs have read an input at a snapshot after which it has
    changed in what belongs to them. `inputs` are changes by the table's own keys."""
    found: dict[str, Behind] = {}
    for table, seen_by in reads.items():
        changes = inputs.get(table)
        if not changes:
            continue
        for key, snapshot_id in runs.items():
            seen = seen_by.get(snapshot_id)
            if seen is not None and changes.get(key, 0) > seen:
                found.setdefault(key, Behind(input=table, seen=seen, changed=changes[key]))
    return found


def find_not_followed(
    there: Collection[str], followed: Mapping[str, int], inputs: Mapping[str, Mapping[str, int]]
) -> dict[str, Behind]:
    """The partitions that have fallen behind inputs whose changes are followed, up to a snapshot each: whichever
    partition its runs were about."""
    return {
        key: Behind(input=table, seen=seen, changed=changed)
        for table, seen in followed.items()
        for key, changed in inputs.get(table, {}).items()
        if changed > seen and key in there
    }


# What is due


def calendar_for(every: Step, schedule: Schedule | None) -> Calendar | None:
    """None for a table that is not filled by the clock, partition by partition."""
    if schedule is None or schedule.cron is None or every == "none":
        return None
    return _calendar(every, schedule.cron, schedule.timezone)


@lru_cache(maxsize=1000)
def _calendar(every: Step, cron: str, timezone: str) -> Calendar:
    return calendar_of(every, cron, timezone)


def keys_due(calendar: Calendar, schedule: Schedule, runs: Mapping[str, int], now: datetime) -> tuple[str, ...]:
    """The partitions that are due by now. Without `catchup` what lies before the first that was ever ingested is not
    asked for; with none yet, only the newest."""
    newest = _newest_due(calendar, now.replace(second=0, microsecond=0))
    first = (
        newest if not schedule.catchup or schedule.start is None else format_partition(calendar.every, schedule.start)
    )
    if not schedule.catchup and runs:
        first = min(runs)
    if schedule.start is not None:
        first = max(first, format_partition(calendar.every, schedule.start))
    return _keys_between(calendar.every, first, newest) if first <= newest else ()


@lru_cache(maxsize=1000)
def _newest_due(calendar: Calendar, now: datetime) -> str:
    key = calendar.key_before(now)
    while calendar.due(key) > now:
        begin = parse_partition(calendar.every, key)
        assert begin is not None
        key = format_partition(calendar.every, step_before(calendar.every, begin))
    return key


@lru_cache(maxsize=1000)
def _keys_between(every: Step, first: str, last: str) -> tuple[str, ...]:
    return partition_keys(every, first, last)


def last_tick(schedule: Schedule, now: datetime) -> datetime:
    """The newest tick of a table that is filled by the clock as a whole."""
    assert schedule.cron is not None
    calendar = _calendar("day", schedule.cron, schedule.timezone)
    local = now.astimezone(calendar.zone).replace(tzinfo=None)
    return moment_of(calendar.cron.last_until(local), calendar.zone)


def lateness(due: datetime, patience: timedelta, now: datetime) -> Standing:
    """Of a partition that is due and not there."""
    return Standing.LATE if now < due + patience else Standing.MISSING
