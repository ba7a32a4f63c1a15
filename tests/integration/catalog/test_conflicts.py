"""What keeps a staged commit from being published: rows added where it read, files that are gone, another schema."""

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import lakelib
from lakelib.catalog import commits
from lakelib.catalog.connect import Catalog
from lakelib.catalog.queries import query
from tests.integration.faults.jobs import SCHEMA, Rows, read, rows
from tests.waiting import wait_until

Change = Callable[[lakelib.Table], object]
Stage = Callable[[lakelib.Table], lakelib.StagedCommit]

LOCK = """
    select from lake.commit c join lake."table" t on t.id = c.table_id where c.id = %(commit_id)s
    for no key update of t, c"""
WAITING = "select count(*) from pg_locks where not granted"
OLD: Rows = {1: ("mon", 1), 2: ("tue", 2)}


@pytest.fixture
def table(lake: lakelib.Lake) -> lakelib.Table:
    """Two partitions of one row each."""
    table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
    table.upsert(rows(OLD))
    return table


def upsert(content: Rows) -> Change:
    return lambda table: table.upsert(rows(content))


def delete(where: str) -> Change:
    return lambda table: table.delete(where)


def overwrite(content: Rows, partitions: Any = "all") -> Change:
    return lambda table: table.overwrite(rows(content), partitions)


def evolve(table: lakelib.Table) -> object:
    return table.evolve(add=[("note", "string")])


def staged_upsert(content: Rows) -> Stage:
    return lambda table: table.stage_upsert(rows(content))


def staged_delete(where: str) -> Stage:
    return lambda table: table.stage_delete(where)


def staged_overwrite(content: Rows, partitions: Any = "all") -> Stage:
    return lambda table: table.stage_overwrite(rows(content), partitions)


FITTING: dict[str, tuple[Stage, Change, Rows]] = {
    "an upsert after an upsert of the same key": (
        staged_upsert({1: ("mon", 9)}),
        upsert({1: ("mon", 8)}),
        {1: ("mon", 9), 2: ("tue", 2)},
    ),
    "an upsert after a delete of its partition": (
        staged_upsert({1: ("mon", 9)}),
        delete("day = 'mon'"),
        {1: ("mon", 9), 2: ("tue", 2)},
    ),
    "an upsert after an overwrite": (
        staged_upsert({3: ("mon", 9)}),
        overwrite({4: ("wed", 4)}),
        {3: ("mon", 9), 4: ("wed", 4)},
    ),
    "an upsert after a change of the schema": (
        staged_upsert({3: ("mon", 9)}),
        evolve,
        {**OLD, 3: ("mon", 9)},
    ),
    "a dynamic overwrite after an upsert elsewhere": (
        staged_overwrite({3: ("mon", 9)}, "dynamic"),
        upsert({4: ("tue", 4)}),
        {3: ("mon", 9), 2: ("tue", 2), 4: ("tue", 4)},
    ),
    "a static overwrite after an upsert elsewhere": (
        staged_overwrite({3: ("mon", 9)}, {"day": "mon"}),
        upsert({4: ("wed", 4)}),
        {3: ("mon", 9), 2: ("tue", 2), 4: ("wed", 4)},
    ),
    "a delete in a partition after an upsert elsewhere": (
        staged_delete("day = 'mon' and value < 5"),
        upsert({4: ("tue", 4), 5: ("wed", 5)}),
        {2: ("tue", 2), 4: ("tue", 4), 5: ("wed", 5)},
    ),
    "a delete of a partition after an upsert elsewhere": (
        staged_delete("day = 'mon'"),
        upsert({4: ("tue", 4)}),
        {2: ("tue", 2), 4: ("tue", 4)},
    ),
}


@pytest.mark.parametrize("case", FITTING)
def test_what_does_not_touch_where_a_commit_read_lets_it_through(case: str, table: lakelib.Table) -> None:
    stage, change, after = FITTING[case]
    staged = stage(table)
    change(table)

    staged.publish()

    found = table.scan(columns=["id", "day", "value"]).to_arrow().to_pylist()
    assert {row["id"]: (row["day"], row["value"]) for row in found} == after


CONFLICTING: dict[str, tuple[Stage, Change, str]] = {
    "an overwrite after an upsert": (staged_overwrite({3: ("mon", 3)}), upsert({4: ("sun", 4)}), "rows_added"),
    "a dynamic overwrite after an upsert to its partition": (
        staged_overwrite({3: ("mon", 3)}, "dynamic"),
        upsert({4: ("mon", 4)}),
        "rows_added",
    ),
    "a dynamic overwrite after an upsert to its new partition": (
        staged_overwrite({3: ("wed", 3)}, "dynamic"),
        upsert({4: ("wed", 4)}),
        "rows_added",
    ),
    "a static overwrite after an upsert to its partition": (
        staged_overwrite({3: ("mon", 3)}, {"day": "mon"}),
        upsert({4: ("mon", 4)}),
        "rows_added",
    ),
    "an empty static overwrite after an upsert to a partition that was not there": (
        staged_overwrite({}, {"day": "wed"}),
        upsert({4: ("wed", 4)}),
        "rows_added",
    ),
    "an overwrite after a delete of a partition": (
        staged_overwrite({3: ("mon", 3)}),
        delete("day = 'mon'"),
        "input_gone",
    ),
    "a delete after an upsert": (staged_delete("value < 5"), upsert({4: ("wed", 4)}), "rows_added"),
    "a delete in a partition after an upsert to it": (
        staged_delete("day = 'mon' and value < 5"),
        upsert({4: ("mon", 4)}),
        "rows_added",
    ),
    "a delete of a partition after an upsert to it": (
        staged_delete("day = 'mon'"),
        upsert({4: ("mon", 4)}),
        "rows_added",
    ),
    "a delete of a partition that was not there after an upsert to it": (
        staged_delete("day = 'wed'"),
        upsert({4: ("wed", 4)}),
        "rows_added",
    ),
    "a delete over a range of partitions after an upsert to a new one in it": (
        staged_delete("day >= 'tue' and value < 5"),
        upsert({4: ("wed", 4)}),
        "rows_added",
    ),
    "a delete of a partition after its delete": (staged_delete("day = 'mon'"), delete("day = 'mon'"), "input_gone"),
    "a change of the schema after another": (
        lambda table: table.stage_upsert(
            rows({3: ("mon", 3)}).append_column("extra", pa.array(["x"])), merge_schema=True
        ),
        evolve,
        "schema_changed",
    ),
}


@pytest.mark.parametrize("case", CONFLICTING)
def test_what_touches_where_a_commit_read_is_a_conflict_that_changes_nothing(case: str, table: lakelib.Table) -> None:
    stage, change, kind = CONFLICTING[case]
    staged = stage(table)
    change(table)
    before, head = read_loosely(table), table.head

    with pytest.raises(lakelib.ConflictError) as caught:
        staged.publish()

    assert caught.value.kind == kind
    assert "shop.a" in str(caught.value)
    assert read_loosely(table) == before
    assert table.head == head
    assert staged.state == "staged"


def read_loosely(table: lakelib.Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


DIRECT: dict[str, tuple[Change, Rows]] = {
    "static overwrite": (overwrite({3: ("wed", 3)}, {"day": "wed"}), {**OLD, 3: ("wed", 3)}),
    "empty static overwrite": (overwrite({}, {"day": "wed"}), OLD),
    "dynamic overwrite": (overwrite({3: ("wed", 3)}, "dynamic"), {**OLD, 3: ("wed", 3)}),
    "overwrite of all": (overwrite({3: ("wed", 3)}), {3: ("wed", 3)}),
    "delete of the partition": (delete("day = 'wed'"), OLD),
    "delete by value": (delete("value > 100"), OLD),
}


@pytest.mark.parametrize("case", DIRECT)
def test_direct_work_takes_in_a_partition_that_came_into_being_while_it_was_staged(
    case: str, table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    act, after = DIRECT[case]
    commit = commits.commit
    upserts: list[object] = []

    def be_overtaken_and_commit(*arguments: Any, **options: Any) -> object:
        if not upserts:
            upserts.append(None)
            table.upsert(rows({7: ("wed", 700)}))
        return commit(*arguments, **options)

    monkeypatch.setattr(commits, "commit", be_overtaken_and_commit)

    act(table)

    assert upserts
    assert read(table) == after


def test_a_newer_attempt_fences_the_older_one(table: lakelib.Table) -> None:
    older = table.stage_upsert(rows({3: ("mon", 3)}), idempotency_key=("loader", 1))
    newer = table.stage_upsert(rows({3: ("mon", 4)}), idempotency_key=("loader", 1))

    with pytest.raises(lakelib.ConflictError) as caught:
        older.publish()

    assert caught.value.kind == "fenced"
    assert older.state == "expired"
    assert newer.publish().id == 2
    assert older.publish().id == 2, "its work is done: by the newer attempt"
    assert read(table)[3] == ("mon", 4)


def test_attempts_are_fenced_by_application_and_version_and_table(lake: lakelib.Lake, table: lakelib.Table) -> None:
    other = lake.create_table("shop.b", SCHEMA, primary_key=["id"])
    staged = [
        table.stage_upsert(rows({3: ("mon", 3)}), idempotency_key=("loader", 1)),
        table.stage_upsert(rows({4: ("mon", 4)}), idempotency_key=("loader", 2)),
        table.stage_upsert(rows({5: ("mon", 5)}), idempotency_key=("other", 1)),
        other.stage_upsert(rows({6: ("mon", 6)}), idempotency_key=("loader", 1)),
        table.stage_upsert(rows({7: ("mon", 7)})),
    ]

    assert [each.publish().id for each in staged] == [2, 3, 4, 1, 5]


def test_a_replayed_version_is_recognised_after_others_have_committed(table: lakelib.Table) -> None:
    first = table.upsert(rows({3: ("mon", 3)}), idempotency_key=("loader", 1))
    table.upsert(rows({3: ("mon", 4)}), idempotency_key=("other", 9))
    table.upsert(rows({4: ("mon", 4)}), idempotency_key=("loader", 2))

    assert table.upsert(rows({3: ("mon", 3)}), idempotency_key=("loader", 1)) == first
    assert read(table)[3] == ("mon", 4)
    assert len(table.history()) == 4


@pytest.mark.parametrize("stage", [staged_upsert({3: ("mon", 3)}), staged_overwrite({3: ("mon", 3)})])
def test_a_stage_that_was_open_for_weeks_still_publishes(
    stage: Stage, table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    staged = stage(table)
    connection.execute("update lake.commit set staged_at = staged_at - interval '40 days' where state = 'staged'")

    assert staged.publish().id == 2
    assert read(table)[3] == ("mon", 3)


def test_a_rejected_commit_never_publishes_and_a_published_one_is_never_rejected(table: lakelib.Table) -> None:
    rejected, published = table.stage_upsert(rows({3: ("mon", 3)})), table.stage_upsert(rows({4: ("mon", 4)}))
    rejected.reject("bad data")
    published.publish()

    with pytest.raises(lakelib.RejectedError, match="bad data"):
        rejected.publish()
    with pytest.raises(lakelib.ConflictError):
        published.reject("too late")

    assert rejected.state == "rejected"
    assert rejected.scan(scope="staged").to_arrow().to_pylist() == [{"id": 3, "day": "mon", "value": 3}]
    assert published.state == "published"


def test_a_transaction_in_which_one_commit_conflicts_publishes_none(lake: lakelib.Lake, table: lakelib.Table) -> None:
    other = lake.create_table("shop.b", SCHEMA, primary_key=["id"])
    good, bad = other.stage_upsert(rows({1: ("mon", 1)})), table.stage_overwrite(rows({3: ("mon", 3)}))
    table.upsert(rows({4: ("mon", 4)}))

    with pytest.raises(lakelib.ConflictError):
        publish_together(lake, good, bad)

    assert other.head is None
    assert read(table) == {**OLD, 4: ("mon", 4)}
    assert good.state == bad.state == "staged"


def publish_together(lake: lakelib.Lake, *staged: lakelib.StagedCommit) -> None:
    with lake.transaction() as transaction:
        for each in staged:
            transaction.add(each)


def test_staging_goes_on_while_a_publisher_holds_the_table(
    table: lakelib.Table, connection: psycopg.Connection[Any]
) -> None:
    """A stage refers to the table, and takes over an older attempt. Were it to wait for a publisher of that attempt,
    which waits for the attempt, both would wait for ever."""
    older = table.stage_upsert(rows({3: ("mon", 3)}), idempotency_key=("loader", 1))
    published = table.stage_upsert(rows({4: ("mon", 4)}))
    with connection.transaction():
        connection.execute(LOCK, {"commit_id": published.id})
        newer = Staging(table, idempotency_key=("loader", 1))
        newer.start()
        newer.join(5)
        waits = newer.is_alive()
    newer.join()

    assert not waits
    assert older.state == "expired"


class Staging(threading.Thread):
    """Stages an upsert in a thread of its own."""

    def __init__(self, table: lakelib.Table, **options: Any) -> None:
        super().__init__()
        self._table = table
        self._options = options

    def run(self) -> None:
        self._table.stage_upsert(rows({3: ("mon", 4)}), **self._options)


@pytest.mark.parametrize("key", [None, ("etl", 1)], ids=["without a key", "with a key"])
def test_staging_again_waits_for_a_first_try_whose_reply_was_lost(
    table: lakelib.Table,
    monkeypatch: pytest.MonkeyPatch,
    connection: psycopg.Connection[Any],
    key: tuple[str, int] | None,
) -> None:
    """The first try's transaction is still on its way to its end when the second begins."""
    stage, entered = commits.stage, threading.Event()

    def hold(db: Any, proposal: Any) -> None:
        db.execute(query("stage"), {"proposal": commits._proposal_json(proposal), "publishing": None})
        entered.set()
        wait_until(lambda: connection.execute(WAITING).fetchone() == (1,))

    def stage_twice(catalog: Catalog, proposal: Any) -> object:
        first = threading.Thread(target=lambda: catalog.run(lambda db: hold(db, proposal)))
        first.start()
        assert entered.wait(5)
        outcome = stage(catalog, proposal)
        first.join()
        return outcome

    monkeypatch.setattr(commits, "stage", stage_twice)
    staged = table.stage_upsert(rows({3: ("mon", 3)}), idempotency_key=key)

    assert staged.publish().id == 2
    assert read(table) == {**OLD, 3: ("mon", 3)}
