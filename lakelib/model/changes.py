"""Frozen values: what has changed between two snapshots of a table, and how that is found out."""

from dataclasses import dataclass
from enum import Enum

from lakelib.model.files import DataFile, Partition

UPSERT, DELETE = "upsert", "delete"
"""What `_op` says."""

INSERT, UPDATE_BEFORE, UPDATE_AFTER = "insert", "update_before", "update_after"
"""What `_change` says, beside "delete"."""

CHANGE_COLUMN = "_change"


class ChangeView(Enum):
    ALL = "all"
    """Every row and every delete of each commit, in the order of commits."""
    LATEST = "latest"
    """One row a key, as it is in the end."""
    NET = "net"
    """What differs in the end, with the rows as they were before."""


class Way(Enum):
    FRESH = "rows of the commits' own files"
    COMPARE = "both snapshots compared"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSplit:
    """What one task reads: changes of the keys under one hash prefix of one partition."""

    way: Way
    partition: Partition
    depth: int = 0
    prefix: int = 0
    fresh: tuple[DataFile, ...] = ()
    """Files that commits of the range have added: of their keys alone something may have changed."""
    before: tuple[DataFile, ...] = ()
    """Those at the first snapshot, where they are looked at."""
    after: tuple[DataFile, ...] = ()
    """Those at the last snapshot, where they are looked at."""
    snapshot_id: int | None = None
    """The commit whose changes these are; where there are several, the last that took rows away without a mark."""

    @property
    def files(self) -> tuple[DataFile, ...]:
        """Each once."""
        return tuple({file.id: file for file in (*self.fresh, *self.before, *self.after)}.values())

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)
