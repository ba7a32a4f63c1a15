"""What the tests of a live Airflow have in common: how they see it, and what they say of a run and of the lake."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import lakelib
from infra.airflow.api import Api, wait_for
from infra.airflow.instance import Home, State, read_passwords
from infra.demo.runs import Run, Watch, failed_tasks

BEGIN_SECONDS = 300


def dag_of(table: str) -> str:
    return f"ingest__{table.replace('.', '__')}"


ORDERS, REVENUE, CUSTOMERS = map(dag_of, ("shop.orders", "shop.daily_revenue", "shop.customers"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A running instance, and what tests see it through."""

    home: Home
    environment: Mapping[str, str]
    """What Airflow was started with."""
    state: State
    api: Api
    viewer: Api
    watch: Watch
    lake: lakelib.Lake

    @property
    def password(self) -> str:
        return read_passwords(self.home)["admin"]


def green(live: Live, run: Run) -> Run:
    assert run.state == "success", f"{run.dag_id} {run.partition}: {run.state} in {failed_tasks(live.api, run)}"
    return run


def rows_of(live: Live, day: str, table: str = "shop.orders") -> int:
    return live.lake.table(table).scan(where=f"dt = '{day}'").count()


def clear(live: Live, run: Run, task_id: str) -> None:
    """As Airflow's dialogue proposes it: with all that comes after."""
    body = {"dry_run": False, "dag_run_id": run.run_id, "task_ids": [task_id], "include_downstream": True}
    live.api.post(f"/api/v2/dags/{run.dag_id}/clearTaskInstances", body | {"only_failed": False})


def check_follow_ups(live: Live, day: str, snapshot: int, table: str = "shop.orders") -> None:
    """The tag of a partition of orders pins the snapshot, and both its done marks are there."""
    orders = live.lake.table(table)
    assert [tag.snapshot_id for tag in orders.tags() if tag.name == f"dt-{day}-{snapshot}"] == [snapshot]
    assert Path(orders.location.removeprefix("file://"), f"dt={day}", "_SUCCESS").is_file()


def engine_of(snapshot: lakelib.Snapshot) -> str:
    """Which has made its rows; a commit's property says why, too."""
    return snapshot.properties["engine"].partition(":")[0]


def wait_for_job(live: Live, dag_id: str, run_id: str, task_id: str) -> Path:
    """The folder of the job's first attempt, as soon as its process is there."""
    task = live.home.runs / dag_id / run_id / task_id

    def find() -> Path | None:
        return next(task.rglob("clear_0/attempt-1/process"), None)

    # It may be at work for a few tenths of a second.
    return Path(wait_for(find, seconds=BEGIN_SECONDS, what=f"the job of {task_id}", pause=0.01)).parent
