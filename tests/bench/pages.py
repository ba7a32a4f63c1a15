"""The measurements of the pages about the lake: the page of all tables, of a lake with many of them."""

import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from lakelib import connect
from tests.bench.lab import Lab
from tests.bench.report import Line, at_most

_TABLES = 200
_DAYS = 365
_MOVED = 10
"""So many tables have a new snapshot each time that somebody looks."""
_LOOKS = 20
_PAGE_MS = 300
_COLUMNS = "id BIGINT, dt DATE, amount DOUBLE"

_INSERTS = """
select set_config('lake.publishing', 'bench', true);

insert into lake.partition (table_id, key, path)
select t.id, array[int8send((d.day - date '1970-01-01')::bigint # (-9223372036854775808))], 'dt=' || d.day
from lake."table" t, (select current_date - n as day from generate_series(1, {days}) n) d where t.namespace = 'pages';

insert into lake.commit (id, table_id, kind, state, base_snapshot_id, base_schema_id, schema_id, reads_whole_table,
                         decided_at, snapshot_id, application, version, properties, summary)
select gen_random_uuid(), t.id, 'upsert', 'published', n - 1, 1, 1, false, now(), n,
       'airflow/ingest__pages__' || t.name || '/scheduled__' || n, 1,
       jsonb_build_object('partition', (current_date - {days} - 1 + n)::text, 'partition_by', 'day dt')
           || case when u.id is null then '{{}}' else jsonb_build_object('reads.pages.' || u.name, n::text) end,
       '{{"rows_in": 1000}}'
from lake."table" t
left join lake."table" u on u.namespace = 'pages' and right(t.name, 3)::int % 2 = 1
                        and u.name = 't' || lpad((right(t.name, 3)::int - 1)::text, 3, '0'),
     generate_series(1, {days}) n
where t.namespace = 'pages';

insert into lake.snapshot (table_id, id, commit_id, kind, schema_id, committed_at, summary, properties)
select c.table_id, c.snapshot_id, c.id, c.kind, 1, now() - ({days} - c.snapshot_id) * interval '1 day', c.summary,
       c.properties
from lake.commit c join lake."table" t on t.id = c.table_id where t.namespace = 'pages';

insert into lake.data_file (table_id, commit_id, partition_id, path, depth, prefix, run, level, row_count, delete_count,
                            size_bytes, schema_id, lower_bounds, upper_bounds, null_counts, sequence, added_snapshot)
select c.table_id, c.id, p.id, p.path || '/upsert-' || c.id || '-' || n || '.parquet', 1, n, 0, 0, 1000, 0, 40000, 1,
       '{{}}', '{{}}', '{{}}', c.snapshot_id, c.snapshot_id
from lake.commit c join lake."table" t on t.id = c.table_id
join lake.partition p on p.table_id = t.id and p.path = 'dt=' || (c.properties ->> 'partition'), generate_series(0, 1) n
where t.namespace = 'pages';

insert into lake.verdict (commit_id, gate, outcome, base_snapshot_id, evidence, suite_hash, engine, seconds,
                          judges_partitions, judges_table)
select c.id, 'orders', 'accept', c.base_snapshot_id, '{{"checks": []}}', 'abc', 'arrow', 0.1, true, false
from lake.commit c join lake."table" t on t.id = c.table_id where t.namespace = 'pages';

update lake."table" set head_id = {days} where namespace = 'pages';
"""
_MOVE = """
select set_config('lake.publishing', 'bench', true);
with moved as (update lake."table" set head_id = head_id + 1 where namespace = 'pages' and name = any(%s) returning *),
made as (insert into lake.commit (id, table_id, kind, state, base_snapshot_id, base_schema_id, schema_id,
                                  reads_whole_table, decided_at, snapshot_id)
         select gen_random_uuid(), m.id, 'upsert', 'published', m.head_id - 1, 1, 1, false, now(), m.head_id
         from moved m
         returning *)
insert into lake.snapshot (table_id, id, commit_id, kind, schema_id, committed_at, summary, properties)
select c.table_id, c.snapshot_id, c.id, c.kind, 1, now(), '{}', '{}' from made c
"""
_SPEC = """table: pages.{name}
columns: {columns}
primary_key: [id]
partition_by: [dt]
partition: {{column: dt, every: day}}
{rows}
"""
_FROM_FILES = "source: {path: '/in/{partition}/*.parquet'}\nschedule: {cron: '0 2 * * *'}"
_FROM_TABLE = "transform: query.sql\nreads: {{source_rows: pages.{name}}}\nschedule: {{after: [pages.{name}]}}"


def measure_pages(lab: Lab) -> Iterator[Line]:
    """The page in its FastAPI application, as whoever has logged in gets it, over a lake that exists in the catalog
    only. Half of the tables are made from the other half."""
    tables = _TABLES // (10 if lab.quick else 1)
    specs = _make_lake(lab, tables)
    page = _open_page(lab, specs)
    first, size = _seconds(page)
    looks = []
    with psycopg.connect(lab.catalog_url, autocommit=True) as db:
        for number in range(_LOOKS):
            names = [f"t{(number * _MOVED + each) % tables:03}" for each in range(_MOVED)]
            with db.transaction():
                for statement in _MOVE.strip().split(";\n"):
                    db.execute(statement.encode(), (names,) if "%s" in statement else None)
            looks.append(_seconds(page)[0])
    found = statistics.median(looks)
    yield at_most(
        f"a page of {tables} tables x {_DAYS} partitions",
        f"{found * 1000:.0f} ms",
        found * 1000,
        _PAGE_MS,
        "ms",
        f"median of {_LOOKS}, {_MOVED} tables moved between; the first {first * 1000:.0f} ms; {size / 1000:.0f} kB",
    )


def _make_lake(lab: Lab, tables: int) -> Path:
    specs = lab.folder / "page_specs"
    specs.mkdir()
    (specs / "query.sql").write_text("SELECT * FROM source_rows")
    lab.lake.create_namespace("pages")
    for number in range(tables):
        name, before = f"t{number:03}", f"t{number - 1:03}"
        lab.lake.create_table(f"pages.{name}", _COLUMNS, primary_key=["id"], partition_by=["dt"])
        rows = _FROM_TABLE.format(name=before) if number % 2 else _FROM_FILES
        (specs / f"{name}.yaml").write_text(_SPEC.format(name=name, columns=_COLUMNS, rows=rows))
    with psycopg.connect(lab.catalog_url, autocommit=True) as db:
        db.execute(_INSERTS.format(days=_DAYS).encode())
        # Autovacuum does this within a minute.
        db.execute("vacuum analyze")
    return specs


def _open_page(lab: Lab, specs: Path) -> Any:
    """Airflow reads its settings when it is imported; the login is not what is measured."""
    airflow = {
        "AIRFLOW_HOME": str(lab.folder / "pages_airflow"),
        "AIRFLOW__API__SECRET_KEY": "of no use here" * 4,
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
    }
    os.environ.update({**airflow, "LAKE_TABLES": str(specs)})
    sys.path.append(str(Path(__file__).resolve().parents[2] / "dags"))
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from fastapi.testclient import TestClient

    from lake_dags.pages import app as pages
    from lake_dags.pages import rights

    rights._is_authorized = lambda *asked: True
    pages.app.dependency_overrides[rights.get_user] = lambda: SimpleAuthManagerUser(username="ada", role="admin")
    pages.lakes._lake = connect(lab.warehouse, lab.catalog_url)
    return TestClient(pages.app)


def _seconds(page: Any) -> tuple[float, int]:
    start = time.perf_counter()
    told = page.get("/")
    seconds = time.perf_counter() - start
    assert told.status_code == 200, told.text[:1000]
    assert told.text.count("/tables/pages.") > 1
    return seconds, len(told.content)
