"""Fixtures of the DAG tests: Airflow in processes of its own, a lake, and a landing folder."""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pytest

import lakelib
from lakelib import Lake
from tests.conftest import MORTAL

PROJECT = Path(__file__).resolve().parents[2]
_LONGEST_ANSWER = 20
"""Of the process that starts labs."""


class LabProcess:
    """The process of a lab, which is no child of this one."""

    def __init__(self, pid: int) -> None:
        self._file = os.pidfd_open(pid)

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def wait(self) -> None:
        select.select([self._file], [], [])

    def close(self) -> None:
        os.close(self._file)

    def _send(self, what: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._file, what)


@dataclass
class Lab:
    """A process with Airflow in it; `lab("go", dag_id=…)` calls the function of that name in lab.py."""

    process: LabProcess
    requests: TextIO
    answers: TextIO
    log_file: Path

    def __call__(self, do: str, **arguments: Any) -> Any:
        self.begin(do, **arguments)
        return self.finish()

    def begin(self, do: str, **arguments: Any) -> None:
        self.requests.write(json.dumps({"do": do, **arguments}) + "\n")

    def finish(self) -> Any:
        line = self.answers.readline()
        assert line, f"The process with Airflow has ended:\n{self.log()[-5000:]}"
        told = json.loads(line)
        assert "error" not in told, told["error"]
        return told["value"]

    def log(self) -> str:
        return self.log_file.read_text()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.close()
        self.requests.close()
        self.answers.close()

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


LabStarter = Callable[[Mapping[str, str], Path], Lab]


@pytest.fixture(scope="session")
def start_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabStarter]:
    """Starts labs that have an environment and a log."""
    home = tmp_path_factory.mktemp("starter")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, (home / "log").open("w") as log:
        process = subprocess.Popen(
            [*MORTAL, sys.executable, "-m", "tests.dags.lab_starter", str(theirs.fileno())],
            env=airflow_environment(home),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        yield lambda environment, log_file: _start_lab(ours, environment, log_file)
    process.wait()


def _start_lab(starter: socket.socket, environment: Mapping[str, str], log_file: Path) -> Lab:
    requests, requesting = os.pipe()
    answers, answering = os.pipe()
    log = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    socket.send_fds(starter, [json.dumps(dict(environment)).encode()], [requests, log, answering])
    for file in (requests, log, answering):
        os.close(file)
    pid = int(starter.recv(_LONGEST_ANSWER))
    return Lab(
        process=LabProcess(pid),
        requests=os.fdopen(requesting, "w", buffering=1),
        answers=os.fdopen(answers),
        log_file=log_file,
    )


@pytest.fixture(scope="session")
def airflow_database(start_lab: LabStarter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database of Airflow's, to be copied."""
    home = tmp_path_factory.mktemp("airflow")
    lab = start_lab(airflow_environment(home), home / "log")
    lab("migrate")
    lab.end()
    return home / "airflow.db"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, airflow_database: Path, module_database_url: str) -> Place:
    folder = tmp_path_factory.mktemp("place")
    environment = {
        **airflow_environment(folder / "airflow"),
        "LANDING": str(folder / "landing"),
        "LAKE_CATALOG": module_database_url,
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
def open_lab(place: Place, start_lab: LabStarter) -> Iterator[Callable[..., Lab]]:
    """Starts processes with Airflow in them, on the module's place; further settings may be given."""
    opened: list[Lab] = []

    def start(**environment: str) -> Lab:
        opened.append(start_lab({**place.environment, **environment}, place.folder / f"lab-{len(opened)}.log"))
        return opened[-1]

    yield start
    for lab in opened:
        lab.end()


@pytest.fixture(scope="module")
def lab(open_lab: Callable[..., Lab]) -> Lab:
    """Airflow with the DAGs of this project."""
    lab = open_lab()
    lab("parse")
    return lab


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
        "PYTHONPATH": os.pathsep.join((str(PROJECT), str(PROJECT / "dags"), str(PROJECT / "tests" / "preloading"))),
    }
