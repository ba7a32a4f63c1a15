"""Frozen values: what a snapshot did, as it is told to other systems."""

from collections.abc import Mapping

from lakelib.dataclass import dataclass
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
