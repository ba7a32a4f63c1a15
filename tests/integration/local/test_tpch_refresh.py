"""TPC-H's two refresh functions, new orders with their lines and old ones that go, as statements of one transaction:
the rows, and the answers of its queries, are those of a plain recomputation."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import lakelib
from lakelib import Lake
from tests.integration.local.test_tpch import rounded
from tests.tpch import KEYS, make_tables, of_lake, queries

SCALE = 0.01
ASKED = (1, 3, 4, 5, 10, 12, 18, 21)
"""Queries that look at orders and lines."""
TABLES = {"orders": "o_orderkey", "lineitem": "l_orderkey"}


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
    """The same tables, and what comes and goes, in both: keys of TPC-H are eight of each thirty-two."""
    with duckdb.connect() as db:
        for name in KEYS:
            db.execute(f"CREATE TABLE {name} AS FROM read_parquet('{plain}/{name}.parquet')")
        for name, key in TABLES.items():
            db.execute(
                f"CREATE TABLE new_{name} AS SELECT * REPLACE ({key} + 8 AS {key}) FROM {name} WHERE {key} % 70 = 1"
            )
        db.execute("CREATE TABLE old_orders AS SELECT o_orderkey AS k FROM orders WHERE o_orderkey % 90 = 2")
        for name in ("new_orders", "new_lineitem", "old_orders"):
            rows = db.execute(f"FROM {name}").to_arrow_table()
            lake.create_table(f"tpch.{name}", rows.schema).append(rows)
        yield db


def statements(of_old: str) -> list[str]:
    inserts = [f"INSERT INTO tpch.{name} SELECT * FROM tpch.new_{name}" for name in TABLES]
    return inserts + [f"DELETE FROM tpch.{name} WHERE {key} {of_old}" for name, key in TABLES.items()]


def test_both_refreshes_are_one_transaction(lake: Lake, database: duckdb.DuckDBPyConnection) -> None:
    heads = {name: lake.table(f"tpch.{name}").head for name in TABLES}
    with lake.transaction() as tx:
        for each in statements("IN (SELECT k FROM tpch.old_orders)"):
            tx.sql(each)
        assert {name: lake.table(f"tpch.{name}").head for name in TABLES} == heads
    assert len({each.committed_at for each in tx.snapshots}) == 1

    for each in statements("IN (SELECT k FROM old_orders)"):
        database.execute(each.replace("tpch.", ""))
    for name, key in KEYS.items():
        found = lake.sql(f"SELECT * FROM tpch.{name}").to_arrow()
        expected = database.execute(f"FROM {name}").to_arrow_table()
        order = [(column, "ascending") for column in key]
        assert found.sort_by(order).to_pylist() == expected.sort_by(order).to_pylist(), name
    for number in ASKED:
        query = queries()[number]
        assert rounded(lake.sql(of_lake(query)).to_arrow()) == rounded(database.execute(query).to_arrow_table())
