"""Pure. What checks say of what a commit does to the rows that there were."""

from collections.abc import Iterable
from typing import Any

from lakelib.gates.evidence import as_measure
from lakelib.gates.expectations import ON_EFFECT, looks_at_effect
from lakelib.gates.judgement import result_of
from lakelib.gates.plan import limits_of
from lakelib.model.effect import ROWS_BEFORE, Effect
from lakelib.model.gate import CheckResult, Status
from lakelib.specs.suite import Check


def asks_for_updates(checks: Iterable[Check]) -> bool:
    """Whether values are to be compared: which rows come and which go, keys tell."""
    return any(ON_EFFECT[check.expectation][0] == "updated" for check in checks if looks_at_effect(check.expectation))


def asks_for_share(checks: Iterable[Check]) -> bool:
    """Whether it is to be known how many rows there were."""
    return any(ON_EFFECT[check.expectation][1] for check in checks if looks_at_effect(check.expectation))


def judge_effect(check: Check, effect: Effect, rows_before: int | None) -> CheckResult:
    """Where there were no rows a share is 0."""
    change, is_share = ON_EFFECT[check.expectation]
    count = getattr(effect, change)
    observed: dict[str, Any] = {f"rows_{change}": count}
    measured = count
    if is_share:
        measured = count / rows_before if rows_before else 0
        observed |= {ROWS_BEFORE: rows_before, "proportion": measured}
    passed = limits_of(check.arguments).holds(measured)
    return result_of(check, Status.PASSED if passed else Status.FAILED, observed=as_measure(observed))
