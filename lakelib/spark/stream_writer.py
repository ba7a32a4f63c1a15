"""Makes `frame.writeStream.format("lake")` write to a lake.

A data source of Spark's in Python decides neither how rows are distributed nor which query it works for. So the
frame's own stream writer notices the format, looks at what it was told before anything runs, and has Spark hand it
each batch (`foreachBatch`).
"""

from typing import Any

from lakelib.errors import InvalidInputError
from lakelib.lake import Lake
from lakelib.ops.create import find_table
from lakelib.ops.request import parse_request
from lakelib.spark.lakes import lake_of
from lakelib.spark.options import StreamNotes, is_lake, table_of
from lakelib.spark.save import check_names
from lakelib.spark.stream_batches import BatchWriter, check_batches
from lakelib.spark.watch import noting_writer, watch
from lakelib.work.spark.sessions import is_connect

_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"


def watch_stream_writing(frame: Any) -> None:
    """Gives all data frames of the frame's class (classic, or Spark Connect's) a stream writer that knows the
    format."""
    watch(frame, "writeStream", _watching, _spark_type(frame))


def _spark_type(frame: Any) -> type:
    """A frame that is no stream has no writer of one to show."""
    if is_connect(frame.sparkSession):
        from pyspark.sql.connect.streaming import readwriter

        return readwriter.DataStreamWriter
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    return DataStreamWriter


def _watching(spark_type: type) -> Any:
    """Spark's writer, which starts queries that write to the lake."""

    class LakeDataStreamWriter(noting_writer(spark_type, StreamNotes)):  # type: ignore[misc]
        _notes: StreamNotes

        def format(self, source: str) -> Any:
            self._notes.format = source
            return self if is_lake(source) else super().format(source)

        def outputMode(self, outputMode: str) -> Any:  # noqa: N802, N803 - Spark's names
            self._notes.mode = str(outputMode).casefold()
            return super().outputMode(outputMode)

        def queryName(self, queryName: str) -> Any:  # noqa: N802, N803 - Spark's names
            self._notes.query_name = queryName
            return super().queryName(queryName)

        def partitionBy(self, *cols: Any) -> Any:  # noqa: N802 - Spark's name
            self._note_partition(cols)
            return self if self._notes.is_ours else super().partitionBy(*cols)

        def start(
            self,
            path: str | None = None,
            format: str | None = None,
            outputMode: str | None = None,  # noqa: N803 - Spark's name
            partitionBy: Any = None,  # noqa: N803 - Spark's name
            queryName: str | None = None,  # noqa: N803 - Spark's name
            **options: Any,
        ) -> Any:
            if self._prepared(path, format, outputMode, partitionBy, queryName, options):
                return super().start()
            return super().start(path)

        def toTable(  # noqa: N802 - Spark's name
            self,
            tableName: str,  # noqa: N803 - Spark's name
            format: str | None = None,
            outputMode: str | None = None,  # noqa: N803 - Spark's name
            partitionBy: Any = None,  # noqa: N803 - Spark's name
            queryName: str | None = None,  # noqa: N803 - Spark's name
            **options: Any,
        ) -> Any:
            if self._prepared(tableName, format, outputMode, partitionBy, queryName, options):
                return super().start()
            return super().toTable(tableName)

        def _prepared(
            self,
            target: str | None,
            format: str | None,
            mode: str | None,
            partition_by: Any,
            name: str | None,
            options: dict[str, Any],
        ) -> bool:
            """Whether the query writes to the lake: it does so by now, if it does."""
            self._take(format, partition_by, options)
            if mode is not None:
                self.outputMode(mode)
            if name is not None:
                self.queryName(name)
            if self._notes.is_ours:
                if target is not None:
                    self._notes.add({"path": target})
                self.foreachBatch(_batch_writer(lake_of(self._frame.sparkSession), self._frame, self._notes))
            return self._notes.is_ours

    return LakeDataStreamWriter


def _batch_writer(lake: Lake, frame: Any, notes: StreamNotes) -> BatchWriter:
    """Raises a LakeError before anything is done where the writer was told something wrong."""
    notes.check()
    request = parse_request(
        merge_schema=notes.flag("write.merge-schema"),
        explicit_cast=notes.flag("write.merge-schema.explicit-cast"),
        distribution=notes.options.get("distribution", "auto"),
        gate=notes.options.get("gate"),
        idempotency_key=None if (application := notes.options.get("application")) is None else (application, 0),
    )
    checkpoint = _checkpoint(frame.sparkSession, notes)
    table = find_table(lake.runtime, table_of(notes.options))
    check_names(table.full_name, "partitionBy", notes.partition_by, table.partition_by)
    check_batches(lake, table, frame, notes.mode, request)
    return BatchWriter(
        settings=lake.settings,
        lake=lake,
        table=table.ref,
        mode=notes.mode,
        checkpoint=checkpoint,
        application=application,
        request=request,
    )


def _checkpoint(session: Any, notes: StreamNotes) -> str:
    """Where the query's checkpoint is. Raises InvalidInputError where it is nowhere that outlives the query."""
    told, folder = notes.options.get("checkpointlocation"), session.conf.get(_CHECKPOINTS, None)
    if told or (folder and notes.query_name):
        return told or f"{folder.rstrip('/')}/{notes.query_name}"
    raise InvalidInputError(
        "The query has no checkpoint: what it has written would come twice when it is started again.",
        kind="missing_checkpoint",
        remedy='Give option("checkpointLocation", FOLDER), a folder of this query alone that outlives it.',
    )
