"""TPC-H: its rows and queries, made by DuckDB's extension from its wheel, as plain Parquet and as tables of a lake."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import duckdb_extension_tpch
import sqlglot
from sqlglot import exp

from lakelib import Lake

KEYS = {
    "region": ["r_regionkey"],
    "nation": ["n_nationkey"],
    "supplier": ["s_suppkey"],
    "customer": ["c_custkey"],
    "part": ["p_partkey"],
    "partsupp": ["ps_partkey", "ps_suppkey"],
    "orders": ["o_orderkey"],
    "lineitem": ["l_orderkey", "l_linenumber"],
}


@contextmanager
def opened() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with its extension."""
    (file,) = Path(duckdb_extension_tpch.__file__).parent.glob("extensions/*/tpch.duckdb_extension")
    with duckdb.connect(config={"allow_unsigned_extensions": True}) as db:
        db.execute(f"LOAD '{file}'")
        yield db


def make_tables(lake: Lake, plain: Path, scale: float) -> None:
    """The same rows in tables of the namespace `tpch`, and as Parquet files."""
    lake.create_namespace("tpch")
    with opened() as db:
        db.execute(f"CALL dbgen(sf = {scale})")
        for name, key in KEYS.items():
            db.execute(f"COPY {name} TO '{plain}/{name}.parquet' (FORMAT parquet, COMPRESSION zstd)")
            rows = db.execute(f"FROM {name}").to_arrow_reader(1 << 20)
            lake.create_table(f"tpch.{name}", rows.schema, primary_key=key).append(rows)


def queries() -> dict[int, str]:
    """As DuckDB has them, by number."""
    with opened() as db:
        return dict(db.execute("SELECT query_nr, query FROM tpch_queries()").fetchall())


def of_lake(query: str) -> str:
    """The query over the lake's tables."""
    tree = sqlglot.parse_one(query, dialect="duckdb")
    for table in list(tree.find_all(exp.Table)):
        if table.name in KEYS:
            table.set("db", exp.to_identifier("tpch"))
    return tree.sql(dialect="spark")
