"""SELECT on Spark over tables of the lake gives what DuckDB gives of tables of its own: the statements of `test_sql`.

LAKE_SQL_SPARK_STATEMENTS says how many; a statement that differs is shown, and LAKE_SQL_SEED repeats a run.
"""

import os
import random

import duckdb
from pyspark.sql import SparkSession

import lakelib.spark
from lakelib import Lake
from tests.property.test_sql import Writer, lake, plain, plainly  # noqa: F401 - fixtures

STATEMENTS = int(os.environ.get("LAKE_SQL_SPARK_STATEMENTS", "12"))


def test_a_query_gives_what_duckdb_gives_of_its_own_tables(
    lake: Lake,  # noqa: F811 - a fixture
    plain: duckdb.DuckDBPyConnection,  # noqa: F811 - a fixture
    chance: random.Random,
    spark: SparkSession,
) -> None:
    writer = Writer(chance)
    known = 0
    for _ in range(STATEMENTS):
        statement = writer.statement()
        expected = plainly(plain.execute(statement.replace("{x}", "")).to_arrow_table())
        asked = statement.replace("{x}", "x.")
        try:
            found = lakelib.spark.sql(spark, lake, asked).toArrow()
        except Exception as error:
            raise AssertionError(statement) from error
        if "grouping(" in statement and not found.num_rows:  # Spark gives no total of no rows
            expected = [row for row in expected if not row.startswith("['None', 'None', ")]
        assert plainly(found.cast(lake.sql(asked).schema)) == expected, statement
        known += bool(expected)
    assert known > STATEMENTS / 4, "most statements have to find something"
