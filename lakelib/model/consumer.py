"""Frozen values of consumers: named positions in tables' histories, what each has not read yet, how one moves on."""

from dataclasses import field
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from lakelib.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerInfo:
    """A consumer as it stands."""

    table_id: int
    name: str
    position: int
    """All up to this snapshot was read; 0 is before the first."""
    keep_for: timedelta
    """How long what it has not read yet is kept from expiry."""
    created_at: datetime
    created_by: str
    advanced_at: datetime | None
    """None if it never has."""
    advanced_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far somebody is behind: by what a consumer has not read yet, or a view of a table does not show. Compactions
    bring nothing, and do not count."""

    snapshots: int
    rows: int
    """That commits brought, delete marks too."""
    age: timedelta
    """Of the oldest commit among them."""

    def __str__(self) -> str:
        snapshots = f"{self.snapshots:,} snapshot{'' if self.snapshots == 1 else 's'}"
        rows = f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
        return f"{snapshots}, {rows}, {timedelta(seconds=int(self.age.total_seconds()))}"


NO_LAG = Lag(snapshots=0, rows=0, age=timedelta(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStatus:
    """A consumer, and how far behind it is."""

    table: str
    name: str
    position: int
    head: int
    lag: Lag
    keep_for: timedelta
    holds: int
    """So many snapshots stay at least because of it."""
    created_at: datetime
    created_by: str
    advanced_at: datetime | None
    advanced_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """A consumer is to move on, from the position that was read."""

    table_id: int
    name: str
    from_id: int
    to_id: int
    backwards: bool = False
    """Whether it may move to an earlier position."""
    move: UUID = field(default_factory=uuid4)
    """Who asks again, since the reply was lost, is known by it."""
