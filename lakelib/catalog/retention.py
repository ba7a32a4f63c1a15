"""Retention: snapshots and commits expire, and the files that nothing needs any more enter the queue to be deleted. And
reclaiming: what is in that queue, dropped tables, and which files the catalog knows.

Work is done in short transactions over batches, each safe to repeat; killed between two of them, an expiry is finished
by the next one. Nothing here deletes a file.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.queries import query
from lakelib.catalog.records import Row
from lakelib.dataclass import dataclass
from lakelib.model.upkeep import Hold, KeptSnapshot, OpenCommit, Reach

_BATCH = 1000
_STREAM_ROWS = 5000
_RECLAIMED_AT_ONCE = 1000
_LOCK_PATIENCE_SECONDS = 5.0
"""For a table that others hold. A vacuum has other tables to go on with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a table keeps of its past, and what holds it, in one look."""

    now: datetime
    """The catalog's clock."""
    snapshots: tuple[KeptSnapshot, ...]
    """Oldest first."""
    holds: tuple[Hold, ...]
    """Tags whose time is not over, and leases."""
    reaches: tuple[Reach, ...]
    """Leases on ranges, and consumers."""
    open_commits: tuple[OpenCommit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedFiles:
    files: int = 0
    size_bytes: int = 0

    def plus(self, other: "QueuedFiles") -> "QueuedFiles":
        return QueuedFiles(files=self.files + other.files, size_bytes=self.size_bytes + other.size_bytes)


def load_past(catalog: Catalog, table_id: int) -> Past:
    table = {"table_id": table_id}

    def work(db: Connection) -> Past:
        clock = db.execute("select clock_timestamp() as now").fetchone()
        assert clock is not None
        return Past(
            now=clock["now"].astimezone(UTC),
            snapshots=tuple(KeptSnapshot(**row) for row in db.execute(query("list_kept_snapshots"), table)),
            holds=tuple(_hold(row) for row in db.execute(query("list_holds"), table)),
            reaches=tuple(_reach(row) for row in db.execute(query("list_reaches"), table)),
            open_commits=tuple(OpenCommit(**row) for row in db.execute(query("list_open_commits"), table)),
        )

    return catalog.run(work, only_reads=True)


def _hold(row: Row) -> Hold:
    moments = {name: row[name] and row[name].astimezone(UTC) for name in ("since", "until")}
    return Hold(**{**row, **moments})


def _reach(row: Row) -> Reach:
    own = {name: row[name] for name in ("last_id", "superseded_after")}
    return Reach(hold=_hold({name: value for name, value in row.items() if name not in own}), **own)


def list_ended_tags(catalog: Catalog, table_id: int) -> list[str]:
    """The tags whose time is over."""
    return [row["name"] for row in catalog.all("list_ended_tags", {"table_id": table_id})]


def expire_tags(catalog: Catalog, table_id: int) -> list[str]:
    """The tags whose time is over go; their names."""
    return [row["name"] for row in catalog.all("expire_tags", {"table_id": table_id})]


def count_spent_leases(catalog: Catalog, table_id: int) -> int:
    """How many leases have run out."""
    return catalog.do("list_spent_leases", {"table_id": table_id})


def drop_spent_leases(catalog: Catalog, table_id: int) -> int:
    """Removes the leases that have run out; how many."""
    return catalog.do("drop_spent_leases", {"table_id": table_id})


def expire_commits(catalog: Catalog, table_id: int, before: datetime) -> int:
    """Commits that are staged or rejected since a time before this one can no longer be published; how many. One that
    is just being published is left alone."""
    parameters = {"table_id": table_id, "before": before, "limit": _BATCH}
    expired = 0
    while found := catalog.do("expire_commits", parameters):
        expired += found
    return expired


def expire_snapshots(catalog: Catalog, table_id: int, ids: Sequence[int]) -> list[int]:
    """These snapshots expire, but for the head and those that something holds by now; the ids of those that did."""
    expired: list[int] = []
    for start in range(0, len(ids), _BATCH):
        batch = list(ids[start : start + _BATCH])
        expired += catalog.run(lambda db, batch=batch: _expire_batch(db, table_id, batch))  # type: ignore[misc]
    return expired


def _expire_batch(db: Connection, table_id: int, ids: list[int]) -> list[int]:
    return [row["id"] for row in db.execute(query("expire_snapshots"), {"table_id": table_id, "ids": ids})]


def queue_files(catalog: Catalog, table_id: int, grace: timedelta) -> QueuedFiles:
    """The files of expired commits, and those that no snapshot needs, may be deleted once the grace is over. What
    verdicts show of their rows is gone at once."""
    parameters = {"table_id": table_id, "grace": grace, "limit": _BATCH}
    catalog.do("forget_dependencies", parameters)
    queued = QueuedFiles()
    while (batch := _batch(catalog, "queue_files_of_commits", parameters))["gone"]:
        queued = queued.plus(_counted(batch))
    place: dict[str, Any] = {"after_snapshot": 0, "after_id": 0}
    while place["after_snapshot"] is not None:
        batch = _batch(catalog, "queue_removed_files", parameters | place)
        queued = queued.plus(_counted(batch))
        place = {"after_snapshot": batch["last_snapshot"], "after_id": batch["last_id"]}
    catalog.do("forget_samples", parameters)
    catalog.do("forget_masks", parameters)
    catalog.do("forget_shown", parameters)
    return queued


def measure_queue(
    catalog: Catalog, table_id: int, commit_ids: Sequence[UUID], is_needed: Callable[[int, int], bool]
) -> QueuedFiles:
    """What `queue_files` would find if these commits had expired, and if just the files were needed of which
    `is_needed` says so, given the snapshots that added and removed them."""
    parameters = {"table_id": table_id, "commit_ids": list(commit_ids)}
    measured = _counted(_batch(catalog, "measure_files_of_commits", parameters))
    with _streamed(catalog, parameters) as rows:
        for row in rows:
            lives = zip(row["added_snapshots"], row["removed_snapshots"], strict=True)
            if not any(is_needed(added, removed) for added, removed in lives):
                measured = measured.plus(QueuedFiles(files=1, size_bytes=row["size_bytes"]))
    return measured


@contextmanager
def _streamed(catalog: Catalog, parameters: dict[str, Any]) -> Iterator[Iterator[Row]]:
    with catalog.stream(query("list_removed_files"), parameters, rows_at_once=_STREAM_ROWS) as rows:
        yield rows


def _batch(catalog: Catalog, name: str, parameters: Mapping[str, Any]) -> Row:
    row = catalog.one(name, parameters)
    assert row is not None
    return row


def _counted(row: Row) -> QueuedFiles:
    return QueuedFiles(files=row["files"], size_bytes=row["size_bytes"])


# Files that are due


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
    parameters = {"after_id": after_id, "limit": _RECLAIMED_AT_ONCE}
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
    parameters = {"table_id": table_id, "limit": _RECLAIMED_AT_ONCE}
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
