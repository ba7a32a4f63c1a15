"""Reads planned changes as a Spark data frame: some splits a task, by the same kernels as in process."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakelib.work.spark.sessions import parallelism
from lakelib.work.spark.sizes import are_long, row_bytes, sized_numbers
from lakelib.work.spark.tasks import OUTPUT_ROWS, Task
from lakelib.work.spark.told import told_in_text
from lakelib.work.spark.types import spark_schema_of
from lakelib.model.changes import ChangeSplit
from lakelib.model.files import Split
from lakelib.model.predicate import Predicate
from lakelib.plan.balance import balance, choose_group_count, choose_part_count
from lakelib.work.changes import ChangeTarget, read_changes
from lakelib.storage.filesystem import Storage
from lakelib.work.read import cut_split


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePart:
    """A split, or the part of it that a predicate over its key cuts out."""

    split: ChangeSplit
    within: Predicate | None
    size_bytes: int


def read_frame(
    session: SparkSession, storage: Storage, target: ChangeTarget, splits: Sequence[ChangeSplit]
) -> DataFrame:
    """The changes. Nothing is read yet."""
    schema = spark_schema_of(target.output_schema)
    if not splits:
        return session.createDataFrame([], schema)
    slots = parallelism(session)
    parts = _cut_parts(storage, target, splits, slots)
    sizes = [part.size_bytes for part in parts]
    groups = [
        [parts[place] for place in group] for group in balance(sizes, choose_group_count(sum(sizes), len(parts), slots))
    ]
    files = [file for split in splits for file in split.files]
    long_rows = are_long(file.size_bytes // max(1, file.row_count) for file in files)
    size_bytes = row_bytes(target.output_schema) * sum(file.row_count for file in files)
    numbers = sized_numbers(session, len(groups), size_bytes, long_rows=long_rows)
    return numbers.mapInArrow(_task(storage, target, groups), schema)


def _task(storage: Storage, target: ChangeTarget, groups: Sequence[Sequence[ChangePart]]) -> Task:
    """Gets the numbers of groups of parts, gives their changes."""

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                with told_in_text():
                    for part in groups[number]:
                        for rows in read_changes(storage, target.within(part.within), part.split):
                            yield from rows.to_batches(max_chunksize=OUTPUT_ROWS)

    return read


def _cut_parts(storage: Storage, target: ChangeTarget, splits: Sequence[ChangeSplit], slots: int) -> list[ChangePart]:
    total = sum(split.size_bytes for split in splits)
    parts: list[ChangePart] = []
    for split in splits:
        count = choose_part_count(split.size_bytes, total, slots)
        whole = Split(partition=split.partition, depth=split.depth, prefix=split.prefix, files=split.files)
        ranges: Sequence[Predicate | None] = cut_split(storage, target.reading, whole, count) if count > 1 else [None]
        parts += [
            ChangePart(split=split, within=within, size_bytes=split.size_bytes // len(ranges)) for within in ranges
        ]
    return parts
