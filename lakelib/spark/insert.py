"""Inserts a data frame into a table of a lake by position, as Spark's `insertInto` does: the first column into the
first one, whatever they are called."""

from typing import Any

from lakelib.errors import InvalidInputError, LakeError
from lakelib.lake import Lake
from lakelib.spark.lakes import find_lake
from lakelib.spark.save import Notes, save_frame


def is_of_lake(session: Any, name: str, notes: Notes) -> bool:
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


def insert_frame(lake: Lake, frame: Any, name: str, notes: Notes) -> None:
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
