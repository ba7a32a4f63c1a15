"""Compaction beside others: it fails no writer, a lost race leaves nothing, and nobody takes it for a change."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
import pytest

import lakelib
from lakelib.catalog import commits
from lakelib.catalog.connect import Catalog
from lakelib.catalog.queries import query
from lakelib.errors import CorruptionError, InvalidInputError, RetryableError
from lakelib.model.commit import Reason, Staged
from lakelib.model.table import CommitKind, Proposal
from lakelib.work import engines
from tests.integration.faults.jobs import SCHEMA, Rows, read, rows
from tests.staging_hooks import after_staging, before_staging

OLD: Rows = {1: ("mon", 1), 2: ("tue", 2)}


@pytest.fixture
def table(lake: lakelib.Lake) -> lakelib.Table:
    """Two partitions with two runs each."""
    table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
    table.upsert(rows({1: ("mon", 0), 2: ("tue", 0)}))
    table.upsert(rows(OLD))
    return table


@pytest.fixture
def log(lake: lakelib.Lake) -> lakelib.Table:
    """An append table of three files."""
    table = lake.create_table("shop.log", SCHEMA)
    for number in range(3):
        table.append(rows({number: ("mon", number)}))
    return table


def stored(table: lakelib.Table) -> set[str]:
    folder = Path(unquote(urlsplit(table.location).path))
    return {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}


def live(table: lakelib.Table) -> set[str]:
    return {file.path for file in table.files()}


def before_publishing(monkeypatch: pytest.MonkeyPatch, *changes: Callable[[], object]) -> list[object]:
    """Each publish of a compaction is overtaken by the next of the changes. What is left of them."""
    left = list(changes)

    def be_overtaken(catalog: Any, proposal: Proposal) -> None:
        if proposal.kind is CommitKind.COMPACT and left:
            left.pop(0)()

    after_staging(monkeypatch, be_overtaken)
    return left


CHANGES: dict[str, tuple[Callable[[lakelib.Table], object], Rows]] = {
    "an upsert": (lambda table: table.upsert(rows({1: ("mon", 9)})), {1: ("mon", 9), 2: ("tue", 2)}),
    "a delete by key": (lambda table: table.delete("id = 1"), {2: ("tue", 2)}),
    "a change of the schema": (lambda table: table.evolve(add=[("note", "string")]), OLD),
}


@pytest.mark.parametrize("case", CHANGES)
def test_an_upsert_or_a_delete_beside_a_compaction_and_it_get_in(
    case: str, table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, after = CHANGES[case]
    overtaken = before_publishing(monkeypatch, lambda: change(table))

    done = table.compact(full=True)

    assert not overtaken
    assert (done.units, done.units_skipped) == (2, 0)
    found = table.scan(columns=["id", "day", "value"]).to_arrow().to_pylist()
    assert {row["id"]: (row["day"], row["value"]) for row in found} == after


def test_a_lost_unit_leaves_no_file_and_the_others_are_published(
    table: lakelib.Table, monkeypatch: pytest.MonkeyPatch, connection: psycopg.Connection[Any]
) -> None:
    before_publishing(monkeypatch, lambda: table.overwrite(rows({3: ("mon", 3)}), {"day": "mon"}))
    old = stored(table)

    done = table.compact(full=True)

    assert (done.units, done.units_skipped) == (1, 0)
    assert read(table) == {3: ("mon", 3), 2: ("tue", 2)}
    assert stored(table) == old | live(table)
    assert connection.execute("select count(*) from lake.commit where state = 'staged'").fetchone() == (0,)
    assert table.head is not None
    assert table.head.summary["files_removed"] == 2


def test_a_race_lost_in_whole_leaves_no_file_and_an_expired_commit(
    table: lakelib.Table, monkeypatch: pytest.MonkeyPatch, connection: psycopg.Connection[Any]
) -> None:
    before_publishing(monkeypatch, lambda: table.overwrite(rows({3: ("mon", 3)})))
    old = stored(table)

    done = table.compact(full=True)

    assert done.snapshot is None
    assert read(table) == {3: ("mon", 3)}
    assert stored(table) == old | live(table)
    found = connection.execute("select state from lake.commit where kind = 'compact'").fetchall()
    assert found == [("expired",)]


def test_after_some_rounds_that_were_lost_a_compaction_gives_up_and_says_so(
    table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        table.overwrite(rows({3: ("mon", 3)}))
        table.upsert(rows({3: ("mon", 4)}))

    before_publishing(monkeypatch, *[change] * 20)
    old = stored(table)

    done = table.compact(full=True)

    assert done.snapshot is None
    assert done.units_skipped == 1
    assert "1 unit skipped" in str(done)
    assert read(table) == {3: ("mon", 4)}
    assert not {path for path in stored(table) - old if "compact-" in path}


def test_files_stay_while_it_is_unknown_whether_they_were_published(
    table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = commits.commit

    def commit_and_lose_the_reply(*arguments: Any, **options: Any) -> Any:
        commit(*arguments, **options)
        raise RetryableError("The catalog is out of reach.", kind="catalog_unreachable", remedy="Try again.")

    monkeypatch.setattr(commits, "commit", commit_and_lose_the_reply)
    with pytest.raises(RetryableError):
        table.compact(full=True)

    assert read(table) == OLD
    assert live(table) <= stored(table)
    assert {file.level for file in table.files()} == {1}


def decided_by_somebody_else(
    lake: lakelib.Lake,
    monkeypatch: pytest.MonkeyPatch,
    decide: Callable[[lakelib.StagedCommit, lakelib.StagedCommit], object],
) -> None:
    """A staged delete stands in the compaction's way. The next moment somebody who has found the two among the staged
    commits decides them."""
    commit = commits.commit

    def commit_in_vain(catalog: Any, proposal: Proposal, **options: Any) -> Any:
        monkeypatch.setattr(commits, "commit", commit)
        in_the_way = lake.table("shop.log").stage_delete("value < 2")
        refused = commit(catalog, proposal, **options)
        assert refused.reasons == (Reason.INPUT_CLAIMED,)
        decide(lake.staged(proposal.commit_id), in_the_way)
        return refused

    monkeypatch.setattr(commits, "commit", commit_in_vain)


def test_a_compaction_that_somebody_else_publishes_keeps_its_files(
    lake: lakelib.Lake, log: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read(log)

    def publish(compaction: lakelib.StagedCommit, in_the_way: lakelib.StagedCommit) -> None:
        in_the_way.reject("no")
        compaction.publish()

    decided_by_somebody_else(lake, monkeypatch, publish)
    log.compact(full=True)

    assert {file.level for file in log.files()} == {1}
    assert live(log) <= stored(log)
    assert read(log) == before


def test_a_compaction_that_somebody_else_rejects_keeps_its_files_for_who_publishes_it_after_all(
    lake: lakelib.Lake, log: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read(log)
    decided: list[lakelib.StagedCommit] = []

    def reject(compaction: lakelib.StagedCommit, in_the_way: lakelib.StagedCommit) -> None:
        compaction.reject("not now")
        decided.extend([compaction, in_the_way])

    decided_by_somebody_else(lake, monkeypatch, reject)
    assert log.compact(full=True).units == 0

    compaction, in_the_way = decided
    in_the_way.reject("no")
    compaction.publish(by="eve", reason="it is right after all")
    assert live(log) <= stored(log)
    assert read(log) == before


def test_a_failed_rewrite_leaves_no_file(table: lakelib.Table) -> None:
    folder = Path(unquote(urlsplit(table.location).path))
    victim = next(file.path for file in table.files() if file.partition["day"] == "tue")
    content = (folder / victim).read_bytes()
    (folder / victim).write_bytes(content[:-20])
    old = stored(table)

    with pytest.raises(CorruptionError):
        table.compact(full=True)

    assert stored(table) == old
    assert table.head is not None
    assert table.head.id == 2


# Staged commits


STAGED: dict[str, tuple[Callable[[lakelib.Table], lakelib.StagedCommit], Rows]] = {
    "overwrite of all": (lambda table: table.stage_overwrite(rows({3: ("mon", 3)})), {3: ("mon", 3)}),
    "static overwrite": (
        lambda table: table.stage_overwrite(rows({3: ("mon", 3)}), {"day": "mon"}),
        {2: ("tue", 2), 3: ("mon", 3)},
    ),
    "dynamic overwrite": (
        lambda table: table.stage_overwrite(rows({3: ("mon", 3)}), "dynamic"),
        {2: ("tue", 2), 3: ("mon", 3)},
    ),
    "delete of a partition": (lambda table: table.stage_delete("day = 'mon'"), {2: ("tue", 2)}),
    "delete by value": (lambda table: table.stage_delete("value = 1"), {2: ("tue", 2)}),
    "delete by key": (lambda table: table.stage_delete_keys(rows({1: ("mon", 0)})), {2: ("tue", 2)}),
    "upsert": (lambda table: table.stage_upsert(rows({1: ("mon", 3)})), {1: ("mon", 3), 2: ("tue", 2)}),
}


@pytest.mark.parametrize("case", STAGED)
def test_what_is_staged_before_a_compaction_is_published_after_it(case: str, table: lakelib.Table) -> None:
    stage, after = STAGED[case]
    staged = stage(table)

    done = table.compact(full=True)
    seen = {row["id"]: (row["day"], row["value"]) for row in staged.scan().to_arrow().to_pylist()}
    staged.publish()

    assert done.units + done.units_skipped == 2
    assert seen == read(table) == after
    table.compact(full=True)
    assert read(table) == after


@pytest.mark.parametrize("case", STAGED)
def test_what_is_staged_while_a_compaction_publishes_is_published_after_it(
    case: str, table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compaction comes in after the commit has found its files, and before it is staged."""
    stage, after = STAGED[case]
    done: list[int] = []

    def compact(catalog: Any, proposal: Proposal) -> None:
        if proposal.kind is not CommitKind.COMPACT and not done:
            done.append(table.compact(full=True).units)

    before_staging(monkeypatch, compact)
    staged = stage(table)
    seen = {row["id"]: (row["day"], row["value"]) for row in staged.scan().to_arrow().to_pylist()}
    staged.publish()

    assert done == [2]
    assert seen == read(table) == after


def test_a_staged_delete_of_an_append_table_keeps_its_files_from_being_packed(
    log: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = log.stage_delete("value = 1")
    assert log.compact(full=True).snapshot is None
    staged.publish()
    assert log.compact(full=True).files_before == 2
    assert read(log).keys() == {0, 2}

    log.append(rows({7: ("mon", 7)}))
    late: list[lakelib.StagedCommit] = []
    before_publishing(monkeypatch, lambda: late.append(log.stage_delete("value = 7")))
    done = log.compact(full=True)
    assert done.snapshot is None
    assert stored(log) >= live(log)
    late[0].publish()
    assert read(log).keys() == {0, 2}


def test_a_delete_of_an_append_table_looks_again_when_a_compaction_was_quicker(
    log: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []

    def compact(catalog: Any, proposal: Proposal) -> None:
        if proposal.kind is CommitKind.DELETE and not done:
            done.append(log.compact(full=True).units)

    before_staging(monkeypatch, compact)
    old = stored(log)
    log.stage_delete("value = 1").publish()

    assert done == [1]
    assert read(log).keys() == {0, 2}
    assert len(stored(log) - old) == 2, "the packed file, and what the delete left of it"


def test_a_claim_that_is_not_committed_yet_is_waited_for(
    log: lakelib.Table, monkeypatch: pytest.MonkeyPatch, connection: psycopg.Connection[Any]
) -> None:
    """Were the compaction to look before the delete is staged, and publish after it, the delete could never be."""
    stage = commits.stage
    compacting = threading.Thread(target=lambda: log.compact(full=True))

    def stage_slowly(catalog: Catalog, proposal: Proposal) -> Staged:
        def enter_and_wait(db: Any) -> None:
            db.execute(query("stage"), {"proposal": commits._proposal_json(proposal), "publishing": None})
            compacting.start()
            compacting.join(0.5)

        catalog.run(enter_and_wait)
        return Staged(commit_id=proposal.commit_id)

    monkeypatch.setattr(commits, "stage", stage_slowly)
    staged = log.stage_delete("value = 1")
    monkeypatch.setattr(commits, "stage", stage)
    compacting.join()
    staged.publish()

    assert read(log).keys() == {0, 2}


def test_an_overwrite_conflicts_with_what_others_than_compactions_do_beside_it(table: lakelib.Table) -> None:
    staged = table.stage_overwrite(rows({3: ("mon", 3)}), {"day": "mon"})
    table.upsert(rows({4: ("mon", 4)}))
    table.compact(full=True)

    with pytest.raises(lakelib.ConflictError) as caught:
        staged.publish()

    assert caught.value.kind == "rows_added"


def test_a_delete_that_looked_before_rows_were_added_and_compacted_conflicts(table: lakelib.Table) -> None:
    staged = table.stage_delete("value = 1")
    table.upsert(rows({4: ("mon", 1)}))
    table.compact(full=True)

    with pytest.raises(lakelib.ConflictError) as caught:
        staged.publish()

    assert caught.value.kind == "rows_added"


def test_a_staged_delete_on_a_sequenced_table_is_published_after_a_compaction(lake: lakelib.Lake) -> None:
    table = lake.create_table("shop.s", SCHEMA, primary_key=["id"], sequence_by=["value"])
    for number in range(3):
        table.upsert(rows({1: ("mon", number), 2: ("mon", number)}))
    staged = table.stage_delete("id = 1")

    assert table.compact(full=True).units == 1
    staged.publish()

    assert read(table) == {2: ("mon", 2)}


# What a compaction is to others


def test_a_table_that_requires_a_gate_is_compacted_without_one(
    table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    connection.execute('update lake."table" set options = options || \'{"required_gate": "orders"}\'')

    assert table.compact(full=True).units == 2
    assert read(table) == OLD


def test_a_lease_holds_the_snapshot_while_its_files_are_read(
    table: lakelib.Table, connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[Any] = []
    rewrite = engines.rewrite_split

    def look_and_rewrite(work: Any) -> Any:
        held.extend(connection.execute("select snapshot_id from lake.lease").fetchall())
        return rewrite(work)

    monkeypatch.setattr(engines, "rewrite_split", look_and_rewrite)
    table.compact(full=True)

    assert set(held) == {(2,)}
    assert connection.execute("select count(*) from lake.lease").fetchone() == (0,)


def test_a_replayed_write_is_recognised_after_a_compaction(table: lakelib.Table) -> None:
    first = table.upsert(rows({3: ("mon", 3)}), idempotency_key=("loader", 1))
    table.compact(full=True)

    assert table.upsert(rows({3: ("mon", 5)}), idempotency_key=("loader", 1)) == first
    assert read(table)[3] == ("mon", 3)


def test_a_predicate_over_other_columns_is_refused(table: lakelib.Table) -> None:
    with pytest.raises(InvalidInputError) as caught:
        table.compact(where="value = 1")
    assert caught.value.kind == "invalid_predicate"
    assert "day" in caught.value.remedy


def test_a_compaction_of_a_dropped_table_fails_and_leaves_no_file(
    lake: lakelib.Lake, table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_publishing(monkeypatch, lambda: lake.drop_table("shop.a"))
    old = stored(table)

    with pytest.raises(lakelib.NotFoundError):
        table.compact(full=True)

    assert stored(table) == old
