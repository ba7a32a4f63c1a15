"""Frozen values: how a staged commit may change, and what can come of staging, amending and publishing it.

Each answer is one of a closed set of types. Callers match; `ops.refusals` makes exceptions of what they do not handle.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

from lakelib.dataclass import dataclass
from lakelib.model.files import NewFile
from lakelib.model.positions import ReadRange
from lakelib.model.table import CommitKind, CommitState, KeysLooked, ReadScope, Snapshot, TableRef


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo:
    """A commit as it stands."""

    id: UUID
    table: TableRef
    kind: CommitKind
    state: CommitState
    snapshot_id: int | None
    """What it became, if it was published."""
    reason: str | None
    """Why it was rejected, or has expired."""
    application: str | None
    version: int | None
    amendment: int
    """So many times it was amended."""
    schema_id: int
    """That its files are written in."""
    new_schema_id: int | None
    """The schema that it gives the table, if it gives it another one."""
    keys: KeysLooked | None = None
    """How far its keys were looked for in other partitions."""
    summary: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CommitSummary:
    """A commit as it stands, for people."""

    id: UUID
    table: str
    kind: str
    state: str
    staged_at: datetime
    decided_at: datetime | None = field(repr=False)
    reason: str | None
    """Why it was rejected, or came to its end otherwise."""
    gate: str | None
    outcome: str | None
    """Of its newest verdict, by that gate: "accept", "warn", "reject" or "errored"."""
    base_snapshot: int = field(repr=False)
    head_snapshot: int = field(repr=False)
    """The table's head at this moment: what is above the base has come since."""
    snapshot: int | None
    """What it became."""
    application: str | None
    version: int | None
    approved_by: str | None
    approval_reason: str | None = field(repr=False)
    summary: Mapping[str, Any] = field(repr=False)
    properties: Mapping[str, str] = field(repr=False)

    def __repr__(self) -> str:
        judged = f", {self.outcome} by gate {self.gate}" if self.outcome else ""
        became = f", snapshot {self.snapshot}" if self.snapshot else ""
        return f"<CommitSummary {self.id}: {self.state} {self.kind} of {self.table}{judged}{became}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """How a staged commit changes."""

    commit_id: UUID
    number: int
    """The first amendment is 1: one that was made already is not made again."""
    began_at: datetime
    """No added file is older, by the catalog's clock."""
    base_snapshot_id: int | None = None
    """The head that it is made from now; None if that stays."""
    files: tuple[NewFile, ...] = ()
    removed_file_ids: tuple[int, ...] = ()
    withdrawn_paths: tuple[str, ...] = ()
    """Files that it adds no more."""
    withdrawn_file_ids: tuple[int, ...] = ()
    """Files that it takes out no more."""
    read_scope: ReadScope
    keys: KeysLooked | None = None
    """How far its keys were looked for in other partitions; alone it spoils no verdict."""
    keys_beneath: tuple[UUID, ...] = ()
    """Other staged commits among whose rows they were, too: published before it."""


class Reason(Enum):
    """What made a commit impossible. The values are kinds of errors."""

    SCHEMA_CHANGED = "schema_changed"
    INPUT_CLAIMED = "input_claimed"
    INPUT_GONE = "input_gone"
    ROWS_ADDED = "rows_added"
    ROWS_REMOVED = "rows_removed"
    ROLLED_BACK = "rolled_back"
    KEYS_ADDED = "keys_added"
    """Of a table in which a key is in one partition: rows have come in which its keys were not looked for."""
    KEYS_LOST = "keys_lost"
    """And rows are gone, or back, in which they were."""
    VERSION_ORDER = "version_order"


class Refusal(Enum):
    """Why a gate, or a person, does not let a commit through. The values are kinds of errors."""

    REJECTED = "commit_rejected"
    VERDICT_MISSING = "verdict_missing"
    VERDICT_OF_ANOTHER_SUITE = "verdict_of_another_suite"
    """To judge with the required suite resolves it."""
    VERDICT_NOT_PASSED = "verdict_not_passed"


class Fence(Enum):
    """Why a commit counts no more."""

    ENDED = "ended"
    PUBLISHED = "published"
    """Another attempt has published the same work."""
    NEWER = "newer"
    """A newer attempt at the same work stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """The commit waits to be published."""

    commit_id: UUID
    ahead: int = 0
    """How many are to be alone before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The commit is a snapshot, now or since earlier."""

    snapshot: Snapshot
    table_id: int
    leaves_files: bool = False
    """Partitions that were marked done got other rows now, and their `_SUCCESS` files are still to be deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The commit's work was done before: by the commit whose snapshot this is. Its own rows are in no snapshot."""

    snapshot: Snapshot
    table_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """All commits are published, in the order in which they were named."""

    commits: tuple[Published | Replayed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The commit that could not be published, as it stands."""

    commit_id: UUID
    table_name: str
    state: CommitState
    reason: str | None
    """Why it was rejected, or has expired."""
    base_id: int
    head_id: int
    amendment: int
    follows_others: bool = False
    """Commits of the same transaction, to the same table, come before it. They were undone with it: `head_id` is what
    everybody sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Others have changed what the commit depends on."""

    about: About
    reasons: tuple[Reason, ...]
    """All that stands in its way."""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """Rows have changed that a verdict rests on: to judge again resolves it."""

    about: About
    gate: str
    judged_at: int
    """The head that it was judged at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A gate or a person does not let the commit through."""

    about: About
    refusal: Refusal
    gate: str | None = None
    verdict: str | None = None
    suite: str | None = None
    """Which one is required, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """The commit counts no more."""

    about: About
    fence: Fence
    newer_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """A table was locked, or others are to be alone before. Nothing was changed; it passes."""

    while_staging: bool = False
    """What is held is not the table but what staging waits for, such as an expiry."""
    ahead: int = 0
    """How many are to be alone before."""
    needs_turn: bool = False
    """It changes faster than can be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityDiffers:
    """The catalog is not what the client has seen: it was adopted, or is a copy, or on another server."""

    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMissing:
    commit_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMissing:
    """The table was dropped."""

    name: str | None = None


class Standstill(Enum):
    """Why a consumer does not move. The values are kinds of errors."""

    MISSING = "consumer_not_found"
    MOVED = "consumer_moved"
    """Somebody else has moved it since it was read."""
    BEYOND_HEAD = "consumer_beyond_head"
    BACKWARDS = "consumer_backwards"
    PAST_EXPIRED = "consumer_past_expired"
    """The snapshot to which it is to go back has expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAdvanced:
    """A consumer that was to move cannot, so nothing was published."""

    why: Standstill
    consumer: str
    table_name: str | None
    """None if that is gone."""
    position: int | None
    """Where it stands, if it is there."""
    from_id: int
    to_id: int
    head_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeOfChanges:
    """Commits were made of changes of tables, whose consumers are to move with them. Nothing was published yet."""

    ranges: Mapping[UUID, tuple[ReadRange, ...]]
    """By those that are not published, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChanged:
    """What the client remembered of the table is so no more: it has to look again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesReclaimed:
    """The work took longer than vacuum's grace: files of it may be gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastExpired:
    """What the commit has to be compared with has expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputGone:
    """Files that the commit was to take out were removed while it was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amended:
    """The commit is what the amendment made of it; verdicts on what it was are stale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The commit is not staged any more."""


NotStaged = TableMissing | FilesReclaimed | PastExpired | InputGone
NotPublished = (
    Conflict | Stale | Rejected | Fenced | Busy | IdentityDiffers | CommitMissing | TableMissing | NotAdvanced
)
StageOutcome = Staged | Busy | NotStaged
PublishOutcome = Done | NotPublished
CommitOutcome = Done | NotPublished | NotStaged | TableChanged
AmendOutcome = Amended | Ended | Busy | FilesReclaimed | PastExpired | InputGone
