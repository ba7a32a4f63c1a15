"""Writes a Spark data frame as runs, by Spark's tasks.

Without a shuffle ("none") each task writes sorted runs of its own, as deep as their size warrants: every bucket then
has a run of each task. With one ("hash") the rows of a bucket meet in one task, which writes one run; the JVM computes
the bucket. Tasks return a message; Spark takes one message a task, whatever it retries, kills or runs twice, and only
files that are named in it enter the commit.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as sf

from lakelib.model.files import NewFile
from lakelib.model.options import MIB
from lakelib.model.schema import Column
from lakelib.model.table import MAX_DEPTH
from lakelib.rows.align import places_by_name
from lakelib.rows.convert import ZONED_TEXT
from lakelib.work.run_writer import RunTarget
from lakelib.work.spark.conditions import named
from lakelib.work.spark.sessions import is_connect, parallelism, quick_batches
from lakelib.work.spark.sizes import estimated_bytes, has_long_rows, partition_count
from lakelib.work.spark.tasks import MESSAGE_DDL, gather, writing_task
from lakelib.work.spark.told import error_told
from lakelib.work.write import WriteWork, WrittenFiles

_RUN_BYTES = 128 * MIB
"""About what one task writes of rows that are not shuffled."""

MOST_RUNS = 8
"""Rows that more tasks than these would have to write are shuffled: each task makes a run of every bucket."""

_BUFFERS = 2
"""A task holds as many write buffers of rows: each run that it does not write is one less to merge."""

_TASKS_A_SLOT = 16
"""An estimate may be far too high, and a task costs time however few rows it gets."""

_TOO_LARGE = ("OversizedAllocationException", "OutOfMemory")
"""What Spark's error says when a batch is too large for a vector or for the memory left."""

_POSITION = "__lakelib_position"


def write_frame(
    frame: Any,
    schema: pa.Schema,
    work: WriteWork,
    distribution: str,
    size_bytes: int | None = None,
    long_rows: bool | None = None,
) -> WrittenFiles:
    """Writes the frame's rows, which have that schema, and about so many bytes, and are long or not, where that is
    known better than Spark does. An error leaves no file behind that a task has told of."""
    long_rows = has_long_rows(frame) if long_rows is None else long_rows
    estimate = cache(lambda: estimated_bytes(frame) if size_bytes is None else size_bytes)
    if is_shuffled(work, distribution, estimate) or _has_many_runs(frame, work, distribution):
        frame = _by_bucket(frame, schema, work, estimate())
    elif distribution == "auto" and not work.target.primary_key:
        frame = _by_few_tasks(frame, estimate())
    return join_runs(_written_by_tasks(frame, schema, work, long_rows))


def task_work(work: WriteWork) -> WriteWork:
    """What one of many tasks does of the work."""
    return replace(work, single_run=False, buffer_bytes=_BUFFERS * work.buffer_bytes)


def _written_by_tasks(frame: Any, schema: pa.Schema, work: WriteWork, long_rows: bool) -> list[WrittenFiles]:
    """What each task has written, in their order. Where rows of an extraordinary length make a batch too large, all is
    done again with batches that are bounded as Spark does it by itself."""
    task = writing_task(task_work(work), schema.names)
    # mapInArrow takes a dot or a backtick in a column's name for something else.
    numbered = frame.toDF(*(f"c{place}" for place in range(len(schema))))
    try:
        with quick_batches(frame.sparkSession, schema, long_rows=long_rows):
            rows = numbered.mapInArrow(task, MESSAGE_DDL).collect()
    except Exception as error:
        told = error_told(error)
        if told is not None:
            raise told from error
        if not any(word in str(error) for word in _TOO_LARGE):
            raise
        rows = numbered.mapInArrow(task, MESSAGE_DDL).collect()
    return gather(work.storage.at(work.target.location), rows)


def join_runs(written: Sequence[WrittenFiles]) -> WrittenFiles:
    """What all tasks have written; of two rows of a key the later task's is newer."""
    files: list[NewFile] = []
    first_run = 0
    for each in written:
        files += [replace(file, run=first_run + file.run) for file in each.files]
        first_run += 1 + max((file.run for file in each.files), default=-1)
    return WrittenFiles(
        files=tuple(files),
        rows_in=sum(each.rows_in for each in written),
        changes=sum((each.changes for each in written), Counter()),
    )


# Distribution


def is_shuffled(work: WriteWork, distribution: str, estimate: Callable[[], int | None]) -> bool:
    """Columns that are not stored can order rows only where all rows of a key meet. `estimate` is asked for the rows'
    size where that decides."""
    target = work.target
    if work.single_run:
        return True
    if distribution == "none" or not (target.primary_key or target.partition_by):
        return False
    if distribution == "hash":
        return True
    takes_part = bool(target.primary_key) and target.buckets.mode != "postpone"
    return takes_part and (estimate() or 0) > MOST_RUNS * _RUN_BYTES


def _has_many_runs(frame: Any, work: WriteWork, distribution: str) -> bool:
    """Whether a frame of rows with keys, however small, has more partitions than should be runs."""
    if distribution != "auto" or not work.target.primary_key or is_connect(frame.sparkSession):
        return False
    count = partition_count(frame)
    return count is None or count > MOST_RUNS


def _by_few_tasks(frame: Any, size_bytes: int | None) -> Any:
    """Small frames of many partitions would become a great many tiny files. Not for rows with keys: a task is given
    partitions that are near to it, whatever their order."""
    if size_bytes is None:
        return frame
    slots = min(parallelism(frame.sparkSession), MOST_RUNS)
    return frame.coalesce(max(slots, -(-size_bytes // _RUN_BYTES)))


def _by_bucket(frame: Any, schema: pa.Schema, work: WriteWork, size_bytes: int | None) -> Any:
    """Rows of one bucket in one task, in the order in which the frame has them, or that the auxiliary columns say."""
    places = places_by_name(schema)
    stored = {column.name.casefold() for column in work.target.schema.columns}
    auxiliary = [name for name in work.target.order_names if name.casefold() not in stored]
    order = [_source_column(schema, places, name).asc_nulls_first() for name in auxiliary]
    positioned = frame.withColumn(_POSITION, sf.monotonically_increasing_id())
    shuffled = _shuffled(positioned, schema, places, work.target, size_bytes)
    return shuffled.sortWithinPartitions(*order, sf.col(_POSITION)).drop(_POSITION)


def _shuffled(
    frame: Any, schema: pa.Schema, places: Mapping[str, int], target: RunTarget, size_bytes: int | None
) -> Any:
    """One task a bucket; where there are more buckets than tasks, those of a partition are dealt to all tasks alike."""
    task_count, depth = _choose_tasks(frame, target, size_bytes)
    number = sf.lit(0).cast("bigint")
    if target.partition_by:
        number = sf.xxhash64(*_typed(schema, places, target.partition_by))
    if depth:
        number = number + sf.shiftrightunsigned(sf.xxhash64(*_typed(schema, places, target.primary_key)), 64 - depth)
    task = sf.pmod(number, sf.lit(task_count)).cast("int")
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(task_count, task)
    return frame.repartition(task_count, task)


def _choose_tasks(frame: Any, target: RunTarget, size_bytes: int | None) -> tuple[int, int]:
    """How many tasks write, and to which depth their rows are told apart."""
    slots = parallelism(frame.sparkSession)
    wanted = min(max(slots, -(-(size_bytes or 0) // _RUN_BYTES)), _TASKS_A_SLOT * slots)
    if not target.primary_key:
        return wanted, 0
    depth = target.buckets.fixed_depth
    if depth is None:
        depth = min(MAX_DEPTH, (wanted - 1).bit_length())
    buckets = 1 << depth
    return (wanted if buckets >= wanted else -(-wanted // buckets) * buckets), depth


def _typed(schema: pa.Schema, places: Mapping[str, int], columns: Sequence[Column]) -> list[SparkColumn]:
    """The frame's columns in the types of the table: 1 as an int has another hash than 1 as a bigint."""
    return [_typed_column(schema, places, column) for column in columns]


def _typed_column(schema: pa.Schema, places: Mapping[str, int], column: Column) -> SparkColumn:
    given = _source_column(schema, places, column.name)
    if not pa.types.is_string(schema.field(places[column.name.casefold()]).type):
        return given.cast(column.type)
    # What text cannot be turned into is told by the task that writes it, with column and row.
    return (_as_utc(given) if column.type == "timestamp" else given).try_cast(column.type)


def _as_utc(text: SparkColumn) -> SparkColumn:
    """Moments in text, with the zone UTC where none is named: Spark would take them for the session's."""
    whole_days = sf.when(text.contains(":"), sf.lit("")).otherwise(sf.lit(" 00:00"))
    return sf.when(text.rlike(ZONED_TEXT), text).otherwise(sf.concat(text, whole_days, sf.lit("Z")))


def _source_column(schema: pa.Schema, places: Mapping[str, int], name: str) -> SparkColumn:
    return named(schema.names[places[name.casefold()]])
