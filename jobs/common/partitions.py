"""What the rows of one partition are made from, whichever engine makes them: tables at snapshots."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakelib import InvalidInputError, Lake
from lakelib.model.table import TableInfo
from lakelib.ops.arrival import Arrival
from lakelib.ops.create import find_table
from lakelib.ops.read import resolve_snapshot
from lakelib.ops.request import WriteRequest
from lakelib.rows.types import plain_schema
from lakelib.specs.table_spec import TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedRead:
    """A table that the transform reads, at one snapshot."""

    view: str
    table: str
    table_id: int
    snapshot_id: int
    """0 for a table without snapshots."""


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


def pin_reads(lake: Lake, spec: TableSpec, at: Mapping[str, str]) -> tuple[PinnedRead, ...]:
    """The tables that the spec reads: at the snapshots given by table, else as they are now. Raises NotFoundError for a
    table or snapshot that is not there, InvalidInputError for a snapshot of a table that is not read."""
    awaited = spec.schedule.after or () if spec.schedule else ()
    unread = next((table for table in at if table not in (*spec.reads.values(), *awaited)), None)
    if unread is not None:
        raise InvalidInputError(
            f"--at names {unread}, which {spec.table} does not read.",
            kind="unread_table",
            remedy=f"Its spec, {spec.path}, reads: {', '.join(spec.reads.values()) or 'no table'}.",
        )
    return tuple(_pin(lake, view, table, at.get(table)) for view, table in spec.reads.items())


def _pin(lake: Lake, view: str, name: str, at: str | None) -> PinnedRead:
    info = find_table(lake.runtime, name)
    snapshot = resolve_snapshot(lake.runtime, info, at)
    return PinnedRead(view=view, table=name, table_id=info.id, snapshot_id=0 if snapshot is None else snapshot.id)
