"""Promises of what checks mean for a commit."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.model.gate import CheckResult, Outcome, Scope, Severity, Status, Verdict
from lakelib.plan.judging import decide_outcome, describe_failures

CRITICAL, WARNING, INFO = Severity.CRITICAL, Severity.WARNING, Severity.INFO
PASSED, FAILED, ERRORED = Status.PASSED, Status.FAILED, Status.ERRORED


def _result(severity: Severity, status: Status, name: str = "a") -> CheckResult:
    return CheckResult(
        name=name, expectation="expect_x", arguments={}, scope=Scope.STAGED, severity=severity, status=status
    )


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        ([], Outcome.ACCEPT),
        ([(CRITICAL, PASSED), (WARNING, PASSED)], Outcome.ACCEPT),
        ([(INFO, FAILED), (INFO, ERRORED)], Outcome.ACCEPT),
        ([(CRITICAL, PASSED), (WARNING, FAILED)], Outcome.WARN),
        ([(WARNING, ERRORED)], Outcome.WARN),
        ([(CRITICAL, ERRORED), (WARNING, FAILED)], Outcome.ERRORED),
        ([(CRITICAL, FAILED), (CRITICAL, ERRORED)], Outcome.REJECT),
    ],
)
def test_the_outcome_follows_from_the_worst_that_counts(found: list[tuple[Severity, Status]], outcome: Outcome) -> None:
    assert decide_outcome([_result(*each) for each in found]) is outcome


@given(st.lists(st.tuples(st.sampled_from(Severity), st.sampled_from(Status))))
def test_the_order_of_checks_and_those_of_severity_info_change_nothing(
    found: list[tuple[Severity, Status]],
) -> None:
    checks = [_result(*each) for each in found]
    outcome = decide_outcome(checks)
    assert decide_outcome(checks[::-1]) is outcome
    assert decide_outcome([check for check in checks if check.severity is not INFO]) is outcome


def test_the_failures_that_decided_are_named_with_what_was_found() -> None:
    checks = (
        replace(_result(CRITICAL, FAILED, "amounts"), row_count=10_000, unexpected_count=3),
        replace(_result(CRITICAL, FAILED, "rows"), observed=0),
        _result(WARNING, FAILED, "not this one"),
        *(_result(CRITICAL, FAILED, f"c{number}") for number in range(5)),
    )
    verdict = Verdict(
        commit_id=UUID(int=0),
        gate="orders",
        suite_hash="",
        outcome=Outcome.REJECT,
        base_snapshot_id=0,
        engine="arrow",
        seconds=0.0,
        judged_at=datetime.now(UTC),
        checks=checks,
    )
    assert describe_failures(verdict) == (
        "7 of 8 checks failed: amounts (3 of 10,000 rows), rows (observed 0), c0, c1, c2 and 2 more"
    )
