"""SQL over the tables of a lake, on Spark."""

from typing import Any

from lakelib.lake import Lake
from lakelib.ops.sql_frame import query_frame


def sql(session: Any, lake: Lake, text: str, /, **parameters: Any) -> Any:
    """The rows of a query over tables of the lake, as a DataFrame of the session, classic or Spark Connect's.

    It takes the text that `Lake.sql` takes, and gives the same rows; what Spark alone can compute it takes besides
    (docs/sql.md). All tables are read as of one moment, in the columns and the rows that the query can make use of, by
    Spark's tasks. Nothing is read until Spark is told to; the snapshots are held for a day from now on.
    """
    return query_frame(lake.runtime, session, text, parameters)
