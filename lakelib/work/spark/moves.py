"""Spark's tasks find the rows whose keys have come to another partition, and write the marks by which they leave."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lakelib.work.moves import MoveWork, write_leaving
from lakelib.work.spark.tasks import MESSAGE_DDL, gather, numbered_task, tell
from lakelib.work.write import WrittenFiles


def write_on_spark(session: Any, works: Sequence[MoveWork]) -> list[WrittenFiles]:
    """What each work has written, a task each. An error leaves no file behind that a task has told of."""

    def write(number: int) -> Iterator[pa.RecordBatch]:
        return tell(number, lambda: write_leaving(works[number], 1))

    rows = session.range(0, len(works), 1, len(works)).mapInArrow(numbered_task(write), MESSAGE_DDL).collect()
    return gather(works[0].storage.at(works[0].writes.location), rows)
