from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from lakelib.model.table import Snapshot


@pytest.mark.parametrize(
    ("summary", "written"),
    [
        ({"rows_written": 12345, "deletes_written": 0}, "12,345 rows"),
        ({"rows_written": 2, "deletes_written": 1000}, "2 rows, 1,000 deletes"),
        ({}, "0 rows"),
    ],
)
def test_a_snapshot_says_in_one_line_what_it_is(summary: dict[str, Any], written: str) -> None:
    snapshot = Snapshot(
        id=7,
        kind="upsert",
        committed_at=datetime(2026, 11, 18, 8, 30, 15, 999, tzinfo=UTC),
        schema_id=1,
        commit_id=uuid4(),
        summary=summary,
    )
    assert repr(snapshot) == f"<Snapshot 7: upsert of {written} at 2026-11-18 08:30:15+00:00>"
