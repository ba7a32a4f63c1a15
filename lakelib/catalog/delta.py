"""What a Delta log tells of snapshots, as the catalog knows it."""

from collections.abc import Collection
from datetime import UTC, datetime

from lakelib.catalog.connect import Catalog
from lakelib.catalog.records import snapshot_from_row
from lakelib.dataclass import dataclass
from lakelib.model.told import CommitFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an application had come, and since when."""

    application: str
    version: int
    committed_at: datetime


def list_facts(catalog: Catalog, table_id: int, first_id: int, last_id: int) -> dict[int, CommitFacts]:
    """The snapshots from one to another by number, expired or not."""
    parameters = {"table_id": table_id, "first_id": first_id, "last_id": last_id}
    return {
        row["id"]: CommitFacts(
            snapshot=snapshot_from_row(row),
            is_kept=row["expired_at"] is None,
            application=row["application"],
            application_version=row["application_version"],
            verdicts=row["verdicts"],
        )
        for row in catalog.all("list_told_snapshots", parameters)
    }


def find_first_kept(catalog: Catalog, table_id: int) -> int:
    """The snapshot from which on none has expired."""
    row = catalog.one("find_first_kept", {"table_id": table_id})
    assert row is not None
    return int(row["id"])


def list_stored_schemas(catalog: Catalog, table_id: int, snapshot_id: int) -> set[int]:
    """The versions of the schema that the files of a snapshot were written with."""
    rows = catalog.all("list_stored_schemas", {"table_id": table_id, "snapshot_id": snapshot_id})
    return {row["id"] for row in rows}


def list_applications(catalog: Catalog, table_id: int, snapshot_id: int) -> list[Progress]:
    rows = catalog.all("list_applications", {"table_id": table_id, "snapshot_id": snapshot_id})
    return [
        Progress(
            application=row["application"], version=row["version"], committed_at=row["committed_at"].astimezone(UTC)
        )
        for row in rows
    ]


def list_moments(catalog: Catalog, table_id: int, ids: Collection[int]) -> dict[int, datetime]:
    """When these snapshots were committed."""
    rows = catalog.all("list_moments", {"table_id": table_id, "ids": sorted(ids)})
    return {row["id"]: row["committed_at"].astimezone(UTC) for row in rows}
