"""The measurements of Airflow: how soon it is healthy; what 400 rows take from the trigger to the announcement, on each
engine; what several at once take; and the demo."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

from infra.airflow.api import Api, log_in, wait_for
from infra.airflow.instance import PROJECT, Home, read_passwords
from infra.airflow.lifecycle import down, up
from infra.demo.runs import Run, Watch, trigger, unpause
from infra.demo.shop import ORDERS_A_DAY, write_day
from tests.bench.lab import Lab
from tests.bench.report import Line, at_most, at_most_times

_HEALTHY_SECONDS = 40
_DEMO_SECONDS = 100
_AT_ONCE = 4
_FIRST_DAY = date(2026, 11, 3)
_MEASURED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How a day is brought: the lines that its spec has besides those of orders, and its bars in seconds."""

    name: str
    said: str
    lines: str
    announced_bar: float
    job_bar: float | None = None

    @property
    def dag_id(self) -> str:
        return f"ingest__{self.name}__orders"


_KEPT = _Way(name="kept", said="on Spark that is kept", lines="", announced_bar=12, job_bar=6)
# Settings of an application take one of its own, whatever server the environment names.
_OWN = _Way(name="own", said="a JVM of its own", lines='spark: {conf: {"spark.driver.memory": 1g}}\n', announced_bar=28)
_LOCAL = _Way(name="local", said="engine local", lines="engine: local\n", announced_bar=9, job_bar=3)
_WAYS = (_KEPT, _OWN, _LOCAL)


def measure_airflow(lab: Lab) -> Iterator[Line]:
    """An instance of its own, made from nothing. Each way has a run that is not measured, by which it gets warm."""
    home = Home(lab.folder / "airflow")
    start = time.perf_counter()
    try:
        state = up(home, os.environ | {"LAKE_TABLES": str(_write_specs(lab.folder / "specs"))}, port=0)
        healthy = time.perf_counter() - start
        yield at_most("make up to healthy, from nothing", f"{healthy:.1f} s", healthy, _HEALTHY_SECONDS, "s")
        api = log_in(state.url, "admin", read_passwords(home)["admin"])
        for day in range(1 + _MEASURED + _AT_ONCE):
            write_day(home.landing, _FIRST_DAY + timedelta(days=day))
        for way in _WAYS:
            wait_for(lambda way=way: _is_known(api, way.dag_id), seconds=60, what=way.dag_id)
            unpause(api, way.dag_id)
            yield from _measure_way(home, api, way)
    finally:
        down(home)


def measure_demo(lab: Lab) -> Iterator[Line]:
    """As `make demo` runs it, without the set-up."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "infra.demo"], cwd=PROJECT, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    yield at_most("make demo", f"{seconds:.0f} s", seconds, _DEMO_SECONDS, "s")


def _write_specs(folder: Path) -> Path:
    """Orders, one table for each way."""
    shutil.copytree(PROJECT / "dags" / "gates", folder / "gates")
    (folder / "tables").mkdir()
    shutil.copy(PROJECT / "dags" / "tables" / "orders.sql", folder / "tables")
    spec = (PROJECT / "dags" / "tables" / "orders.yaml").read_text()
    for way in _WAYS:
        text = spec.replace("table: shop.orders", f"table: {way.name}.orders") + way.lines
        (folder / "tables" / f"{way.name}.yaml").write_text(text)
    return folder / "tables"


def _measure_way(home: Home, api: Api, way: _Way) -> Iterator[Line]:
    _ingest(home, api, way, [0])
    runs = [_ingest(home, api, way, [day]) for day in range(1, 1 + _MEASURED)]
    note = f"best of {_MEASURED}"
    announced = min(seconds for seconds, _ in runs)
    what = f"{ORDERS_A_DAY} rows, {way.said}"
    yield at_most(f"{what}: announced", f"{announced:.1f} s", announced, way.announced_bar, "s", note)
    if way.job_bar is not None:
        job = min(seconds for _, seconds in runs)
        yield at_most(f"{what}: the job", f"{job:.1f} s", job, way.job_bar, "s", note)
    if way is _KEPT:
        together, _ = _ingest(home, api, way, range(1 + _MEASURED, 1 + _MEASURED + _AT_ONCE))
        yield at_most_times(f"{_AT_ONCE} ingests at once", together, announced, 2, "peer: one alone")


def _ingest(home: Home, api: Api, way: _Way, days: Iterable[int]) -> tuple[float, float]:
    """Runs that are triggered together: the seconds from the first trigger to the last announcement, and those of the
    longest job that stages and judges."""
    keys = [(_FIRST_DAY + timedelta(days=day)).isoformat() for day in days]
    run_ids = [trigger(api, way.dag_id, partition=key) for key in keys]
    watch = Watch(api=api, tell=lambda run, state: None)
    runs = [watch.wait_for_end(run_id) for run_id in run_ids]
    for run in runs:
        if run.state != "success":
            raise RuntimeError(f"{run.run_id} is {run.state}; logs: {home.folder}")
    triggered = min(datetime.fromisoformat(run.queued_at) for run in runs)
    announced = max(_end_of(api, run, "announce") for run in runs)
    return (announced - triggered).total_seconds(), max(_job_seconds(home, run) for run in runs)


def _end_of(api: Api, run: Run, task_id: str) -> datetime:
    task: Mapping[str, str] = api.get(f"{run.path}/taskInstances/{task_id}")
    return datetime.fromisoformat(task["end_date"])


def _is_known(api: Api, dag_id: str) -> bool | None:
    return True if any(dag["dag_id"] == dag_id for dag in api.get("/api/v2/dags", limit=100)["dags"]) else None


def _job_seconds(home: Home, run: Run) -> float:
    """From the start of the job's process to its end."""
    attempts = (home.runs / run.dag_id / run.run_id / "stage_and_judge").rglob("attempt-*")
    attempt = max(attempts, key=lambda path: int(path.name.removeprefix("attempt-")))
    begun, ended = (Path(attempt, name).stat().st_mtime for name in ("process", "exit_code"))
    return ended - begun
