"""Changes as a frame are those that this process reads, also where a split is cut among tasks."""

from typing import Any

import pyarrow as pa
import pytest

import lakelib.spark
from lakelib import Changes, Lake, Table
from tests.spark.conftest import NewTable

_ROWS = 4000


def _rows(start: int, stop: int, word: str) -> pa.Table:
    numbers = range(start, stop)
    return pa.table({"id": numbers, "day": [str(number % 2) for number in numbers], "word": [word] * len(numbers)})


@pytest.fixture(params=["one bucket", "partitions", "no key"])
def table(request: pytest.FixtureRequest, new_table: NewTable) -> Table:
    """Of several row groups, written four times."""
    key: dict[str, dict[str, Any]] = {
        "one bucket": {"primary_key": ["id"]},
        "partitions": {"primary_key": ["id"], "partition_by": ["day"], "buckets": 4},
        "no key": {"partition_by": ["day"]},
    }
    options = {"row_group_rows": 1000}
    table = new_table("id BIGINT, day STRING, word STRING", options=options, **key[request.param])
    write = table.append if request.param == "no key" else table.upsert
    write(_rows(0, _ROWS, "first"))
    write(_rows(_ROWS // 2, _ROWS + 10, "second"))
    table.delete("id < 100")
    table.overwrite(_rows(0, _ROWS // 4, "third"), "dynamic" if table.partition_by else "all")
    return table


@pytest.mark.parametrize("view", ["latest", "all", "net"])
def test_a_frame_has_the_changes(spark: Any, table: Table, view: str) -> None:
    for after in (0, 1, 3):
        changes = table.changes(after=after, view=view, where="id >= 50")
        frame = changes.to_spark(spark)
        assert frame.columns == changes.schema.names
        assert sorted(map(tuple, frame.collect()), key=repr) == _sorted(changes)
        assert frame.count() == changes.count() > 0


def test_a_diff_goes_both_ways(spark: Any, table: Table) -> None:
    for bounds in ((1, 4), (4, 1)):
        changes = table.diff(*bounds)
        assert sorted(map(tuple, changes.to_spark(spark).collect()), key=repr) == _sorted(changes)


@pytest.mark.parametrize("view", ["merged", "read_optimized", "unmerged"])
def test_the_format_reads_the_views_of_a_scan(spark: Any, lake: Lake, table: Table, view: str) -> None:
    lakelib.spark.register(spark, lake)
    for how in ({}, {"at": "2", "where": "id >= 1990"}, {"columns": "word"}):
        scan = table.scan(
            view=view, at=how.get("at"), where=how.get("where"), columns=[how["columns"]] if "columns" in how else None
        )
        wanted = sorted((tuple(row.values()) for row in scan.to_arrow().to_pylist()), key=repr)
        frame = spark.read.format("lake").options(view=view, **how).load(table.name)
        options = ", ".join(f"{name} '{text}'" for name, text in {"table": table.name, "view": view, **how}.items())
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW looked_at USING lake OPTIONS ({options})")
        for found in (frame, spark.table("looked_at")):
            assert found.columns == scan.schema.names
            assert sorted(map(tuple, found.collect()), key=repr) == wanted


def test_no_changes_are_an_empty_frame(spark: Any, table: Table) -> None:
    changes = table.changes(after=4)
    frame = changes.to_spark(spark)
    assert (frame.count(), frame.columns) == (0, changes.schema.names)


def _tuples(changes: Changes) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in changes.to_arrow().to_pylist()]


def _sorted(changes: Changes) -> list[tuple[Any, ...]]:
    return sorted(_tuples(changes), key=repr)
