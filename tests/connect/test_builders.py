"""The builders, and a transaction's statements, over Spark Connect."""

# ruff: noqa: F401 - what is imported is run
from tests.spark.conftest import lake, new_table
from tests.spark.test_builders import (
    table,
    test_a_data_frame_is_merged_by_its_session,
    test_a_row_that_cannot_be_changed_leaves_no_file,
    test_an_update_is_carried_out_by_the_session_that_is_given,
)
from tests.spark.test_sql import test_statements_here_and_on_spark_are_one_transaction
