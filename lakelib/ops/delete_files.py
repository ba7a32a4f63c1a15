"""Part of deletes: the files that take rows away. Delete marks, the rows of `_op` 1, supersede what they name; where
rows are not merged by key, files take the place of files with the rows that match."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakelib.model.merge import OnDelete
from lakelib.model.predicate import Predicate
from lakelib.model.schema import Column, Op
from lakelib.model.table import TableInfo
from lakelib.ops.hold import Held
from lakelib.ops.merging import order_names, run_target
from lakelib.ops.read import ScanPlan
from lakelib.ops.runtime import Runtime
from lakelib.ops.write import WrittenRows
from lakelib.rows.filter import matching_rows
from lakelib.work.read import read_split
from lakelib.work.run_writer import RunTarget, write_runs
from lakelib.work.write import as_deletes

_FILE_KIND = "delete"


def write_deletes(runtime: Runtime, table: TableInfo, rows: Iterable[pa.RecordBatch]) -> WrittenRows:
    """A delete mark for each of the rows; where deletes empty groups, that they are empty."""
    mark = Op.VALUES if table.merge.on_delete is OnDelete.GROUPS else Op.DELETE
    return _write(runtime, delete_target(table), (as_deletes(batch, table.schema, mark) for batch in rows))


def _write(runtime: Runtime, target: RunTarget, rows: Iterable[pa.RecordBatch]) -> WrittenRows:
    rows_in = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows_in
        for batch in rows:
            rows_in += batch.num_rows
            yield batch

    files = write_runs(
        runtime.storage,
        target,
        counted(),
        buffer_bytes=target.options.write_buffer_bytes,
        threads=runtime.threads,
    )
    return WrittenRows(files=files, rows_in=rows_in)


def delete_target(table: TableInfo) -> RunTarget:
    return run_target(
        table,
        table.schema,
        file_kind=_FILE_KIND,
        order_names=order_names(table, table.schema),
        holds_deletes=True,
    )


def delete_columns(table: TableInfo) -> tuple[Column, ...]:
    """What a delete mark says: the key, the partition, the sequence, and those of groups that it empties."""
    ids = dict.fromkeys(table.primary_key_ids + table.partition_ids + table.sequence_ids)
    if table.merge.on_delete is OnDelete.GROUPS:
        ids |= dict.fromkeys(each for group in table.merge.groups for each in group.sequence)
    return table.schema.select(ids)


def rewrite_without(runtime: Runtime, plan: ScanPlan, predicate: Predicate) -> tuple[WrittenRows, tuple[int, ...]]:
    """Files without the matching rows, and the ids of those that they replace. The rows that stay keep their commit,
    which is among the plan's columns."""
    with Held(runtime, plan):
        touched = [split for split in plan.splits if any(True for _ in read_split(runtime.storage, plan.target, split))]
        written = _write_kept(runtime, replace(plan, splits=tuple(touched)), predicate)
    return written, tuple(file.id for split in touched for file in split.files)


def _write_kept(runtime: Runtime, plan: ScanPlan, predicate: Predicate) -> WrittenRows:
    """Writes the rows of the plan's files for which the predicate is not TRUE."""
    table = plan.table
    everything = replace(plan.target, predicate=None, asked_columns=())
    target = run_target(table, table.schema, file_kind=_FILE_KIND, order_names=(), holds_commits=True)
    read = (rows for split in plan.splits for rows in read_split(runtime.storage, everything, split))
    kept = (rows.filter(pc.invert(matching_rows(predicate, rows))) for rows in read)
    return _write(runtime, target, (batch for rows in kept for batch in rows.to_batches()))
