"""What every use case works with: the catalog, the storage, and how many threads it may use."""

from dataclasses import dataclass, field

from lakelib.catalog.connect import Catalog
from lakelib.catalog.leases import LeaseKeeper
from lakelib.ops.identity import Ownership
from lakelib.ops.known import KnownTables
from lakelib.ops.patience import Publishers
from lakelib.storage.filesystem import Storage


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
    publishers: Publishers = field(default_factory=Publishers)
    """Publishers of this process wait for each other here, not in the database."""
