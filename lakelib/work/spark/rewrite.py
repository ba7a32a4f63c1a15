"""Rewrites the splits of a compaction by Spark's tasks, one split a task, the largest first."""

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lakelib.errors import LakeError
from lakelib.model.files import NewFile
from lakelib.work.rewrite import RewriteWork, rewrite_split
from lakelib.work.spark.tasks import MESSAGE_DDL, MESSAGE_SCHEMA, Message, Task
from lakelib.work.write import WrittenFiles


def rewrite_on_spark(session: Any, works: Sequence[RewriteWork]) -> list[tuple[NewFile, ...]]:
    """The files of each work. An error leaves no file behind that a task has told of."""
    numbers = session.range(0, len(works), 1, len(works))
    rows = numbers.mapInArrow(_rewriting_task(works), MESSAGE_DDL).collect()
    messages: list[Message] = sorted((pickle.loads(row[0]) for row in rows), key=lambda message: message.task)
    files = [() if message.written is None else message.written.files for message in messages]
    errors = [message.error for message in messages if message.error is not None]
    if errors:
        for work, written in zip(works, files, strict=True):
            work.storage.at(work.target.location).delete_files(file.path for file in written)
        raise errors[0]
    return files


def _rewriting_task(works: Sequence[RewriteWork]) -> Task:
    """Gets the numbers of works; does each, and gives a message of each, also of an error of lakelib's: Spark would run
    the task again, and hide what was wrong."""

    def rewrite(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                try:
                    written = WrittenFiles(files=rewrite_split(works[number]), rows_in=0)
                    message = Message(task=number, written=written)
                except LakeError as error:
                    message = Message(task=number, error=error)
                yield pa.record_batch([pa.array([pickle.dumps(message)])], schema=MESSAGE_SCHEMA)

    return rewrite
