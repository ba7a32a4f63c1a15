"""Snapshots: which one a reader means, their history, and leases on them."""

import os
import socket
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakelib.catalog.connect import Catalog
from lakelib.catalog.queries import query
from lakelib.catalog.rows import Row, snapshot_from_row
from lakelib.errors import NotFoundError, RetryableError
from lakelib.model.table import Snapshot, TableInfo

LEASE_DURATION = timedelta(minutes=15)


def find_snapshot(catalog: Catalog, table_id: int, snapshot_id: int) -> Snapshot | None:
    return _one(catalog, "load_snapshot", {"table_id": table_id, "id": snapshot_id})


def find_snapshot_at(catalog: Catalog, table_id: int, moment: datetime) -> Snapshot | None:
    """The newest snapshot committed at the moment or before."""
    return _one(catalog, "find_snapshot_at", {"table_id": table_id, "moment": moment})


def find_oldest_snapshot(catalog: Catalog, table_id: int) -> Snapshot | None:
    return _one(catalog, "find_oldest_snapshot", {"table_id": table_id})


def find_tagged_snapshot(catalog: Catalog, table_id: int, tag: str) -> Snapshot | None:
    return _one(catalog, "find_tagged_snapshot", {"table_id": table_id, "name": tag})


def list_snapshots(catalog: Catalog, table_id: int) -> list[Snapshot]:
    """All snapshots, newest first."""
    rows = catalog.run(lambda db: db.execute(query("list_snapshots"), {"table_id": table_id}).fetchall())
    return [snapshot_from_row(row) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A reader's hold on a snapshot: while it lasts, none of the snapshot's files is deleted."""

    id: uuid.UUID
    catalog: Catalog

    def renew(self) -> None:
        """Holds on for another full duration. Raises RetryableError if the hold had been lost."""
        parameters = {"id": self.id, "duration": LEASE_DURATION}
        if self.catalog.run(lambda db: db.execute(query("renew_lease"), parameters).fetchone()) is None:
            raise RetryableError(
                "The lease on the snapshot being read was lost: the reader paused for longer than it lasts.",
                kind="lease_lost",
                remedy="Read again.",
            )

    def release(self) -> None:
        self.catalog.run(lambda db: db.execute(query("release_lease"), {"id": self.id}))


def take_lease(catalog: Catalog, table: TableInfo, snapshot_id: int) -> Lease:
    """Holds the snapshot's files. Raises NotFoundError if the snapshot is gone."""
    lease = Lease(id=uuid.uuid4(), catalog=catalog)
    parameters = {
        "id": lease.id,
        "table_id": table.id,
        "snapshot_id": snapshot_id,
        "holder": f"{socket.gethostname()}/{os.getpid()}",
        "duration": LEASE_DURATION,
    }
    if catalog.run(lambda db: db.execute(query("take_lease"), parameters).fetchone()) is None:
        raise snapshot_missing(table.full_name, snapshot_id)
    return lease


def snapshot_missing(table_name: str, snapshot_id: int) -> NotFoundError:
    return NotFoundError(
        f"Table {table_name} has no snapshot {snapshot_id}.",
        kind="snapshot_not_found",
        remedy="history() lists the snapshots; older ones may have expired.",
    )


def _one(catalog: Catalog, name: str, parameters: dict[str, object]) -> Snapshot | None:
    row: Row | None = catalog.run(lambda db: db.execute(query(name), parameters).fetchone())
    return None if row is None else snapshot_from_row(row)
