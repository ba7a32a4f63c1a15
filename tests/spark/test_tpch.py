"""TPC-H's queries on Spark over tables of the lake give what they give over plain Parquet."""

import duckdb
import pytest
from pyspark.sql import SparkSession

import lakelib.spark
from lakelib import Lake
from tests.integration.local.test_tpch import (  # noqa: F401 - fixtures
    QUERIES,
    database,
    lake,
    plain,
    rounded,
    state,
)
from tests.tpch import of_lake


@pytest.mark.parametrize("number", sorted(QUERIES))
def test_a_query_gives_what_it_gives_over_plain_parquet(
    lake: Lake,  # noqa: F811 - a fixture
    database: duckdb.DuckDBPyConnection,  # noqa: F811 - a fixture
    state: str,  # noqa: F811 - a fixture
    spark: SparkSession,
    number: int,
) -> None:
    found = lakelib.spark.sql(spark, lake, of_lake(QUERIES[number])).toArrow()

    assert sorted(rounded(found)) == sorted(rounded(database.execute(QUERIES[number]).to_arrow_table()))
