"""The executor of `make up` and of compose: its workers, and by that tasks, find loaded what tasks load."""

import json
import subprocess
import sys
from pathlib import Path

import yaml

from infra.airflow.instance import Home, airflow_environment

from .conftest import PROJECT, Place

_START = """
import json, sys
from airflow.executors.executor_loader import ExecutorLoader
from airflow.executors.local_executor import LocalExecutor
LocalExecutor._spawn_worker = lambda self: print(json.dumps(sorted(sys.modules)))
executor = ExecutorLoader.get_default_executor()
executor.parallelism = 1
executor.start()
"""


def test_workers_begin_with_what_tasks_load(place: Place, tmp_path: Path) -> None:
    keys = dict.fromkeys(("secret_key", "jwt_secret", "fernet_key", "spark_token"), "")
    made = airflow_environment(Home(tmp_path), port=1, catalog_url="", airflow_url="", keys=keys, inherited={})
    own = {name: made[name] for name in ("AIRFLOW__CORE__EXECUTOR", "PYTHONPATH")}
    environment = place.environment | own
    done = subprocess.run(
        [sys.executable, "-c", _START], env=environment, cwd=tmp_path, check=True, capture_output=True, text=True
    )
    modules = set(json.loads(done.stdout.splitlines()[-1]))
    assert {"lakelib.table", "lakelib.pipeline.following", "pyarrow.parquet"} <= modules
    assert not {name for name in modules if name.startswith("lake_dags")}


def test_compose_has_the_same_executor_as_make_up() -> None:
    compose = yaml.safe_load((PROJECT / "infra" / "compose" / "compose.yaml").read_text())
    environment = compose["services"]["airflow-scheduler"]["environment"]
    assert environment["AIRFLOW__CORE__EXECUTOR"] == "dags.lake_dags.executor.WarmExecutor"
