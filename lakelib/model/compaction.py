"""Frozen values: what a compaction did."""

from dataclasses import dataclass

from lakelib.model.table import Snapshot


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
        skipped = f"; {_counted(self.units_skipped, 'unit')} skipped, as writers are at work there"
        tail = skipped if self.units_skipped else ""
        if not self.snapshots:
            return f"nothing to compact in {self.table}{tail}"
        return (
            f"compacted {self.table}: {_counted(self.files_before, 'file')} ({self.bytes_before / 1e6:,.1f} MB,"
            f" {_counted(self.runs_before, 'run')}) became {self.files_after:,} ({self.bytes_after / 1e6:,.1f} MB,"
            f" {_counted(self.runs_after, 'run')}) in {_counted(self.partitions, 'partition')};"
            f" {_counted(self.rows_before - self.rows_after, 'row')} dropped; {self.seconds:.1f} s{tail}"
        )

    def __repr__(self) -> str:
        return f"<CompactionResult: {self}>"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
