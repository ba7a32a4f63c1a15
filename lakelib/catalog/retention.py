"""Retention: snapshots and commits expire, and the files that nothing needs any more enter the queue to be deleted.

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
