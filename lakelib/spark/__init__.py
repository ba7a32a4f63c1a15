"""For people who work in Spark: `sql` asks tables of a lake; `register` makes the format "lake" known to a session,
`views` its tables; `batch_key` is for streams whose batches go to several tables.

import lakelib.spark

lakelib.spark.register(spark)
spark.read.format("lake").load("shop.orders")
frame.write.format("lake").mode("append").save("shop.orders")
spark.readStream.format("lake").load("shop.orders").writeStream.format("lake").option(…).start("shop.copy")
"""

import lakelib.work.spark  # noqa: F401 - first: it tells what to install if Spark is missing
from lakelib.spark.session import register, sql, views
from lakelib.spark.stream_batches import batch_key

__all__ = ["batch_key", "register", "sql", "views"]
