"""Makes `spark.read.format("lake")` read a scan, or changes.

Spark tells a Python data source neither which columns are wanted nor, without mixing up the filters of two uses of one
frame, which rows (docs/decisions/0015). So the session's own reader notices the format and reads the table as
`Scan.to_spark` and `Changes.to_spark` do.
"""

from typing import Any

from lakelib.changes import Changes
from lakelib.ops.changes import plan_changes
from lakelib.ops.create import find_table
from lakelib.spark.lakes import lake_of
from lakelib.spark.options import parse_read
from lakelib.spark.reader_notes import noting_reader
from lakelib.spark.watch import watch


def watch_reading(session: Any) -> None:
    """Gives all sessions of the session's class (classic, or Spark Connect's) a reader that knows the format."""
    watch(session, "read", _watching)


def _watching(spark_type: type) -> Any:
    """Spark's reader, which reads from the lake what is of its format."""

    class LakeDataFrameReader(noting_reader(spark_type)):  # type: ignore[misc]
        def load(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> Any:
            self._note(format, schema, options)
            # A schema of one's own, and a list of paths, are Spark's to judge.
            if not self._is_lake or self._has_schema or not isinstance(path, str | None):
                return super().load(path)
            return _load(self._session, self._told if path is None else {**self._told, "path": path})

    return LakeDataFrameReader


def _load(session: Any, options: dict[str, str]) -> Any:
    asked = parse_read(options)
    lake = lake_of(session)
    if asked.changes is not None:
        plan = plan_changes(lake.runtime, find_table(lake.runtime, asked.table), asked.changes)
        return Changes(lake.runtime, plan).to_spark(session)
    scan = lake.table(asked.table).scan(columns=asked.columns, where=asked.where, at=asked.at, view=asked.view)
    return scan.to_spark(session)
