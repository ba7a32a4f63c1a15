"""A network that swallows packets, and a client that freezes: every call ends in time, says whether anything may have
changed, and works again afterwards."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import lakelib
from lakelib.catalog import connections
from lakelib.catalog.connect import Catalog
from lakelib.catalog.leases import take_lease
from lakelib.catalog.migrate import migrate
from tests.integration.faults.jobs import APPLICATION, SCHEMA, read, rows
from tests.integration.faults.ledger import Ledger
from tests.integration.faults.network import Network, network
from tests.integration.faults.processes import Worker
from tests.waiting import wait_until

_PATIENCE_SECONDS = 1.0
_BOUND_SECONDS = _PATIENCE_SECONDS + 14
"""The patience, what is left of the last try, and what tidies up after it; with room for a machine that is busy."""
_SOON_OVER = "&options=-c%20idle_in_transaction_session_timeout%3D1s"
"""In a URL: the server waits for less long than usually for a client that has fallen silent."""
_ONE = sql.SQL("select 1 as one")
_SESSIONS = sql.SQL("select count(*) from pg_stat_activity where pid = %(pid)s")


@pytest.fixture
def url(make_database: Callable[[], str]) -> str:
    return make_database()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is noticed sooner than usually; all else is as usual."""
    monkeypatch.setattr(connections, "SILENCE_SECONDS", 0.5)
    monkeypatch.setattr(connections, "_SHORTEST_SILENCE_SECONDS", 0.5)


@pytest.fixture
def lossy(url: str) -> Iterator[Network]:
    with network(url) as made:
        yield made


@pytest.fixture
def catalog(lossy: Network) -> Iterator[Catalog]:
    opened = Catalog(lossy.url, patience_seconds=_PATIENCE_SECONDS)
    migrate(opened)
    yield opened
    opened.close()


def failure(act: Callable[[], Any]) -> lakelib.RetryableError:
    began = time.monotonic()
    with pytest.raises(lakelib.RetryableError) as caught:
        act()
    assert time.monotonic() - began < _BOUND_SECONDS
    return caught.value


def names(db: psycopg.Connection[Any]) -> None:
    db.execute("insert into lake.namespace (name) values ('a') on conflict do nothing")


@pytest.mark.parametrize("lost", [{}, {"requests": False}], ids=["both ways", "replies"])
def test_a_read_whose_reply_is_lost_changed_nothing(lost: dict[str, bool], lossy: Network, catalog: Catalog) -> None:
    catalog.one(_ONE)
    lossy.lose(**lost)

    assert failure(lambda: catalog.one(_ONE)).kind == "catalog_unreachable"

    lossy.heal()
    assert catalog.one(_ONE) == {"one": 1}


def test_what_was_lost_before_its_end_was_sent_changed_nothing(lossy: Network, catalog: Catalog) -> None:
    catalog.one(_ONE)
    lossy.lose_at(b"insert into lake.namespace", request_arrives=True)

    error = failure(lambda: catalog.run(names))

    assert error.kind == "catalog_unreachable"
    assert not isinstance(error, lakelib.OutcomeUnknownError)


@pytest.mark.parametrize("arrives", [True, False], ids=["reply lost", "request lost"])
def test_an_end_that_is_never_confirmed_is_an_unknown_outcome(arrives: bool, lossy: Network, catalog: Catalog) -> None:
    catalog.one(_ONE)
    lossy.lose_at(b"COMMIT\0", request_arrives=arrives)

    error = failure(lambda: catalog.run(names))

    assert isinstance(error, lakelib.OutcomeUnknownError)
    assert error.kind == "outcome_unknown"
    assert "unknown" in error.remedy
    lossy.heal()
    assert bool(catalog.all("list_namespaces")) is arrives


@pytest.mark.parametrize("arrives", [True, False], ids=["reply lost", "request lost"])
def test_a_single_statement_that_is_never_confirmed_is_an_unknown_outcome_if_it_changes_something(
    arrives: bool, lossy: Network, catalog: Catalog
) -> None:
    catalog.one(_ONE)
    lossy.lose_at(b"insert into lake.namespace", request_arrives=arrives)

    assert isinstance(failure(lambda: catalog.do("create_namespace", {"name": "a"})), lakelib.OutcomeUnknownError)

    lossy.heal()
    assert bool(catalog.all("list_namespaces")) is arrives


def test_a_connection_that_falls_silent_is_replaced_within_the_patience(lossy: Network, url: str) -> None:
    catalog = Catalog(lossy.url, patience_seconds=30)
    catalog.one(_ONE)
    lossy.lose_at(b"select 1 as one", request_arrives=False)
    threading.Timer(1.0, lossy.heal).start()

    assert catalog.one(_ONE) == {"one": 1}
    catalog.close()


def test_a_statement_that_the_server_is_at_is_waited_for(lossy: Network, catalog: Catalog) -> None:
    assert catalog.one(sql.SQL("select 1 as one from pg_sleep(3)")) == {"one": 1}


def test_threads_get_their_connections_though_others_are_stuck(lossy: Network, url: str) -> None:
    """More are stuck than there are connections."""
    catalog = Catalog(lossy.url, patience_seconds=30, max_connections=2)
    catalog.one(_ONE)
    lossy.lose()
    threading.Timer(1.0, lossy.heal).start()

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(lambda _: catalog.one(_ONE), range(6))) == [{"one": 1}] * 6
    catalog.close()


def test_who_finds_no_connection_free_is_told_so_in_time(url: str) -> None:
    catalog = Catalog(url, patience_seconds=_PATIENCE_SECONDS, max_connections=1)
    release = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        stuck = threads.submit(catalog.run, lambda _: release.wait(30))
        error = failure(lambda: catalog.one(_ONE))
        release.set()
        stuck.result()

    assert error.kind == "catalog_busy"
    assert "all 1 connections" in str(error)
    assert catalog.one(_ONE) == {"one": 1}
    catalog.close()


def test_one_query_is_one_round_trip(lossy: Network, catalog: Catalog) -> None:
    for _ in range(3):
        catalog.one(_ONE)
    before = lossy.round_trips

    catalog.one(_ONE)

    assert lossy.round_trips == before + 1


def calls(lake: lakelib.Lake, table: lakelib.Table) -> dict[str, Callable[[], Any]]:
    """What is done while the network is gone, by name."""
    staged = table.stage_upsert(rows({2: ("tue", 2)}))
    lease = take_lease(lake._runtime.catalog, table._now(), 1)
    return {
        "connect": lambda: lakelib.connect(warehouse=lake.warehouse, catalog=lake._runtime.catalog.url).close(),
        "upsert": lambda: table.upsert(rows({1: ("mon", 1)}), idempotency_key=(APPLICATION, 1)),
        "scan": lambda: read(table),
        "files": lambda: list(table.files()),
        "publish": staged.publish,
        "expire": lambda: table.expire(keep_last=1),
        "vacuum": lake.vacuum,
        "lease": lease.renew,
    }


def lose_patience_soon(lake: lakelib.Lake, url: str) -> None:
    catalog = Catalog(url, patience_seconds=_PATIENCE_SECONDS)
    lake._runtime = replace(lake._runtime, catalog=catalog)
    lake._runtime.ownership.catalog = catalog


@pytest.mark.parametrize("call", ["connect", "upsert", "scan", "files", "publish", "expire", "vacuum", "lease"])
def test_every_call_ends_in_time_and_works_when_the_network_is_back(
    call: str, lossy: Network, url: str, tmp_path: Path
) -> None:
    with lakelib.connect(warehouse=tmp_path, catalog=lossy.url) as lake:
        lose_patience_soon(lake, lossy.url)
        lake.create_namespace("shop")
        table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
        table.upsert(rows({3: ("mon", 3)}))
        act = calls(lake, table)[call]
        lossy.lose()

        error = failure(act)

        begins_with_a_change = ("lease", "publish", "upsert")
        assert error.kind == "catalog_unreachable" or call in begins_with_a_change
        assert error.kind in ("catalog_unreachable", "outcome_unknown")
        lossy.heal()
        began = time.monotonic()
        act()
        assert time.monotonic() - began < _BOUND_SECONDS
        lake._runtime.catalog.close()


@pytest.mark.parametrize("requests", [2, 6, 10, 14])
def test_an_upsert_that_loses_the_network_midway_is_done_once_when_it_is_repeated(
    requests: int, lossy: Network, tmp_path: Path
) -> None:
    url = lossy.url + _SOON_OVER
    with lakelib.connect(warehouse=tmp_path, catalog=url) as lake:
        lose_patience_soon(lake, url)
        lake.create_namespace("shop")
        table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
        lossy.lose_after(requests)
        began = time.monotonic()

        with suppress(lakelib.RetryableError):
            table.upsert(rows({1: ("mon", 1)}), idempotency_key=(APPLICATION, 1))

        assert time.monotonic() - began < _BOUND_SECONDS
        lossy.heal()
        assert table.upsert(rows({1: ("mon", 1)}), idempotency_key=(APPLICATION, 1)).id == 1
        assert read(table) == {1: ("mon", 1)}
        assert len(table.history()) == 1
        lake._runtime.catalog.close()


def freeze_in_a_transaction(say: Callable[[Any], None], url: str) -> None:
    """Holds the tables' rows and says no more."""

    def work(db: psycopg.Connection[Any]) -> None:
        db.execute('select from lake."table" for no key update')
        os.kill(os.getpid(), signal.SIGSTOP)

    Catalog(url).run(work)


def test_who_freezes_between_two_statements_holds_a_table_for_a_bounded_time(ledger: Ledger) -> None:
    table = ledger.lake.table("shop.a")
    table.upsert(rows({1: ("mon", 1)}))
    frozen = Worker(freeze_in_a_transaction, (ledger.url + _SOON_OVER,))
    pid = frozen._process.pid
    assert pid is not None
    try:
        wait_until(lambda: " T " in Path(f"/proc/{pid}/stat").read_text())
        began = time.monotonic()
        table.upsert(rows({2: ("mon", 2)}))
        assert time.monotonic() - began < _BOUND_SECONDS
    finally:
        os.kill(pid, signal.SIGKILL)
        frozen.outcome(5)

    assert read(table) == {1: ("mon", 1), 2: ("mon", 2)}


def test_a_lock_that_is_not_given_up_is_said_to_be_waited_for(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LOCK_SECONDS", 1)
    catalog = Catalog(ledger.url, patience_seconds=0.5)
    with psycopg.connect(ledger.url) as holder:
        holder.execute('select from lake."table" for update')
        error = failure(lambda: catalog.run(lambda db: db.execute('update lake."table" set dropped_at = null')))
    catalog.close()

    assert error.kind == "catalog_busy"
    assert not isinstance(error, lakelib.OutcomeUnknownError)
    assert 'in relation "table"' in str(error)


def test_the_server_itself_ends_what_takes_too_long(ledger: Ledger) -> None:
    """As the session is told when it is opened."""
    asked = sql.SQL("select current_setting('{}') as value")

    def setting(name: str) -> str:
        row = ledger.lake._runtime.catalog.one(sql.SQL(asked.as_string().format(name)))
        assert row is not None
        return str(row["value"])

    assert setting("lock_timeout") == "5s"
    assert setting("statement_timeout") == "5min"
    assert setting("idle_in_transaction_session_timeout") == "10s"
    assert setting("default_transaction_isolation") == "read committed"


def test_what_the_url_says_of_a_session_goes_before(ledger: Ledger) -> None:
    catalog = Catalog(f"{ledger.url}&options=-c%20lock_timeout%3D7s&application_name=mine")
    asked = "select current_setting('lock_timeout') as wait, current_setting('application_name') as name"

    assert catalog.one(sql.SQL(asked)) == {"wait": "7s", "name": "mine"}
    catalog.close()


def test_a_pooler_that_knows_no_settings_of_sessions_is_used_without_them(lossy: Network, url: str) -> None:
    lossy.refuse_settings()
    catalog = Catalog(lossy.url)

    migrate(catalog)

    assert catalog.one(_ONE) == {"one": 1}
    assert catalog.one(sql.SQL("select current_setting('lock_timeout') as wait")) == {"wait": "0"}
    catalog.close()


def test_work_that_thinks_for_too_long_in_a_transaction_loses_it_and_begins_again(url: str) -> None:
    catalog, other = Catalog(url + _SOON_OVER.replace("1s", "100ms")), Catalog(url)
    tries: list[int] = []

    def work(db: psycopg.Connection[Any]) -> int:
        db.execute("select 1")
        tries.append(db.info.backend_pid)
        if len(tries) == 1:
            wait_until(lambda: not other.one(_SESSIONS, {"pid": tries[0]})["count"])
        db.execute("select 1")
        return len(tries)

    assert catalog.run(work) == 2
    catalog.close()
    other.close()


def test_a_statement_that_takes_too_long_is_ended_by_the_server_and_said_so(url: str) -> None:
    catalog = Catalog(f"{url}&options=-c%20statement_timeout%3D100ms", patience_seconds=0.1)

    error = failure(lambda: catalog.one(sql.SQL("select pg_sleep(5)")))

    assert error.kind == "catalog_busy"
    assert "statement timeout" in str(error)
    catalog.close()
