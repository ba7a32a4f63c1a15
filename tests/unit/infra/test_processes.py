"""Detached processes: ended with all that they started, and never mistaken for another one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from infra.airflow.processes import Started, end, is_running, start_detached, start_of

SLEEP = "import time; time.sleep(60)"
CHILD_IN_A_SESSION_OF_ITS_OWN = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {SLEEP!r}], start_new_session=True)
print(child.pid, flush=True)
time.sleep(60)
"""
CHILD_IN_THE_SAME_SESSION = CHILD_IN_A_SESSION_OF_ITS_OWN.replace(", start_new_session=True", "")
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"

STARTS_ONE_WHEN_TOLD_TO_END = f"""
import signal, subprocess, sys, time
def leave(*_):
    child = subprocess.Popen([sys.executable, "-c", {SLEEP!r}])
    print(child.pid, flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the processes of a test work and log; none outlives the test."""
    others = set(psutil.Process().children(recursive=True))
    yield tmp_path
    for process in set(psutil.Process().children(recursive=True)) - others:
        with suppress(psutil.NoSuchProcess):
            process.kill()
            process.wait()


def test_a_process_runs_until_it_is_ended(folder: Path) -> None:
    started = begin(folder, SLEEP)
    assert is_running(started)
    end([started], seconds=5)
    assert not is_running(started)


def test_it_has_a_session_of_its_own(folder: Path) -> None:
    started = begin(folder, SLEEP)
    assert os.getsid(started.pid) == started.pid != os.getsid(0)


def test_a_descendant_in_another_session_ends_too(folder: Path) -> None:
    started = begin(folder, CHILD_IN_A_SESSION_OF_ITS_OWN)
    child = int(said(folder))
    end([started], seconds=5)
    assert start_of(child) is None


def test_what_a_killed_process_left_behind_is_ended(folder: Path) -> None:
    started = begin(folder, CHILD_IN_THE_SAME_SESSION)
    child = int(said(folder))
    os.kill(started.pid, signal.SIGKILL)
    end([started], seconds=5)
    assert start_of(child) is None


def test_what_a_process_starts_while_it_ends_is_ended(folder: Path) -> None:
    started = begin(folder, STARTS_ONE_WHEN_TOLD_TO_END)
    assert said(folder) == "ready"
    end([started], seconds=5)
    child = (folder / "log").read_text().split()[1]
    assert start_of(int(child)) is None


def test_who_does_not_listen_is_killed(folder: Path) -> None:
    started = begin(folder, DEAF)
    assert said(folder) == "deaf"
    end([started], seconds=0.5)
    assert not is_running(started)


def test_a_process_that_got_the_pid_later_is_left_alone(folder: Path) -> None:
    started = begin(folder, SLEEP)
    earlier = replace(started, start=started.start.replace("/", "/1"))
    end([earlier], seconds=0.2)
    assert not is_running(earlier)
    assert is_running(started)


def test_a_process_that_nobody_waited_for_is_not_running(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        deadline = time.monotonic() + 10
        while start_of(process.pid) is not None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert start_of(process.pid) is None


def begin(folder: Path, program: str, arguments: Sequence[str] = ()) -> Started:
    return start_detached("it", [sys.executable, "-c", program, *arguments], os.environ, folder, folder / "log")


def said(folder: Path) -> str:
    """The first line of the process."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        first, newline, _ = (folder / "log").read_text().partition("\n")
        if newline:
            return first
        time.sleep(0.01)
    raise AssertionError("the process says nothing")
