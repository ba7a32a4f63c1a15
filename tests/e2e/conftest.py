"""A live Airflow for the tests of this folder: an instance of its own, on free ports, with a folder of its own.

`make test` does not run these tests, `make e2e` does. Everything ends with the test session, whatever happens in it.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import lakelib
from infra.airflow.api import Api, log_in, wait_for
from infra.airflow.instance import PROJECT, Home, read_passwords
from infra.airflow.lifecycle import down, up
from infra.airflow.postgres import url_of_running
from infra.demo.runs import Run, Watch, unpause
from tests.e2e.support import Live

DAG_IDS = tuple(
    f"ingest__shop__{table}"
    for table in ("customers", "orders", "local_orders", "payments", "daily_revenue", "order_changes")
)
WEEK = Path(__file__).parent / "week_specs" / "tables"
WEEK_DAG_IDS = tuple(f"ingest__sales__{table}" for table in ("orders", "line_items", "daily_revenue"))
_QUICKER = {
    "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # Else a task whose process was killed is missed after a minute.
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "15",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "3",
}


@pytest.fixture(scope="session")
def live() -> Iterator[Live]:
    """An Airflow with the project's own DAGs, switched on, that waits less than in earnest."""
    with _folder() as folder, _started(folder, _quicker_specs(folder), DAG_IDS) as found:
        yield found


@pytest.fixture
def live_week() -> Iterator[Live]:
    """An Airflow with the tables of two feeds and one that is made from them, switched on."""
    with _folder() as folder, _started(folder, WEEK, WEEK_DAG_IDS) as found:
        yield found


@contextmanager
def _started(folder: Path, tables: Path, dag_ids: Collection[str]) -> Iterator[Live]:
    home = Home(folder / "lake")
    environment = os.environ | _QUICKER | {"LAKE_TABLES": str(tables)}
    try:
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
            wait_for(lambda: _are_known(found.api, dag_ids), seconds=120, what="the DAGs")
            for dag_id in dag_ids:
                unpause(found.api, dag_id)
            yield found
    finally:
        down(home)


@pytest.fixture
def short_folder() -> Iterator[Path]:
    with _folder() as folder:
        yield folder


@pytest.fixture
def empty_home(short_folder: Path) -> Iterator[Home]:
    """A folder for an instance that is not there yet. What runs in it ends with the test."""
    home = Home(short_folder / "lake")
    try:
        yield home
    finally:
        down(home)


@contextmanager
def _folder() -> Iterator[Path]:
    """Short: a socket's path has to be."""
    folder = Path(tempfile.mkdtemp(prefix="lakelib-e2e-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _quicker_specs(folder: Path) -> Path:
    """The project's specs, with short waits between tries; and one of the same orders without Spark, by hand."""
    for name in ("tables", "gates"):
        shutil.copytree(PROJECT / "dags" / name, folder / "specs" / name)
    for path in (folder / "specs" / "tables").glob("*.yaml"):
        text = re.sub(r"^retries: .*\n", "", path.read_text(), flags=re.M)
        path.write_text(f"{text}retries: {{count: 3, delay: 2s}}\n")
    orders = (folder / "specs" / "tables" / "orders.yaml").read_text()
    without = re.sub(r"^schedule: .*\n", "", orders, flags=re.M).replace("shop.orders", "shop.local_orders")
    (folder / "specs" / "tables" / "local_orders.yaml").write_text(f"{without}engine: local\n")
    return folder / "specs" / "tables"


def _are_known(api: Api, dag_ids: Collection[str]) -> bool | None:
    return True if set(dag_ids) <= {dag["dag_id"] for dag in api.get("/api/v2/dags", limit=100)["dags"]} else None


def _tell(run: Run, state: str) -> None:
    print(f"{run.dag_id} {run.partition}: {state}, {run.seconds or 0:.0f} s ({run.run_type})")
