"""Makes `frame.write.format("lake")` write to a lake.

Spark lets no Python data source decide how rows are distributed, and none knows the modes `ignore` and `errorifexists`.
So the data frame's own writer notices the format and hands the frame to the table. `insertInto` goes by position: the
first column into the first one, whatever they are called.
"""

from typing import Any

from lakelib.errors import InvalidInputError, LakeError
from lakelib.lake import Lake
from lakelib.spark.lakes import find_lake, lake_of
from lakelib.spark.save import SaveNotes, save_frame
from lakelib.spark.watch import noting_writer, watch


def watch_writing(frame: Any) -> None:
    """Gives all data frames of the frame's class (classic, or Spark Connect's) a writer that knows the format."""
    watch(frame, "write", _watching)


def _watching(spark_type: type) -> Any:
    """Spark's writer, which saves to the lake what is of its format."""

    class LakeDataFrameWriter(noting_writer(spark_type, SaveNotes)):  # type: ignore[misc]
        _notes: SaveNotes

        def format(self, source: str) -> Any:
            self._notes.format = source
            return super().format(source)

        def mode(self, saveMode: str | None) -> Any:  # noqa: N803 - Spark's name
            if saveMode:
                self._notes.mode = saveMode.casefold()
            return super().mode(saveMode)

        def partitionBy(self, *cols: Any) -> Any:  # noqa: N802 - Spark's name
            self._note_partition(cols)
            return super().partitionBy(*cols)

        def bucketBy(self, *args: Any, **named: Any) -> Any:  # noqa: N802 - Spark's name
            self._notes.layout = "bucketBy"
            return super().bucketBy(*args, **named)

        def sortBy(self, *args: Any, **named: Any) -> Any:  # noqa: N802 - Spark's name
            self._notes.layout = "sortBy"
            return super().sortBy(*args, **named)

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
            self.mode(mode)._take(format, partition_by, options)
            if self._notes.is_ours:
                save_frame(lake_of(self._frame.sparkSession), self._frame, target, self._notes)
            return self._notes.is_ours

    return LakeDataFrameWriter


def is_of_lake(session: Any, name: str, notes: SaveNotes) -> bool:
    """Whether the name is meant to be a table of the session's lake: the format says so, or it is one, and Spark has
    none of that name."""
    if notes.format:
        return notes.is_ours
    lake = find_lake(session)
    if lake is None:
        return False
    try:
        lake.table(name)
    except LakeError:
        return False
    return not session.catalog.tableExists(name)


def insert_frame(lake: Lake, frame: Any, name: str, notes: SaveNotes) -> None:
    """Appends, or overwrites where that is the mode. Raises NotFoundError for a table that is not there, and
    InvalidInputError before anything is done for a frame of more or fewer columns than the table has."""
    names = lake.table(name).schema.names
    if notes.partition_by:
        raise InvalidInputError(
            "insertInto was told to partition, and the table has been made.",
            kind="unsupported_write",
            remedy="Leave partitionBy out.",
        )
    if len(frame.columns) != len(names):
        raise InvalidInputError(
            f"The frame has {len(frame.columns)} columns ({', '.join(frame.columns)}), and {name} has {len(names)}"
            f" ({', '.join(names)}).",
            kind="wrong_columns",
            remedy="insertInto goes by position: select as many columns, in the table's order. By name goes"
            f' frame.write.format("lake").mode("append").save("{name}").',
        )
    notes.mode = "overwrite" if notes.mode == "overwrite" else "append"
    save_frame(lake, frame.toDF(*names), name, notes)
