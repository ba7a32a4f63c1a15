"""The rows of one partition on Spark, as a table's spec has them made: from files, from a query over files and
tables."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jobs.common.arguments import Files
from jobs.common.partitions import PartitionRows, PinnedRead
from jobs.common.sources import open_rows_of_files
from lakelib import Lake
from lakelib.distribute.files import FileSource
from lakelib.distribute.frames import FrameSource, open_frame
from lakelib.model.table import TableInfo
from lakelib.ops.arrival import Arrival
from lakelib.ops.engine import query_of
from lakelib.ops.overwrite import parse_target
from lakelib.ops.request import WriteRequest
from lakelib.rows.types import plain_schema
from lakelib.specs.table_fields import SOURCE_VIEW, Source
from lakelib.specs.table_spec import TableSpec

_SUBSTITUTION = "spark.sql.variable.substitute"


@contextmanager
def opened_partition(
    session: Any,
    lake: Lake,
    table: TableInfo,
    spec: TableSpec,
    key: str,
    arrival: Arrival | None,
    reads: tuple[PinnedRead, ...],
    write: WriteRequest,
) -> Iterator[PartitionRows]:
    """The rows, as long as the block lasts. An empty source has no rows, whatever the transform."""
    if spec.source is not None and (arrival is None or arrival.is_empty):
        yield PartitionRows(rows=plain_schema(table.schema.columns).empty_table(), is_transformed=False)
        return
    rows = None
    if spec.source is not None and arrival is not None:
        rows = _open_source(session, lake, table, spec.source, arrival, write)
    if spec.transform_path is None or (rows is not None and _is_empty(rows)):
        yield PartitionRows(rows=rows, is_transformed=False)
        return
    views = [*([] if rows is None else [SOURCE_VIEW]), *(read.view for read in reads)]
    try:
        if rows is not None:
            _frame_of(rows, table, spec.partition_value(key)).createOrReplaceTempView(SOURCE_VIEW)
        for read in reads:
            scan = lake.table(read.table).scan(at=read.snapshot_id or None)
            scan.to_spark(session).createOrReplaceTempView(read.view)
        frame = _run_query(session, query_of(spec), key)
        yield PartitionRows(rows=open_frame(frame, getattr(rows, "settle", None)), is_transformed=True)
    finally:
        for view in views:
            session.catalog.dropTempView(view)


def _open_source(
    session: Any, lake: Lake, table: TableInfo, source: Source, arrival: Arrival, write: WriteRequest
) -> Any:
    files = Files(
        format=source.format.lower(),
        paths=(arrival.path,),
        options=source.options,
        schema=source.columns,
        columns=None,
        where=None,
    )
    return open_rows_of_files(session, lake, table, files, write, arrival.files)


def _is_empty(rows: FileSource | FrameSource) -> bool:
    """Files that only Spark reads have to be read for it, up to the first row."""
    return rows.is_empty if isinstance(rows, FileSource) else bool(rows.frame.isEmpty())


def _frame_of(rows: FileSource | FrameSource, table: TableInfo, values: Mapping[str, str]) -> Any:
    """Files that lack a column of the partition, where others have it, are of the partition's value, as they are
    without a transform."""
    if isinstance(rows, FrameSource):
        return rows.frame
    return rows.filled(parse_target(table, values).constants if values else {}).frame()


def _run_query(session: Any, query: str, key: str) -> Any:
    """The query means what it says: Spark would put `${env:NAME}`, a variable of the environment, into its text."""
    before = session.conf.get(_SUBSTITUTION, None)
    session.conf.set(_SUBSTITUTION, "false")
    try:
        return session.sql(query, args={"partition": key})
    finally:
        if before is None:
            session.conf.unset(_SUBSTITUTION)
        else:
            session.conf.set(_SUBSTITUTION, before)
