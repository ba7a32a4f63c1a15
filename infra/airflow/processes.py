"""Processes that outlive the command that starts them: begun in a session of their own, recognised by pid and start
time, ended with their descendants. Needs /proc (Linux)."""

import atexit
import os
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from lakelib.dataclass import dataclass

_POLL_SECONDS = 0.05
_KEPT: list[subprocess.Popen[bytes]] = []
"""What was started here: an object that is dropped while its process runs, for all it knows, would warn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A process, told apart from a later one that got the same pid, also across a reboot."""

    name: str
    pid: int
    start: str


@atexit.register
def _note_ends() -> None:
    for process in _KEPT:
        process.poll()


def start_detached(
    name: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    log: Path,
    *,
    kept: Sequence[int] = (),
) -> Started:
    """Starts a command that no signal to this terminal or process group reaches; its output is appended to the log.

    It inherits the descriptors that are to be kept.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=kept,
        )
    _KEPT.append(process)
    return Started(name=name, pid=process.pid, start=start_of(process.pid) or "")


def start_of(pid: int) -> str | None:
    """When a live process started, as text that no other process of any boot has; None if there is no live one.

    A process that has ended and that nobody waited for is not alive; one of this process's children is waited for.
    """
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, start_ticks = fields[0], fields[19]
    return None if state in "ZX" else f"{_boot_id()}/{start_ticks}"


def is_running(started: Started) -> bool:
    return bool(started.start) and start_of(started.pid) == started.start


def end(processes: Iterable[Started], *, seconds: float) -> None:
    """Asks each of them and all in its session to end, then kills what is left of them and of their descendants.

    Descendants that made sessions of their own, as detached jobs do, are asked too, and so are those that a process
    left behind when it was killed.
    """
    ended = list(processes)
    members = _families(ended)
    for member in members:
        with suppress(psutil.NoSuchProcess):
            member.terminate()
    if not _all_ended(members, seconds):
        _kill(members, seconds)
    _kill(_families(ended), seconds)  # what they started meanwhile


def _kill(members: Sequence[psutil.Process], seconds: float) -> None:
    for member in members:
        with suppress(psutil.NoSuchProcess):
            member.kill()
    _all_ended(members, seconds)


def _families(processes: Iterable[Started]) -> list[psutil.Process]:
    return [member for started in processes for member in _family(started)]


def _family(started: Started) -> list[psutil.Process]:
    session = [process for process in psutil.process_iter() if _is_in_session(process.pid, started)]
    children = [child for member in session for child in _children(member)]
    return list(dict.fromkeys([*session, *children]))


def _is_in_session(pid: int, started: Started) -> bool:
    """A pid is not given away while it names a session: without a leader, the session is that of the process."""
    if not _is_of_this_boot(started) or start_of(started.pid) not in (None, started.start):
        return False
    with suppress(ProcessLookupError):
        return os.getsid(pid) == started.pid
    return False


def _is_of_this_boot(started: Started) -> bool:
    return started.start.partition("/")[0] == _boot_id()


def _children(member: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        found: list[psutil.Process] = member.children(recursive=True)
        return found
    return []


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _all_ended(members: Sequence[psutil.Process], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(_is_alive(member) for member in members):
            return True
        time.sleep(_POLL_SECONDS)
    return False


def _is_alive(member: psutil.Process) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(member.pid, os.WNOHANG)
    try:
        return bool(member.is_running() and member.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
