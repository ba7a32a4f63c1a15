"""Makes `frame.write.format("lake")` write to a lake.

Spark lets no Python data source decide how rows are distributed, and none knows the modes `ignore` and `errorifexists`.
So the data frame's own writer notices the format and hands the frame to the table.
"""

from typing import Any

from lakelib.spark.insert import insert_frame, is_of_lake
from lakelib.spark.lakes import lake_of
from lakelib.spark.save import Notes, save_frame
from lakelib.spark.watch import watch


def watch_writing(frame: Any) -> None:
    """Gives all data frames of the frame's class (classic, or Spark Connect's) a writer that knows the format."""
    watch(frame, "write", _watching)


def _watching(spark_type: type) -> Any:
    """Spark's writer, which takes note of what it is told, and saves to the lake what is of its format."""

    class LakeDataFrameWriter(spark_type):  # type: ignore[misc]
        def __init__(self, plain: Any, frame: Any) -> None:
            self.__dict__.update(plain.__dict__)
            self._frame = frame
            self._notes = Notes()

        def format(self, source: str) -> Any:
            self._notes.format = source
            return super().format(source)

        def mode(self, saveMode: str | None) -> Any:  # noqa: N803 - Spark's name
            if saveMode:
                self._notes.mode = saveMode.casefold()
            return super().mode(saveMode)

        def option(self, key: str, value: Any) -> Any:
            self._notes.add({key: value})
            return super().option(key, value)

        def options(self, **options: Any) -> Any:
            self._notes.add(options)
            return super().options(**options)

        def partitionBy(self, *cols: Any) -> Any:  # noqa: N802 - Spark's name
            named = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
            self._notes.partition_by = tuple(named)
            return super().partitionBy(*cols)

        def bucketBy(self, *args: Any, **named: Any) -> Any:  # noqa: N802 - Spark's name
            self._notes.layout = "bucketBy"
            return super().bucketBy(*args, **named)

        def sortBy(self, *args: Any, **named: Any) -> Any:  # noqa: N802 - Spark's name
            self._notes.layout = "sortBy"
            return super().sortBy(*args, **named)

        def clusterBy(self, *args: Any) -> Any:  # noqa: N802 - Spark's name
            self._notes.layout = "clusterBy"
            return super().clusterBy(*args)

        def save(
            self,
            path: str | None = None,
            format: str | None = None,
            mode: str | None = None,
            partitionBy: Any = None,  # noqa: N803 - Spark's name
            **options: Any,
        ) -> None:
            if not self._saved(path, format, mode, partitionBy, options):
                super().save(path)

        def saveAsTable(  # noqa: N802 - Spark's name
            self,
            name: str,
            format: str | None = None,
            mode: str | None = None,
            partitionBy: Any = None,  # noqa: N803 - Spark's name
            **options: Any,
        ) -> None:
            if not self._saved(name, format, mode, partitionBy, options):
                super().saveAsTable(name)

        def insertInto(  # noqa: N802 - Spark's name
            self,
            tableName: str,  # noqa: N803 - Spark's name
            overwrite: bool | None = None,
        ) -> None:
            if not is_of_lake(self._frame.sparkSession, tableName, self._notes):
                super().insertInto(tableName, overwrite)
                return
            if overwrite is not None:
                self.mode("overwrite" if overwrite else "append")
            insert_frame(lake_of(self._frame.sparkSession), self._frame, tableName, self._notes)

        def _saved(
            self, target: str | None, format: str | None, mode: str | None, partition_by: Any, options: dict[str, Any]
        ) -> bool:
            """Whether the frame was the lake's to save."""
            self.mode(mode).options(**options)
            if partition_by is not None:
                self.partitionBy(partition_by)
            if format is not None:
                self.format(format)
            if self._notes.is_ours:
                save_frame(lake_of(self._frame.sparkSession), self._frame, target, self._notes)
            return self._notes.is_ours

    return LakeDataFrameWriter
