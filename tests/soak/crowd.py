"""A crowd of writers on a few tables: threads of one process, then processes. Writes, deletes, overwrites, compactions
and gated writes, mixed.

`python -m tests.soak --crowd 32 [--seconds 60]`. No error may reach a writer, and each snapshot must be what its commit
makes of the one before it. Says how long writers had to wait.
"""

import json
import random
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import lakelib
from lakelib import Lake, Table
from lakelib.specs.suite import parse_suite
from tests.integration.faults.processes import Outcome, run_together
from tests.integration.faults.server import own_server

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("value", pa.int64()), ("seq", pa.int64())])
DAYS = ("mon", "tue", "wed", "thu")
TABLES: dict[str, dict[str, Any]] = {
    "crowd.keyed": {"primary_key": ["id"], "partition_by": ["day"], "buckets": 2},
    "crowd.sequenced": {"primary_key": ["id"], "partition_by": ["day"], "sequence_by": ["seq"], "buckets": "dynamic"},
    "crowd.log": {"partition_by": ["day"]},
    "crowd.gated": {"primary_key": ["id"], "partition_by": ["day"], "buckets": "postpone"},
}
GATE = """
name: crowd
expectations:
- {type: expect_column_values_to_not_be_null, kwargs: {column: value}, scope: merged}
"""
LONGEST_SECONDS = 5.0
"""What a writer may take, in a crowd of 32 on two cores that do nothing else."""
_KEYS = 12
_VALUES = 6
_MOST_COMPARED = 400

Row = tuple[int, str, int, int]
Act = tuple[str, Any]
Say = Callable[[Any], None]


@dataclass(slots=True, kw_only=True)
class Report:
    """How long each act of a writer took, by what it is called, and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)


def create_tables(lake: Lake) -> None:
    lake.create_namespace("crowd")
    for name, layout in TABLES.items():
        lake.create_table(name, SCHEMA, **layout)
    lake.table("crowd.gated").require_gate(parse_suite(GATE, "crowd"), by="the crowd")


# What a writer does


def work_in_threads(lake: Lake, writers: int, seconds: float, seed: int) -> list[Report]:
    """All share one lake."""
    _load_modules()
    deadline = time.time() + seconds
    with ThreadPoolExecutor(writers) as pool:
        return list(pool.map(lambda number: _work(lake, deadline, seed + number), range(writers)))


def work_in_processes(place: tuple[str, str], writers: int, seconds: float, seed: int) -> list[Report]:
    jobs = [(*place, seconds, seed + number) for number in range(writers)]
    return [_report_of(outcome) for outcome in run_together(work_alone, jobs, timeout_seconds=seconds + 120)]


def work_alone(say: Say, warehouse: str, url: str, seconds: float, seed: int) -> Report:
    _load_modules()
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        return _work(lake, time.time() + seconds, seed)


def _load_modules() -> None:
    """What takes long to import, when it is first needed, is no wait for others. Processes are forked with it."""
    import pandas  # noqa: F401, which pyarrow asks for
    import sqlglot.dialects.spark
    import sqlglot.optimizer.annotate_types  # noqa: F401

    import lakelib.gates.evidence
    import lakelib.gates.lint
    import lakelib.gates.run  # noqa: F401


def _report_of(outcome: Outcome) -> Report:
    if isinstance(outcome.result, Report):
        return outcome.result
    return Report(errors=[f"{outcome.error} (exit code {outcome.exit_code})"])


def _work(lake: Lake, deadline: float, seed: int) -> Report:
    report = Report()
    chance = random.Random(seed)
    while time.time() < deadline:
        table = lake.table(chance.choice(list(TABLES)))
        act = _choose(chance, table)
        began = time.monotonic()
        try:
            _do(table, act)
        except Exception:
            report.errors.append(f"{table.name} {act}: {traceback.format_exc()}")
        report.seconds[f"{table.name.partition('.')[2]} {act[0]}"].append(time.monotonic() - began)
    return report


def _choose(chance: random.Random, table: Table) -> Act:
    kinds = {"write": 60, "delete": 12, "drop": 3, "overwrite": 5, "compact": 12}
    if table.primary_key:
        kinds["delete_keys"] = 8
    kind = chance.choices(list(kinds), list(kinds.values()))[0]
    match kind:
        case "write" | "delete_keys":
            return kind, _choose_rows(chance)
        case "overwrite":
            rows = _choose_rows(chance)
            target = chance.choice(("all", "dynamic", "dynamic", rows[0][1]))
            return kind, (target, [row for row in rows if target in ("all", "dynamic", row[1])])
        case "delete":
            return kind, (chance.choice((None, *DAYS)), chance.randrange(_VALUES))
        case "drop":
            return kind, chance.choice(DAYS)
    return kind, chance.random() < 0.5


def _choose_rows(chance: random.Random) -> list[Row]:
    keys = chance.sample([(key, day) for key in range(_KEYS) for day in DAYS], chance.randrange(1, 5))
    return [(key, day, chance.randrange(_VALUES), chance.randrange(10)) for key, day in keys]


def _do(table: Table, act: Act) -> None:
    kind, what = act
    properties = {"act": json.dumps(act)}
    match kind:
        case "write":
            (table.upsert if table.primary_key else table.append)(_arrow(what), properties=properties)
        case "delete_keys":
            table.delete_keys(_arrow(what).select(["id", "day"]), properties=properties)
        case "overwrite":
            target, rows = what
            partitions = target if target in ("all", "dynamic") else {"day": target}
            table.overwrite(_arrow(rows), partitions, properties=properties)
        case "delete":
            day, value = what
            where = f"value = {value}" if day is None else f"value >= {value} and day = '{day}'"
            table.delete(where, properties=properties)
        case "drop":
            table.delete(f"day = '{what}'", properties=properties)
        case "compact":
            table.compact(full=what)


def _arrow(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


# What must come of it


class Model:
    """What a table holds after one commit after the other. A deleted key keeps its place in the order of its rows."""

    def __init__(self, table: Table) -> None:
        self._has_keys = bool(table.primary_key)
        self._has_order = table.name == "crowd.sequenced"
        self._rows: list[Row] = []
        self._deleted: dict[tuple[int, str], int] = {}

    @property
    def content(self) -> list[Row]:
        return sorted(self._rows)

    def apply(self, act: Act) -> None:
        kind, what = act
        match kind:
            case "write":
                self._write([tuple(row) for row in what])
            case "delete_keys":
                keys = {(row[0], row[1]) for row in what}
                self._delete(lambda row: (row[0], row[1]) in keys)
            case "delete":
                day, value = what
                self._delete(lambda row: row[2] == value if day is None else row[1] == day and row[2] >= value)
            case "drop":
                self._clear({what})
            case "overwrite":
                target, rows = what
                days = {"all": set(DAYS), "dynamic": {row[1] for row in rows}}.get(target, {target})
                self._clear(days)
                self._write([tuple(row) for row in rows])

    def _write(self, rows: Sequence[Any]) -> None:
        if not self._has_keys:
            self._rows += rows
            return
        held = {(row[0], row[1]): row for row in self._rows}
        for row in rows:
            key = (row[0], row[1])
            older = held[key][3] if key in held else self._deleted.get(key, row[3])
            if not self._has_order or row[3] >= older:
                held[key] = row
                self._deleted.pop(key, None)
        self._rows = list(held.values())

    def _delete(self, is_gone: Callable[[Row], bool]) -> None:
        if self._has_order:
            self._deleted |= {(row[0], row[1]): row[3] for row in self._rows if is_gone(row)}
        self._rows = [row for row in self._rows if not is_gone(row)]

    def _clear(self, days: set[str]) -> None:
        self._rows = [row for row in self._rows if row[1] not in days]
        self._deleted = {key: seq for key, seq in self._deleted.items() if key[1] not in days}


def check(lake: Lake) -> Iterator[str]:
    """Whatever is not as if one had come after the other."""
    for name in TABLES:
        table = lake.table(name)
        model = Model(table)
        history = table.history()[::-1]
        if [snapshot.id for snapshot in history] != list(range(1, len(history) + 1)):
            yield f"{name}: its snapshots are not dense"
        stride = len(history) // _MOST_COMPARED + 1
        for snapshot in history:
            if snapshot.kind != "compact":
                model.apply(json.loads(snapshot.properties["act"]))
            if snapshot.id % stride and snapshot is not history[-1]:
                continue
            rows = table.scan(at=snapshot.id, columns=SCHEMA.names).to_arrow().to_pylist()
            if (found := sorted(tuple(row.values()) for row in rows)) != model.content:
                yield (
                    f"{name} at snapshot {snapshot.id}, {snapshot.kind} {snapshot.properties}: {found} in place of"
                    + (f" {model.content}")
                )
                break


def describe(reports: Sequence[Report]) -> Iterator[str]:
    """How often each act was done, and how long it took."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for report in reports:
        for name, each in report.seconds.items():
            seconds[name] += each
    for name, each in sorted(seconds.items()):
        each.sort()
        yield f"  {name:24} {len(each):7,} times, median {each[len(each) // 2]:6.3f} s, longest {each[-1]:6.3f} s"
    everything = [second for each in seconds.values() for second in each]
    yield f"  {len(everything):,} in all, the longest {max(everything, default=0):.3f} s"


def find_longest(reports: Sequence[Report]) -> float:
    return max((second for report in reports for each in report.seconds.values() for second in each), default=0.0)


def run(writers: int, seconds: float, seed: int) -> list[str]:
    """Two crowds, one after the other, each on a lake of its own; what went wrong."""
    failures: list[str] = []
    for what in ("threads", "processes"):
        with own_lake() as place, lakelib.connect(warehouse=place[0], catalog=place[1]) as lake:
            create_tables(lake)
            print(f"{writers} {what}, {seconds:g} s, seed {seed}", flush=True)
            if what == "threads":
                reports = work_in_threads(lake, writers, seconds, seed)
            else:
                reports = work_in_processes(place, writers, seconds, seed)
            print("\n".join(describe(reports)), flush=True)
            failures += [error for report in reports for error in report.errors] + list(check(lake))
            if (longest := find_longest(reports)) > LONGEST_SECONDS:
                failures.append(f"a writer took {longest:.1f} s; on two quiet cores it may be {LONGEST_SECONDS:g} s")
    return failures


@contextmanager
def own_lake() -> Iterator[tuple[str, str]]:
    """Warehouse and catalog."""
    with tempfile.TemporaryDirectory(prefix="lakelib-crowd-", dir="/tmp") as folder, own_server() as server:
        yield f"file://{folder}/warehouse", server.url
