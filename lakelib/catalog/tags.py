"""Tags: names that pin snapshots."""

from datetime import UTC

from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.queries import query
from lakelib.catalog.records import Row
from lakelib.catalog.snapshots import missing_snapshot
from lakelib.errors import ConflictError
from lakelib.model.table import TableInfo
from lakelib.model.upkeep import Tag, TagEnd


def set_tag(catalog: Catalog, table: TableInfo, name: str, snapshot_id: int, end: TagEnd) -> Tag:
    """The name pins the snapshot afterwards, until that end or a later one that it had. Raises ConflictError if it pins
    another one, NotFoundError if the snapshot is gone: a tag and an expiry that meet take turns."""
    parameters = {"table_id": table.id, "name": name, "snapshot_id": snapshot_id, "family": end.family}
    parameters |= {"keep": end.keep, "keep_last": end.keep_last}

    def work(db: Connection) -> Row | None:
        return (
            db.execute(query("set_tag"), parameters).fetchone() or db.execute(query("find_tag"), parameters).fetchone()
        )

    row = catalog.run(work)
    if row is None:
        raise missing_snapshot(catalog, table, snapshot_id)
    if row["snapshot_id"] != snapshot_id:
        raise ConflictError(
            f"The tag {name!r} of {table.full_name} is on snapshot {row['snapshot_id']}, not {snapshot_id}.",
            kind="tag_exists",
            remedy="A tag does not move: take another name, or delete the tag first.",
        )
    return _tag(row)


def list_tags(catalog: Catalog, table_id: int) -> list[Tag]:
    """Those of the newest snapshots first."""
    rows = catalog.all("list_tags", {"table_id": table_id})
    return [_tag(row) for row in rows]


def delete_tag(catalog: Catalog, table_id: int, name: str) -> bool:
    """The name is free afterwards; says whether there was such a tag."""
    parameters = {"table_id": table_id, "name": name}
    return catalog.one("delete_tag", parameters) is not None


def _tag(row: Row) -> Tag:
    until = row["until"]
    return Tag(
        name=row["name"],
        snapshot_id=row["snapshot_id"],
        created_at=row["created_at"].astimezone(UTC),
        until=None if until is None else until.astimezone(UTC),
        keep_last=row["keep_last"],
        family=row["family"],
    )
