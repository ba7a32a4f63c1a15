"""What rests on rows of before a rollback cannot be published after it: old rows are back, and no sequence tells."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

import lakelib
from lakelib.catalog import commits
from lakelib.model.table import CommitKind, Proposal
from lakelib.ops import amend
from lakelib.ops.request import WriteRequest
from lakelib.ops.write import stage_write
from lakelib.specs.suite import parse_suite
from lakelib.work.engines import open_source
from tests.integration.faults.jobs import SCHEMA, read, rows

GATE = """
name: some
expectations:
  - type: expect_table_row_count_to_be_between
    kwargs: {min_value: 0}
    scope: merged
"""


@pytest.fixture
def table(lake: lakelib.Lake) -> lakelib.Table:
    """At 1 each day has a row; at 2 Monday is gone; at 3 Tuesday has a later version; 4 is a partition without past."""
    table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
    table.upsert(rows({1: ("mon", 1), 2: ("tue", 2)}))
    table.delete("day = 'mon'")
    table.upsert(rows({2: ("tue", 3)}))
    table.upsert(rows({4: ("wed", 4)}))
    return table


STAGED: dict[str, Callable[[lakelib.Table], lakelib.StagedCommit]] = {
    "a delete of rows": lambda table: table.stage_delete("value = 1"),
    "a delete of rows that a later version hid": lambda table: table.stage_delete("value = 2"),
    "a delete of a partition that was gone": lambda table: table.stage_delete("day = 'mon'"),
    "a delete of rows in a partition that was gone": lambda table: table.stage_delete("day = 'mon' and value = 1"),
    "an overwrite of all": lambda table: table.stage_overwrite(rows({9: ("sun", 9)})),
    "an overwrite of a partition that was gone": lambda table: table.stage_overwrite(
        rows({9: ("mon", 9)}), partitions={"day": "mon"}
    ),
    "an overwrite of its own partitions": lambda table: table.stage_overwrite(rows({9: ("mon", 9)}), "dynamic"),
}


@pytest.mark.parametrize("name", STAGED)
def test_what_has_read_where_rows_came_back_is_a_conflict(table: lakelib.Table, name: str) -> None:
    staged = STAGED[name](table)
    table.rollback(1)
    with pytest.raises(lakelib.ConflictError) as caught:
        staged.publish()
    assert caught.value.kind in ("rolled_back", "input_gone", "rows_removed")
    assert read(table) == {1: ("mon", 1), 2: ("tue", 2)}


def test_a_rollback_that_only_brings_rows_back_is_seen(table: lakelib.Table) -> None:
    staged = table.stage_delete("day = 'mon' and value = 1")
    lone = table.stage_delete("day = 'wed' and value = 4")
    table.rollback(1)
    table.rollback(4)
    table.upsert(rows({7: ("thu", 7)}))
    again = table.stage_delete("day = 'mon' and value = 1")
    table.rollback(5)
    for commit in (staged, again):
        with pytest.raises(lakelib.ConflictError) as caught:
            commit.publish()
        assert caught.value.kind == "rolled_back"
    with pytest.raises(lakelib.ConflictError):  # its partition went and came back meanwhile
        lone.publish()


def test_what_has_read_elsewhere_is_no_conflict(table: lakelib.Table) -> None:
    good = table.head.id
    staged = table.stage_delete("day = 'tue' and value = 3")
    table.upsert(rows({5: ("thu", 5)}))
    table.rollback(good)
    staged.publish()
    assert read(table) == {4: ("wed", 4)}


def test_rows_alone_are_no_conflict_and_win(table: lakelib.Table) -> None:
    staged = table.stage_upsert(rows({1: ("mon", 9), 2: ("tue", 9)}))
    table.rollback(1)
    staged.publish()
    assert read(table) == {1: ("mon", 9), 2: ("tue", 9)}


def test_a_direct_delete_looks_again(table: lakelib.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback comes between its look and its commit; once more where it takes in what was added."""
    was = commits.commit
    calls = []

    def commit(*args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            table.upsert(rows({8: ("tue", 1)}))
            table.rollback(1)
        return was(*args, **options)

    monkeypatch.setattr(commits, "commit", commit)
    table.delete("value = 1 or value = 2")
    assert read(table) == {}


def test_an_amendment_does_not_pass_over_a_rollback(table: lakelib.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows were added, the delete takes them in, and a rollback comes before it has."""
    staged_commit, loaded = commits.commit, amend.tables.load_table
    calls: list[str] = []

    def commit(*args: Any, **options: Any) -> Any:
        if not calls:
            calls.append("commit")
            table.upsert(rows({8: ("tue", 1)}))
        return staged_commit(*args, **options)

    def load_table(*args: Any) -> Any:
        if calls == ["commit"]:
            calls.append("load")
            table.rollback(1)
        return loaded(*args)

    monkeypatch.setattr(commits, "commit", commit)
    monkeypatch.setattr(amend.tables, "load_table", load_table)
    table.delete("value = 1 or value = 2 or value = 3")
    assert read(table) == {}


def test_a_verdict_is_stale_where_rows_came_back(table: lakelib.Table, lake: lakelib.Lake) -> None:
    staged, elsewhere = table.stage_upsert(rows({5: ("mon", 5)})), table.stage_upsert(rows({5: ("sun", 5)}))
    for commit in (staged, elsewhere):
        commit.judge(parse_suite(GATE))
    table.rollback(1)
    with pytest.raises(lakelib.ConflictError) as caught:
        lake.staged(staged.id).publish()
    assert caught.value.kind == "verdict_stale"
    lake.staged(elsewhere.id).publish()


def test_what_was_made_from_all_rows_is_overtaken(lake: lakelib.Lake, table: lakelib.Table) -> None:
    request = WriteRequest(made_from=4)
    staged = stage_write(lake.runtime, table._ref, CommitKind.UPSERT, open_source(rows({6: ("sun", 6)})), request)
    assert not commits.is_overtaken(lake.runtime.catalog, staged)
    table.rollback(1)
    assert commits.is_overtaken(lake.runtime.catalog, staged)
    with pytest.raises(lakelib.ConflictError):
        lake.staged(staged).publish()


def test_in_one_transaction_what_reads_after_a_rollback_is_a_conflict(lake: lakelib.Lake, table: lakelib.Table) -> None:
    first, second = table.stage_rollback(1), table.stage_delete("value = 1")
    with pytest.raises(lakelib.ConflictError):
        _together(lake, first, second)
    assert table.head.id == 4
    later = table.stage_upsert(rows({1: ("mon", 8)}))
    _together(lake, first, later)
    assert read(table) == {1: ("mon", 8), 2: ("tue", 2)}


def _together(lake: lakelib.Lake, *staged: lakelib.StagedCommit) -> None:
    with lake.transaction() as transaction:
        for commit in staged:
            transaction.add(commit)


def test_a_rollback_undoes_what_others_commit_meanwhile(table: lakelib.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    was = commits.commit
    changes = [
        lambda: table.upsert(rows({1: ("mon", 7), 2: ("tue", 7)})),
        lambda: table.evolve(add=[("note", "string")]),
        lambda: table.delete("true"),
        lambda: table.rollback(3),
        lambda: table.compact(full=True),  # over which it is published
    ]

    def commit(*args: Any, **options: Any) -> Any:
        proposal = args[1]
        if proposal.kind is CommitKind.ROLLBACK and proposal.restores == 1 and changes:
            changes.pop(0)()
        return was(*args, **options)

    monkeypatch.setattr(commits, "commit", commit)
    table.rollback(1)
    assert not changes
    assert read(table) == {1: ("mon", 1), 2: ("tue", 2)}


def test_a_snapshot_that_expires_beside_is_refused_or_restored(table: lakelib.Table, lake: lakelib.Lake) -> None:
    """Whoever is second waits for the other, and sees what it did."""
    outcomes: list[str] = []
    for _ in range(20):
        fresh = lake.create_table(f"shop.b{len(outcomes)}", SCHEMA, primary_key=["id"], partition_by=["day"])
        fresh.upsert(rows({1: ("mon", 1)}))
        fresh.overwrite(rows({2: ("mon", 2)}))
        begin = threading.Barrier(2)

        def expire(fresh: lakelib.Table = fresh, begin: threading.Barrier = begin) -> None:
            begin.wait()
            fresh.expire(keep_last=1, grace=timedelta(0))
            lake.vacuum()

        beside = threading.Thread(target=expire)
        beside.start()
        begin.wait()
        try:
            fresh.rollback(1)
            outcomes.append("restored")
            wanted = {1: ("mon", 1)}
        except lakelib.NotFoundError as error:
            outcomes.append(error.kind)
            wanted = {2: ("mon", 2)}
        beside.join()
        fresh.expire(keep_last=1)
        lake.vacuum()
        assert read(fresh) == wanted
    assert set(outcomes) <= {"restored", "snapshot_expired"}


def test_two_that_forget_one_file_at_once_queue_it_once(
    table: lakelib.Table, lake: lakelib.Lake, catalog_url: str
) -> None:
    """The rows that name a file go in transactions beside each other: the second waits, and sees that it is last."""
    staged = table.stage_rollback(1)
    table.rollback(1)
    table.overwrite(rows({9: ("sun", 9)}))
    (path,) = (file.path for file in table.files(at=1) if file.partition["day"] == "mon")
    staged.reject("no")
    with psycopg.connect(catalog_url) as first, psycopg.connect(catalog_url) as second:
        ids = first.execute("select id, table_id from lake.data_file where path = %s order by id", (path,)).fetchall()
        assert len(ids) == 3
        table_id = ids[0][1]
        for row in ids[:-1]:
            first.execute("delete from lake.commit_removal where file_id = %s", (row[0],))
        first.execute("select pg_advisory_xact_lock(hashtextextended('lake.queue ' || %s, 0))", (table_id,))
        for row in ids[:-1]:
            _forget(first, row[0])
        done = threading.Event()

        def forget_last() -> None:
            second.execute("delete from lake.commit_removal where file_id = %s", (ids[-1][0],))
            second.execute("select pg_advisory_xact_lock(hashtextextended('lake.queue ' || %s, 0))", (table_id,))
            _forget(second, ids[-1][0])
            second.commit()
            done.set()

        beside = threading.Thread(target=forget_last)
        beside.start()
        assert not done.wait(0.2)
        first.commit()
        beside.join()
        queued = first.execute("select count(*) from lake.deletion_queue where path = %s", (path,)).fetchone()
    assert queued == (1,)


def _forget(connection: psycopg.Connection, file_id: int) -> None:
    connection.execute(
        """
        with gone as (delete from lake.data_file where id = %s returning table_id, path, size_bytes)
        insert into lake.deletion_queue (table_id, path, size_bytes, not_before)
        select table_id, path, size_bytes, clock_timestamp() from gone on conflict do nothing""",
        (file_id,),
    )


def test_a_file_is_no_other_commits(table: lakelib.Table, lake: lakelib.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a rollback names one again."""
    kept: list[Proposal] = []
    was = commits.stage
    monkeypatch.setattr(commits, "stage", lambda catalog, proposal: kept.append(proposal) or was(catalog, proposal))
    table.stage_upsert(rows({1: ("mon", 1)}))
    with pytest.raises(lakelib.LakeError, match="written once"):
        was(lake.runtime.catalog, replace(kept[0], commit_id=uuid4()))
