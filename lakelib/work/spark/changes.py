"""Reads planned changes as a Spark data frame: some splits a task, by the same kernels as in process."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakelib.model.changes import ChangeSplit
from lakelib.model.files import Split
from lakelib.model.predicate import Predicate
from lakelib.plan.balance import balance, choose_part_count, choose_task_count
from lakelib.storage.filesystem import Storage
from lakelib.work.changes import ChangeTarget, read_changes
from lakelib.work.read import cut_split
from lakelib.work.spark.sessions import parallelism
from lakelib.work.spark.sizes import are_long, row_bytes, sized_numbers
from lakelib.work.spark.tasks import OUTPUT_ROWS, numbered_task
from lakelib.work.spark.types import spark_schema_of


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
    dealt = deal_changes(storage, target, splits, parallelism(session))
    files = [file for split in splits for file in split.files]
    long_rows = are_long(file.size_bytes // max(1, file.row_count) for file in files)
    size_bytes = row_bytes(target.output_schema) * sum(file.row_count for file in files)
    numbers = sized_numbers(session, len(dealt), size_bytes, long_rows=long_rows)
    task = numbered_task(lambda number: changes_of(storage, target, dealt[number]))
    return numbers.mapInArrow(task, schema)


def deal_changes(
    storage: Storage, target: ChangeTarget, splits: Sequence[ChangeSplit], slots: int
) -> list[list[ChangePart]]:
    """The splits, cut where they are large, dealt to tasks that are about equally heavy."""
    parts = _cut_parts(storage, target, splits, slots)
    sizes = [part.size_bytes for part in parts]
    dealt = balance(sizes, choose_task_count(sum(sizes), len(parts), slots))
    return [[parts[place] for place in places] for places in dealt]


def changes_of(storage: Storage, target: ChangeTarget, parts: Sequence[ChangePart]) -> Iterator[pa.RecordBatch]:
    """The changes in the parts."""
    for part in parts:
        for rows in read_changes(storage, target.within(part.within), part.split):
            yield from rows.to_batches(max_chunksize=OUTPUT_ROWS)


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
