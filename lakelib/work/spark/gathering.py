"""Finds something out about the rows of a scan where they are: each task reads a part of them and keeps what it has
found, and what belongs together is combined.

No row passes through the JVM. Works alike over Spark Connect.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from lakelib.model.files import Split
from lakelib.storage.filesystem import Storage
from lakelib.work.read import ReadTarget
from lakelib.work.spark.read import deal_parts
from lakelib.work.spark.sessions import parallelism
from lakelib.work.spark.tasks import Task, numbered_task, read_parts

Gather = Callable[[Iterator[pa.RecordBatch]], Iterator[tuple[int, bytes]]]
"""Of some rows, numbered pieces."""
Combine = Callable[[Iterable[bytes]], bytes]
"""Of pieces, among them all of the same number, one."""

_NUMBERED = pa.schema([("number", pa.int32()), ("piece", pa.binary())])
_PIECES = pa.schema([("piece", pa.binary())])


def gather_on_spark(
    session: SparkSession,
    storage: Storage,
    target: ReadTarget,
    splits: Sequence[Split],
    gather: Gather,
    combine: Combine,
    *,
    heap_count: int,
) -> list[bytes]:
    """What was combined, in one job. `heap_count`: how many tasks combine."""
    if not splits:
        return [combine(piece for _, piece in gather(iter(())))]
    dealt = deal_parts(storage, target, splits, parallelism(session))

    def look(number: int) -> Iterator[pa.RecordBatch]:
        for place, piece in gather(read_parts(storage, target, dealt[number])):
            yield pa.record_batch([pa.array([place], pa.int32()), pa.array([piece])], schema=_NUMBERED)

    numbers = session.range(0, len(dealt), 1, len(dealt))
    found = numbers.mapInArrow(numbered_task(look), "number int, piece binary")
    if len(dealt) > 1:
        found = found.repartition(heap_count, "number")
    combined = found.mapInArrow(_combining(combine), "piece binary")
    return [bytes(row[0]) for row in combined.collect()]


def _combining(combine: Combine) -> Task:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        piece = combine(piece.as_py() for batch in batches for piece in batch.column("piece"))
        yield pa.record_batch([pa.array([piece])], schema=_PIECES)

    return run
