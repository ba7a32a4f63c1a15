"""Events: who publishes wakes those who listen, outside its transaction; none is lost for who was not told."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

import lakelib
from lakelib.catalog import events
from lakelib.catalog.connections import Session
from lakelib.catalog.queries import name_of
from lakelib.ops import watch
from tests.integration.faults.jobs import SCHEMA, rows

_LONG_SECONDS = 60.0
"""Longer than any test waits: who comes before was woken."""


@pytest.fixture
def table(lake: lakelib.Lake) -> lakelib.Table:
    table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
    table.upsert(rows({1: ("mon", 1)}))
    return table


@pytest.fixture
def ear(catalog_url: str) -> Iterator[psycopg.Connection[Any]]:
    """Another program that listens."""
    with psycopg.connect(catalog_url, autocommit=True) as ear:
        ear.execute("listen lake_commit")
        yield ear


def heard(ear: psycopg.Connection[Any]) -> list[dict[str, Any]]:
    return [json.loads(each.payload) for each in ear.notifies(timeout=0.3)]


def listen(ear: psycopg.Connection[Any], table_id: int | None = None, duration: str = "1 minute") -> None:
    ear.execute("select lake.listen_v1(gen_random_uuid(), %s, %s)", (table_id, duration))


def ids(found: Any) -> list[int]:
    return [each.id for each in found]


class Watching:
    """A watcher in a thread, and when it has heard of what."""

    def __init__(self, lake: lakelib.Lake, **options: Any) -> None:
        self.found: list[int] = []
        self.moments: list[float] = []
        self.error: Exception | None = None
        self._stream = lake.watch("shop.a", **options)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for each in self._stream:
                self.found.append(each.id)
                self.moments.append(time.monotonic())
        except lakelib.LakeError as error:
            self.error = error

    def wait_for(self, count: int, seconds: float = 20) -> None:
        deadline = time.monotonic() + seconds
        while len(self.found) < count:
            assert time.monotonic() < deadline, self.found
            time.sleep(0.002)

    def join(self, seconds: float = 20) -> None:
        self._thread.join(seconds)
        assert not self._thread.is_alive()


@pytest.fixture
def never_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watcher who does not look before he is woken."""
    monkeypatch.setattr(watch, "_POLL_SECONDS", _LONG_SECONDS)


def wait_for_listener(connection: psycopg.Connection[Any]) -> None:
    while connection.execute("select count(*) from lake.listener").fetchone() == (0,):
        time.sleep(0.005)


# What is told


def test_a_commit_is_told_in_ids_to_those_who_have_said_that_they_listen(
    lake: lakelib.Lake, table: lakelib.Table, ear: psycopg.Connection[Any], connection: psycopg.Connection[Any]
) -> None:
    table.upsert(rows({2: ("mon", 2)}))
    assert heard(ear) == []

    listen(ear, table.ref.id)
    table.upsert(rows({3: ("tue", 3)}))
    table.overwrite(rows({4: ("wed", 4)}))

    known = connection.execute("select path, id from lake.partition").fetchall()
    days = {path.removeprefix("day="): number for path, number in known}
    first, second = heard(ear)
    assert first == {"table": table.ref.id, "snapshot": 3, "partitions": [days["tue"]]}
    assert (second["snapshot"], sorted(second["partitions"])) == (4, sorted(days.values()))


def test_a_transaction_is_told_a_snapshot_each_and_what_is_staged_is_not(
    lake: lakelib.Lake, table: lakelib.Table, ear: psycopg.Connection[Any]
) -> None:
    other = lake.create_table("shop.b", SCHEMA, primary_key=["id"])
    listen(ear)
    staged = [each.stage_upsert(rows({9: ("mon", 9)})) for each in (table, other)]
    assert heard(ear) == []
    with lake.transaction() as transaction:
        for each in staged:
            transaction.add(each)

    assert [(each["table"], each["snapshot"]) for each in heard(ear)] == [(table.ref.id, 2), (other.ref.id, 1)]


def test_many_partitions_are_told_by_none(
    lake: lakelib.Lake, table: lakelib.Table, ear: psycopg.Connection[Any]
) -> None:
    listen(ear)
    for count in (100, 101):
        table.upsert(rows({1000 * count + number: (f"day {count} {number}", 0) for number in range(count)}))

    assert [each["partitions"] and len(each["partitions"]) for each in heard(ear)] == [100, None]


def test_who_listens_elsewhere_or_has_stopped_costs_nothing(
    lake: lakelib.Lake, table: lakelib.Table, ear: psycopg.Connection[Any], told: Callable[[], int]
) -> None:
    listen(ear, table.ref.id + 1)
    listen(ear, table.ref.id, "0 seconds")
    table.upsert(rows({2: ("mon", 2)}))
    assert (told(), heard(ear)) == (0, [])
    listen(ear)
    table.upsert(rows({2: ("mon", 2)}))
    assert told() == 1


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often somebody was told."""
    asked: list[str | None] = []
    execute = Session.execute

    def noting(self: Session, statement: Any, *given: Any, **options: Any) -> Any:
        asked.append(name_of(statement))
        return execute(self, statement, *given, **options)

    monkeypatch.setattr(Session, "execute", noting)
    return lambda: asked.count("tell")


def test_what_cannot_be_told_fails_nothing(
    lake: lakelib.Lake, table: lakelib.Table, ear: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    listen(ear)
    execute = Session.execute

    def failing(self: Session, statement: Any, *given: Any, **options: Any) -> Any:
        if name_of(statement) == "tell":
            self.close()
            raise psycopg.OperationalError("the connection is lost")
        return execute(self, statement, *given, **options)

    monkeypatch.setattr(Session, "execute", failing)
    began = time.monotonic()
    assert table.upsert(rows({2: ("mon", 2)})).id == 2
    assert time.monotonic() - began < 5


# Watching


def test_a_watcher_is_woken_by_each_commit(
    lake: lakelib.Lake, table: lakelib.Table, connection: psycopg.Connection[Any], never_by_itself: None
) -> None:
    watching = Watching(lake, timeout=_LONG_SECONDS)
    wait_for_listener(connection)
    for number in range(2, 12):
        table.upsert(rows({number: ("mon", number)}))
        watching.wait_for(number - 1)

    assert watching.found == list(range(2, 12))


def test_from_publish_to_the_watchers_ear_it_takes_milliseconds(
    lake: lakelib.Lake, table: lakelib.Table, connection: psycopg.Connection[Any], never_by_itself: None
) -> None:
    watching = Watching(lake, timeout=_LONG_SECONDS)
    wait_for_listener(connection)
    delays = []
    for number in range(2, 23):
        table.upsert(rows({number: ("mon", number)}))
        published = time.monotonic()
        watching.wait_for(number - 1)
        delays.append(watching.moments[-1] - published)

    assert sorted(delays)[len(delays) // 2] < 0.05


def test_one_who_goes_on_misses_none_whether_it_has_expired_or_not(lake: lakelib.Lake, table: lakelib.Table) -> None:
    for number in range(2, 8):
        table.upsert(rows({number: ("mon", number)}))
    table.expire(keep_last=1)
    table.tag("end")

    assert ids(lake.watch("shop.a", after=2, timeout=0)) == [3, 4, 5, 6, 7]
    assert ids(lake.watch(table, after=0, timeout=timedelta(0))) == list(range(1, 8))
    assert ids(lake.watch(table, after="tag:end", timeout=0.01)) == ids(lake.watch(table, timeout=0)) == []
    assert ids(lake.watch(table, after=0, timeout=0)) == list(range(1, 8))


def test_what_comes_between_the_call_and_the_first_look_is_not_lost(lake: lakelib.Lake, table: lakelib.Table) -> None:
    stream = lake.watch(table, timeout=5)
    table.upsert(rows({2: ("mon", 2)}))
    assert next(stream).id == 2


def test_one_who_was_not_told_finds_it_by_himself(
    lake: lakelib.Lake, table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "tell", lambda *_: None)
    monkeypatch.setattr(watch, "_POLL_SECONDS", 0.1)
    watching = Watching(lake, timeout=_LONG_SECONDS)
    table.upsert(rows({2: ("mon", 2)}))
    watching.wait_for(1)


def test_a_watcher_whose_connections_are_ended_goes_on(
    lake: lakelib.Lake, table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    watching = Watching(lake, timeout=_LONG_SECONDS)
    for number in range(2, 6):
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
        table.upsert(rows({number: ("mon", number)}))
    watching.wait_for(4)
    assert watching.found == [2, 3, 4, 5]


def test_a_watcher_behind_a_pooler_that_cannot_listen_looks_by_himself(
    lake: lakelib.Lake, table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Session:
        raise psycopg.OperationalError("no")

    monkeypatch.setattr("lakelib.catalog.connect.Catalog.open_apart", refuse)
    watching = Watching(lake, timeout=_LONG_SECONDS)
    table.upsert(rows({2: ("mon", 2)}))
    watching.wait_for(1)


def test_a_watch_ends_with_its_time_and_says_that_it_is_over(
    lake: lakelib.Lake, table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    began = time.monotonic()
    assert ids(lake.watch(table, timeout=0.3)) == []
    assert 0.3 <= time.monotonic() - began < 5
    found = connection.execute("select count(*) from lake.listener where until > clock_timestamp()")
    assert found.fetchone() == (0,)


def test_a_watch_that_is_given_up_leaves_no_connection(
    lake: lakelib.Lake, table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    stream = lake.watch(table, after=0)
    assert next(stream).id == 1
    stream.close()  # type: ignore[attr-defined]
    listening = "select count(*) from pg_stat_activity where datname = current_database() and query ilike '%listen%'"
    own = " and pid <> pg_backend_pid()"
    deadline = time.monotonic() + 10
    while connection.execute((listening + own).encode()).fetchone() != (0,):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_watch_of_a_dropped_table_ends_with_an_error(
    lake: lakelib.Lake, table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_POLL_SECONDS", 0.05)
    watching = Watching(lake, timeout=_LONG_SECONDS)
    lake.drop_table("shop.a")
    watching.join()
    assert (watching.error and watching.error.kind) == "table_not_found"  # type: ignore[attr-defined]


@pytest.mark.parametrize("timeout", [-1, timedelta(seconds=-1), float("nan"), float("inf"), "5", True, timedelta.max])
def test_a_wrong_time_is_refused_at_once(lake: lakelib.Lake, table: lakelib.Table, timeout: Any) -> None:
    with pytest.raises(lakelib.InvalidInputError) as caught:
        lake.watch(table, timeout=timeout)
    assert caught.value.kind == "invalid_timeout"


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        (2, "snapshot_not_found"),
        (-1, "snapshot_not_found"),
        ("x", "invalid_at"),
        (datetime(2100, 1, 1, tzinfo=UTC), "moment_to_come"),
    ],
)
def test_a_wrong_beginning_is_refused_at_once(lake: lakelib.Lake, table: lakelib.Table, after: Any, kind: str) -> None:
    with pytest.raises(lakelib.LakeError) as caught:
        lake.watch(table, after=after)
    assert caught.value.kind == kind
