"""The executor of `make up` and of compose: its workers, and by that tasks, find loaded what tasks load."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

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
_FORKS = f"""{_START}
import os
variables = open(f"/proc/{{executor._forks._process.pid}}/environ").read().split("\\0")
print(json.dumps([os.environ["AIRFLOW__LAKE__FORKS"] == executor._forks.address, variables]))
executor._forks._process.kill()
executor._forks._process.wait()
executor._forks._begun -= 60
executor.sync()
print(json.dumps([executor._forks._process.poll()]))
executor._forks.end()
"""


def test_workers_begin_with_what_tasks_load(place: Place, tmp_path: Path) -> None:
    modules = set(_told_by(_START, place, tmp_path)[0])
    assert {"lakelib.table", "lakelib.pipeline.following", "pyarrow.parquet"} <= modules
    assert not {name for name in modules if name.startswith("lake_dags")}


def test_tasks_know_of_whom_jobs_are_forks_and_that_is_replaced_and_knows_no_keys(place: Place, tmp_path: Path) -> None:
    _, (is_told, variables), after_a_kill = _told_by(_FORKS, place, tmp_path)
    assert is_told
    assert after_a_kill == [None]
    assert [name for name in variables if name.startswith("PATH=")]
    assert not [name for name in variables if name.startswith("AIRFLOW__")]


def _told_by(program: str, place: Place, folder: Path) -> list[Any]:
    """The lines that it says, as JSON."""
    keys = dict.fromkeys(("secret_key", "jwt_secret", "fernet_key", "spark_token"), "")
    made = airflow_environment(Home(folder), port=1, catalog_url="", airflow_url="", keys=keys, inherited={})
    own = {name: made[name] for name in ("AIRFLOW__CORE__EXECUTOR", "PYTHONPATH")}
    environment = place.environment | own
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=folder, check=True, capture_output=True, text=True
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


def test_compose_has_the_same_executor_as_make_up() -> None:
    compose = yaml.safe_load((PROJECT / "infra" / "compose" / "compose.yaml").read_text())
    environment = compose["services"]["airflow-scheduler"]["environment"]
    assert environment["AIRFLOW__CORE__EXECUTOR"] == "dags.lake_dags.executor.WarmExecutor"
