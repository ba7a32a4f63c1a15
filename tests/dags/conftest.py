"""Fixtures of the DAG tests: Airflow in processes of its own, a lake, and a landing folder."""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pytest

import lakelib
from lakelib import Lake

PROJECT = Path(__file__).resolve().parents[2]
_LAB = Path(__file__).with_name("lab.py")


@dataclass
class Lab:
    """A process with Airflow in it; `lab("go", dag_id=…)` calls the function of that name in lab.py."""

    process: subprocess.Popen[str]
    answers: TextIO
    log_file: Path

    def __call__(self, do: str, **arguments: Any) -> Any:
        self.begin(do, **arguments)
        return self.finish()

    def begin(self, do: str, **arguments: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self.process.stdin.flush()

    def finish(self) -> Any:
        line = self.answers.readline()
        assert line, f"The process with Airflow has ended:\n{self.log()[-5000:]}"
        told = json.loads(line)
        assert "error" not in told, told["error"]
        return told["value"]

    def log(self) -> str:
        return self.log_file.read_text()

    def run(self, dag_id: str, answer: dict[str, str] | None = None, **start: Any) -> dict[str, Any]:
        """A run from its start to its end."""
        run_id = self("start", dag_id=dag_id, **start)
        return {"run_id": run_id, **self("go", dag_id=dag_id, run_id=run_id, answer=answer)}


@dataclass(frozen=True)
class Place:
    """Folders, and the environment of processes that work in them."""

    folder: Path
    environment: dict[str, str]

    @property
    def landing(self) -> Path:
        return self.folder / "landing"


@pytest.fixture(scope="session")
def airflow_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database of Airflow's, to be copied."""
    home = tmp_path_factory.mktemp("airflow")
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    subprocess.run(command, env=airflow_environment(home), check=True, capture_output=True)
    return home / "airflow.db"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, airflow_database: Path, module_catalog_url: str) -> Place:
    folder = tmp_path_factory.mktemp("place")
    environment = {
        **airflow_environment(folder / "airflow"),
        "LANDING": str(folder / "landing"),
        "LAKE_CATALOG": module_catalog_url,
        "LAKE_WAREHOUSE": str(folder / "warehouse"),
    }
    (folder / "airflow").mkdir()
    shutil.copy(airflow_database, folder / "airflow" / "airflow.db")
    return Place(folder=folder, environment=environment)


@pytest.fixture(scope="module")
def lake(place: Place) -> Iterator[Lake]:
    environment = place.environment
    with lakelib.connect(warehouse=environment["LAKE_WAREHOUSE"], catalog=environment["LAKE_CATALOG"]) as lake:
        yield lake


@pytest.fixture(scope="module")
def open_lab(place: Place) -> Iterator[Callable[..., Lab]]:
    """Starts processes with Airflow in them, on the module's place; further settings may be given."""
    opened: list[Lab] = []

    def start(**environment: str) -> Lab:
        log_file = place.folder / f"lab-{len(opened)}.log"
        reading, writing = os.pipe()
        with log_file.open("w") as log:
            process = subprocess.Popen(
                [sys.executable, str(_LAB), str(writing)],
                env={**place.environment, **environment},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                text=True,
                pass_fds=[writing],
                preexec_fn=_die_with_parent,
            )
        os.close(writing)
        opened.append(Lab(process=process, answers=os.fdopen(reading), log_file=log_file))
        return opened[-1]

    yield start
    for lab in opened:
        lab.process.kill()
        lab.process.communicate()
        lab.answers.close()


@pytest.fixture(scope="module")
def lab(open_lab: Callable[..., Lab]) -> Lab:
    """Airflow with the DAGs of this project."""
    lab = open_lab()
    lab("parse")
    return lab


def _die_with_parent() -> None:
    """In the child: end, and end the job of the task at hand, when the test process ends, however it ends."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def airflow_environment(home: Path) -> dict[str, str]:
    """This process's environment, and that of an Airflow of its own."""
    return {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__API_AUTH__JWT_SECRET": "no secret, for these tests are the only ones to know of it: " + "x" * 20,
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "dags" / "plugins"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "PYTHONPATH": os.pathsep.join((str(PROJECT), str(PROJECT / "dags"))),
    }
