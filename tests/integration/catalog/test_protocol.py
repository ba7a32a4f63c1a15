"""Promises of the commit protocol: one moment, whose rows a publish tells of, waits that end, and what a step costs."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pyarrow as pa
import pytest

import lakelib
from lakelib.catalog import commits
from lakelib.catalog.connections import Stack
from lakelib.ops import patience
from lakelib.ops.turn import while_busy
from lakelib.specs.suite import Suite, parse_suite
from tests.integration.faults.jobs import SCHEMA, read, rows

HOLD = """select from lake."table" where name = %s for update"""


@pytest.fixture
def table(lake: lakelib.Lake) -> lakelib.Table:
    table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
    table.upsert(rows({1: ("mon", 1)}))
    return table


@contextmanager
def transaction(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url) as connection:
        yield connection


# One moment


def test_what_is_published_together_has_one_moment_above_every_head(lake: lakelib.Lake, table: lakelib.Table) -> None:
    other = lake.create_table("shop.b", SCHEMA, primary_key=["id"])
    for number in range(5):
        other.upsert(rows({number: ("mon", 0)}))
    staged = [
        table.stage_upsert(rows({2: ("mon", 2)})),
        other.stage_upsert(rows({2: ("mon", 2)})),
        table.stage_upsert(rows({3: ("mon", 3)})),
    ]
    heads = [each.head for each in (table, other)]

    with lake.transaction() as together:
        for each in staged:
            together.add(each)

    moments = {snapshot.committed_at for snapshot in together.snapshots}
    assert len(moments) == 1
    moment = moments.pop()
    assert all(head is not None and head.committed_at < moment for head in heads)
    assert table.scan(at=moment).snapshot_id == 3, "the last of the transaction's"
    assert other.scan(at=moment).snapshot_id == 6
    just_before = moment - timedelta(microseconds=1)
    assert (table.scan(at=just_before).snapshot_id, other.scan(at=just_before).snapshot_id) == (1, 5)


def test_a_reader_of_this_very_moment_waits_for_who_is_publishing(table: lakelib.Table, catalog_url: str) -> None:
    staged = table.stage_upsert(rows({2: ("mon", 2)}))
    found: list[int] = []
    with transaction(catalog_url) as publishing:
        how = '{"patience_ms": "0", "epoch": 1}'
        publishing.execute("select lake.publish_v1(array[%s]::uuid[], %s::jsonb)", [staged.id, how])
        moment = datetime.now(UTC)
        reading = threading.Thread(target=lambda: found.append(table.scan(at=moment).snapshot_id))
        reading.start()
        reading.join(0.3)
        assert reading.is_alive()
    reading.join(10)

    assert found == [table.scan(at=moment).snapshot_id] == [2]


def test_a_moment_that_is_about_to_come_is_waited_for(lake: lakelib.Lake, table: lakelib.Table) -> None:
    other = lake.create_table("shop.b", SCHEMA, primary_key=["id"])
    found: list[int] = []
    moment = datetime.now(UTC) + timedelta(seconds=1.5)
    reading = threading.Thread(target=lambda: found.append(table.scan(at=moment).snapshot_id))
    reading.start()
    reading.join(0.3)
    with lake.transaction() as together:
        together.add(table.stage_upsert(rows({2: ("mon", 2)})))
        together.add(other.stage_upsert(rows({2: ("mon", 2)})))
    reading.join(10)

    assert found == [table.scan(at=moment).snapshot_id] == [2]
    assert other.scan(at=moment).snapshot_id == 1


def test_a_moment_that_is_still_to_come_has_no_answer(table: lakelib.Table) -> None:
    for moment in (datetime.now(UTC) + timedelta(minutes=1), datetime(9999, 12, 31, tzinfo=UTC)):
        with pytest.raises(lakelib.NotFoundError, match="still to come") as refused:
            table.scan(at=moment)
        assert refused.value.kind == "moment_to_come"


def test_the_moment_of_a_head_that_is_a_little_ahead_is_answered_and_stays(
    table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("update lake.snapshot set committed_at = clock_timestamp() + interval '20 seconds'")
    ahead = table.history()[0].committed_at

    found = table.scan(at=ahead).snapshot_id
    table.upsert(rows({2: ("mon", 2)}))

    assert found == table.scan(at=ahead).snapshot_id == 1


def test_a_reader_of_a_moment_that_has_passed_waits_for_who_still_publishes_at_it(
    table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("update lake.snapshot set committed_at = committed_at - interval '1 day'")
    staged = table.stage_upsert(rows({2: ("mon", 2)}))
    found: list[int] = []
    with transaction(catalog_url) as publishing:
        how = '{"patience_ms": "0", "epoch": 1}'
        publishing.execute("select lake.publish_v1(array[%s]::uuid[], %s::jsonb)", [staged.id, how])
        publishing.execute(
            "update lake.snapshot set committed_at = clock_timestamp() - interval '4 minutes' where commit_id = %s",
            [staged.id],
        )
        moment = datetime.now(UTC) - timedelta(minutes=3)
        reading = threading.Thread(target=lambda: found.append(table.scan(at=moment).snapshot_id))
        reading.start()
        reading.join(0.5)
    reading.join(10)

    assert found == [table.scan(at=moment).snapshot_id] == [2]


def test_a_clock_that_was_ahead_once_hides_no_later_rows(
    table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    before = datetime.now(UTC)
    connection.execute("update lake.snapshot set committed_at = committed_at + interval '1 day'")

    published = table.upsert(rows({2: ("mon", 2)}))

    assert published.committed_at < datetime.now(UTC) + timedelta(minutes=1)
    assert table.scan(at=datetime.now(UTC)).snapshot_id == 2
    with pytest.raises(lakelib.NotFoundError):
        table.scan(at=before)


def test_clocks_that_disagree_a_little_leave_moments_in_the_order_of_snapshots(
    table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("update lake.snapshot set committed_at = clock_timestamp() + interval '20 seconds'")
    head = table.head

    published = table.upsert(rows({2: ("mon", 2)}))

    assert head is not None
    assert published.committed_at == head.committed_at + timedelta(microseconds=1)


# Whose rows


def test_an_older_attempt_is_not_approved_while_a_newer_one_stands(table: lakelib.Table) -> None:
    older = table.stage_upsert(rows({2: ("mon", -1)}), idempotency_key=("load", 1))
    older.reject("negative")
    newer = table.stage_upsert(rows({2: ("mon", 5)}), idempotency_key=("load", 1))

    with pytest.raises(lakelib.ConflictError, match=str(newer.id)) as caught:
        older.publish(by="ann", reason="it is right")
    published = newer.publish()

    assert caught.value.kind == "fenced"
    assert not published.replayed
    assert read(table)[2] == ("mon", 5)


def test_a_newer_attempt_that_was_rejected_stands_as_well(table: lakelib.Table) -> None:
    older = table.stage_upsert(rows({2: ("mon", -1)}), idempotency_key=("load", 1))
    older.reject("negative")
    newer = table.stage_upsert(rows({2: ("mon", -5)}), idempotency_key=("load", 1))
    newer.reject("negative, too")

    with pytest.raises(lakelib.ConflictError):
        older.publish(by="ann", reason="it is right")
    newer.publish(by="ann", reason="it is right")

    assert read(table)[2] == ("mon", -5)


def test_a_write_under_a_version_that_was_published_tells_that_it_is_a_replay(table: lakelib.Table) -> None:
    first = table.upsert(rows({2: ("mon", 2)}), idempotency_key=("load", 5))

    again = table.upsert(rows({2: ("mon", 3)}), idempotency_key=("load", 5))
    older = table.upsert(rows({2: ("mon", 4)}), idempotency_key=("load", 4))

    assert (first.replayed, again.replayed, older.replayed) == (False, True, True)
    assert first == again == older
    assert "replayed" in repr(older)
    assert read(table)[2] == ("mon", 2)


def test_a_commit_whose_work_another_one_did_tells_that_it_is_a_replay(table: lakelib.Table) -> None:
    staged = table.stage_upsert(rows({2: ("mon", 2)}), idempotency_key=("load", 4))
    later = table.upsert(rows({2: ("mon", 3)}), idempotency_key=("load", 5))

    told = staged.publish()

    assert (told, told.replayed) == (later, True)
    assert staged.state == "expired"
    assert read(table)[2] == ("mon", 3)


def test_publishing_a_commit_again_is_no_replay(table: lakelib.Table) -> None:
    staged = table.stage_upsert(rows({2: ("mon", 2)}), idempotency_key=("load", 4))

    assert [staged.publish().replayed for _ in range(2)] == [False, False]


# Waits


def test_a_held_table_keeps_nobody_from_another_one(lake: lakelib.Lake, table: lakelib.Table, catalog_url: str) -> None:
    """Twelve threads of one process publish to a table whose row somebody holds."""
    other = lake.create_table("shop.b", SCHEMA, primary_key=["id"])
    other.upsert(rows({1: ("mon", 1)}))
    writers = [threading.Thread(target=table.upsert, args=(rows({key: ("mon", key)}),)) for key in range(2, 14)]
    waits: list[float] = []
    with transaction(catalog_url) as holding:
        holding.execute(HOLD, ["a"])
        for writer in writers:
            writer.start()
        until = time.monotonic() + 3
        while time.monotonic() < until:
            began = time.monotonic()
            assert other.scan().count() == 1
            other.upsert(rows({1: ("mon", 1)}))
            waits.append(time.monotonic() - began)
        assert all(writer.is_alive() for writer in writers)
    for writer in writers:
        writer.join(30)

    assert max(waits) < 10
    assert len(read(table)) == 13


def test_a_table_that_stays_held_is_told_in_time(
    table: lakelib.Table, catalog_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience.Patience.__init__, "__defaults__", (2.0,))
    with transaction(catalog_url) as holding:
        holding.execute(HOLD, ["a"])
        began = time.monotonic()
        for act in (
            lambda: table.upsert(rows({2: ("mon", 2)})),
            lambda: table.stage_upsert(rows({2: ("mon", 2)})).publish(),
            lambda: table.delete("value = 1"),
        ):
            with pytest.raises(lakelib.RetryableError, match=r"shop\.a|commit|Publishing") as caught:
                act()
            assert caught.value.kind == "catalog_busy"
        took = time.monotonic() - began

    assert took < 30
    assert read(table) == {1: ("mon", 1)}


@pytest.mark.parametrize("act", ["publish", "overwrite", "retarget"])
def test_questions_without_an_end_are_answered_in_time(
    table: lakelib.Table, connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    monkeypatch.setattr(patience.Patience.__init__, "__defaults__", (2.0,))
    target = {"day": "mon"}
    staged = table.stage_overwrite(rows({2: ("mon", 2)}), partitions=target)
    table.upsert(rows({3: ("mon", 3)}))
    connection.execute(
        """create or replace function lake.settle_reads_v1(own lake.commit, home lake."table", settled jsonb)
        returns void language plpgsql as $$ begin
            if own.reads_where is null then return; end if;
            perform lake.refuse_v1(own, home, 'unsettled', jsonb_build_object(
                'reads_where', '["unknown"]'::jsonb, 'partition_by', home.partition_by, 'partitions', '[]'::jsonb));
        end $$"""
    )
    catalog, waits = table._runtime.catalog, patience.Patience("Writing")
    acts: dict[str, Callable[[], object]] = {
        "publish": lambda: staged.publish(),
        "overwrite": lambda: table.overwrite(rows({2: ("mon", 2)}), partitions=target),
        "retarget": lambda: while_busy(
            waits, lambda: commits.retarget(catalog, UUID(str(staged.id)), over_changes=True)
        ),
    }
    told: list[str] = []

    def work() -> None:
        with pytest.raises(lakelib.RetryableError) as caught:
            acts[act]()
        told.append(caught.value.kind)

    working = threading.Thread(target=work, daemon=True)
    working.start()
    working.join(15)

    assert told == ["catalog_busy"]


# What a step costs


class Counted:
    """Statements and transactions of a piece of work, without BEGIN and COMMIT."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements: list[str] = []
        self.transactions = 0
        execute, take = psycopg.Cursor.execute, Stack.take
        counted = self

        def count(self: Any, query: Any, *rest: Any, **options: Any) -> Any:
            text = query if isinstance(query, str) else query.as_string(None)
            counted.statements.append(" ".join(text.split())[:70])
            return execute(self, query, *rest, **options)

        def count_one(self: Any, *rest: Any, **options: Any) -> Any:
            counted.transactions += 1
            return take(self, *rest, **options)

        monkeypatch.setattr(psycopg.Cursor, "execute", count)
        monkeypatch.setattr(Stack, "take", count_one)

    def of(self, work: Callable[[], object]) -> tuple[int, int]:
        self.statements, self.transactions = [], 0
        work()
        return len(self.statements), self.transactions


def gate_of(scope: str) -> Suite:
    check = f"{{type: expect_column_values_to_not_be_null, kwargs: {{column: value}}, scope: {scope}}}"
    return parse_suite(f"name: g\nexpectations: [{check}]", "g")


MOST: dict[str, tuple[Callable[[lakelib.Table], object], tuple[int, int]]] = {
    "upsert": (lambda table: table.upsert(rows({5: ("mon", 5)})), (1, 1)),
    "upsert with a key": (lambda table: table.upsert(rows({5: ("mon", 5)}), idempotency_key=("load", 1)), (1, 1)),
    "upsert into 300 new partitions": (
        lambda table: table.upsert(rows({number: (f"day {number}", 5) for number in range(300)})),
        (4, 2),
    ),
    "overwrite": (lambda table: table.overwrite(rows({5: ("mon", 5)})), (8, 5)),
    "delete": (lambda table: table.delete("value = 1"), (8, 5)),
    "scan": (lambda table: table.scan().to_arrow(), (5, 4)),
    "stage and judge": (lambda table: table.stage_upsert(rows({5: ("mon", 5)})).judge(gate_of("staged")), (9, 8)),
    "stage and judge with the rows of others": (
        lambda table: table.stage_upsert(rows({5: ("mon", 5)})).judge(gate_of("merged")),
        (10, 9),
    ),
    "compact": (lambda table: table.compact(full=True), (13, 9)),
}


@pytest.mark.parametrize("case", MOST)
def test_a_step_takes_no_more_statements_than_these(
    case: str, table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    act, most = MOST[case]
    table.upsert(rows({2: ("mon", 2)}))
    counted = Counted(monkeypatch)

    found = counted.of(lambda: act(table))

    assert all(had <= may for had, may in zip(found, most, strict=True)), (found, counted.statements)


def test_10_000_new_partitions_are_staged_by_one_statement(lake: lakelib.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.create_table("shop.wide", "day BIGINT, value BIGINT", partition_by=["day"])
    counted = Counted(monkeypatch)
    data = pa.table({"day": range(10_000), "value": range(10_000)})

    found = counted.of(lambda: table.append(data))

    assert found <= (4, 2)
    assert len(table.partitions()) == 10_000


# What a commit holds


def test_a_staged_commit_that_only_adds_rows_holds_no_snapshot(table: lakelib.Table) -> None:
    """As one of a writer that was killed before it published."""
    table.stage_upsert(rows({2: ("mon", 2)}))
    table.upsert(rows({3: ("mon", 3)}))
    table.upsert(rows({4: ("mon", 4)}))

    assert table.expire(keep_last=1, grace=timedelta(0)).snapshots == (1, 2)


def test_a_staged_commit_that_only_adds_rows_still_publishes_after_an_expiry(table: lakelib.Table) -> None:
    staged = table.stage_upsert(rows({2: ("mon", 2)}))
    table.upsert(rows({2: ("mon", 3)}))
    table.compact(full=True)
    table.expire(keep_last=1, grace=timedelta(0))

    staged.publish()

    assert read(table) == {1: ("mon", 1), 2: ("mon", 2)}
