"""Runs of the maintenance DAGs, with real jobs."""

import os
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from lakelib import Lake, Table
from lakelib.storage.paths import file_name, new_attempt_id

from .conftest import Lab


@pytest.fixture
def small(lake: Lake) -> Table:
    """A table of two small commits."""
    lake.create_namespace("shop")
    table = lake.create_table("shop.small", "id BIGINT, n BIGINT", primary_key=["id"], buckets=1, if_not_exists=True)
    for number in range(2):
        table.upsert(pa.table({"id": [1, 2], "n": [number, number]}))
    return table


def _leave_orphan(table: Table) -> Path:
    """A file that a writer left behind two days ago."""
    orphan = Path(table.location.removeprefix("file://"), file_name("delta", new_attempt_id(), 0))
    orphan.write_bytes(b"rows that nobody published")
    long_ago = time.time() - timedelta(days=2).total_seconds()
    os.utime(orphan, (long_ago, long_ago))
    return orphan


def test_a_table_is_compacted(lab: Lab, small: Table) -> None:
    ran = lab.run("compact", conf={"tables": ["shop.small"], "full": True})
    assert ran["state"] == "success"
    assert small.history()[0].kind == "compact"
    assert small.scan(columns=["id", "n"]).to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "n": 1},
        {"id": 2, "n": 1},
    ]


def test_files_that_nobody_needs_are_named_at_first_and_deleted_only_when_somebody_says_so(
    lab: Lab, small: Table
) -> None:
    orphan = _leave_orphan(small)
    assert lab.run("maintain")["state"] == "success"
    assert orphan.exists()
    assert f"would delete {orphan.as_uri()}" in lab.log()
    assert lab.run("maintain", conf={"dry_run": False})["state"] == "success"
    assert not orphan.exists()


def test_rules_of_tables_that_are_not_there_yet_ask_for_nothing(lab: Lab) -> None:
    ran = lab.run("maintain", conf={"vacuum": False, "tables": ["shop.orders"]})
    assert (ran["state"], ran["tasks"]["maintain"]) == ("success", "skipped")
