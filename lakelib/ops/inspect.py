"""Use cases: what a table consists of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from lakelib.catalog import commits, files, snapshots, tables
from lakelib.model import sortable
from lakelib.model.files import PartitionKey
from lakelib.model.html import Listing, html_table
from lakelib.model.table import CommitState, Snapshot, TableInfo
from lakelib.ops.create import check_part
from lakelib.ops.read import At, resolve_snapshot
from lakelib.ops.runtime import Runtime
from lakelib.rows.values import python_value

_NOTED_LEAD = timedelta(minutes=1)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSummary:
    """A table at its head."""

    table: TableInfo
    committed_at: datetime | None
    """When the head was committed; None for a table without a snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a snapshot holds. `stored_rows` counts rows of all its files: superseded ones and delete marks too."""

    files: int
    stored_rows: int
    size_bytes: int
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSummary:
    """A commit as it stands."""

    id: UUID
    table: str
    kind: str
    state: str
    staged_at: datetime
    decided_at: datetime | None
    reason: str | None
    """Why it was rejected, or came to its end otherwise."""
    gate: str | None
    outcome: str | None
    """Of its newest verdict, by that gate: "accept", "warn", "reject" or "errored"."""
    base_snapshot: int
    head_snapshot: int
    """The table's head at this moment: what is above the base has come since."""
    snapshot: int | None
    """What it became."""
    application: str | None
    version: int | None
    approved_by: str | None
    approval_reason: str | None
    summary: Mapping[str, Any]
    properties: Mapping[str, str]


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
        with files.stream_files(self._runtime.catalog, self._table.id, self._snapshot_id) as rows:
            for row in rows:
                yield FileSummary(
                    path=row["path"],
                    partition=partition_values(self._table, tuple(row["key"])),
                    row_count=row["row_count"],
                    delete_count=row["delete_count"],
                    size_bytes=row["size_bytes"],
                    depth=row["depth"],
                    prefix=row["prefix"],
                    level=row["level"],
                    added_snapshot=row["added_snapshot"],
                )
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
    rows = files.summarise_partitions(runtime.catalog, table.id, snapshot_id)
    snapshots.check_kept(runtime.catalog, table, snapshot_id)
    return Listing(
        PartitionSummary(
            values=partition_values(table, tuple(row["key"])),
            path=row["path"],
            files=row["files"],
            stored_rows=row["stored_rows"],
            size_bytes=row["size_bytes"],
            newest_snapshot=row["newest_snapshot"],
        )
        for row in rows
    )


def list_history(runtime: Runtime, table: TableInfo) -> Listing[Snapshot]:
    return Listing(snapshots.list_snapshots(runtime.catalog, table.id))


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
        (column.name, column.type, ", ".join(role for role, ids in roles if column.id in ids))
        for column in table.schema.columns
    ]
    return html_table(title, ("column", "type", "role"), columns, len(columns))


def tables_as_html(runtime: Runtime, title: str) -> str:
    """All tables, with their heads."""
    found = list_tables(runtime, None)
    rows = ((each.table.full_name, each.table.head_id or None, each.committed_at) for each in found)
    return html_table(title, ("table", "head", "committed at"), rows, len(found))


def sum_contents(runtime: Runtime, table: TableInfo) -> Contents:
    """What the table holds at its head."""
    row = files.sum_files(runtime.catalog, table.id, table.head_id)
    return Contents(**{field.name: row[field.name] for field in fields(Contents)})


def find_lead(runtime: Runtime, table: TableInfo) -> timedelta | None:
    """How far one of the table's snapshots lies in the future, by the catalog's clock, if one does by more than a
    minute: a clock was ahead when it was committed."""
    latest = snapshots.find_latest_moment(runtime.catalog, table.id)
    lead = timedelta(0) if latest is None else latest - table.loaded_at
    return lead if lead > _NOTED_LEAD else None


def list_commits(
    runtime: Runtime, table: TableInfo | None, states: Sequence[CommitState], limit: int
) -> list[CommitSummary]:
    """Commits of a table, or of all, in these states, the newest first."""
    names = [state.value for state in states]
    return [
        CommitSummary(
            id=row["id"],
            table=row["table_name"],
            kind=row["kind"],
            state=row["state"],
            staged_at=row["staged_at"].astimezone(UTC),
            decided_at=None if row["decided_at"] is None else row["decided_at"].astimezone(UTC),
            reason=row["reason"],
            gate=row["gate"],
            outcome=row["outcome"],
            base_snapshot=row["base_snapshot_id"],
            head_snapshot=row["head_id"],
            snapshot=row["snapshot_id"],
            application=row["application"],
            version=row["version"],
            approved_by=row["approved_by"],
            approval_reason=row["approval_reason"],
            summary=row["summary"],
            properties=row["properties"],
        )
        for row in commits.list_commits(runtime.catalog, None if table is None else table.id, names, limit)
    ]


def partition_values(table: TableInfo, key: PartitionKey) -> dict[str, Any]:
    pairs = zip(table.partition_by, key, strict=True)
    return {
        column.name: None if part is None else python_value(column.type, sortable.decode(column.type, part))
        for column, part in pairs
    }
