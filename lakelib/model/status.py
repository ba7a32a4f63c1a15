"""Frozen values: how tables and their partitions are doing. What is counted is as of one look at the catalog."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

from lakelib.dataclass import dataclass
from lakelib.model.html import MOST_ROWS, html_table


class Standing(Enum):
    """How a partition stands. Of several the gravest counts: what waits, then what is not there, then what is stale."""

    PUBLISHED = "published"
    WARNED = "warned"
    """Published, and its gate has warnings, or a person has published what the gate rejected."""
    STALE = "stale"
    """Published, and what it was made from has changed since."""
    WAITING = "waiting"
    """A newer commit is staged or rejected, and nobody has decided."""
    REJECTED = "rejected"
    """A person has decided against the newest commit."""
    LATE = "late"
    """It is due, and may still come by itself."""
    MISSING = "missing"
    """It is due, and no run waits for it any more."""


TROUBLES = (Standing.WAITING, Standing.REJECTED, Standing.MISSING, Standing.LATE, Standing.STALE)
"""What somebody should look at, the gravest first."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WaitingCommit:
    """A commit that is staged or was rejected: nobody reads its rows."""

    id: UUID
    table: str
    kind: str
    state: str
    partition: str | None
    """The key of the partition that its run is about."""
    staged_at: datetime
    reason: str | None
    gate: str | None
    outcome: str | None
    """Of its newest verdict."""
    rows_in: int
    application: str | None
    version: int | None
    discarded_by: str | None = None
    """Who decided against it; None for nobody yet."""
    discard_reason: str | None = None
    discarded_at: datetime | None = None

    def __repr__(self) -> str:
        about = f", partition {self.partition}" if self.partition else ""
        return f"<WaitingCommit {self.id}: {self.state} {self.kind} of {self.table}{about}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """Snapshots that the rules let go and that do not expire, for something of this kind holds them."""

    kind: str
    """"tag", "lease", "consumer", "staged commit" or "rejected commit"."""
    holds: int
    example: str
    snapshots: int
    first_id: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TableStatus:
    """How a table is doing. One that a spec names and that is not there yet has no snapshot and holds nothing."""

    table: str
    snapshot: int | None
    committed_at: datetime | None
    partitions: int
    files: int
    stored_rows: int
    """Superseded rows and delete marks count, until a compaction drops them."""
    size_bytes: int
    gate: str | None
    outcome: str | None
    """Of the newest verdict on what was published."""
    judged_snapshot: int | None
    troubles: Mapping[str, int]
    """How many partitions somebody should look at, by their standing, the gravest first."""
    waiting: tuple[WaitingCommit, ...]
    """Commits on which nobody has decided, the oldest first."""
    partitions_due: int
    """About how many partitions a compaction would work on."""
    most_runs: int
    held_back: tuple[HeldBack, ...]

    @property
    def is_stale(self) -> bool:
        return Standing.STALE.value in self.troubles

    @property
    def standing(self) -> str:
        """ "2 waiting, 1 missing": how many partitions somebody should look at; else "ok", or "empty"."""
        if self.troubles:
            return ", ".join(f"{count:,} {standing}" for standing, count in self.troubles.items())
        return "ok" if self.snapshot else "empty"

    def __repr__(self) -> str:
        return f"<TableStatus of {self._told()}>"

    def _told(self) -> str:
        head = f", snapshot {self.snapshot}" if self.snapshot else ""
        return f"{self.table}: {self.standing}{head}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LakeStatus:
    at: datetime
    """By the catalog's clock."""
    tables: tuple[TableStatus, ...]

    def __repr__(self) -> str:
        lines = [each._told() for each in self.tables[:MOST_ROWS]]
        more = [f"… of {len(self.tables):,}"] if len(self.tables) > MOST_ROWS else []
        return "\n  ".join((f"<LakeStatus at {_moment(self.at)}", *(lines or ["no tables"]), *more)) + ">"

    def _repr_html_(self) -> str:
        names = ("table", "standing", "snapshot", "committed at", "stored rows", "verdict")
        rows = (
            (each.table, each.standing, each.snapshot, each.committed_at, each.stored_rows, each.outcome)
            for each in self.tables
        )
        return html_table(f"{len(self.tables):,} tables at {_moment(self.at)}", names, rows, len(self.tables))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PartitionStatus:
    """How a partition stands, and what it goes by."""

    partition: str
    standing: Standing
    why: str
    snapshot: int | None
    """The newest that a run about it has published."""
    committed_at: datetime | None
    changed_by: int | None
    """The newest snapshot that changed its rows, whatever its run was about."""
    commit: UUID | None
    """The newest of its own commits that is published or waits."""
    gate: str | None
    outcome: str | None
    application: str | None
    rows_in: int | None

    def __repr__(self) -> str:
        return f"<PartitionStatus of {self._told()}>"

    def _told(self) -> str:
        return f"{self.partition}: {self.standing.value}, {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TableDetail:
    """A table, and each of its partitions in the order of their keys."""

    at: datetime
    status: TableStatus
    every: str | None
    """How far apart its partitions are; None for a table that no runs about partitions fill."""
    reads: tuple[str, ...]
    """The tables that it is made from."""
    partitions: tuple[PartitionStatus, ...]

    def __repr__(self) -> str:
        """With the newest partitions of which there is more to say than that they are published, and the commits about
        none that wait."""
        keyless = [each for each in self.status.waiting if each.partition is None]
        noted = [f"commit {each.id}: {each.state}, {each.reason or 'nobody has decided'}" for each in keyless]
        noted += [each._told() for each in self.partitions if each.standing is not Standing.PUBLISHED]
        more = [f"… of {len(noted):,}"] if len(noted) > MOST_ROWS else []
        return "\n  ".join((f"<TableDetail of {self.status._told()}", *noted[-MOST_ROWS:], *more)) + ">"

    def _repr_html_(self) -> str:
        names = ("partition", "standing", "why", "snapshot", "committed at", "commit")
        rows = (
            (each.partition, each.standing.value, each.why, each.snapshot, each.committed_at, each.commit)
            for each in reversed(self.partitions)
        )
        return html_table(f"{self.status._told()}, at {_moment(self.at)}", names, rows, len(self.partitions))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCheck:
    """What one check found in one commit."""

    name: str
    severity: str
    status: str
    row_count: int | None
    unexpected_count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCommit:
    """The newest verdict on a commit, check by check."""

    commit: UUID
    partition: str | None
    state: str
    snapshot: int | None
    gate: str
    outcome: str
    judged_at: datetime
    checks: tuple[JudgedCheck, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitAbout:
    """A commit about a partition, and what has become of it."""

    id: UUID
    kind: str
    state: str
    staged_at: datetime
    decided_at: datetime | None
    reason: str | None
    snapshot: int | None
    application: str | None
    version: int | None
    approved_by: str | None
    approval_reason: str | None
    discarded_by: str | None
    discard_reason: str | None
    discarded_at: datetime | None
    gate: str | None
    outcome: str | None
    summary: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_waiting(self) -> bool:
        return self.state in ("staged", "rejected") and self.discarded_by is None


def _moment(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="seconds")
