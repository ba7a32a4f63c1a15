"""Writes and reads a lake on a Spark of its own, and prints what Spark's pages say of it.

The arguments: a folder for the event log, a warehouse, the URL of a catalog, and a secret."""

import sys
import urllib.request

import pyarrow as pa
from pyspark.sql import SparkSession

import lakelib
import lakelib.spark

folder, warehouse, catalog, secret = sys.argv[1:]
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.eventLog.compress": "false",
    "spark.eventLog.dir": f"file://{folder}",
    "spark.eventLog.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.port": "0",
}
builder = SparkSession.builder.master("local[2]")
for name, value in SETTINGS.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
keys = {"s3_access_key": secret, "s3_secret_key": secret, "s3_session_token": secret}
with lakelib.connect(warehouse, catalog, **keys) as lake:
    lake.create_namespace("shop")
    orders = lake.create_table("shop.orders", "id bigint, v string", primary_key=["id"])
    lakelib.spark.register(spark, lake)
    for value in ("a", "b"):
        orders.upsert(spark.createDataFrame([(1, value), (2, value)], "id bigint, v string"))
    orders.upsert(pa.table({"id": [3], "v": ["c"]}))
    spark.sql("CREATE TEMPORARY VIEW orders USING lake OPTIONS (path 'shop.orders')")
    assert spark.table("orders").count() == orders.scan().to_spark(spark).count() == 3
    pages = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}"
    for page in ("sql?details=true", "jobs", "stages", "environment"):
        with urllib.request.urlopen(f"{pages}/{page}") as answer:
            print(answer.read().decode())
    spark.stop()
