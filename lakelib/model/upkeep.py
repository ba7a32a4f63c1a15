"""Frozen values of a table's upkeep: tags, what retention looks at, what compaction, expiry and vacuum have done."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from lakelib.dataclass import dataclass
from lakelib.model.table import Snapshot

DEFAULT_EXPIRE_GRACE = timedelta(hours=1)
DEFAULT_STAGED_OLDER_THAN = timedelta(days=7)
DEFAULT_VACUUM_GRACE = timedelta(days=1)
_MOST_NAMED = 3
"""Of what holds snapshots back, by name."""
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True, kw_only=True)
class TagEnd:
    """When a tag's time is over: after so long, and once so many of its family are on later snapshots; the next expiry
    takes it away then. Without any of the two it never is."""

    keep: timedelta | None = None
    keep_last: int | None = None
    family: str = ""
    """Which tags of the table are counted with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A name that pins a snapshot: it does not expire while it has one."""

    name: str
    snapshot_id: int
    created_at: datetime
    until: datetime | None = None
    """It stays at least until then; None if no moment was said."""
    keep_last: int | None = None
    """It stays while it is among so many of its family's newest."""
    family: str | None = None
    """None for a tag that has no end: it stays until somebody deletes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSnapshot:
    """A snapshot that has not expired."""

    id: int
    committed_at: datetime
    superseded_at: datetime | None
    """When the next one took its place; None for the head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCommit:
    """A staged or a rejected commit: it may still be published."""

    id: UUID
    state: str
    base_snapshot_id: int
    since: datetime
    """When it came into this state."""
    holds_past: bool
    """Whether publishing compares it with what has come since its base."""
    restores: int | None = None
    """Of a rollback, the snapshot that it brings back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What keeps a snapshot from expiring; a commit that has read rows holds its base and all that came after it."""

    kind: str
    """"tag", "lease", "consumer", "staged commit", "rejected commit"; of what one of these is to bring back
    "staged rollback" or "rejected rollback"."""
    name: str
    """The tag's, the reader's host and process, the consumer's, the commit's id."""
    snapshot_id: int
    since: datetime | None = None
    """None where nobody knows."""
    until: datetime | None = None
    """None where no moment was said."""
    has_end: bool = True
    """Whether it goes by itself some day."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """A hold on more than one snapshot: on those from its own to the last, all if none is named, that were superseded
    after a moment, if one is named."""

    hold: Hold
    last_id: int | None = None
    superseded_after: datetime | None = None

    def covers(self, snapshot: KeptSnapshot) -> bool:
        if snapshot.id < self.hold.snapshot_id or (self.last_id is not None and snapshot.id > self.last_id):
            return False
        if self.superseded_after is None:
            return True
        return snapshot.superseded_at is not None and snapshot.superseded_at > self.superseded_after


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSnapshot:
    """A snapshot that would expire if nothing held it."""

    id: int
    hold: Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A hold, and the snapshots that would expire without it."""

    hold: Hold
    snapshots: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRules:
    """Which snapshots may expire: those that all of these let go. None lets all go."""

    keep_last: int | None
    older_than: timedelta | None
    """How long ago a snapshot was the newest."""
    staged_older_than: timedelta | None
    """How long a commit waits, staged or rejected; None is for ever."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExpireResult:
    """What an expiry has done; of a dry run, what it would have done."""

    table: str
    dry_run: bool
    snapshots: tuple[int, ...]
    """The ids of those that expired."""
    kept_back: tuple[HeldSnapshot, ...]
    """Those that the rules let go and something held."""
    commits: int
    """Staged and rejected ones that can no longer be published."""
    leases: int
    """Those that had run out and are removed."""
    files: int
    """Those that nothing needs any more: a vacuum deletes them later."""
    size_bytes: int
    oldest_id: int | None
    """The oldest snapshot that is left."""
    tags: tuple[str, ...] = ()
    """Those whose time was over, and that are gone."""

    @property
    def holdings(self) -> tuple[Holding, ...]:
        """What holds snapshots back, in the order of the oldest that each does."""
        held: dict[Hold, list[int]] = {}
        for each in self.kept_back:
            held.setdefault(each.hold, []).append(each.id)
        return tuple(Holding(hold=hold, snapshots=tuple(ids)) for hold, ids in held.items())

    def __repr__(self) -> str:
        return "\n  ".join((f"<ExpireResult of {self.table}{_dry(self.dry_run)}", *self._lines())) + ">"

    def _lines(self) -> Iterator[str]:
        yield f"expired: {_counted(self.snapshots)}, {_count(self.commits, 'commit')}, {_count(len(self.tags), 'tag')}"
        yield f"to be deleted: {_count(self.files, 'file')}, {readable_bytes(self.size_bytes)}"
        for line in describe_holdings(self.holdings):
            yield f"kept back by {line}"
        if self.oldest_id is not None:
            yield f"the oldest snapshot that is left is {self.oldest_id}"


def describe_holdings(holdings: Sequence[Holding]) -> Iterator[str]:
    """A line each; where many of a kind hold snapshots back, one for all of them."""
    kinds: dict[tuple[str, bool], list[Holding]] = {}
    for each in holdings:
        kinds.setdefault((each.hold.kind, each.hold.has_end), []).append(each)
    for alike in kinds.values():
        if len(alike) > _MOST_NAMED:
            yield _described_together(alike)
        else:
            yield from map(_described, alike)


def _described(holding: Holding) -> str:
    hold = holding.hold
    told = ", ".join(_moments(hold))
    return f"{hold}{f' ({told})' if told else ''}: {_counted(holding.snapshots)}"


def _moments(hold: Hold) -> Iterator[str]:
    if hold.since is not None:
        yield f"since {hold.since:%Y-%m-%d}"
    if hold.until is not None:
        yield f"until {hold.until:%Y-%m-%d}"
    if not hold.has_end:
        yield "for ever"


def _described_together(alike: Sequence[Holding]) -> str:
    oldest = alike[0].hold
    told = ", ".join((f"the first is {oldest.name}", *_moments(oldest)))
    ids = tuple(sorted(snapshot for each in alike for snapshot in each.snapshots))
    return f"{_count(len(alike), oldest.kind)} ({told}): {_counted(ids)}"


def _counted(ids: tuple[int, ...]) -> str:
    return _count(len(ids), "snapshot") + _span(ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFile:
    """A file that could not be deleted. The next vacuum tries again."""

    uri: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VacuumResult:
    """What a vacuum has deleted; of a dry run, what it would have deleted."""

    dry_run: bool
    files: int
    """Those that nothing needed any more."""
    size_bytes: int
    orphans: int
    """Those that no commit names."""
    orphan_bytes: int
    uploads: int
    """Those that were begun and never finished."""
    dropped_tables: tuple[str, ...]
    """Those whose files were among them."""
    waiting: int
    """Files of which nobody needs any, and that are not due."""
    failed: tuple[FailedFile, ...]
    sample: tuple[str, ...]
    """The URIs of the first files that were deleted. `tell` hears of all."""
    passed_over: tuple[str, ...] = ()
    """Tables in which nothing was looked for, because others held them for too long. The next vacuum does."""

    def __repr__(self) -> str:
        lines = [
            f"<VacuumResult{_dry(self.dry_run)}",
            f"not needed any more: {_count(self.files, 'file')}, {readable_bytes(self.size_bytes)}",
            f"orphans: {_count(self.orphans, 'file')}, {readable_bytes(self.orphan_bytes)}",
            f"never finished: {_count(self.uploads, 'upload')}",
            f"dropped: {', '.join(self.dropped_tables) or 'no table'}",
            f"waiting until they are due: {_count(self.waiting, 'file')}",
        ]
        if self.failed:
            lines.append(f"not deleted: {_count(len(self.failed), 'file')}, such as {self.failed[0].uri}")
        if self.passed_over:
            lines.append(f"passed over, for others held them: {', '.join(self.passed_over)}")
        return "\n  ".join(lines) + ">"


def readable_bytes(count: float) -> str:
    """A size in the unit that fits."""
    for unit in _UNITS[:-1]:
        if count < 1000:
            return f"{count:,} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} {_UNITS[-1]}"


def _dry(dry_run: bool) -> str:
    return " (dry run: nothing was changed)" if dry_run else ""


def _span(ids: tuple[int, ...]) -> str:
    if not ids:
        return ""
    return f" ({ids[0]})" if len(ids) == 1 else f" ({ids[0]} to {ids[-1]})"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompactionResult:
    """What a compaction did. A unit is what is replaced as a whole: overlapping runs of one partition."""

    table: str
    snapshots: tuple[Snapshot, ...] = ()
    """Those that it published, oldest first."""
    units: int = 0
    units_skipped: int = 0
    """Due, and left as they are: others have replaced their files meanwhile, or staged commits are to."""
    partitions: int = 0
    files_before: int = 0
    files_after: int = 0
    runs_before: int = 0
    runs_after: int = 0
    rows_before: int = 0
    """As stored: with superseded rows and delete marks."""
    rows_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    seconds: float = 0.0

    @property
    def snapshot(self) -> Snapshot | None:
        """The last one published; None if nothing was done."""
        return self.snapshots[-1] if self.snapshots else None

    def __str__(self) -> str:
        skipped = f"; {_count(self.units_skipped, 'unit')} skipped, as writers are at work there"
        tail = skipped if self.units_skipped else ""
        if not self.snapshots:
            return f"nothing to compact in {self.table}{tail}"
        return (
            f"compacted {self.table}: {_count(self.files_before, 'file')} ({self.bytes_before / 1e6:,.1f} MB,"
            f" {_count(self.runs_before, 'run')}) became {self.files_after:,} ({self.bytes_after / 1e6:,.1f} MB,"
            f" {_count(self.runs_after, 'run')}) in {_count(self.partitions, 'partition')};"
            f" {_count(self.rows_before - self.rows_after, 'row')} dropped; {self.seconds:.1f} s{tail}"
        )

    def __repr__(self) -> str:
        return f"<CompactionResult: {self}>"
