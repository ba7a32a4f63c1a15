"""A table of many columns costs what its columns cost: twice as many take twice the work, for each file."""

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakelib import Lake, Table
from lakelib.model.schema import Column, TableSchema
from lakelib.storage.footers import has_path_of_its_own

_FEW, _MANY = 200, 800
_MOST_GROWTH = 2 * _MANY / _FEW
"""Linear work grows fourfold, quadratic work sixteenfold."""


@pytest.fixture(params=["append", "keyed"])
def keys(request: pytest.FixtureRequest) -> list[str]:
    return ["id"] if request.param == "keyed" else []


def test_a_file_is_written_with_work_by_columns_not_by_pairs_of_columns(lake: Lake, keys: list[str]) -> None:
    few, many = (_calls(lambda count=count: _write(lake, keys, _rows(count))) for count in (_FEW, _MANY))
    assert many < _MOST_GROWTH * few


def test_a_file_is_read_with_work_by_columns_not_by_pairs_of_columns(lake: Lake, keys: list[str]) -> None:
    for count in (_FEW, _MANY):
        table = _write(lake, keys, _rows(count))
        table.compact(full=True)
    few, many = (_calls(lambda count=count: _read(lake, keys, count)) for count in (_FEW, _MANY))
    assert many < _MOST_GROWTH * few


@pytest.mark.parametrize(("name", "has"), [("a.b", False), ("a.b.c", False), ("ab", True), (".a", True), ("c.a", True)])
def test_a_name_with_dots_may_mean_a_part_of_a_nested_column(name: str, has: bool) -> None:
    assert has_path_of_its_own(name, frozenset({"a", "x.y"})) is has
    assert not has_path_of_its_own("x.y.z", frozenset({"a", "x.y"}))


def test_a_schema_finds_columns_by_id_and_by_name_in_any_case() -> None:
    columns = (Column(id=2, name="Straße", type="int"), Column(id=5, name="b", type="int"))
    schema = TableSchema(id=1, columns=columns)
    assert (schema.find("STRASSE"), schema.by_id(5), schema.find("c"), schema.by_id(1)) == (*columns, None, None)
    assert schema == TableSchema(id=1, columns=columns)


def _rows(column_count: int) -> pa.Table:
    values = [pa.array([1, 2, 2]), pa.array(["x", "y", "y"]), pa.array([0.5, None, 1.5])]
    return pa.table({"id": [1, 2, 3]} | {f"c{number}": values[number % 3] for number in range(column_count)})


def _write(lake: Lake, keys: list[str], rows: pa.Table) -> Table:
    lake.create_namespace("wide")
    name = f"wide.t{len(keys)}_{rows.num_columns}"
    table = lake.create_table(name, rows.schema, primary_key=keys, if_not_exists=True)
    table.upsert(rows) if keys else table.append(rows)
    return table


def _read(lake: Lake, keys: list[str], column_count: int) -> None:
    """One file: it is read on this thread."""
    lake.table(f"wide.t{len(keys)}_{column_count + 1}").scan().to_arrow()


def _calls(work: Callable[[], Any]) -> int:
    """How many functions the work calls on this thread, those written in C included."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
