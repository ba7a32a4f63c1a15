"""What runs in a Spark task: the same kernels as in process, on what Spark hands in and takes out as Arrow batches."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from lakelib.dataclass import dataclass
from lakelib.errors import LakeError
from lakelib.model.files import Split
from lakelib.model.options import MIB
from lakelib.model.predicate import Predicate
from lakelib.plan.scan import gather_splits
from lakelib.storage.filesystem import Storage
from lakelib.work.read import ReadTarget, read_splits
from lakelib.work.spark.told import told_in_text
from lakelib.work.write import WriteWork, WrittenFiles, write_batches

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

OUTPUT_ROWS = 65_536
_BATCH_ROWS = 65_536
_BATCH_BYTES = 32 * MIB
_TASK_THREADS = 1
"""Spark gives a task one processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPart:
    """A split, or the part of it that a predicate over its key cuts out."""

    split: Split
    within: Predicate | None
    size_bytes: int


def numbered_task(work: Callable[[int], Iterator[pa.RecordBatch]]) -> Task:
    """Gets numbers, gives what the work makes of each."""

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                with told_in_text():
                    yield from work(number)

    return run


def reading_task(storage: Storage, target: ReadTarget, dealt: Sequence[Sequence[ReadPart]]) -> Task:
    """Gets the numbers of tasks, gives the rows of the parts that are dealt to them."""
    return numbered_task(lambda number: read_parts(storage, target, dealt[number]))


def read_parts(storage: Storage, target: ReadTarget, parts: Sequence[ReadPart]) -> Iterator[pa.RecordBatch]:
    for within, same in groupby(parts, key=lambda part: part.within):
        for splits in gather_splits((part.split for part in same), merges=bool(target.primary_key)):
            for rows in read_splits(storage, target.within(within), splits):
                yield from rows.to_batches(max_chunksize=OUTPUT_ROWS)


# What tasks tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What work tells the driver: the files that it has finished, or why there are none."""

    task: int
    written: WrittenFiles | None = None
    error: LakeError | None = None


MESSAGE_DDL = "message binary"
_MESSAGE_SCHEMA = pa.schema([("message", pa.binary())])


def tell(task: int, work: Callable[[], WrittenFiles]) -> Iterator[pa.RecordBatch]:
    """Does the work, gives one message. lakelib's own errors are told in it: Spark would run the task again, and hide
    what was wrong."""
    try:
        message = Message(task=task, written=work())
    except LakeError as error:
        message = Message(task=task, error=error)
    yield pa.record_batch([pa.array([pickle.dumps(message)])], schema=_MESSAGE_SCHEMA)


def gather(root: Storage, rows: Iterable[Any]) -> list[WrittenFiles]:
    """What the tasks have told in these rows, in their order. An error leaves no file behind, below the root, that a
    task has told of."""
    messages: list[Message] = sorted((pickle.loads(row[0]) for row in rows), key=lambda told: told.task)
    written = [message.written for message in messages if message.written is not None]
    errors = [message.error for message in messages if message.error is not None]
    if errors:
        root.delete_files(file.path for each in written for file in each.files)
        raise errors[0]
    return written


def writing_task(work: WriteWork, names: Sequence[str]) -> Task:
    """Gets rows, whose columns have these names, writes them as runs, gives one message.

    An attempt that is killed, or whose message Spark does not take, leaves files that no commit names.
    """

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        named = (batch.rename_columns(list(names)) for batch in batches)
        first = next(named, None)
        if first is None:
            return
        rows = _large_batches(chain([first], named), min(_BATCH_BYTES, work.buffer_bytes))
        yield from tell(task, lambda: write_batches(work, work.align(first.schema), rows, _TASK_THREADS))

    return write


def _large_batches(batches: Iterator[pa.RecordBatch], most_bytes: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches that are worth the kernels' while: Spark's are small."""
    held: list[pa.RecordBatch] = []
    row_count = size_bytes = 0
    for batch in batches:
        held.append(batch)
        row_count += batch.num_rows
        size_bytes += batch.nbytes
        if row_count >= _BATCH_ROWS or size_bytes >= most_bytes:
            yield pa.concat_batches(held)
            held.clear()
            row_count = size_bytes = 0
    if held:
        yield pa.concat_batches(held)
