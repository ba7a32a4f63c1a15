"""Backups and what is restored from them, beside a living original. On local files and on S3."""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest

import lakelib
from lakelib import CorruptionError, InvalidInputError, Lake, LakeError, NotFoundError, Table
from lakelib.catalog import dump, programs
from lakelib.ops import backup as ops_backup
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import open_storage
from tests.acceptance.support import NewTable, data, stored_files
from tests.conftest import BUCKET, drop_database

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("version", pa.int64())])
NOW = timedelta(0)

Restore = Callable[..., Lake]


@pytest.fixture(scope="module", params=["local", "s3"])
def storage_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def folder(storage_kind: str, tmp_path: Path) -> str:
    """An empty place in the same store as the lake, beside it."""
    return str(tmp_path / "elsewhere") if storage_kind == "local" else f"s3://{BUCKET}/{uuid4().hex}"


@pytest.fixture
def given(storage: StorageSettings) -> dict[str, Any]:
    return {name: value for name, value in asdict(storage).items() if value is not None}


@pytest.fixture
def new_catalog(make_database: Callable[[], str]) -> Iterator[str]:
    url = make_database()
    yield url
    drop_database(url)


@pytest.fixture
def restored(new_catalog: str, folder: str, given: dict[str, Any]) -> Iterator[Restore]:
    """Restores from `{folder}/backup`, and opens what came of it."""
    opened: list[Lake] = []

    def restore(**named: Any) -> Lake:
        result = lakelib.restore(f"{folder}/backup", catalog=new_catalog, **named, **given)
        assert result.report.findings == ()
        opened.append(lakelib.connect(warehouse=result.warehouse, catalog=new_catalog, **given))
        return opened[-1]

    yield restore
    for lake in opened:
        lake.close()


@pytest.fixture
def catalog(module_catalog_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(module_catalog_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def table(new_table: NewTable) -> Table:
    """Three snapshots of the same ten rows; the first is tagged."""
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["day"])
    for number in range(1, 4):
        table.upsert(rows(number), idempotency_key=("loader", number))
    table.tag("first", at=1)
    return table


def rows(version: int, many: int = 10) -> pa.Table:
    return data(SCHEMA, *((number, ("mon", "tue")[number % 2], version) for number in range(many)))


def content(table: Table, at: int | str | None = None) -> list[tuple[Any, ...]]:
    read = table.scan(at=at).to_arrow()
    return sorted(zip(*(column.to_pylist() for column in read.columns), strict=True))


def test_a_lake_is_restored_with_its_files_beside_the_living_original(
    lake: Lake, new_table: NewTable, folder: str, restored: Restore
) -> None:
    pair = [new_table(SCHEMA, primary_key=["id"], partition_by=["day"]) for _ in range(2)]
    stop = threading.Event()

    def write() -> None:
        version = 0
        while not stop.is_set():
            version += 1
            with lake.transaction() as tx:
                for table in pair:
                    tx.add(table.stage_upsert(rows(version)))
            if version % 4 == 0:
                for table in pair:
                    table.compact(full=True)
                    table.expire(keep_last=1, grace=NOW)
                lake.vacuum(grace=timedelta(hours=1))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while min(table.scan().count() for table in pair) == 0:
            pass
        made = lake.backup(f"{folder}/backup", with_files=True, tables=[table.name for table in pair])
        other = restored(warehouse=f"{folder}/warehouse")
    finally:
        stop.set()
        writer.join()
    copies = [other.table(table.name) for table in pair]
    versions = {version for table in copies for _, _, version in content(table)}
    assert len(versions) == 1
    heads = [table.head for table in copies]
    assert all(head is not None and head.committed_at <= made.made_at for head in heads)
    assert [len(content(table)) for table in copies] == [10, 10]

    before = [content(table) for table in pair]
    for table in copies:
        table.upsert(rows(999))
        table.compact(full=True)
        table.expire(keep_last=1, grace=NOW)
    other.vacuum(grace=NOW)
    for table in pair:
        table.expire(keep_last=1, grace=NOW)
    lake.vacuum(grace=NOW)
    assert [content(table) for table in pair] == before
    assert [content(table) for table in copies] == [content_of(999)] * 2
    names = [table.name for table in pair]
    assert (lake.doctor(*names, deep=True).findings, other.doctor(*names, deep=True).findings) == ((), ())


def content_of(version: int) -> list[tuple[Any, ...]]:
    return [(number, ("mon", "tue")[number % 2], version) for number in range(10)]


def test_every_readable_snapshot_tag_and_progress_comes_back(
    lake: Lake, table: Table, folder: str, restored: Restore
) -> None:
    made = lake.backup(f"{folder}/backup", with_files=True, tables=[table.name])
    assert (made.tables, made.with_files, made.held_until) == ((table.name,), True, None)
    assert made.files == len({file.path for at in (1, 2, 3) for file in table.files(at=at)})
    table.upsert(rows(4))
    copy = restored(warehouse=f"{folder}/warehouse").table(table.name)
    assert [content(copy, at) for at in (1, 2, 3, "tag:first")] == [content_of(at) for at in (1, 2, 3, 1)]
    replayed = copy.upsert(rows(77), idempotency_key=("loader", 3))
    assert (replayed.id, content(copy)) == (3, content_of(3))


def test_without_files_a_restored_lake_reads_those_of_the_original_and_changes_nothing(
    lake: Lake, table: Table, folder: str, restored: Restore, storage: StorageSettings
) -> None:
    made = lake.backup(f"{folder}/backup", tables=[table.name])
    assert made.held_until is not None
    assert timedelta(days=6) < made.held_until - made.made_at < timedelta(days=8)
    table.upsert(rows(4))
    other = restored()
    copy = other.table(table.name)
    assert content(copy) == content_of(3)
    before = stored_files(table, storage)
    with pytest.raises(LakeError):
        copy.upsert(rows(5))
    with pytest.raises(LakeError):
        copy.delete("id = 1")
    with pytest.raises(LakeError):
        copy.compact(full=True)
    with pytest.raises(LakeError):
        copy.expire(keep_last=1, grace=NOW)
    with pytest.raises(LakeError):
        other.vacuum(grace=NOW)
    assert stored_files(table, storage) >= before
    assert content(table) == content_of(4)
    assert content(copy) == content_of(3)


def test_the_original_keeps_what_a_backup_without_files_needs_until_it_is_released(
    lake: Lake, table: Table, folder: str, storage: StorageSettings
) -> None:
    made = lake.backup(f"{folder}/backup", tables=[table.name])
    source = open_storage(f"{folder}/backup", storage)
    with ops_backup.listed_files(source) as listed:
        needed = {file.path for file in listed}
    table.overwrite(rows(4), partitions="all")
    assert table.expire(keep_last=1, grace=NOW).snapshots == ()
    lake.vacuum(grace=NOW)
    assert needed <= stored_files(table, storage)
    assert {finding.kind for finding in lake.doctor(table.name).findings} == {"long_lease"}
    lake.release_backup(made.id)
    table.delete_tag("first")
    assert table.expire(keep_last=1, grace=NOW).snapshots == (1, 2, 3)
    lake.vacuum(grace=NOW)
    assert not needed & stored_files(table, storage)


def test_an_expiry_that_is_faster_than_the_holds_makes_the_backup_take_a_later_moment(
    lake: Lake, table: Table, folder: str, restored: Restore, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, looks = dump._look, []

    def then_expire(*arguments: Any) -> Any:
        looks.append(look(*arguments))
        if len(looks) == 1:
            table.delete_tag("first")
            table.expire(keep_last=1, grace=NOW)
            lake.vacuum(grace=NOW)
        return looks[-1]

    monkeypatch.setattr(dump, "_look", then_expire)
    lake.backup(f"{folder}/backup", with_files=True, tables=[table.name])
    assert len(looks) == 2
    copy = restored(warehouse=f"{folder}/warehouse").table(table.name)
    assert [snapshot.id for snapshot in copy.history()] == [3]


def test_only_the_tables_that_were_named_come_back(
    lake: Lake, table: Table, new_table: NewTable, folder: str, restored: Restore, storage: StorageSettings
) -> None:
    other_table = new_table(SCHEMA, primary_key=["id"])
    other_table.upsert(rows(1))
    lake.backup(f"{folder}/backup", tables=[table.name])
    other = restored()
    assert other.tables() == [table.name]
    files = stored_files(other_table, storage)
    with pytest.raises(LakeError):
        other.vacuum(grace=NOW)
    assert stored_files(other_table, storage) == files


def test_what_is_not_published_is_in_no_backup(lake: Lake, table: Table, folder: str, restored: Restore) -> None:
    staged = table.stage_upsert(rows(4), idempotency_key=("loader", 4))
    replaced = table.stage_overwrite(rows(5), partitions="all")
    lake.backup(f"{folder}/backup", with_files=True, tables=[table.name])
    other = restored(warehouse=f"{folder}/warehouse")
    for commit in (staged, replaced):
        with pytest.raises(LakeError):
            other.staged(commit.id).publish()
    assert staged.publish().id == 4
    copy = other.table(table.name)
    assert content(copy) == content_of(3)
    copy.upsert(rows(4), idempotency_key=("loader", 4))
    assert content(copy) == content_of(4)


def test_a_restore_that_was_killed_is_begun_anew(
    lake: Lake, table: Table, folder: str, restored: Restore, new_catalog: str, given: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    lake.backup(f"{folder}/backup", with_files=True, tables=[table.name])
    with monkeypatch.context() as killed:
        killed.setattr(dump, "settle", lambda *arguments, **options: 1 / 0)
        killed.setattr(dump, "clear", lambda catalog: None)
        with pytest.raises(ZeroDivisionError):
            restored(warehouse=f"{folder}/warehouse")
    with psycopg.connect(new_catalog) as connection:
        assert connection.execute("select count(*) from lake.snapshot").fetchone() != (0,)
    with pytest.raises(LakeError):
        lakelib.connect(warehouse=f"{folder}/warehouse", catalog=new_catalog, **given)
    assert content(restored(warehouse=f"{folder}/warehouse").table(table.name)) == content_of(3)


def test_a_restore_that_fails_leaves_the_database_empty(
    lake: Lake, table: Table, folder: str, restored: Restore, new_catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.backup(f"{folder}/backup", tables=[table.name])
    monkeypatch.setattr(dump, "_script", lambda name: b"select 1 / 0")
    with pytest.raises(LakeError):
        restored()
    with psycopg.connect(new_catalog) as connection:
        assert connection.execute("select from pg_namespace where nspname = 'lake'").fetchone() is None


def test_places_that_are_in_use_are_refused(
    lake: Lake, table: Table, folder: str, restored: Restore, module_catalog_url: str, given: dict[str, Any]
) -> None:
    with pytest.raises(NotFoundError, match="There is no backup in"):
        restored()
    with pytest.raises(NotFoundError):
        lake.backup(f"{folder}/backup", tables=["shop.nothing"])
    with pytest.raises(InvalidInputError, match="would be in the warehouse"):
        lake.backup(f"{lake.warehouse}/backup")
    lake.backup(f"{folder}/backup", with_files=True, tables=[table.name])
    with pytest.raises(InvalidInputError, match="There is a backup in"):
        lake.backup(f"{folder}/backup")
    with pytest.raises(InvalidInputError, match="a lake's catalog in the database"):
        lakelib.restore(f"{folder}/backup", warehouse=f"{folder}/warehouse", catalog=module_catalog_url, **given)
    for wrong in (lake.warehouse, f"{lake.warehouse}/below", lake.warehouse.rpartition("/")[0]):
        with pytest.raises(InvalidInputError, match="is not beside it"):
            restored(warehouse=wrong)
    with pytest.raises(InvalidInputError, match="holds files of a lake"):
        restored(warehouse=f"{folder}/backup")


def test_a_dump_that_was_changed_is_refused(
    lake: Lake, table: Table, folder: str, restored: Restore, storage: StorageSettings
) -> None:
    lake.backup(f"{folder}/backup", tables=[table.name])
    source = open_storage(f"{folder}/backup", storage)
    source.write_bytes("catalog.dump", source.read_bytes("catalog.dump")[:-1] + b"!")
    with pytest.raises(CorruptionError):
        restored()
    source.write_bytes("backup.json", b"{}")
    with pytest.raises(CorruptionError):
        restored()


def test_a_damaged_file_ends_a_backup_and_its_holds(
    lake: Lake, table: Table, folder: str, storage: StorageSettings, catalog: psycopg.Connection[Any]
) -> None:
    stored = open_storage(table.location, storage)
    path = next(iter(table.files())).path
    stored.write_bytes(path, stored.read_bytes(path) + b"!")
    holders = "select distinct holder from lake.lease"
    before = set(catalog.execute(holders))
    with pytest.raises(CorruptionError):
        lake.backup(f"{folder}/backup", with_files=True, tables=[table.name])
    assert not open_storage(f"{folder}/backup", storage).exists("backup.json")
    assert set(catalog.execute(holders)) <= before


def test_the_doctor_brings_damaged_files_back_from_a_backup(
    lake: Lake, table: Table, folder: str, storage: StorageSettings
) -> None:
    lake.backup(f"{folder}/backup", with_files=True, tables=[table.name])
    stored = open_storage(table.location, storage)
    gone, cut, *_ = sorted(file.path for file in table.files(at=3))
    stored.delete_files([gone])
    stored.write_bytes(cut, stored.read_bytes(cut)[:-5])
    repair: dict[str, Any] = {"repair": ["files"], "from_backup": f"{folder}/backup"}
    dry = lake.doctor(table.name, dry_run=True, **repair)
    assert dict(dry.counts) == {"missing_file": 1, "truncated_file": 1}
    assert {each.place for each in dry.repairs} == {stored.uri_of(gone), stored.uri_of(cut)}
    assert dict(lake.doctor(table.name).counts) == dict(dry.counts)
    assert len(lake.doctor(table.name, **repair).repairs) == 2
    assert lake.doctor(table.name, deep=True).findings == ()
    assert content(table) == content_of(3)


def test_no_program_is_told_the_password_by_its_arguments(
    lake: Lake, table: Table, folder: str, module_catalog_url: str, given: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    ran: list[tuple[list[str], dict[str, str]]] = []
    run = subprocess.run

    def listen(arguments: Any, **options: Any) -> Any:
        ran.append(([str(word) for word in arguments], dict(options.get("env") or os.environ)))
        return run(arguments, **options)

    monkeypatch.setattr(programs.subprocess, "run", listen)
    url = module_catalog_url.replace("postgres:@", "postgres:s3cret pass@".replace(" ", "%20"))
    assert url != module_catalog_url
    with lakelib.connect(warehouse=lake.warehouse, catalog=url, **given) as other:
        other.backup(f"{folder}/backup", tables=[table.name])
    dumped = [(words, environment) for words, environment in ran if "--format=custom" in words]
    assert len(dumped) == 1
    assert all("s3cret" not in word for words, _ in ran for word in words)
    assert dumped[0][1]["PGPASSWORD"] == "s3cret pass"


def test_a_server_that_is_newer_than_every_pg_dump_is_told(lake: Lake) -> None:
    with pytest.raises(InvalidInputError, match="there is no pg_dump that is as new"):
        programs.find_program("pg_dump", 99)


def test_the_moment_of_a_backup_is_the_catalogs(lake: Lake, table: Table, folder: str) -> None:
    made = lake.backup(f"{folder}/backup", tables=[table.name])
    assert abs(datetime.now(UTC) - made.made_at) < timedelta(minutes=1)
    lake.release_backup(made.id)
