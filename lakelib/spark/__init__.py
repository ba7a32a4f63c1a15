"""For people who work in Spark: `register` makes the format "lake" known to a session, `views` its tables.

import lakelib.spark

lakelib.spark.register(spark)
spark.read.format("lake").load("shop.orders")
frame.write.format("lake").mode("append").save("shop.orders")
"""

import lakelib.work.spark  # noqa: F401 - first: it tells what to install if Spark is missing
from lakelib.spark.session import register, views

__all__ = ["register", "views"]
