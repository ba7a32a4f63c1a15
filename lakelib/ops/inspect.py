"""Use cases: what a table consists of, which partitions a snapshot has touched, and whether one that an overwrite
replaced came out the same.

The catalog knows which partitions got files or lost some. An overwrite replaces partitions with rows that may be those
that were there: of such a partition both sides are read and compared, unless they are too large for that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from lakelib.catalog import commits, files, snapshots, tables
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, NotFoundError
from lakelib.model.changes import ChangeView
from lakelib.model.commit import CommitSummary
from lakelib.model.effect import UNKNOWN, Effect
from lakelib.model.files import Contents, FileSummary, PartitionSummary
from lakelib.model.html import Listing, html_table
from lakelib.model.table import CommitKind, CommitState, Snapshot, TableInfo
from lakelib.model.text import choose_from
from lakelib.ops import changes
from lakelib.ops.create import check_part
from lakelib.ops.effect import effect_of
from lakelib.ops.read import At, ScanRequest, plan_scan, read_table, resolve_snapshot
from lakelib.ops.runtime import Runtime
from lakelib.rows.differences import holds_same_rows
from lakelib.rows.values import partition_values

WAITING: Final = ("staged", "rejected")
"""The states of commits on which somebody may still decide."""
COMPARED_PARTITION_BYTES = 2**27
"""The files of a partition, before and after: as many as fit into memory with ease."""


DEFAULT_COMMITS: Final = 100
_MOST_COMMITS = 1_000_000
_NOTED_LEAD = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSummary:
    """A table at its head."""

    table: TableInfo
    committed_at: datetime | None
    """When the head was committed; None for a table without a snapshot."""


class FileListing:
    """The live files of a snapshot. Iterating streams them: a listing of any length takes little memory.

    Raises NotFoundError at the end if the snapshot has expired meanwhile: files may be missing in the listing.
    """

    def __init__(self, runtime: Runtime, table: TableInfo, snapshot_id: int) -> None:
        self._runtime = runtime
        self._table = table
        self._snapshot_id = snapshot_id

    def __len__(self) -> int:
        found = files.count_files(self._runtime.catalog, self._table.id, self._snapshot_id)
        self._check_complete()
        return found

    def __iter__(self) -> Iterator[FileSummary]:
        with files.stream_files(self._runtime.catalog, self._table, self._snapshot_id) as found:
            yield from found
        self._check_complete()

    def _check_complete(self) -> None:
        snapshots.check_kept(self._runtime.catalog, self._table, self._snapshot_id)

    def _repr_html_(self) -> str:
        names = [field.name for field in fields(FileSummary)]
        rows = ([getattr(each, name) for name in names] for each in self)
        return html_table(repr(self), names, rows, len(self))

    def __repr__(self) -> str:
        return f"<{len(self)} files of {self._table.full_name} at snapshot {self._snapshot_id}>"


def list_files(runtime: Runtime, table: TableInfo, at: At) -> FileListing:
    snapshot = resolve_snapshot(runtime, table, at)
    return FileListing(runtime, table, snapshot.id if snapshot else 0)


def list_partitions(runtime: Runtime, table: TableInfo, at: At) -> Listing[PartitionSummary]:
    """One entry a partition that has files, in the order of their values."""
    snapshot = resolve_snapshot(runtime, table, at)
    snapshot_id = snapshot.id if snapshot else 0
    found = files.summarise_partitions(runtime.catalog, table, snapshot_id)
    snapshots.check_kept(runtime.catalog, table, snapshot_id)
    return Listing(found)


def list_history(runtime: Runtime, table: TableInfo, *, exact: bool = False) -> Listing[Snapshot]:
    """With `exact` what each snapshot did to rows is counted where it was not: its changes are read."""
    found = snapshots.list_snapshots(runtime.catalog, table.id)
    return Listing([_counted(runtime, table, each) for each in found] if exact else found)


def _counted(runtime: Runtime, table: TableInfo, snapshot: Snapshot) -> Snapshot:
    """None where the past does not tell it any more."""
    known = Effect.of(snapshot.summary)
    effect = known if known.is_known else _count_changes(runtime, table, snapshot.id)
    return replace(snapshot, summary={**snapshot.summary, **effect.as_summary()})


def _count_changes(runtime: Runtime, table: TableInfo, snapshot_id: int) -> Effect:
    request = changes.ChangesRequest(after=snapshot_id - 1, until=snapshot_id, view=ChangeView.NET.value)
    try:
        return effect_of(changes.count_by_kind(runtime, changes.plan_changes(runtime, table, request)))
    except NotFoundError:
        return UNKNOWN


def list_tables(runtime: Runtime, namespace: str | None) -> list[TableSummary]:
    """The tables of a namespace, or of all, by name. Raises NotFoundError if there is no such namespace."""
    if namespace is not None:
        check_part(namespace, "namespace")
    found = tables.list_table_heads(runtime.catalog, namespace)
    return [TableSummary(table=table, committed_at=committed_at) for table, committed_at in found]


def table_as_html(table: TableInfo, title: str) -> str:
    """Columns, and what each is for."""
    roles = (("key", table.primary_key_ids), ("partition", table.partition_ids), ("sequence", table.sequence_ids))
    columns = [
        (column.name, column.type, ", ".join(role for role, ids in roles if column.id in ids), column.comment)
        for column in table.schema.columns
    ]
    return html_table(title, ("column", "type", "role", "comment"), columns, len(columns))


def tables_as_html(runtime: Runtime, title: str) -> str:
    """All tables, with their heads."""
    found = list_tables(runtime, None)
    rows = ((each.table.full_name, each.table.head_id or None, each.committed_at) for each in found)
    return html_table(title, ("table", "head", "committed at"), rows, len(found))


def sum_contents(runtime: Runtime, table: TableInfo) -> Contents:
    """What the table holds at its head."""
    return files.sum_files(runtime.catalog, table.id, table.head_id)


def find_lead(runtime: Runtime, table: TableInfo) -> timedelta | None:
    """How far one of the table's snapshots lies in the future, by the catalog's clock, if one does by more than a
    minute: a clock was ahead when it was committed."""
    latest = snapshots.find_latest_moment(runtime.catalog, table.id)
    lead = timedelta(0) if latest is None else latest - table.loaded_at
    return lead if lead > _NOTED_LEAD else None


def list_commits(
    runtime: Runtime, table: TableInfo | None, states: Sequence[CommitState], limit: int
) -> Listing[CommitSummary]:
    """Commits of a table, or of all, in these states, the newest first. Raises InvalidInputError for what is no number
    of commits."""
    if not isinstance(limit, int) or isinstance(limit, bool) or not 0 <= limit <= _MOST_COMMITS:
        raise InvalidInputError(
            f"{limit!r} is no number of commits.",
            kind="invalid_limit",
            remedy=f"Give a whole number from 0 to {_MOST_COMMITS:,}.",
        )
    return Listing(commits.list_commits(runtime.catalog, None if table is None else table.id, states, limit))


def parse_states(said: str | Sequence[str]) -> list[CommitState]:
    """Raises InvalidInputError for what is no state of a commit."""
    return [_parse_state(each) for each in ([said] if isinstance(said, str) else said)]


def _parse_state(said: object) -> CommitState:
    known = [state.value for state in CommitState]
    if said not in known:
        remedy = choose_from("The states are", said, known)
        raise InvalidInputError(f"{said!r} is no state of a commit.", kind="invalid_state", remedy=remedy)
    return CommitState(said)


# What a snapshot touched


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
