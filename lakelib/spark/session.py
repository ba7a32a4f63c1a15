"""Makes a Spark session know a lake."""

from typing import Any

from lakelib.lake import Lake, connect
from lakelib.spark.save import write_to
from lakelib.spark.source import data_source


def register(session: Any, lake: Lake | None = None) -> None:
    """Afterwards the session reads and writes the format "lake": `spark.read.format("lake").load("shop.orders")`,
    `frame.write.format("lake").mode("append").save("shop.orders")`, and in SQL `CREATE TEMPORARY VIEW orders USING lake
    OPTIONS (path 'shop.orders')`.

    Without a lake: the one that the environment names. Registering again replaces it.
    """
    lake = lake or connect()
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    session.dataSource.register(data_source(lake.settings))
    write_to(session, lake)


def views(session: Any, lake: Lake, namespace: str) -> list[str]:
    """Makes each table of the namespace, as it is now, a temporary view of its name; returns the names.

    Calling it again brings the views to the present state.
    """
    names = lake.tables(namespace)
    for name in names:
        lake.table(f"{namespace}.{name}").scan().to_spark(session).createOrReplaceTempView(name)
    return names
