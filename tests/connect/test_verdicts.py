"""A verdict over Spark Connect is on the columns that it looked at."""

# ruff: noqa: F401 - what is imported is run
from tests.spark.conftest import lake, new_table
from tests.spark.test_gates import test_a_verdict_of_spark_is_on_columns_and_not_on_their_names
