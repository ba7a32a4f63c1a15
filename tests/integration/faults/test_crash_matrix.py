"""A writer is killed at every step of its work. What it leaves is the state before or after, never between, and the
same call again finishes the work exactly once."""

import signal

import pytest

from tests.integration.faults.jobs import OPERATIONS, crash_at
from tests.integration.faults.ledger import Ledger
from tests.integration.faults.processes import run_process
from tests.integration.faults.works import WORKS, state_of

_MOST_STEPS = 400


@pytest.mark.parametrize("operation", WORKS)
def test_a_writer_killed_at_any_step_leaves_all_or_nothing_and_its_retry_commits_once(
    operation: str, ledger: Ledger
) -> None:
    work = WORKS[operation]
    told = []
    for number in range(1, _MOST_STEPS):
        work.prepare(ledger, number)
        before = state_of(ledger, work)
        after = {name: work.change(content, number) for name, content in before.items()}
        between = {name: work.beside(content, number) if work.beside else content for name, content in before.items()}
        known = ledger.backends()

        ended = run_process(crash_at, *ledger.place, operation, number, number, work.only)

        ledger.wait_until_gone(known)
        where = f"step {number}, {ended.messages}"
        if ended.exit_code != -signal.SIGKILL:
            assert ended.error == "", where
            assert ended.result == number - 1, "a step was passed without being counted"
            break
        told.extend(ended.messages)
        assert state_of(ledger, work) in (before, between, after), where
        _finish(ledger, operation, number)
        assert state_of(ledger, work) == after, where
        assert ledger.commits("published", number) == [name.partition(".")[2] for name in work.tables], where
        assert ledger.commits("staged") == [], where
    assert len(told) >= work.least_steps
    for name in work.functions:
        assert {step.partition(":")[0] for step in told if f"lake.{name}(" in step} == {"before", "sent", "after"}
    assert told.count("before: commit") == told.count("sent: commit") == told.count("after: commit")


def _finish(ledger: Ledger, operation: str, number: int) -> None:
    """What a scheduler does after a crash: the same call again."""
    OPERATIONS[operation](ledger.lake, number)
