"""Jobs as forks of a process that has loaded what they load: each is a job as one that begins with nothing, and nothing
depends on the process."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dags.lake_dags import detached, forks
from dags.lake_dags.detached import JobState, end_job, exit_code_of, find_live, follow_log, start_job, state_of
from dags.lake_dags.forks import ADDRESS, Forks

from .conftest import PROJECT

_PARENT = """
import sys, time
from dags.lake_dags.forks import Forks
kept = Forks(eval(sys.argv[1]))
kept.ensure()
print(kept.address, kept._process.pid, flush=True)
time.sleep(100)
"""


@pytest.fixture(scope="module")
def silent() -> Iterator[int]:
    """A port at which whoever connects is answered by nobody: a job that asks there is at work until it is ended."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield listener.getsockname()[1]


@pytest.fixture(scope="module")
def environment(silent: int, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of jobs."""
    lake = {
        "LAKE_CATALOG": f"postgresql://nobody@127.0.0.1:{silent}/nothing",
        "LAKE_WAREHOUSE": tmp_path_factory.mktemp("warehouse").as_uri(),
    }
    own = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "LAKE_", "PYTEST"))}
    return own | lake | {"PYTHONUNBUFFERED": "1"}


@pytest.fixture(scope="module")
def kept(environment: dict[str, str]) -> Iterator[Forks]:
    kept = Forks(environment)
    try:
        yield kept
    finally:
        kept.end()


@pytest.fixture
def started(kept: Forks, monkeypatch: pytest.MonkeyPatch) -> Forks:
    """The process, and it answers."""
    monkeypatch.setenv(ADDRESS, kept.address)
    monkeypatch.setattr(forks, "_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(forks, "_FROZEN_SECONDS", 600.0)
    monkeypatch.setattr(forks, "_ANSWER_SECONDS", 60.0)
    kept.ensure()
    _wait(lambda: _answers(kept.address))
    return kept


@pytest.fixture
def start(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Path]]:
    """Starts `lake …` with the variables besides, and ends it at the end of the test."""
    begun: list[Path] = []
    scripts: list[subprocess.Popen[bytes]] = []
    by_script = detached._start
    monkeypatch.setattr(detached, "_start", lambda *told: scripts.append(by_script(*told)) or scripts[-1])

    def start(*words: str, **variables: str) -> Path:
        command = [sys.executable, "-m", "lakelib.cli", *words]
        begun.append(start_job(tmp_path, lambda attempt: command, environment | variables, PROJECT))
        return begun[-1]

    yield start
    for attempt in begun:
        end_job(attempt)
    for script in scripts:
        script.wait()


def _answers(address: str) -> bool:
    with socket.socket(socket.AF_UNIX) as asked:
        return asked.connect_ex(f"\0{address}") == 0


def _wait(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _watcher(attempt: Path) -> int:
    return int((attempt / "process").read_text().split()[0])


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _job(attempt: Path) -> int:
    """The process that the watcher waits for."""
    found: list[int] = []

    def find() -> bool:
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
        found[:] = [pid for pid in pids if _is_alive(pid) and _parent(pid) == _watcher(attempt)]
        return bool(found)

    _wait(find)
    return found[0]


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _pid(kept: Forks) -> int:
    assert kept._process is not None
    return kept._process.pid


def _said(attempt: Path) -> str:
    return "\n".join(follow_log(attempt))


@pytest.mark.parametrize(("words", "code"), [(["--version"], 0), (["ingest", "--spec=none"], 2)])
def test_a_fork_says_and_ends_as_a_process_that_begins_with_nothing(
    started: Forks, start: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, words: list[str], code: int
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(detached, "_start", None)
        as_fork = start(*words)
    said = _said(as_fork)
    monkeypatch.delenv(ADDRESS)
    by_itself = start(*words)
    assert (said, exit_code_of(as_fork)) == (_said(by_itself), exit_code_of(by_itself))
    assert exit_code_of(as_fork) == code


def test_a_fork_has_its_own_session_folder_and_variables_and_nothing_of_airflows(
    started: Forks, start: Callable[..., Path], environment: dict[str, str]
) -> None:
    attempt = start("tables", SPARK_REMOTE="sc://elsewhere")
    job = _job(attempt)
    assert _parent(_watcher(attempt)) == _pid(started)
    assert os.getsid(job) == os.getsid(_watcher(attempt)) == _watcher(attempt) != os.getsid(_pid(started))
    _wait(lambda: os.readlink(f"/proc/{job}/cwd") == str(PROJECT))  # a fork is begun before it is the job
    streams = [os.readlink(f"/proc/{job}/fd/{number}") for number in range(3)]
    assert streams == ["/dev/null", str(attempt / "log"), str(attempt / "log")]
    assert Path(f"/proc/{job}/cmdline").read_text().rstrip("\0").endswith("-m lakelib.cli tables")
    variables = Path(f"/proc/{_pid(started)}/environ").read_text().split("\0")
    assert not [name for name in variables if name.startswith("AIRFLOW")]
    assert find_live(attempt.parent) == attempt


def test_a_job_that_is_ended_says_how(started: Forks, start: Callable[..., Path]) -> None:
    attempt = start("tables")
    job = _job(attempt)
    os.kill(job, signal.SIGKILL)
    _said(attempt)
    assert exit_code_of(attempt) == 128 + signal.SIGKILL


def test_who_ends_a_job_ends_what_watches_it(started: Forks, start: Callable[..., Path]) -> None:
    attempt = start("tables")
    job, watcher = _job(attempt), _watcher(attempt)
    end_job(attempt)
    assert not _is_alive(job)
    assert not _is_alive(watcher)
    assert _is_alive(_pid(started))


def test_a_job_that_was_killed_with_its_watcher_is_lost(started: Forks, start: Callable[..., Path]) -> None:
    attempt = start("tables")
    _job(attempt)
    os.killpg(_watcher(attempt), signal.SIGKILL)
    _wait(lambda: state_of(attempt) is JobState.LOST)


def test_jobs_go_on_without_the_process_and_another_one_is_started(started: Forks, start: Callable[..., Path]) -> None:
    attempt = start("tables")
    job = _job(attempt)
    before = _pid(started)
    os.kill(before, signal.SIGKILL)
    _wait(lambda: not _answers(started.address))
    assert _is_alive(job)
    without = start("tables")
    assert _parent(_watcher(without)) == os.getpid()
    started.ensure()
    _wait(lambda: _answers(started.address))
    assert _pid(started) != before
    assert _parent(_watcher(start("tables"))) == _pid(started)
    _said(attempt)
    assert exit_code_of(attempt)


def test_one_that_is_frozen_starts_no_job_again_when_it_thaws(
    started: Forks, start: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "_ANSWER_SECONDS", 0.2)
    os.kill(_pid(started), signal.SIGSTOP)
    attempt = start("tables")
    os.kill(_pid(started), signal.SIGCONT)
    watcher = _watcher(attempt)
    monkeypatch.setattr(forks, "_ANSWER_SECONDS", 60.0)
    assert _parent(_watcher(start("tables"))) == _pid(started)  # asked after the one before
    assert (_watcher(attempt), _parent(watcher)) == (watcher, os.getpid())
    assert state_of(attempt) is JobState.RUNNING


def test_one_that_answers_nobody_is_replaced(
    started: Forks, start: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "_LOOK_SECONDS", 0.0)
    before = _pid(started)
    for _ in range(20):  # one that answers is not ended
        started.ensure()
        time.sleep(0.01)
    assert _pid(started) == before
    monkeypatch.setattr(forks, "_FROZEN_SECONDS", 0.2)
    os.kill(before, signal.SIGSTOP)
    _wait(lambda: started.ensure() or _pid(started) != before)
    _wait(lambda: _answers(started.address))
    assert _parent(_watcher(start("tables"))) == _pid(started)


def test_the_job_of_a_task_that_is_gone_is_watched_all_the_same(
    started: Forks, environment: dict[str, str], tmp_path: Path
) -> None:
    request = {"attempt": str(tmp_path), "arguments": ["--version"], "environment": environment, "folder": str(PROJECT)}
    with socket.socket(socket.AF_UNIX) as task:
        task.connect(f"\0{started.address}")
        task.sendall(json.dumps(request).encode())
    _wait(lambda: exit_code_of(tmp_path) == 0)


def test_who_says_nothing_keeps_no_other_waiting_for_long(started: Forks, start: Callable[..., Path]) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(f"\0{started.address}")
        assert _parent(_watcher(start("tables"))) == _pid(started)


@pytest.mark.parametrize("said", [b"", b"{}", b"[1]", b"\xff", b'{"attempt": 1}', b'"' + b"x" * (5 << 20)])
def test_words_that_are_no_request_change_nothing(started: Forks, start: Callable[..., Path], said: bytes) -> None:
    assert not forks._ask(started.address, said)
    assert _parent(_watcher(start("tables"))) == _pid(started)


def test_a_job_with_another_environment_begins_with_nothing(started: Forks, start: Callable[..., Path]) -> None:
    attempt = start("tables", TZ="Asia/Tokyo")
    assert _parent(_watcher(attempt)) == os.getpid()


def test_it_ends_with_who_has_started_it(environment: dict[str, str]) -> None:
    command = [sys.executable, "-c", _PARENT, repr(environment)]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        address, pid = parent.stdout.readline().split()
        _wait(lambda: _answers(address))
        parent.kill()
    _wait(lambda: not _is_alive(int(pid)))
