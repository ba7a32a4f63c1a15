"""Crowds of writers of all kinds on a few tables: no error reaches one, none waits for long, and what they make is as
if one had come after the other. `make soak` has them work for longer."""

import pytest

from tests.integration.faults.ledger import Ledger
from tests.soak import crowd

_WRITERS = 32
_SECONDS = 6.0
_LONGEST_SECONDS = 5 * crowd.LONGEST_SECONDS
"""On a machine that is busy."""


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_32_writers_of_all_kinds_see_no_error_and_wait_for_a_bounded_time(kind: str, ledger: Ledger) -> None:
    crowd.create_tables(ledger.lake)

    if kind == "threads":
        reports = crowd.work_in_threads(ledger.lake, _WRITERS, _SECONDS, seed=1)
    else:
        reports = crowd.work_in_processes(ledger.place, _WRITERS, _SECONDS, seed=1)

    assert [error for report in reports for error in report.errors] == []
    assert list(crowd.check(ledger.lake)) == []
    assert crowd.find_longest(reports) < _LONGEST_SECONDS, "\n".join(crowd.describe(reports))
    assert ledger.commits("staged") == []
