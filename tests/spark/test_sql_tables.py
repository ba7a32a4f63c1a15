"""CREATE TABLE AS, and statements without a query, on Spark: the tests of `lake.sql`."""

# ruff: noqa: F401, F811 - what is imported is run
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakelib.spark
from lakelib import Lake
from tests.acceptance.test_sql_tables import (
    name,
    table,
    test_a_table_is_dropped_and_emptied,
    test_a_table_is_made_of_a_query,
    test_a_table_is_replaced_in_one_commit,
    test_tables_are_looked_after,
)
from tests.spark.on_spark import sql_on_spark

pytestmark = pytest.mark.usefixtures("sql_on_spark")


def test_a_table_is_made_of_what_spark_alone_computes(lake: Lake, name: str, spark: SparkSession) -> None:
    lakelib.spark.sql(spark, lake, f"CREATE TABLE {name} AS SELECT explode(array(1, 2)) AS e, array('x') AS l")

    assert lake.table(name).schema == pa.schema([("e", pa.int32()), ("l", pa.list_(pa.string()))])
    assert lake.table(name).scan().to_arrow().to_pylist() == [{"e": 1, "l": ["x"]}, {"e": 2, "l": ["x"]}]
