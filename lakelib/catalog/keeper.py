"""Keeps an embedded server up for a while after its last user: a command that comes soon finds it.

A shell that sleeps shares the users' lock, and costs nothing. When the time is over it becomes this program, which
stops the server, or sleeps on if somebody has used it meanwhile.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from lakelib.catalog import embedded

_SLEEP = 'sleep "$0"; exec "$@"'
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from lakelib.catalog.keeper import end; end(*sys.argv[2:])"
_LIBRARY = str(Path(__file__).parents[2])


def leave_keeper(folder: Path, lock: int, seconds: float) -> None:
    """Starts the shell, which inherits the descriptor `lock`. It outlives this process and its terminal."""
    subprocess.Popen(
        _command(lock, seconds, seconds),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,  # it may be moved meanwhile
        start_new_session=True,
        pass_fds=(lock,),
    ).returncode = 0  # nobody waits for it


def end(lock: str, seconds: str) -> None:
    """Of the shell that has slept."""
    folder = Path.cwd()
    left = float(seconds) - (time.time() - os.fstat(int(lock)).st_mtime)
    if left > 0:
        os.execv("/bin/sh", _command(int(lock), float(seconds), min(left, float(seconds))))
    os.close(int(lock))
    embedded.release(folder)


def _command(lock: int, seconds: float, left: float) -> list[str]:
    program = [sys.executable, "-P", "-c", _PROGRAM, _LIBRARY, str(lock), str(seconds)]
    return ["/bin/sh", "-c", _SLEEP, f"{left:.1f}", *program]
