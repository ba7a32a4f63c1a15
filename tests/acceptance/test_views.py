"""The views of a scan: rows merged, as the last compaction left them, and all that the files hold."""

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from lakelib import InvalidInputError, Scan, Table
from tests.acceptance.support import Engine, NewTable, data

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("value", pa.string())])


@pytest.fixture
def table(new_table: NewTable) -> Table:
    """Two rows that were compacted; then one is written again, one is deleted, and one comes."""
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["day"], buckets=2)
    table.upsert(data(SCHEMA, (1, "a", "one")))
    table.upsert(data(SCHEMA, (2, "a", "two")))
    table.compact(full=True)
    table.upsert(data(SCHEMA, (1, "a", "ONE"), (3, "b", "three")))
    table.delete("value = 'two'")
    return table


def rows(engine: Engine, scan: Scan) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in engine.read(scan).to_pylist()), key=repr)


def test_the_view_read_optimized_is_as_the_last_compaction_left_it(engine: Engine, table: Table) -> None:
    scan = table.scan(view="read_optimized")
    assert rows(engine, scan) == [(1, "a", "one"), (2, "a", "two"), (3, "b", "three")]  # of b there is one run
    assert scan.count() == 3
    assert scan.explain().splits_merged == 0
    assert rows(engine, table.scan(view="read_optimized", where="value = 'one'", columns=["id"])) == [(1,)]
    table.compact(full=True)
    assert rows(engine, table.scan(view="read_optimized")) == [(1, "a", "ONE"), (3, "b", "three")]


def test_its_lag_is_what_it_does_not_show(table: Table) -> None:
    lag = table.scan(view="read_optimized").lag
    assert (lag.snapshots, lag.rows) == (2, 2)
    assert timedelta(0) < lag.age < timedelta(minutes=5)
    assert table.scan().lag.snapshots == 0
    assert table.scan(view="read_optimized", at=3).lag.snapshots == 0
    table.compact(full=True)
    lag = table.scan(view="read_optimized").lag
    assert (lag.snapshots, lag.rows, lag.age) == (0, 0, timedelta(0))


def test_the_view_unmerged_is_all_that_the_files_hold(engine: Engine, table: Table) -> None:
    scan = table.scan(view="unmerged")
    assert scan.schema.names == ["id", "day", "value", "_commit", "_op"]
    assert rows(engine, scan) == [
        (1, "a", "ONE", 4, "upsert"),
        (1, "a", "one", 1, "upsert"),
        (2, "a", "two", 2, "upsert"),
        (2, "a", None, 5, "delete"),
        (3, "b", "three", 4, "upsert"),
    ]
    assert scan.count() == 5
    assert len(scan.head(2)) == 2


def test_it_has_base_rows_before_deltas(table: Table) -> None:
    found = table.scan(view="unmerged", where="id = 1").to_arrow().column("value").to_pylist()
    assert found == ["one", "ONE"]


def test_it_is_filtered_row_by_row(engine: Engine, table: Table) -> None:
    assert rows(engine, table.scan(view="unmerged", where="value = 'one'", columns=["id"])) == [
        (1, 1, "upsert"),
        (2, 5, "delete"),
    ]


def test_a_table_without_a_key_has_nothing_to_merge(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA)
    table.append(data(SCHEMA, (1, "a", "one")))
    assert rows(engine, table.scan(view="read_optimized")) == rows(engine, table.scan()) == [(1, "a", "one")]
    assert rows(engine, table.scan(view="unmerged")) == [(1, "a", "one", 1, "upsert")]
    assert table.scan(view="read_optimized").lag.rows == 0


@pytest.mark.parametrize("view", ["latest", "", None, 1])
def test_a_view_that_is_none_is_said(table: Table, view: Any) -> None:
    with pytest.raises(InvalidInputError, match="merged, read_optimized, unmerged") as raised:
        table.scan(view=view)
    assert raised.value.kind == "invalid_view"


def test_a_scan_says_which_view_it_is(table: Table) -> None:
    assert "<Scan (unmerged) of" in repr(table.scan(view="unmerged"))
    assert (table.scan().view, repr(table.scan())[:8]) == ("merged", "<Scan of")
