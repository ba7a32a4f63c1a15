"""A process that has loaded what programs of tests take longest for: each of these is its fork, and begins at once.

Who asks for a program stands in for it (tests/preloading/borrowed.py): it sends its streams, arguments, folder and
environment, and hears which process it is, and how that has ended. Where it ends first, its program does, too.
"""

import ctypes
import gc
import importlib
import json
import os
import random
import runpy
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any

_LOADED = (
    "lakelib.cli.main",
    "lakelib.gates.run",
    "lakelib.pipeline.ingesting",
    "lakelib.pipeline.writing",
    "lakelib.spark",
    "lakelib.work.spark.tasks",
    "pandas",
    "pyarrow.dataset",
    "pyarrow.pandas_compat",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.worker",
    "tests.understood",
)
_READ_AT_START = ("LANG", "LC_ALL", "LC_CTYPE", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONWARNINGS")
_PR_SET_PDEATHSIG = 1
_LIBRARY = ctypes.CDLL(None)


class Server:
    def __init__(self, address: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen(64)
        self._watched = selectors.DefaultSelector()
        self._watched.register(self._listener, selectors.EVENT_READ)
        self._askers: dict[int, socket.socket] = {}

    def serve(self) -> dict[str, Any]:
        """Returns in forks only: what the program is told."""
        while True:
            for key, _ in self._watched.select():
                if key.fileobj is self._listener:
                    asker, _ = self._listener.accept()
                    if (request := self._begin(asker)) is not None:
                        return request
                elif isinstance(key.fileobj, socket.socket):
                    self._abandon(key.fileobj, key.data)
                else:
                    self._end(key.fd, key.data)

    def _begin(self, asker: socket.socket) -> dict[str, Any] | None:
        size, streams, _, _ = socket.recv_fds(asker, 4, 3)
        with asker.makefile("rb") as told:
            request: dict[str, Any] = json.loads(told.read(int.from_bytes(size)) or "{}")
        if not request or any(request["environment"].get(name) != os.environ.get(name) for name in _READ_AT_START):
            with asker, suppress(OSError):
                asker.sendall(b"0\n")
        elif pid := os.fork():
            with suppress(OSError):  # it has gone, which the selector tells
                asker.sendall(f"{pid}\n".encode())
            self._askers[pid] = asker
            self._watched.register(asker, selectors.EVENT_READ, pid)
            self._watched.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)
        else:
            _LIBRARY.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            for place, stream in enumerate(streams):
                os.dup2(stream, place)
            for file in (*map(socket.socket.fileno, (asker, self._listener, *self._askers.values())), *streams):
                os.close(file)
            self._watched.close()
            return request
        for stream in streams:
            os.close(stream)
        return None

    def _abandon(self, asker: socket.socket, pid: int) -> None:
        self._watched.unregister(asker)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _end(self, file: int, pid: int) -> None:
        self._watched.unregister(file)
        os.close(file)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        asker = self._askers.pop(pid)
        with suppress(KeyError):
            self._watched.unregister(asker)
        with asker, suppress(OSError):
            asker.sendall(f"{code}\n".encode())


def become(request: dict[str, Any], paths: list[str]) -> None:
    """The process that was asked for, until it begins."""
    module, *arguments = request["arguments"]
    os.chdir(request["folder"])
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    random.seed()
    own = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [request["folder"], *filter(None, own), *paths]
    sys.argv = [module, *arguments]
    sys.orig_argv = [sys.executable, "-m", module, *arguments]
    importlib.invalidate_caches()
    if os.environ.get("PYTHONUNBUFFERED"):
        sys.stdout.reconfigure(write_through=True)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main(address: str) -> None:
    for module in _LOADED:
        importlib.import_module(module)
    given = (os.getcwd(), *os.environ.get("PYTHONPATH", "").split(os.pathsep))
    paths = [path for path in sys.path if path not in given]
    gc.collect()
    gc.freeze()
    become(Server(address).serve(), paths)


if __name__ == "__main__":
    main(sys.argv[1])
