"""The measurements of Airflow: how soon it is healthy, what an ingest of 400 rows takes on the server of Spark Connect
that is kept, and what its run costs beyond that."""

import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from infra.airflow.api import Api, log_in, wait_for
from infra.airflow.instance import Home, read_passwords
from infra.airflow.lifecycle import down, up
from infra.demo.runs import Run, Watch, trigger, unpause
from infra.demo.shop import ORDERS_A_DAY, write_day
from tests.bench.lab import Lab
from tests.bench.report import Line, at_most

_INGEST = "ingest__shop__orders"
_DAYS = (date(2026, 11, 3), date(2026, 11, 4), date(2026, 11, 5))
_HEALTHY_SECONDS = 40
_OVERHEAD_SECONDS = 15
_JOB_SECONDS = 6


def measure_airflow(lab: Lab) -> Iterator[Line]:
    """An instance of its own, made from nothing; then ingest runs of small partitions, one after the other."""
    home = Home(lab.folder / "airflow")
    start = time.perf_counter()
    try:
        state = up(home, port=0)
        healthy = time.perf_counter() - start
        yield at_most("make up to healthy, from nothing", f"{healthy:.1f} s", healthy, _HEALTHY_SECONDS, "s")
        api = log_in(state.url, "admin", read_passwords(home)["admin"])
        runs = [_ingest(home, api, day) for day in _DAYS]
    finally:
        down(home)
    best = min(job for _, job in runs)
    yield at_most(
        f"the job of an ingest of {ORDERS_A_DAY} rows",
        f"{best:.1f} s",
        best,
        _JOB_SECONDS,
        "s",
        f"best of {len(_DAYS)}",
    )
    (total, job) = min(runs, key=lambda seconds: seconds[0] - seconds[1])
    yield at_most(
        "one ingest run beyond its job on Spark",
        f"{total:.1f} s",
        total - job,
        _OVERHEAD_SECONDS,
        "s",
        f"best of {len(_DAYS)}; peer: its job on Spark",
        peer=f"{job:.1f} s",
    )


def _ingest(home: Home, api: Api, day: date) -> tuple[float, float]:
    """The seconds of the run, and of the job in it that stages and judges."""
    wait_for(lambda: _is_known(api), seconds=60, what=_INGEST)
    write_day(home.landing, day)
    unpause(api, _INGEST)
    run_id = trigger(api, _INGEST, partition=day.isoformat())
    run = Watch(api=api, tell=lambda run, state: None).wait_for(_INGEST, day.isoformat())
    if run.state != "success" or run.seconds is None:
        raise RuntimeError(f"{run_id} is {run.state}; logs: {home.folder}")
    return run.seconds, _job_seconds(home, run)


def _is_known(api: Api) -> bool | None:
    return True if any(dag["dag_id"] == _INGEST for dag in api.get("/api/v2/dags", limit=100)["dags"]) else None


def _job_seconds(home: Home, run: Run) -> float:
    """From the start of the job's process to its end."""
    (attempt,) = (home.runs / run.dag_id / run.run_id / "stage_and_judge").rglob("attempt-*")
    begun, ended = (Path(attempt, name).stat().st_mtime for name in ("process", "exit_code"))
    return ended - begun
