"""Frozen values: what a rollback changes."""

from typing import Any

from lakelib.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedFile:
    """A file that a rollback brings back, or takes out."""

    path: str
    partition_id: int
    row_count: int
    delete_count: int
    size_bytes: int
    is_restored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackPlan:
    """What bringing a table back to a snapshot would change. Rows are those of files: superseded ones, too, where the
    table has a primary key."""

    table: str
    to: int
    """The snapshot."""
    head: int
    """The one that it would follow."""
    files_restored: int
    files_removed: int
    rows_restored: int
    rows_removed: int
    partitions: tuple[dict[str, Any], ...]
    """The values of those whose files would be others, in their order."""

    def __repr__(self) -> str:
        return (
            f"<RollbackPlan of {self.table} from snapshot {self.head} to {self.to}: {self.files_restored:,} files"
            f" ({self.rows_restored:,} rows) come back, {self.files_removed:,} ({self.rows_removed:,} rows) go,"
            f" in {len(self.partitions):,} partitions>"
        )
