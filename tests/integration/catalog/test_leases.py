"""A reader holds its snapshot for as long as it reads, and no longer."""

from typing import Any

import psycopg
import pytest

import lakelib
from lakelib.catalog import snapshots
from lakelib.ops.inspect import reload
from tests.integration.faults.jobs import SCHEMA, rows

LEASES = "select snapshot_id, holder, expires_at > clock_timestamp() + interval '10 minutes' from lake.lease"


@pytest.fixture
def table(lake: lakelib.Lake) -> lakelib.Table:
    """One file a partition, so that a stream of batches has several pieces."""
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

    monkeypatch.setattr("lakelib.ops.read.read_split", fail)
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
    info = reload(lake._runtime, table._info)
    lease = snapshots.take_lease(lake._runtime.catalog, info, 1)
    connection.execute("update lake.lease set expires_at = clock_timestamp() + interval '1 second'")

    lease.renew()
    assert connection.execute(LEASES).fetchall()[0][2] is True

    connection.execute("delete from lake.lease")
    with pytest.raises(lakelib.RetryableError) as caught:
        lease.renew()
    assert caught.value.kind == "lease_lost"
    lease.release()
