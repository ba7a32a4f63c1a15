"""UPDATE, DELETE and MERGE INTO on Spark: the tests of `lake.sql`."""

# ruff: noqa: F401 - what is imported is run
import pytest

from tests.acceptance.test_changing_rows import (
    loose,
    parted,
    table,
    test_delete_takes_all_rows_or_those_of_a_condition,
    test_deletes_that_take_no_row_away_are_left_to_delete,
    test_merge_into_is_sparks,
    test_statements_are_explained_and_carried_out_once,
    test_what_is_no_such_statement_changes_nothing,
)
from tests.spark.on_spark import sql_on_spark

pytestmark = pytest.mark.usefixtures("sql_on_spark")
