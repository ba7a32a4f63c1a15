"""Promises of `lakelib.spark.views`."""

import pyarrow as pa
from pyspark.sql import SparkSession

import lakelib.spark
from lakelib import Lake


def test_every_table_of_a_namespace_becomes_a_view(spark: SparkSession, lake: Lake) -> None:
    lake.create_namespace("views")
    for name in ("orders", "day-2026", "2026", "select", "Mixed"):
        lake.create_table(f"views.{name}", "id bigint, v string", primary_key=["id"])
        lake.table(f"views.{name}").upsert(pa.table({"id": [1], "v": [name]}))
    assert sorted(lakelib.spark.views(spark, lake, "views")) == sorted(lake.tables("views"))
    for name in lake.tables("views"):
        assert spark.sql(f"SELECT v FROM `{name}`").first()[0] == name
    assert spark.sql("SELECT count(*) FROM orders a JOIN `day-2026` b ON a.id = b.id").first()[0] == 1


def test_calling_it_again_brings_the_views_to_the_present_state(spark: SparkSession, lake: Lake) -> None:
    lake.create_namespace("again")
    lake.create_table("again.orders", "id bigint").append(pa.table({"id": [1]}))
    spark.range(5).createOrReplaceTempView("orders")
    lakelib.spark.views(spark, lake, "again")
    lake.table("again.orders").append(pa.table({"id": [2]}))
    lake.create_table("again.more", "id bigint")
    assert spark.table("orders").count() == 1
    assert sorted(lakelib.spark.views(spark, lake, "again")) == ["more", "orders"]
    assert spark.table("orders").count() == 2
    assert spark.table("more").count() == 0
