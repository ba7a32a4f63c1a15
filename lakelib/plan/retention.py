"""Pure. Decides which snapshots and staged commits expire, and which files a table's past still needs."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from lakelib.dataclass import dataclass
from lakelib.model.upkeep import HeldSnapshot, Hold, KeptSnapshot, OpenCommit, Reach, RetentionRules

_FROM_BASE_ON = ("staged commit", "rejected commit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Snapshots of a table, oldest first."""

    expired: tuple[int, ...]
    held: tuple[HeldSnapshot, ...]
    """The rules let them go, and something holds them."""


def choose_stale_commits(commits: Iterable[OpenCommit], rules: RetentionRules, now: datetime) -> list[OpenCommit]:
    """The commits that have waited for too long."""
    if rules.staged_older_than is None:
        return []
    before = now - rules.staged_older_than
    return [commit for commit in commits if commit.since < before]


def choose_expired(
    snapshots: Sequence[KeptSnapshot],
    holds: Iterable[Hold],
    rules: RetentionRules,
    now: datetime,
    reaches: Iterable[Reach] = (),
) -> Retention:
    """Of the snapshots that have not expired, oldest first, those that do now. The head never does."""
    holding = _Holds(holds, reaches)
    expired: list[int] = []
    held: list[HeldSnapshot] = []
    for snapshot in _let_go(snapshots, rules, now):
        hold = holding.of(snapshot)
        if hold is None:
            expired.append(snapshot.id)
        else:
            held.append(HeldSnapshot(id=snapshot.id, hold=hold))
    return Retention(expired=tuple(expired), held=tuple(held))


def _let_go(snapshots: Sequence[KeptSnapshot], rules: RetentionRules, now: datetime) -> list[KeptSnapshot]:
    """Those that both count and age let go. A snapshot's age is the time since the next one took its place: whoever
    asks for a moment within the age finds it."""
    candidates = snapshots[: max(0, len(snapshots) - max(1, rules.keep_last or 0))]
    before = None if rules.older_than is None else now - rules.older_than
    return [
        snapshot
        for snapshot in candidates
        if snapshot.superseded_at is not None and (before is None or snapshot.superseded_at < before)
    ]


class _Holds:
    """Which hold a snapshot has, if any. A tag without an end is named before one that has one, a tag before a lease,
    a lease before a consumer, and that before a commit."""

    def __init__(self, holds: Iterable[Hold], reaches: Iterable[Reach]) -> None:
        self._of_one: dict[int, Hold] = {}
        self._of_many = sorted(reaches, key=lambda reach: reach.hold.kind == "consumer")
        self._from_base: Hold | None = None
        for hold in holds:
            if hold.kind not in _FROM_BASE_ON:
                known = self._of_one.get(hold.snapshot_id)
                if known is None or _weight(hold) > _weight(known):
                    self._of_one[hold.snapshot_id] = hold
            elif self._from_base is None or hold.snapshot_id < self._from_base.snapshot_id:
                self._from_base = hold

    def of(self, snapshot: KeptSnapshot) -> Hold | None:
        return next(self._all_of(snapshot), None)

    def _all_of(self, snapshot: KeptSnapshot) -> Iterator[Hold]:
        """In the order in which they are named."""
        if snapshot.id in self._of_one:
            yield self._of_one[snapshot.id]
        for reach in self._of_many:
            if reach.covers(snapshot):
                yield reach.hold
        if self._from_base is not None and self._from_base.snapshot_id <= snapshot.id:
            yield self._from_base


def _weight(hold: Hold) -> tuple[bool, bool]:
    return hold.kind == "tag", not hold.has_end


def is_needed(kept_ids: Sequence[int], added_snapshot: int, removed_snapshot: int) -> bool:
    """Whether a file that was live from one snapshot until before another is live in one of these, in rising order."""
    place = bisect_left(kept_ids, added_snapshot)
    return place < len(kept_ids) and kept_ids[place] < removed_snapshot
