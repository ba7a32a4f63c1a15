"""Snapshots: which one a reader means, and their history; tags, the names that pin them; which files bring one back.
One that has expired is not there any more."""

from datetime import UTC, datetime, timedelta

from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.queries import query
from lakelib.catalog.records import Row, snapshot_from_row
from lakelib.errors import ConflictError, ExpiredError, NotFoundError
from lakelib.model.positions import Ahead
from lakelib.model.rollback import MovedFile
from lakelib.model.table import Snapshot, Step, TableInfo
from lakelib.model.upkeep import Tag, TagEnd

_LOCK_PATIENCE_MS = 5000
"""How long a reader of this very moment waits for it to come, and for those who are publishing."""


def find_snapshot(catalog: Catalog, table_id: int, snapshot_id: int) -> Snapshot | None:
    return _kept(_one(catalog, "load_snapshot", {"table_id": table_id, "id": snapshot_id}))


def find_head(catalog: Catalog, table: TableInfo) -> Snapshot | None:
    """The table's head as it was loaded, also if another one has taken its place since and it has expired."""
    row = _one(catalog, "load_snapshot", {"table_id": table.id, "id": table.head_id})
    return None if row is None else snapshot_from_row(row)


def find_ever(catalog: Catalog, table_id: int, snapshot_id: int) -> Snapshot | None:
    """A snapshot, also if it has expired since."""
    row = _one(catalog, "load_snapshot", {"table_id": table_id, "id": snapshot_id})
    return None if row is None else snapshot_from_row(row)


def check_kept(catalog: Catalog, table: TableInfo, snapshot_id: int) -> None:
    """What was looked up of the snapshot until now was all there. Raises NotFoundError if it has expired meanwhile."""
    if snapshot_id and find_snapshot(catalog, table.id, snapshot_id) is None:
        raise missing_snapshot(catalog, table, snapshot_id)


def find_snapshot_at(catalog: Catalog, table_id: int, moment: datetime) -> Snapshot | None:
    """The newest snapshot committed at the moment or before. If that has expired there is none: an older one that is
    left is not what a reader of that moment has seen. Nor is there one at a moment to come, by the server's clock: it
    may be another one by then."""
    return _kept(_at_moment(catalog, table_id, moment))


def find_id_at(catalog: Catalog, table_id: int, moment: datetime) -> int | None:
    """The number of the newest snapshot at the moment, which may have expired; 0 where there was none yet, and None
    for a moment to come."""
    row = _at_moment(catalog, table_id, moment)
    if row is not None:
        return int(row["id"])
    return None if _is_to_come(catalog, moment) else 0


def list_steps(catalog: Catalog, table_id: int, first_id: int, last_id: int) -> tuple[Step, ...]:
    """The snapshots from one to another, in rising order, those too that have expired."""
    parameters = {"table_id": table_id, "first_id": first_id, "last_id": last_id}
    return tuple(Step(**row) for row in catalog.all("list_steps", parameters))


def list_ahead(catalog: Catalog, table_id: int, first_id: int, last_id: int, most: int) -> tuple[Ahead, ...]:
    """The first of the snapshots from one to another, in rising order, those too that have expired."""
    parameters = {"table_id": table_id, "first_id": first_id, "last_id": last_id, "most": most}
    return tuple(Ahead(**row) for row in catalog.all("list_ahead", parameters))


def find_loud_id(catalog: Catalog, table_id: int, last_id: int) -> int:
    """The newest snapshot up to that one which has changed rows; 0 if none has."""
    row = catalog.one("find_loud_snapshot", {"table_id": table_id, "last_id": last_id})
    return 0 if row is None else int(row["id"])


def find_age(catalog: Catalog, table_id: int, snapshot_id: int) -> timedelta:
    """How long ago it was committed, by the catalog's clock."""
    row = catalog.one("find_age", {"table_id": table_id, "id": snapshot_id})
    assert row is not None
    age: timedelta = row["age"]
    return age


def find_oldest_snapshot(catalog: Catalog, table_id: int) -> Snapshot | None:
    return _kept(_one(catalog, "find_oldest_snapshot", {"table_id": table_id}))


def find_tagged_snapshot(catalog: Catalog, table_id: int, tag: str) -> Snapshot | None:
    return _kept(_one(catalog, "find_tagged_snapshot", {"table_id": table_id, "name": tag}))


def find_latest_moment(catalog: Catalog, table_id: int) -> datetime | None:
    """Of all snapshots, which a clock that was ahead may have stamped with a moment to come."""
    row = catalog.one("find_latest_moment", {"table_id": table_id})
    return None if row is None else row["moment"]


def list_snapshots(catalog: Catalog, table_id: int) -> list[Snapshot]:
    """All snapshots, newest first."""
    rows = catalog.all("list_snapshots", {"table_id": table_id})
    return [snapshot_from_row(row) for row in rows]


def missing_snapshot(catalog: Catalog, table: TableInfo, snapshot_id: int) -> NotFoundError:
    """What to raise for a snapshot that is not there: it says whether it ever was."""
    row = _one(catalog, "load_snapshot", {"table_id": table.id, "id": snapshot_id}) if 0 < snapshot_id < 2**63 else None
    if row is not None and row["expired_at"] is not None:
        return _expired(
            f"Snapshot {snapshot_id} of {table.full_name} has expired", find_oldest_snapshot(catalog, table.id)
        )
    return NotFoundError(
        f"Table {table.full_name} has no snapshot {snapshot_id}.",
        kind="snapshot_not_found",
        remedy="history() lists the snapshots.",
    )


def missing_moment(catalog: Catalog, table: TableInfo, moment: datetime) -> NotFoundError:
    """What to raise for a moment without a snapshot: it says whether there ever was one, or may be one day."""
    oldest = find_oldest_snapshot(catalog, table.id)
    what = f"Table {table.full_name} has no snapshot at {moment.isoformat()}"
    if _is_to_come(catalog, moment):
        return NotFoundError(
            f"{what}: that is still to come, by the catalog's clock.",
            kind="moment_to_come",
            remedy="Ask for a moment that has passed, or for none: that is the newest snapshot.",
        )
    if _at_moment(catalog, table.id, moment) is not None:
        return _expired(f"{what}: that of the moment has expired", oldest)
    since = f"its oldest is of {oldest.committed_at.isoformat()}" if oldest else "it has none yet"
    return NotFoundError(f"{what}: {since}.", kind="snapshot_not_found", remedy="Ask for a later moment.")


def _is_to_come(catalog: Catalog, moment: datetime) -> bool:
    row = _one(catalog, "is_to_come", {"moment": moment})
    return row is not None and bool(row["is_to_come"])


def _expired(what: str, oldest: Snapshot | None) -> NotFoundError:
    left = f"; the oldest that is left is {oldest.id}, of {oldest.committed_at.isoformat()}" if oldest else ""
    return ExpiredError(
        f"{what}{left}.",
        remedy="history() lists the snapshots; a tag keeps one from expiring.",
    )


def _at_moment(catalog: Catalog, table_id: int, moment: datetime) -> Row | None:
    parameters = {"table_id": table_id, "moment": moment, "patience_ms": str(_LOCK_PATIENCE_MS)}
    return catalog.run(lambda db: db.execute(query("find_snapshot_at"), parameters).fetchone(), only_reads=True)


def _one(catalog: Catalog, name: str, parameters: dict[str, object]) -> Row | None:
    return catalog.one(name, parameters)


def _kept(row: Row | None) -> Snapshot | None:
    return None if row is None or row["expired_at"] is not None else snapshot_from_row(row)


def find_moved(catalog: Catalog, table_id: int, target: int) -> list[MovedFile]:
    """What it takes to get from the files that are live to those of a snapshot."""
    parameters = {"table_id": table_id, "target": target}
    return [MovedFile(**row) for row in catalog.all("find_moved", parameters)]


# Tags


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
