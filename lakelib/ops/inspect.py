"""Use cases: what a table consists of."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lakelib.catalog import files, snapshots, tables
from lakelib.model import sortable
from lakelib.model.files import PartitionKey
from lakelib.model.table import Snapshot, TableInfo
from lakelib.ops.read import At, resolve_snapshot
from lakelib.ops.runtime import Runtime
from lakelib.rows.values import python_value


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSummary:
    """A partition at a snapshot. `stored_rows` counts rows of all its files: superseded ones and delete marks too."""

    values: dict[str, Any]
    path: str
    files: int
    stored_rows: int
    size_bytes: int
    newest_snapshot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSummary:
    """A live file. `path` is relative to the table's location; the keys are those whose hash begins with `prefix`."""

    path: str
    partition: dict[str, Any]
    row_count: int
    delete_count: int
    size_bytes: int
    depth: int
    prefix: int
    level: int
    added_snapshot: int


class FileListing:
    """The live files of a snapshot. Iterating streams them: a listing of any length takes little memory."""

    def __init__(self, runtime: Runtime, table: TableInfo, snapshot_id: int) -> None:
        self._runtime = runtime
        self._table = table
        self._snapshot_id = snapshot_id

    def __len__(self) -> int:
        return files.count_files(self._runtime.catalog, self._table.id, self._snapshot_id)

    def __iter__(self) -> Iterator[FileSummary]:
        with files.stream_files(self._runtime.catalog, self._table.id, self._snapshot_id) as rows:
            for row in rows:
                yield FileSummary(
                    path=row["path"],
                    partition=_values(self._table, tuple(row["key"])),
                    row_count=row["row_count"],
                    delete_count=row["delete_count"],
                    size_bytes=row["size_bytes"],
                    depth=row["depth"],
                    prefix=row["prefix"],
                    level=row["level"],
                    added_snapshot=row["added_snapshot"],
                )

    def __repr__(self) -> str:
        return f"<{len(self)} files of {self._table.full_name} at snapshot {self._snapshot_id}>"


def list_files(runtime: Runtime, table: TableInfo, at: At) -> FileListing:
    snapshot = resolve_snapshot(runtime, table, at)
    return FileListing(runtime, table, snapshot.id if snapshot else 0)


def list_partitions(runtime: Runtime, table: TableInfo, at: At) -> list[PartitionSummary]:
    """One entry a partition that has files, in the order of their values."""
    snapshot = resolve_snapshot(runtime, table, at)
    rows = files.summarise_partitions(runtime.catalog, table.id, snapshot.id if snapshot else 0)
    return [
        PartitionSummary(
            values=_values(table, tuple(row["key"])),
            path=row["path"],
            files=row["files"],
            stored_rows=row["stored_rows"],
            size_bytes=row["size_bytes"],
            newest_snapshot=row["newest_snapshot"],
        )
        for row in rows
    ]


def list_history(runtime: Runtime, table: TableInfo) -> list[Snapshot]:
    return snapshots.list_snapshots(runtime.catalog, table.id)


def reload(runtime: Runtime, handle: TableInfo) -> TableInfo:
    """The table at its head. Raises NotFoundError once it was dropped."""
    return tables.load_table(runtime.catalog, handle.id, handle.full_name)


def _values(table: TableInfo, key: PartitionKey) -> dict[str, Any]:
    pairs = zip(table.partition_by, key, strict=True)
    return {
        column.name: None if part is None else python_value(column.type, sortable.decode(column.type, part))
        for column, part in pairs
    }
