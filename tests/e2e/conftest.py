"""A live Airflow for the tests of this folder: an instance of its own, on free ports, with a folder of its own.

`make test` does not run these tests, `make e2e` does. Everything ends with the test session, whatever happens in it.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakelib
from infra.airflow.api import Api, log_in, wait_for
from infra.airflow.instance import PROJECT, Home, read_passwords
from infra.airflow.lifecycle import down, up
from infra.airflow.postgres import url_of_running
from infra.demo.runs import Run, Watch, unpause
from tests.e2e.support import Live

DAG_IDS = tuple(f"ingest__shop__{table}" for table in ("customers", "orders", "payments", "daily_revenue"))
_QUICKER = {
    "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # Else a task whose process was killed is missed after a minute.
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "15",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "3",
}


@pytest.fixture(scope="session")
def live() -> Iterator[Live]:
    """An Airflow with the project's own DAGs, switched on, that waits less than in earnest."""
    folder = Path(tempfile.mkdtemp(prefix="lakelib-e2e-", dir="/tmp"))
    home = Home(folder / "lake")
    try:
        environment = os.environ | _QUICKER | {"LAKE_TABLES": str(_quicker_specs(folder))}
        state = up(home, environment, port=0)
        users = {user: log_in(state.url, user, password) for user, password in read_passwords(home).items()}
        with lakelib.connect(home.warehouse.as_uri(), url_of_running(home.catalog)) as lake:
            found = Live(
                home=home,
                environment=environment,
                state=state,
                api=users["admin"],
                viewer=users["viewer"],
                watch=Watch(api=users["admin"], tell=_tell),
                lake=lake,
            )
            wait_for(lambda: _are_known(found.api), seconds=120, what="the DAGs")
            for dag_id in DAG_IDS:
                unpause(found.api, dag_id)
            yield found
    finally:
        down(home)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def empty_home() -> Iterator[Home]:
    """A folder for an instance that is not there yet. What runs in it ends with the test."""
    folder = Path(tempfile.mkdtemp(prefix="lakelib-e2e-", dir="/tmp"))
    home = Home(folder / "lake")
    try:
        yield home
    finally:
        down(home)
        shutil.rmtree(folder, ignore_errors=True)


def _quicker_specs(folder: Path) -> Path:
    """The project's specs, with short waits between tries."""
    for name in ("tables", "gates"):
        shutil.copytree(PROJECT / "dags" / name, folder / "specs" / name)
    for path in (folder / "specs" / "tables").glob("*.yaml"):
        text = re.sub(r"^retries: .*\n", "", path.read_text(), flags=re.M)
        path.write_text(f"{text}retries: {{count: 3, delay: 2s}}\n")
    return folder / "specs" / "tables"


def _are_known(api: Api) -> bool | None:
    return True if set(DAG_IDS) <= {dag["dag_id"] for dag in api.get("/api/v2/dags", limit=100)["dags"]} else None


def _tell(run: Run, state: str) -> None:
    print(f"{run.dag_id} {run.partition}: {state}, {run.seconds or 0:.0f} s ({run.run_type})")
