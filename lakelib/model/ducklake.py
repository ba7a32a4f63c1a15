"""Frozen values: what DuckLake's views show of the lake."""

from lakelib.dataclass import dataclass


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
