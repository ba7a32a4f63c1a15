"""The measurements of who reads on: a consumer's step, listings, and how soon a watcher hears of a commit."""

import threading
import time
from collections.abc import Iterator
from statistics import median
from uuid import uuid4

from lakelib.table import Table
from tests.bench.commits import one_row
from tests.bench.data import BUCKETS, orders_schema
from tests.bench.lab import Lab, Work, interleave, median_seconds
from tests.bench.report import Line, at_most, at_most_times

_SNAPSHOTS = 1000
_CONSUMERS = 10
_STEPS = 100
_ROUNDS = 200
_STEP_MS = 8
_LISTING_MS = 50
_EAR_MS = 50
_HEARD_TIMES = 1.2


def measure_consumers(lab: Lab) -> Iterator[Line]:
    """Of a table with many small commits."""
    table = _table(lab, "followed")
    count = _SNAPSHOTS // (10 if lab.quick else 1)
    for number in range(count):
        table.upsert(one_row(number))
    yield from _listing(table, count)
    yield from _steps(table)
    yield from _ear(lab, table)
    yield from _cost(lab)


def _table(lab: Lab, name: str) -> Table:
    return lab.lake.create_table(
        f"bench.{name}", orders_schema("int64"), primary_key=["order_id"], partition_by=["dt"], buckets=BUCKETS
    )


def _listing(table: Table, count: int) -> Iterator[Line]:
    for number in range(_CONSUMERS):
        table.consumer(f"c{number}", after=count * number // _CONSUMERS)
    seconds = median_seconds([lambda: (table.history(), table.consumers())] * 9)
    yield at_most(
        f"{count:,} snapshots listed with {_CONSUMERS} consumers",
        f"{seconds * 1000:.1f} ms",
        seconds * 1000,
        _LISTING_MS,
        "ms",
        "median; each consumer with its lag",
    )


def _steps(table: Table) -> Iterator[Line]:
    assert table.head is not None
    consumer = table.consumer("step", after=table.head.id)

    def steps() -> Iterator[Work]:
        for number in range(_STEPS):
            table.upsert(one_row(number))
            yield lambda: (consumer.read().to_arrow(), consumer.advance())

    seconds = median_seconds(steps())
    yield at_most(
        "a consumer's read and advance of one small commit",
        f"{seconds * 1000:.1f} ms",
        seconds * 1000,
        _STEP_MS,
        "ms",
        f"median of {_STEPS}",
    )


def _ear(lab: Lab, table: Table) -> Iterator[Line]:
    heard: list[float] = []
    stream = lab.lake.watch(table, timeout=300)

    def listen() -> None:
        for _ in stream:
            heard.append(time.perf_counter())
            if len(heard) == _STEPS:
                return

    ear = threading.Thread(target=listen)
    ear.start()
    time.sleep(0.5)
    delays = []
    for number in range(_STEPS):
        table.upsert(one_row(number))
        published = time.perf_counter()
        while len(heard) <= number:
            time.sleep(0.0005)
        delays.append(max(0.0, heard[number] - published) * 1000)
    ear.join()
    yield at_most(
        "from publish to the watcher's ear",
        f"{median(delays):.1f} ms",
        max(delays),
        _EAR_MS,
        "ms",
        f"the longest of {_STEPS}; ours is the median",
    )


def _cost(lab: Lab) -> Iterator[Line]:
    """What publishers pay for being heard: two tables, to one of which somebody listens."""
    alone, heard = _table(lab, "alone"), _table(lab, "heard")
    listen = {"id": uuid4(), "table_id": heard.ref.id, "duration": "10 minutes"}
    lab.lake.runtime.catalog.one("listen", listen)
    number = iter(range(10**9))
    works = [lambda table=table: table.upsert(one_row(next(number))) for table in (heard, alone)]
    ours, peer = interleave(_ROUNDS // (10 if lab.quick else 1), works)
    yield at_most_times(
        "a one-row upsert that somebody listens to", median(ours), median(peer), _HEARD_TIMES, "beside nobody"
    )
