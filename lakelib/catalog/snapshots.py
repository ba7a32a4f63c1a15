"""Snapshots: which one a reader means, and their history."""

from datetime import datetime

from lakelib.catalog.connect import Catalog
from lakelib.catalog.queries import query
from lakelib.catalog.rows import Row, snapshot_from_row
from lakelib.errors import NotFoundError
from lakelib.model.table import Snapshot


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


def snapshot_missing(table_name: str, snapshot_id: int) -> NotFoundError:
    return NotFoundError(
        f"Table {table_name} has no snapshot {snapshot_id}.",
        kind="snapshot_not_found",
        remedy="history() lists the snapshots; older ones may have expired.",
    )


def _one(catalog: Catalog, name: str, parameters: dict[str, object]) -> Snapshot | None:
    row: Row | None = catalog.run(lambda db: db.execute(query(name), parameters).fetchone())
    return None if row is None else snapshot_from_row(row)
