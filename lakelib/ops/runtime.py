"""What every use case works with: the catalog, the storage, and how many threads it may use."""

import time
from collections.abc import Mapping
from dataclasses import field
from typing import Any
from uuid import UUID

from lakelib.catalog.connect import Catalog
from lakelib.catalog.leases import LeaseKeeper
from lakelib.dataclass import dataclass
from lakelib.model.table import TableInfo
from lakelib.ops.identity import Ownership
from lakelib.ops.masks_known import KnownMasks
from lakelib.ops.patience import Publishers
from lakelib.storage.filesystem import Storage

_KNOWN_SECONDS = 60.0
"""The work counts as begun when the table was looked at: a vacuum since then costs it a second try."""
_MOST_KNOWN = 1000


class KnownTables:
    """Tables as this process has seen them last: small writes go by them, and save a question. The catalog says, when
    the commit is staged, if that is so no more; then the work is done again by what is so now.

    Safe to use from many threads, and in a forked child.
    """

    def __init__(self) -> None:
        self._tables: dict[int, tuple[float, TableInfo]] = {}

    def remember(self, table: TableInfo) -> None:
        if len(self._tables) >= _MOST_KNOWN:
            self._tables.clear()
        self._tables[table.id] = (time.monotonic(), table)

    def recall(self, table_id: int) -> TableInfo | None:
        """The table as it was at most a minute ago, unless what is written to it has to pass a gate, or goes by what
        its head has."""
        since, table = self._tables.get(table_id, (0.0, None))
        if (
            table is None
            or table.options.required_gate
            or table.options.cross_partition
            or time.monotonic() - since > _KNOWN_SECONDS
        ):
            return None
        return table

    def look_up(self, table_id: int) -> TableInfo | None:
        """The table as it was at most a minute ago, for what may be late."""
        since, table = self._tables.get(table_id, (0.0, None))
        return None if time.monotonic() - since > _KNOWN_SECONDS else table

    def forget(self, table_id: int) -> None:
        self._tables.pop(table_id, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    catalog: Catalog
    storage: Storage
    warehouse: str
    ownership: Ownership
    """Whether this catalog may change the warehouse."""
    threads: int
    """For work that keeps a processor busy."""
    read_threads: int
    """For reading: more than processors where most of a read is waiting for a remote store."""
    leases: LeaseKeeper = field(default_factory=LeaseKeeper)
    """Renews the leases of the reads that are under way."""
    known: KnownTables = field(default_factory=KnownTables)
    """Tables as they were a moment ago."""
    masks: KnownMasks = field(default_factory=KnownMasks)
    """Which rows of files are not seen, as reads of a moment ago have it."""
    told: dict[int, tuple[int, Any]] = field(default_factory=dict)
    """What Delta logs said of tables when this process last wrote to them: the version, and the files."""
    staged: Mapping[int, tuple[UUID, ...]] = field(default_factory=dict)
    """By table, what a transaction has staged of it so far: its statements see that as if it was published."""
    seen: dict[int, TableInfo] | None = None
    """By id, tables as statements of a transaction have found them first; None outside of one."""
    publishers: Publishers = field(default_factory=Publishers)
    """Publishers of this process wait for each other here, not in the database."""
    session: Any = None
    """The Spark session that carries queries out; None is this process."""

    def as_seen(self, table: TableInfo) -> TableInfo:
        """The table as the transaction goes by it: what one of its statements was made from another cannot take away
        in a later state."""
        return table if self.seen is None else self.seen.setdefault(table.id, table)
