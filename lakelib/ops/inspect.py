"""Use cases: what a table consists of."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lakelib.catalog import files, snapshots, tables
from lakelib.model import sortable
from lakelib.model.files import DataFile, PartitionKey
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


class FileListing:
    """The live files of a snapshot. Iterating streams them: a listing of any length takes little memory."""

    def __init__(self, runtime: Runtime, table: TableInfo, snapshot_id: int) -> None:
        self._runtime = runtime
        self._query = files.FileQuery(table_id=table.id, snapshot_id=snapshot_id)

    def __len__(self) -> int:
        return files.count_files(self._runtime.catalog, self._query.table_id, self._query.snapshot_id)

    def __iter__(self) -> Iterator[DataFile]:
        with files.stream_files(self._runtime.catalog, self._query) as found:
            yield from found


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
