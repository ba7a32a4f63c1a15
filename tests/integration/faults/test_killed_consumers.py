"""Who makes a table of another one's changes is killed at every step, beside another writer: each is in it once."""

import signal

import pyarrow as pa

import lakelib
from tests.conftest import THIN_MATRICES
from tests.integration.faults import crash
from tests.integration.faults.jobs import Say, rows
from tests.integration.faults.ledger import Ledger
from tests.integration.faults.processes import run_process

_MOST_STEPS = 400
_LEAST_STEPS = 30
_STRIDE = 3 if THIN_MATRICES else 2
"""After a step is before the next one: every other step is enough."""
_COLUMNS = ["id", "day", "value"]


def consume(lake: lakelib.Lake, number: int) -> None:
    source = lake.table("shop.a")
    consumer = source.consumer("derive")
    changes = consumer.read(view="all")
    found = changes.to_arrow()
    source.upsert(rows({2: ("tue", number), 2000 + number: ("mon", number)}), idempotency_key=("beside", number))
    staged = lake.table("shop.log").stage_append(found.select(_COLUMNS))
    with lake.transaction() as transaction:
        transaction.advance(consumer, changes)
        transaction.add(staged)


def consume_and_die(say: Say, warehouse: str, url: str, number: int, kill_at: int) -> int:
    """Survives, and tells the number of steps, if there are fewer."""
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        steps = crash.arm(kill_at, say)
        consume(lake, number)
        return steps.count


def counted(found: pa.Table) -> list[tuple[object, ...]]:
    return sorted((row["id"], row["day"], row["value"] or 0) for row in found.select(_COLUMNS).to_pylist())


def check(ledger: Ledger, where: str) -> None:
    """What was derived is what all changes up to the position come to, from scratch."""
    source = ledger.lake.table("shop.a")
    changes = source.changes(after=0, until=source.consumer("derive").position, view="all")
    assert counted(ledger.lake.table("shop.log").scan().to_arrow()) == counted(changes.to_arrow()), where
    ledger.check_table("shop.log")


def test_a_consumer_killed_at_any_step_takes_each_change_once(ledger: Ledger) -> None:
    source = ledger.lake.table("shop.a")
    source.consumer("derive")
    told = []
    for number in range(1, _MOST_STEPS, _STRIDE):
        source.upsert(rows({1: ("mon", number), 1000 + number: ("tue", number)}))
        if number % 5 == 0:
            source.delete(f"id = {1000 + number}")
        known = ledger.backends()

        ended = run_process(consume_and_die, *ledger.place, number, number)

        ledger.wait_until_gone(known)
        where = f"step {number}, {ended.messages}"
        check(ledger, where)
        if ended.exit_code != -signal.SIGKILL:
            assert ended.error == "", where
            break
        told.extend(ended.messages)
        consume(ledger.lake, number)
        check(ledger, where)
    assert number >= _LEAST_STEPS
    assert {step.partition(":")[0] for step in told if "publish_advancing_v1" in step} != set()


def test_a_consumer_killed_around_its_publish_moves_with_it_or_not_at_all(ledger: Ledger) -> None:
    """Each of the three moments at which the statement may be cut off."""
    source = ledger.lake.table("shop.a")
    source.consumer("derive")
    steps = {}
    for number in range(1, 4):
        source.upsert(rows({number: ("mon", number)}))
        before = source.consumer("derive").position
        known = ledger.backends()
        ended = run_process(consume_and_die_publishing, *ledger.place, number, number)
        ledger.wait_until_gone(known)
        (step,) = ended.messages
        steps[step.partition(":")[0]] = source.consumer("derive").position > before
        check(ledger, step)
    assert (steps["before"], steps["sent"], steps["after"]) == (False, True, True)


def consume_and_die_publishing(say: Say, warehouse: str, url: str, number: int, kill_at: int) -> None:
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        crash.arm(kill_at, say, only="publish_advancing_v1")
        consume(lake, number)
