"""Starting an instance and ending it: PostgreSQL, then a Spark Connect server, the four parts of Airflow and what keeps
them running, each a process of its own.

`airflow standalone` would leave its parts behind when it is told to end, so each part is started here.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from dags.lake_dags.detached import end_job
from dags.lake_dags.places import job_environment
from infra.airflow.api import health
from infra.airflow.instance import (
    PROJECT,
    USUAL_PORT,
    Home,
    State,
    airflow_environment,
    choose_port,
    ensure_secrets,
    read_environment,
    read_state,
    write_environment,
    write_state,
)
from infra.airflow.postgres import (
    SERVER,
    airflow_url,
    is_ready,
    jobs_url,
    migrated_by,
    prepare_databases,
    release_server,
    restart_server,
    set_migrated_by,
    start_server,
)
from infra.airflow.processes import Started, end, is_running, start_detached
from infra.spark.connect import USUAL_PORT as USUAL_SPARK_PORT
from infra.spark.connect import is_open, server_command, server_environment, url_of
from lakelib.catalog.embedded import EmbeddedServer

KEEPER, SPARK = "keeper", "spark"
# Task logs are read from disk: the log servers would listen on every address of this machine.
_OF_AIRFLOW = {
    "api-server": ("api-server",),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
    "triggerer": ("triggerer", "--skip-serve-logs"),
}
PARTS = (SPARK, *_OF_AIRFLOW, KEEPER)
SPARK_MEMORY = "LAKE_SPARK_MEMORY"
"""How much the heap of the Spark Connect server may take: 1g, unless the environment says another size."""
HEALTHY_SECONDS = 180
_END_SECONDS = 20
_POLL_SECONDS = 0.5
_LOG_TAIL_LINES = 15


class StartError(Exception):
    """What did not start, with the end of its log."""


def up(home: Home, environment: Mapping[str, str] = os.environ, *, port: int | None = None) -> State:
    """Starts what is not running, and returns once Airflow says that all its parts are healthy.

    Two of them at once: the second waits for the first and finds all of it running. Raises StartError; what this call
    had started has ended then.
    """
    with _locked(home):
        running = running_parts(home)
        before = read_state(home)
        if before is not None and not missing_parts(before, running) and is_ready(home.catalog):
            return replace(before, parts=running)
        if before is not None:
            left_behind = [part for name, part in before.parts.items() if name not in running]
            end(left_behind, seconds=_END_SECONDS)
        environment = _joining(home, environment) if running else environment
        _check_tables(environment)
        server = start_server(home.catalog)
        try:
            chosen = before if before is not None and running else _choose_ports(before, port, environment)
            settings = _settings(home, server, chosen, environment)
            return _start_missing(home, server, settings, replace(chosen, parts=running))
        except BaseException:
            if not running:
                release_server(home.catalog)
            raise


def down(home: Home) -> list[str]:
    """Ends what `up` started and the jobs of its tasks, and returns the names of the parts; data and secrets stay."""
    if not home.airflow.exists():
        return []
    parts = running_parts(home)
    # The keeper first, without waiting: it may hold the lock, for it is starting something.
    end([parts[KEEPER]] if KEEPER in parts else (), seconds=_END_SECONDS)
    with _locked(home):
        parts, state = {**parts, **running_parts(home)}, read_state(home)
        end(state.parts.values() if state else (), seconds=_END_SECONDS)
        _end_jobs(home)
        had_server = is_ready(home.catalog)
        stopped = release_server(home.catalog)
        if state is not None:
            write_state(home, replace(state, parts={}))
        ended = [part for part in PARTS if part in parts]
        return [*ended, *([SERVER] if had_server and stopped else [])]


def restart_postgresql(home: Home, *, mode: str = "fast") -> None:
    """Ends all its sessions and starts it again. `mode` immediate is a crash, with recovery from the log."""
    with _locked(home):
        restart_server(home.catalog, mode=mode)


def running_parts(home: Home) -> dict[str, Started]:
    """Those of Airflow's parts that `up` started and that still run."""
    state = read_state(home)
    return {name: part for name, part in state.parts.items() if is_running(part)} if state else {}


def missing_parts(state: State | None, running: Collection[str]) -> list[str]:
    """What of the instance does not run."""
    wanted = (part for part in PARTS if part != SPARK or state is None or state.spark_port is not None)
    return [part for part in wanted if part not in running]


def choose_spark_port(before: int | None, environment: Mapping[str, str]) -> int | None:
    """None where the environment names a Spark that is to do the work. It may have the instance's own, of earlier."""
    remote = environment.get("SPARK_REMOTE")
    is_own = before is not None and remote == url_of(before)
    if environment.get("SPARK_MASTER") or (remote and not is_own):
        return None
    return choose_port(before or USUAL_SPARK_PORT)


def _choose_ports(before: State | None, port: int | None, environment: Mapping[str, str]) -> State:
    """Of an instance of which nothing runs."""
    chosen = choose_port(port if port is not None else before.port if before is not None else USUAL_PORT)
    spark_port = choose_spark_port(None if before is None else before.spark_port, environment)
    return State(port=chosen, spark_port=spark_port, parts={})


def _joining(home: Home, environment: Mapping[str, str]) -> Mapping[str, str]:
    """What is started beside parts that run has their specs and sources."""
    known = read_environment(home)
    return {**environment, **{name: known[name] for name in ("LAKE_TABLES", "LANDING") if name in known}}


def _check_tables(environment: Mapping[str, str]) -> None:
    folder = environment.get("LAKE_TABLES")
    if folder and not Path(folder).is_dir():
        raise StartError(
            f"LAKE_TABLES names {folder}, and there is no such folder. `lake init` makes one for your own tables."
        )


def _settings(home: Home, server: EmbeddedServer, state: State, environment: Mapping[str, str]) -> dict[str, str]:
    for folder in (home.warehouse, home.landing, home.runs, home.logs):
        folder.mkdir(parents=True, exist_ok=True)
    settings = airflow_environment(
        home,
        port=state.port,
        spark_port=state.spark_port,
        catalog_url=jobs_url(server),
        airflow_url=airflow_url(server),
        keys=ensure_secrets(home),
        inherited=environment,
    )
    write_environment(home, settings)
    return settings


def _start_missing(home: Home, server: EmbeddedServer, settings: Mapping[str, str], running: State) -> State:
    """Spark has no use for the databases: it starts while they are brought up to date."""
    missing = missing_parts(running, running.parts)
    begun: list[Started] = []

    def begin(names: Sequence[str]) -> State:
        for name in names:
            begun.append(_begin(home, name, running, settings, server))
            write_state(home, _with(running, begun))
        return _with(running, begun)

    try:
        begin([name for name in missing if name == SPARK])
        _migrate(home, server, settings)
        state = begin([name for name in missing if name != SPARK])
        _wait_until_healthy(home, state)
    except BaseException:
        end(begun, seconds=_END_SECONDS)
        write_state(home, running)
        raise
    return state


def _begin(home: Home, part: str, state: State, settings: Mapping[str, str], server: EmbeddedServer) -> Started:
    own = _spark_environment(settings) if part == SPARK else settings
    command, log = _command(home, part, state, settings), home.log_of(part)
    return start_detached(part, command, own, PROJECT, log, kept=(server.users_lock,))


def _with(state: State, begun: Iterable[Started]) -> State:
    return replace(state, parts={**state.parts, **{part.name: part for part in begun}})


def _migrate(home: Home, server: EmbeddedServer, settings: Mapping[str, str]) -> None:
    """Brings the lake's catalog up to date, and Airflow's database unless this version has done so."""
    prepare_databases(server, home.warehouse.as_uri())
    airflow = version("apache-airflow")
    if migrated_by(server) == airflow:
        return
    with home.log_of("migration").open("ab") as log:
        command = [*_AIRFLOW, "db", "migrate"]
        done = subprocess.run(command, env=settings, cwd=PROJECT, stdout=log, stderr=log, check=False)
    if done.returncode:
        raise StartError(f"Airflow's database could not be brought up to date.\n{_tail(home, 'migration')}")
    set_migrated_by(server, airflow)


def _command(home: Home, part: str, state: State, settings: Mapping[str, str]) -> list[str]:
    if part == KEEPER:
        return [sys.executable, "-m", "infra.airflow", "keep", "--home", str(home.folder)]
    if part == SPARK:
        assert state.spark_port is not None
        shutil.rmtree(home.spark, ignore_errors=True)  # what one that was killed has left
        home.spark.mkdir(mode=0o700)
        memory = settings.get(SPARK_MEMORY) or "1g"
        return server_command(port=state.spark_port, cores=os.cpu_count() or 1, memory=memory, folder=home.spark)
    return [*_AIRFLOW, *_OF_AIRFLOW[part]]


def _spark_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Of the Spark Connect server: what jobs know, and none of Airflow's keys."""
    return server_environment(None, job_environment(settings))


def _wait_until_healthy(home: Home, state: State) -> None:
    deadline = time.monotonic() + HEALTHY_SECONDS
    found: dict[str, str] = {}
    while time.monotonic() < deadline:
        for name, part in state.parts.items():
            if not is_running(part):
                raise StartError(f"The {name} has ended.\n{_tail(home, name)}")
        found = health(state.url)
        if found and all(status == "healthy" for status in (found | _spark_health(state)).values()):
            return
        time.sleep(_POLL_SECONDS)
    told = found | _spark_health(state) if found else "no answer"
    raise StartError(f"Not healthy after {HEALTHY_SECONDS} s: {told}. Logs: {home.logs}")


def _spark_health(state: State) -> dict[str, str]:
    """Where it is part of the instance."""
    if state.spark_port is None:
        return {}
    return {SPARK: "healthy" if is_open(state.spark_port) else "not listening yet"}


def _end_jobs(home: Home) -> None:
    """Ends the jobs whose task was killed and is not there any more to end them."""
    for process in home.runs.rglob("attempt-*/process"):
        end_job(process.parent)


def _tail(home: Home, name: str) -> str:
    path = home.log_of(name)
    lines = path.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
    return "\n".join([*lines, f"All of it: {path}"])


@contextmanager
def _locked(home: Home) -> Iterator[None]:
    home.airflow.mkdir(parents=True, exist_ok=True)
    with home.lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


_AIRFLOW = (sys.executable, "-m", "airflow")
