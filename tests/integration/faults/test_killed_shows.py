"""Showing snapshots to DuckDB is killed at each step, loses its replies, races others and an expiry. DuckDB sees a
snapshot whole or not at all, right afterwards, and the next one goes on."""

import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import lakelib
from lakelib import Lake, Table
from lakelib.storage import filesystem
from tests.delta_readers import folder_of, rows_of
from tests.ducklake_readers import attached, read
from tests.integration.faults import crash
from tests.integration.faults.jobs import Say
from tests.integration.faults.processes import Outcome, Worker, results, run_process
from tests.integration.faults.test_lost_replies import losing

_MOST_STEPS = 400
_LEAST_STEPS = 12
_STRIDE = int(os.environ.get("LAKE_EXPORT_STRIDE", "17"))
"""A soak dies at each step."""
_LOOKED_AT = 3
_NOW = timedelta(0)
_NUMBERS = count()


@pytest.fixture
def table(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Table:
    """Whose publishers show nothing, and whose masks are files."""
    monkeypatch.setattr("lakelib.ops.tell.has_right", lambda *_: False)
    monkeypatch.setattr("lakelib.ops.masks._MOST_INLINE_BYTES", 0)
    schema = "id bigint NOT NULL, part string NOT NULL, n bigint"
    keyed = {"primary_key": ["part", "id"], "partition_by": ["part"]}
    table = lake.create_table(f"shop.shown{next(_NUMBERS)}", schema, options={"ducklake": "head"}, **keyed)
    table.upsert([{"id": number, "part": part, "n": 0} for number in range(9) for part in "ab"])
    table.show_in_ducklake()
    return table


@pytest.fixture
def db(lake: Lake, table: Table) -> Iterator[Any]:
    with attached(lake) as connection:
        yield connection


def change(table: Table, number: int) -> None:
    table.upsert([{"id": (number + each) % 12, "part": "ab"[each % 2], "n": number} for each in range(4)])


def show(_: Say, warehouse: str, url: str, name: str) -> int:
    lakelib.ops.masks._MOST_INLINE_BYTES = 0  # type: ignore[attr-defined]
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        return lake.table(name).show_in_ducklake().shown


def show_and_die(say: Say, warehouse: str, url: str, name: str, kill_at: int) -> int:
    """Survives, and tells the number of steps, if there are fewer."""
    lakelib.ops.masks._MOST_INLINE_BYTES = 0  # type: ignore[attr-defined]
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        table = lake.table(name)
        steps = crash.arm(kill_at, say)
        crash._surround(filesystem.Storage, "write_bytes", "write bytes", steps)
        table.show_in_ducklake()
        return steps.count


def expire(_: Say, warehouse: str, url: str, name: str, keep_last: int) -> int:
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        lake.table(name).expire(keep_last=keep_last, older_than=_NOW, grace=_NOW)
        lake.vacuum(grace=_NOW, orphans=False)
        return 0


def assert_whole(db: Any, table: Table) -> list[int]:
    """Each of the last snapshots is as it is, or is not there; which are."""
    seen = []
    for snapshot in table.history()[:_LOOKED_AT]:
        try:
            found = read(db, table, snapshot.id)
        except (duckdb.CatalogException, duckdb.InvalidInputException, duckdb.BinderException):
            continue
        assert rows_of(found) == rows_of(table.scan(at=snapshot.id).to_arrow()), snapshot.id
        seen.append(snapshot.id)
    assert rows_of(read(db, table)) == rows_of(table.scan(at=max(seen)).to_arrow())
    return sorted(seen)


def assert_no_file_is_missing_or_too_many(lake: Lake, table: Table) -> None:
    lake.vacuum(grace=_NOW)
    with psycopg.connect(lake.runtime.catalog.url) as connection:
        named = connection.execute(
            """select m.path from lake."table" t cross join lateral (
                   select n.path from lake.shown_mask n where n.table_id = t.id
                   union select n.path from lake.mask n where n.table_id = t.id and n.path is not null) m
               where t.namespace || '.' || t.name = %s""",
            [table.name],
        ).fetchall()
    stored = {f"_masks/{path.name}" for path in (Path(folder_of(table)) / "_masks").iterdir()}
    assert stored == {path for (path,) in named} != set()


def test_a_show_that_was_killed_at_any_step_is_finished_by_the_next(
    lake: Lake, table: Table, db: Any, module_catalog_url: str
) -> None:
    warehouse, count = folder_of(table).partition("/shop/")[0], 0

    for kill_at in range(1, _MOST_STEPS, _STRIDE):
        change(table, kill_at)
        change(table, kill_at + 1)
        before = table.head.id - 2  # type: ignore[union-attr]
        ended = run_process(show_and_die, warehouse, module_catalog_url, table.name, kill_at)

        assert ended.error == ""
        assert assert_whole(db, table)[-1] in (before, before + 1, before + 2)
        assert table.show_in_ducklake().is_complete
        assert assert_whole(db, table)[-1] == before + 2
        if ended.exit_code != -signal.SIGKILL:
            count = ended.result
            break

    assert count >= _LEAST_STEPS
    assert_no_file_is_missing_or_too_many(lake, table)


@pytest.mark.parametrize("takes_effect", [True, False], ids=["reply lost", "request lost"])
def test_a_reply_that_was_lost_leaves_each_file_that_is_named(
    lake: Lake, table: Table, db: Any, takes_effect: bool
) -> None:
    for number in range(1, _MOST_STEPS):
        change(table, number)
        with losing(number, takes_effect=takes_effect) as losses:
            assert table.show_in_ducklake().is_complete
        assert assert_whole(db, table)[-1] == table.head.id  # type: ignore[union-attr]
        if not losses.happened:
            break

    assert number > 2
    assert_no_file_is_missing_or_too_many(lake, table)


def test_shows_beside_each_other_and_beside_an_expiry_show_each_snapshot_whole(
    lake: Lake, table: Table, db: Any, module_catalog_url: str
) -> None:
    warehouse = folder_of(table).partition("/shop/")[0]
    for round_ in range(2):
        for number in range(6):
            change(table, round_ * 10 + number)
        workers = [Worker(show, (warehouse, module_catalog_url, table.name)) for _ in range(3)]
        workers.append(Worker(expire, (warehouse, module_catalog_url, table.name, 3)))
        ended: list[Outcome] = [each.outcome(60) for each in workers]

        assert sum(results(ended)) <= 6
        assert lake.table(table.name).show_in_ducklake().is_complete
        assert assert_whole(db, table)[-1] == table.head.id  # type: ignore[union-attr]
    assert_no_file_is_missing_or_too_many(lake, table)
