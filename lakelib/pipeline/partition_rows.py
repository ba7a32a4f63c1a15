"""The rows of one partition on Spark, as a table's spec has them made: from files, from a query over files and
tables."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lakelib import Lake
from lakelib.model.table import TableInfo
from lakelib.ops.arrival import Arrival
from lakelib.ops.engine import query_of
from lakelib.ops.overwrite import parse_target
from lakelib.ops.request import WriteRequest
from lakelib.pipeline.arguments import Files
from lakelib.pipeline.partitions import Making, PartitionRows
from lakelib.pipeline.sources import open_rows_of_files
from lakelib.pipeline.view_rows import ViewRows
from lakelib.specs.table_fields import SOURCE_VIEW, Source
from lakelib.work.spark.files import FileSource
from lakelib.work.spark.frames import FrameSource, open_frame

_SUBSTITUTION = "spark.sql.variable.substitute"


@contextmanager
def opened_partition(session: Any, making: Making) -> Iterator[PartitionRows]:
    """The rows, as long as the block lasts."""
    lake, table, spec = making.lake, making.table, making.spec
    rows = None
    if spec.source is not None and making.arrival is not None:
        rows = _open_source(session, lake, table, spec.source, making.arrival, making.write)
    if spec.transform_path is None or (rows is not None and _is_empty(rows)):
        yield PartitionRows(rows=rows, is_transformed=False)
        return
    views = [*([] if rows is None else [SOURCE_VIEW]), *(read.view for read in making.reads)]
    try:
        if rows is not None:
            _frame_of(rows, table, spec.partition_value(making.key)).createOrReplaceTempView(SOURCE_VIEW)
        for read in making.reads:
            ViewRows(lake, read).frame(session).createOrReplaceTempView(read.view)
        with _taken_literally(session):
            frame = session.sql(query_of(spec), args={"partition": making.key})
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


@contextmanager
def _taken_literally(session: Any) -> Iterator[None]:
    """Meanwhile a query means what it says: Spark would put `${env:NAME}`, a variable of the environment, into its
    text. Over Spark Connect it looks at the text whenever the rows are computed."""
    before = session.conf.get(_SUBSTITUTION, None)
    session.conf.set(_SUBSTITUTION, "false")
    try:
        yield
    finally:
        if before is None:
            session.conf.unset(_SUBSTITUTION)
        else:
            session.conf.set(_SUBSTITUTION, before)
