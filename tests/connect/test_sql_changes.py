"""UPDATE, DELETE, MERGE INTO and CREATE TABLE AS over Spark Connect."""

# ruff: noqa: F401 - what is imported is run
import pytest

from tests.spark.conftest import lake, new_table
from tests.spark.test_sql_changes import (
    loose,
    parted,
    sql_on_spark,
    table,
    test_delete_takes_all_rows_or_those_of_a_condition,
    test_merge_into_is_sparks,
    test_statements_are_explained_and_carried_out_once,
)
from tests.spark.test_sql_tables import name, test_a_table_is_made_of_what_spark_alone_computes

pytestmark = pytest.mark.usefixtures("sql_on_spark")
