"""Expiry beside those who tag, read and stage: whoever comes first wins, and nobody gets what is gone."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import dict_row

import lakelib
from lakelib.catalog import commits, connections, leases, retention, snapshots, tables
from lakelib.catalog.queries import query
from lakelib.model.commit import StageOutcome
from lakelib.model.table import CommitKind, Proposal
from lakelib.model.upkeep import ExpireResult
from tests.integration.faults.jobs import SCHEMA, read, rows
from tests.staging_hooks import before_staging

NOW = timedelta(0)
_PATIENCE_SECONDS = 20
_WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


@pytest.fixture
def table(lake: lakelib.Lake) -> lakelib.Table:
    """Snapshot 3 replaced the file of snapshot 2, which had replaced that of snapshot 1."""
    table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
    for number in (1, 2, 3):
        table.overwrite(rows({1: ("mon", number)}))
    return table


@contextmanager
def transaction(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Ends well when its block does."""
    with psycopg.connect(url, row_factory=dict_row) as connection:
        yield connection


class Beside:
    """Work in a thread that is expected to wait for a transaction that is under way."""

    def __init__(self, work: Callable[[], Any], watch: psycopg.Connection[Any]) -> None:
        self._outcome: list[Any] = []
        self._thread = threading.Thread(target=self._run, args=(work,))
        self._thread.start()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while watch.execute(_WAITING).fetchall() == [(0,)]:
            assert time.monotonic() < deadline, "it does not wait"
            assert self._thread.is_alive(), f"it did not wait: {self._outcome}"
            time.sleep(0.01)

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self._outcome.append(work())
        except lakelib.LakeError as error:
            self._outcome.append(error)

    def outcome(self) -> Any:
        self._thread.join(_PATIENCE_SECONDS)
        return self._outcome[0]


def expire_all_but_the_head(table: lakelib.Table) -> ExpireResult:
    return table.expire(keep_last=1, grace=NOW)


def let_expire(connection: psycopg.Connection[Any], table: lakelib.Table, *ids: int) -> None:
    connection.execute(query("expire_snapshots"), {"table_id": table._ref.id, "ids": list(ids)})


def a_tag(table: lakelib.Table, name: str, snapshot_id: int) -> dict[str, object]:
    """The parameters of one without an end."""
    end = dict.fromkeys(("family", "keep", "keep_last"))
    return {"table_id": table._ref.id, "name": name, "snapshot_id": snapshot_id, **end}


LOCK_PAST = "select pg_advisory_xact_lock(hashtextextended('lake.expire ' || %(table_id)s::text, 0))"


def test_an_expiry_waits_for_a_tag_that_is_being_set_and_keeps_its_snapshot(
    lake: lakelib.Lake, table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    with transaction(catalog_url) as setting:
        setting.execute(query("set_tag"), a_tag(table, "keep", 1))
        expiry = Beside(lambda: expire_all_but_the_head(table), connection)

    result = expiry.outcome()
    assert (result.snapshots, [(held.id, str(held.hold)) for held in result.kept_back]) == ((2,), [(1, "tag keep")])
    lake.vacuum(grace=NOW)
    assert table.scan(at="tag:keep").to_arrow().to_pylist() == rows({1: ("mon", 1)}).to_pylist()


def test_a_tag_whose_time_is_over_stays_where_a_person_is_just_setting_it(
    table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    table.tag("run", at=1, keep=NOW)
    with transaction(catalog_url) as setting:
        setting.execute(query("set_tag"), a_tag(table, "run", 1))
        expiry = Beside(lambda: expire_all_but_the_head(table), connection)

    result = expiry.outcome()
    assert (result.tags, [(held.id, held.hold.has_end) for held in result.kept_back]) == ((), [(1, False)])
    assert [tag.name for tag in table.tags()] == ["run"]


def test_a_tag_that_is_set_while_an_expiry_takes_it_away_is_a_new_one(
    table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    table.tag("run", at=3, keep=NOW)
    with transaction(catalog_url) as expiring:
        gone = expiring.execute(query("expire_tags"), {"table_id": table._ref.id}).fetchall()
        setting = Beside(lambda: table.tag("run", at=3), connection)

    assert len(gone) == 1
    assert setting.outcome().family is None
    assert [tag.name for tag in table.tags()] == ["run"]


def test_a_tag_waits_for_an_expiry_under_way_and_is_refused(
    table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    with transaction(catalog_url) as expiring:
        let_expire(expiring, table, 1, 2)
        tagging = Beside(lambda: table.tag("late", at=1), connection)

    refused = tagging.outcome()
    assert (type(refused), refused.kind) == (lakelib.errors.ExpiredError, "snapshot_expired")
    assert table.tags() == []


def test_a_tag_that_waits_for_an_expiry_that_is_given_up_gets_its_snapshot(
    table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    with transaction(catalog_url) as expiring:
        let_expire(expiring, table, 1, 2)
        tagging = Beside(lambda: table.tag("kept", at=1), connection)
        expiring.rollback()

    assert tagging.outcome().snapshot_id == 1
    assert 1 not in expire_all_but_the_head(table).snapshots


def test_an_expiry_waits_for_a_lease_that_is_being_taken_and_keeps_its_snapshot(
    table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    lease = {"id": uuid4(), "table_id": table._ref.id, "snapshot_id": 2, "holder": "me", "duration": "1 hour"}
    with transaction(catalog_url) as taking:
        taking.execute(query("take_lease"), lease)
        expiry = Beside(lambda: expire_all_but_the_head(table), connection)

    result = expiry.outcome()
    assert (result.snapshots, [(held.id, str(held.hold)) for held in result.kept_back]) == ((1,), [(2, "lease me")])
    assert read(table, at=2) == {1: ("mon", 2)}


def test_a_reader_whose_snapshot_expires_before_it_holds_it_gets_a_clear_error(
    table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    scan = table.scan(at=1)
    with transaction(catalog_url) as expiring:
        let_expire(expiring, table, 1, 2)
        reading = Beside(scan.to_arrow, connection)

    refused = reading.outcome()
    assert (type(refused), refused.kind) == (lakelib.errors.ExpiredError, "snapshot_expired")
    assert "the oldest that is left is 3" in refused.message


@pytest.mark.parametrize(
    "look",
    [
        lambda table: table.scan(at=1).to_arrow(),
        lambda table: table.scan(at=1).count(),
        lambda table: list(table.scan(at=1).to_batches()),
        lambda table: list(table.files(at=1)),
        lambda table: len(table.files(at=1)),
        lambda table: table.partitions(at=1),
    ],
    ids=["all rows", "count", "batches", "files", "count of files", "partitions"],
)
def test_a_snapshot_whose_files_go_while_they_are_looked_up_is_not_taken_for_one_without(
    table: lakelib.Table, look: Callable[[lakelib.Table], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = snapshots.find_snapshot

    def find_and_be_overtaken(*given: Any) -> Any:
        found = find(*given)
        monkeypatch.setattr(snapshots, "find_snapshot", find)
        assert expire_all_but_the_head(table).files == 2
        return found

    monkeypatch.setattr(snapshots, "find_snapshot", find_and_be_overtaken)
    with pytest.raises(lakelib.NotFoundError) as caught:
        look(table)
    assert caught.value.kind == "snapshot_expired"


def overtaken_once(monkeypatch: pytest.MonkeyPatch, table: lakelib.Table) -> None:
    """Whoever looks up the table next is given a head that has expired by then: another one has taken its place."""
    load = tables.load_table

    def load_and_be_overtaken(*given: Any) -> Any:
        found = load(*given)
        monkeypatch.setattr(tables, "load_table", load)
        table.upsert(rows({1: ("mon", 4)}))
        expire_all_but_the_head(table)
        return found

    monkeypatch.setattr(tables, "load_table", load_and_be_overtaken)


def test_a_head_that_expires_while_it_is_asked_for_is_no_table_without_one(
    table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    overtaken_once(monkeypatch, table)
    head = table.head
    assert head is not None
    assert head.id == 3


def test_a_lease_that_has_run_out_holds_nothing_and_is_lost_to_its_reader(
    lake: lakelib.Lake, table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    info = table._now()
    lease = leases.take_lease(lake._runtime.catalog, info, 1, duration=timedelta(seconds=-1))

    told = table.expire(keep_last=1, dry_run=True)
    result = expire_all_but_the_head(table)

    assert (result.snapshots, result.leases) == ((1, 2), 1)
    assert told == replace(result, dry_run=True)
    with pytest.raises(lakelib.RetryableError) as caught:
        lease.renew()
    assert caught.value.kind == "lease_lost"


def test_a_lease_that_is_renewed_at_the_last_moment_holds_its_snapshot(
    lake: lakelib.Lake, table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    info = table._now()
    lease = leases.take_lease(lake._runtime.catalog, info, 1, duration=timedelta(seconds=-1))
    with transaction(catalog_url) as renewing:
        renewing.execute(query("renew_lease"), {"id": lease.id, "duration": "1 hour"})
        expiry = Beside(lambda: expire_all_but_the_head(table), connection)

    result = expiry.outcome()
    assert (result.snapshots, result.leases) == ((2,), 0)
    assert read(table, at=1) == {1: ("mon", 1)}


def test_what_depends_on_the_past_waits_for_an_expiry_and_is_made_again(
    table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    """The delete looks at snapshot 3; that expires while it is about to be staged, and it looks again."""
    with transaction(catalog_url) as expiring:
        expiring.execute(LOCK_PAST, {"table_id": table._ref.id})
        deleting = Beside(lambda: table.delete("value = 3"), connection)
        table.upsert(rows({2: ("mon", 4)}))
        let_expire(expiring, table, 1, 2, 3)

    assert deleting.outcome().id == 5
    assert read(table) == {2: ("mon", 4)}


def test_a_staged_commit_whose_base_expires_before_it_is_staged_is_a_conflict(
    table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    with transaction(catalog_url) as expiring:
        expiring.execute(LOCK_PAST, {"table_id": table._ref.id})
        staging = Beside(lambda: table.stage_overwrite(rows({1: ("mon", 9)})), connection)
        table.upsert(rows({2: ("mon", 4)}))
        let_expire(expiring, table, 1, 2, 3)

    refused = staging.outcome()
    assert (type(refused), refused.kind) == (lakelib.ConflictError, "input_gone")


@pytest.mark.parametrize(
    "delete",
    [
        lambda table: table.delete("value > 3"),
        lambda table: table.stage_delete("value > 3").publish(),
    ],
    ids=["at once", "staged"],
)
def test_a_delete_looks_again_when_the_snapshot_that_it_looks_at_has_expired(
    table: lakelib.Table, delete: Callable[[lakelib.Table], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    overtaken_once(monkeypatch, table)
    delete(table)
    assert read(table) == {}


def test_a_compaction_looks_again_when_the_snapshot_that_it_looks_at_has_expired(
    table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.upsert(rows({1: ("mon", 3)}))
    overtaken_once(monkeypatch, table)
    assert table.compact(full=True).runs_before == 3
    assert read(table) == {1: ("mon", 4)}


def test_a_commit_that_is_staged_again_after_a_lost_reply_keeps_its_files_though_its_base_has_expired(
    lake: lakelib.Lake, table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two somebody has found the staged commit and has published it."""
    stage = commits.stage

    def stage_again_later(catalog: Any, proposal: Proposal) -> StageOutcome:
        stage(catalog, proposal)
        lake.staged(proposal.commit_id).publish()
        expire_all_but_the_head(table)
        return stage(catalog, proposal)

    monkeypatch.setattr(commits, "stage", stage_again_later)
    assert table.stage_overwrite(rows({1: ("mon", 9)})).state == "published"
    assert read(table) == {1: ("mon", 9)}


def test_what_is_staged_beside_an_announcement_of_a_search_for_orphans_waits_and_is_refused(
    table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    with transaction(catalog_url) as announcing:
        target = {"table_id": table._ref.id}
        announcing.execute(query("await_stagings"), target)
        writing = Beside(lambda: table.stage_upsert(rows({1: ("mon", 9)})), connection)
        connection.execute(query("mark_orphans"), target | {"before": datetime.now(UTC)})

    refused = writing.outcome()
    assert (type(refused), refused.kind) == (lakelib.ConflictError, "files_reclaimed")
    assert read(table) == {1: ("mon", 3)}


def test_a_search_for_orphans_waits_for_what_is_being_staged(
    lake: lakelib.Lake, table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    staged = table.stage_upsert(rows({1: ("mon", 9)}))
    with transaction(catalog_url) as going_on:
        going_on.execute(
            "select pg_advisory_xact_lock_shared(hashtextextended(%(table_id)s::text || ' orphans', 0))",
            {"table_id": table._ref.id},
        )
        vacuum = Beside(lambda: lake.vacuum(grace=NOW), connection)

    assert vacuum.outcome().orphans == 0
    staged.publish()
    assert read(table) == {1: ("mon", 9)}


def test_a_vacuum_passes_over_a_table_that_others_hold_and_says_so(
    lake: lakelib.Lake, table: lakelib.Table, catalog_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LOCK_SECONDS", 1)
    monkeypatch.setattr(retention, "_LOCK_PATIENCE_SECONDS", 0.5)
    other = lake.create_table("shop.other", SCHEMA, primary_key=["id"])
    for each in (table, other):
        lake._runtime.storage.at(each.location).write_bytes(f"upsert-{uuid4().hex}-00000.parquet", b"an orphan")
    with (
        lakelib.connect(warehouse=lake.warehouse, catalog=catalog_url) as fresh,
        transaction(catalog_url) as publishing,
    ):
        publishing.execute('select from lake."table" where id = %s for no key update', (table._ref.id,))
        result = fresh.vacuum(grace=NOW)

    assert result.passed_over == (table.name,)
    assert table.name in repr(result)
    assert result.orphans == 1
    again = lake.vacuum(grace=NOW)
    assert (again.orphans, again.passed_over) == (1, ())


def test_a_vacuum_and_a_delete_that_is_amended_do_not_wait_for_each_other(
    lake: lakelib.Lake, table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    amend = commits.amend
    vacuums: list[threading.Thread] = []

    def amend_beside_a_vacuum(*given: Any) -> object:
        vacuums.append(threading.Thread(target=lambda: lake.vacuum(grace=timedelta(days=1))))
        vacuums[-1].start()
        return amend(*given)

    def write_beside(catalog: Any, proposal: Proposal) -> None:
        if proposal.kind is CommitKind.DELETE:
            table.upsert(rows({2: ("mon", 3)}))

    monkeypatch.setattr(commits, "amend", amend_beside_a_vacuum)
    before_staging(monkeypatch, write_beside)
    table.delete("value = 3")
    for vacuum in vacuums:
        vacuum.join(_PATIENCE_SECONDS)
        assert not vacuum.is_alive()
    assert len(vacuums) == 1
    assert read(table) == {}


def test_a_search_that_leaves_young_files_alone_hinders_nobody(lake: lakelib.Lake, table: lakelib.Table) -> None:
    def write_beside(vacuum: Callable[[], object]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            before_staging(patch, lambda *_: vacuum() and None)
            table.upsert(rows({1: ("mon", 9)}))

    write_beside(lambda: lake.vacuum(grace=timedelta(minutes=6)))
    write_beside(lambda: lake.vacuum(grace=NOW, dry_run=True))
    write_beside(lambda: lake.vacuum(grace=NOW, orphans=False))
    assert read(table) == {1: ("mon", 9)}


def test_what_began_within_minutes_of_the_grace_is_refused_for_clocks_may_disagree(
    lake: lakelib.Lake, table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stage_late(catalog: Any, proposal: Proposal) -> Proposal:
        lake.vacuum(grace=timedelta(hours=1))
        return replace(proposal, began_at=proposal.began_at - timedelta(minutes=57))

    before_staging(monkeypatch, stage_late)
    with pytest.raises(lakelib.ConflictError) as caught:
        table.upsert(rows({1: ("mon", 9)}))
    assert caught.value.kind == "files_reclaimed"


def test_an_expiry_waits_for_what_is_being_staged_and_keeps_what_it_depends_on(
    table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    with transaction(catalog_url) as staging:
        staging.execute(
            "select pg_advisory_xact_lock_shared(hashtextextended('lake.expire ' || %(table_id)s::text, 0))",
            {"table_id": table._ref.id},
        )
        expiry = Beside(lambda: expire_all_but_the_head(table), connection)

    assert expiry.outcome().snapshots == (1, 2)


@pytest.mark.parametrize("state", ["staged", "rejected"])
def test_an_open_commit_keeps_its_base_and_what_came_after_and_still_conflicts(
    table: lakelib.Table, state: str, lake: lakelib.Lake
) -> None:
    staged = table.stage_overwrite(rows({1: ("mon", 9)}))
    if state == "rejected":
        staged.reject("looks wrong")
    table.upsert(rows({2: ("tue", 1)}))
    table.delete("day = 'tue'")
    table.upsert(rows({3: ("wed", 1)}))

    result = expire_all_but_the_head(table)
    lake.vacuum(grace=NOW)

    assert result.snapshots == (1, 2)
    assert [(held.id, held.hold.kind) for held in result.kept_back] == [(n, f"{state} commit") for n in (3, 4, 5)]
    assert staged.scan(scope="staged").to_arrow().num_rows == 1
    assert read(table, at=4).keys() == {1, 2}
    if state == "staged":
        with pytest.raises(lakelib.ConflictError):
            staged.publish()


def test_an_expiry_leaves_a_commit_alone_that_is_just_being_published(
    table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    staged = table.stage_upsert(rows({5: ("mon", 5)}))
    with transaction(catalog_url) as publishing:
        publishing.execute("select from lake.commit where id = %s for no key update", [staged.id])
        result = table.expire(keep_last=1, staged_older_than=NOW, grace=NOW)
        publishing.execute("select lake.become_snapshot_v1(%s, 4, clock_timestamp())", [staged.id])

    assert result.commits == 0
    assert staged.state == "published"
    assert read(table) == {1: ("mon", 3), 5: ("mon", 5)}


def test_a_commit_that_expired_cannot_be_published_or_looked_at(table: lakelib.Table, lake: lakelib.Lake) -> None:
    staged = table.stage_upsert(rows({5: ("mon", 5)}))
    result = table.expire(keep_last=1, staged_older_than=NOW, grace=NOW)
    lake.vacuum(grace=NOW)

    assert (result.commits, staged.state) == (1, "expired")
    with pytest.raises(lakelib.ConflictError) as caught:
        staged.publish()
    assert caught.value.kind == "fenced"
    for scope in ("staged", "merged"):
        with pytest.raises(lakelib.NotFoundError) as missing:
            staged.scan(scope=scope)
        assert missing.value.kind == "commit_expired"


def test_the_files_of_an_attempt_that_was_overtaken_are_given_up(table: lakelib.Table, lake: lakelib.Lake) -> None:
    table.stage_upsert(rows({5: ("mon", 5)}), idempotency_key=("loader", 1))
    table.upsert(rows({5: ("mon", 6)}), idempotency_key=("loader", 1))
    assert table.expire(keep_last=10, grace=NOW).files == 1
    assert lake.vacuum(grace=NOW).files == 1
    assert read(table)[5] == ("mon", 6)


def test_an_expired_snapshot_still_answers_whoever_repeats_its_work(table: lakelib.Table) -> None:
    first = table.upsert(rows({7: ("mon", 7)}), idempotency_key=("loader", 7))
    staged = table.stage_upsert(rows({8: ("mon", 8)}))
    second = staged.publish()
    table.upsert(rows({9: ("mon", 9)}))
    assert {first.id, second.id} <= set(expire_all_but_the_head(table).snapshots)

    assert table.upsert(rows({7: ("mon", 70)}), idempotency_key=("loader", 7)).id == first.id
    assert staged.publish().id == second.id
    assert read(table)[7] == ("mon", 7)


def test_an_expiry_killed_after_the_snapshots_is_finished_by_the_next_one(
    lake: lakelib.Lake, table: lakelib.Table
) -> None:
    retention.expire_snapshots(lake._runtime.catalog, table._ref.id, [1, 2])
    result = expire_all_but_the_head(table)
    assert (result.snapshots, result.files) == ((), 2)
    assert lake.vacuum(grace=NOW).files == 2


def test_many_snapshots_and_files_go_in_batches(
    lake: lakelib.Lake, table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_BATCH", 2)
    for number in range(4, 9):
        table.overwrite(rows({1: ("mon", number), 2: ("tue", number)}))
    table.tag("five", at=5)
    preview = table.expire(keep_last=1, dry_run=True)
    result = expire_all_but_the_head(table)

    assert result.snapshots == preview.snapshots == (1, 2, 3, 4, 6, 7)
    assert result.files == preview.files == 3 + 2 + 2 * 2
    assert result.size_bytes == preview.size_bytes > 0
    lake.vacuum(grace=NOW)
    assert read(table, at=5) == {1: ("mon", 5), 2: ("tue", 5)}
    assert read(table) == {1: ("mon", 8), 2: ("tue", 8)}
