"""Part of deletes where rows are not merged by key: files are replaced by files without the rows that match."""

from dataclasses import replace

import pyarrow.compute as pc

from lakelib.model.predicate import Predicate
from lakelib.ops.read import Held, ScanPlan
from lakelib.ops.runtime import Runtime
from lakelib.ops.write import WrittenRows, run_target
from lakelib.rows.filter import matching_rows
from lakelib.storage.run_writer import RunWriter
from lakelib.storage.split_reader import read_split

_FILE_KIND = "delete"


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
