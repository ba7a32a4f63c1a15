"""Expiry and vacuum are killed at every step. What they leave is read as before, and the next run finishes the work."""

import signal
from datetime import timedelta
from pathlib import Path

import lakelib
from tests.conftest import THIN_MATRICES
from tests.integration.faults import crash
from tests.integration.faults.jobs import SCHEMA, Say, read, rows
from tests.integration.faults.ledger import Ledger
from tests.integration.faults.processes import run_process

_MOST_STEPS = 400
_LEAST_STEPS = 50
_STRIDE = 5 if THIN_MATRICES else 2
"""After a step is before the next one: every other step is enough."""
_NOW = timedelta(0)


def maintain(lake: lakelib.Lake) -> None:
    lake.table("shop.a").expire(keep_last=1, staged_older_than=_NOW, grace=_NOW)
    lake.vacuum(grace=_NOW)


def maintain_and_die(say: Say, warehouse: str, url: str, kill_at: int) -> int:
    """Survives, and tells the number of steps, if there are fewer."""
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        steps = crash.arm(kill_at, say)
        maintain(lake)
        return steps.count


def stored(table: lakelib.Table) -> set[str]:
    folder = Path(table.location.removeprefix("file://"))
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def prepare(ledger: Ledger) -> None:
    """Something for each step to do: old snapshots, files that rollbacks have named again, staged commits, an orphan, a
    table that was dropped."""
    table = ledger.lake.table("shop.a")
    table.overwrite(rows({1: ("mon", 1), 2: ("tue", 1)}))
    table.rollback("tag:seven")
    table.overwrite(rows({1: ("mon", 2)}))
    table.stage_upsert(rows({3: ("mon", 3)}))
    table.stage_rollback("tag:seven")
    folder = Path(table.location.removeprefix("file://"))
    (folder / f"upsert-{'0' * 32}-00000.parquet").write_bytes(b"")
    ledger.lake.create_table("shop.dropped", SCHEMA).append(rows({1: ("mon", 1)}))
    ledger.lake.drop_table("shop.dropped")


def test_maintenance_killed_at_any_step_is_finished_by_the_next_run(ledger: Ledger) -> None:
    table = ledger.lake.table("shop.a")
    table.upsert(rows({7: ("mon", 7)}))
    table.tag("seven")
    told: list[str] = []
    for number in range(1, _MOST_STEPS, _STRIDE):
        prepare(ledger)
        known = ledger.backends()

        ended = run_process(maintain_and_die, *ledger.place, number)

        ledger.wait_until_gone(known)
        where = f"step {number}, {ended.messages}"
        assert read(table) == {1: ("mon", 2)}, where
        assert read(table, at=1) == {7: ("mon", 7)}, where
        for snapshot in table.history():
            assert {file.path for file in table.files(at=snapshot.id)} <= stored(table), where
        if ended.exit_code != -signal.SIGKILL:
            assert ended.error == "", where
            break
        told.extend(ended.messages)
        maintain(ledger.lake)
        head = table.head
        assert head is not None
        assert [snapshot.id for snapshot in table.history()] == [head.id, 1], where
        needed = {file.path for snapshot in table.history() for file in table.files(at=snapshot.id)}
        assert stored(table) == needed, where
        assert ledger.commits("staged") == [], where
        assert ledger.query("select count(*) from lake.deletion_queue") == [(0,)], where
    assert number >= _LEAST_STEPS
    assert sum("delete files" in step for step in told) >= (1 if THIN_MATRICES else 2)
