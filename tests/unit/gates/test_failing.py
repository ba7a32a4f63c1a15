"""Which rows a check means: as a predicate that finds just them, and in a line."""

from typing import Any
from uuid import UUID

import pytest

from lakelib.gates.failing import failing_where, tell_failures
from lakelib.model.gate import Background, CheckResult, FailingRows, Outcome, Scope, Severity, Status, Verdict

_DAY = "2026-11-18"


def check(expectation: str, sample: tuple[Any, ...] = (), **arguments: Any) -> CheckResult:
    return CheckResult(
        name=arguments.pop("name", "c"),
        expectation=f"expect_{expectation}",
        arguments=arguments,
        scope=Scope.STAGED,
        severity=arguments.pop("severity", Severity.CRITICAL),
        status=Status.FAILED,
        row_count=400,
        unexpected_count=3,
        sample=sample,
    )


@pytest.mark.parametrize(
    ("failed", "where"),
    [
        (check("column_values_to_not_be_null", (None,), column="amount"), "amount IS NULL"),
        (check("column_values_to_be_null", ("x",), column="Amount"), "`Amount` IS NOT NULL"),
        (check("column_values_to_be_between", column="a", min_value=0, max_value=9), "a < 0 OR a > 9"),
        (check("column_values_to_be_between", column="a", min_value=0, strict_min=True), "a <= 0"),
        (check("column_values_to_be_between", column="dt", max_value=_DAY), f"dt > '{_DAY}'"),
        (check("column_values_to_be_in_set", column="s", value_set=["a", "it's"]), "s NOT IN ('a', 'it''s')"),
        (check("column_values_to_not_be_in_set", column="n", value_set=[1, 2.5]), "n IN (1, 2.5)"),
        (check("column_values_to_be_unique", (1, 1, 2), column="id"), "id IN (1, 2)"),
        (check("column_values_to_match_regex", ("x", None), column="c"), "c IN ('x') OR c IS NULL"),
        (
            check("compound_columns_to_be_unique", ({"a": 1, "b": None},), column_list=["a", "b"]),
            "(a = 1 AND b IS NULL)",
        ),
        (
            check("column_pair_values_to_be_equal", ([1, "x"],), column_A="a", column_B="b"),
            "(a = 1 AND b = 'x')",
        ),
        (
            check("column_values_to_not_be_null", (None,), column="a", row_condition='col("s") == "NEW"'),
            "(a IS NULL) AND s = 'NEW'",
        ),
    ],
)
def test_a_predicate_finds_the_rows_that_are_not_as_expected(failed: CheckResult, where: str) -> None:
    assert failing_where(failed) == where


@pytest.mark.parametrize(
    "failed",
    [
        check("column_values_to_be_in_set", column="s", value_set=["a", "… 5 more"]),
        check("column_values_to_be_in_set", column="s", value_set=list(range(21))),
        check("column_values_to_match_regex", ("***",), column="email"),
        check("column_values_to_match_regex", ("x" * 300 + "…",), column="c"),
        check("column_values_to_match_regex", column="c"),
        check("table_row_count_to_be_between", min_value=1),
        check("column_mean_to_be_between", column="a", min_value=1),
    ],
)
def test_there_is_none_of_what_was_cut_or_masked_and_of_what_no_row_is_to_blame_for(failed: CheckResult) -> None:
    assert failing_where(failed) is None


def test_a_line_says_which_check_how_grave_how_many_and_which_rows() -> None:
    failed = check("column_values_to_not_be_null", (None,), column="amount")
    warned = CheckResult(
        name="few rows",
        expectation="expect_table_row_count_to_be_between",
        arguments={},
        scope=Scope.STAGED,
        severity=Severity.WARNING,
        status=Status.FAILED,
        observed=7,
    )
    verdict = Verdict(
        commit_id=UUID(int=7),
        gate="g",
        suite_hash="h",
        outcome=Outcome.REJECT,
        base_snapshot_id=0,
        engine="arrow",
        seconds=0.1,
        judged_at=None,  # type: ignore[arg-type]
        checks=(warned, failed),
    )
    keys = tuple({"id": number, "note": "a\nb"} for number in (17, None))
    background = Background(failing={"c": FailingRows(command="lake scan", keys=keys)})
    assert tell_failures(verdict, background) == (
        "c (critical): 3 of 400 rows, 0.75 %; such as id=17 note=a b, id=NULL note=a b",
        "few rows (warning): observed 7",
    )
