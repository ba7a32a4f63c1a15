"""The measurements of a crowd: processes that upsert one row after the other, all on one table and on several.

Beside the rate stands what a commit takes of the processors, in Python and in PostgreSQL, and how often the log is
synchronised for it: where the processors are busy all the time, nothing but less work makes more commits.
"""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psycopg

import lakelib
from tests.bench.commits import one_row
from tests.bench.data import BUCKETS, orders_schema
from tests.bench.lab import Lab
from tests.bench.report import Line, at_least, at_most
from tests.integration.faults.processes import results, run_process, run_together

_WRITERS = 32
_SECONDS = 5.0
_LEAST_COMMITS = {1: 200, 8: 350}
"""A second, by how many tables the writers share."""
_LONGEST_WAIT_SECONDS = 5
_START_SECONDS = 5.0
"""After so long all processes are there, connected and warm."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What one writer has done from the common start on."""

    waits: tuple[float, ...]
    cpu_seconds: float
    late_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    """What the database has used so far."""

    cpu_seconds: float
    log_syncs: int


def measure_writers(lab: Lab) -> Iterator[Line]:
    """32 processes, first on one table, then on eight."""
    run_process(start_nothing)  # the first process waits until the server that forks them has imported everything
    for tables, bar in _LEAST_COMMITS.items():
        yield from _measure(lab, tables, bar)


def _measure(lab: Lab, tables: int, bar: int) -> Iterator[Line]:
    names = [f"bench.crowd_{tables}_{number}" for number in range(tables)]
    for name in names:
        lab.lake.create_table(
            name, orders_schema("int64"), primary_key=["order_id"], partition_by=["dt"], buckets=BUCKETS
        )
    seconds = _SECONDS / (5 if lab.quick else 1)
    begin = time.time() + _START_SECONDS
    jobs = [
        (lab.warehouse, lab.catalog_url, names[number % tables], number, begin, seconds) for number in range(_WRITERS)
    ]
    with ThreadPoolExecutor(1) as pool:
        used = pool.submit(_used_between, lab, begin, begin + seconds)
        written: list[Written] = results(run_together(write_rows, jobs))
        server = used.result()
    on = "one table" if tables == 1 else f"{tables} tables"
    waits = sorted(wait for each in written for wait in each.waits)
    rate = len(waits) / seconds
    python_ms = sum(each.cpu_seconds for each in written) / len(waits) * 1000
    server_ms = server.cpu_seconds / len(waits) * 1000
    cores = os.cpu_count() or 1
    fit = cores * 1000 / (python_ms + server_ms)
    late = max(each.late_seconds for each in written)
    yield at_least(
        f"{_WRITERS} processes on {on}",
        rate,
        bar,
        "commits/s",
        f"a commit: {python_ms:.2f} ms of CPU in Python, {server_ms:.2f} ms in PostgreSQL,"
        f" {server.log_syncs / len(waits):.1f} syncs of its log, 2 of the file and its folder; {fit:.0f} of these fit"
        f" on {cores} processors, which were busy with them for {rate / fit:.0%} of the time"
        + (f"; the last writer came {late:.1f} s late" if late > 0.1 else ""),
    )
    yield at_most(
        f"the longest wait of them on {on}",
        f"{waits[-1]:.2f} s",
        waits[-1],
        _LONGEST_WAIT_SECONDS,
        "s",
        f"median {median(waits) * 1000:.0f} ms",
    )


def start_nothing(say: Callable[[object], None]) -> None:
    """A process that has nothing to do."""


def write_rows(
    say: Callable[[object], None],
    warehouse: str,
    catalog_url: str,
    name: str,
    number: int,
    begin: float,
    seconds: float,
) -> Written:
    """One writer: a process of its own."""
    with lakelib.connect(warehouse, catalog_url) as lake:
        table = lake.table(name)
        rows = [one_row(1000 * number + at) for at in range(20)]
        table.upsert(rows[0])
        time.sleep(max(0.0, begin - time.time()))
        late = time.time() - begin
        cpu, waits = time.process_time(), []
        while time.time() < begin + seconds:
            start = time.perf_counter()
            table.upsert(rows[len(waits) % len(rows)])
            waits.append(time.perf_counter() - start)
        return Written(waits=tuple(waits), cpu_seconds=time.process_time() - cpu, late_seconds=late)


def _used_between(lab: Lab, begin: float, end: float) -> _Server:
    time.sleep(max(0.0, begin - time.time()))
    before = _used(lab)
    time.sleep(max(0.0, end - time.time()))
    after = _used(lab)
    return _Server(cpu_seconds=after.cpu_seconds - before.cpu_seconds, log_syncs=after.log_syncs - before.log_syncs)


def _used(lab: Lab) -> _Server:
    with psycopg.connect(lab.catalog_url, autocommit=True) as db:
        (synced,) = db.execute(
            "select sum(fsyncs)::bigint from pg_catalog.pg_stat_io where object = 'wal'"
        ).fetchone() or (0,)
    postmaster = int((lab.folder / "pg" / "postmaster.pid").read_text().split()[0])
    return _Server(cpu_seconds=_cpu_seconds(postmaster), log_syncs=synced)


def _cpu_seconds(postmaster: int) -> float:
    """Of the server's processes: of those that have ended too."""
    ticks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(folder.name) == postmaster:
            ticks += sum(map(int, fields[11:15]))
        elif int(fields[1]) == postmaster:
            ticks += sum(map(int, fields[11:13]))
    return ticks / _TICKS
