"""Statements of a transaction, carried out by Spark: the tests of `tx.sql`."""

# ruff: noqa: F401 - what is imported is run
import pytest

from tests.acceptance.test_sql_transactions import (
    lines,
    orders,
    test_a_conflict_with_others_leaves_nothing,
    test_a_gate_judges_each_statement_on_top_of_those_before,
    test_a_key_that_a_statement_before_has_inserted_is_there,
    test_a_key_that_moves_is_seen_once_within_a_transaction,
    test_a_statement_sees_what_those_before_it_have_staged,
    test_a_transaction_with_keys_happens_once,
    test_an_error_in_the_block_leaves_nothing,
    test_statements_over_several_tables_are_published_at_once,
    test_what_a_statement_was_made_from_is_published_with_it_or_nothing,
    test_what_comes_behind_the_block_is_refused,
    test_what_comes_while_rows_are_moved_is_not_lost,
    test_what_one_statement_changes_another_cannot_replace,
)
from tests.spark.on_spark import sql_on_spark

pytestmark = pytest.mark.usefixtures("sql_on_spark")
