"""What a notebook does with a lake: rows as Python has them, a look at the first ones, and everything shown as HTML."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelib import InvalidInputError, Lake, Table
from lakelib.ops import read
from tests.acceptance.support import NewTable

SCHEMA = "id BIGINT, many BIGINT, name STRING, amount DECIMAL(10, 2)"
ROWS = [{"id": number, "many": number, "name": f"<{number}>", "amount": Decimal("1.50")} for number in range(30)]
_SUITE = """
name: <i>
expectations:
  - type: expect_column_values_to_not_be_null
    kwargs: {column: id}
"""


@pytest.fixture
def table(new_table: NewTable) -> Table:
    return new_table(SCHEMA, primary_key=["id"], buckets=4)


def test_rows_are_lists_of_dicts_or_dicts_of_lists(table: Table) -> None:
    table.upsert(ROWS)
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == ROWS
    table.overwrite({name: [row[name] for row in ROWS[:2]] for name in ROWS[0]})
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == ROWS[:2]
    table.delete_keys([{"id": 0}])
    assert table.scan().count() == 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([{"id": 1}, {"id": 2, "name": "x"}], "Row 1 and row 0 do not both have 'name'"),
        ([{"id": 1}, (2,)], "Row 1 of the list is a tuple"),
        ([{1: 1}], "1 is no name of a column"),
        ({"id": [1, 2], "name": ["x"]}, "make no columns"),
        ([{"id": 1}, {"id": "x"}], "make no columns"),
        ([{"id": 2**70}], "make no columns"),
        ([{"id": object()}], "make no columns"),
        ([], "The data has no columns"),
    ],
)
def test_rows_that_cannot_be_are_refused(table: Table, given: Any, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        table.upsert(given)
    assert table.head is None


def test_the_first_rows_are_the_same_each_time(table: Table) -> None:
    assert table.scan().head().num_rows == 0
    table.upsert(ROWS)
    first = table.scan().head(7)
    assert first.num_rows == 7
    assert first.equals(table.scan().head(7))
    assert table.scan().head(0).schema == table.scan().schema
    assert table.scan().head(1000).num_rows == len(ROWS)
    assert table.scan(where="id = 3", columns=["name"]).head().to_pylist() == [{"name": "<3>"}]


@pytest.mark.parametrize("rows", [-1, True, 1.5, "3"])
def test_no_number_of_rows_is_refused(table: Table, rows: Any) -> None:
    with pytest.raises(InvalidInputError, match="is no number of rows"):
        table.scan().head(rows)


def test_the_first_rows_take_no_more_reading_than_they_need(
    new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["many"])
    table.upsert(ROWS)
    read_splits = read.read_splits
    taken = []

    def listen(*given: Any) -> Iterator[pa.Table]:
        for piece in read_splits(*given):
            taken.append(piece.num_rows)
            yield piece

    monkeypatch.setattr(read, "read_splits", listen)
    monkeypatch.setattr(read, "gather_splits", lambda splits, merges: [[split] for split in splits])

    assert table.scan().head(2).num_rows == 2
    assert len(taken) == 2


def test_everything_is_shown_and_escaped(lake: Lake, table: Table, tmp_path: Path) -> None:
    table.upsert(ROWS)
    table.tag("<b>")
    suite = tmp_path / "suite.yaml"
    suite.write_text(_SUITE)
    staged = table.stage_upsert([{"id": 1}])
    shown = {
        "lake": lake._repr_html_(),
        "table": table._repr_html_(),
        "scan": table.scan(where="name <> '<x>'")._repr_html_(),
        "history": table.history()._repr_html_(),
        "partitions": table.partitions()._repr_html_(),
        "files": table.files()._repr_html_(),
        "tags": table.tags()._repr_html_(),
        "snapshot": table.history()[0]._repr_html_(),
        "verdict": staged.judge(suite)._repr_html_(),
        "commits": table.commits()._repr_html_(),
        "lake's status": lake.status()._repr_html_(),
        "table's status": table.status()._repr_html_(),
    }
    assert str(staged.id) in shown["commits"]
    assert table.name in shown["lake's status"]
    assert table.name in shown["lake"]
    assert "<td>id</td><td>bigint</td><td>key</td>" in shown["table"].lower()
    assert "&lt;x&gt;" in shown["scan"]
    assert "&lt;b&gt;" in shown["tags"]
    assert str(table.history()[0].commit_id) in shown["snapshot"]
    assert "<td>passed</td>" in shown["verdict"]
    assert "accept: &lt;i&gt;" in shown["verdict"]
    assert all("<b>" not in html and "<x>" not in html and "<i>" not in html for html in shown.values())
