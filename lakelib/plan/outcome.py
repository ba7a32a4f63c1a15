"""Pure. Decides what the results of a gate's checks mean for the commit."""

from collections.abc import Sequence

from lakelib.model.gate import CheckResult, Outcome, Severity, Status, Verdict

_MOST_NAMED = 5


def decide_outcome(checks: Sequence[CheckResult]) -> Outcome:
    """A critical check that failed rejects; else one that errored says nothing of the data; else a warning that failed
    or errored is a warning. Checks of severity info change nothing."""
    found = {(check.severity, check.status) for check in checks}
    if (Severity.CRITICAL, Status.FAILED) in found:
        return Outcome.REJECT
    if (Severity.CRITICAL, Status.ERRORED) in found:
        return Outcome.ERRORED
    if found & {(Severity.WARNING, Status.FAILED), (Severity.WARNING, Status.ERRORED)}:
        return Outcome.WARN
    return Outcome.ACCEPT


def describe_failures(verdict: Verdict) -> str:
    """ "2 of 12 checks failed: amount is positive (3 of 100 rows), …": the critical ones that decided, in one line."""
    status = Status.ERRORED if verdict.outcome is Outcome.ERRORED else Status.FAILED
    decisive = [check for check in verdict.checks if check.status is status and check.severity is Severity.CRITICAL]
    named = ", ".join(check.told() for check in decisive[:_MOST_NAMED])
    more = f" and {len(decisive) - _MOST_NAMED} more" if len(decisive) > _MOST_NAMED else ""
    return f"{len(decisive)} of {len(verdict.checks)} checks {status.value}: {named}{more}"
