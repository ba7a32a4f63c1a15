"""The public API: Table and StagedCommit. Each method is one call into `lakelib.ops`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack
from uuid import UUID

import pyarrow as pa

from lakelib.model.predicate import Predicate
from lakelib.model.table import CommitKind, Snapshot, TableInfo
from lakelib.ops import delete, evolve, inspect, overwrite, publish, read, write
from lakelib.ops.request import WriteOptions, parse_request
from lakelib.ops.runtime import Runtime
from lakelib.rows.types import plain_schema
from lakelib.scan import Scan


class Table:
    """A table of a lake. A handle: it holds no rows, and its properties tell the table's state at this moment.

    Writes take `data` as a pyarrow Table, RecordBatch or RecordBatchReader, or any object with an Arrow interface, and
    these keywords: `idempotency_key=("app", 17)` (a version that the application published already is not written
    again), `properties={…}` (kept with the snapshot), `merge_schema` (new columns and wider types extend the table),
    `explicit_cast` (values are converted to the table's types if each converts exactly), `aux_order=[…]` (columns of
    the data that decide which duplicate is newest, and are not stored).
    """

    def __init__(self, runtime: Runtime, info: TableInfo) -> None:
        self._runtime = runtime
        self._info = info

    @property
    def name(self) -> str:
        """Namespace and name."""
        return self._info.full_name

    @property
    def location(self) -> str:
        return self._info.location

    @property
    def schema(self) -> pa.Schema:
        return plain_schema(self._now().schema.columns)

    @property
    def primary_key(self) -> list[str]:
        return [column.name for column in self._now().primary_key]

    @property
    def partition_by(self) -> list[str]:
        return [column.name for column in self._now().partition_by]

    @property
    def options(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return self._now().options.as_mapping()

    @property
    def head(self) -> Snapshot | None:
        """The newest snapshot; None before the first."""
        return read.resolve_snapshot(self._runtime, self._now(), None)

    # Writes

    def append(self, data: Any, **options: Unpack[WriteOptions]) -> Snapshot:
        """Adds rows. On a table with a primary key a row replaces the one of its key, as in `upsert`."""
        return write.write(self._runtime, self._info, CommitKind.APPEND, data, parse_request(**options))

    def upsert(self, data: Any, **options: Unpack[WriteOptions]) -> Snapshot:
        """Adds rows, each in place of the one of its key."""
        return write.write(self._runtime, self._info, CommitKind.UPSERT, data, parse_request(**options))

    def overwrite(
        self, data: Any, partitions: str | Mapping[str, Any] = "all", **options: Unpack[WriteOptions]
    ) -> Snapshot:
        """Puts rows in place of all that is in the table ("all"), in the partitions of the rows ("dynamic"), or in the
        partitions of the given values."""
        request = parse_request("partitions", **options)
        return overwrite.overwrite(self._runtime, self._info, data, partitions, request)

    def delete(self, where: str | Predicate, **options: Unpack[WriteOptions]) -> Snapshot:
        """Deletes the rows for which the SQL predicate is TRUE."""
        return delete.delete_where(self._runtime, self._info, where, parse_request(**options))

    def delete_keys(self, data: Any, **options: Unpack[WriteOptions]) -> Snapshot:
        """Deletes the rows of the given keys. The data needs the primary key and the partition columns."""
        return delete.delete_keys(self._runtime, self._info, data, parse_request(**options))

    # Staged writes

    def stage_append(self, data: Any, **options: Unpack[WriteOptions]) -> "StagedCommit":
        return self._staged(
            write.stage_write(self._runtime, self._info, CommitKind.APPEND, data, parse_request(**options))
        )

    def stage_upsert(self, data: Any, **options: Unpack[WriteOptions]) -> "StagedCommit":
        return self._staged(
            write.stage_write(self._runtime, self._info, CommitKind.UPSERT, data, parse_request(**options))
        )

    def stage_overwrite(
        self, data: Any, partitions: str | Mapping[str, Any] = "all", **options: Unpack[WriteOptions]
    ) -> "StagedCommit":
        request = parse_request("partitions", **options)
        return self._staged(overwrite.stage_overwrite(self._runtime, self._info, data, partitions, request))

    def stage_delete(self, where: str | Predicate, **options: Unpack[WriteOptions]) -> "StagedCommit":
        return self._staged(delete.stage_delete_where(self._runtime, self._info, where, parse_request(**options)))

    def stage_delete_keys(self, data: Any, **options: Unpack[WriteOptions]) -> "StagedCommit":
        return self._staged(delete.stage_delete_keys(self._runtime, self._info, data, parse_request(**options)))

    def _staged(self, commit_id: UUID) -> "StagedCommit":
        return StagedCommit(self._runtime, self._info, commit_id)

    # Reads

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        at: int | str | datetime | None = None,
    ) -> Scan:
        """Rows at the head, or at a snapshot id, a "tag:…" or a moment. `where` is a SQL predicate."""
        request = read.ScanRequest(columns=_names(columns), where=where, at=at)
        return Scan(self._runtime, read.plan_scan(self._runtime, self._now(), request))

    def history(self) -> list[Snapshot]:
        """All snapshots, newest first."""
        return inspect.list_history(self._runtime, self._now())

    def files(self, at: int | str | datetime | None = None) -> inspect.FileListing:
        """The live files: iterate to stream them, `len()` counts them."""
        return inspect.list_files(self._runtime, self._now(), at)

    def partitions(self, at: int | str | datetime | None = None) -> list[inspect.PartitionSummary]:
        """The partitions that hold files."""
        return inspect.list_partitions(self._runtime, self._now(), at)

    # Life cycle

    def evolve(
        self,
        add: Sequence[Any] | str = (),
        drop: Sequence[str] = (),
        rename: Mapping[str, str] | None = None,
        widen: Mapping[str, str] | None = None,
        **options: Unpack[WriteOptions],
    ) -> Snapshot:
        """Changes the schema: `add=[("x", "string")]`, `drop=["y"]`, `rename={"a": "b"}`, `widen={"n": "bigint"}`."""
        return evolve.evolve(
            self._runtime,
            self._info,
            add=add,
            drop=drop,
            rename=rename or {},
            widen=widen or {},
            request=parse_request("add", "drop", "rename", "widen", **options),
        )

    def _now(self) -> TableInfo:
        return inspect.reload(self._runtime, self._info)

    def __repr__(self) -> str:
        return f"<Table {self.name} at {self.location}>"


class StagedCommit:
    """A commit that nobody sees yet. It is published, rejected, or replaced by a newer attempt at the same work."""

    def __init__(self, runtime: Runtime, info: TableInfo, commit_id: UUID) -> None:
        self._runtime = runtime
        self._info = info
        self._commit_id = commit_id

    @property
    def id(self) -> UUID:
        return self._commit_id

    @property
    def table_name(self) -> str:
        return self._info.full_name

    @property
    def state(self) -> str:
        """ "staged", "published", "rejected" or "expired"."""
        return publish.find_state(self._runtime, self._commit_id)

    def scan(
        self, columns: Sequence[str] | None = None, where: str | Predicate | None = None, scope: str = "merged"
    ) -> Scan:
        """The table as publishing now would leave it ("merged"), or the commit's own rows ("staged")."""
        view = read.staged_view(self._commit_id, scope)
        request = read.ScanRequest(columns=_names(columns), where=where, staged=view)
        return Scan(self._runtime, read.plan_scan(self._runtime, inspect.reload(self._runtime, self._info), request))

    def publish(self) -> Snapshot:
        """Makes the commit a snapshot; safe to repeat. Raises ConflictError if what it depends on has changed since."""
        return publish.publish_staged(self._runtime, [self._commit_id])[0]

    def reject(self, reason: str) -> None:
        """Ends the commit: it stays inspectable and can never be published."""
        publish.reject_staged(self._runtime, self._commit_id, reason)

    def __repr__(self) -> str:
        return f"<StagedCommit {self._commit_id} of {self.table_name}>"


def _names(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    return columns if columns is None or isinstance(columns, str) else tuple(columns)  # type: ignore[return-value]
