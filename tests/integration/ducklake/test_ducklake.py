"""The lake as DuckDB attaches it by the catalog's views: each snapshot that is shown is what a scan of it gives."""

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import psycopg
import pyarrow as pa
import pytest

import lakelib
from lakelib import InvalidInputError, Lake, Table
from lakelib.catalog.exports import attach_target
from lakelib.settings import StorageSettings
from tests.conftest import BUCKET
from tests.delta_readers import folder_of, rows_of
from tests.ducklake_readers import attached, duckdb_with_ducklake, read, version_of
from tests.integration.catalog.earlier import make_earlier
from tests.integration.catalog.town import open_town
from tests.random_history import PARTS, SCHEMA, TABLES, change_once

NewTable = Callable[..., Table]
_NUMBERS = count()


@pytest.fixture
def new_table(lake: Lake) -> NewTable:
    def make(schema: Any, **definition: Any) -> Table:
        return lake.create_table(f"shop.t{next(_NUMBERS)}", schema, **definition)

    return make


@pytest.fixture
def db(lake: Lake) -> Iterator[duckdb.DuckDBPyConnection]:
    with attached(lake) as connection:
        yield connection


def assert_shown(db: Any, table: Table, snapshot_id: int | None = None, where: str = "true") -> None:
    scan = table.scan(at=snapshot_id) if where == "true" else table.scan(at=snapshot_id, where=where)
    assert rows_of(read(db, table, snapshot_id, where)) == rows_of(scan.to_arrow()), snapshot_id


def rows(numbers: list[int], part: Any = "a", **others: list[Any]) -> pa.Table:
    return pa.table({"id": numbers, "part": pa.array([part] * len(numbers), pa.string()), **others})


KEYED = {"primary_key": ["id"], "options": {"ducklake": "head"}}


# Each snapshot is what it is


@pytest.mark.parametrize("seed", range(int(os.environ.get("LAKE_DUCKLAKE_RUNS", "2"))))
@pytest.mark.parametrize("kind", TABLES)
def test_each_snapshot_of_a_random_history_is_shown_as_it_is(
    new_table: NewTable, db: Any, kind: str, seed: int
) -> None:
    chance = random.Random(f"{kind} {seed}")
    table = new_table(SCHEMA, partition_by=["part"], options={"ducklake": "head"}, **TABLES[kind])

    for _ in range(14):
        change_once(table, chance)
        if table.head is not None:
            assert_shown(db, table)

    for snapshot in table.history():
        assert_shown(db, table, snapshot.id)
        day = chance.choice(("0500-01-01", "4000-01-01", "9000-01-01"))
        for where in (
            f"day < date '{day}'",
            "id between 5 and 20",
            "part in ('a', 'ü ')",
            "small > 0 and part is null",
        ):
            assert_shown(db, table, snapshot.id, where)


@pytest.mark.parametrize("part", PARTS)
def test_a_partition_of_any_value_is_found(new_table: NewTable, db: Any, part: str | None) -> None:
    table = new_table("id bigint NOT NULL, part string", partition_by=["part"], **KEYED)
    table.upsert(rows([1, 2], part))
    table.upsert(rows([2, 3], part))

    assert_shown(db, table)
    assert_shown(db, table, where="part is null" if part is None else f"part = '{part}'")


def test_names_of_nested_fields_may_be_anything(new_table: NewTable, db: Any) -> None:
    table = new_table("id bigint, deep struct<`a,b`:int,`c``d`:array<struct<`>`:map<string,decimal(5,2)>>>>")
    table.append(pa.Table.from_pylist([{"id": 1, "deep": {"a,b": 1, "c`d": [{">": [("k", 1)]}]}}], table.schema))
    table.evolve(add=[("more", "array<array<date>>")])
    table.append(pa.Table.from_pylist([{"id": 2, "deep": None, "more": [[None], []]}], table.schema))

    assert_shown(db, table)
    assert_shown(db, table, 1)


def test_fields_are_added_inside_and_types_widened(new_table: NewTable, db: Any) -> None:
    table = new_table("id bigint, deep struct<a:int>, price decimal(5,2)")
    table.append(pa.Table.from_pylist([{"id": 1, "deep": {"a": 1}, "price": 1}], table.schema))
    wider = pa.schema([("id", pa.int64()), ("deep", pa.struct([("a", pa.int64()), ("b", pa.string())]))])
    table.append(pa.Table.from_pylist([{"id": 2, "deep": {"a": 2**40, "b": "x"}}], wider), merge_schema=True)
    table.evolve(widen={"price": "decimal(12,2)"})

    for snapshot in (None, 1, 2):
        assert_shown(db, table, snapshot)


@pytest.mark.parametrize("options", [{}, {"delta": "head"}], ids=["", "files keep names"])
def test_a_name_that_comes_again_is_another_column(new_table: NewTable, db: Any, options: dict[str, str]) -> None:
    table = new_table("id bigint, note string, other string, deep struct<note:bigint>", options=options)
    table.append(pa.table({"id": [1], "note": ["old"], "other": ["o"], "deep": [{"note": 1}]}))
    table.evolve(drop=["note"])
    table.evolve(rename={"other": "note", "deep": "other"})
    table.evolve(add=[("deep", "string")])
    table.append(pa.table({"id": [2], "note": ["new"], "deep": ["d"], "other": [{"note": 2}]}))

    for snapshot in (None, 1, 2, 3, 5):
        assert_shown(db, table, snapshot)


@pytest.mark.parametrize(
    ("type_", "least", "most"),
    [
        ("date", "0001-01-01", "9999-12-31"),
        ("timestamp", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
        ("timestamp_ntz", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00.000001"),
        ("bigint", str(-(2**63)), str(2**63 - 1)),
        ("string", "", "x" * 63 + "é" * 9),
        ("decimal(38,10)", "-1234567890123456789012345678.0123456789", "0.0000000001"),
    ],
)
def test_what_prunes_files_loses_no_row(new_table: NewTable, db: Any, type_: str, least: str, most: str) -> None:
    table = new_table(f"id bigint, v {type_}")
    for text in (least, most, None):
        table.append(pa.table({"id": [1], "v": pa.array([text], pa.string())}), explicit_cast=True)

    name = f'lake.shop."{table.name.split(".")[1]}"'
    for text in (least, most):
        for compare in ("=", ">=", "<="):
            (there,) = db.execute(
                f"SELECT count(*) FROM {name} WHERE v {compare} (SELECT $1::VARCHAR)::{_duck(type_)}", [text]
            ).fetchone()
            (pruned,) = db.execute(
                f"SELECT count(*) FROM {name} WHERE v {compare} CAST('{text}' AS {_duck(type_)})"
            ).fetchone()
            assert there == pruned >= 1, (compare, text)
    assert db.execute(f"SELECT count(*) FROM {name} WHERE v IS NULL").fetchone() == (1,)
    assert db.execute(f"SELECT count(v) FROM {name} WHERE v IS NOT NULL").fetchone() == (2,)


def _duck(type_: str) -> str:
    return {"timestamp": "TIMESTAMPTZ", "timestamp_ntz": "TIMESTAMP", "string": "VARCHAR"}.get(type_, type_)


# Which snapshots are shown


def test_tables_of_one_transaction_are_shown_at_one_moment(new_table: NewTable, lake: Lake, db: Any) -> None:
    one, other = new_table("id bigint NOT NULL, part string", **KEYED), new_table("id bigint, part string")
    with lake.transaction() as together:
        together.add(one.stage_upsert(rows([1])))
        together.add(other.stage_append(rows([2])))
    one.upsert(rows([3]))

    assert version_of(one, 1) == version_of(other, 1)
    moment = version_of(one, 1)
    for table in (one, other):
        name = table.name.split(".")[1]
        assert db.execute(f"SELECT count(*) FROM lake.shop.{name} AT (VERSION => {moment})").fetchone() == (1,)
    assert_shown(db, one)


def test_a_moment_is_answered_as_a_scan_answers_it(new_table: NewTable, db: Any) -> None:
    table = new_table("id bigint NOT NULL, part string", **KEYED)
    for number in range(3):
        table.upsert(rows([1, number]))
    name = table.name.split(".")[1]

    for snapshot in table.history():
        moment = snapshot.committed_at.isoformat()
        found = db.execute(f"SELECT count(*) FROM lake.shop.{name} AT (TIMESTAMP => TIMESTAMPTZ '{moment}')").fetchone()
        assert found == (table.scan(at=snapshot.committed_at).to_arrow().num_rows,)


def test_a_table_with_a_key_is_there_once_it_is_asked_for(new_table: NewTable, lake: Lake, db: Any) -> None:
    table = new_table("id bigint NOT NULL, part string", primary_key=["id"])
    table.upsert(rows([1]))
    table.upsert(rows([1, 2]))
    with pytest.raises(duckdb.CatalogException, match="does not exist"):
        read(db, table)
    with pytest.raises(InvalidInputError) as caught:
        table.show_in_ducklake()
    assert caught.value.kind == "not_in_ducklake"
    assert "lake options" in str(caught.value.remedy)

    table.set_options({"ducklake": "head"})
    done = table.show_in_ducklake()

    assert (done.shown, done.snapshot, done.is_complete) == (1, 2, True)
    assert_shown(db, table)
    with pytest.raises(duckdb.Error, match=r"does not exist|No snapshot"):
        read(db, table, 1)
    table.set_options({"ducklake": ""})
    with pytest.raises(duckdb.CatalogException, match="does not exist"):
        read(db, table)


def test_what_nobody_has_shown_yet_is_shown_by_the_next_one(
    new_table: NewTable, lake: Lake, db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table("id bigint NOT NULL, part string", **KEYED)
    table.upsert(rows([1, 2]))
    with monkeypatch.context() as patched:
        patched.setattr("lakelib.ops.tell.has_right", lambda *_: False)
        table.upsert(rows([2, 3]))
        table.overwrite(rows([9]))

    behind = next(each for each in lake.ducklake().tables if each.name == table.name)
    assert (behind.snapshot, behind.head) == (1, 3)
    assert f"lake ducklake {table.name}" in str(behind)
    assert rows_of(read(db, table)) == rows_of(table.scan(at=1).to_arrow())

    table.upsert(rows([9, 10]))

    for snapshot in (None, 1, 2, 3, 4):
        assert_shown(db, table, snapshot)


def test_what_was_never_shown_is_not_there_rather_than_another_ones(
    new_table: NewTable, lake: Lake, db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = new_table("id bigint NOT NULL, part string", **KEYED), new_table("id bigint, part string")
    table.upsert(rows([1, 2]))
    with monkeypatch.context() as patched:
        patched.setattr("lakelib.ops.tell.has_right", lambda *_: False)
        table.upsert(rows([2, 3]))
        other.append(rows([1]))
    monkeypatch.setattr("lakelib.catalog.exports.list_unshown", lambda catalog, table_id: [3])
    table.upsert(rows([4]))

    name = table.name.split(".")[1]
    with pytest.raises(duckdb.CatalogException, match="does not exist"):
        db.execute(f"SELECT * FROM lake.shop.{name} AT (VERSION => {version_of(other, 1)})")
    for snapshot in (None, 1, 3):
        assert_shown(db, table, snapshot)


def test_a_publish_stands_whatever_becomes_of_it(
    new_table: NewTable, db: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = new_table("id bigint NOT NULL, part string", **KEYED)

    def fail(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr("lakelib.ops.ducklake.write_positions", fail)
        table.upsert(rows([1]))
        table.upsert(rows([1]))

    assert f"snapshot 2 is not shown to DuckDB yet (`lake ducklake {table.name}` makes up for it)" in caplog.text
    assert table.show_in_ducklake().is_complete
    assert_shown(db, table)


def test_two_who_show_at_once_show_once(
    new_table: NewTable, lake: Lake, db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table("id bigint NOT NULL, part string", primary_key=["id"])
    for number in range(4):
        table.upsert(rows([1, number]))
    table.set_options({"ducklake": "head"})
    started, done = threading.Barrier(3), []

    def show() -> None:
        started.wait()
        done.append(lake.table(table.name).show_in_ducklake())

    workers = [threading.Thread(target=show) for _ in range(3)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()

    assert sum(each.shown for each in done) == 1
    assert all(each.is_complete for each in done)
    assert_shown(db, table)
    assert len(position_files(table)) == shown_files(lake, table)


def position_files(table: Table) -> list[Path]:
    return sorted((Path(folder_of(table)) / "_masks").glob("positions-*.parquet"))


def shown_files(lake: Lake, table: Table) -> int:
    with psycopg.connect(lake.runtime.catalog.url) as connection:
        (count,) = connection.execute(
            'select count(*) from lake.shown_mask m join lake."table" t on t.id = m.table_id where t.name = %s',
            [table.name.split(".")[1]],
        ).fetchone()  # type: ignore[misc]
    return int(count)


def test_files_of_masks_go_with_the_snapshots_that_show_them(new_table: NewTable, lake: Lake, db: Any) -> None:
    table = new_table("id bigint NOT NULL, part string", **KEYED)
    table.upsert(rows(list(range(9))))
    for number in range(4):
        table.upsert(rows([number]))
    before, moment = position_files(table), version_of(table, 3)

    table.expire(keep_last=2, older_than=timedelta(0), grace=timedelta(0))
    lake.vacuum(grace=timedelta(0))

    assert 0 < len(position_files(table)) < len(before)
    assert len(position_files(table)) == shown_files(lake, table)
    assert not lake.doctor(table.name, deep=True).findings
    for snapshot in (None, 4, 5):
        assert_shown(db, table, snapshot)
    with pytest.raises(duckdb.Error, match=r"does not exist|No snapshot"):
        db.execute(f"FROM lake.{table.name} AT (VERSION => {moment})")
    table.compact(full=True)
    table.expire(keep_last=1, older_than=timedelta(0), grace=timedelta(0))
    lake.vacuum(grace=timedelta(0))
    assert position_files(table) == []
    assert_shown(db, table)


def test_a_vacuum_leaves_the_files_of_masks_alone_until_the_table_is_dropped(new_table: NewTable, lake: Lake) -> None:
    table = new_table("id bigint NOT NULL, part string", **KEYED)
    table.upsert(rows([1]))
    table.upsert(rows([1]))
    lake.vacuum(grace=timedelta(0))
    assert len(position_files(table)) == 1

    lake.drop_table(table.name)
    lake.vacuum(grace=timedelta(0))

    assert position_files(table) == []


def test_what_a_killed_publisher_has_written_is_an_orphan(
    new_table: NewTable, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table("id bigint NOT NULL, part string", **KEYED)
    table.upsert(rows([1]))

    def killed(*_: object) -> bool:
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr("lakelib.catalog.exports.show", killed)
        table.upsert(rows([1]))
    assert len(position_files(table)) == 1

    lake.vacuum(grace=timedelta(0))

    assert position_files(table) == []


def test_a_restored_lake_is_shown_anew(new_table: NewTable, lake: Lake, tmp_path: Path, catalog_url: str) -> None:
    table = new_table("id bigint NOT NULL, part string", **KEYED)
    table.upsert(rows([1]))
    table.upsert(rows([1, 2]))
    lake.backup(tmp_path / "backup", tables=[table.name], with_files=True)
    lakelib.restore(tmp_path / "backup", warehouse=tmp_path / "restored", catalog=catalog_url)

    with lakelib.connect(tmp_path / "restored", catalog_url) as restored:
        again = restored.table(table.name)
        assert position_files(again) == []
        again.show_in_ducklake()
        with attached(restored) as connection:
            assert_shown(connection, again)


# Who attaches


_MAKE = """
import sys, lakelib
with lakelib.connect(sys.argv[1]) as lake:
    lake.create_namespace("shop")
    lake.create_table("shop.orders", "id bigint").append([{"id": 1}])
"""


def test_a_lake_that_was_moved_is_attached_where_it_is(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _MAKE, str(tmp_path / "before")], check=True, timeout=60)
    (tmp_path / "before").rename(tmp_path / "it's moved")

    with lakelib.connect(tmp_path / "it's moved") as moved, attached(moved) as connection:
        assert_shown(connection, moved.table("shop.orders"))


@pytest.mark.parametrize("key", [[], ["id"]])
def test_files_on_s3_are_read_with_a_secret_of_duckdbs(
    s3_settings: StorageSettings, catalog_url: str, key: list[str]
) -> None:
    given = s3_settings
    settings = {name: getattr(given, name) for name in ("s3_endpoint", "s3_region", "s3_access_key", "s3_secret_key")}
    with lakelib.connect(f"s3://{BUCKET}/{uuid4().hex}", catalog_url, **settings) as on_s3:
        on_s3.create_namespace("shop")
        table = on_s3.create_table(
            "shop.orders",
            "id bigint NOT NULL, part string",
            primary_key=key,
            partition_by=["part"],
            options={"ducklake": "head"},
        )
        for part in ("a", "b/c", None):
            table.append(rows([1, 2], part))
            table.append(rows([2, 3], part))
        with duckdb_with_ducklake() as connection:
            place = str(given.s3_endpoint).removeprefix("http://")
            connection.execute(
                f"CREATE SECRET (TYPE s3, KEY_ID '{given.s3_access_key}', SECRET '{given.s3_secret_key}',"
                f" REGION '{given.s3_region}', ENDPOINT '{place}', URL_STYLE 'path', USE_SSL false)"
            )
            connection.execute(on_s3.ducklake().attach)
            for snapshot in table.history():
                assert_shown(connection, table, snapshot.id)


def test_writing_fails_and_changes_nothing(new_table: NewTable, lake: Lake, db: Any) -> None:
    table = new_table("id bigint, part string")
    table.append(rows([1]))
    name = f"lake.shop.{table.name.split('.')[1]}"
    for statement in ("INSERT INTO {name} VALUES (2, 'b')", *_CHANGES, *_DELETIONS):
        with pytest.raises(duckdb.Error, match=r"read-?only|lake vacuum"):
            db.execute(statement.format(name=name))

    staged = table.stage_append(rows([2]))
    files = sorted(Path(folder_of(table)).rglob("*.parquet"))
    with duckdb_with_ducklake() as other:
        other.execute(lake.ducklake().attach.replace("READ_ONLY, ", ""))
        for statement in (*_CHANGES, *_DELETIONS):
            with pytest.raises(duckdb.Error):
                other.execute(statement.format(name=name))

    assert table.head is not None
    assert table.head.id == 1
    assert_shown(db, table)
    assert [path for path in files if path.exists()] == files
    staged.publish()
    assert_shown(db, table)


_CHANGES = (
    "DELETE FROM {name}",
    "UPDATE {name} SET id = 2",
    "ALTER TABLE {name} ADD COLUMN more INT",
    "DROP TABLE {name}",
    "CREATE TABLE lake.shop.mine (id INT)",
    "CREATE SCHEMA lake.mine",
    "CALL ducklake_expire_snapshots('lake', older_than => now())",
)
_DELETIONS = (
    "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
    "CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)",
)


def test_the_statement_has_no_password() -> None:
    told = attach_target("postgresql://ann:s3cret@db.example:5433/lake?sslmode=require")

    assert set(told.split()) == {"user=ann", "host=db.example", "port=5433", "dbname=lake", "sslmode=require"}


def test_an_empty_lake_is_attached(tmp_path: Path) -> None:
    with lakelib.connect(tmp_path) as empty, attached(empty) as connection:
        assert connection.execute("SHOW ALL TABLES").fetchall() == []
        empty.create_namespace("shop")
        table = empty.create_table("shop.orders", "id bigint, part string")
        table.append(rows([1]))
        assert_shown(connection, table)


def test_a_readers_login_is_enough(make_database: Callable[[], str], tmp_path: Path) -> None:
    with open_town(make_database, tmp_path / "town") as town:
        made = town.root.create_table("shop.orders", "id bigint NOT NULL, part string", **KEYED)
        made.upsert(rows([1, 2]))
        made.upsert(rows([2, 3]))
        with attached(town.lakes["reader"]) as connection:
            assert f"user={town.users['reader']}" in town.lakes["reader"].ducklake().attach
            for snapshot in (None, 1, 2):
                assert_shown(connection, made, snapshot)
            with pytest.raises(duckdb.Error, match="lake vacuum"):
                connection.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")


def test_a_catalog_older_than_the_views_is_told(catalog_url: str, tmp_path: Path) -> None:
    lakelib.connect(tmp_path, catalog_url).close()
    with psycopg.connect(catalog_url, autocommit=True) as connection:
        connection.execute("delete from lake.upgrade where version = 0; delete from lake.migration where version > 18")
        make_earlier(connection)

    with pytest.raises(InvalidInputError) as caught:
        lakelib.connect(tmp_path, catalog_url)

    assert caught.value.kind == "catalog_too_old"
    assert "lake migrate" in str(caught.value.remedy)
