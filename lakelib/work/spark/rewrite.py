"""Rewrites the splits of a compaction by Spark's tasks, one split a task, the largest first."""

from collections.abc import Sequence
from typing import Any

from lakelib.model.files import NewFile
from lakelib.work.rewrite import RewriteWork, rewrite_split
from lakelib.work.spark.tasks import MESSAGE_DDL, gather, numbered_task, tell
from lakelib.work.write import WrittenFiles


def rewrite_on_spark(session: Any, works: Sequence[RewriteWork]) -> list[tuple[NewFile, ...]]:
    """The files of each work, all of one table. An error leaves no file behind that a task has told of."""

    def rewrite(number: int) -> WrittenFiles:
        return WrittenFiles(files=rewrite_split(works[number]), rows_in=0)

    task = numbered_task(lambda number: tell(number, lambda: rewrite(number)))
    rows = session.range(0, len(works), 1, len(works)).mapInArrow(task, MESSAGE_DDL).collect()
    root = works[0].storage.at(works[0].target.location)
    return [written.files for written in gather(root, rows)]
