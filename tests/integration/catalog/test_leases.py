"""A reader holds its snapshot for as long as it reads, and no longer."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import lakelib
from lakelib.catalog import leases
from lakelib.work import read
from tests.integration.faults.jobs import SCHEMA, rows
from tests.waiting import wait_until

LEASES = "select snapshot_id, holder, expires_at > clock_timestamp() + interval '10 minutes' from lake.lease"


COUNT = "select count(*) from lake.lease"
_SHORT = timedelta(seconds=0.6)


@pytest.fixture
def table(lake: lakelib.Lake, monkeypatch: pytest.MonkeyPatch) -> lakelib.Table:
    """One file a partition, each read by itself, so that a stream of batches has several pieces."""
    monkeypatch.setattr("lakelib.plan.scan._GATHERED_FILES", 1)
    table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
    table.upsert(rows({number: (f"day {number}", number) for number in range(4)}))
    return table


def test_a_lease_is_there_while_batches_are_read_and_gone_after(
    table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    batches = table.scan().to_batches()
    next(batches)
    [(snapshot_id, holder, lasts)] = connection.execute(LEASES).fetchall()
    assert (snapshot_id, lasts) == (1, True)
    assert "/" in holder

    assert sum(batch.num_rows for batch in batches) == 3
    assert connection.execute(LEASES).fetchall() == []


def test_a_lease_ends_when_the_reader_stops_early_or_fails(
    table: lakelib.Table, connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = table.scan().to_batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert connection.execute(LEASES).fetchall() == []

    def fail(*arguments: Any) -> None:
        raise lakelib.CorruptionError("broken")

    monkeypatch.setattr("lakelib.ops.read.read_splits", fail)
    with pytest.raises(lakelib.CorruptionError):
        table.scan().to_arrow()
    assert connection.execute(LEASES).fetchall() == []


def test_a_snapshot_that_is_being_read_cannot_be_forgotten(
    table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    batches = table.scan().to_batches()
    next(batches)

    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        connection.execute("delete from lake.snapshot where id = 1")

    assert sum(batch.num_rows for batch in batches) == 3
    connection.execute("delete from lake.snapshot where id = 1")


def test_a_lease_on_a_snapshot_that_is_gone_is_a_clear_error(
    table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    scan = table.scan()
    connection.execute("delete from lake.snapshot where id = 1")

    with pytest.raises(lakelib.NotFoundError) as caught:
        scan.to_arrow()

    assert caught.value.kind == "snapshot_not_found"


def test_a_lease_is_renewed_and_a_lost_one_is_a_retryable_error(
    lake: lakelib.Lake, table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    info = table._now()
    lease = leases.take_lease(lake._runtime.catalog, info, 1)
    connection.execute("update lake.lease set expires_at = clock_timestamp() + interval '1 second'")

    lease.renew()
    assert connection.execute(LEASES).fetchall()[0][2] is True

    connection.execute("delete from lake.lease")
    with pytest.raises(lakelib.RetryableError) as caught:
        lease.renew()
    assert caught.value.kind == "lease_lost"
    lease.release()


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_DURATION", _SHORT)


@pytest.fixture
def slow_read(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Lets something happen in the middle of each read, before the first split gives a row."""

    def arrange(happen: Callable[[], None]) -> None:
        def slowed(read: Callable[..., Iterator[pa.Table]]) -> Callable[..., Iterator[pa.Table]]:
            def read_slowly(*arguments: Any) -> Iterator[pa.Table]:
                with once:
                    if not done:
                        done.append(True)
                        happen()
                return read(*arguments)

            return read_slowly

        once, done = threading.Lock(), list[bool]()
        monkeypatch.setattr("lakelib.ops.read.read_splits", slowed(read.read_splits))
        monkeypatch.setattr("lakelib.ops.delete_files.read_split", slowed(read.read_split))

    return arrange


def wait_for_renewal(connection: psycopg.Connection[Any]) -> None:
    """Returns once the one lease lasts longer than it did."""

    def expiry() -> Any:
        [(expires_at,)] = connection.execute("select expires_at from lake.lease").fetchall()
        return expires_at

    first = expiry()
    wait_until(lambda: expiry() > first + _SHORT)


@pytest.mark.usefixtures("short_leases")
def test_a_read_that_gives_no_rows_for_long_keeps_its_lease(
    table: lakelib.Table, connection: psycopg.Connection[Any], slow_read: Callable[[Callable[[], None]], None]
) -> None:
    slow_read(lambda: wait_for_renewal(connection))

    assert table.scan().to_arrow().num_rows == 4

    assert connection.execute(COUNT).fetchall() == [(0,)]


@pytest.mark.usefixtures("short_leases")
def test_a_rewriting_delete_that_takes_long_keeps_its_lease(
    lake: lakelib.Lake, connection: psycopg.Connection[Any], slow_read: Callable[[Callable[[], None]], None]
) -> None:
    table = lake.create_table("shop.log", SCHEMA)
    table.append(rows({1: ("mon", 1), 2: ("mon", 2)}))
    slow_read(lambda: wait_for_renewal(connection))

    table.delete("value = 1")

    assert table.scan(columns=["value"]).to_arrow().to_pylist() == [{"value": 2}]


@pytest.mark.usefixtures("short_leases")
def test_a_stream_whose_consumer_pauses_keeps_its_lease(
    table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    batches = table.scan().to_batches()
    next(batches)
    wait_for_renewal(connection)
    assert sum(batch.num_rows for batch in batches) == 3


@pytest.mark.usefixtures("short_leases")
def test_a_read_whose_lease_was_lost_ends_in_a_clear_error(
    lake: lakelib.Lake,
    table: lakelib.Table,
    connection: psycopg.Connection[Any],
    slow_read: Callable[[Callable[[], None]], None],
) -> None:
    def lose() -> None:
        connection.execute("delete from lake.lease")
        wait_until(lambda: bool(lake._runtime.leases._lost))

    slow_read(lose)

    with pytest.raises(lakelib.RetryableError) as caught:
        table.scan().to_arrow()

    assert caught.value.kind == "lease_lost"


def test_a_file_that_went_with_the_lease_is_no_corruption(
    table: lakelib.Table, connection: psycopg.Connection[Any], slow_read: Callable[[Callable[[], None]], None]
) -> None:
    def lose() -> None:
        connection.execute("delete from lake.lease")
        raise lakelib.CorruptionError("The file is gone.")

    slow_read(lose)

    with pytest.raises(lakelib.RetryableError) as caught:
        table.scan().to_arrow()

    assert caught.value.kind == "lease_lost"


@pytest.mark.usefixtures("short_leases")
def test_nothing_runs_on_when_nothing_is_read(lake: lakelib.Lake, table: lakelib.Table) -> None:
    table.scan().to_arrow()
    keeper = lake._runtime.leases
    wait_until(lambda: keeper._thread is None)

    next(table.scan().to_batches())
    thread = keeper._thread
    assert thread is not None
    lake.close()
    wait_until(lambda: not thread.is_alive())


def test_a_reader_gives_its_lease_back_when_it_is_closed_exhausted_or_dropped(
    table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    closed = table.scan().to_reader()
    assert closed.read_next_batch().num_rows == 1
    assert connection.execute(COUNT).fetchall() == [(1,)]
    closed.close()
    assert connection.execute(COUNT).fetchall() == [(0,)]

    with table.scan().to_reader() as left:
        left.read_next_batch()
    assert connection.execute(COUNT).fetchall() == [(0,)]

    exhausted = table.scan().to_reader()
    assert exhausted.read_all().num_rows == 4
    assert connection.execute(COUNT).fetchall() == [(0,)]

    dropped = table.scan().to_reader()
    dropped.read_next_batch()
    del dropped
    assert connection.execute(COUNT).fetchall() == [(0,)]
