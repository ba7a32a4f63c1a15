"""What is told of snapshots to other systems, as the catalog knows it: to readers of a Delta log, and by DuckLake's
views."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from psycopg import conninfo
from psycopg.types.json import Jsonb

from lakelib.catalog.connect import Catalog
from lakelib.catalog.records import snapshot_from_row
from lakelib.dataclass import dataclass
from lakelib.model.exports import CommitFacts, NewShownMask, ShownMask

SCHEMA = "lake"
"""The views are among the catalog's tables: whoever may read it may read them."""


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


# DuckLake's views


_NOT_SAID = ("password", "sslpassword")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTable:
    name: str
    head_id: int
    has_key: bool
    mode: str
    snapshot_id: int | None


def list_shown_masks(catalog: Catalog, table_id: int) -> dict[int, ShownMask]:
    """The masks of the snapshot that was shown last, by file."""
    rows = catalog.all("list_shown_masks", {"table_id": table_id})
    return {row["file_id"]: ShownMask(id=row["id"], file_id=row["file_id"], made_of=row["made_of"]) for row in rows}


def list_unshown(catalog: Catalog, table_id: int) -> list[int]:
    """The snapshots behind the last one that is shown, the oldest first. Where none is, the head alone: what was before
    it is not shown any more."""
    return [row["id"] for row in catalog.all("list_unshown", {"table_id": table_id})]


def find_newest_shown(catalog: Catalog, table_id: int) -> int | None:
    row = catalog.one("find_newest_shown", {"table_id": table_id})
    return None if row is None else row["snapshot_id"]


def show(
    catalog: Catalog, table_id: int, snapshot_id: int, kept: Sequence[ShownMask], masks: Sequence[NewShownMask]
) -> bool:
    """The snapshot is shown with these masks and no others. False if it is shown already, or a later one is, or it has
    expired."""
    parameters = {
        "table_id": table_id,
        "snapshot_id": snapshot_id,
        "kept": [each.id for each in kept],
        "masks": Jsonb([asdict(each) for each in masks]),
    }
    row = catalog.one("show", parameters)
    return row is not None and bool(row["is_shown"])


def list_shown_tables(catalog: Catalog) -> list[ShownTable]:
    return [ShownTable(**row) for row in catalog.all("list_shown_tables")]


def attach_target(url: str) -> str:
    """The catalog's address as DuckLake takes it, without what is secret."""
    parts = conninfo.conninfo_to_dict(url)
    return conninfo.make_conninfo("", **{name: value for name, value in parts.items() if name not in _NOT_SAID})
