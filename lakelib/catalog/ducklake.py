"""What DuckLake's views show: which snapshots of tables with a key, and their masks."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from psycopg import conninfo
from psycopg.types.json import Jsonb

from lakelib.catalog.connect import Catalog
from lakelib.model.told import NewShownMask, ShownMask

SCHEMA = "lake"
"""The views are among the catalog's tables: whoever may read it may read them."""

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


def list_tables(catalog: Catalog) -> list[ShownTable]:
    return [ShownTable(**row) for row in catalog.all("list_shown_tables")]


def attach_target(url: str) -> str:
    """The catalog's address as DuckLake takes it, without what is secret."""
    parts = conninfo.conninfo_to_dict(url)
    return conninfo.make_conninfo("", **{name: value for name, value in parts.items() if name not in _NOT_SAID})
