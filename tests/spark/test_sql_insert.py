"""INSERT on Spark: the tests of `lake.sql`, and what Spark says otherwise."""

# ruff: noqa: F401 - what is imported is run
import pytest
from pyspark.sql import SparkSession

import lakelib.spark
from lakelib import InvalidInputError, Lake
from tests.acceptance.test_sql_insert import (
    keyed,
    plain,
    test_a_gate_judges_what_is_inserted,
    test_a_key_that_is_unique_in_the_table_leaves_its_old_partition,
    test_a_merge_engine_means_what_it_means_for_an_upsert,
    test_a_query_may_be_named_before_the_rows,
    test_a_statement_that_reads_its_own_table_sees_it_as_it_was,
    test_an_overwrite_replaces_what_it_names,
    test_columns_may_be_matched_by_their_names,
    test_many_rows_of_one_key_come_in_the_order_of_the_text,
    test_options_are_those_of_a_write,
    test_rows_in_the_text_are_upserted_where_there_is_a_key,
    test_rows_of_a_query_are_appended_where_there_is_none,
    test_values_are_cast_as_spark_stores_them,
)
from tests.spark.conftest import NewTable
from tests.spark.on_spark import sql_on_spark

pytestmark = pytest.mark.usefixtures("sql_on_spark")


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("int", "'1'", r"Column 'c' has type int, and .* type string \(line 1, column"),
        ("tinyint", "128", "CAST_OVERFLOW"),
        ("int", "explode(array('1'))", "has type int, and .* type string"),
    ],
)
def test_what_cannot_be_stored_changes_nothing(
    lake: Lake, new_table: NewTable, spark: SparkSession, kind: str, value: str, said: str
) -> None:
    table = new_table(f"c {kind}")

    with pytest.raises(InvalidInputError, match=said):
        lakelib.spark.sql(spark, lake, f"INSERT INTO {table.name} SELECT {value}")

    assert table.head is None


def test_what_spark_alone_computes_is_stored_by_its_types(lake: Lake, new_table: NewTable, spark: SparkSession) -> None:
    table = new_table("c bigint, d array<string>")

    lakelib.spark.sql(spark, lake, f"INSERT INTO {table.name} SELECT explode(sequence(1, 2)), collect_set('x')")

    assert table.scan().to_arrow().to_pylist() == [{"c": 1, "d": ["x"]}, {"c": 2, "d": ["x"]}]
