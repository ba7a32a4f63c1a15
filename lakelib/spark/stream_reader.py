"""Makes `spark.readStream.format("lake")` read a table's history.

Spark's data source is told neither whether its columns are asked for by a stream nor which those are once the table has
others. So the session's own reader notices the format, looks at what it was told before anything runs, and tells it.
"""

from typing import Any

from lakelib.ops.create import find_table
from lakelib.ops.stream import check_start, stream_schema
from lakelib.spark.lakes import lake_of
from lakelib.spark.options import is_lake, told
from lakelib.spark.stream_options import SCHEMA, parse_stream, table_of, wrong_option
from lakelib.spark.watch import watch


def watch_streaming(session: Any) -> None:
    """Gives all sessions of the session's class (classic, or Spark Connect's) a reader that knows the format."""
    watch(session, "readStream", _watching)


def _watching(spark_type: type) -> Any:
    """Spark's reader, which takes note of what it is told, and adds what the data source has to know."""

    class LakeDataStreamReader(spark_type):  # type: ignore[misc]
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
            if self._is_lake:
                given = self._told if path is None else {**self._told, "path": str(path)}
                super().option(SCHEMA, _checked(self._session, given, self._has_schema))
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
