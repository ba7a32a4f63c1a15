"""Whoever publishes a removal and whoever stages one of the same files take them in one order."""

import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import lakelib
from lakelib.catalog import commits
from lakelib.model.commit import Busy
from tests.integration.faults.jobs import SCHEMA, rows

MORE_FILES = """
do $$ declare columns text; begin
    select string_agg(quote_ident(attname), ', ') into columns from pg_attribute
    where attrelid = 'lake.data_file'::regclass and attnum > 0 and not attisdropped and attname not in ('id', 'path');
    execute 'insert into lake.data_file (path, ' || columns || ') select path || n, ' || columns
            || ' from lake.data_file, generate_series(1, 2000) n';
end $$
"""
"""The table has so many files that PostgreSQL reads all to find those of a commit, in the order in which they lie."""


def test_a_publish_and_a_stage_that_take_out_the_same_files_never_wait_for_each_other(
    lake: lakelib.Lake, catalog_url: str, connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_table("shop.a", SCHEMA)
    table.append(rows({1: ("mon", 1)}))
    connection.execute(MORE_FILES)
    publishing = table.stage_overwrite(rows({9: ("mon", 9)}), partitions="all")
    # Rows of files lie where there was room, in no order, and those of a removal in the order in which they were found.
    connection.execute("create table shuffled as select * from lake.data_file order by id desc")
    connection.execute("set session_replication_role = replica")
    connection.execute("truncate lake.data_file cascade")
    connection.execute("insert into lake.data_file overriding system value select * from shuffled")
    connection.execute(
        "insert into lake.commit_removal select %s, id from shuffled where added_snapshot is not null", [publishing.id]
    )
    connection.execute("analyze lake.data_file, lake.commit_removal")
    found = connection.execute("select id from lake.data_file order by id offset 1000 limit 1").fetchone()
    middle = found[0] if found else None
    outcomes: list[object] = []
    for name in ("stage", "publish_or_tell"):
        monkeypatch.setattr(commits, name, _noting(getattr(commits, name), outcomes))

    works = [
        threading.Thread(target=publishing.publish),
        threading.Thread(target=lambda: table.stage_overwrite(rows({8: ("mon", 8)}), partitions="all")),
    ]
    with psycopg.connect(catalog_url) as holding:
        holding.execute("select from lake.data_file where id = %s for update", [middle])
        for work in works:
            work.start()
        _await_waiting(connection, len(works))
    for work in works:
        work.join(30)

    assert len(outcomes) == len(works)
    assert not any(isinstance(outcome, Busy) for outcome in outcomes), outcomes


def _noting(step: Callable[..., object], outcomes: list[object]) -> Callable[..., object]:
    def noted(*arguments: Any, **named: Any) -> object:
        outcome = step(*arguments, **named)
        outcomes.append(outcome)
        return outcome

    return noted


def _await_waiting(connection: psycopg.Connection[Any], count: int) -> None:
    until = time.monotonic() + 0.8
    while time.monotonic() < until:
        row = connection.execute(
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        ).fetchone()
        if row and row[0] >= count:
            return
        time.sleep(0.01)
    raise AssertionError("nobody waits")
