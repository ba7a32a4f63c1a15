"""Frozen values: what a Hive metastore is told of a table, and what came of it."""

from collections.abc import Mapping

from lakelib.dataclass import dataclass
from lakelib.model.schema import Column


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
