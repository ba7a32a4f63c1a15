"""Use case: which partitions a snapshot has touched, and whether one that an overwrite replaced came out the same.

The catalog knows which partitions got files or lost some. An overwrite replaces partitions with rows that may be those
that were there: of such a partition both sides are read and compared, unless they are too large for that.
"""

from dataclasses import replace
from typing import Any
from uuid import UUID

from lakelib.catalog import files
from lakelib.dataclass import dataclass
from lakelib.errors import NotFoundError
from lakelib.model.table import CommitKind, Snapshot, TableInfo
from lakelib.ops.read import At, ScanRequest, plan_scan, read_table, resolve_snapshot
from lakelib.ops.runtime import Runtime
from lakelib.rows.differences import holds_same_rows
from lakelib.rows.values import partition_values

COMPARED_PARTITION_BYTES = 2**27
"""The files of a partition, before and after: as many as fit into memory with ease."""
COMPARED_BYTES = 2**31
"""Those of all partitions together."""
_MAY_REPEAT = (CommitKind.OVERWRITE.value, CommitKind.REPLACE.value, CommitKind.ROLLBACK.value)
"""What may put rows in the place of the same rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedPartition:
    """A partition that a snapshot has brought rows to, or taken rows from."""

    values: dict[str, Any]
    path: str
    is_same: bool
    """An overwrite put the rows in the place of the same rows. False also for what was not compared."""
    previous_snapshot: int | None
    """Of one that came out the same, the snapshot that had touched it before."""


def list_touched(runtime: Runtime, table: TableInfo, at: At) -> list[TouchedPartition]:
    """In the order of their values. Raises NotFoundError for a snapshot that is not there."""
    snapshot = resolve_snapshot(runtime, table, at)
    if snapshot is None or snapshot.kind == CommitKind.COMPACT.value:
        return []
    left = COMPARED_BYTES
    found = []
    for each in files.list_touched(runtime.catalog, table.id, snapshot.id):
        is_compared = each.is_replaced and each.size_bytes <= min(COMPARED_PARTITION_BYTES, left)
        left -= each.size_bytes if is_compared else 0
        is_same = is_compared and _is_same(runtime, table, snapshot, each.partition.id)
        found.append(
            TouchedPartition(
                values=partition_values(table.partition_by, each.partition.key),
                path=each.partition.path,
                is_same=is_same,
                previous_snapshot=each.previous_snapshot if is_same else None,
            )
        )
    return found


def _is_same(runtime: Runtime, table: TableInfo, snapshot: Snapshot, partition_id: int) -> bool:
    """What cannot be read any more is not the same."""
    if snapshot.kind not in _MAY_REPEAT:
        return False
    after = ScanRequest(at=snapshot.id, partition_ids=(partition_id,))
    try:
        old, new = (
            read_table(runtime, plan_scan(runtime, table, request))
            for request in (replace(after, at=snapshot.id - 1), after)
        )
    except NotFoundError:
        return False
    return holds_same_rows(old, new, [column.name for column in table.primary_key])


def list_touched_by(runtime: Runtime, table: TableInfo, commit_id: UUID) -> list[dict[str, Any]]:
    """The values of the partitions that publishing a commit changes, or has changed."""
    found = files.load_partitions(runtime.catalog, files.find_touched_partitions(runtime.catalog, commit_id))
    return [partition_values(table.partition_by, partition.key) for partition in found.values()]
