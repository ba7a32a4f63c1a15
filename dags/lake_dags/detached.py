"""Processes that outlive the task that started them, and the folders that remember them. Standard library, Linux.

A job runs under a small shell script in a session of its own. The script itself writes down who it is before it starts
the job, and the exit code after it: however the starting task dies, its retry finds the job, or finds that there is
none.

    <folder>/attempt-1/   process     pid, start time in ticks, boot id
                          log         what the job said
                          exit_code   once it has ended; a script that was killed leaves none
                          claim       whose it is to start it, where a fork might have been had

Where there is a process that has loaded what jobs load, a fork of that takes the script's place (`forks`).
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from lakelib.dataclass import dataclass

from .forks import start_as_fork

POLL_SECONDS = 0.25
KILL_AFTER_SECONDS = 3.0
"""Airflow kills a task process five seconds after it has told it to end: its job has to be gone by then."""
_START_SECONDS = 10.0

# A trap, unlike an ignored signal, is not inherited: the job ends on SIGTERM, and the script records how.
_SCRIPT = """\
trap : TERM INT HUP
folder=$1
shift
ticks=$(set -- $(cat /proc/$$/stat) && echo "${22}")
echo "$$ $ticks $(cat /proc/sys/kernel/random/boot_id)" > "$folder/process.new" || exit 125
mv "$folder/process.new" "$folder/process" || exit 125
"$@"
echo $? > "$folder/exit_code.new"
mv "$folder/exit_code.new" "$folder/exit_code"
"""


class JobState(StrEnum):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"
    """It was killed together with the script that watched it, or it runs on another machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    pid: int
    start_ticks: int
    boot_id: str


def start_job(
    folder: Path, make_command: Callable[[Path], Sequence[str]], environment: Mapping[str, str], cwd: Path
) -> Path:
    """Starts a job and returns the folder of its attempt, once the job is written down in it.

    `make_command` is told that folder. Of two callers at once each gets an attempt of its own: look for a live one
    (`find_live`) before. Raises OSError if nothing can be started.
    """
    attempt = _new_attempt(folder)
    command = make_command(attempt)
    (attempt / "log").touch()
    process = None if start_as_fork(attempt, command, environment, cwd) else _start(attempt, command, environment, cwd)
    deadline = time.monotonic() + _START_SECONDS
    while not (attempt / "process").exists():
        if (process is not None and process.poll() is not None) or time.monotonic() > deadline:
            raise OSError(f"The job in {attempt} could not be started; its log is there.")
        time.sleep(0.005)
    return attempt


def _start(
    attempt: Path, command: Sequence[str], environment: Mapping[str, str], cwd: Path
) -> "subprocess.Popen[bytes]":
    with (attempt / "log").open("ab") as log:
        return subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "job", str(attempt), *command],
            env=dict(environment),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def attempts_of(folder: Path) -> list[Path]:
    """Oldest first."""
    found = (path for path in folder.glob("attempt-*") if path.name.removeprefix("attempt-").isdecimal())
    return sorted(found, key=lambda path: int(path.name.removeprefix("attempt-")))


def find_live(folder: Path) -> Path | None:
    """The newest attempt whose job runs."""
    return next((path for path in reversed(attempts_of(folder)) if state_of(path) is JobState.RUNNING), None)


def state_of(attempt: Path) -> JobState:
    code = exit_code_of(attempt)
    if code is not None:
        return JobState.SUCCEEDED if code == 0 else JobState.FAILED
    process = _recorded(attempt)
    if process is not None and _is_alive(process):
        return JobState.RUNNING
    code = exit_code_of(attempt)  # it may have ended between the two looks
    if code is None:
        return JobState.LOST
    return JobState.SUCCEEDED if code == 0 else JobState.FAILED


def exit_code_of(attempt: Path) -> int | None:
    """None while the job runs, and for ever if it was lost."""
    try:
        return int((attempt / "exit_code").read_text())
    except (FileNotFoundError, ValueError):
        return None


def follow_log(attempt: Path) -> Iterator[str]:
    """The lines of the job's log from its beginning, as they come, until the job has ended."""
    rest = b""
    with (attempt / "log").open("rb") as log:
        while True:
            runs = state_of(attempt) is JobState.RUNNING
            while chunk := log.read(1 << 16):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (_readable(line) for line in lines)
            if not runs:
                break
            _wait_for_end(attempt, POLL_SECONDS)
    if rest:
        yield _readable(rest)


def _wait_for_end(attempt: Path, seconds: float) -> None:
    """Until the script has ended, but no longer than that."""
    process = _recorded(attempt)
    try:
        descriptor = os.pidfd_open(process.pid) if process is not None else None
    except OSError:  # it has ended, or there are no such descriptors here
        descriptor = None
    if process is None or descriptor is None:
        time.sleep(seconds)
        return
    try:
        if _is_alive(process):
            select.select([descriptor], [], [], seconds)
    finally:
        os.close(descriptor)


def end_job(attempt: Path, kill_after_seconds: float = KILL_AFTER_SECONDS) -> None:
    """Ends the job with all processes of its session: by SIGTERM, and those that are left by SIGKILL."""
    process = _recorded(attempt)
    if process is None:
        return
    deadline = time.monotonic() + kill_after_seconds
    _signal(process, signal.SIGTERM)
    while members := _members(process):
        if time.monotonic() > deadline:
            _signal(process, signal.SIGKILL)
        _reap(members)
        time.sleep(0.02)


def _new_attempt(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    number = max((int(path.name.removeprefix("attempt-")) for path in attempts_of(folder)), default=0)
    while True:
        number += 1
        attempt = folder / f"attempt-{number}"
        with suppress(FileExistsError):
            attempt.mkdir(mode=0o700)
            return attempt


def _readable(line: bytes) -> str:
    """What a terminal would show at last: progress is drawn over itself."""
    text = line.decode(errors="replace").rstrip("\r")
    return text.rpartition("\r")[2]


def _recorded(attempt: Path) -> _Process | None:
    try:
        pid, start_ticks, boot_id = (attempt / "process").read_text().split()
    except (FileNotFoundError, ValueError):
        return None
    return _Process(pid=int(pid), start_ticks=int(start_ticks), boot_id=boot_id)


def _is_alive(process: _Process) -> bool:
    _reap([process.pid])
    found = _stat(process.pid)
    return _is_this_machine(process) and found is not None and found.start_ticks == process.start_ticks


def _is_this_machine(process: _Process) -> bool:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip() == process.boot_id


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stat:
    session: int
    start_ticks: int


def _stat(pid: int) -> _Stat | None:
    """None for a process that is not there, or has ended and was not waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else _Stat(session=int(fields[3]), start_ticks=int(fields[19]))


def _members(process: _Process) -> list[int]:
    """The live processes of the job's session, whose id is the script's pid. A pid is not given away while it names a
    session; if somebody else has it, the session is gone."""
    leader = _stat(process.pid)
    if not _is_this_machine(process) or (leader is not None and leader.start_ticks != process.start_ticks):
        return []
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())
    return [pid for pid in pids if (found := _stat(pid)) is not None and found.session == process.pid]


def _signal(process: _Process, number: signal.Signals) -> None:
    for pid in _members(process):
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _reap(pids: Sequence[int]) -> None:
    """Waits for those that are this process's children, so that they do not linger as zombies."""
    for pid in pids:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
