"""SQL on the lake by Spark's tasks: TPC-H's queries beside Spark's own SQL on the same files as plain Parquet."""

from collections.abc import Iterator

import sqlglot

import lakelib.spark
from tests.bench.lab import Lab, interleave
from tests.bench.report import Line, at_most_times
from tests.bench.spark import open_session
from tests.tpch import KEYS, make_tables, of_lake, queries

_ROUNDS = 3
_BAR = 1.15


def measure_sql_on_spark(lab: Lab) -> Iterator[Line]:
    scale = 0.1 if lab.quick else 1.0
    plain = lab.folder / "tpch-plain-of-spark"
    plain.mkdir()
    make_tables(lab.lake, plain, scale)
    ours = theirs = 0.0
    slowest = (0.0, 0)
    with open_session() as session:
        for name in KEYS:
            table = lab.lake.table(f"tpch.{name}")
            paths = [f"{table.location}/{file.path}" for file in table.files()]
            session.read.parquet(*paths).createOrReplaceTempView(name)
        for number, query in queries().items():
            own, plainly = of_lake(query), sqlglot.transpile(query, read="duckdb", write="spark")[0]
            here, there = interleave(
                _ROUNDS,
                [
                    lambda own=own: lakelib.spark.sql(session, lab.lake, own).toArrow(),
                    lambda plainly=plainly: session.sql(plainly).toArrow(),
                ],
            )
            ours, theirs = ours + min(here), theirs + min(there)
            slowest = max(slowest, (min(here) / min(there), number))
    note = f"peer: Spark on the files of the load; query {slowest[1]} takes {slowest[0]:.2f} times as long"
    yield at_most_times(f"22 queries of TPC-H on Spark, scale {scale}", ours, theirs, _BAR, note)
