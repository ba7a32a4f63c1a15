"""Frozen values: which lake a catalog and a warehouse say they belong to."""

from datetime import datetime
from uuid import UUID

from lakelib.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Warehouse:
    """A warehouse as the catalog knows it. Each adoption raises its epoch and gives it a new token."""

    id: UUID
    uri: str
    """Where it was when it was bound: locations that begin so mean the place where it is now."""
    epoch: int
    token: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What the catalog says."""

    id: UUID
    epoch: int
    """Of the newest adoption, of whichever warehouse."""
    warehouses: tuple[Warehouse, ...]
    adopted_at: datetime | None = None
    adopted_by: str | None = None
    adoption_reason: str | None = None
    differs: str | None = None
    """What is not as it was when the catalog was bound to its server: a word of `lake.check_identity_v1`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What the warehouse's own note says."""

    lake_id: UUID
    warehouse_id: UUID
    epoch: int
    token: UUID
    uri: str
    """Where the warehouse was when the note was written."""
    folder: int | None
    """The number that the file system gives the warehouse's folder: it moves with it, and a copy has another one."""
    catalog: str
    """For people: where the catalog is."""
    embedded: str | None = None
    """The folder of an embedded catalog, relative to the warehouse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Why a lake is only read here."""

    kind: str
    """`lake_disowned` if another catalog has adopted the warehouse since, otherwise `identity_differs`."""
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WarehouseStanding:
    """How catalog and warehouse stand to each other."""

    identity: Identity
    marker: Marker | None = None
    difference: Difference | None = None
    """None for a lake that may be changed."""
