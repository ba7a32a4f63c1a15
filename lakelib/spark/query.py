"""SQL over the tables of a lake, on Spark."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lakelib.lake import Lake
from lakelib.ops.sql_change import Told
from lakelib.ops.sql_frame import explain_frame, frame_of
from lakelib.ops.sql_statements import run
from lakelib.work.spark.query import known_frame, told_of_values


def sql(session: Any, lake: Lake, text: str, options: Mapping[str, Any] | None = None, /, **parameters: Any) -> Any:
    """A statement over tables of the lake, carried out by Spark; gives a DataFrame of the session, classic or Spark
    Connect's.

    It takes the text that `Lake.sql` takes, and gives the same rows; what Spark alone can compute it takes besides
    (docs/sql.md). All tables are read as of one moment, in the columns and the rows that a query can make use of, by
    Spark's tasks. Nothing is read until Spark is told to; the snapshots are held for a day from now on.

    A statement that changes something is carried out at once, and the frame's one row tells what was done; rows are
    computed and written by Spark's tasks. `options` are those of `Lake.sql`.
    """
    runtime = replace(lake.runtime, session=session)
    with told_of_values():
        done = run(runtime, text, options, parameters)
    if isinstance(done, Told):
        return known_frame(session, done.rows)
    if done.is_explained:
        return session.createDataFrame([(explain_frame(runtime, done),)], "plan string")
    return frame_of(runtime, done)
