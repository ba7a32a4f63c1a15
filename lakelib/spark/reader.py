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
from lakelib.spark.options import is_lake, parse_read, told
from lakelib.spark.watch import watch


def watch_reading(session: Any) -> None:
    """Gives all sessions of the session's class (classic, or Spark Connect's) a reader that knows the format."""
    watch(session, "read", _watching)


def _watching(spark_type: type) -> Any:
    """Spark's reader, which takes note of what it is told, and reads from the lake what is of its format."""

    class LakeDataFrameReader(spark_type):  # type: ignore[misc]
        def __init__(self, plain: Any, session: Any) -> None:
            self.__dict__.update(plain.__dict__)
            self._session = session
            self._is_lake = False
            self._has_schema = False
            self._told: dict[str, str] = {}

        def format(self, source: str) -> Any:
            self._is_lake = is_lake(source)
            return super().format(source)

        def schema(self, schema: Any) -> Any:
            self._has_schema = True
            return super().schema(schema)

        def option(self, key: str, value: Any) -> Any:
            self._told |= told({key: value})
            return super().option(key, value)

        def options(self, **options: Any) -> Any:
            self._told |= told(options)
            return super().options(**options)

        def load(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> Any:
            if format is not None:
                self.format(format)
            if schema is not None:
                self.schema(schema)
            self.options(**options)
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
    return lake.table(asked.table).scan(columns=asked.columns, where=asked.where, at=asked.at).to_spark(session)
