"""Consumers: named positions that keep what they have not read, and move once from where they were read."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

import lakelib
from lakelib.catalog import commits, consumers, leases
from lakelib.catalog.queries import query
from lakelib.consumer import Consumer
from lakelib.model.positions import CHANGES, Advance, ReadRange, ranges_as_text
from lakelib.model.upkeep import describe_holdings
from tests.integration.catalog.test_retention import Beside, transaction
from tests.integration.faults.jobs import SCHEMA, read, rows

NOW = timedelta(0)
DAY = timedelta(days=1)
BACK = """
alter table lake."table" drop constraint table_merge_check;
drop trigger file_forgotten on lake.data_file;
drop table lake.shown, lake.shown_mask cascade;
alter table lake.table_schema drop column number cascade;
drop table lake.masked, lake.mask cascade;
drop function lake.queue_mask_v1, lake.forget_masked_v1;
alter table lake.commit drop column keys_until, drop column marks_run, drop column keys_beneath,
    drop column reads_beneath;
drop table lake.consumer, lake.listener cascade;
alter table lake.lease drop column last_snapshot_id;
drop trigger named_files_stay on lake.deletion_queue;
drop function lake.skip_named_v1;
alter table lake.commit drop column restores cascade;
drop index lake.snapshot_rollback;
alter table lake.data_file drop constraint data_file_table_id_path_commit_id_key;
alter table lake.data_file add unique (table_id, path);
delete from lake.migration where version >= 13;
delete from lake.upgrade where version >= 13;
update lake.upgrade set checksum = 'of version 12' where version = 0;
"""
AGE = "update lake.snapshot set committed_at = clock_timestamp() - %s where id = %s"


@pytest.fixture
def table(lake: lakelib.Lake) -> lakelib.Table:
    """Five snapshots, each a row."""
    table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
    for number in range(1, 6):
        table.upsert(rows({number: ("mon", number)}))
    return table


@pytest.fixture
def other(lake: lakelib.Lake) -> lakelib.Table:
    """Three snapshots."""
    other = lake.create_table("shop.b", SCHEMA, primary_key=["id"], partition_by=["day"])
    for number in range(1, 4):
        other.upsert(rows({number: ("mon", number)}))
    return other


def expire(table: lakelib.Table, **options: Any) -> tuple[int, ...]:
    """All but what something holds; the dry run says the same."""
    would = table.expire(keep_last=1, dry_run=True)
    done = table.expire(keep_last=1, grace=NOW, **options)
    assert (would.snapshots, would.kept_back) == (done.snapshots, done.kept_back)
    return done.snapshots


def kept(table: lakelib.Table) -> list[int]:
    return sorted(snapshot.id for snapshot in table.history())


def position(table: lakelib.Table, name: str = "billing") -> int:
    return table.consumer(name).position


# Making and removing


def test_a_consumer_is_made_once_and_stays_where_it_is(table: lakelib.Table) -> None:
    made = table.consumer("billing", after=2)
    again = table.consumer("billing", after=4)

    assert (made.name, made.table, made.position, made.keep_for) == ("billing", table, 2, timedelta(days=7))
    assert (again.position, [each.name for each in table.consumers()]) == (2, ["billing"])


def test_it_begins_before_the_first_snapshot_unless_told(table: lakelib.Table) -> None:
    table.tag("third", at=3)
    first = next(each for each in table.history() if each.id == 1)
    starts = (None, 0, "0", 3, "3", "tag:third", "consumer:c3", first.committed_at)
    assert [table.consumer(f"c{place}", after=after).position for place, after in enumerate(starts)] == (
        [0, 0, 0, 3, 3, 3, 3, 1]
    )


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        (6, "snapshot_not_found"),
        (-1, "snapshot_not_found"),
        (2**70, "snapshot_not_found"),
        (True, "invalid_at"),
        (1.5, "invalid_at"),
        ("soon", "invalid_at"),
        ("tag:none", "tag_not_found"),
        ("consumer:none", "consumer_not_found"),
        (datetime(2100, 1, 1, tzinfo=UTC), "moment_to_come"),
        (datetime(2000, 1, 1, tzinfo=UTC), "snapshot_not_found"),
    ],
)
def test_a_beginning_that_is_none_is_refused(table: lakelib.Table, after: Any, kind: str) -> None:
    with pytest.raises(lakelib.LakeError) as caught:
        table.consumer("billing", after=after)

    assert (caught.value.kind, list(table.consumers())) == (kind, [])


@pytest.mark.parametrize("name", ["", " a", "a\n", "a\0", "consumer:a", "x" * 201, "\ud800", None, 7])
def test_a_wrong_name_is_refused(table: lakelib.Table, name: Any) -> None:
    with pytest.raises(lakelib.InvalidInputError) as caught:
        table.consumer(name)

    assert caught.value.kind == "invalid_consumer"


@pytest.mark.parametrize("name", ["a b", "a'b", 'a"b', "été", "日", "%s", "x" * 200, "tag:a", "--yes"])
def test_an_unusual_name_is_one(table: lakelib.Table, name: str) -> None:
    consumer = table.consumer(name)
    assert consumer.advance(3) == 3
    assert [(each.name, each.position) for each in table.consumers()] == [(name, 3)]
    consumer.remove()
    assert list(table.consumers()) == []


@pytest.mark.parametrize("length", [timedelta(seconds=-1), timedelta.max, timedelta.min, 7, "7d", 0])
def test_a_wrong_length_is_refused_for_a_new_one_and_for_one_that_is_there(table: lakelib.Table, length: Any) -> None:
    table.consumer("old")
    for name in ("old", "new"):
        with pytest.raises(lakelib.InvalidInputError) as caught:
            table.consumer(name, keep_for=length)
        assert caught.value.kind == "invalid_retention"
    assert [each.name for each in table.consumers()] == ["old"]


@pytest.mark.parametrize("length", [NOW, timedelta(microseconds=1), 36_525 * DAY, timedelta(days=365_000)])
def test_any_other_length_is_kept_as_it_is_told_last(table: lakelib.Table, length: timedelta) -> None:
    assert table.consumer("billing", keep_for=length).keep_for == length
    assert table.consumer("billing").keep_for == length
    assert table.consumer("billing", keep_for=DAY).keep_for == DAY
    assert expire(table) == ()


def test_a_removed_consumer_is_gone_and_its_name_is_free(table: lakelib.Table) -> None:
    consumer = table.consumer("billing", after=2)
    consumer.remove()

    for act in (consumer.remove, lambda: consumer.position, lambda: consumer.lag, lambda: consumer.advance(3)):
        with pytest.raises(lakelib.NotFoundError) as caught:
            act()
        assert caught.value.kind == "consumer_not_found"
    assert repr(consumer) == "<Consumer 'billing' of shop.a: removed>"
    assert table.consumer("billing").position == 0


def test_a_beginning_that_expires_while_the_consumer_is_made_is_refused(
    table: lakelib.Table, connection: psycopg.Connection[Any], catalog_url: str
) -> None:
    with transaction(catalog_url) as expiring:
        expiring.execute(query("expire_snapshots"), {"table_id": table.ref.id, "ids": [1, 2]})
        making = Beside(lambda: table.consumer("billing", after=2), connection)

    assert making.outcome().kind == "snapshot_expired"
    assert list(table.consumers()) == []


# What it holds


def test_what_was_not_read_stays_with_the_state_before_it(table: lakelib.Table) -> None:
    table.consumer("billing", after=2)

    assert expire(table) == (1,)
    assert kept(table) == [2, 3, 4, 5]


def test_one_that_has_read_nothing_holds_from_the_first_snapshot_on(table: lakelib.Table) -> None:
    table.consumer("billing")

    assert expire(table) == ()


def test_one_that_has_read_all_holds_nothing_but_the_head(table: lakelib.Table) -> None:
    table.consumer("billing").advance(5)

    assert expire(table) == (1, 2, 3, 4)
    table.upsert(rows({6: ("mon", 6)}))
    assert expire(table) == ()
    assert kept(table) == [5, 6]


def test_what_it_does_not_read_for_too_long_goes_from_the_oldest_on(
    table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    """A snapshot stays until the commit after it has become too old."""
    table.consumer("billing", keep_for=2 * DAY, after=1)
    for number, days in ((1, 9), (2, 8), (3, 3), (4, 1), (5, 0)):
        connection.execute(AGE, (days * DAY, number))

    assert expire(table) == (1, 2)
    assert kept(table) == [3, 4, 5]


def test_one_that_keeps_for_no_time_holds_nothing(table: lakelib.Table) -> None:
    table.consumer("billing", keep_for=NOW, after=1)

    assert expire(table) == (1, 2, 3, 4)


def test_the_slowest_counts(table: lakelib.Table) -> None:
    for name, after in (("fast", 4), ("slow", 2), ("careless", 0)):
        table.consumer(name, after=after, keep_for=NOW if name == "careless" else None)

    assert expire(table) == (1,)


def test_consumers_of_other_tables_hold_nothing_here(table: lakelib.Table, other: lakelib.Table) -> None:
    other.consumer("billing")

    assert expire(table) == (1, 2, 3, 4)
    assert kept(other) == [1, 2, 3]


def test_an_expiry_names_the_consumers_that_hold(table: lakelib.Table) -> None:
    table.consumer("billing", after=2)
    table.tag("kept", at=3)

    result = table.expire(keep_last=1, dry_run=True)

    assert [(each.id, str(each.hold)) for each in result.kept_back] == (
        [(2, "consumer billing"), (3, "tag kept"), (4, "consumer billing")]
    )
    assert [line.partition(" (")[0] for line in describe_holdings(result.holdings)] == ["consumer billing", "tag kept"]


def test_an_expiry_under_way_comes_before_a_step_back(
    table: lakelib.Table, connection: psycopg.Connection[Any], catalog_url: str
) -> None:
    consumer = table.consumer("billing", after=5)
    with transaction(catalog_url) as expiring:
        expiring.execute(query("expire_snapshots"), {"table_id": table.ref.id, "ids": [1, 2]})
        going_back = Beside(lambda: consumer.advance(2, backwards=True), connection)

    assert going_back.outcome().kind == "consumer_past_expired"
    assert consumer.advance(3, backwards=True) == 3
    assert expire(table) == ()


def test_files_of_what_was_not_read_are_not_deleted(lake: lakelib.Lake, table: lakelib.Table) -> None:
    table.consumer("billing", after=5)
    table.compact(full=True)
    assert expire(table) == (1, 2, 3, 4)
    lake.vacuum(grace=NOW)

    assert read(table, at=5) == {number: ("mon", number) for number in range(1, 6)}


# Moving


def test_it_moves_on_and_back_only_if_told(table: lakelib.Table) -> None:
    consumer = table.consumer("billing")

    assert [consumer.advance(3), consumer.advance(3), consumer.advance(5)] == [3, 3, 5]
    with pytest.raises(lakelib.InvalidInputError) as caught:
        consumer.advance(4)
    assert (caught.value.kind, consumer.position) == ("consumer_backwards", 5)
    assert [consumer.advance(4, backwards=True), consumer.advance(0, backwards=True)] == [4, 0]
    [status] = table.consumers()
    assert (status.position, status.head, status.lag.snapshots, status.advanced_by) == (0, 5, 5, "postgres")


@pytest.mark.parametrize("to", [6, 2**62, 2**63 - 1])
def test_it_does_not_move_beyond_the_head(table: lakelib.Table, to: int) -> None:
    consumer = table.consumer("billing", after=1)
    with pytest.raises(lakelib.InvalidInputError) as caught:
        consumer.advance(to)
    assert (caught.value.kind, consumer.position) == ("consumer_beyond_head", 1)


@pytest.mark.parametrize("to", [-1, 2**63, True, 1.0, "3", object()])
def test_it_does_not_move_to_what_is_no_snapshot(table: lakelib.Table, to: Any) -> None:
    consumer = table.consumer("billing", after=1)
    with pytest.raises(lakelib.InvalidInputError) as caught:
        consumer.advance(to)
    assert (caught.value.kind, consumer.position) == ("invalid_position", 1)


def test_without_a_target_it_has_to_have_read(table: lakelib.Table) -> None:
    with pytest.raises(lakelib.InvalidInputError) as caught:
        table.consumer("billing").advance()
    assert caught.value.kind == "nothing_read"


def test_it_moves_only_from_the_position_that_was_read(table: lakelib.Table) -> None:
    one, two = table.consumer("billing"), table.consumer("billing")
    one.advance(3)

    with pytest.raises(lakelib.ConflictError) as caught:
        two.advance(4)
    assert (caught.value.kind, position(table)) == ("consumer_moved", 3)
    assert "stands at snapshot 3, not at 0" in caught.value.message
    assert two.position == 3
    assert two.advance(4) == 4


def test_of_many_that_move_it_at_once_one_does(table: lakelib.Table) -> None:
    handles = [table.consumer("billing") for _ in range(8)]
    results: list[Any] = []
    begin = threading.Barrier(len(handles))

    def move(handle: Consumer) -> None:
        begin.wait()
        try:
            results.append(handle.advance(3))
        except lakelib.LakeError as error:
            results.append(error.kind)

    threads = [threading.Thread(target=move, args=(handle,)) for handle in handles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, results)) == ["3", *["consumer_moved"] * 7]


def test_who_asks_again_for_the_reply_was_lost_is_answered_the_same(lake: lakelib.Lake, table: lakelib.Table) -> None:
    table.consumer("billing")
    wanted = Advance(table_id=table.ref.id, name="billing", from_id=0, to_id=3)
    other = Advance(table_id=table.ref.id, name="billing", from_id=0, to_id=3)
    catalog = lake.runtime.catalog

    outcomes = [commits.publish(catalog, [], epoch=1, advances=[each]) for each in (wanted, wanted, other)]

    assert [type(each).__name__ for each in outcomes] == ["Done", "Done", "NotAdvanced"]


def test_a_lake_that_is_another_by_now_moves_nothing(lake: lakelib.Lake, table: lakelib.Table) -> None:
    table.consumer("billing")
    wanted = Advance(table_id=table.ref.id, name="billing", from_id=0, to_id=3)

    outcome = commits.publish(lake.runtime.catalog, [], epoch=99, advances=[wanted])

    assert (type(outcome).__name__, position(table)) == ("IdentityDiffers", 0)


# Reading


def ops(changes: lakelib.Changes) -> list[tuple[str, int]]:
    return sorted((row["_op"], row["id"]) for row in changes.to_arrow().to_pylist())


def test_it_reads_what_it_has_not_read_and_goes_on_from_there(table: lakelib.Table) -> None:
    consumer = table.consumer("billing", after=3)

    assert ops(consumer.read()) == [("upsert", 4), ("upsert", 5)]
    assert ops(consumer.read()) == [("upsert", 4), ("upsert", 5)]
    assert (consumer.advance(), ops(consumer.read())) == (5, [])
    table.delete("id = 1")
    table.compact(full=True)
    assert ops(consumer.read()) == [("delete", 1)]
    assert (consumer.advance(), ops(consumer.read()), consumer.advance()) == (7, [], 7)


def test_a_limit_is_a_number_of_commits(table: lakelib.Table) -> None:
    consumer, read_ids = table.consumer("billing"), []
    while changes := ops(consumer.read(limit=2)):
        read_ids.append([number for _, number in changes])
        consumer.advance()
    assert read_ids == [[1, 2], [3, 4], [5]]


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "2"])
def test_a_wrong_limit_is_refused(table: lakelib.Table, limit: Any) -> None:
    with pytest.raises(lakelib.InvalidInputError) as caught:
        table.consumer("billing").read(limit=limit)
    assert caught.value.kind == "invalid_limit"


def test_views_columns_and_predicates_are_those_of_changes(table: lakelib.Table) -> None:
    consumer = table.consumer("billing", after=1)
    table.upsert(rows({2: ("mon", 20)}))

    assert consumer.read("all").count() == 5
    found = consumer.read("net", columns=["value"], where="id = 2").to_arrow().to_pylist()
    assert [(row["_change"], row["value"]) for row in found] == [("insert", 20)]
    with pytest.raises(lakelib.InvalidInputError):
        consumer.read("newest")


def test_it_moves_by_the_changes_that_were_read(table: lakelib.Table, other: lakelib.Table) -> None:
    consumer = table.consumer("billing")
    first, second = consumer.read(limit=2), table.changes(after=2, until=4)

    assert [consumer.advance(first), consumer.advance(second)] == [2, 4]
    with pytest.raises(lakelib.ConflictError) as moved:
        consumer.advance(second)
    with pytest.raises(lakelib.InvalidInputError) as caught:
        consumer.advance(other.changes(after=0))
    assert (moved.value.kind, caught.value.kind, consumer.position) == ("consumer_moved", "invalid_position", 4)


def test_who_looks_at_the_position_meanwhile_still_moves_from_where_he_has_read(table: lakelib.Table) -> None:
    one, two = table.consumer("billing"), table.consumer("billing")
    one.read(limit=3)
    two.advance(2)
    assert one.position == 2
    with pytest.raises(lakelib.ConflictError):
        one.advance()
    one.read()
    assert one.advance() == 5


def test_what_it_kept_is_read_after_everything_else_expired(lake: lakelib.Lake, table: lakelib.Table) -> None:
    consumer = table.consumer("billing", after=2)
    table.delete("id = 3")
    table.compact(full=True)
    expire(table)
    lake.vacuum(grace=NOW)

    assert ops(consumer.read("all")) == [("delete", 3), ("upsert", 3), ("upsert", 4), ("upsert", 5)]
    assert ops(consumer.read()) == [("delete", 3), ("upsert", 4), ("upsert", 5)]


def test_what_it_did_not_keep_is_an_error_and_no_gap(
    lake: lakelib.Lake, table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    consumer = table.consumer("billing", keep_for=NOW, after=1)
    table.overwrite(rows({9: ("mon", 9)}))
    expire(table)
    lake.vacuum(grace=NOW)
    with pytest.raises(lakelib.NotFoundError) as caught:
        consumer.read().to_arrow()
    assert caught.value.kind == "changes_expired"


def test_a_consumer_is_a_bound(table: lakelib.Table) -> None:
    table.consumer("billing", after=3)
    assert ops(table.changes(after="consumer:billing")) == [("upsert", 4), ("upsert", 5)]
    with pytest.raises(lakelib.NotFoundError):
        table.changes(after="consumer:none")


# In a transaction


def moving(lake: lakelib.Lake, consumer: Consumer, to: int, *staged: lakelib.StagedCommit) -> list[lakelib.Snapshot]:
    with lake.transaction() as transaction:
        transaction.advance(consumer, to)
        for each in staged:
            transaction.add(each)
    return transaction.snapshots


def test_a_transaction_publishes_and_moves_or_does_neither(
    lake: lakelib.Lake, table: lakelib.Table, other: lakelib.Table
) -> None:
    one, two = table.consumer("billing"), table.consumer("billing")
    first, second = (other.stage_upsert(rows({9: ("mon", value)})) for value in (1, 2))

    assert [each.id for each in moving(lake, one, 3, first)] == [4]
    with pytest.raises(lakelib.ConflictError) as caught:
        moving(lake, two, 4, second)

    assert (caught.value.kind, second.state, position(table)) == ("consumer_moved", "staged", 3)
    assert read(other)[9] == ("mon", 1)
    assert one.advance(4) == 4


def test_a_commit_that_cannot_be_published_moves_nothing(
    lake: lakelib.Lake, table: lakelib.Table, other: lakelib.Table
) -> None:
    consumer = table.consumer("billing")
    staged = other.stage_delete("value = 1")
    other.upsert(rows({8: ("mon", 1)}))
    with pytest.raises(lakelib.ConflictError) as caught:
        moving(lake, consumer, 3, staged)
    assert (caught.value.kind, position(table)) == ("rows_added", 0)

    rejected = other.stage_upsert(rows({9: ("mon", 9)}))
    rejected.reject("no")
    with pytest.raises(lakelib.RejectedError):
        moving(lake, consumer, 3, rejected)
    assert position(table) == 0


def test_an_error_in_the_block_moves_nothing(lake: lakelib.Lake, table: lakelib.Table) -> None:
    consumer = table.consumer("billing")

    def fail() -> None:
        with lake.transaction() as transaction:
            transaction.advance(consumer, 3)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert position(table) == 0


def test_a_transaction_may_only_move_consumers_all_or_none(
    lake: lakelib.Lake, table: lakelib.Table, other: lakelib.Table
) -> None:
    of_table, of_other = table.consumer("billing"), other.consumer("billing")

    def move(to: int, to_of_other: int) -> list[lakelib.Snapshot]:
        with lake.transaction() as transaction:
            transaction.advance(of_table, to)
            transaction.advance(of_other, to_of_other)
        return transaction.snapshots

    assert (move(3, 2), of_table.position, of_other.position) == ([], 3, 2)
    with pytest.raises(lakelib.InvalidInputError) as caught:
        move(4, 4)
    assert (caught.value.kind, of_table.position, of_other.position) == ("consumer_beyond_head", 3, 2)


def test_a_consumer_may_be_of_the_table_that_is_written(lake: lakelib.Lake, table: lakelib.Table) -> None:
    consumer = table.consumer("billing")
    assert [each.id for each in moving(lake, consumer, 5, table.stage_upsert(rows({9: ("mon", 9)})))] == [6]
    assert (consumer.position, consumer.lag.snapshots) == (5, 1)


def test_what_is_no_consumer_or_moves_twice_is_refused(lake: lakelib.Lake, table: lakelib.Table) -> None:
    consumer, again = table.consumer("billing"), table.consumer("billing")
    with lake.transaction() as transaction:
        with pytest.raises(lakelib.InvalidInputError) as caught:
            transaction.advance("billing", 3)  # type: ignore[arg-type]
        assert caught.value.kind == "not_a_consumer"
        transaction.advance(consumer, 3)
        with pytest.raises(lakelib.InvalidInputError) as caught:
            transaction.advance(again, 4)
        assert caught.value.kind == "advanced_twice"
    assert position(table) == 3


def keyed(table: lakelib.Table, value: int, version: int = 1) -> lakelib.StagedCommit:
    return table.stage_upsert(rows({9: ("mon", value)}), idempotency_key=("billing", version))


def test_what_was_published_with_the_move_is_no_conflict_when_it_is_repeated(
    lake: lakelib.Lake, table: lakelib.Table, other: lakelib.Table
) -> None:
    late = table.consumer("billing")
    staged = keyed(other, 1)
    moving(lake, table.consumer("billing"), 3, staged)

    assert [each.id for each in moving(lake, late, 3, staged)] == [4]
    replayed = moving(lake, table.consumer("billing"), 3, keyed(other, 2))

    assert ([each.replayed for each in replayed], position(table), read(other)[9]) == ([True], 3, ("mon", 1))
    table.consumer("billing").advance(5)
    assert [each.id for each in moving(lake, late, 3, keyed(other, 2))] == [4]
    assert position(table) == 5


def test_what_others_published_without_the_move_moves_with_it_from_the_position_that_was_read(
    lake: lakelib.Lake, table: lakelib.Table, other: lakelib.Table
) -> None:
    consumer, staged = table.consumer("billing"), keyed(other, 1)
    staged.publish()
    moving(lake, consumer, 3, staged)
    assert position(table) == 3


def test_a_repeated_work_whose_consumer_went_back_is_a_conflict(
    lake: lakelib.Lake, table: lakelib.Table, other: lakelib.Table
) -> None:
    late = table.consumer("billing", after=1)
    moving(lake, table.consumer("billing"), 3, keyed(other, 1))
    table.consumer("billing").advance(2, backwards=True)
    with pytest.raises(lakelib.ConflictError) as caught:
        moving(lake, late, 3, keyed(other, 1))
    assert (caught.value.kind, position(table)) == ("consumer_moved", 2)


def test_of_two_works_whose_tables_and_consumers_cross_none_waits_for_the_other(
    lake: lakelib.Lake, table: lakelib.Table, other: lakelib.Table
) -> None:
    errors: list[BaseException] = []

    def work(first: lakelib.Table, second: lakelib.Table, name: str) -> None:
        try:
            ahead, behind = first.consumer(name), second.consumer(name)
            for number in range(12):
                with lake.transaction() as transaction:
                    transaction.add(first.stage_upsert(rows({number: (name, number)})))
                    transaction.add(second.stage_upsert(rows({number: (name, number)})))
                    transaction.advance(ahead, number % 2 + 1, backwards=True)
                    transaction.advance(behind, number % 3, backwards=True)
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=work, args=(*tables, name))
        for tables, name in (((table, other), "x"), ((other, table), "y"), ((other, table), "z"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert (len(table.history()), len(other.history())) == (5 + 36, 3 + 36)


def test_a_removed_consumer_keeps_the_commit_from_being_published(
    lake: lakelib.Lake, table: lakelib.Table, other: lakelib.Table
) -> None:
    consumer, staged = table.consumer("billing"), keyed(other, 1)
    table.consumer("billing").remove()
    with pytest.raises(lakelib.NotFoundError) as caught:
        moving(lake, consumer, 3, staged)
    assert (caught.value.kind, staged.state) == ("consumer_not_found", "staged")


# Dropped tables, listings, ranges, upgrades


def test_a_dropped_table_takes_its_consumers_along(
    lake: lakelib.Lake, table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    consumer = table.consumer("billing", after=2)
    lake.drop_table("shop.a")

    assert list(lake.consumers()) == []
    with pytest.raises(lakelib.NotFoundError):
        consumer.advance(3)
    with pytest.raises(lakelib.NotFoundError):
        table.consumer("billing")
    lake.vacuum(grace=NOW)
    assert connection.execute("select count(*) from lake.consumer").fetchone() == (0,)
    again = lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
    assert again.consumer("billing").position == 0


def test_a_listing_tells_how_far_behind_each_is(
    lake: lakelib.Lake, table: lakelib.Table, other: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    table.consumer("b", after=3)
    table.consumer("a", after=5)
    other.consumer("c")
    connection.execute(AGE, (DAY, 4))
    table.compact(full=True)

    found = lake.consumers()

    assert [(each.table, each.name, each.position, each.head, each.holds) for each in found] == (
        [("shop.a", "a", 5, 6, 1), ("shop.a", "b", 3, 6, 3), ("shop.b", "c", 0, 3, 2)]
    )
    assert [(each.lag.snapshots, each.lag.rows) for each in found] == [(0, 0), (2, 2), (3, 3)]
    assert (found[0].lag.age, found[1].lag.age >= DAY) == (NOW, True)
    assert table.consumer("b").lag.snapshots == 2
    assert "at snapshot 3 of 6: 2 snapshots, 2 rows, 1 day, " in repr(table.consumer("b"))
    assert "billing" not in found._repr_html_()
    assert "keeps for" in table.consumer("b")._repr_html_()


def test_a_consumer_of_nothing_can_be_made(lake: lakelib.Lake) -> None:
    empty = lake.create_table("shop.empty", SCHEMA, primary_key=["id"])
    consumer = empty.consumer("billing")
    assert (consumer.advance(0), str(consumer.lag)) == (0, "0 snapshots, 0 rows, 0:00:00")


def test_a_lease_on_a_range_holds_all_of_it(lake: lakelib.Lake, table: lakelib.Table) -> None:
    catalog = lake.runtime.catalog
    lease = leases.take_range(catalog, table.info, 2, 3)

    assert expire(table) == (1, 4)
    [line] = describe_holdings(table.expire(keep_last=1, dry_run=True).holdings)
    assert line.endswith("2 snapshots (2 to 3)")
    lease.renew()
    lease.release()
    assert expire(table) == (2, 3)


@pytest.mark.parametrize(
    ("first", "last", "missing"),
    [(1, 5, 1), (2, 5, 4), (3, 5, 4), (5, 7, 6), (6, 6, 6), (0, 3, 0), (3, 2, 3), (-5, 2, -5), (5, 2**64, 5)],
)
def test_a_range_that_is_not_all_there_is_not_held(
    lake: lakelib.Lake, table: lakelib.Table, connection: psycopg.Connection[Any], first: int, last: int, missing: int
) -> None:
    connection.execute("update lake.snapshot set expired_at = clock_timestamp() where id in (1, 4)")

    with pytest.raises(lakelib.NotFoundError, match=f"napshot {missing}\\b"):
        leases.take_range(lake.runtime.catalog, table.info, first, last)

    assert connection.execute("select count(*) from lake.lease").fetchone() == (0,)


def test_a_range_waits_for_an_expiry_under_way(
    lake: lakelib.Lake, table: lakelib.Table, connection: psycopg.Connection[Any], catalog_url: str
) -> None:
    info = table.info
    with transaction(catalog_url) as expiring:
        expiring.execute(query("expire_snapshots"), {"table_id": table.ref.id, "ids": [3]})
        taking = Beside(lambda: leases.take_range(lake.runtime.catalog, info, 2, 5), connection)

    assert (taking.outcome().kind, "Snapshot 3 " in taking.outcome().message) == ("snapshot_expired", True)


def test_an_earlier_catalog_gets_consumers(
    lake: lakelib.Lake, table: lakelib.Table, connection: psycopg.Connection[Any], catalog_url: str
) -> None:
    leases.take_lease(lake.runtime.catalog, table.info, 2)
    lake.close()
    connection.execute(BACK.encode())
    lakelib.migrate(catalog=catalog_url)

    with lakelib.connect(warehouse=lake.warehouse, catalog=catalog_url) as later:
        table = later.table("shop.a")
        assert expire(table) == (1, 3, 4)
        assert table.consumer("billing", after=2).advance(5) == 5


def test_how_many_statements_it_takes(
    lake: lakelib.Lake, table: lakelib.Table, statements: Callable[[], list[str]]
) -> None:
    consumer = table.consumer("billing")
    lake.table("shop.a").upsert(rows({9: ("mon", 9)}))
    statements()
    consumer.advance(6)
    assert statements() == ["publish_advancing"]
    _ = consumer.position
    assert statements() == ["find_consumer"]
    _ = lake.consumers()
    assert statements() == ["list_consumers"]


def test_only_who_publishes_what_was_made_of_changes_pays_for_it(
    table: lakelib.Table, other: lakelib.Table, statements: Callable[[], list[str]]
) -> None:
    consumer = table.consumer("billing")
    read_range = ReadRange(
        view="orders", table="shop.a", table_id=table.ref.id, consumer="billing", from_id=0, to_id=2, is_whole=False
    )
    plain, made = (
        other.stage_upsert(rows({number: ("mon", number)}), properties=properties)
        for number, properties in enumerate(({}, {CHANGES: ranges_as_text([read_range])}), start=1)
    )
    statements()
    plain.publish()
    assert statements() == ["publish"]
    made.publish()
    assert statements() == ["publish", "publish_advancing"]
    assert consumer.position == 2
    statements()
    made.publish()
    assert statements() == ["publish"]


@pytest.mark.parametrize(("backwards", "outcome"), [(False, 5), (True, "consumer_past_expired")])
def test_a_repeated_transaction_moves_nobody_back_who_may_not(
    lake: lakelib.Lake, table: lakelib.Table, other: lakelib.Table, backwards: bool, outcome: int | str
) -> None:
    """To a snapshot that has expired, and unless it was told."""
    consumer = table.consumer("billing", after=5)
    expire(table)
    staged = other.stage_upsert(rows({9: ("mon", 9)}))
    staged.publish()

    def publish_again() -> int:
        with lake.transaction() as transaction:
            transaction.add(staged)
            transaction.advance(consumer, 2, backwards=backwards)
        return table.consumer("billing").position

    assert moved(publish_again) == outcome
    assert table.consumer("billing").position == 5


def moved(act: Callable[[], int]) -> int | str:
    try:
        return act()
    except lakelib.LakeError as error:
        return error.kind


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The names of the queries that were asked since it was called last."""
    asked: list[str] = []
    from lakelib.catalog.connections import Session
    from lakelib.catalog.queries import name_of

    execute = Session.execute

    def noting(self: Session, statement: Any, *given: Any, **options: Any) -> Any:
        asked.append(str(name_of(statement)))
        return execute(self, statement, *given, **options)

    monkeypatch.setattr(Session, "execute", noting)

    def since() -> list[str]:
        told = asked.copy()
        asked.clear()
        return told

    return since


def test_consumers_are_found_by_name(lake: lakelib.Lake, table: lakelib.Table) -> None:
    table.consumer("billing", after=2)
    found = consumers.find_consumer(lake.runtime.catalog, table.ref.id, "billing")
    assert found is not None
    assert (found.position, found.created_by, found.advanced_at) == (2, "postgres", None)
    assert consumers.find_consumer(lake.runtime.catalog, table.ref.id, str(uuid4())) is None
