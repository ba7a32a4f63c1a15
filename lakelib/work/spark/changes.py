"""Reads planned changes as a Spark data frame: dealt to tasks as splits of rows are, read by the same kernels."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakelib.model.changes import ChangeSplit
from lakelib.model.predicate import Predicate
from lakelib.storage.filesystem import Storage
from lakelib.work.changes import ChangeTarget, read_changes
from lakelib.work.spark.read import deal_parts
from lakelib.work.spark.sessions import parallelism
from lakelib.work.spark.sizes import are_long, row_bytes, sized_numbers
from lakelib.work.spark.tasks import OUTPUT_ROWS, numbered_task
from lakelib.work.spark.types import spark_schema_of

Part = tuple[ChangeSplit, Predicate | None]
"""A split, or the part of it that a predicate over its key cuts out."""


def read_frame(
    session: SparkSession, storage: Storage, target: ChangeTarget, splits: Sequence[ChangeSplit]
) -> DataFrame:
    """The changes. Nothing is read yet."""
    schema = spark_schema_of(target.output_schema)
    if not splits:
        return session.createDataFrame([], schema)
    dealt = deal_changes(storage, target, splits, parallelism(session))
    files = [file for split in splits for file in split.files]
    long_rows = are_long(file.size_bytes // max(1, file.row_count) for file in files)
    size_bytes = row_bytes(target.output_schema) * sum(file.row_count for file in files)
    numbers = sized_numbers(session, len(dealt), size_bytes, long_rows=long_rows)
    return numbers.mapInArrow(numbered_task(lambda number: changes_of(storage, target, dealt[number])), schema)


def deal_changes(storage: Storage, target: ChangeTarget, splits: Sequence[ChangeSplit], slots: int) -> list[list[Part]]:
    """Some parts a task, as splits of rows are dealt."""
    whole = [split.whole for split in splits]
    places = {id(split): place for place, split in enumerate(whole)}
    dealt = deal_parts(storage, target.reading, whole, slots)
    return [[(splits[places[id(part.split)]], part.within) for part in parts] for parts in dealt]


def changes_of(storage: Storage, target: ChangeTarget, parts: Sequence[Part]) -> Iterator[pa.RecordBatch]:
    """The changes in the parts."""
    for split, within in parts:
        for rows in read_changes(storage, target.within(within), split):
            yield from rows.to_batches(max_chunksize=OUTPUT_ROWS)
