"""Connections are few: none is held while nobody needs one, and a server that has none to give is said to be full."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import lakelib
from lakelib.catalog import connections
from lakelib.catalog.connect import Catalog
from tests.integration.faults.jobs import SCHEMA, read, rows
from tests.integration.faults.server import Server, own_server
from tests.waiting import wait_until

_MOST = 20
_LAKES = 100
_ONE = sql.SQL("select 1 as one")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A PostgreSQL that takes few connections."""
    with own_server() as started:
        with psycopg.connect(started.url, autocommit=True) as connection:
            connection.execute(f"alter system set max_connections = {_MOST}")
        started.restart("fast")
        yield started


def held(server: Server) -> int:
    """Connections of lakelib's."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        [(count,)] = connection.execute(
            "select count(*) from pg_stat_activity where application_name = 'lakelib'"
        ).fetchall()
    return int(count)


def all_that_there_are(server: Server) -> list[psycopg.Connection[Any]]:
    """The connections that the server still has to give."""
    taken: list[psycopg.Connection[Any]] = []
    with suppress(psycopg.OperationalError):
        while True:
            taken.append(psycopg.connect(server.url))
    return taken


def refusals(monkeypatch: pytest.MonkeyPatch) -> list[psycopg.Error]:
    """What the server says from now on to those of lakelib whom it does not let in."""
    said: list[psycopg.Error] = []
    connect = connections.Session.connect

    def listen(*given: Any, **options: Any) -> connections.Session:
        try:
            return connect(*given, **options)
        except psycopg.Error as error:
            said.append(error)
            raise

    monkeypatch.setattr(connections.Session, "connect", listen)
    return said


def test_a_hundred_open_lakes_share_a_server_of_few_connections(server: Server, tmp_path: Path) -> None:
    with lakelib.connect(warehouse=tmp_path, catalog=server.url) as lake:
        lake.create_namespace("shop")
        lake.create_table("shop.a", SCHEMA, primary_key=["id"]).upsert(rows({1: ("mon", 1)}))
        opened = [lakelib.connect(warehouse=tmp_path, catalog=server.url) for _ in range(_LAKES)]

        with ThreadPoolExecutor(10) as threads:
            found = list(threads.map(lambda each: read(each.table("shop.a")), opened))

        assert found == [{1: ("mon", 1)}] * _LAKES
        assert held(server) <= _MOST
        wait_until(lambda: held(server) == 0, 10 * connections._IDLE_SECONDS)
        for each in opened:
            each.close()


def test_a_server_without_a_connection_to_give_is_full_and_not_out_of_reach(server: Server) -> None:
    catalog = Catalog(server.url, patience_seconds=0.5)
    others = all_that_there_are(server)
    began = time.monotonic()
    with pytest.raises(lakelib.RetryableError) as caught:
        catalog.one(_ONE)
    assert time.monotonic() - began < 10
    for each in others:
        each.close()

    assert caught.value.kind == "catalog_full"
    assert "max_connections" in caught.value.remedy
    assert catalog.one(_ONE) == {"one": 1}
    catalog.close()


def test_a_connection_that_becomes_free_within_the_patience_is_taken(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = all_that_there_are(server)
    refused = refusals(monkeypatch)
    catalog = Catalog(server.url)
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(catalog.one, _ONE)
        wait_until(lambda: len(refused) >= 2)
        assert not asking.done()
        for each in others:
            each.close()
        assert asking.result(20) == {"one": 1}
    catalog.close()
