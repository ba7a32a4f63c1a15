"""What Spark's tasks do with splits, one split a task, the largest first: compactions are rewritten, masks are found,
keys that have come to another partition are found with the marks by which they leave, and something is found out about
the rows of a scan where they are: each task reads a part of them and keeps what it has found, and what belongs together
is combined.

No row passes through the JVM. Works alike over Spark Connect.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from lakelib.model.files import NewFile, Split
from lakelib.storage.filesystem import Storage
from lakelib.work.masks import MaskWork, find_masked
from lakelib.work.moves import MoveWork, write_leaving
from lakelib.work.read import ReadTarget
from lakelib.work.rewrite import RewriteWork, rewrite_split
from lakelib.work.spark.read import deal_parts
from lakelib.work.spark.sessions import parallelism
from lakelib.work.spark.tasks import MESSAGE_DDL, Task, gather, numbered_task, read_parts, tell
from lakelib.work.write import WrittenFiles

Gather = Callable[[Iterator[pa.RecordBatch]], Iterator[tuple[int, bytes]]]
"""Of some rows, numbered pieces."""


def rewrite_on_spark(session: Any, works: Sequence[RewriteWork]) -> list[tuple[NewFile, ...]]:
    """The files of each work, all of one table. An error leaves no file behind that a task has told of."""

    def rewrite(number: int) -> WrittenFiles:
        return WrittenFiles(files=rewrite_split(works[number]), rows_in=0)

    task = numbered_task(lambda number: tell(number, lambda: rewrite(number)))
    rows = session.range(0, len(works), 1, len(works)).mapInArrow(task, MESSAGE_DDL).collect()
    root = works[0].storage.at(works[0].target.location)
    return [written.files for written in gather(root, rows)]


def find_masks_on_spark(session: Any, storage: Storage, works: Sequence[MaskWork]) -> list[dict[int, bytes]]:
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


def write_moves_on_spark(session: Any, works: Sequence[MoveWork]) -> list[WrittenFiles]:
    """What each work has written, a task each. An error leaves no file behind that a task has told of."""

    def write(number: int) -> Iterator[pa.RecordBatch]:
        return tell(number, lambda: write_leaving(works[number], 1))

    rows = session.range(0, len(works), 1, len(works)).mapInArrow(numbered_task(write), MESSAGE_DDL).collect()
    return gather(works[0].storage.at(works[0].writes.location), rows)


# Gathering


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
