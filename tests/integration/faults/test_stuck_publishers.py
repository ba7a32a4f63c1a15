"""Publishers that freeze, or die, or whose sessions are ended in the middle of a step: others go on, and nothing is
done by halves or twice."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

import lakelib
from lakelib.catalog import commits
from lakelib.model.commit import Busy, Done
from lakelib.ops import patience
from lakelib.ops.patience import GaveUpError
from tests.integration.faults.jobs import OPERATIONS, freeze_at, read, rows, take_turn_and_wait
from tests.integration.faults.ledger import Ledger
from tests.integration.faults.processes import Worker, results
from tests.integration.faults.works import WORKS, state_of

_MOST_STEPS = 100
_SOON_SECONDS = 10
"""On a busy machine."""
INSIDE = {
    "commit": "insert",
    "partition": "insert",
    "data_file": "insert or update",
    "snapshot": "insert",
    "table": "update",
    "writer_progress": "insert or update",
    "verdict": "insert",
}
"""Where a step is under way: at changes to these tables."""
WAITING = """
    select pid from pg_locks l join pg_database d on d.oid = l.database
    where not granted and locktype = 'advisory' and d.datname = current_database()"""


@pytest.mark.parametrize("operation", ["upsert", "delete_overtaken", "transact_gated"])
def test_a_client_that_freezes_at_any_step_of_the_protocol_holds_nobody(operation: str, ledger: Ledger) -> None:
    work = WORKS[operation]
    table = ledger.lake.table("shop.a")
    waits: list[float] = []
    for number in range(1, _MOST_STEPS):
        work.prepare(ledger, number)
        worker = Worker(freeze_at, (*ledger.place, operation, number, number, "_v1"))
        if not has_frozen(worker):
            results([worker.outcome(30)])
            break
        began = time.monotonic()
        table.upsert(rows({4000 + number: ("mon", 0), 1: ("mon", 0)}))
        table.delete("value = -1")
        ledger.lake.vacuum()
        waits.append(time.monotonic() - began)

        os.kill(worker.pid, signal.SIGCONT)
        ended = worker.outcome(30)

        assert ended.error == "", ended
        assert ledger.commits("published", number) == [name.partition(".")[2] for name in work.tables]
    assert len(waits) >= 3
    assert max(waits) < _SOON_SECONDS
    state_of(ledger, work)


def has_frozen(worker: Worker) -> bool:
    """Waits until it has, or has ended."""
    while True:
        with suppress(ChildProcessError, FileNotFoundError, ProcessLookupError):
            state = Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()[0]
            if state in "TZ":
                return state == "T"
            time.sleep(0.01)
            continue
        return False


@pytest.mark.parametrize("place", INSIDE)
@pytest.mark.parametrize("operation", ["upsert", "delete_overtaken", "delete_by_rewriting", "transact_gated"])
def test_a_session_that_is_ended_inside_a_step_costs_its_caller_nothing(
    operation: str, place: str, ledger: Ledger
) -> None:
    work = WORKS[operation]
    work.prepare(ledger, 1)
    before = state_of(ledger, work)
    job = threading.Thread(target=OPERATIONS[operation], args=(ledger.lake, 1))
    with waiting_at(ledger, place):
        job.start()
        is_ended = end_session_that_waits(ledger, job)
    job.join(60)

    assert not job.is_alive()
    assert is_ended or place in ("verdict", "partition", "writer_progress")
    assert state_of(ledger, work) == {name: work.change(content, 1) for name, content in before.items()}
    assert ledger.commits("published", 1) == [name.partition(".")[2] for name in work.tables]
    assert ledger.commits("staged") == []


@contextmanager
def waiting_at(ledger: Ledger, place: str) -> Iterator[None]:
    """Whoever changes the table waits, until this is over."""
    ledger.connection.execute(
        "create function wait_outside() returns trigger language plpgsql as"
        " 'begin perform pg_catalog.pg_advisory_xact_lock_shared(42); return new; end'"
    )
    ledger.connection.execute(
        f'create trigger wait_outside before {INSIDE[place]} on lake."{place}"'
        " for each row execute function wait_outside()".encode()
    )
    with psycopg.connect(ledger.url) as holding:
        holding.execute("select pg_advisory_xact_lock(42)")
        yield


def end_session_that_waits(ledger: Ledger, job: threading.Thread) -> bool:
    """Whether there was one, once it is ended, before the job was."""
    while job.is_alive():
        for (pid,) in ledger.query(WAITING):
            ledger.query("select pg_terminate_backend(%s)", pid)
            return True
        time.sleep(0.005)
    return False


def test_who_dies_in_its_turn_holds_others_no_longer_than_the_turn(ledger: Ledger) -> None:
    table = ledger.lake.table("shop.a")
    table.upsert(rows({1: ("mon", 1)}))
    worker = Worker(take_turn_and_wait, (*ledger.place, "shop.a"))
    while ledger.query("select count(*) from lake.waiting") == [(0,)]:
        time.sleep(0.005)

    worker.kill()
    began = time.monotonic()
    table.upsert(rows({2: ("mon", 2)}))

    assert time.monotonic() - began < _SOON_SECONDS
    assert read(table) == {1: ("mon", 1), 2: ("mon", 2)}


def test_nobody_gets_a_turn_while_another_has_one(ledger: Ledger) -> None:
    catalog = ledger.lake._runtime.catalog
    [(table_id,)] = ledger.query("select id from lake.\"table\" where name = 'a'")
    first, second, third = uuid4(), uuid4(), uuid4()

    assert [commits.take_turn(catalog, table_id, turn) for turn in (first, second, third, second, first)] == [
        0,
        1,
        2,
        1,
        0,
    ]
    commits.release_turn(catalog, first)

    assert [commits.take_turn(catalog, table_id, turn) for turn in (third, first, second)] == [1, 2, 0]


def test_who_waited_before_publishes_before_one_who_is_to_be_alone(ledger: Ledger) -> None:
    """A publisher has a place in the line as soon as it was kept waiting."""
    table = ledger.lake.table("shop.a")
    catalog, table_id = ledger.lake._runtime.catalog, table._ref.id
    staged = table.stage_upsert(rows({1: ("mon", 1)}))
    first, second, own = uuid4(), uuid4(), uuid4()
    commits.take_turn(catalog, table_id, first)

    assert commits.publish(catalog, [staged.id], epoch=1, turn=own) == Busy(ahead=1)
    assert commits.take_turn(catalog, table_id, second) == 2
    commits.release_turn(catalog, first)

    assert commits.publish(catalog, [staged.id], epoch=1) == Busy(ahead=1)
    assert isinstance(commits.publish(catalog, [staged.id], epoch=1, turn=own), Done)
    assert commits.take_turn(catalog, table_id, second) == 0


@pytest.mark.parametrize("act", ["upsert", "delete", "compact", "publish"])
def test_who_fails_leaves_the_line(act: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ledger.lake.table("shop.a")
    for value in range(2):
        table.upsert(rows({1: ("mon", value)}))
    staged = table.stage_upsert(rows({1: ("mon", 7)}))
    other = uuid4()
    commits.take_turn(ledger.lake._runtime.catalog, table._ref.id, other)
    monkeypatch.setattr(patience.Patience.__init__, "__defaults__", (0.3,))

    acts: dict[str, Callable[[], object]] = {
        "upsert": lambda: table.upsert(rows({1: ("mon", 8)})),
        "delete": lambda: table.delete("id = 1"),
        "compact": lambda: table.compact(full=True),
        "publish": staged.publish,
    }

    with pytest.raises(GaveUpError):
        acts[act]()

    assert ledger.query("select turn from lake.waiting") == [(other,)]


def test_a_turn_is_over_once_its_commit_is_published(ledger: Ledger) -> None:
    lake: lakelib.Lake = ledger.lake
    OPERATIONS["delete_overtaken"](lake, 1)

    assert ledger.query("select count(*) from lake.waiting") == [(0,)]
