"""A catalog that cannot be used is said so at once where waiting is no use, after a bounded time where it is."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

import lakelib
from lakelib.catalog.connect import Catalog
from tests.conftest import drop_database
from tests.integration.catalog.guarded import guarded

_AT_ONCE_SECONDS = 15.0
"""Half as long as what may pass is tried again, and long enough for a machine that is busy."""


def refused(url: str, tmp_path: Path) -> lakelib.LakeError:
    """What connecting to the URL raises; fails if that takes long."""
    began = time.monotonic()
    with pytest.raises(lakelib.LakeError) as caught:
        lakelib.connect(warehouse=str(tmp_path), catalog=url)
    assert time.monotonic() - began < _AT_ONCE_SECONDS
    return caught.value


def test_a_database_that_is_not_there_is_named_at_once(catalog_url: str, tmp_path: Path) -> None:
    name = catalog_url.partition("?")[0].rpartition("/")[2]
    error = refused(catalog_url.replace(f"/{name}?", "/no_such_database?"), tmp_path)

    assert isinstance(error, lakelib.InvalidInputError)
    assert error.kind == "catalog_refused"
    assert "no_such_database" in str(error)
    assert "LAKE_CATALOG" in str(error)


def test_a_user_that_is_not_there_is_named_at_once(catalog_url: str, tmp_path: Path) -> None:
    error = refused(catalog_url.replace("postgres:@", "nobody_here:@"), tmp_path)

    assert isinstance(error, lakelib.InvalidInputError)
    assert "nobody_here" in str(error)


def test_a_wrong_password_is_refused_at_once_and_is_not_in_the_message(
    make_database: Callable[[], str], tmp_path: Path
) -> None:
    url = make_database()
    with guarded(url):
        wrong = refused(url.replace("postgres:@", f"guarded:{quote('wr@ng/secret', safe='')}@"), tmp_path)
        missing = refused(url.replace("postgres:@", "guarded@"), tmp_path)
    drop_database(url)

    for error in (wrong, missing):
        assert isinstance(error, lakelib.InvalidInputError)
        assert error.kind == "catalog_refused"
        assert "password" in str(error)
        assert "LAKE_CATALOG" in str(error)
        assert "secret" not in str(error)
        assert "secret" not in repr(error.__cause__)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:secret%zz@localhost/lake",
        "postgresql://u:my secret@localhost/lake",
        "postgresql://u:secret@[localhost/lake",
        "host=localhost password=my secret",
    ],
)
def test_a_password_that_makes_the_url_unreadable_is_not_in_the_message(url: str, tmp_path: Path) -> None:
    assert "secret" not in str(refused(url, tmp_path))


@pytest.mark.parametrize("url", ["mysql://host/lake", "postgresql://host:notaport/lake", "host/lake"])
def test_what_is_no_url_of_a_postgresql_database_is_refused_naming_the_setting(url: str, tmp_path: Path) -> None:
    error = refused(url, tmp_path)

    assert isinstance(error, lakelib.InvalidInputError)
    assert "catalog" in str(error)


@pytest.mark.parametrize(
    "url", ["postgresql://postgres@127.0.0.1:1/lake", "postgresql://postgres@/lake?host=/no/such/folder"]
)
def test_a_server_that_is_not_there_is_a_retryable_error_after_a_bounded_time(url: str) -> None:
    catalog = Catalog(url, patience_seconds=0.5)
    began = time.monotonic()

    with pytest.raises(lakelib.RetryableError) as caught:
        catalog.run(lambda db: db.execute("select 1"))

    assert time.monotonic() - began < _AT_ONCE_SECONDS
    assert caught.value.kind == "catalog_unreachable"
    assert "LAKE_CATALOG" in str(caught.value)
    catalog.close()


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://postgres:hidden@localhost:1/lake", "localhost:1/lake"),
        ("postgresql://postgres@/lake?host=/no/such/folder", "/no/such/folder:5432/lake"),
    ],
)
def test_a_server_that_never_answered_is_named_within_seconds(url: str, place: str, tmp_path: Path) -> None:
    began = time.monotonic()

    with pytest.raises(lakelib.RetryableError) as caught:
        lakelib.connect(warehouse=str(tmp_path), catalog=url)

    assert time.monotonic() - began < _AT_ONCE_SECONDS
    assert f"Cannot reach PostgreSQL at {place}:" in str(caught.value)
    assert "LAKE_CATALOG" in caught.value.remedy
    assert "hidden" not in str(caught.value)


def test_a_file_where_the_embedded_server_would_live_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "warehouse").mkdir()
    (tmp_path / "warehouse/.catalog").write_text("")
    monkeypatch.delenv("LAKE_CATALOG", raising=False)

    with pytest.raises(lakelib.InvalidInputError, match=r"embedded PostgreSQL.*\.catalog.*LAKE_CATALOG"):
        lakelib.connect(warehouse=str(tmp_path / "warehouse"))


def test_a_warehouse_that_can_be_no_folder_is_refused_before_anything_is_made(catalog_url: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")

    for place in (file, file / "below"):
        with pytest.raises(lakelib.InvalidInputError, match=f"{file} is no folder.*LAKE_WAREHOUSE"):
            lakelib.connect(warehouse=place, catalog=catalog_url)

    with psycopg.connect(catalog_url) as connection:
        assert connection.execute("select 1 from pg_namespace where nspname = 'lake'").fetchall() == []


def test_a_user_without_rights_is_told_what_is_missing(make_database: Callable[[], str], tmp_path: Path) -> None:
    url = make_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create role powerless login")
        try:
            error = refused(url.replace("postgres:@", "powerless:@"), tmp_path)
        finally:
            connection.execute("drop role powerless")
    drop_database(url)

    assert isinstance(error, lakelib.InvalidInputError)
    assert "permission denied" in str(error)


def test_work_sees_what_others_committed_between_its_statements(catalog: Catalog, catalog_url: str) -> None:
    """Publishing counts on it: under REPEATABLE READ a conflict check would look at the past."""

    def work(db: psycopg.Connection[dict[str, int]]) -> list[int]:
        counts = [db.execute("select count(*) as n from lake.namespace").fetchone()["n"]]  # type: ignore[index]
        with psycopg.connect(catalog_url, autocommit=True) as other:
            other.execute("insert into lake.namespace (name) values ('between')")
        counts.append(db.execute("select count(*) as n from lake.namespace").fetchone()["n"])  # type: ignore[index]
        return counts

    assert catalog.run(work) == [0, 1]


def test_a_statement_of_too_many_parameters_is_refused_at_once(catalog_url: str) -> None:
    catalog = Catalog(catalog_url, patience_seconds=60)
    count = 70_000
    text = f"select {' + '.join(['%s'] * count)}"
    began = time.monotonic()

    with pytest.raises(lakelib.LakeError, match=r"cannot be sent .*65535") as caught:
        catalog.run(lambda db: db.execute(text.encode(), [1] * count))

    assert time.monotonic() - began < 30, "it is not tried again"
    assert caught.value.kind == "catalog_failed"
    assert not isinstance(caught.value, lakelib.RetryableError)
    assert catalog.run(lambda db: db.execute("select 1 as n").fetchone()) == {"n": 1}


def test_a_statement_too_deep_for_the_server_is_refused_at_once(catalog_url: str) -> None:
    catalog = Catalog(catalog_url, patience_seconds=60)
    text = f"select {'+'.join(['1'] * 200_000)}"
    began = time.monotonic()

    with pytest.raises(lakelib.LakeError, match="stack depth") as caught:
        catalog.run(lambda db: db.execute(text.encode()))

    assert time.monotonic() - began < _AT_ONCE_SECONDS, "it is not tried again"
    assert caught.value.kind == "catalog_failed"
    catalog.close()


def test_a_connection_that_the_server_ended_is_made_again(
    catalog: Catalog, connection: psycopg.Connection[Any]
) -> None:
    ask = "select pg_backend_pid() as pid"
    first = catalog.run(lambda db: db.execute(ask).fetchone())
    assert first is not None
    connection.execute("select pg_terminate_backend(%s)", (first["pid"],))

    second = catalog.run(lambda db: db.execute(ask).fetchone())

    assert second is not None
    assert second["pid"] != first["pid"]


def test_a_prepared_statement_outlives_a_migration_that_adds_a_column(
    catalog: Catalog, connection: psycopg.Connection[Any]
) -> None:
    """On every connection of the pool, each of which has prepared it."""
    connection.execute("create table wide (a int)")
    connection.execute("insert into wide values (1)")
    together = 4

    def ask(met: threading.Barrier) -> list[dict[str, Any]]:
        def work(db: psycopg.Connection[dict[str, Any]]) -> list[dict[str, Any]]:
            rows = db.execute("select * from wide").fetchall()
            met.wait(timeout=10)
            return rows

        return catalog.run(work)

    def ask_on_each_connection(threads: ThreadPoolExecutor) -> list[list[dict[str, Any]]]:
        met = threading.Barrier(together)
        return [asked.result() for asked in [threads.submit(ask, met) for _ in range(together)]]

    with ThreadPoolExecutor(together) as threads:
        for _ in range(5):
            assert ask_on_each_connection(threads) == [[{"a": 1}]] * together
        connection.execute("alter table wide add column b int")
        assert ask_on_each_connection(threads) == [[{"a": 1, "b": None}]] * together


def test_what_the_server_cannot_do_at_all_is_said(catalog: Catalog) -> None:
    with pytest.raises(lakelib.LakeError, match="refused a statement"):
        catalog.run(lambda db: db.execute("select * from elsewhere.public.t"))


def test_work_that_raises_changes_nothing(catalog: Catalog) -> None:
    def work(db: psycopg.Connection[dict[str, int]]) -> None:
        db.execute("insert into lake.namespace (name) values ('half')")
        raise lakelib.ConflictError("no")

    with pytest.raises(lakelib.ConflictError):
        catalog.run(work)

    assert catalog.run(lambda db: db.execute("select * from lake.namespace").fetchall()) == []


def test_a_connection_that_was_cut_off_unnoticed_is_tried_again(catalog: Catalog, catalog_url: str) -> None:
    """The driver stumbles over it in its own words before it sees that the connection is gone."""
    tries: list[int] = []

    def work(db: psycopg.Connection[Any]) -> int:
        [(_, process_id)] = [tuple(row.values()) for row in db.execute("select 1 as one, pg_backend_pid() as pid")]
        tries.append(process_id)
        if len(tries) == 1:
            with psycopg.connect(catalog_url, autocommit=True) as other:
                other.execute("select pg_terminate_backend(%s, 5000)", (process_id,))
            raise psycopg.OperationalError("cannot exit pipeline mode while busy")
        return len(tries)

    assert catalog.run(work) == 2
