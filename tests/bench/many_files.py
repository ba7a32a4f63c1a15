"""The measurements of a table of very many files: planning one partition, listing all files, and staging one file for
each of as many new partitions."""

import os
import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any
from unittest.mock import patch

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from lakelib.table import Table
from tests.bench.data import BUCKETS, orders_schema
from tests.bench.lab import Lab, Work, median_seconds, resident_mb
from tests.bench.report import Line, at_most

_PARTITIONS = 10_000
_FILES_A_PARTITION = 100
_PLANS = 50
_PLAN_MS = 2
_STAGE_SECONDS = 2
_GROWTH_MB = 100
_FIRST_DAY = date(2000, 1, 1)

_INSERTS = """
select set_config('lake.publishing', 'bench', true);

insert into lake.partition (table_id, key, path)
select {table_id}, array[int8send((d + {first_day})::bigint # (-9223372036854775808))],
       'dt=' || (date '2000-01-01' + d)
from generate_series(0, {partitions} - 1) d;

insert into lake.commit (id, table_id, kind, state, base_snapshot_id, base_schema_id, schema_id, reads_whole_table,
                         decided_at, snapshot_id)
values ('00000000-0000-0000-0000-0000000000b1', {table_id}, 'upsert', 'published', 0, 1, 1, false, now(), 1);

insert into lake.snapshot (table_id, id, commit_id, kind, schema_id, committed_at, summary, properties)
values ({table_id}, 1, '00000000-0000-0000-0000-0000000000b1', 'upsert', 1, now(), '{{}}', '{{}}');

insert into lake.data_file (table_id, commit_id, partition_id, path, depth, prefix, run, level, row_count, delete_count,
                            size_bytes, schema_id, lower_bounds, upper_bounds, null_counts, sequence, added_snapshot)
select {table_id}, '00000000-0000-0000-0000-0000000000b1', p.id, p.path || '/upsert-' || p.id || '-' || n || '.parquet',
       2, n % 4, n / 4, 0, 100000, 0, 4000000, 1,
       array_fill('\\x8000000000000000'::bytea, array[7]), array_fill('\\x80000000ffffffff'::bytea, array[7]),
       array_fill(0::bigint, array[7]), 1, 1
from lake.partition p, generate_series(0, {files} - 1) n where p.table_id = {table_id};

update lake."table" set head_id = 1 where id = {table_id};
"""


def measure_many_files(lab: Lab) -> Iterator[Line]:
    """The catalog rows are made in SQL; there are no such files. Planning opens none."""
    partitions = _PARTITIONS // (10 if lab.quick else 1)
    table = _make_table(lab, partitions)
    days = np.random.default_rng(7).choice(partitions, _PLANS + 1, replace=False).tolist()
    wheres = [f"dt = '{_FIRST_DAY + timedelta(days=day)}'" for day in days]
    table.scan(where=wheres.pop())
    plan = median_seconds(_plans(table, wheres))
    files = partitions * _FILES_A_PARTITION
    yield at_most(
        f"plan one of {partitions:,} partitions",
        f"{plan * 1000:.2f} ms",
        plan * 1000,
        _PLAN_MS,
        "ms",
        f"median of {_PLANS}; {_FILES_A_PARTITION} of {files:,} files",
    )
    seconds, growth_mb = _list_all(table, files)
    yield at_most(
        f"list {files:,} files",
        f"{seconds:.2f} s",
        growth_mb,
        _GROWTH_MB,
        "MB",
        f"{files / seconds:,.0f} files/s; the figure is how much resident memory grew",
    )
    yield _measure_new_partitions(lab, partitions)


def _measure_new_partitions(lab: Lab, partitions: int) -> Line:
    """What is durable costs a file and a folder for each partition, whoever writes it: the bar is for the catalog."""
    table = lab.lake.create_table("bench.parted", "day BIGINT, value BIGINT", partition_by=["day"])
    rows = pa.table({"day": range(partitions), "value": range(partitions)})
    spent = []
    execute = psycopg.Cursor.execute

    def timed(cursor: Any, *given: Any, **options: Any) -> Any:
        seconds, answer = _timed(lambda: execute(cursor, *given, **options))
        spent.append(seconds)
        return answer

    with patch.object(psycopg.Cursor, "execute", timed):
        whole, _ = _timed(lambda: table.stage_append(rows))
    floor, _ = _timed(lambda: _write_files(lab, rows))
    return at_most(
        f"stage {partitions:,} new partitions",
        f"{whole:.2f} s",
        sum(spent),
        _STAGE_SECONDS,
        "s",
        "the figure is the catalog's part; peer: pyarrow writes a synchronised file into a folder for each",
        peer=f"{floor:.2f} s",
    )


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = work()
    return time.perf_counter() - start, answer


def _write_files(lab: Lab, rows: pa.Table) -> None:
    for number in range(rows.num_rows):
        folder = lab.folder / "parted" / str(number)
        folder.mkdir(parents=True)
        pq.write_table(rows.slice(number, 1), folder / "a.parquet")
        for path in (folder / "a.parquet", folder):
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def _make_table(lab: Lab, partitions: int) -> Table:
    schema = orders_schema("int64")
    table = lab.lake.create_table("bench.wide", schema, primary_key=["order_id"], partition_by=["dt"], buckets=BUCKETS)
    with psycopg.connect(lab.catalog_url, autocommit=True) as db:
        (table_id,) = db.execute("""select id from lake."table" where name = 'wide'""").fetchone() or (0,)
        first_day = (_FIRST_DAY - date(1970, 1, 1)).days
        inserts = _INSERTS.format(
            table_id=table_id, first_day=first_day, partitions=partitions, files=_FILES_A_PARTITION
        )
        db.execute(inserts.encode())
        # Autovacuum does this within a minute.
        db.execute("vacuum analyze lake.partition, lake.data_file")
    return table


def _plans(table: Table, wheres: list[str]) -> Iterator[Work]:
    def plan(where: str) -> None:
        scan = table.scan(where=where)
        assert scan.schema.field("dt").type == pa.date32()

    assert table.scan(where=wheres[0]).explain().files == _FILES_A_PARTITION
    return (lambda where=where: plan(where) for where in wheres)


def _list_all(table: Table, expected: int) -> tuple[float, float]:
    """Seconds, and by how much the resident memory grew."""
    before = highest = resident_mb()
    start = time.perf_counter()
    listed = 0
    for listed, _ in enumerate(table.files(), start=1):
        if listed % 20_000 == 0:
            highest = max(highest, resident_mb())
    assert listed == expected, f"{listed} files are listed, {expected} are there"
    return time.perf_counter() - start, highest - before
