"""Finds masks by Spark's tasks, a split each, the largest first."""

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lakelib.storage.filesystem import Storage
from lakelib.work.masks import MaskWork, find_masked
from lakelib.work.spark.tasks import MESSAGE_DDL, numbered_task


def find_on_spark(session: Any, storage: Storage, works: Sequence[MaskWork]) -> list[dict[int, bytes]]:
    """Of each work the vectors of its files."""
    order = sorted(range(len(works)), key=lambda place: -works[place].split.size_bytes)
    dealt = [works[place] for place in order]

    def find(number: int) -> Iterator[pa.RecordBatch]:
        message = pickle.dumps((number, find_masked(storage, dealt[number])))
        yield pa.record_batch([pa.array([message], pa.binary())], names=["message"])

    task = numbered_task(find)
    rows = session.range(0, len(dealt), 1, len(dealt)).mapInArrow(task, MESSAGE_DDL).collect()
    found = dict(pickle.loads(row[0]) for row in rows)
    return [found[place] for place in sorted(range(len(order)), key=order.__getitem__)]
