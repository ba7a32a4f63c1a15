"""What waits and for how long: work is not waiting, every wait ends, and who gives up leaves nothing behind."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest

import lakelib
from lakelib.catalog import commits
from lakelib.model.table import CommitState
from lakelib.ops import commit as committing
from lakelib.ops import compact as compaction
from lakelib.ops import judge as judging
from lakelib.ops import patience
from lakelib.ops.turn import Turn
from tests.integration.faults.jobs import SCHEMA, gate, read, rows
from tests.staging_hooks import before_staging
from tests.waiting import wait_until

HOLD = """select from lake."table" where name = 'a' for no key update"""
"""As whoever publishes does."""
WAIT_WHERE_FILES_ENTER = """
    create function wait_outside() returns trigger language plpgsql as
        'begin perform pg_catalog.pg_advisory_xact_lock_shared(42); return new; end';
    create trigger wait_outside before insert on lake.data_file for each row execute function wait_outside()"""
WAITING = "select count(*) from pg_locks where not granted"


@pytest.fixture
def table(lake: lakelib.Lake) -> lakelib.Table:
    table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
    table.upsert(rows({1: ("mon", 1)}))
    return table


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers are patient for a second only."""
    monkeypatch.setattr(patience.Patience.__init__, "__defaults__", (1.0,))


@contextmanager
def held_for(seconds: float, url: str) -> Iterator[None]:
    """Somebody holds the table's row for so long from now on."""
    holding = psycopg.connect(url)
    holding.execute(HOLD)
    end = threading.Timer(seconds, holding.close)
    end.start()
    try:
        yield
    finally:
        end.join()


def slowly(seconds: float, content: dict[int, tuple[str, int]]) -> pa.RecordBatchReader:
    """Rows that take their time to come."""

    def batches() -> Iterator[pa.RecordBatch]:
        time.sleep(seconds)
        yield from rows(content).to_batches()

    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


@pytest.mark.usefixtures("short")
def test_what_the_work_itself_takes_uses_up_nobodys_patience(
    table: lakelib.Table, catalog_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as held:
        holds = iter([held_for(0.3, catalog_url)])
        before_staging(monkeypatch, lambda *_: [held.enter_context(hold) for hold in holds] and None)

        table.upsert(slowly(1.2, {2: ("mon", 2)}))

    assert read(table) == {1: ("mon", 1), 2: ("mon", 2)}


def test_who_takes_a_turn_does_not_wait_for_who_holds_the_table(table: lakelib.Table, catalog_url: str) -> None:
    catalog = table._runtime.catalog
    taking = threading.Thread(target=commits.take_turn, args=(catalog, 1, uuid4()), daemon=True)
    with psycopg.connect(catalog_url) as holding:
        holding.execute(HOLD)
        taking.start()
        taking.join(10)
        is_waiting = taking.is_alive()

    assert not is_waiting


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("act", ["upsert", "delete", "overwrite", "compact"])
def test_who_gives_up_leaves_nothing_that_holds_the_past_or_is_published_later(
    act: str, table: lakelib.Table, catalog_url: str, connection: psycopg.Connection[Any]
) -> None:
    table.upsert(rows({1: ("mon", 2)}))
    acts: dict[str, Callable[[], object]] = {
        "upsert": lambda: table.upsert(rows({2: ("mon", 2)})),
        "delete": lambda: table.delete("value = 2"),
        "overwrite": lambda: table.overwrite(rows({2: ("mon", 2)})),
        "compact": lambda: table.compact(full=True),
    }
    with psycopg.connect(catalog_url) as holding:
        holding.execute(HOLD)
        with pytest.raises(lakelib.RetryableError) as caught:
            acts[act]()

    assert caught.value.kind == "catalog_busy"
    assert connection.execute("select count(*) from lake.commit where state = 'staged'").fetchone() == (0,)
    assert read(table) == {1: ("mon", 2)}


def test_a_newer_attempt_and_who_publishes_the_older_one_do_not_wait_for_each_other(
    table: lakelib.Table, connection: psycopg.Connection[Any], catalog_url: str
) -> None:
    """The newer attempt has ended the older one and is about to publish, when somebody publishes the older one."""
    older = table.stage_upsert(rows({2: ("mon", 2)}), idempotency_key=("load", 1))
    connection.execute(WAIT_WHERE_FILES_ENTER)
    newer = threading.Thread(target=lambda: table.upsert(rows({2: ("mon", 3)}), idempotency_key=("load", 1)))
    publishing = threading.Thread(target=older.publish)
    with psycopg.connect(catalog_url) as holding:
        holding.execute("select pg_advisory_xact_lock(42)")
        newer.start()
        wait_until(lambda: connection.execute(WAITING).fetchone() == (1,))
        publishing.start()
        wait_until(lambda: connection.execute(WAITING).fetchone() == (2,))
        connection.execute(HOLD + " nowait")
    for each in (newer, publishing):
        each.join(20)

    assert read(table)[2] == ("mon", 3)


def test_a_judgement_by_hand_gets_through_beside_writers_that_never_pause(
    table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[threading.Thread] = []
    run_checks = judging._run_checks

    def judge_while_others_write(*given: Any) -> Any:
        results = run_checks(*given)
        if len(others) < 20:
            others.append(threading.Thread(target=lambda: table.upsert(rows({5: ("mon", 5)}))))
            others[-1].start()
            others[-1].join(1.0)
        return results

    monkeypatch.setattr(judging, "_run_checks", judge_while_others_write)
    staged = table.stage_upsert(rows({2: ("mon", 2)}))
    staged.judge(gate())

    staged.publish()

    assert len(others) < 5
    for other in others:
        other.join(20)


def test_who_has_to_wait_anyway_judges_once_others_have_published(
    table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, other = table._runtime.catalog, uuid4()
    verdicts: list[object] = []
    polls: list[object] = []
    poll = patience.Patience.poll
    monkeypatch.setattr(patience.Patience, "poll", lambda *given: polls.append(given) or poll(*given))
    judge = committing.judge
    monkeypatch.setattr(committing, "judge", lambda *given: verdicts.append(given) or judge(*given))
    commits.take_turn(catalog, table._ref.id, other)
    writing = threading.Thread(target=lambda: table.upsert(rows({2: ("mon", 2)}), gate=gate()))

    writing.start()
    wait_until(lambda: len(polls) >= 3)
    assert commits.list_commits(catalog, table._ref.id, [CommitState.STAGED], 10)
    assert verdicts == []
    before = table.stage_upsert(rows({3: ("mon", 3)}))
    commits.publish(catalog, [before.id], epoch=1, turn=other)
    writing.join(20)

    assert len(verdicts) == 1
    assert read(table) == {1: ("mon", 1), 2: ("mon", 2), 3: ("mon", 3)}


def test_a_compaction_whose_files_are_gone_does_not_wait_for_others(
    table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are alone for longer than it is patient."""
    table.upsert(rows({1: ("mon", 2)}))
    monkeypatch.setattr(patience.Patience.__init__, "__defaults__", (1.0,))
    rewrite = compaction._rewrite

    def be_overtaken(*given: Any) -> Any:
        rewritten = rewrite(*given)
        table.overwrite(rows({1: ("mon", 9)}), partitions="all")
        commits.take_turn(table._runtime.catalog, table._ref.id, uuid4())
        return rewritten

    monkeypatch.setattr(compaction, "_rewrite", be_overtaken)

    assert table.compact(full=True).snapshots == ()
    assert read(table) == {1: ("mon", 9)}


@pytest.mark.parametrize(("longest_seconds", "rounds"), [(-1.0, 1), (60.0, 4)])
def test_a_compaction_that_has_waited_leaves_what_it_lost_to_the_next_one(
    table: lakelib.Table, monkeypatch: pytest.MonkeyPatch, longest_seconds: float, rounds: int
) -> None:
    table.upsert(rows({1: ("mon", 2)}))
    monkeypatch.setattr(compaction, "_LONGEST_WAIT_SECONDS", longest_seconds)
    rewrite = compaction._rewrite
    values = iter(range(10, 100))

    def be_overtaken(*given: Any) -> Any:
        rewritten = rewrite(*given)
        table.overwrite(rows({1: ("mon", next(values))}), partitions="all")
        table.upsert(rows({1: ("mon", next(values))}))
        return rewritten

    monkeypatch.setattr(compaction, "_rewrite", be_overtaken)

    result = table.compact(full=True)

    assert result.units_skipped > 0
    assert next(values) == 10 + 2 * rounds


def test_a_turn_that_comes_to_nothing_is_over(table: lakelib.Table) -> None:
    runtime, table_id = table._runtime, table._ref.id
    with Turn(runtime, patience.Patience("Trying"), table_id) as turn:
        turn.take(table_id)
        assert commits.take_turn(runtime.catalog, table_id, other := uuid4()) == 1

    assert commits.take_turn(runtime.catalog, table_id, other) == 0
