"""How the partitions of a table stand that somebody should look at: those that wait for a decision, those that ought to
be there by the spec, and those that have fallen behind what they were made from.

A partition is behind where the newest run about it has read another table at a snapshot after which that has changed in
what belongs to the partition. A run's commit says which partition it is about, how its table is cut by time, and which
snapshots it has read (`partition`, `partition_by`, `reads.…`), or whose changes it goes on from (`changes`).
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from lakelib.catalog.status import Holdings
from lakelib.dataclass import dataclass
from lakelib.model.status import Standing, WaitingCommit
from lakelib.model.table import TableInfo
from lakelib.ops.status_look import Look, keying_by
from lakelib.plan import due
from lakelib.plan.due import Behind, Keying
from lakelib.specs.partition_keys import WHOLE
from lakelib.specs.table_spec import TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """How one partition stands, and why."""

    standing: Standing
    why: str
    newest: WaitingCommit | None = None
    """The commit that decides it, where that is not published."""


def stands_of(seen: Look, name: str) -> dict[str, Stand]:
    """The partitions that somebody should look at."""
    holdings = seen.holdings_of(name)
    found = {key: _stale(each) for key, each in _behind(seen, name).items()}
    found |= {key: stand for key, stand in _not_there(seen, name) if key not in found}
    for commit in seen.waiting.get(name, ()):
        if commit.partition is not None and not _is_overtaken(commit, holdings):
            found[commit.partition] = _undecided(commit)
    return found


def waits(commit: WaitingCommit, holdings: Holdings) -> bool:
    return commit.discarded_by is None and not _is_overtaken(commit, holdings)


def _is_overtaken(commit: WaitingCommit, holdings: Holdings) -> bool:
    """Whether a run about the same partition has been published since."""
    snapshot_id = None if commit.partition is None else holdings.runs.get(commit.partition)
    return snapshot_id is not None and holdings.moments[snapshot_id] > commit.staged_at


def _undecided(commit: WaitingCommit) -> Stand:
    if commit.discarded_by is not None:
        why = f"{commit.discarded_by} decided against it: {commit.discard_reason}"
        return Stand(standing=Standing.REJECTED, why=why, newest=commit)
    why = commit.reason or (
        "no gate has judged it yet" if commit.outcome is None else f"its gate says {commit.outcome}"
    )
    return Stand(standing=Standing.WAITING, why=f"a commit is {commit.state}: {why}", newest=commit)


# Stale


def _behind(seen: Look, name: str) -> dict[str, Behind]:
    holdings, keying = seen.holdings_of(name), seen.keyings.get(name)
    if keying is None:
        return {}
    reads = {
        table: _carried_on(at, holdings.followed.get(table, 0))
        for table, at in holdings.reads.items()
        if table != name and _has_moved(seen, table, at)
    }
    inputs = {table: _changes_for(seen, name, table) for table in reads}
    there = due.keys_changed(keying, holdings.changed, seen.runs_of(name)) if holdings.followed else {}
    return due.find_behind(seen.runs_of(name), reads, inputs) | due.find_not_followed(there, holdings.followed, inputs)


def _carried_on(seen_by: Mapping[int, int], followed: int) -> Mapping[int, int]:
    """What runs have seen, whichever partition they were about: where they follow changes, each makes all of these."""
    return {snapshot_id: max(seen, followed) for snapshot_id, seen in seen_by.items()}


def _has_moved(seen: Look, table: str, seen_by: Mapping[int, int]) -> bool:
    return table in seen.heads and seen.heads[table].info.head_id > min(seen_by.values())


def _changes_for(seen: Look, name: str, table: str) -> Mapping[str, int]:
    """The changes of an input by the table's own keys. An input that no runs about partitions fill is taken to be cut
    as the table is, if it has a partition column of the same name."""
    keying, head = seen.keyings[name], seen.heads[table]
    input_keying = seen.keyings.get(table) or _keying_like(keying, seen.heads[name].info, head.info)
    if input_keying is None:
        return {WHOLE: head.info.head_id} if keying.every == "none" else {}
    holdings = seen.holdings[table]
    changed = due.keys_changed(input_keying, holdings.changed, seen.runs_of(table))
    return due.changes_for(keying.every, input_keying.every, changed)


def _keying_like(keying: Keying, table: TableInfo, other: TableInfo) -> Keying | None:
    """Only by the first column: at which place the time is was not known when the holdings were looked up."""
    if keying.every == "none" or not other.partition_by:
        return None
    found = keying_by(other, keying.every, table.partition_by[keying.place].name)
    return found if found.type and found.place == 0 else None


def _stale(behind: Behind) -> Stand:
    why = f"made from {behind.input} at snapshot {behind.seen}, which snapshot {behind.changed} has changed since"
    return Stand(standing=Standing.STALE, why=why)


# Not there


def _not_there(seen: Look, name: str) -> Iterator[tuple[str, Stand]]:
    """The partitions that are due, of tables that are filled by the clock or whenever others change."""
    spec = seen.specs.get(name)
    if spec is None or spec.schedule is None:
        return
    holdings, patience = seen.holdings_of(name), _patience(spec)
    runs = seen.runs_of(name)
    if spec.schedule.after is not None:
        for table in spec.schedule.after:
            yield from _not_followed(seen, name, table, patience)
    elif (calendar := due.calendar_for(spec.partition.every, spec.schedule)) is not None:
        for key in due.keys_due(calendar, spec.schedule, runs, seen.at):
            if key not in runs:
                moment = calendar.due(key)
                yield (
                    key,
                    Stand(
                        standing=due.lateness(moment, patience, seen.at),
                        why=f"due since {_shown(moment)}, nothing came",
                    ),
                )
    elif spec.schedule.cron is not None and spec.partition.every == "none":
        yield from _not_copied(spec, holdings, seen.at)


def _patience(spec: TableSpec) -> timedelta:
    """For how long a run waits for its source and works."""
    return spec.spark.timeout + (timedelta(0) if spec.source is None else spec.source.arrival.timeout)


def _not_followed(seen: Look, name: str, table: str, patience: timedelta) -> Iterator[tuple[str, Stand]]:
    """Partitions of a table that comes after another one, which has them, and from the first on that was ever made."""
    keying = seen.keyings.get(name)
    if table not in seen.heads or keying is None:
        return
    runs, moments = seen.runs_of(name), seen.holdings[table].moments
    changes = _changes_for(seen, name, table)
    first = min(runs) if runs else max(changes, default=WHOLE)
    for key, snapshot_id in changes.items():
        if key >= first and key not in runs and snapshot_id > seen.holdings_of(name).followed.get(table, 0):
            moment = moments.get(snapshot_id) or seen.heads[table].committed_at or seen.at
            why = f"{table} has it since {_shown(moment)}, and nothing was made of it"
            yield key, Stand(standing=due.lateness(moment, patience, seen.at), why=why)


def _not_copied(spec: TableSpec, holdings: Holdings, now: datetime) -> Iterator[tuple[str, Stand]]:
    """A table that each tick makes anew: what is there stays there, and is late."""
    assert spec.schedule is not None
    tick = due.last_tick(spec.schedule, now)
    snapshot_id = holdings.runs.get(WHOLE)
    if snapshot_id is not None and holdings.moments[snapshot_id] >= tick:
        return
    started = spec.schedule.start is None or tick.date() >= spec.schedule.start
    if started:
        standing = due.lateness(tick, _patience(spec), now) if snapshot_id is None else Standing.LATE
        yield WHOLE, Stand(standing=standing, why=f"due since {_shown(tick)}, nothing came")


def _shown(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
