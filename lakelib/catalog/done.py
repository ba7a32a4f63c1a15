"""Done partitions: the marks that downstream goes by. Publishing other rows resets a mark in its own transaction."""

from collections.abc import Sequence
from datetime import UTC, datetime

from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.queries import query
from lakelib.catalog.records import Row
from lakelib.catalog.tables import table_missing
from lakelib.dataclass import dataclass
from lakelib.model.files import PartitionKey
from lakelib.model.table import TableInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A partition's mark as the catalog has it."""

    table_id: int
    table_name: str
    location: str
    partition_id: int
    key: PartitionKey
    path: str
    snapshot_id: int
    """The head when it was marked; 0 for none."""
    created_at: datetime
    modified_at: datetime
    success_file: bool
    """Whether there is a file in the partition's folder, or may still be one."""
    reset_at: datetime | None


def mark_partition(catalog: Catalog, table: TableInfo, key: PartitionKey, path: str, *, success_file: bool) -> Mark:
    """The partition is done as of the table's head. One that has no rows comes into being.

    No publish to the table comes in between: what is published later resets the mark. Raises NotFoundError once the
    table was dropped.
    """

    def work(db: Connection) -> Mark:
        place = {"table_id": table.id, "key": list(key), "path": path, "success_file": success_file}
        if db.execute(query("mark_partition"), place).fetchone() is None:
            raise table_missing(table.full_name)
        return _from_row(_one(db.execute(query("find_mark"), place).fetchone()))

    return catalog.run(work)


def find_mark(catalog: Catalog, table_id: int, key: PartitionKey) -> Mark | None:
    parameters = {"table_id": table_id, "key": list(key)}
    row = catalog.one("find_mark", parameters)
    return None if row is None else _from_row(row)


def load_mark(catalog: Catalog, table_id: int, partition_id: int) -> Mark:
    """A mark, which never goes away: it is reset at most."""
    parameters = {"table_id": table_id, "partition_id": partition_id}
    return _from_row(_one(catalog.one("load_mark", parameters)))


def list_marks(catalog: Catalog, table_id: int, *, with_reset: bool) -> list[Mark]:
    """A table's marks in the order of their partitions."""
    parameters = {"table_id": table_id, "with_reset": with_reset}
    rows = catalog.all("list_marks", parameters)
    return [_from_row(row) for row in rows]


def list_reset_by(catalog: Catalog, table_id: int, snapshot_id: int) -> list[Mark]:
    """The marks that the snapshot was the last to take back, made again since or not."""
    rows = catalog.all("list_marks_reset_by", {"table_id": table_id, "snapshot_id": snapshot_id})
    return [_from_row(row) for row in rows]


def list_outdated_files(catalog: Catalog, table_id: int | None) -> Sequence[tuple[int, int]]:
    """Table and partition ids of the marks that were reset and whose files may still be there."""
    rows = catalog.all("list_outdated_files", {"table_id": table_id})
    return [(row["table_id"], row["partition_id"]) for row in rows]


def reset_dropped(catalog: Catalog) -> None:
    """The marks of tables that were dropped are reset."""
    catalog.do("reset_marks_of_dropped")


def forget_success_file(catalog: Catalog, mark: Mark) -> bool:
    """The file of a mark that was reset is gone; False if the partition was marked again meanwhile."""
    parameters = {"table_id": mark.table_id, "partition_id": mark.partition_id, "modified_at": mark.modified_at}
    return catalog.one("forget_success_file", parameters) is not None


def _one(row: Row | None) -> Row:
    assert row is not None
    return row


def _from_row(row: Row) -> Mark:
    reset_at = row["reset_at"]
    return Mark(
        table_id=row["table_id"],
        table_name=row["table_name"],
        location=row["location"],
        partition_id=row["partition_id"],
        key=tuple(row["key"]),
        path=row["path"],
        snapshot_id=row["snapshot_id"],
        created_at=row["created_at"].astimezone(UTC),
        modified_at=row["modified_at"].astimezone(UTC),
        success_file=row["success_file"],
        reset_at=None if reset_at is None else reset_at.astimezone(UTC),
    )
