"""Whatever is killed at whatever stage of an ingest run: it ends green, with one commit, and what follows done once.

On both engines: orders by the Spark Connect server, and the same ones without Spark. A job that is killed between
staging and judging is so here on Spark alone, for without it that moment is short: tests/jobs/test_ingest_killed.py.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from functools import partial
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest

from dags.lake_dags.detached import JobState, state_of
from infra.airflow.api import ApiError, wait_for
from infra.airflow.lifecycle import SPARK, restart_postgresql, running_parts
from infra.airflow.processes import Started
from infra.airflow.stuck import STUCK_SECONDS
from infra.demo.runs import Run, returned, trigger
from infra.demo.shop import ORDERS_A_DAY, write_day
from lakelib.errors import NotFoundError
from lakelib.model.table import CommitState
from lakelib.ops.inspect import list_commits
from tests.e2e.support import (
    BEGIN_SECONDS,
    ORDERS,
    Live,
    check_follow_ups,
    dag_of,
    engine_of,
    green,
    rows_of,
    wait_for_job,
)

pytestmark = pytest.mark.timeout(1800)

STAGES = ("wait_for_source", "stage_and_judge", "review", "publish", "tag", "mark_done", "announce")
JOB_STAGES = ("stage_and_judge", "publish")
ENGINES = {"shop.orders": "spark", "shop.local_orders": "local"}
_RUN_SECONDS = 600
_DAYS: Iterator[date] = (date(2026, 9, day) for day in range(1, 31))


@pytest.fixture(params=list(ENGINES))
def table(request: pytest.FixtureRequest) -> str:
    """Of each engine one."""
    found: str = request.param
    return found


def test_task_processes_are_killed_at_every_stage(live: Live, table: str) -> None:
    struck = set()

    def strike(run_id: str) -> None:
        for stage in STAGES:
            if kill_task(live, wait_for_pid(live, table, run_id, stage)):
                struck.add(stage)

    check_that_it_recovers(live, table, strike)
    assert struck >= set(JOB_STAGES), "the others may have ended before they were hit"


def test_jobs_are_killed_with_all_their_processes(live: Live, table: str) -> None:
    def strike(run_id: str) -> None:
        for stage in JOB_STAGES:
            kill_job(wait_for_job(live, dag_of(table), run_id, stage))

    check_that_it_recovers(live, table, strike)


def test_spark_is_killed_when_its_commit_is_staged_and_not_judged(live: Live) -> None:
    def strike(run_id: str) -> None:
        job = wait_for_job(live, ORDERS, run_id, "stage_and_judge")
        wait_for(lambda: is_staged(live, run_id), seconds=BEGIN_SECONDS, what="a staged commit", pause=0.02)
        kill_job(job)

    check_that_it_recovers(live, "shop.orders", strike)


def test_the_spark_server_is_killed_while_rows_are_staged(live: Live) -> None:
    """The keeper starts another one."""

    def strike(run_id: str) -> None:
        job = wait_for_job(live, ORDERS, run_id, "stage_and_judge")
        wait_for(lambda: has_session(live), seconds=BEGIN_SECONDS, what="a task of the job on the server")
        assert state_of(job) is JobState.RUNNING
        server = running_parts(live.home)[SPARK]
        os.kill(server.pid, signal.SIGKILL)
        wait_for(lambda: is_another(live, server), seconds=BEGIN_SECONDS, what="the keeper's work")

    check_that_it_recovers(live, "shop.orders", strike)


def test_the_scheduler_is_killed_while_jobs_run(live: Live, table: str) -> None:
    """The keeper ends the tasks that it has begun, and starts another one; the jobs run on."""

    def strike(run_id: str) -> None:
        for stage in JOB_STAGES:
            wait_for_job(live, dag_of(table), run_id, stage)
            scheduler = running_parts(live.home)["scheduler"]
            os.kill(scheduler.pid, signal.SIGKILL)
            wait_for(partial(is_another, live, scheduler), seconds=BEGIN_SECONDS, what="the keeper's work")

    check_that_it_recovers(live, table, strike)


def test_a_scheduler_that_hangs_is_ended_and_started_again(live: Live) -> None:
    """As one does now and then that has lost its database, and waits for a worker that is idle."""
    table = "shop.local_orders"

    def strike(run_id: str) -> None:
        wait_for_job(live, dag_of(table), run_id, JOB_STAGES[0])
        scheduler = running_parts(live.home)["scheduler"]
        os.kill(scheduler.pid, signal.SIGSTOP)
        wait_for(partial(is_another, live, scheduler), seconds=STUCK_SECONDS + BEGIN_SECONDS, what="the keeper's work")

    check_that_it_recovers(live, table, strike)


def test_postgresql_crashes_at_every_stage(live: Live, table: str) -> None:
    def strike(run_id: str) -> None:
        for stage in STAGES:
            wait_for_pid(live, table, run_id, stage)
            restart_postgresql(live.home, mode="immediate")

    check_that_it_recovers(live, table, strike)


def check_that_it_recovers(live: Live, table: str, strike: Callable[[str], None]) -> None:
    """`strike` does the damage to a run that is on its way."""
    day = next(_DAYS).isoformat()
    write_day(live.home.landing, date.fromisoformat(day))
    before = {snapshot.id for snapshot in history(live, table)}
    run_id = trigger(live.api, dag_of(table), conf={"partition": day})
    strike(run_id)
    run = green(live, live.watch.wait_for_end(run_id, seconds=_RUN_SECONDS))
    snapshot_id = check_one_commit(live, table, run, before)
    check_follow_ups(live, day, snapshot_id, table)
    assert rows_of(live, day, table) == ORDERS_A_DAY


def check_one_commit(live: Live, table: str, run: Run, before: set[int]) -> int:
    """Its snapshot."""
    (published,) = returned(live.api, run, "publish")["published"]
    (snapshot,) = (each for each in history(live, table) if each.id not in before)
    assert (snapshot.id, engine_of(snapshot)) == (published["snapshot"], ENGINES[table])
    assert [commit.state for commit in commits_of(live, run.run_id, run.dag_id)] == ["published"]
    events = live.api.get("/api/v2/assets/events", source_dag_id=run.dag_id, source_run_id=run.run_id)["asset_events"]
    assert [event["extra"]["snapshot"] for event in events] == [snapshot.id]
    return int(snapshot.id)


def has_session(live: Live) -> bool | None:
    """Whether the server runs Python for somebody."""
    for child in psutil.Process(running_parts(live.home)[SPARK].pid).children():
        with suppress(psutil.Error):  # it may be ending
            if "daemon" in " ".join(child.cmdline()):
                return True
    return None


def is_another(live: Live, part: Started) -> bool | None:
    return True if running_parts(live.home).get(part.name, part) != part else None


def history(live: Live, table: str) -> list:
    """Of a table that is not there yet, nothing."""
    try:
        return live.lake.table(table).history()
    except NotFoundError:
        return []


def commits_of(live: Live, run_id: str, dag_id: str) -> list:
    """All commits that the run has ever made, in whatever state."""
    found = list_commits(live.lake.runtime, None, list(CommitState), 1000)
    return [commit for commit in found if commit.application == f"airflow/{dag_id}/{run_id}"]


def is_staged(live: Live, run_id: str) -> bool | None:
    return True if commits_of(live, run_id, ORDERS) else None


def wait_for_pid(live: Live, table: str, run_id: str, task_id: str) -> int:
    """The process of a task, as soon as it has begun; 0 if it has ended already."""
    path = f"/api/v2/dags/{dag_of(table)}/dagRuns/{quote(run_id, safe='')}/taskInstances/{task_id}"
    deadline = time.monotonic() + BEGIN_SECONDS
    while time.monotonic() < deadline:
        with suppress(ApiError, OSError):
            found = live.api.get(path)
            if found["state"] == "running" and found["pid"]:
                return int(found["pid"])
            if found["state"] in ("success", "skipped", "deferred"):
                return 0
        time.sleep(0.02)
    raise TimeoutError(f"{task_id} of {run_id} does not run")


def kill_task(live: Live, pid: int) -> bool:
    """Kills a task's process. Not another one that has its pid by now: it has to be the scheduler's descendant."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if running_parts(live.home)["scheduler"].pid in {parent.pid for parent in process.parents()}:
            process.kill()
            return True
    return False


def kill_job(attempt: Path) -> None:
    """With -9: the script that watches it, Spark's driver, its Python and its Java. It has to be at work still."""
    assert state_of(attempt) is JobState.RUNNING
    os.killpg(int((attempt / "process").read_text().split()[0]), signal.SIGKILL)
