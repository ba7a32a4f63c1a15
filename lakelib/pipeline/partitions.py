"""What the rows of one partition are made from, whichever engine makes them: tables at snapshots."""

from collections.abc import Mapping
from dataclasses import field, replace
from hashlib import sha256
from typing import Any
from uuid import UUID

from lakelib import InvalidInputError, Lake
from lakelib.dataclass import dataclass
from lakelib.model.positions import ReadRange
from lakelib.model.predicate import Predicate
from lakelib.model.table import TableInfo
from lakelib.ops.arrival import Arrival
from lakelib.ops.create import find_table
from lakelib.ops.read import resolve_snapshot
from lakelib.ops.request import WriteRequest
from lakelib.rows.types import plain_schema
from lakelib.specs.table_spec import TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """Commits that are to be published together. Each is made and judged on top of those before it."""

    staged: Mapping[str, tuple[UUID, ...]] = field(default_factory=dict)
    """So far, by table, in order."""

    def of(self, table: str) -> tuple[UUID, ...]:
        return self.staged.get(table, ())

    def extended(self, table: str, commit_id: UUID) -> "Transaction":
        return replace(self, staged={**self.staged, table: (*self.of(table), commit_id)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Which rows of a table are seen."""

    predicate: Predicate | None = None
    """None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedRead:
    """A table that the transform reads, at one snapshot, and as staged commits would leave it."""

    view: str
    table: str
    table_id: int
    snapshot_id: int
    """0 for a table without snapshots."""
    staged: tuple[UUID, ...] = ()
    """Commits of the same transaction that are taken for published."""
    asked: str | None = None
    """The view of changes that its spec asks for; None for rows as they are."""
    range: ReadRange | None = None
    """How far its changes are followed; None where that is not from any position."""
    limit: Limit | None = None
    """Rows as they are, and just some of them, though changes are followed; None for what the spec asks for."""

    @property
    def staged_text(self) -> str:
        """What a commit that was made from these keeps of them."""
        digest = sha256(" ".join(map(str, self.staged)).encode()).hexdigest()[:16]
        return f"{len(self.staged)} {digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """What the rows of one partition are made of, and for which write."""

    lake: Lake
    table: TableInfo
    spec: TableSpec
    key: str
    arrival: Arrival | None
    """The files of the source, if the spec has one."""
    reads: tuple[PinnedRead, ...]
    write: WriteRequest

    @property
    def has_no_rows(self) -> bool:
        """An empty source has none, whatever the transform."""
        return self.spec.source is not None and (self.arrival is None or self.arrival.is_empty)

    def no_rows(self) -> "PartitionRows":
        return PartitionRows(rows=plain_schema(self.table.schema.columns).empty_table(), is_transformed=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRows:
    """What a table's writes take, and who made it."""

    rows: Any
    is_transformed: bool


def pin_reads(
    lake: Lake, spec: TableSpec, at: Mapping[str, str], transaction: Transaction | None = None
) -> tuple[PinnedRead, ...]:
    """The tables that the spec reads: at the snapshots given by table, else as they are now; in a transaction, as its
    commits would leave them. Raises NotFoundError for a table or snapshot that is not there, InvalidInputError for a
    snapshot of a table that is not read."""
    awaited = spec.schedule.after or () if spec.schedule else ()
    unread = next((table for table in at if table not in (*spec.read_tables, *awaited)), None)
    if unread is not None:
        raise InvalidInputError(
            f"--at names {unread}, which {spec.table} does not read.",
            kind="unread_table",
            remedy=f"Its spec, {spec.path}, reads: {', '.join(spec.read_tables) or 'no table'}.",
        )
    staged = {} if transaction is None else transaction.staged
    heads = {table: _head(lake, table, at.get(table)) for table in spec.read_tables}
    return tuple(
        PinnedRead(
            view=view,
            table=read.table,
            table_id=heads[read.table][0],
            snapshot_id=heads[read.table][1],
            staged=staged.get(read.table, ()),
            asked=read.changes,
        )
        for view, read in spec.reads.items()
    )


def _head(lake: Lake, name: str, at: str | None) -> tuple[int, int]:
    """The table, and the snapshot at which all its views show it."""
    info = find_table(lake.runtime, name)
    snapshot = resolve_snapshot(lake.runtime, info, at)
    return info.id, 0 if snapshot is None else snapshot.id
