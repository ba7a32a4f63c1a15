"""Frozen values: the views of rows and of changes, and how it is found out what has changed."""

from enum import Enum
from typing import TypeVar

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.files import DataFile, Partition, Split
from lakelib.model.text import choose_from

UPSERT, DELETE = "upsert", "delete"
"""What `_op` says."""

INSERT, UPDATE_BEFORE, UPDATE_AFTER = "insert", "update_before", "update_after"
"""What `_change` says, beside "delete"."""

CHANGE_COLUMN = "_change"

View = TypeVar("View", bound=Enum)


class ChangeView(Enum):
    ALL = "all"
    """Every row and every delete of each commit, in the order of commits."""
    LATEST = "latest"
    """One row a key, as it is in the end."""
    NET = "net"
    """What differs in the end, with the rows as they were before."""


class ScanView(Enum):
    MERGED = "merged"
    """Each key once, as it is."""
    READ_OPTIMIZED = "read_optimized"
    """Each key as the last compaction left it, or the first write where none has: what came since is not there."""
    UNMERGED = "unmerged"
    """All that the files hold: a row is there in each of its versions, and a delete beside what it deletes."""


def view_of(views: type[View], text: object) -> View:
    """Raises InvalidInputError for what is none."""
    names = [view.value for view in views]
    if not isinstance(text, str) or text not in names:
        raise InvalidInputError(f"view is {text!r}.", kind="invalid_view", remedy=choose_from("Views", text, names))
    return views(text)


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
    """The commit whose changes these are; where there are several, the last that took files away."""
    beside: tuple["ChangeSplit", ...] = ()
    """Those of other partitions, where a key may have come from one to another: told together."""

    @property
    def files(self) -> tuple[DataFile, ...]:
        """Each once."""
        own = (*self.fresh, *self.before, *self.after, *(file for each in self.beside for file in each.files))
        return tuple({file.id: file for file in own}.values())

    @property
    def whole(self) -> Split:
        """All that is looked at."""
        return Split(partition=self.partition, depth=self.depth, prefix=self.prefix, files=self.files)
