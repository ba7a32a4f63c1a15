"""Makes `spark.readStream.format("lake")` read a table's history.

Spark's data source is told neither whether its columns are asked for by a stream nor which those are once the table has
others. So the session's own reader notices the format, looks at what it was told before anything runs, and tells it.
"""

from typing import Any

from lakelib.ops.create import find_table
from lakelib.ops.stream import check_start, stream_schema
from lakelib.spark.lakes import lake_of
from lakelib.spark.reader_notes import noting_reader
from lakelib.spark.stream_options import SCHEMA, parse_stream, table_of, wrong_option
from lakelib.spark.watch import watch


def watch_streaming(session: Any) -> None:
    """Gives all sessions of the session's class (classic, or Spark Connect's) a reader that knows the format."""
    watch(session, "readStream", _watching)


def _watching(spark_type: Any) -> Any:
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
