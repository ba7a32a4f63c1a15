"""A verdict is told in a few lines, however much it holds."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from lakelib.model.gate import CheckResult, Outcome, Scope, Severity, Status, Verdict


def _check(name: str, status: Status = Status.FAILED, **found: Any) -> CheckResult:
    about = {"expectation": "expect_x", "arguments": {"value_set": list(range(100))}, "scope": Scope.STAGED}
    return CheckResult(**({"name": name, "status": status, "severity": Severity.CRITICAL} | about | found))


def _verdict(outcome: Outcome, *checks: CheckResult) -> Verdict:
    return Verdict(
        commit_id=UUID(int=7),
        gate="orders",
        suite_hash="b262cc0006917dc8",
        outcome=outcome,
        base_snapshot_id=41,
        engine="arrow",
        seconds=6.42,
        judged_at=datetime(2026, 11, 18, 3, 4, 5, tzinfo=UTC),
        checks=checks,
    )


def test_what_was_not_as_expected_is_printed_and_where_the_rest_is() -> None:
    verdict = _verdict(
        Outcome.REJECT,
        _check("customers are named", Status.PASSED),
        _check("amounts", row_count=10_000, unexpected_count=3, sample=(-1,) * 10),
        _check("rows", severity=Severity.WARNING, observed=0),
        _check("days", Status.ERRORED, detail="no such column\n  at line 7"),
    )
    assert str(verdict).splitlines() == [
        f"reject by gate orders on commit {verdict.commit_id}: 2 failed and 1 errored of 4 checks",
        "  failed, critical: amounts (3 of 10,000 rows)",
        "  failed, warning: rows (observed 0)",
        "  errored, critical: days (no such column)",
        "All is in .checks; StagedCommit.report(path) writes it as a page.",
    ]
    assert repr(verdict) == f"<Verdict: {str(verdict).splitlines()[0]}>"


def test_what_has_passed_is_one_line() -> None:
    verdict = _verdict(Outcome.ACCEPT, _check("amounts", Status.PASSED))
    assert str(verdict) == f"accept by gate orders on commit {verdict.commit_id}: all checks passed"


def test_many_failures_and_long_values_stay_short() -> None:
    verdict = _verdict(Outcome.REJECT, *(_check(f"c{number}", observed="x" * 5_000) for number in range(400)))
    lines = str(verdict).splitlines()
    assert (len(lines), max(map(len, lines)) <= 202) == (13, True)
    assert lines[-2] == "  and 390 more"
