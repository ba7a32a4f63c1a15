"""The measurements of many small commits: what one costs from end to end, and what publishing costs of it."""

import os
from collections.abc import Iterator

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from lakelib.table import Table
from tests.bench.data import BUCKETS, make_orders, orders_schema
from tests.bench.lab import Lab, Work, median_seconds
from tests.bench.report import Line, at_most

_COMMITS = 1000
_STAGED = 200
_UPSERT_MS = 2.5
_PUBLISH_MS = 0.8


def measure_commits(lab: Lab) -> Iterator[Line]:
    """One-row upserts in a row on one table, of keys that partly return; then publishing alone."""
    table = lab.lake.create_table(
        "bench.trickle", orders_schema("int64"), primary_key=["order_id"], partition_by=["dt"], buckets=BUCKETS
    )
    count = _COMMITS // (10 if lab.quick else 1)
    rows = [one_row(number) for number in range(count)]
    floor = median_seconds(_floors(lab, rows))
    upsert = median_seconds(_upserts(table, rows))
    yield at_most(
        f"{count:,} one-row upserts in a row",
        f"{upsert * 1000:.2f} ms",
        upsert * 1000,
        _UPSERT_MS,
        "ms",
        "median; peer: one Parquet file synchronised to disk, one insert committed",
        peer=f"{floor * 1000:.2f} ms",
    )
    staged = [table.stage_upsert(one_row(number)) for number in range(_STAGED)]
    publish = median_seconds([commit.publish for commit in staged])
    yield at_most(
        "publish alone",
        f"{publish * 1000:.2f} ms",
        publish * 1000,
        _PUBLISH_MS,
        "ms",
        f"median of {_STAGED} commits staged before",
    )


def one_row(number: int) -> pa.Table:
    """Of a key that comes again now and then."""
    key = np.random.default_rng(number).integers(0, 500, 1)
    return pa.Table.from_batches([make_orders(key, "int64", seed=number)])


def _upserts(table: Table, rows: list[pa.Table]) -> Iterator[Work]:
    return (lambda row=row: table.upsert(row) for row in rows)


def _floors(lab: Lab, rows: list[pa.Table]) -> Iterator[Work]:
    """The least that such a commit can cost on this machine."""
    folder = lab.folder / "floor"
    folder.mkdir()
    with psycopg.connect(lab.catalog_url, autocommit=True) as db:
        db.execute("create table floor (path text)")
        for number, row in enumerate(rows):
            path = f"{folder}/{number}.parquet"

            def commit(path: str = path, row: pa.Table = row) -> None:
                pq.write_table(row, path)
                for name in (path, str(folder)):
                    descriptor = os.open(name, os.O_RDONLY)
                    os.fsync(descriptor)
                    os.close(descriptor)
                db.execute("insert into floor values (%s)", [path])

            yield commit
        db.execute("drop table floor")
