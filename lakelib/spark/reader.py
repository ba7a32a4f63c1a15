"""Makes `spark.read.format("lake")` read a scan, or changes, and `spark.readStream.format("lake")` a table's history.

Spark tells a Python data source neither which columns are wanted nor, without mixing up the filters of two uses of one
frame, which rows (docs/decisions/0015). So the session's own reader notices the format and reads the table as
`Scan.to_spark` and `Changes.to_spark` do.

Nor is it told whether its columns are asked for by a stream, and which those are once the table has others. So the
session's own reader of streams looks at what it was told before anything runs, and tells the data source.
"""

from typing import Any

from lakelib.changes import Changes
from lakelib.ops.changes import plan_changes
from lakelib.ops.create import find_table
from lakelib.ops.stream import check_start, stream_schema
from lakelib.spark.lakes import lake_of
from lakelib.spark.options import SCHEMA, is_lake, parse_read, parse_stream, table_of, told, wrong_option
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


def watch_streaming(session: Any) -> None:
    """Gives all sessions of the session's class (classic, or Spark Connect's) a reader that knows the format."""
    watch(session, "readStream", _watching_streams)


def _watching_streams(spark_type: Any) -> Any:
    """Spark's reader, which adds what the data source has to know."""

    class LakeDataStreamReader(noting_reader(spark_type)):  # type: ignore[misc]
        def load(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> Any:
            self._note(format, schema, options)
            if self._is_lake:
                given = self._told if path is None else {**self._told, "path": str(path)}
                spark_type.option(
                    self, SCHEMA, _checked(self._session, given, self._has_schema)
                )  # it is no user's note
            return super().load(path)

    return LakeDataStreamReader


def _checked(session: Any, options: dict[str, str], has_schema: bool) -> str:
    """The version of the table's schema that the stream will have. Raises a LakeError for what it cannot be told."""
    if has_schema or SCHEMA in options:
        raise wrong_option("schema", "given", "Leave it out: a table knows its columns; the option columns chooses.")
    runtime = lake_of(session).runtime
    table = find_table(runtime, table_of(options))
    request = parse_stream(options, table.schema.id)
    stream_schema(runtime, table, request)
    check_start(runtime, table, request)
    return str(table.schema.id)


def noting_reader(spark_type: type) -> Any:
    """The reader's class, taking note of what it is told."""

    class NotingReader(spark_type):  # type: ignore[misc]
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

        def _note(self, format: str | None, schema: Any, options: dict[str, Any]) -> None:
            """What `load` is told besides."""
            if format is not None:
                self.format(format)
            if schema is not None:
                self.schema(schema)
            self.options(**options)

    return NotingReader
