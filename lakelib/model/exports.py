"""Frozen values: what is told to other systems: of a snapshot to those that read a Delta log, of the lake to DuckDB, of
a table to a Hive metastore."""

from collections.abc import Mapping

from lakelib.dataclass import dataclass
from lakelib.model.schema import Column
from lakelib.model.table import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFacts:
    """A snapshot, with what was said when its commit was published."""

    snapshot: Snapshot
    is_kept: bool
    """False once it has expired."""
    application: str | None = None
    application_version: int | None = None
    verdicts: Mapping[str, str] | None = None
    """What each gate has found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaExport:
    """What an export has written to a table's Delta log, and how far the log has come."""

    table: str
    mode: str
    """"head", or "compacted"."""
    version: int | None
    """The newest of the log; None before the first."""
    head_version: int | None
    """What the table's head is, or will be."""
    written: int
    """Versions that this export has written."""
    skipped: int = 0
    """Versions that nothing tells any more: the log has none of them."""
    checkpoint: int | None = None
    """The version of a checkpoint that this export has written."""
    deleted: int = 0
    """Files of the log that were over their time."""
    waits_for: str | None = None
    """Why the head cannot be told of yet; None if it is, or there is more to do."""

    @property
    def is_complete(self) -> bool:
        return self.head_version is None or (self.version is not None and self.version >= self.head_version)

    def __str__(self) -> str:
        if self.head_version is None:
            return f"{self.table}: no snapshot to tell of yet"
        at = "no version" if self.version is None else f"version {self.version:,}"
        said = f"{self.table}: {self.written:,} written, the Delta log is at {at} of {self.head_version:,}"
        skipped = f"; {self.skipped:,} versions that have expired are left out" if self.skipped else ""
        return said + skipped + (f"; {self.waits_for}" if self.waits_for else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMask:
    """A mask that the last shown snapshot has, as a file that DuckDB reads."""

    id: int
    file_id: int
    made_of: str
    """Which mask it is: those of one name hide the same rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewShownMask:
    """A mask that no snapshot has shown yet, as a file that DuckDB reads, below the table's location."""

    file_id: int
    made_of: str
    path: str
    size_bytes: int
    row_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckLakeTable:
    """How far a table is to be seen by DuckDB."""

    name: str
    snapshot: int | None
    """The newest that is shown; None for a table that is not there."""
    head: int
    remedy: str | None = None
    """What there is to do; None if the head is shown."""

    def __str__(self) -> str:
        if self.remedy is None:
            return f"{self.name}: snapshot {self.snapshot:,}" if self.snapshot else f"{self.name}: no snapshot yet"
        shown = (
            "is not shown" if self.snapshot is None else f"is shown up to snapshot {self.snapshot:,} of {self.head:,}"
        )
        return f"{self.name}: {shown}; {self.remedy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckLake:
    """The lake as DuckDB attaches it."""

    attach: str
    """The statement. It has no password: PostgreSQL's own ways give it (PGPASSWORD, ~/.pgpass)."""
    tables: tuple[DuckLakeTable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckLakeShow:
    """What was done for a table to be shown."""

    table: str
    shown: int
    """Snapshots that are shown since."""
    snapshot: int | None
    """The newest that is shown."""
    head: int

    @property
    def is_complete(self) -> bool:
        return self.head == 0 or self.snapshot == self.head

    def __str__(self) -> str:
        if self.head == 0:
            return f"{self.table}: no snapshot to show yet"
        at = "none is" if self.snapshot is None else f"the newest is {self.snapshot:,} of {self.head:,}"
        return f"{self.table}: {self.shown:,} snapshots are shown that were not, {at}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewsFile:
    """A DuckDB file that was written, with a view of each table that has a Delta log."""

    path: str
    views: tuple[str, ...]
    """The tables that it has."""
    left_out: tuple[str, ...]
    """Those that have no log, or no snapshot yet."""

    def __str__(self) -> str:
        return f"{self.path} has {', '.join(self.views)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HiveTable:
    name: str
    """Namespace and name in the lake."""
    location: str
    columns: tuple[Column, ...]
    """Those that are not in the folders' names."""
    partition_by: tuple[Column, ...]
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class HivePartition:
    path: str
    values: tuple[str, ...]
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPartition:
    path: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HiveResult:
    """What a metastore was told of a table."""

    table: str
    metastore: str
    database: str
    name: str
    """Of the table there."""
    dry_run: bool
    is_new: bool
    """Whether the table is, or was, not there."""
    partitions: int
    """How many were looked at."""
    told: tuple[str, ...]
    """The folders of those that the metastore did not know, or knew otherwise."""
    dropped: tuple[str, ...]
    """The values of those that the table has no more."""
    at_work: int
    """How many were left out, for rows have come to them a short while ago."""
    failed: tuple[FailedPartition, ...]
    """Those that were not told. Each is tried again by the next report."""
    seconds: float

    def __repr__(self) -> str:
        failed = f", {len(self.failed):,} failed" if self.failed else ""
        return f"<HiveResult {self.table}: {len(self.told):,} of {self.partitions:,} partitions told{failed}>"
