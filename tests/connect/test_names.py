"""Tables by their names, over Spark Connect."""

# ruff: noqa: F401 - what is imported is run
from tests.spark.conftest import lake
from tests.spark.test_names import (
    test_registering_again_brings_the_present_state,
    test_tables_are_asked_by_name,
    test_what_spark_cannot_do_is_told_with_the_way_that_works,
    test_what_spark_has_already_is_left_as_it_is,
)
