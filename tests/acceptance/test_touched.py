"""Which partitions a snapshot has touched, and whether one that was replaced came out the same."""

from datetime import date

import pyarrow as pa
import pytest

from lakelib import Table
from lakelib.ops import inspect
from tests.acceptance.support import NewTable, data

SCHEMA = "id BIGINT, dt DATE, v BIGINT"
KINDS = {"id": pa.int64(), "dt": pa.date32(), "v": pa.int64()}
FIRST, SECOND, THIRD = (date(2026, 11, day) for day in (11, 12, 13))
Row = tuple[int, date, int]


@pytest.fixture(params=["keyed", "append"])
def table(new_table: NewTable, request: pytest.FixtureRequest) -> Table:
    return new_table(SCHEMA, primary_key=["id"] if request.param == "keyed" else [], partition_by=["dt"])


def rows(*given: Row) -> pa.Table:
    return data(KINDS, *given)


def touches(table: Table) -> dict[date, bool]:
    """By day whether it came out the same."""
    return {one.values["dt"]: one.is_same for one in table.touched_partitions()}


def test_a_partition_that_gets_rows_or_loses_some_is_touched(table: Table) -> None:
    table.append(rows((1, FIRST, 1), (2, SECOND, 1)))
    assert touches(table) == {FIRST: False, SECOND: False}
    table.append(rows((3, SECOND, 1)))
    assert touches(table) == {SECOND: False}
    table.overwrite(rows(), partitions={"dt": str(FIRST)})
    assert touches(table) == {FIRST: False}


def test_of_a_full_copy_the_partitions_that_came_out_the_same_are_told_apart(table: Table) -> None:
    table.append(rows((1, FIRST, 1), (2, SECOND, 1), (3, SECOND, 2)))
    table.overwrite(rows((3, SECOND, 2), (2, SECOND, 1), (1, FIRST, 7), (4, THIRD, 1)))
    assert touches(table) == {FIRST: False, SECOND: True, THIRD: False}
    (same,) = (one for one in table.touched_partitions() if one.is_same)
    assert same.previous_snapshot == 1


def test_a_partition_is_the_same_however_its_rows_came(new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.upsert(rows((1, FIRST, 1), (2, FIRST, 1)))
    table.upsert(rows((2, FIRST, 5)))
    table.compact(full=True)
    table.overwrite(rows((2, FIRST, 5), (1, FIRST, 1)))
    (same,) = table.touched_partitions()
    assert (same.is_same, same.previous_snapshot) == (True, 2)
    assert [one.is_same for one in table.touched_partitions(at=2)] == [False]


def test_a_row_twice_is_not_a_row_once(new_table: NewTable) -> None:
    table = new_table(SCHEMA, partition_by=["dt"])
    table.append(rows((1, FIRST, 1), (1, FIRST, 1), (2, FIRST, 1)))
    table.overwrite(rows((1, FIRST, 1), (2, FIRST, 1), (2, FIRST, 1)))
    assert touches(table) == {FIRST: False}


def test_a_partition_in_another_schema_is_not_the_same(table: Table) -> None:
    table.append(rows((1, FIRST, 1)))
    table.overwrite(rows((1, FIRST, 1)).append_column("note", pa.nulls(1, pa.string())), merge_schema=True)
    assert touches(table) == {FIRST: False}
    table.overwrite(rows((1, FIRST, 1)))
    assert touches(table) == {FIRST: True}


def test_what_is_too_large_to_be_compared_counts_as_changed(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append(rows((1, FIRST, 1), (2, SECOND, 1)))
    table.overwrite(rows((1, FIRST, 1), (2, SECOND, 1)))
    assert touches(table) == {FIRST: True, SECOND: True}
    monkeypatch.setattr(inspect, "COMPARED_BYTES", 4000)
    assert set(touches(table).values()) < {True, False}
    monkeypatch.setattr(inspect, "COMPARED_PARTITION_BYTES", 1)
    assert touches(table) == {FIRST: False, SECOND: False}


def test_what_expired_before_it_was_compared_counts_as_changed(table: Table) -> None:
    table.append(rows((1, FIRST, 1)))
    table.overwrite(rows((1, FIRST, 1)))
    table.expire(keep_last=1)
    assert touches(table) == {FIRST: False}


def test_a_compaction_a_commit_without_rows_and_a_table_without_snapshots_touch_nothing(table: Table) -> None:
    assert table.touched_partitions() == []
    table.append(rows((1, FIRST, 1)))
    table.append(rows((2, FIRST, 1)))
    assert table.compact(full=True).snapshots
    assert table.touched_partitions() == []
    table.append(rows())
    assert table.touched_partitions() == []


def test_the_partition_of_no_value_is_one_like_any_other(table: Table) -> None:
    table.append(data(KINDS, (1, None, 1)))
    assert [one.values for one in table.touched_partitions()] == [{"dt": None}]
