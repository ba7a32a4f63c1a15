"""Promises of gate suites: what is wrong is told in the author's words, all at once; a hash is of what is checked."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.errors import InvalidInputError
from lakelib.model.gate import Scope, Severity
from lakelib.specs.suite import parse_suite

ORDERS = """\
name: orders
description: What must hold of orders.
expectations:
  - type: expect_column_values_to_not_be_null
    kwargs: {column: customer_id}
  - name: amounts are positive
    type: expect_column_values_to_be_between
    kwargs:
      column: amount
      min_value: 0
    severity: warning
    scope: merged
"""


def test_a_suite_has_the_checks_of_its_file() -> None:
    suite = parse_suite(ORDERS, "orders.yaml")
    first, second = suite.checks
    assert (suite.name, suite.description, suite.path) == ("orders", "What must hold of orders.", "orders.yaml")
    assert (first.name, first.severity, first.scope) == (
        "column_values_to_not_be_null (customer_id)",
        Severity.CRITICAL,
        Scope.STAGED,
    )
    assert (second.name, second.severity, second.scope) == ("amounts are positive", Severity.WARNING, Scope.MERGED)
    assert second.arguments == {"column": "amount", "min_value": 0}
    assert suite.scopes == (Scope.STAGED, Scope.MERGED)


def test_checks_and_arguments_know_their_lines() -> None:
    suite = parse_suite(ORDERS, "orders.yaml")
    assert suite.where(suite.checks[1]) == "orders.yaml, line 6"
    assert suite.where(suite.checks[1], "min_value") == "orders.yaml, line 10"
    assert suite.where(suite.checks[1], "max_value") == "orders.yaml, line 6"


def test_checks_that_would_have_the_same_name_are_numbered() -> None:
    entry = "- {type: expect_column_to_exist, kwargs: {column: a}}\n"
    taken = "- {name: 'column_to_exist (a) #1', type: expect_column_to_exist, kwargs: {column: a}}\n"
    suite = parse_suite(f"name: a\nexpectations:\n{entry}{entry}{taken}")
    assert [check.name for check in suite.checks] == [
        "column_to_exist (a) #2",
        "column_to_exist (a) #3",
        "column_to_exist (a) #1",
    ]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("[]", ["line 1: a suite is a mapping with name and expectations."]),
        ("", ["line 1: a suite is a mapping with name and expectations."]),
        ("expectations: [{type: a}]", ["line 1: name is missing."]),
        ("name: 7\nexpectations: [{type: a}]", ["line 1: name must be text, not 7."]),
        (
            "name: a\nexpectation: []",
            ["line 1: expectations must be", "line 2: a suite has no key 'expectation'. Do you"],
        ),
        ("name: a\nexpectations: []", ["line 2: expectations must be a list of at least one check."]),
        ("name: a\nexpectations: [x]", ["line 2: a check is a mapping with type and kwargs, not 'x'."]),
        ("name: a\nexpectations:\n- kwargs: {}\n", ["line 3: type is missing."]),
        (
            "name: a\nexpectations:\n- type: x\n  severity: critcal\n  scope: all\n  kwargs: [1]\n  sevrity: info\n",
            [
                "line 4: severity must be one of critical, warning, info, not 'critcal'. Do you mean critical?",
                "line 5: scope must be one of staged, merged, table, not 'all'.",
                "line 6: kwargs must be a mapping of arguments, not [1].",
                "line 7: a check has no key 'sevrity'. Do you mean severity?",
            ],
        ),
        (
            "name: a\nexpectations:\n- {type: x, name: b}\n- {type: y, name: b}\n",
            ["line 4: the name 'b' is given twice, first in line 3."],
        ),
    ],
)
def test_all_that_is_wrong_is_told_at_once_with_file_and_line(text: str, messages: list[str]) -> None:
    with pytest.raises(InvalidInputError) as raised:
        parse_suite(text, "orders.yaml")
    lines = raised.value.message.splitlines()
    assert [line[: len(f"orders.yaml, {message}")] for line, message in zip(lines, messages, strict=True)] == [
        f"orders.yaml, {message}" for message in messages
    ]
    assert raised.value.kind == "invalid_suite"


def test_comments_names_form_and_order_leave_the_hash_alone() -> None:
    other = """\
    expectations:   # the other way round
      - {scope: merged, severity: warning, type: expect_column_values_to_be_between,
         kwargs: {min_value: 0.0, column: "amount"}}
      - {type: expect_column_values_to_not_be_null, kwargs: {column: customer_id}, severity: critical}
    name: orders
    """
    assert parse_suite(other).hash == parse_suite(ORDERS).hash


_VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.dates(), st.datetimes()
)


@given(first=_VALUES, second=_VALUES)
def test_different_arguments_give_different_hashes(first: Any, second: Any) -> None:
    def hash_of(value: Any) -> str:
        suite = parse_suite(ORDERS)
        check = replace(suite.checks[0], arguments={"x": value})
        return replace(suite, checks=(check,)).hash

    same = first == second and isinstance(first, bool) == isinstance(second, bool)
    assert (hash_of(first) == hash_of(second)) == same


@pytest.mark.parametrize(
    "change", [("warning", "info"), ("merged", "table"), ("amount", "price"), ("min_value: 0", "min_value: 1")]
)
def test_what_is_checked_changes_the_hash(change: tuple[str, str]) -> None:
    assert parse_suite(ORDERS.replace(*change)).hash != parse_suite(ORDERS).hash


@pytest.mark.parametrize("columns", ["5", "1.5", "2026-11-18", "text", "{a: 1}", "null", "true"])
def test_columns_that_are_no_list_do_not_keep_a_suite_from_being_read(columns: str) -> None:
    """Linting says what is wrong with them."""
    check = f"{{type: expect_select_column_values_to_be_unique_within_record, kwargs: {{column_list: {columns}}}}}"
    (check,) = parse_suite(f"name: g\nexpectations: [{check}]").checks
    assert check.name == "select_column_values_to_be_unique_within_record"
