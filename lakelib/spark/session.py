"""Makes a Spark session know a lake."""

from collections.abc import Sequence
from typing import Any

from lakelib.lake import Lake, connect
from lakelib.spark.lakes import set_lake
from lakelib.spark.names import register_names
from lakelib.spark.reader import watch_reading, watch_streaming
from lakelib.spark.source import data_source
from lakelib.spark.stream_writer import watch_stream_writing
from lakelib.spark.writer import watch_writing


def register(session: Any, lake: Lake | None = None, *, namespaces: Sequence[str] = ()) -> None:
    """Afterwards the session reads and writes the format "lake": `spark.read.format("lake").load("shop.orders")`,
    `frame.write.format("lake").mode("append").save("shop.orders")`, and in SQL `CREATE TEMPORARY VIEW orders USING lake
    OPTIONS (path 'shop.orders')`.

    Without a lake: the one that the environment names. Registering again replaces it. Other sessions keep theirs. The
    session becomes Spark's active one.

    The tables of `namespaces`, as they are now, become tables of Spark's catalog, in databases of their names:
    `spark.sql("SELECT … FROM shop.orders")` reads the newest snapshot. Registering them again brings columns and tables
    to the present state. Spark's own SQL writes to none of them, and knows no VERSION AS OF: `lakelib.spark.sql` does.
    """
    lake = lake or connect()
    # Spark looks for a source of that name in its active session, which is the one that made a data frame last.
    frame = session.createDataFrame([(0,)], "number int")
    session.dataSource.register(data_source(lake.settings))
    set_lake(session, lake)
    watch_reading(session)
    watch_streaming(session)
    watch_writing(frame)
    watch_stream_writing(frame)
    register_names(session, lake, namespaces)


def views(session: Any, lake: Lake, namespace: str) -> list[str]:
    """Makes each table of the namespace, as it is now, a temporary view of its name; returns the names.

    A temporary view that has such a name is replaced: calling this again brings the views to the present state. The
    view of a table that was dropped meanwhile stays. A name with other characters than letters, digits and _ stands in
    backticks in SQL.
    """
    names = lake.tables(namespace)
    for name in names:
        lake.table(f"{namespace}.{name}").scan().to_spark(session).createOrReplaceTempView(f"`{name}`")
    return names
