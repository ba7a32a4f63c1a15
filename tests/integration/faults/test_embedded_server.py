"""The embedded PostgreSQL: shared by processes, started by the first, back after it was killed, gone with the last."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.faults.server import work_folder

_ROOT = Path(__file__).parents[3]
_TIMEOUT_SECONDS = 60


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


def _start(folder: Path, command: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAKE_")}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.integration.faults.embedded_job", command],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(_ROOT)},
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
