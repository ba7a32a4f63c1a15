"""Part of deletes: marks, the rows of `_op` 1 that supersede what they name."""

from collections.abc import Iterable

import pyarrow as pa

from lakelib.model.schema import Column
from lakelib.model.table import TableInfo
from lakelib.ops.runtime import Runtime
from lakelib.ops.write import WrittenRows, run_target
from lakelib.storage.run_writer import RunTarget, RunWriter
from lakelib.storage.write_work import as_marks

_FILE_KIND = "delete"


def write_marks(runtime: Runtime, table: TableInfo, rows: Iterable[pa.RecordBatch]) -> WrittenRows:
    """A delete mark for each of the rows."""
    rows_in = 0
    with RunWriter(
        runtime.storage, mark_target(table), buffer_bytes=table.options.write_buffer_bytes, threads=runtime.threads
    ) as writer:
        for batch in rows:
            rows_in += batch.num_rows
            writer.write(as_marks(batch, table.schema))
        return WrittenRows(files=writer.finish(), rows_in=rows_in)


def mark_target(table: TableInfo) -> RunTarget:
    return run_target(
        table,
        table.schema,
        file_kind=_FILE_KIND,
        order_names=tuple(column.name for column in table.sequence_by),
        holds_deletes=True,
    )


def mark_columns(table: TableInfo) -> tuple[Column, ...]:
    """What a delete mark says: the key, the partition, the sequence."""
    ids = dict.fromkeys(table.primary_key_ids + table.partition_ids + table.sequence_ids)
    return table.schema.select(ids)
