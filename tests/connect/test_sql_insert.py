"""INSERT over Spark Connect."""

# ruff: noqa: F401 - what is imported is run
import pytest

from tests.spark.conftest import lake, new_table
from tests.spark.test_sql_insert import (
    keyed,
    plain,
    sql_on_spark,
    test_an_overwrite_replaces_what_it_names,
    test_many_rows_of_one_key_come_in_the_order_of_the_text,
    test_rows_in_the_text_are_upserted_where_there_is_a_key,
    test_values_are_cast_as_spark_stores_them,
    test_what_cannot_be_stored_changes_nothing,
    test_what_spark_alone_computes_is_stored_by_its_types,
)

pytestmark = pytest.mark.usefixtures("sql_on_spark")
