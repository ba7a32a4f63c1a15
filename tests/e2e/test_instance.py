"""`make up` and `make down`: what is started, that it is found again, and that exactly it is ended."""

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil
import pytest

from infra.airflow import lifecycle
from infra.airflow.api import ApiError, health, log_in, wait_for
from infra.airflow.instance import PROJECT, Home, State, choose_port, read_passwords, read_state, write_state
from infra.airflow.lifecycle import PARTS, StartError, down, running_parts, up
from infra.airflow.postgres import is_ready, stop_server
from infra.airflow.processes import Started, is_running
from infra.spark.connect import is_open

CORES = os.cpu_count() or 1
POOLS = {"lake_maintenance": 1, "lake_spark": CORES, "lake_sessions": 2 * CORES}


def test_life_of_an_instance(empty_home: Home) -> None:
    """One story, for each start costs a quarter of a minute."""
    home = empty_home
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        state = up(home, port=taken.getsockname()[1])
        assert state.port != taken.getsockname()[1]
    assert set(health(state.url).values()) == {"healthy"}
    assert up(home) == state, "the second time finds the first"
    check_only_loopback(state.parts.values())
    check_secrets(home)
    check_users(home)
    check_lake(home)
    check_that_a_shell_has_its_commands(home)
    check_that_what_was_killed_is_started_again(home)
    check_that_the_keeper_starts_what_ends(home)
    check_that_the_keeper_leaves_where_the_catalog_is_gone(home)
    parts = running_parts(home)
    assert down(home) == [*PARTS, "postgresql"]
    assert not any(is_running(part) for part in parts.values())
    assert not is_ready(home.catalog)
    assert down(home) == []
    assert home.secrets.exists()


def test_a_process_of_an_earlier_boot_is_not_taken_for_a_part(empty_home: Home) -> None:
    empty_home.airflow.mkdir(parents=True)
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        stale = Started(name="scheduler", pid=program.pid, start="an earlier boot/1")
        write_state(empty_home, State(port=choose_port(0), parts={"scheduler": stale}))
        assert running_parts(empty_home) == {}
        assert down(empty_home) == []
        assert program.poll() is None
    finally:
        program.kill()
        program.wait()


def test_nothing_stays_where_the_databases_cannot_be_brought_up_to_date(
    empty_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has been started by then."""
    log = str(empty_home.log_of("spark"))
    broken = f"import os, sys; sys.exit('no room, ' + str(os.path.exists({log!r})))"
    monkeypatch.setattr(lifecycle, "_AIRFLOW", (sys.executable, "-c", broken))
    with pytest.raises(StartError, match="no room, True"):
        up(empty_home)
    state = read_state(empty_home)
    assert state is not None
    assert state.parts == {}
    assert state.spark_port is not None
    assert not is_open(state.spark_port)
    assert not is_ready(empty_home.catalog)


def test_the_keeper_of_an_instance_that_is_gone_leaves(empty_home: Home) -> None:
    """It does not make again what somebody has removed."""
    command = [sys.executable, "-m", "infra.airflow", "keep", "--home", str(empty_home.folder)]
    subprocess.run(command, cwd=PROJECT, check=True, timeout=60)
    assert not empty_home.folder.exists()


def check_that_a_shell_has_its_commands(home: Home) -> None:
    """With the line that `up` prints, and nothing else."""
    script = f". '{home.environment}' && airflow pools list --output json"
    told = subprocess.run(
        ["sh", "-c", script], env={"HOME": str(home.folder)}, cwd="/", capture_output=True, text=True, check=False
    )
    assert "lake_maintenance" in told.stdout, told.stderr


def check_that_the_keeper_leaves_where_the_catalog_is_gone(home: Home) -> None:
    """An empty one in its place would hide the loss."""
    parts = running_parts(home)
    keeper = parts["keeper"]
    stop_server(home.catalog)
    home.catalog.rename(home.folder / "lost")
    for name in ("keeper", "scheduler", "dag-processor", "triggerer"):  # each ends, sooner or later, without a database
        wait_for(
            lambda part=parts[name]: None if is_running(part) else True, seconds=120, what=f"the end of the {name}"
        )
    assert not home.catalog.exists()
    (home.folder / "lost").rename(home.catalog)
    assert up(home).parts["keeper"] != keeper


def check_only_loopback(parts: Iterable[Started]) -> None:
    pids = {process.pid for part in parts for process in family(part)}
    listening = {
        connection.laddr.ip
        for connection in psutil.net_connections("inet")
        if connection.pid in pids and connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def check_secrets(home: Home) -> None:
    for path in (home.secrets, home.passwords, home.state):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    ignored = subprocess.run(["git", "check-ignore", "-q", ".lake/airflow/secrets.json"], cwd=PROJECT, check=False)
    assert ignored.returncode == 0


def check_users(home: Home) -> None:
    state, passwords = read_state(home), read_passwords(home)
    assert state is not None
    pool = {"name": "any", "slots": 1}
    with pytest.raises(ApiError, match="403"):
        log_in(state.url, "viewer", passwords["viewer"]).post("/api/v2/pools", pool)
    with pytest.raises(ApiError, match="401"):
        log_in(state.url, "admin", "wrong")
    admin = log_in(state.url, "admin", passwords["admin"])
    slots = {pool: admin.get(f"/api/v2/pools/{pool}")["slots"] for pool in POOLS}
    assert slots == POOLS


def check_lake(home: Home) -> None:
    """Who connects in the folder above finds the same lake, and leaves the server running when it ends."""
    program = "import lakelib; lake = lakelib.connect(); lake.create_namespace('shop'); print(lake.warehouse)"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAKE_")}
    place = home.folder.with_name(".lake")
    place.symlink_to(home.folder)
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=place.parent, env=environment, check=True, capture_output=True, text=True
    )
    assert Path(said.stdout.strip().removeprefix("file://")).resolve() == home.warehouse
    assert is_ready(home.catalog)


def check_that_what_was_killed_is_started_again(home: Home) -> None:
    before = running_parts(home)
    runner = psutil.Process(before["triggerer"].pid).children()[0]
    os.kill(before["triggerer"].pid, signal.SIGKILL)
    wait_for(lambda: None if is_running(before["triggerer"]) else True, seconds=10, what="the end of the triggerer")
    after = up(home).parts
    assert after["triggerer"] != before["triggerer"]
    assert not runner.is_running() or runner.status() == psutil.STATUS_ZOMBIE, "what it left behind has ended"
    assert {name: part for name, part in after.items() if name != "triggerer"} == {
        name: part for name, part in before.items() if name != "triggerer"
    }


def check_that_the_keeper_starts_what_ends(home: Home) -> None:
    """Nobody has to call `up`, but for the keeper itself."""
    before = running_parts(home)
    os.kill(before["scheduler"].pid, signal.SIGKILL)
    stop_server(home.catalog)

    def all_new() -> bool | None:
        running = running_parts(home)
        is_back = set(running) == set(PARTS) and running["scheduler"] != before["scheduler"] and is_ready(home.catalog)
        return True if is_back and set(health(state_of(home).url).values()) == {"healthy"} else None

    wait_for(all_new, seconds=120, what="the keeper's work")
    os.kill(before["keeper"].pid, signal.SIGKILL)
    wait_for(lambda: None if is_running(before["keeper"]) else True, seconds=10, what="the end of the keeper")
    assert up(home).parts["keeper"] != before["keeper"]


def state_of(home: Home) -> State:
    state = read_state(home)
    assert state is not None
    return state


def family(part: Started) -> list[psutil.Process]:
    process = psutil.Process(part.pid)
    return [process, *process.children(recursive=True)]
