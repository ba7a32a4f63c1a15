"""Reclaiming: the queue of files to be deleted, dropped tables, and which files the catalog knows."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from lakelib.catalog.connect import Catalog
from lakelib.catalog.queries import query
from lakelib.dataclass import dataclass

_STREAM_ROWS = 5000
_BATCH = 1000
_LOCK_PATIENCE_SECONDS = 5.0
"""For a table that others hold. A vacuum has other tables to go on with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueFile:
    """A file that nothing needs any more."""

    id: int
    table_id: int
    path: str
    size_bytes: int
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a table's files are, dropped or not."""

    id: int
    name: str
    location: str
    dropped_at: datetime | None
    is_due: bool | None
    """Of a dropped table: whether its files may go."""


def load_places(catalog: Catalog, dropped_before: datetime) -> list[Place]:
    """All tables. Those that were dropped before the time are due."""
    rows = catalog.all("list_locations", {"dropped_before": dropped_before})
    return [Place(**row) for row in rows]


def load_now(catalog: Catalog) -> datetime:
    """The catalog's clock."""
    row = catalog.run(lambda db: db.execute("select clock_timestamp() as now").fetchone())
    assert row is not None
    now: datetime = row["now"]
    return now.astimezone(UTC)


def load_due_files(catalog: Catalog, after_id: int) -> list[DueFile]:
    """The next files of the queue that may be deleted now; none at its end."""
    parameters = {"after_id": after_id, "limit": _BATCH}
    return [DueFile(**row) for row in catalog.all("list_due_files", parameters)]


def forget_deleted(catalog: Catalog, ids: Sequence[int]) -> None:
    """These files are deleted, and leave the queue."""
    catalog.do("forget_deleted_files", {"ids": list(ids)})


def count_waiting(catalog: Catalog) -> int:
    row = catalog.one("count_waiting_files")
    return 0 if row is None else int(row["files"])


def announce_search(catalog: Catalog, table_id: int, before: datetime) -> None:
    """From now on no commit is staged whose files may be older than this. What was being staged, is.

    Whoever stages waits for the second transaction and then sees the first. They are two, lest publishers wait for
    whoever stages. Raises CatalogBusyError if others hold the table for too long.
    """
    parameters = {"table_id": table_id, "before": before}
    for step in (query("mark_orphans"), query("await_stagings")):
        catalog.run(lambda db, step=step: db.execute(step, parameters), lock_patience_seconds=_LOCK_PATIENCE_SECONDS)  # type: ignore[misc]


def find_unknown(catalog: Catalog, table_id: int, paths: Sequence[str]) -> set[str]:
    """Those of the paths that are neither a file of a commit, whatever its state, nor in the queue."""
    parameters = {"table_id": table_id, "paths": list(paths)}
    return {row["path"] for row in catalog.all("find_unknown_files", parameters)}


def is_read(catalog: Catalog, table_id: int) -> bool:
    """Whether somebody holds a lease on a snapshot of the table."""
    parameters = {"table_id": table_id}
    return catalog.one("find_live_lease", parameters) is not None


def retire_dropped(catalog: Catalog, table_id: int) -> int:
    """All files of a dropped table enter the queue, due at once, unless somebody still reads it; how many. Safe to
    repeat. Raises CatalogBusyError if others hold it for too long."""
    parameters = {"table_id": table_id, "limit": _BATCH}
    retire = query("retire_dropped")
    catalog.run(lambda db: db.execute(retire, parameters), lock_patience_seconds=_LOCK_PATIENCE_SECONDS)
    queued = 0
    while files := _queue_some(catalog, parameters):
        queued += files
    return queued


def forget_dropped(catalog: Catalog, table_id: int) -> None:
    """Nothing in the catalog names a dropped table any more, if it has no files."""
    catalog.do("forget_dropped", {"table_id": table_id})


def _queue_some(catalog: Catalog, parameters: dict[str, int]) -> int:
    row = catalog.one("queue_files_of_dropped", parameters)
    assert row is not None
    return int(row["files"])


@contextmanager
def stream_files_of_table(catalog: Catalog, table_id: int) -> Iterator[Iterator[tuple[str, int]]]:
    """Path and size of every file that the catalog knows of the table."""
    parameters = {"table_id": table_id}
    with catalog.stream(query("list_files_of_table"), parameters, rows_at_once=_STREAM_ROWS) as rows:
        yield ((row["path"], row["size_bytes"]) for row in rows)
