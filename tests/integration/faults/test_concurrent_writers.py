"""Many writer processes at once: no lost update, no error for a caller, results as if one came after the other."""

from collections import Counter

import pyarrow as pa
import pytest

import lakelib
from tests.integration.faults.jobs import (
    Rows,
    attempt_once,
    delete_often,
    evolve_once,
    increment_often,
    overwrite_often,
    read,
    rows,
    transact_often,
    upsert_here_and_in_a_forked_child,
    upsert_in_threads,
    upsert_often,
    upsert_slowly,
    upsert_with_columns,
)
from tests.integration.faults.ledger import Ledger
from tests.integration.faults.processes import Worker, results, run_process, run_together


def test_32_writers_with_20_commits_each_lose_nothing_and_see_no_error(ledger: Ledger) -> None:
    jobs = [(*ledger.place, writer, 20) for writer in range(1, 33)]

    results(run_together(upsert_often, jobs))

    ledger.check_table("shop.a")
    table = ledger.lake.table("shop.a")
    assert [snapshot.id for snapshot in table.history()] == list(range(640, 0, -1))
    content = read(table)
    assert content.keys() == {0, *(writer * 1000 + number for writer in range(1, 33) for number in range(20))}
    assert all(content[key][1] == key // 1000 for key in content if key)
    assert ledger.commits("staged") == ledger.commits("expired") == []


def test_increments_of_two_writers_all_count(ledger: Ledger) -> None:
    table = ledger.lake.table("shop.a")
    table.upsert(rows({0: ("mon", 0)}))

    assert results(run_together(increment_often, [(*ledger.place, 50)] * 2)) == [50, 50]

    assert read(table)[0] == ("mon", 100)
    ledger.check_table("shop.a")


def test_two_writers_from_an_empty_table_both_get_in(ledger: Ledger) -> None:
    results(run_together(upsert_often, [(*ledger.place, 1, 1), (*ledger.place, 2, 1)]))

    assert read(ledger.lake.table("shop.a")).keys() == {0, 1000, 2000}
    ledger.check_table("shop.a")


def test_a_forked_child_uses_the_lake_of_its_parent_beside_it(ledger: Ledger) -> None:
    assert results([run_process(upsert_here_and_in_a_forked_child, *ledger.place)]) == [0]

    assert read(ledger.lake.table("shop.a")) == {number: ("mon", number) for number in (1, 2, 3)}


def test_threads_that_share_a_lake_get_over_the_loss_of_its_connections(ledger: Ledger) -> None:
    known = ledger.backends()
    worker = Worker(upsert_in_threads, (*ledger.place, 4, 25))
    ledger.wait_until_come(known)
    ended: set[int] = set()
    for commits in (5, 25, 45):
        ledger.wait_until_published(commits)
        for pid in ledger.backends() - known:
            ledger.query("select pg_terminate_backend(%s)", pid)
            ended.add(pid)

    assert ended
    assert results([worker.outcome(60)]) == [0]
    expected = {thread * 1000 + number for thread in range(1, 5) for number in range(25)}
    assert read(ledger.lake.table("shop.a")).keys() == expected
    assert len(ledger.commits("published")) == 100


def test_of_several_attempts_at_the_same_work_one_publishes_and_all_others_know(ledger: Ledger) -> None:
    for version in range(1, 7):
        jobs = [(*ledger.place, version, 10 * version + attempt) for attempt in range(4)]

        outcomes = run_together(attempt_once, jobs)

        assert ledger.commits("published", version) == ["a"]
        assert ledger.commits("staged", version) == []
        table = ledger.lake.table("shop.a")
        assert table.head is not None
        assert table.head.id == version
        for ended in outcomes:
            assert ended.result == version or ended.error_kind == "fenced", ended
        assert any(ended.result for ended in outcomes)
        content = read(table)
        assert content[1] == content[2], "two attempts were mixed"
    ledger.check_table("shop.a")


def test_an_overwrite_racing_upserts_replaces_all_that_came_before_it_and_nothing_after(ledger: Ledger) -> None:
    writers = [Worker(upsert_slowly, (*ledger.place, writer, 25)) for writer in (1, 2)]
    overwriter = Worker(overwrite_often, (*ledger.place, 12))
    results([writer.outcome(60) for writer in [*writers, overwriter]])

    ledger.check_table("shop.a")
    _check_as_if_one_after_the_other(ledger)


def test_predicate_deletes_racing_upserts_delete_all_that_came_before_them(ledger: Ledger) -> None:
    writers = [Worker(upsert_slowly, (*ledger.place, writer, 25)) for writer in (1, 2)]
    deleters = [
        Worker(delete_often, (*ledger.place, "value = 1", 6)),
        Worker(delete_often, (*ledger.place, "day = 'mon' and value = 2", 6)),
        Worker(delete_often, (*ledger.place, "day = 'tue'", 6)),
    ]
    results([writer.outcome(60) for writer in [*writers, *deleters]])

    table = ledger.lake.table("shop.a")
    ledger.check_table("shop.a")
    before: Rows = {}
    kinds = Counter(snapshot.kind for snapshot in table.history())
    assert kinds == {"upsert": 50, "delete": 18}
    for snapshot in reversed(table.history()):
        now = read(table, snapshot.id)
        if snapshot.kind == "upsert":
            assert len(now) == len(before) + 1
            assert before.items() <= now.items()
        else:
            assert now in (
                {key: row for key, row in before.items() if row[1] != 1},
                {key: row for key, row in before.items() if row != ("mon", 2)},
                {key: row for key, row in before.items() if row[0] != "tue"},
            ), f"snapshot {snapshot.id}"
        before = now


def test_concurrent_schema_changes_all_take_effect(ledger: Ledger) -> None:
    names = [f"extra_{number}" for number in range(6)]

    results(run_together(evolve_once, [(*ledger.place, name) for name in names]))

    assert set(ledger.lake.table("shop.a").schema.names) == {"id", "day", "value", *names}
    assert ledger.commits("staged") == []
    ledger.check_table("shop.a")


def test_concurrent_upserts_that_bring_the_same_and_other_columns_keep_all_of_them(ledger: Ledger) -> None:
    wanted = {key: ("common", f"own_{key}") if key % 2 else ("common",) for key in range(1, 9)}

    results(run_together(upsert_with_columns, [(*ledger.place, key, columns) for key, columns in wanted.items()]))

    table = ledger.lake.table("shop.a")
    found = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    names = {"common", *(f"own_{key}" for key in wanted if key % 2)}
    assert set(table.schema.names) == {"id", "day", "value", *names}
    for key, columns in wanted.items():
        assert {name: found[key][name] for name in names if found[key][name]} == {
            name: f"{name} {key}" for name in columns
        }
    assert ledger.commits("staged") == []
    ledger.check_table("shop.a")


def test_transactions_that_name_tables_in_opposite_orders_never_wait_for_each_other_for_ever(ledger: Ledger) -> None:
    orders = (("shop.a", "shop.b"), ("shop.b", "shop.a"))
    jobs = [(*ledger.place, orders[writer % 2], writer, 8) for writer in range(1, 7)]

    results(run_together(transact_often, jobs))

    first, second = ledger.lake.table("shop.a"), ledger.lake.table("shop.b")
    assert read(first) == read(second)
    assert len(first.history()) == len(second.history()) == 48
    assert ledger.query("select deadlocks from pg_stat_database where datname = current_database()") == [(0,)]


def test_taking_over_an_attempt_that_is_being_published_never_deadlocks(ledger: Ledger) -> None:
    for version in range(1, 5):
        run_together(attempt_once, [(*ledger.place, version, attempt) for attempt in range(6)])

    assert ledger.query("select deadlocks from pg_stat_database where datname = current_database()") == [(0,)]


def test_a_transaction_with_two_schema_changes_of_one_table_keeps_both_or_refuses(ledger: Ledger) -> None:
    table = ledger.lake.table("shop.a")
    staged = [
        table.stage_upsert(rows({key: ("mon", 1)}).append_column(name, pa.array(["x"])), merge_schema=True)
        for key, name in ((1, "first"), (2, "second"))
    ]

    with pytest.raises(lakelib.ConflictError) as caught:
        publish_together(ledger.lake, *staged)

    assert caught.value.kind == "schema_changed"
    assert table.head is None
    assert table.schema.names == ["id", "day", "value"]


def publish_together(lake: lakelib.Lake, *staged: lakelib.StagedCommit) -> None:
    with lake.transaction() as transaction:
        for each in staged:
            transaction.add(each)


def _check_as_if_one_after_the_other(ledger: Ledger) -> None:
    """Each snapshot is what its commit makes of the one before it."""
    table = ledger.lake.table("shop.a")
    before: Rows = {}
    for snapshot in reversed(table.history()):
        now = read(table, snapshot.id)
        if snapshot.kind == "overwrite":
            assert now.keys() == {-1, -2}, f"snapshot {snapshot.id}"
        else:
            assert len(now) == len(before) + 1
            assert before.items() <= now.items(), f"snapshot {snapshot.id}"
        before = now
