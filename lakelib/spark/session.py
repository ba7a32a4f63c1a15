"""Makes a Spark session know a lake, and asks its tables in SQL."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakelib.lake import Lake, Transaction, connect
from lakelib.ops.sql_change import Told
from lakelib.ops.sql_frame import explain_frame, frame_of
from lakelib.ops.sql_statements import run
from lakelib.spark.lakes import set_lake
from lakelib.spark.names import register_names
from lakelib.spark.reader import watch_reading, watch_streaming
from lakelib.spark.source import data_source
from lakelib.spark.stream_writer import watch_stream_writing
from lakelib.spark.writer import watch_writing
from lakelib.work.spark.query import known_frame, told_of_values


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


def sql(
    session: Any, lake: Lake | Transaction, text: str, options: Mapping[str, Any] | None = None, /, **parameters: Any
) -> Any:
    """A statement over tables of the lake, carried out by Spark; gives a DataFrame of the session, classic or Spark
    Connect's.

    It takes the text that `Lake.sql` takes, and gives the same rows; what Spark alone can compute it takes besides
    (docs/sql.md). All tables are read as of one moment, in the columns and the rows that a query can make use of, by
    Spark's tasks. Nothing is read until Spark is told to; the snapshots are held for a day from now on.

    A statement that changes something is carried out at once, and the frame's one row tells what was done; rows are
    computed and written by Spark's tasks. `options` are those of `Lake.sql`.

    In place of the lake, a transaction of it (`with lake.transaction() as tx: …`) has the statement as `tx.sql` has it:
    staged, and published with the others, whoever carries those out.
    """
    runtime = replace(lake.runtime, session=session)
    with told_of_values():
        if isinstance(lake, Transaction):
            done = lake.carry_out(text, options, parameters, session)
        else:
            done = run(runtime, text, options, parameters)
    if isinstance(done, Told):
        return known_frame(session, done.rows)
    if done.is_explained:
        return session.createDataFrame([(explain_frame(runtime, done),)], "plan string")
    return frame_of(runtime, done)
