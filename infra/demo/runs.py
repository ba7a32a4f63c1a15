"""DAG runs through Airflow's REST API: triggered, followed until they end or wait for a person, told once each."""

import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from infra.airflow.api import Api, ApiError
from lakelib.dataclass import dataclass

REVIEW_TASK = "review"
STAGE_TASK = "stage_and_judge"
_NOTED_SECONDS = 5.0
_POLL_SECONDS = 0.5
_LOOK_SECONDS = 0.1
_ENDED = ("success", "failed")
_PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    dag_id: str
    run_id: str
    run_type: str
    state: str
    partition: str | None
    queued_at: str
    seconds: float | None
    """From its start to its end; None until it has ended."""

    @property
    def path(self) -> str:
        return f"/api/v2/dags/{self.dag_id}/dagRuns/{quote(self.run_id, safe='')}"


@dataclass(kw_only=True)
class Watch:
    """Looks at all runs of an Airflow, and tells each that has ended or waits for a person once."""

    api: Api
    tell: Callable[[Run, str], None]
    told: set[tuple[str, str, str]] = field(default_factory=set)

    def wait_for(self, dag_id: str, partition: str, *, count: int = 1, seconds: float = 900) -> Run:
        """The `count`th run of a DAG for a partition, once it has ended or waits for a person."""

        def find(runs: list[Run]) -> Run | None:
            found = [run for run in runs if (run.dag_id, run.partition) == (dag_id, partition)]
            return found[count - 1] if len(found) >= count else None

        return self._wait(find, (*_ENDED, REVIEW_TASK), seconds, f"run {count} of {dag_id} for {partition}")

    def wait_for_end(self, run_id: str, *, seconds: float = 900) -> Run:
        """The run, once it has ended."""
        return self._wait(
            lambda runs: next((run for run in runs if run.run_id == run_id), None), _ENDED, seconds, f"run {run_id}"
        )

    def _wait(self, find: Callable[[list[Run]], Run | None], states: Collection[str], seconds: float, what: str) -> Run:
        """Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            run = find(self.look())
            if run is not None and run.state in states:
                return run
            time.sleep(_POLL_SECONDS)
        raise TimeoutError(f"{what}: not within {seconds:g} s")

    def look(self) -> list[Run]:
        """All runs, the oldest first. A run that waits for a person has the state `review`."""
        waiting = {(one["dag_id"], one["run_id"]) for one in pending_reviews(self.api)}
        runs = [_run(found, waiting) for found in _all_runs(self.api)]
        for run in runs:
            if run.state in (*_ENDED, REVIEW_TASK) and (run.dag_id, run.run_id, run.state) not in self.told:
                self.told.add((run.dag_id, run.run_id, run.state))
                self.tell(run, run.state)
        return runs


def trigger(api: Api, dag_id: str, *, partition: str | None = None, conf: Mapping[str, Any] | None = None) -> str:
    """Starts a run by hand and returns its id."""
    body = {"logical_date": None, "conf": dict(conf or {}), "partition_key": partition}
    run_id: str = api.post(f"/api/v2/dags/{dag_id}/dagRuns", body)["dag_run_id"]
    return run_id


def unpause(api: Api, dag_id: str) -> None:
    api.patch(f"/api/v2/dags/{dag_id}", {"is_paused": False})


def pending_reviews(api: Api) -> list[dict[str, str]]:
    """The task instances that wait for an answer."""
    found = api.get("/api/v2/dags/~/dagRuns/~/hitlDetails", response_received=False, state="awaiting_input")
    return [
        {"dag_id": one["task_instance"]["dag_id"], "run_id": one["task_instance"]["dag_run_id"]}
        for one in found["hitl_details"]
    ]


def answer_review(api: Api, run: Run, *, choice: str, reason: str, scheduler_log: Path | None = None) -> None:
    """What a person does in Airflow under Required Actions, and not much faster: an answer that comes before the
    scheduler has noted that the task waits is taken for a failure of the task. Its log, if it is given, says when it
    has; else that is left five seconds."""
    _wait_until_noted(run, scheduler_log)
    body = {"chosen_options": [choice], "params_input": {"reason": reason}}
    api.patch(f"{run.path}/taskInstances/{REVIEW_TASK}/-1/hitlDetails", body)


def _wait_until_noted(run: Run, scheduler_log: Path | None) -> None:
    deadline = time.monotonic() + _NOTED_SECONDS
    noted = f"TaskInstance Finished: dag_id={run.dag_id}, task_id={REVIEW_TASK}, run_id={run.run_id},"
    while time.monotonic() < deadline:
        if scheduler_log is not None and noted in scheduler_log.read_text(errors="replace"):
            return
        time.sleep(_LOOK_SECONDS)


def returned(api: Api, run: Run, task_id: str, *, map_index: int = -1) -> dict[str, Any]:
    """What a task has returned; nothing if it has not."""
    path = f"{run.path}/taskInstances/{task_id}/xcomEntries/return_value"
    try:
        found = api.get(path, map_index=map_index)["value"]
    except ApiError as error:
        if error.status != 404:
            raise
        return {}
    value = json.loads(found) if isinstance(found, str) else found
    return value if isinstance(value, dict) else {}


def task_seconds(api: Api, run: Run) -> dict[str, float]:
    """How long the tasks of a run have run."""
    found = api.get(f"{run.path}/taskInstances", limit=_PAGE)["task_instances"]
    return {one["task_id"]: one["duration"] for one in found if one["duration"] is not None}


def failed_tasks(api: Api, run: Run) -> list[str]:
    found = api.get(f"{run.path}/taskInstances", limit=_PAGE)["task_instances"]
    return [one["task_id"] for one in found if one["state"] == "failed"]


def _all_runs(api: Api) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get("/api/v2/dags/~/dagRuns", limit=_PAGE, order_by="id")["dag_runs"]
    return found


def _run(found: Mapping[str, Any], waiting: set[tuple[str, str]]) -> Run:
    name = (found["dag_id"], found["dag_run_id"])
    return Run(
        dag_id=found["dag_id"],
        run_id=found["dag_run_id"],
        run_type=found["run_type"],
        state=REVIEW_TASK if name in waiting else found["state"],
        partition=found["partition_key"],
        queued_at=found["queued_at"],
        seconds=_seconds(found["start_date"], found["end_date"]),
    )


def _seconds(start: str | None, end: str | None) -> float | None:
    if start is None or end is None:
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
