"""Tables of registered namespaces by their names, in the session's own SQL."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakelib.spark
from lakelib import InvalidInputError, Lake, NotFoundError

NESTED = pa.struct([("a b", pa.int32()), ("l", pa.list_(pa.map_(pa.string(), pa.decimal128(5, 2))))])
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("at", pa.timestamp("us", "UTC")), ("n`s", NESTED)])


def refresh(spark: SparkSession, lake: Lake, *namespaces: str) -> None:
    lakelib.spark.register(spark, lake, namespaces=namespaces)


def test_tables_are_asked_by_name(spark: SparkSession, lake: Lake) -> None:
    lake.create_namespace("named")
    orders = lake.create_table("named.orders", SCHEMA, primary_key=["id"])
    lake.create_table("named.Others", "id bigint").append(pa.table({"id": [1]}))
    rows = pa.Table.from_pylist([{"id": 1, "n`s": {"a b": 1, "l": [[("x", 1)]]}}, {"id": 2}], schema=SCHEMA)
    orders.upsert(rows)
    orders.upsert(rows.slice(1))

    refresh(spark, lake, "named")

    joined = "SELECT o.id, o.`n``s`.`a b` AS a FROM named.orders o JOIN named.others USING (id)"
    assert [tuple(row) for row in spark.sql(joined).collect()] == [(1, 1)]
    assert spark.table("named.orders").count() == 2
    orders.delete("id = 1")
    assert spark.sql("SELECT count(*) AS n FROM named.orders WHERE id > 0").collect()[0].n == 1, "the newest snapshot"


def test_registering_again_brings_the_present_state(spark: SparkSession, lake: Lake) -> None:
    lake.create_namespace("renewed")
    table = lake.create_table("renewed.a", "id bigint")
    lake.create_table("renewed.gone", "id bigint")
    refresh(spark, lake, "renewed")
    table.evolve(add=[pa.field("more", pa.string())])
    lake.drop_table("renewed.gone")
    lake.create_table("renewed.new", "id bigint")
    spark.sql("CREATE VIEW renewed.own AS SELECT id FROM renewed.a")

    refresh(spark, lake, "renewed")

    assert spark.table("renewed.a").columns == ["id", "more"]
    assert {row.tableName for row in spark.sql("SHOW TABLES IN renewed").collect()} >= {"a", "new", "own"}
    assert "gone" not in {row.tableName for row in spark.sql("SHOW TABLES IN renewed").collect()}


def test_what_spark_has_already_is_left_as_it_is(spark: SparkSession, lake: Lake) -> None:
    lake.create_namespace("taken")
    for name in ("a", "b"):
        lake.create_table(f"taken.{name}", "id bigint")
    spark.sql("CREATE DATABASE taken")
    spark.sql("CREATE VIEW taken.b AS SELECT 7 AS seven")

    with pytest.raises(InvalidInputError, match=r"Spark has a taken\.b already"):
        refresh(spark, lake, "taken")

    found = spark.sql("SHOW TABLES IN taken").collect()
    assert [row.tableName for row in found if not row.isTemporary] == ["b"]
    assert spark.table("taken.b").collect()[0].seven == 7


def test_names_that_spark_cannot_have(spark: SparkSession, lake: Lake) -> None:
    lake.create_namespace("with-dash")

    with pytest.raises(InvalidInputError, match="can have nothing called 'with-dash'"):
        refresh(spark, lake, "with-dash")
    with pytest.raises(NotFoundError):
        refresh(spark, lake, "nowhere")
    with pytest.raises(InvalidInputError, match="Give a list"):
        lakelib.spark.register(spark, lake, namespaces="shop")


def test_what_spark_cannot_do_is_told_with_the_way_that_works(spark: SparkSession, lake: Lake) -> None:
    lake.create_namespace("written")
    table = lake.create_table("written.a", "id bigint")
    refresh(spark, lake, "written")

    for text in ("INSERT INTO written.a VALUES (1)", "INSERT OVERWRITE written.a VALUES (1)"):
        with pytest.raises(Exception, match=r"lakelib\.spark\.sql\(spark, lake, 'INSERT INTO"):
            spark.sql(text).collect()
    for text in ("SELECT * FROM written.a VERSION AS OF 1", "UPDATE written.a SET id = 1", "DELETE FROM written.a"):
        with pytest.raises(Exception, match="not support"):
            spark.sql(text).collect()
    assert table.head is None
