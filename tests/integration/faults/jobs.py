"""What the writers of these tests do, each in a process of its own. The first argument sends messages to the test."""

import json
import os
import random
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import lakelib
from lakelib.catalog import commits
from lakelib.model.table import CommitKind
from lakelib.specs.suite import Suite, parse_suite
from tests.integration.faults import crash
from tests.staging_hooks import before_staging

Say = Callable[[Any], None]
Rows = dict[int, tuple[str, int]]
"""What a table holds: day and value by key."""

APPLICATION = "test"
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("value", pa.int64())])


def rows(content: Rows) -> pa.Table:
    return pa.table(
        {
            "id": list(content),
            "day": [day for day, _ in content.values()],
            "value": [value for _, value in content.values()],
        },
        schema=SCHEMA,
    )


def read(table: lakelib.Table, at: int | None = None) -> Rows:
    found = table.scan(at=at).to_arrow().to_pylist()
    content = {row["id"]: (row["day"], row["value"]) for row in found}
    assert len(content) == len(found), "a key was read twice"
    return content


# The operations of the crash matrix: each is one piece of work, with an idempotency key of its own.


def upsert(lake: lakelib.Lake, number: int) -> None:
    lake.table("shop.a").upsert(rows(upserted(number)), idempotency_key=(APPLICATION, number))


def upserted(number: int) -> Rows:
    return {1: ("mon", number), 2: ("tue", number), 1000 + number: ("mon", number)}


def overwrite(lake: lakelib.Lake, number: int) -> None:
    lake.table("shop.a").overwrite(rows(upserted(number)), idempotency_key=(APPLICATION, number))


def delete(lake: lakelib.Lake, number: int) -> None:
    lake.table("shop.a").delete(f"value = {number}", idempotency_key=(APPLICATION, number))


def delete_by_rewriting(lake: lakelib.Lake, number: int) -> None:
    lake.table("shop.log").delete(f"value = {number}", idempotency_key=(APPLICATION, number))


def transact(lake: lakelib.Lake, number: int) -> None:
    staged = [
        lake.table(name).stage_upsert(rows(upserted(number)), idempotency_key=(APPLICATION, number))
        for name in ("shop.b", "shop.a")
    ]
    with lake.transaction() as transaction:
        for each in staged:
            transaction.add(each)


def compact(lake: lakelib.Lake, number: int) -> None:
    lake.table("shop.a").compact(full=True)


def rebucket(lake: lakelib.Lake, number: int) -> None:
    """There and back."""
    lake.table("shop.a").rebucket((1, 8)[number % 2])


def delete_overtaken(lake: lakelib.Lake, number: int) -> None:
    """Before the delete is staged another writer brings rows that it has to look at."""
    table = lake.table("shop.a")
    left = [table]

    def come(catalog: Any, proposal: Any) -> None:
        if proposal.kind is CommitKind.DELETE and left:
            left.pop().upsert(rows(beside(number)), idempotency_key=("beside", 10**6 + number))

    with pytest.MonkeyPatch.context() as patch:
        before_staging(patch, come)
        table.delete(f"value = {number}", idempotency_key=(APPLICATION, number))


def beside(number: int) -> Rows:
    return {2: ("tue", 0), 2000 + number: ("mon", number), 3000: ("mon", -number)}


def rollback(lake: lakelib.Lake, number: int) -> None:
    lake.table("shop.a").rollback(f"tag:good-{number}", idempotency_key=(APPLICATION, number))


def rollback_gated(lake: lakelib.Lake, number: int) -> None:
    lake.table("shop.a").rollback(f"tag:good-{number}", idempotency_key=(APPLICATION, number), gate=gate())


def upsert_gated(lake: lakelib.Lake, number: int) -> None:
    lake.table("shop.a").upsert(rows(upserted(number)), idempotency_key=(APPLICATION, number), gate=gate())


def transact_gated(lake: lakelib.Lake, number: int) -> None:
    staged = [
        lake.table(name).stage_upsert(rows(upserted(number)), idempotency_key=(APPLICATION, number))
        for name in ("shop.b", "shop.a")
    ]
    with lake.transaction() as transaction:
        for each in staged:
            each.judge(gate())
            transaction.add(each)


@cache
def gate() -> Suite:
    """Looks at the merged state."""
    return parse_suite(_GATE, "sound")


_GATE = """
name: sound
expectations:
- {type: expect_column_values_to_not_be_null, kwargs: {column: value}, scope: merged}
"""

OPERATIONS = {
    each.__name__: each
    for each in (
        upsert,
        overwrite,
        delete,
        delete_by_rewriting,
        delete_overtaken,
        transact,
        upsert_gated,
        transact_gated,
        rollback,
        rollback_gated,
        compact,
        rebucket,
    )
}


def crash_at(say: Say, warehouse: str, url: str, operation: str, number: int, kill_at: int, only: str = "") -> int:
    """Does the work and dies at the step; survives, and tells the number of steps, if there are fewer. `only` says
    which steps count."""
    lake = lakelib.connect(warehouse=warehouse, catalog=url)
    steps = crash.arm(kill_at, say, only=only)
    OPERATIONS[operation](lake, number)
    return steps.count


def freeze_at(say: Say, warehouse: str, url: str, operation: str, number: int, freeze_at: int, only: str) -> int:
    """Does the work and freezes at the step; goes on, and tells the number of steps, if there are fewer, or if it is
    woken."""
    lake = lakelib.connect(warehouse=warehouse, catalog=url)
    steps = crash.arm(freeze_at, say, how=signal.SIGSTOP, only=only)
    OPERATIONS[operation](lake, number)
    return steps.count


# Writers that work beside each other.


def upsert_often(say: Say, warehouse: str, url: str, writer: int, commits: int) -> int:
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        table = lake.table("shop.a")
        for number in range(commits):
            key = writer * 1000 + number
            table.upsert(
                rows({key: (("mon", "tue")[number % 2], writer), 0: ("all", key)}),
                idempotency_key=(f"writer {writer}", number),
            )
    return commits


def increment_often(say: Say, warehouse: str, url: str, commits: int) -> int:
    """Adds one to the value of row 0, in one statement each time."""
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        for number in range(commits):
            if number % 2:
                lake.sql("UPDATE shop.a SET value = value + 1 WHERE id = 0")
            else:
                lake.table("shop.a").merge([{"id": 0, "by": 1}], "target.id = source.id").when_matched_update(
                    {"value": "value + by"}
                ).execute()
    return commits


def attempt_once(say: Say, warehouse: str, url: str, version: int, value: int) -> int:
    """One of several attempts at the same work; the snapshot that did it."""
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        content = rows({1: ("mon", value), 2: ("mon", value)})
        return lake.table("shop.a").upsert(content, idempotency_key=(APPLICATION, version)).id


def overwrite_often(say: Say, warehouse: str, url: str, commits: int) -> list[int]:
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        table = lake.table("shop.a")
        return [
            table.overwrite(rows({-1: ("mon", number), -2: ("tue", number)})).id for number in range(1, commits + 1)
        ]


def delete_often(say: Say, warehouse: str, url: str, where: str, commits: int) -> list[int]:
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        table = lake.table("shop.a")
        snapshots = []
        for _ in range(commits):
            snapshots.append(table.delete(where).id)
            time.sleep(random.uniform(0.02, 0.1))
        return snapshots


def upsert_slowly(say: Say, warehouse: str, url: str, writer: int, commits: int) -> list[int]:
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        table = lake.table("shop.a")
        snapshots = []
        for number in range(commits):
            key = writer * 1000 + number
            snapshots.append(table.upsert(rows({key: (("mon", "tue")[number % 2], number % 3)})).id)
            time.sleep(random.uniform(0, 0.04))
        return snapshots


def compact_often(say: Say, warehouse: str, url: str, name: str, seconds: float) -> int:
    """Compacts again and again, in full every other time; how many units were done."""
    units, rounds, end = 0, 0, time.monotonic() + seconds
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        while time.monotonic() < end:
            units += lake.table(name).compact(full=bool(rounds % 2)).units
            rounds += 1
    return units


def delete_staged_often(say: Say, warehouse: str, url: str, name: str, commits: int) -> None:
    """Deletes that are staged, and published after a moment."""
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        table = lake.table(name)
        for number in range(commits):
            staged = table.stage_delete(f"value = {number}")
            time.sleep(random.uniform(0, 0.05))
            staged.publish()


def overwrite_staged_often(say: Say, warehouse: str, url: str, commits: int) -> None:
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        table = lake.table("shop.a")
        for number in range(commits):
            staged = table.stage_overwrite(rows({-1: ("wed", number), -2: ("wed", number)}), {"day": "wed"})
            time.sleep(random.uniform(0, 0.05))
            staged.publish()


def upsert_here_and_in_a_forked_child(say: Say, warehouse: str, url: str) -> int:
    """The child inherits an open lake; its exit code."""
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        table = lake.table("shop.a")
        table.upsert(rows({1: ("mon", 1)}))
        child = os.fork()
        if child == 0:
            table.upsert(rows({2: ("mon", 2)}))
            os._exit(0 if read(table).keys() >= {1, 2} else 1)
        table.upsert(rows({3: ("mon", 3)}))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def upsert_in_threads(say: Say, warehouse: str, url: str, threads: int, commits: int) -> int:
    """Threads share one lake whose connections are all lost meanwhile; how many of them failed."""
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake, ThreadPoolExecutor(threads) as pool:
        table = lake.table("shop.a")

        def work(thread: int) -> None:
            for number in range(commits):
                key = thread * 1000 + number
                table.upsert(rows({key: ("mon", key)}), idempotency_key=(f"thread {thread}", number))

        jobs = [pool.submit(work, thread) for thread in range(1, threads + 1)]
        say("working")
        return sum(job.exception() is not None for job in jobs)


def evolve_once(say: Say, warehouse: str, url: str, column: str) -> int:
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        return lake.table("shop.a").evolve(add=[(column, "string")]).id


def upsert_with_columns(say: Say, warehouse: str, url: str, key: int, columns: tuple[str, ...]) -> int:
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        content = rows({key: ("mon", key)})
        for column in columns:
            content = content.append_column(column, pa.array([f"{column} {key}"]))
        return lake.table("shop.a").upsert(content, merge_schema=True).id


def transact_often(say: Say, warehouse: str, url: str, names: tuple[str, str], writer: int, commits: int) -> None:
    """Transactions over two tables, given in this order; both always get the same value."""
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        for number in range(commits):
            value = writer * 1000 + number
            with lake.transaction() as transaction:
                for name in names:
                    transaction.add(lake.table(name).stage_upsert(rows({1: ("mon", value), value: ("tue", value)})))


def migrate_once(say: Say, warehouse: str, url: str) -> list[str]:
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        return lake.namespaces()


def take_turn_and_wait(say: Say, warehouse: str, url: str, name: str) -> None:
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        commits.take_turn(lake._runtime.catalog, lake.table(name)._ref.id, uuid4())
        time.sleep(60)


def migrate_shared(say: Say, url: str) -> None:
    lakelib.migrate(catalog=url, post=True)


# Keys that move


def move_keys(say: Say, warehouse: str, url: str, writer: int, count: int) -> None:
    """Moves keys to partitions by chance. What each commit has done stands in its properties."""
    chance = random.Random(writer * 7919 + os.getpid())
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        table = lake.table("shop.moving")
        for number in range(count):
            keys = chance.sample(range(40), chance.randrange(1, 15))
            content = {key: (chance.choice(["mon", "tue", "wed", "thu"]), writer * 1000 + number) for key in keys}
            match chance.randrange(6):
                case 0:
                    gone = pa.table({"id": pa.array(keys[:3], pa.int64())})
                    table.delete_keys(gone, properties={"gone": json.dumps(keys[:3])})
                case 1:
                    staged = table.stage_upsert(rows(content), properties={"came": json.dumps(content)})
                    time.sleep(chance.random() / 50)
                    staged.publish()
                case _:
                    table.upsert(rows(content), properties={"came": json.dumps(content)})
            say(number)
