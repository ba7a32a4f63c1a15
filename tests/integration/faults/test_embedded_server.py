"""The embedded PostgreSQL: shared by processes, started by the first, back after it was killed, gone with the last."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.faults.server import ended, postmaster_pid, work_folder

_ROOT = Path(__file__).parents[3]
_TIMEOUT_SECONDS = 60
_CATALOG = ".lake/warehouse/.catalog"


@pytest.fixture
def folder() -> Iterator[Path]:
    with work_folder() as folder:
        yield folder


def test_programs_that_start_at_once_share_one_server_which_ends_with_the_last(folder: Path) -> None:
    programs = [_start(folder, "add_row") for _ in range(4)]

    assert [_end(program) for program in programs] == [""] * 4

    assert not (folder / ".lake/warehouse/.catalog/postmaster.pid").exists()
    assert len(list((folder / ".lake/warehouse/shop").glob("a-*/*.parquet"))) == 4


@pytest.mark.parametrize("command", ["outlive_kills", "outlive_kills_without_init"])
def test_a_lake_works_on_when_its_server_is_killed(command: str, folder: Path) -> None:
    assert _end(_start(folder, command)) == ""
    assert not (folder / ".lake/warehouse/.catalog/postmaster.pid").exists()


def test_threads_that_connect_at_once_share_one_server(folder: Path) -> None:
    assert _end(_start(folder, "connect_in_threads")) == ""
    assert not (folder / ".lake/warehouse/.catalog/postmaster.pid").exists()


def test_a_server_that_died_with_its_program_is_started_again_by_the_next(folder: Path) -> None:
    _start(folder, "die_with_server").communicate(timeout=_TIMEOUT_SECONDS)

    assert _end(_start(folder, "add_row")) == ""

    assert len(list((folder / ".lake/warehouse/shop").glob("a-*/*.parquet"))) == 2
    assert not (folder / ".lake/warehouse/.catalog/postmaster.pid").exists(), "the last program stops the server"


def test_a_command_leaves_the_server_up_for_the_next_one_and_a_while_after_the_last(folder: Path) -> None:
    assert _end(_start(folder, "look_in", "8")) == ""
    server = postmaster_pid(folder / _CATALOG)

    assert _end(_start(folder, "look_in", "8")) == ""

    last = time.monotonic()
    assert postmaster_pid(folder / _CATALOG) == server
    assert ended(server, within_seconds=60)
    assert time.monotonic() - last > 7.5, "not when the first command's time is over"
    assert not (folder / _CATALOG / "postmaster.pid").exists(), "it was stopped in order"


def test_the_command_lake_leaves_its_server_up_for_so_many_seconds(folder: Path) -> None:
    assert _end(_start(folder, "add_row")) == ""
    assert _end(_lake(folder, "namespaces", stays="8")) == ""
    server = postmaster_pid(folder / _CATALOG)
    assert _end(_lake(folder, "tables", stays="0")) == "", "the keeper still uses the server"
    assert postmaster_pid(folder / _CATALOG) == server
    assert ended(server, within_seconds=60)

    assert _end(_lake(folder, "namespaces", stays="0")) == ""
    assert not (folder / _CATALOG / "postmaster.pid").exists()
    wrong = _lake(folder, "namespaces", stays="soon")
    assert "LAKE_SERVER_STAYS is 'soon'" in _end(wrong)
    assert wrong.returncode == 2


def test_a_keeper_finds_a_lake_that_was_moved(folder: Path) -> None:
    assert _end(_start(folder, "look_in", "1")) == ""
    server = postmaster_pid(folder / _CATALOG)
    (folder / ".lake").rename(folder / "moved")
    assert ended(server, within_seconds=60)
    assert not (folder / "moved/warehouse/.catalog/postmaster.pid").exists()


def test_a_keeper_leaves_the_server_to_who_uses_it(folder: Path) -> None:
    assert _end(_start(folder, "look_in", "8")) == ""
    server, first = postmaster_pid(folder / _CATALOG), time.monotonic()
    user = _start(folder, "stop_after")
    assert user.stdout is not None
    assert user.stdout.readline() == "connected\n"
    assert not ended(server, within_seconds=first + 10 - time.monotonic())
    user.communicate("\n", timeout=_TIMEOUT_SECONDS)
    assert user.returncode == 0
    assert ended(server, within_seconds=60)


def _start(folder: Path, command: str, *arguments: str) -> subprocess.Popen[str]:
    return _run(folder, "tests.integration.faults.embedded_job", command, *arguments)


def _lake(folder: Path, command: str, *, stays: str) -> subprocess.Popen[str]:
    return _run(folder, "lakelib.cli", command, LAKE_SERVER_STAYS=stays)


def _run(folder: Path, program: str, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAKE_")}
    return subprocess.Popen(
        [sys.executable, "-m", program, *arguments],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(_ROOT)} | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _end(program: subprocess.Popen[str]) -> str:
    """The last words of a program that failed; '' of one that did not."""
    try:
        _, said = program.communicate(timeout=_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        program.kill()
        program.communicate()
        return "it took too long"
    return said[-2000:] if program.returncode else ""
