"""PostgreSQL goes away in the middle of work, and comes back: nothing is lost, nothing is done twice."""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import psycopg
import pytest

import lakelib
from lakelib.catalog.connect import Catalog
from tests.integration.faults.jobs import APPLICATION, SCHEMA, read, rows, upsert_often
from tests.integration.faults.ledger import Ledger
from tests.integration.faults.processes import Worker, results
from tests.integration.faults.server import Server, own_server
from tests.waiting import wait_until

_PATIENCE_SECONDS = 1.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server() as started:
        yield started


@pytest.fixture
def lake(server: Server, tmp_path: Path) -> Iterator[lakelib.Lake]:
    """An empty lake whose calls give up soon."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("drop schema if exists lake cascade")
    with lakelib.connect(warehouse=str(tmp_path / "warehouse"), catalog=server.url) as lake:
        lake.create_namespace("shop")
        lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
        lake._runtime.catalog.close()
        lake._runtime = replace(lake._runtime, catalog=Catalog(server.url, patience_seconds=_PATIENCE_SECONDS))
        yield lake


def test_a_server_that_stays_away_is_a_retryable_error_and_the_repeated_call_commits_once(
    server: Server, lake: lakelib.Lake
) -> None:
    table = lake.table("shop.a")
    server.stop("fast")
    try:
        began = time.monotonic()
        with pytest.raises(lakelib.RetryableError) as caught:
            table.upsert(rows({1: ("mon", 1)}), idempotency_key=(APPLICATION, 1))
        waited_seconds = time.monotonic() - began
    finally:
        server.start()

    assert caught.value.kind == "catalog_unreachable"
    assert "idempotency key" in caught.value.remedy
    assert _PATIENCE_SECONDS <= waited_seconds < _PATIENCE_SECONDS + 14
    for _ in range(2):
        assert table.upsert(rows({1: ("mon", 1)}), idempotency_key=(APPLICATION, 1)).id == 1
    assert read(table) == {1: ("mon", 1)}


def test_a_stage_outlives_a_restart_of_the_server(server: Server, lake: lakelib.Lake) -> None:
    table = lake.table("shop.a")
    staged = table.stage_upsert(rows({1: ("mon", 1)}))

    server.stop("immediate")
    try:
        with pytest.raises(lakelib.RetryableError):
            staged.publish()
    finally:
        server.start()

    assert staged.publish().id == staged.publish().id == 1
    assert read(table) == {1: ("mon", 1)}


def test_a_listing_that_loses_its_server_says_so_and_the_next_one_works(server: Server, lake: lakelib.Lake) -> None:
    table = lake.table("shop.a")
    table.upsert(rows({1: ("mon", 1), 2: ("tue", 2)}))
    server.stop("immediate")
    try:
        with pytest.raises(lakelib.RetryableError):
            list(table.files())
    finally:
        server.start()

    assert len(list(table.files())) == 2


def has_published(server: Server, commits: int) -> bool:
    with psycopg.connect(server.url, autocommit=True) as connection:
        found = connection.execute("select count(*) from lake.commit where state = 'published'").fetchone()
    return found is not None and found[0] >= commits


@pytest.mark.parametrize("how", ["immediate", "fast"])
def test_writers_get_over_restarts_of_the_server_in_the_middle_of_their_commits(
    how: str, server: Server, lake: lakelib.Lake
) -> None:
    place = (lake.warehouse, server.url)
    writers = [Worker(upsert_often, (*place, writer, 60)) for writer in (1, 2, 3)]
    for commits in (10, 60):
        wait_until(partial(has_published, server, commits))
        server.restart(how)
    results([writer.outcome(60) for writer in writers])

    with psycopg.connect(server.url, autocommit=True) as connection:
        ledger = Ledger(lake=lake, url=server.url, connection=connection)
        assert read(lake.table("shop.a")).keys() == {
            0,
            *(writer * 1000 + number for writer in (1, 2, 3) for number in range(60)),
        }
        ledger.check_table("shop.a")
        assert len(ledger.commits("published")) == 180
        assert ledger.commits("staged") == []
