"""Interop. Pure. One snapshot of a table as a version of its Delta log: which actions tell what it did."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from lakelib.dataclass import dataclass
from lakelib.interop.delta.actions import (
    Action,
    Add,
    CommitInfo,
    DeletionVector,
    Metadata,
    Protocol,
    Remove,
    Txn,
)
from lakelib.interop.delta.note import COUNT, FIELD, Note
from lakelib.interop.delta.schema import Mixed, Naming, find_naming, find_type_changes, has_type, schema_string
from lakelib.interop.delta.values import can_be_partitioned, is_plain, log_path, partition_values, statistics
from lakelib.model.exports import CommitFacts
from lakelib.model.files import DataFile, Partition
from lakelib.model.schema import Column, TableSchema
from lakelib.model.table import SILENT_KINDS, CommitKind, Snapshot

VECTORS, MAPPING, NTZ, WIDENING = "deletionVectors", "columnMapping", "timestampNtz", "typeWidening"
_READER, _WRITER = 3, 7
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LEGACY_WRITER_FEATURES = ("appendOnly", "invariants")
"""What tables of the lowest protocol have."""
_KEPT = {"delta.deletedFileRetentionDuration": "interval 36500 days"}
"""The lake's files are not Delta's to delete: they may be those of snapshots and commits that no log tells of."""
_OPERATIONS = {
    CommitKind.APPEND.value: "WRITE",
    CommitKind.UPSERT.value: "MERGE",
    CommitKind.OVERWRITE.value: "WRITE",
    CommitKind.REPLACE.value: "WRITE",
    CommitKind.DELETE.value: "DELETE",
    CommitKind.EVOLVE.value: "CHANGE COLUMNS",
    CommitKind.COMPACT.value: "OPTIMIZE",
    CommitKind.ROLLBACK.value: "RESTORE",
}
_METRICS = {
    "rows_written": "numOutputRows",
    "rows_inserted": "numTargetRowsInserted",
    "rows_updated": "numTargetRowsUpdated",
    "rows_deleted": "numTargetRowsDeleted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What is the same for all versions."""

    id: UUID
    name: str
    partition_ids: tuple[int, ...]
    created_ms: int
    has_key: bool
    engine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldFile:
    """A live file, without the rows that its vector names."""

    file: DataFile
    partition: Partition
    added_ms: int
    vector: DeletionVector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a version is to tell."""

    added: Sequence[ToldFile]
    removed: Sequence[ToldFile | Add]
    """Files as the version before had them."""
    all_files: Callable[[], Sequence[ToldFile]]
    """Of the snapshot, where all of them have to be told again."""
    schema: TableSchema
    stored: Sequence[TableSchema]
    """The versions of the schema that its files were written with."""
    schemas: Mapping[int, TableSchema]
    """All versions that are named here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    number: int
    actions: tuple[Action, ...]
    note: Note


def version_of(snapshot_id: int) -> int:
    return snapshot_id - 1


def plan_version(
    table: TableFacts,
    facts: CommitFacts,
    content: Content,
    before: Note | None,
    mode: str,
    *,
    kept_features: Sequence[str] = (),
) -> Version | Mixed:
    """The version that a snapshot is. `before` is what the one before it says of itself; None where the log begins,
    with the features that it has had before."""
    snapshot = facts.snapshot
    naming = find_naming(content.schema, content.stored, None if before is None else before.names)
    if isinstance(naming, Mixed):
        return naming
    partitions = content.schema.select(table.partition_ids)
    is_partitioned = can_be_partitioned(partitions) if before is None else before.is_partitioned
    files = list(content.added)
    restates = before is None or _is_renamed(before, content, naming)
    if is_partitioned and (naming.differs(content.schema) or not _all_plain(partitions, files)):
        is_partitioned, restates = False, True
    if restates:
        files = list(content.all_files())
        if is_partitioned and not _all_plain(partitions, files):
            is_partitioned = False
    seen = {*(() if before is None else before.seen), *(each.id for each in content.stored)}
    changes = find_type_changes(content.schema, [content.schemas[each] for each in sorted(seen)])
    features = {
        *(kept_features if before is None else before.features),
        *_needed(content.schema, naming, changes, files),
    }
    note = Note(
        commit=str(snapshot.commit_id),
        snapshot=snapshot.id,
        mode=mode,
        began=version_of(snapshot.id) if before is None else before.began,
        schema_id=content.schema.id,
        seen=tuple(sorted(seen)),
        features=tuple(sorted(features)),
        names=naming.physical,
        is_partitioned=is_partitioned,
    )
    telling = _Telling(table=table, content=content, naming=naming, note=note)
    moment = _milliseconds(snapshot)
    changes_rows = snapshot.kind not in SILENT_KINDS
    fresh = {each.file.path for each in content.added}
    removes = [telling.remove(each, moment, changes_rows) for each in content.removed]
    adds = [telling.add(each, before is None or (changes_rows and each.file.path in fresh)) for each in files]
    actions: list[Action] = []
    if before is None or before.features != note.features:
        actions.append(_protocol(note))
    if before is None or restates or _definition(before) != _definition(note):
        actions.append(telling.metadata(changes))
    if facts.application is not None and facts.application_version is not None:
        actions.append(Txn(app_id=facts.application, version=facts.application_version, last_updated=moment))
    actions += _by_path(removes)
    actions += _by_path(adds)
    said = _commit_info(table, facts, note, len(content.added), len(removes), 1 + len(actions))
    return Version(number=version_of(snapshot.id), actions=(said, *actions), note=note)


def plan_state(
    table: TableFacts, note: Note, content: Content, applications: Sequence[Txn], adds: Iterable[Add] | None = None
) -> tuple[Action, ...]:
    """All that a checkpoint says of a version, of which `note` is what it says of itself. `adds` are the files as the
    log tells of them, where that matters."""
    telling = _Telling(table=table, content=content, naming=Naming(physical=note.names), note=note)
    changes = find_type_changes(content.schema, [content.schemas[each] for each in note.seen])
    told = [telling.add(each, False) for each in content.all_files()] if adds is None else adds
    return (
        _protocol(note),
        telling.metadata(changes),
        *applications,
        *_by_path(replace(each, data_change=False) for each in told),
    )


def _by_path(actions: Iterable[Add | Remove]) -> list[Add | Remove]:
    """In the order that every exporter writes."""
    return sorted(actions, key=lambda each: each.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Telling:
    """How files and columns are told of in one version."""

    table: TableFacts
    content: Content
    naming: Naming
    note: Note

    @property
    def partitions(self) -> tuple[Column, ...]:
        return self.content.schema.select(self.table.partition_ids) if self.note.is_partitioned else ()

    def add(self, told: ToldFile, changes_rows: bool) -> Add:
        file, schema = told.file, self.content.schema
        return Add(
            path=log_path(file.path),
            partition_values=self._values(told),
            size=file.size_bytes,
            modification_time=told.added_ms,
            data_change=changes_rows,
            stats=statistics(
                file.row_count,
                file.bounds,
                schema.columns,
                self.content.schemas[file.schema_id],
                self.naming,
                left_out={column.id for column in self.partitions},
                is_masked=told.vector is not None,
            ),
            deletion_vector=told.vector,
        )

    def remove(self, told: ToldFile | Add, moment: int, changes_rows: bool) -> Remove:
        if isinstance(told, Add):
            path, values, size, vector = told.path, told.partition_values, told.size, told.deletion_vector
        else:
            path, values = log_path(told.file.path), self._values(told)
            size, vector = told.file.size_bytes, told.vector
        return Remove(
            path=path,
            deletion_timestamp=moment,
            data_change=changes_rows,
            extended_file_metadata=True,
            partition_values=values,
            size=size,
            deletion_vector=vector,
        )

    def metadata(self, changes: Mapping[int, Sequence[str]]) -> Metadata:
        columns, configuration = self.content.schema.columns, dict(_KEPT)
        if VECTORS in self.note.features:
            configuration["delta.enableDeletionVectors"] = "true"
        if WIDENING in self.note.features:
            configuration["delta.enableTypeWidening"] = "true"
        if self.naming.physical is not None:
            nested = sum(text.count(":") for text in (column.type for column in columns))
            configuration["delta.columnMapping.mode"] = "name"
            configuration["delta.columnMapping.maxColumnId"] = str(1_000_000 + nested)
        return Metadata(
            id=str(self.table.id),
            name=self.table.name,
            schema_string=schema_string(columns, self.naming, changes),
            partition_columns=tuple(column.name for column in self.partitions),
            configuration=configuration,
            created_time=self.table.created_ms,
        )

    def _values(self, told: ToldFile) -> dict[str, str | None]:
        return partition_values(self.partitions, told.partition.key, self.naming) if self.partitions else {}


def _is_renamed(before: Note, content: Content, naming: Naming) -> bool:
    """Whether what was told of files so far names columns in another way."""
    earlier = Naming(physical=before.names)
    return any(
        naming.of(column) != earlier.of(known)
        for column in content.schema.columns
        if (known := content.schemas[before.schema_id].by_id(column.id)) is not None
    )


def _all_plain(columns: Sequence[Column], files: Sequence[ToldFile]) -> bool:
    partitions = {each.partition.id: each.partition for each in files}
    return all(is_plain(columns, each.key, each.path) for each in partitions.values())


def _needed(schema: TableSchema, naming: Naming, changes: Mapping[int, Any], files: Sequence[ToldFile]) -> list[str]:
    """The features that a reader of these files has to know."""
    needs = {
        VECTORS: any(each.vector is not None for each in files),
        MAPPING: naming.physical is not None or any(map(_is_misread, files)),
        NTZ: has_type(schema.columns, "timestamp_ntz"),
        WIDENING: bool(changes),
    }
    return [feature for feature, is_needed in needs.items() if is_needed]


def _is_misread(told: ToldFile) -> bool:
    """Polars overlooks the vector of a file whose path is escaped in the log, and says nothing. It refuses tables with
    this feature, which the others know: better no rows than wrong ones."""
    return told.vector is not None and "%" in log_path(told.file.path)


def _definition(note: Note) -> tuple[Any, ...]:
    return note.schema_id, note.seen, note.features, note.names, note.is_partitioned


def _protocol(note: Note) -> Protocol:
    if not note.features:
        return Protocol(min_reader_version=1, min_writer_version=2)
    return Protocol(
        min_reader_version=_READER,
        min_writer_version=_WRITER,
        reader_features=note.features,
        writer_features=(*_LEGACY_WRITER_FEATURES, *note.features),
    )


def _commit_info(
    table: TableFacts, facts: CommitFacts, note: Note, added: int, removed: int, action_count: int
) -> CommitInfo:
    snapshot = facts.snapshot
    metrics = {"numAddedFiles": str(added), "numRemovedFiles": str(removed)}
    metrics |= {
        name: str(snapshot.summary[key]) for key, name in _METRICS.items() if snapshot.summary.get(key) is not None
    }
    said: dict[str, Any] = {**note.to_object(), "kind": snapshot.kind, COUNT: action_count}
    if facts.application is not None:
        said |= {"application": facts.application, "version": facts.application_version}
    if facts.verdicts:
        said["gates"] = dict(facts.verdicts)
    if snapshot.properties:
        said["properties"] = dict(snapshot.properties)
    return CommitInfo(
        timestamp=_milliseconds(snapshot),
        operation=_OPERATIONS.get(snapshot.kind, "WRITE"),
        operation_parameters=_parameters(snapshot),
        operation_metrics=metrics,
        engine_info=table.engine,
        txn_id=str(snapshot.commit_id),
        is_blind_append=snapshot.kind == CommitKind.APPEND.value and not table.has_key,
        others={FIELD: said},
    )


def _parameters(snapshot: Snapshot) -> dict[str, str]:
    if snapshot.kind == CommitKind.ROLLBACK.value and "restores" in snapshot.summary:
        return {"version": str(version_of(int(snapshot.summary["restores"])))}
    if snapshot.kind in (CommitKind.OVERWRITE.value, CommitKind.REPLACE.value):
        return {"mode": "Overwrite"}
    return {"mode": "Append"} if snapshot.kind == CommitKind.APPEND.value else {}


def milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _milliseconds(snapshot: Snapshot) -> int:
    return milliseconds(snapshot.committed_at)
