"""Commits: staged in isolation, published once and whole, whoever else is writing."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import lakelib.ops.delete as delete_module
import lakelib.ops.overwrite as overwrite_module
from lakelib import ConflictError, InvalidInputError, Lake, RejectedError, StagedCommit, Table
from lakelib.catalog import commits
from lakelib.model.table import Proposal
from lakelib.settings import StorageSettings
from tests.acceptance.support import Engine, NewTable, data, refused, rows_of

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())])


@pytest.fixture(scope="module", params=["local", "s3"])
def storage_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(new_table: NewTable) -> Table:
    return new_table(SCHEMA, primary_key=["id"], partition_by=["p"], buckets=4)


def row(number: int, value: int = 1, partition: str | None = "a") -> pa.Table:
    return data(SCHEMA, (number, partition, value))


def test_a_commit_of_nothing_is_a_snapshot(engine: Engine, table: Table) -> None:
    snapshot = engine.write(table, "upsert", data(SCHEMA))
    assert (snapshot.id, snapshot.summary["files_added"]) == (1, 0)
    assert table.head == snapshot
    assert len(table.files()) == 0


def test_history_is_dense_and_newest_first(engine: Engine, table: Table) -> None:
    for number in range(5):
        engine.write(table, "upsert", row(number), properties={"run": str(number)})
    assert [snapshot.id for snapshot in table.history()] == [5, 4, 3, 2, 1]
    assert table.history()[0].properties == {"run": "4"}


def test_a_replay_after_another_writers_commit_is_recognised(engine: Engine, table: Table) -> None:
    first = engine.write(table, "upsert", row(1, 1), idempotency_key=("etl", 1))
    engine.write(table, "upsert", row(1, 2))
    assert engine.write(table, "upsert", row(1, 1), idempotency_key=("etl", 1)) == first
    assert rows_of(engine, table.scan(columns=["v"])) == [(2,)]
    assert table.head is not None
    assert table.head.id == 2


def test_keys_of_other_applications_and_tables_are_other_work(
    engine: Engine, table: Table, new_table: NewTable
) -> None:
    other = new_table(SCHEMA, primary_key=["id"])
    assert engine.write(table, "upsert", row(1), idempotency_key=("a", 1)).id == 1
    assert engine.write(table, "upsert", row(2), idempotency_key=("b", 1)).id == 2
    assert engine.write(table, "upsert", row(3), idempotency_key=("a", 2)).id == 3
    assert engine.write(other, "upsert", row(1), idempotency_key=("a", 1)).id == 1
    assert table.scan().count() == 3


def test_every_kind_of_write_is_replayed(engine: Engine, table: Table) -> None:
    engine.write(table, "upsert", data(SCHEMA, (1, "a", 1), (2, "a", 1)))
    for number, work in enumerate(
        (
            lambda key: engine.write(table, "append", row(3), idempotency_key=key),
            lambda key: engine.write(table, "delete_keys", row(1), idempotency_key=key),
            lambda key: table.delete("id = 2", idempotency_key=key),
            lambda key: engine.write(table, "overwrite", row(4), idempotency_key=key),
            lambda key: table.evolve(add=[("note", "string")], idempotency_key=key),
        )
    ):
        assert work(("job", number)).id == work(("job", number)).id == number + 2


def test_two_writers_from_an_empty_table_both_publish(engine: Engine, table: Table) -> None:
    first, second = table.stage_upsert(row(1)), table.stage_upsert(row(2, partition=None))
    second.publish()
    first.publish()
    assert rows_of(engine, table.scan(columns=["id", "_commit"])) == [(1, 2), (2, 1)]


def test_many_writers_at_once_lose_nothing(engine: Engine, table: Table) -> None:
    errors: list[BaseException] = []

    def work(writer: int) -> None:
        try:
            for number in range(5):
                engine.write(table, "upsert", row(writer * 10 + number))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert table.scan().count() == 30
    assert [snapshot.id for snapshot in table.history()] == list(range(30, 0, -1))


def test_deletes_and_upserts_at_once_lose_nothing(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], sequence_by=["v"])
    engine.write(table, "upsert", data(SCHEMA, *((number, "a", 0) for number in range(12))))
    errors: list[BaseException] = []
    start = threading.Barrier(4)

    def work(writer: int) -> None:
        try:
            start.wait()
            engine.write(table, "delete_keys", data({"id": pa.int64()}, (writer,)))
            engine.write(table, "upsert", row(writer + 100))
            engine.write(table, "delete_keys", data({"id": pa.int64()}, (writer + 4,)))
            table.delete(f"id = {writer + 8}")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert rows_of(engine, table.scan(columns=["id"])) == [(100,), (101,), (102,), (103,)]


def test_a_staged_commit_is_seen_by_those_who_ask_only(engine: Engine, table: Table) -> None:
    engine.write(table, "upsert", data(SCHEMA, (1, "a", 1), (2, "a", 1)))
    staged = table.stage_upsert(data(SCHEMA, (2, "a", 2), (3, "b", 2)))
    assert rows_of(engine, table.scan()) == [(1, "a", 1), (2, "a", 1)]
    assert rows_of(engine, staged.scan(scope="staged")) == [(2, "a", 2), (3, "b", 2)]
    assert rows_of(engine, staged.scan()) == [(1, "a", 1), (2, "a", 2), (3, "b", 2)]
    assert rows_of(engine, staged.scan(where="v = 1")) == [(1, "a", 1)]
    assert (staged.state, table.head and table.head.id) == ("staged", 1)
    engine.write(table, "upsert", row(1, 5))
    assert rows_of(engine, staged.scan(columns=["v"], where="id = 1")) == [(5,)]


def test_publishing_again_gives_the_same_snapshot(engine: Engine, table: Table) -> None:
    staged = table.stage_upsert(row(1))
    first = staged.publish()
    engine.write(table, "upsert", row(2))
    assert staged.publish() == first
    assert staged.state == "published"


def test_a_rejected_commit_is_never_visible_and_stays_inspectable(engine: Engine, table: Table) -> None:
    staged = table.stage_upsert(row(1))
    staged.reject("too few rows")
    staged.reject("said twice")
    with pytest.raises(RejectedError, match="too few rows"):
        staged.publish()
    assert table.head is None
    assert rows_of(engine, staged.scan(scope="staged")) == [(1, "a", 1)]


def test_a_rejected_commit_stays_rejected_when_another_attempt_has_done_its_work(table: Table) -> None:
    staged = table.stage_upsert(row(1), idempotency_key=("loader", 1))
    staged.reject("wrong source")
    table.upsert(row(2), idempotency_key=("loader", 1))
    with pytest.raises(RejectedError, match="wrong source"):
        staged.publish()


def test_only_staged_commits_go_into_a_transaction(lake: Lake, table: Table, storage: StorageSettings) -> None:
    with refused(table, storage, "no staged commit"), lake.transaction() as transaction:
        transaction.add(table)  # type: ignore[arg-type]


def test_properties_are_names_and_values(table: Table, storage: StorageSettings) -> None:
    with refused(table, storage, "properties is ['a']"):
        table.upsert(row(1), properties=["a"])  # type: ignore[typeddict-item]


def test_a_published_commit_cannot_be_rejected(table: Table) -> None:
    staged = table.stage_upsert(row(1))
    staged.publish()
    with pytest.raises(ConflictError, match="is published"):
        staged.reject("too late")


@pytest.mark.parametrize("reason", ["a\0b", "a\ud800", None, "", " \n"])
def test_a_reason_that_cannot_be_kept_or_is_blank_is_refused(table: Table, reason: str) -> None:
    staged = table.stage_upsert(row(1))
    with pytest.raises(InvalidInputError, match="reason"):
        staged.reject(reason)
    assert staged.state == "staged"


def test_a_newer_attempt_takes_over(engine: Engine, table: Table) -> None:
    older = table.stage_upsert(row(1, 1), idempotency_key=("job", 1))
    newer = table.stage_upsert(row(1, 2), idempotency_key=("job", 1))
    with pytest.raises(ConflictError, match="a newer attempt took over"):
        older.publish()
    newer.publish()
    assert older.publish().id == 1
    assert rows_of(engine, table.scan(columns=["v"])) == [(2,)]


def test_a_direct_attempt_takes_over_a_staged_one(engine: Engine, table: Table) -> None:
    lost = table.stage_upsert(row(1, 1), idempotency_key=("job", 1))
    done = engine.write(table, "upsert", row(1, 2), idempotency_key=("job", 1))
    assert lost.publish() == done
    assert lost.state == "expired"
    assert rows_of(engine, table.scan(columns=["v"])) == [(2,)]


def test_of_two_attempts_at_once_exactly_one_publishes(engine: Engine, table: Table) -> None:
    answers: list[int | str] = []

    def attempt(value: int) -> None:
        try:
            answers.append(engine.write(table, "upsert", row(1, value), idempotency_key=("job", 1)).id)
        except ConflictError as error:
            answers.append(error.kind)

    threads = [threading.Thread(target=attempt, args=(value,)) for value in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answers) <= {1, "fenced"}
    assert 1 in answers
    assert [snapshot.id for snapshot in table.history()] == [1]


def test_a_transaction_over_tables_is_one_instant(
    engine: Engine, lake: Lake, table: Table, new_table: NewTable
) -> None:
    other = new_table(SCHEMA)
    with lake.transaction() as transaction:
        transaction.add(other.stage_append(row(1)))
        transaction.add(table.stage_upsert(row(1)))
        transaction.add(table.stage_upsert(row(1, 2)))
        assert table.head is None
    assert [snapshot.id for snapshot in transaction.snapshots] == [1, 1, 2]
    assert rows_of(engine, table.scan(columns=["v"])) == [(2,)]
    assert other.scan().count() == 1


def _publish_together(lake: Lake, *commits: StagedCommit, error: Exception | None = None) -> None:
    with lake.transaction() as transaction:
        for commit in commits:
            transaction.add(commit)
        if error is not None:
            raise error


def _stale_overwrite(engine: Engine, table: Table) -> StagedCommit:
    staged = table.stage_overwrite(row(9))
    engine.write(table, "upsert", row(8))
    return staged


def _rejected(engine: Engine, table: Table) -> StagedCommit:
    engine.write(table, "upsert", row(8))
    staged = table.stage_upsert(row(9))
    staged.reject("bad")
    return staged


@pytest.mark.parametrize("spoil", [_stale_overwrite, _rejected])
def test_a_transaction_with_one_impossible_commit_changes_nothing(
    engine: Engine, lake: Lake, table: Table, new_table: NewTable, spoil: object
) -> None:
    other = new_table(SCHEMA, primary_key=["id"])
    good = other.stage_upsert(row(1))
    bad = spoil(engine, table)  # type: ignore[operator]
    with pytest.raises((ConflictError, RejectedError)):
        _publish_together(lake, good, bad)
    assert other.head is None
    assert good.state == "staged"
    assert rows_of(engine, table.scan(columns=["id"])) == [(8,)]
    good.publish()
    assert other.scan().count() == 1


def test_a_transaction_left_by_an_error_publishes_nothing(lake: Lake, table: Table) -> None:
    staged = table.stage_upsert(row(1))
    with pytest.raises(RuntimeError):
        _publish_together(lake, staged, error=RuntimeError())
    assert (staged.state, table.head) == ("staged", None)


@pytest.mark.parametrize("where", ["p = 'b'", "p = 'b' and v > 0", "p like 'b%'", "v > 0", "true"])
@pytest.mark.parametrize("key", [["id"], []], ids=["key", "append"])
def test_a_staged_delete_conflicts_with_rows_added_where_it_looked(
    engine: Engine, new_table: NewTable, where: str, key: list[str]
) -> None:
    table = new_table(SCHEMA, primary_key=key, partition_by=["p"])
    engine.write(table, "append", row(1))
    staged = table.stage_delete(where)
    engine.write(table, "append", row(2, partition="b"))
    with pytest.raises(ConflictError, match="rows were added"):
        staged.publish()
    assert table.scan().count() == 2


@pytest.mark.parametrize("where", ["p = 'a'", "p = 'a' and v > 0", "p like 'a%'"])
def test_a_staged_delete_publishes_beside_rows_added_elsewhere(engine: Engine, new_table: NewTable, where: str) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"])
    engine.write(table, "append", row(1))
    staged = table.stage_delete(where)
    engine.write(table, "append", row(2, partition="b"))
    staged.publish()
    assert rows_of(engine, table.scan(columns=["id"])) == [(2,)]


def test_a_staged_delete_of_keys_that_had_to_be_looked_up_conflicts_with_rows_added_there(
    engine: Engine, new_table: NewTable
) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], sequence_by=["v"])
    staged = table.stage_delete_keys(data({"id": pa.int64(), "p": pa.string()}, (1, "a")))
    beside = table.stage_delete_keys(data({"id": pa.int64(), "p": pa.string()}, (1, "b")))
    engine.write(table, "upsert", row(1))
    with pytest.raises(ConflictError, match="rows were added"):
        staged.publish()
    beside.publish()


def test_staged_upserts_publish_in_any_order_and_the_last_published_wins(engine: Engine, table: Table) -> None:
    staged = [table.stage_upsert(row(1, value)) for value in range(3)]
    for number in (1, 2, 0):
        staged[number].publish()
    assert rows_of(engine, table.scan(columns=["v", "_commit"])) == [(0, 3)]


def test_a_staged_delete_of_no_keys_publishes_beside_any_rows(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], sequence_by=["v"])
    staged = table.stage_delete_keys(data({"id": pa.int64(), "p": pa.string()}))
    engine.write(table, "upsert", row(1))
    assert staged.publish().id == 2


def test_a_staged_delete_that_can_match_nothing_publishes_beside_any_rows(engine: Engine, table: Table) -> None:
    staged = table.stage_delete("false")
    engine.write(table, "upsert", row(1))
    assert staged.publish().id == 2


REMOVALS = {
    "the partition dropped": lambda table: table.delete("p = 'a'"),
    "the partition overwritten": lambda table: table.overwrite(row(7), partitions="dynamic"),
    "the table overwritten": lambda table: table.overwrite(data(SCHEMA), partitions="all"),
}


@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS)
def test_a_staged_delete_in_a_sequenced_table_conflicts_with_the_removal_of_what_it_read(
    engine: Engine, new_table: NewTable, remove: Callable[[Table], object]
) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], sequence_by=["v"])
    engine.write(table, "upsert", row(1, 5))
    staged = table.stage_delete("id = 1 and v > 2")
    remove(table)
    with pytest.raises(ConflictError, match=r"rows were (added|removed)"):
        staged.publish()
    engine.write(table, "upsert", row(1, 3))
    assert rows_of(engine, table.scan(where="id = 1")) == [(1, "a", 3)]


def test_a_delete_in_a_sequenced_table_looks_again_when_rows_were_removed_meanwhile(
    engine: Engine, new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], sequence_by=["v"])
    engine.write(table, "upsert", row(1, 5))
    beside = iter([lambda: table.delete("p = 'a'")])
    _do_after_staging(monkeypatch, lambda: next(beside, lambda: None)())
    table.delete("id = 1 and v > 2")
    engine.write(table, "upsert", row(1, 3))
    assert rows_of(engine, table.scan()) == [(1, "a", 3)]


@pytest.mark.parametrize("key", [["id"], []], ids=["key", "append"])
def test_a_delete_gets_through_beside_writers_that_never_pause(
    engine: Engine, new_table: NewTable, monkeypatch: pytest.MonkeyPatch, key: list[str]
) -> None:
    table = new_table(SCHEMA, primary_key=key)
    engine.write(table, "append", row(0))
    writers: list[threading.Thread] = []

    def write_beside() -> None:
        """A writer publishes between looking and publishing of each try, unless it is held off."""
        writer = threading.Thread(target=lambda: engine.write(table, "append", row(len(writers), value=2)))
        writers.append(writer)
        writer.start()
        writer.join(timeout=0.7)

    _do_after_staging(monkeypatch, write_beside)
    table.delete("v = 1")
    for writer in writers:
        writer.join()
    assert rows_of(engine, table.scan(columns=["v"])) == [(2,)] * len(writers)


def _do_after_staging(monkeypatch: pytest.MonkeyPatch, work: Callable[[], None]) -> None:
    """Whenever a delete has looked at the table, and before it publishes, `work` happens."""
    propose, amend = delete_module.propose, commits.amend

    def look_and_work(look: Callable[..., Any], *args: Any, **options: Any) -> Any:
        found = look(*args, **options)
        with pytest.MonkeyPatch.context() as undone:
            undone.setattr(delete_module, "propose", propose)
            work()
        return found

    monkeypatch.setattr(delete_module, "propose", partial(look_and_work, propose))
    monkeypatch.setattr(commits, "amend", partial(look_and_work, amend))


def test_a_transaction_publishes_in_the_order_of_adding(engine: Engine, lake: Lake, table: Table) -> None:
    first, second = table.stage_upsert(row(1, 1)), table.stage_upsert(row(1, 2))
    with lake.transaction() as transaction:
        transaction.add(second)
        transaction.add(first)
    assert [snapshot.id for snapshot in transaction.snapshots] == [1, 2]
    assert rows_of(engine, table.scan(columns=["v"])) == [(1,)]


def test_versions_staged_in_the_wrong_order_go_into_a_transaction_in_the_right_one(
    engine: Engine, lake: Lake, table: Table
) -> None:
    second = table.stage_upsert(row(2), idempotency_key=("etl", 2))
    first = table.stage_upsert(row(1), idempotency_key=("etl", 1))
    with lake.transaction() as transaction:
        transaction.add(first)
        transaction.add(second)
    assert rows_of(engine, table.scan(columns=["id"])) == [(1,), (2,)]


def test_versions_added_in_falling_order_are_refused(lake: Lake, table: Table) -> None:
    first = table.stage_upsert(row(1), idempotency_key=("etl", 1))
    second = table.stage_upsert(row(2), idempotency_key=("etl", 2))
    with pytest.raises(ConflictError, match="rising order") as caught:
        _publish_together(lake, second, first)
    assert caught.value.kind == "version_order"
    assert table.head is None
    assert (first.state, second.state) == ("staged", "staged")


def test_a_transaction_adopts_what_was_published_before_it(engine: Engine, lake: Lake, table: Table) -> None:
    first = table.stage_upsert(row(1), idempotency_key=("etl", 1))
    second = table.stage_upsert(row(2), idempotency_key=("etl", 2))
    third = table.stage_upsert(row(3), idempotency_key=("etl", 3))
    second.publish()
    with lake.transaction() as transaction:
        for commit in (second, first, third):
            transaction.add(commit)
    assert [snapshot.id for snapshot in transaction.snapshots] == [1, 1, 2]
    assert rows_of(engine, table.scan(columns=["id"])) == [(2,), (3,)]


def test_a_published_commit_shows_the_table_as_it_is_now(engine: Engine, table: Table) -> None:
    staged = table.stage_upsert(data(SCHEMA, (1, "a", 1), (2, "b", 1)))
    staged.publish()
    table.delete("p = 'a'")
    assert rows_of(engine, staged.scan()) == [(2, "b", 1)]
    assert rows_of(engine, staged.scan(scope="staged")) == [(1, "a", 1), (2, "b", 1)]


def test_a_rebased_overwrite_counts_the_files_that_it_took_out(
    engine: Engine, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    propose = overwrite_module.propose

    def propose_early(*args: Any, **options: Any) -> Proposal:
        proposal = propose(*args, **options)
        engine.write(table, "upsert", row(1))
        engine.write(table, "upsert", row(2))
        return proposal

    monkeypatch.setattr(overwrite_module, "propose", propose_early)
    snapshot = table.overwrite(row(3))
    assert snapshot.summary["files_removed"] == 2
    assert rows_of(engine, table.scan(columns=["id"])) == [(3,)]
