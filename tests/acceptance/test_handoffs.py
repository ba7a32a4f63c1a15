"""Rows handed to other libraries: they take a scan and changes as they are, ask for what they need, and get that."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from lakelib import InvalidInputError, Lake, Table
from tests.acceptance.support import ArrowEngine, Engine, NewTable

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("name", pa.string()),
        ("amount", pa.decimal128(10, 2)),
        ("score", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
        ("flag", pa.bool_()),
    ]
)
DAY = date(2026, 11, 18)


def row(number: int, score: float | None = None) -> tuple[Any, ...]:
    moment = datetime(2026, 11, 18, number, tzinfo=UTC)
    return (number, DAY, f"n{number}", Decimal(number), score, moment, number % 2 == 0)


@pytest.fixture
def engine() -> Engine:
    return ArrowEngine()


@pytest.fixture
def table(new_table: NewTable) -> Table:
    """Of which rows have been replaced and deleted."""
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["day"], buckets=2)
    table.upsert(rows(*(row(number, 1.0) for number in range(10))))
    table.upsert(rows(row(1, math.nan), row(2, -0.0), row(3), row(4, math.inf), row(5, 7.0)))
    table.delete("id = 9")
    return table


def rows(*found: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, each, strict=True)) for each in found], schema=SCHEMA)


def in_order(found: pa.Table) -> list[str]:
    """NaN is not itself."""
    return sorted(map(repr, found.to_pylist()))


def test_what_takes_arrow_takes_a_scan_and_changes(table: Table) -> None:
    for given in (table.scan(), table.changes(after=0), table.changes(after=1, view="net")):
        assert in_order(pa.table(given)) == in_order(given.to_arrow())
        assert pa.schema(given) == given.schema
        assert pl.DataFrame(given).height == given.count()
        assert duckdb.sql("SELECT count(*) FROM given").fetchall() == [(given.count(),)]


def test_a_consumer_may_ask_for_other_types_and_for_no_other_columns(table: Table) -> None:
    scan = table.scan(columns=["id", "name"])
    wanted = pa.schema([("id", pa.int32()), ("name", pa.large_string())])

    assert pa.RecordBatchReader.from_stream(scan, wanted).schema == wanted
    assert pa.RecordBatchReader.from_stream(scan, wanted).read_all().num_rows == 9
    with pytest.raises(InvalidInputError, match="The stream has the columns id, name, and not id"):
        pa.RecordBatchReader.from_stream(scan, wanted.remove(1))


def test_polars_has_the_rows(table: Table) -> None:
    assert table.scan(columns=["id"]).to_polars()["id"].sort().to_list() == list(range(9))
    assert table.changes(after=0).to_polars().height == table.changes(after=0).count()


CONDITIONS = [
    pl.col("id") > 3,
    pl.lit(3) < pl.col("id"),
    pl.col("id") > 3.5,
    (pl.col("id") >= 2) & (pl.col("name") != "n4") & pl.col("flag"),
    (pl.col("id") == 2) | (pl.col("name") == "n4"),
    pl.col("id").is_in([1, 2, 77]),
    ~pl.col("id").is_in([1, 2]),
    pl.col("name").is_in(["n1", "x"]),
    pl.col("id").is_between(2, 4),
    pl.col("score").is_null(),
    pl.col("score").is_not_null(),
    pl.col("score") > 3,
    pl.col("score") > 3.0,
    pl.col("score") <= 3.0,
    pl.col("score") == 0.0,
    pl.col("score") == math.nan,
    pl.col("score") >= math.inf,
    pl.col("amount") >= Decimal("4.00"),
    pl.col("day") == DAY,
    pl.col("day") < DAY,
    pl.col("at") > datetime(2026, 11, 18, 5, tzinfo=UTC),
    pl.col("name").str.starts_with("n"),
    pl.col("id") > pl.col("amount"),
    pl.lit(False),
]


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_a_lazy_frame_gives_what_the_whole_frame_gives(table: Table, condition: pl.Expr) -> None:
    whole, lazy = table.scan().to_polars(), table.scan().to_polars(lazy=True)

    for asked in ("id", "score"):
        found = lazy.filter(condition).select(asked).collect()[asked].sort()
        assert found.equals(whole.filter(condition)[asked].sort(), null_equal=True)
    assert lazy.filter(condition).select(pl.len()).collect().item() == whole.filter(condition).height


def test_a_lazy_frame_reads_what_is_asked_of_it(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    scan = table.scan()
    narrowed = scan.narrowed
    monkeypatch.setattr(scan, "narrowed", lambda *given: (asked.append(given), narrowed(*given))[1])

    scan.to_polars(lazy=True).filter(pl.col("id") == 2).select("name").collect()

    ((columns, where),) = asked
    assert sorted(columns) == ["id", "name"]
    assert narrowed(columns, where).explain().where == "id = 2"


def test_a_lazy_frame_reads_the_snapshot_that_it_was_made_of(table: Table) -> None:
    lazy, older = table.scan().to_polars(lazy=True), table.scan(at=1).to_polars(lazy=True)
    table.upsert(rows(row(1, 5.0), row(20 % 24, 5.0)))

    assert lazy.select(pl.len()).collect().item() == 9
    assert older.select(pl.len()).collect().item() == 10
    assert lazy.head(3).collect().height == 3
    assert lazy.filter(pl.col("id") == 1).collect()["score"].is_nan().all()


def test_duckdb_has_a_relation_that_reads_what_is_asked_of_it(table: Table) -> None:
    relation = table.scan().to_duckdb()
    again = duckdb.connect()

    assert relation.filter("id > 3").project("name").order("name").fetchall() == [(f"n{n}",) for n in range(4, 9)]
    assert relation.aggregate("count(*), sum(amount)").fetchall() == [(9, Decimal("36.00"))]
    assert table.changes(after=0).to_duckdb(again).aggregate("count(*)").fetchall() == [(10,)]


@pytest.mark.parametrize(
    "condition", ["score > 3", "score >= 7", "score < 3", "score <> 1", "score = 'nan'", "score >= 'nan'", "score = 0"]
)
def test_duckdb_leaves_out_no_row_that_it_would_not_leave_out_itself(table: Table, condition: str) -> None:
    relation = table.scan().to_duckdb(duckdb.connect())
    plain = duckdb.connect().from_arrow(table.scan().to_arrow())
    own = plain.query("rows", "CREATE OR REPLACE TEMP TABLE own AS FROM rows") or plain

    found = relation.filter(condition).project("id").order("id").fetchall()

    expected = [
        (number,) for number, kept in own.project(f"id, coalesce(({condition}), false)").order("id").fetchall() if kept
    ]
    assert found == expected


def test_a_missing_library_is_named(lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)

    with pytest.raises(InvalidInputError, match="Polars is not installed"):
        table.scan().to_polars(lazy=True)
    with pytest.raises(InvalidInputError, match="DuckDB is not installed"):
        table.scan().to_duckdb()
    with pytest.raises(InvalidInputError, match="lazy is 'yes'"):
        table.scan().to_polars(lazy="yes")  # type: ignore[arg-type]
