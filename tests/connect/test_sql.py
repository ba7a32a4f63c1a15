"""SQL on the lake's tables over Spark Connect: the same rows."""

# ruff: noqa: F401 - what is imported is run
from tests.spark.conftest import lake, new_name, new_table, with_settings
from tests.spark.test_sql import (
    orders,
    test_a_query_gives_what_it_gives_in_process,
    test_all_tables_are_seen_at_one_moment_that_stays,
    test_an_order_is_kept,
    test_explain_tells_spark_s_plan,
    test_names_with_odd_characters,
    test_nothing_of_the_session_is_other_than_before,
    test_parameters_are_bound_as_they_are,
    test_parameters_prune,
    test_the_session_s_settings_do_not_change_what_a_query_means,
    test_two_threads_ask_at_once,
    test_what_is_refused,
    test_what_spark_alone_computes,
)
