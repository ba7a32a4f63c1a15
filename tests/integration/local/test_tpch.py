"""TPC-H's queries over tables of the lake give what they give over plain Parquet."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lakelib
from lakelib import Lake
from tests.tpch import KEYS, make_tables, of_lake, queries

SCALE = 0.01
QUERIES = queries()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plain")


@pytest.fixture(scope="module")
def lake(plain: Path, tmp_path_factory: pytest.TempPathFactory, module_catalog_url: str) -> Iterator[Lake]:
    with lakelib.connect(warehouse=str(tmp_path_factory.mktemp("lake")), catalog=module_catalog_url) as lake:
        make_tables(lake, plain, SCALE)
        yield lake


@pytest.fixture(scope="module")
def database(plain: Path, lake: Lake) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as db:
        for name in KEYS:
            db.execute(f"CREATE VIEW {name} AS FROM read_parquet('{plain}/{name}.parquet')")
        yield db


@pytest.fixture(scope="module", params=["as loaded", "with rows to merge"])
def state(request: pytest.FixtureRequest, lake: Lake) -> str:
    """Rows that are written once more are the same rows."""
    if request.param == "with rows to merge":
        for name in ("lineitem", "orders", "customer"):
            table = lake.table(f"tpch.{name}")
            table.upsert(table.scan(where=f"{KEYS[name][0]} < 2000").to_arrow())
    return str(request.param)


@pytest.mark.parametrize("number", sorted(QUERIES))
def test_a_query_gives_what_it_gives_over_plain_parquet(
    lake: Lake, database: duckdb.DuckDBPyConnection, state: str, number: int
) -> None:
    found = lake.sql(of_lake(QUERIES[number])).to_arrow()

    assert rounded(found) == rounded(database.execute(QUERIES[number]).to_arrow_table())


def rounded(rows: pa.Table) -> list[tuple[str, ...]]:
    """DuckDB computes quotients and averages as doubles."""

    def told(value: Any) -> str:
        return f"{float(value):.2f}" if isinstance(value, int | float | Decimal) else str(value)

    return [tuple(told(value) for value in row.values()) for row in rows.to_pylist()]
