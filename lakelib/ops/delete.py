"""Use cases: rows are deleted, by predicate or by key.

Where rows are merged by key, a delete writes marks: rows of `_op` 1 that supersede what they name. Where they are not,
the files that hold matching rows are replaced by files without them. A predicate over partition columns alone takes out
whole partitions and reads nothing.
"""

import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from lakelib.catalog import files, tables
from lakelib.errors import ConflictError, InvalidInputError, NotFoundError
from lakelib.model.files import PartitionKey
from lakelib.model.predicate import Predicate, columns_of
from lakelib.model.schema import COMMIT_COLUMN, Column
from lakelib.model.table import NO_READ, WHOLE_TABLE, CommitKind, ReadScope, Snapshot, TableInfo
from lakelib.ops.judge import judge, require_passed
from lakelib.ops.keyed_rows import find_rows, gather_keys
from lakelib.ops.publish import publish_alone
from lakelib.ops.read import Held, ScanPlan, ScanRequest, plan_scan, stream_batches
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.ops.source import RowSource, open_source
from lakelib.ops.write import WrittenRows, publish_work, run_target, stage_commit
from lakelib.plan.partitions import in_any_partition
from lakelib.plan.prune import partition_may_match
from lakelib.plan.where import bind_where
from lakelib.rows.align import places_by_name
from lakelib.rows.arrange import partition_keys
from lakelib.rows.filter import matching_partitions, matching_rows
from lakelib.storage.run_writer import RunTarget, RunWriter
from lakelib.storage.split_reader import read_split
from lakelib.storage.write_work import WriteWork, as_marks

_FREE_TRIES = 3
"""So often it is tried beside other writers; then they wait for it."""
_STAGE_TRIES = 5
_LONGEST_PAUSE_SECONDS = 0.1
_MISSED = ("input_gone", "snapshot_expired")
"""What it has looked at was gone by the time it was needed."""
_PASSING = ("rows_added", "rows_removed", *_MISSED)
_FILE_KIND = "delete"


def delete_where(runtime: Runtime, handle: TableInfo, where: str | Predicate, request: WriteRequest) -> Snapshot:
    """Deletes the rows for which the predicate is TRUE, and publishes. Looks again when rows changed meanwhile."""
    return _publish_patiently(runtime, handle, request, lambda table: _stage_where(runtime, table, where, request))


def stage_delete_where(runtime: Runtime, handle: TableInfo, where: str | Predicate, request: WriteRequest) -> UUID:
    """The delete as a staged commit. It conflicts with what happens, from now on, to the partitions it looked at. Looks
    again when files that it is to replace are gone by then, as after a compaction, or the snapshot that it looks at."""
    for _ in range(_STAGE_TRIES - 1):
        try:
            return _stage_where(runtime, _now(runtime, handle), where, request)
        except (ConflictError, NotFoundError) as error:
            if error.kind not in _MISSED:
                raise
    return _stage_where(runtime, _now(runtime, handle), where, request)


def _now(runtime: Runtime, handle: TableInfo) -> TableInfo:
    return tables.load_table(runtime.catalog, handle.id, handle.full_name)


def delete_keys(runtime: Runtime, handle: TableInfo, data: Any, request: WriteRequest) -> Snapshot:
    """Deletes the rows of the given keys, and publishes. Looks again when rows changed meanwhile, if it can."""
    source = open_source(data)

    def stage(table: TableInfo) -> UUID:
        return _stage_keys(runtime, table, source, request)

    if source.rereadable:
        return _publish_patiently(runtime, handle, request, stage)
    return publish_work(runtime, handle, request, stage)


def stage_delete_keys(runtime: Runtime, handle: TableInfo, data: Any, request: WriteRequest) -> UUID:
    """The delete as a staged commit."""
    table = tables.load_table(runtime.catalog, handle.id, handle.full_name)
    return _stage_keys(runtime, table, open_source(data), request)


def _publish_patiently(
    runtime: Runtime,
    handle: TableInfo,
    request: WriteRequest,
    stage: Callable[[TableInfo], UUID],
) -> Snapshot:
    """Stages and publishes, and does it again when others have changed meanwhile what the delete has looked at."""
    for _ in range(_FREE_TRIES):
        try:
            return publish_work(runtime, handle, request, stage)
        except (ConflictError, NotFoundError) as error:
            if error.kind not in _PASSING:
                raise
        time.sleep(random.uniform(0, _LONGEST_PAUSE_SECONDS))

    def stage_and_judge() -> UUID:
        commit_id = stage(tables.load_table(runtime.catalog, handle.id, handle.full_name))
        if request.judging is not None:
            require_passed(judge(runtime, commit_id, request.judging))
        return commit_id

    return publish_alone(runtime, handle.id, stage_and_judge)


def _stage_where(runtime: Runtime, table: TableInfo, where: str | Predicate, request: WriteRequest) -> UUID:
    predicate = bind_where(where, table.schema)
    if predicate is None:
        raise InvalidInputError(
            "The delete has no predicate.", kind="invalid_predicate", remedy='To empty the table, delete "true".'
        )
    if columns_of(predicate) <= set(table.partition_ids):
        return _stage_drop(runtime, table, predicate, request)
    if table.primary_key_ids:
        return _stage_marks(runtime, table, predicate, request)
    return _stage_rewrite(runtime, table, predicate, request)


def _stage_drop(runtime: Runtime, table: TableInfo, predicate: Predicate, request: WriteRequest) -> UUID:
    """Takes out all files of the partitions that match."""
    query = files.FileQuery(
        table_id=table.id, snapshot_id=table.head_id, partition_by=table.partition_by, partition_predicate=predicate
    )
    found = files.load_files(runtime.catalog, query)
    matching = matching_partitions(predicate, table.partition_by, found.partitions)
    return stage_commit(
        runtime,
        table,
        CommitKind.DELETE,
        request,
        WrittenRows(files=(), rows_in=0),
        removed_file_ids=tuple(file.id for file in found.files if file.partition_id in matching),
        read_scope=_scope(runtime, table, predicate, matching),
    )


def _stage_marks(runtime: Runtime, table: TableInfo, predicate: Predicate, request: WriteRequest) -> UUID:
    """Writes a delete mark for each row that matches, with the row's own sequence: a newer version stays newer."""
    names = tuple(column.name for column in _mark_columns(table))
    plan = plan_scan(runtime, table, ScanRequest(columns=names, where=predicate))
    written = _write_marks(runtime, table, stream_batches(runtime, plan))
    scope = _scope(runtime, table, predicate, plan.partition_ids)
    return stage_commit(runtime, table, CommitKind.DELETE, request, written, read_scope=scope)


def _stage_rewrite(runtime: Runtime, table: TableInfo, predicate: Predicate, request: WriteRequest) -> UUID:
    """Replaces the files that hold matching rows. The rows that stay keep their commit."""
    plan = plan_scan(runtime, table, ScanRequest(columns=(*table.schema.names, COMMIT_COLUMN), where=predicate))
    with Held(runtime, plan):
        touched = [split for split in plan.splits if any(True for _ in read_split(runtime.storage, plan.target, split))]
        whole = replace(plan, splits=tuple(touched))
        written = _write_kept(runtime, whole, predicate)
    return stage_commit(
        runtime,
        table,
        CommitKind.DELETE,
        request,
        written,
        removed_file_ids=tuple(file.id for split in touched for file in split.files),
        read_scope=_scope(runtime, table, predicate, plan.partition_ids),
    )


def _write_kept(runtime: Runtime, plan: ScanPlan, predicate: Predicate) -> WrittenRows:
    """Writes the rows of the plan's files for which the predicate is not TRUE."""
    table = plan.table
    everything = replace(plan.target, predicate=None, asked_columns=())
    target = run_target(table, table.schema, file_kind=_FILE_KIND, order_names=(), holds_commits=True)
    rows_in = 0
    with RunWriter(
        runtime.storage, target, buffer_bytes=table.options.write_buffer_bytes, threads=runtime.threads
    ) as writer:
        for split in plan.splits:
            for rows in read_split(runtime.storage, everything, split):
                kept = rows.filter(pc.invert(matching_rows(predicate, rows)))
                rows_in += kept.num_rows
                for batch in kept.to_batches():
                    writer.write(batch)
        return WrittenRows(files=writer.finish(), rows_in=rows_in)


def _stage_keys(runtime: Runtime, table: TableInfo, source: RowSource, request: WriteRequest) -> UUID:
    if not table.primary_key_ids:
        raise InvalidInputError(
            f"Table {table.full_name} has no primary key to delete by.",
            kind="no_primary_key",
            remedy="Delete by a predicate.",
        )
    wanted = _mark_columns(table)
    places = places_by_name(source.schema)
    knows_sequence = all(column.name.casefold() in places for column in table.sequence_by)
    if not knows_sequence:
        wanted = tuple(column for column in wanted if column.id not in table.sequence_ids)
    work = WriteWork(
        storage=runtime.storage,
        target=_mark_target(table),
        wanted=table.schema,
        required_ids=frozenset(table.primary_key_ids),
        explicit_cast=request.explicit_cast,
        only_ids=frozenset(column.id for column in wanted),
        as_marks=True,
        buffer_bytes=table.options.write_buffer_bytes,
    )
    source.check(work)
    _check_partition_columns(table, places)
    if knows_sequence:
        done = source.write(work, threads=runtime.threads, distribution=request.distribution)
        marks = WrittenRows(files=done.files, rows_in=done.rows_in)
        return stage_commit(runtime, table, CommitKind.DELETE, request, marks)
    alignment = work.align(source.schema)
    keys = (alignment.apply(batch) for batch in source.batches())
    looked_at: set[PartitionKey] = set()
    written = _write_marks(runtime, table, _rows_of_keys(runtime, table, keys, looked_at))
    scope = _scope_of_partitions(runtime, table, looked_at)
    return stage_commit(runtime, table, CommitKind.DELETE, request, written, read_scope=scope)


def _check_partition_columns(table: TableInfo, places: dict[str, int]) -> None:
    """A key is unique within its partition only: without the partition it names nothing."""
    for column in table.partition_by:
        if column.name.casefold() not in places:
            raise InvalidInputError(
                f"The keys to delete from {table.full_name} lack the partition column {column.name!r}.",
                kind="missing_column",
                remedy="Add it, or delete by a predicate.",
            )


def _scope_of_partitions(runtime: Runtime, table: TableInfo, keys: Collection[PartitionKey]) -> ReadScope:
    """Just these partitions, whether they are there yet or not."""
    if not keys:
        return NO_READ
    where = in_any_partition(table.partition_by, keys) if table.partition_by else None
    if where is None:
        return WHOLE_TABLE
    query = files.FileQuery(
        table_id=table.id, snapshot_id=table.head_id, partition_by=table.partition_by, partition_predicate=where
    )
    return _scope(runtime, table, where, files.load_files(runtime.catalog, query).partitions)


def _rows_of_keys(
    runtime: Runtime, table: TableInfo, keys: Iterable[pa.RecordBatch], looked_at: set[PartitionKey]
) -> Iterator[pa.RecordBatch]:
    """The rows that the table has of these keys, with their sequence. Tells the partitions that it looked at."""
    names = tuple(column.name for column in _mark_columns(table))
    for batch in gather_keys(keys):
        looked_at.update(partition_keys(batch, table.partition_by))
        yield from find_rows(runtime, table, batch, names)


def _write_marks(runtime: Runtime, table: TableInfo, rows: Iterable[pa.RecordBatch]) -> WrittenRows:
    """A delete mark for each of the rows."""
    rows_in = 0
    with RunWriter(
        runtime.storage, _mark_target(table), buffer_bytes=table.options.write_buffer_bytes, threads=runtime.threads
    ) as writer:
        for batch in rows:
            rows_in += batch.num_rows
            writer.write(as_marks(batch, table.schema))
        return WrittenRows(files=writer.finish(), rows_in=rows_in)


def _mark_target(table: TableInfo) -> RunTarget:
    return run_target(
        table,
        table.schema,
        file_kind=_FILE_KIND,
        order_names=tuple(column.name for column in table.sequence_by),
        holds_deletes=True,
    )


def _mark_columns(table: TableInfo) -> tuple[Column, ...]:
    """What a delete mark says: the key, the partition, the sequence."""
    ids = dict.fromkeys(table.primary_key_ids + table.partition_ids + table.sequence_ids)
    return table.schema.select(ids)


def _scope(runtime: Runtime, table: TableInfo, predicate: Predicate, partition_ids: Collection[int]) -> ReadScope:
    """The partitions that the predicate lets one look at, those to come included."""
    if not columns_of(predicate) & set(table.partition_ids):
        return WHOLE_TABLE if partition_may_match(predicate, (), ()) else NO_READ
    partitions = files.load_partitions(runtime.catalog, list(partition_ids))
    looked_at = tuple(
        partition.id
        for partition in partitions.values()
        if partition_may_match(predicate, table.partition_by, partition.key)
    )
    return ReadScope(partition_ids=looked_at, where=predicate, own_partitions=True)
