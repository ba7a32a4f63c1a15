"""SQL on the lake: TPC-H's queries beside DuckDB on the same files as plain Parquet, and the first row of a lookup."""

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator

import duckdb

from tests.bench.lab import Lab, interleave
from tests.bench.report import Line, at_most, at_most_times
from tests.tpch import KEYS, make_tables, of_lake, queries

_ROUNDS = 3
_BAR, _REFRESHED_BAR = 1.15, 1.5
_REFRESHES = 4
_LOOKUP_MS, _COLD_SECONDS = 20.0, 0.6
_LOOKUPS = 50


def measure_sql(lab: Lab) -> Iterator[Line]:
    """In the files that a load has written; then with some orders and their lines written anew."""
    scale = 0.1 if lab.quick else 1.0
    plain = lab.folder / "tpch-plain"
    plain.mkdir()
    make_tables(lab.lake, plain, scale)
    with duckdb.connect(config={"threads": os.cpu_count() or 1}) as db:
        for name in KEYS:
            table = lab.lake.table(f"tpch.{name}")
            paths = [f"{table.location.removeprefix('file://')}/{file.path}" for file in table.files()]
            db.execute(f"CREATE VIEW {name} AS FROM read_parquet({paths!r})")
        yield _all_queries(lab, db, f"22 queries of TPC-H, scale {scale}", _BAR)
        yield _lookup(lab)
        _refresh(lab)
        yield _all_queries(lab, db, f"… after {_REFRESHES} refreshes", _REFRESHED_BAR)
    yield _cold(lab)


def _all_queries(lab: Lab, db: duckdb.DuckDBPyConnection, title: str, bar: float) -> Line:
    ours = theirs = 0.0
    slowest = (0.0, 0)
    for number, query in queries().items():
        own = of_lake(query)
        here, there = interleave(
            _ROUNDS,
            [lambda own=own: lab.lake.sql(own).to_arrow(), lambda query=query: db.execute(query).to_arrow_table()],
        )
        ours, theirs = ours + min(here), theirs + min(there)
        slowest = max(slowest, (min(here) / min(there), number))
    note = f"peer: DuckDB on the files of the load; query {slowest[1]} takes {slowest[0]:.2f} times as long"
    return at_most_times(title, ours, theirs, bar, note)


def _lookup(lab: Lab) -> Line:
    def look_up() -> None:
        next(lab.lake.sql("SELECT * FROM tpch.orders WHERE o_orderkey = $key", key=7).to_batches())

    (seconds,) = interleave(_LOOKUPS, [look_up])
    found = statistics.median(seconds) * 1000
    return at_most("first row of a lookup", f"{found:.1f} ms", found, _LOOKUP_MS, "ms", f"median of {_LOOKUPS}, warm")


def _refresh(lab: Lab) -> None:
    """A thousandth of the orders, with their lines, each time."""
    for number in range(_REFRESHES):
        for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
            table = lab.lake.table(f"tpch.{name}")
            table.upsert(table.scan(where=f"{key} BETWEEN {number * 20_000} AND {number * 20_000 + 6_000}").to_arrow())


def _cold(lab: Lab) -> Line:
    """A process of its own; the server is up."""
    environment = os.environ | {"LAKE_WAREHOUSE": lab.warehouse, "LAKE_CATALOG": lab.catalog_url}
    command = [sys.executable, "-m", "lakelib.cli", "sql", "SELECT 1"]

    def run() -> None:
        subprocess.run(command, env=environment, check=True, capture_output=True)

    (seconds,) = interleave(5, [run])
    found = statistics.median(seconds)
    return at_most('lake sql "SELECT 1"', f"{found:.2f} s", found, _COLD_SECONDS, "s", "median of 5 processes")
