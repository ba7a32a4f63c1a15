"""Jobs as forks of a process that has loaded what they load: each takes a second less.

That process begins with nothing that is Airflow's: its environment is that of jobs, and it is started as a program of
its own (`WarmExecutor` does, and starts another one where it has ended). It listens to this user alone. A fork of it is
what the script of `detached` is: it has a session of its own, writes down who it is, runs the job as its child, and
writes down how that has ended.

Nothing depends on it. Where it is gone or does not answer, where the job is no command of `lake`, or has another
environment than libraries went by when they were loaded, the job is a process that begins with nothing. Whoever starts
an attempt claims it, so that one who is late does not start it again.
"""

import ctypes
import gc
import importlib
import json
import math
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn
from uuid import uuid4

from lakelib.dataclass import dataclass

ADDRESS = "AIRFLOW__LAKE__FORKS"
"""Names the process to tasks. Jobs do not get variables of that kind."""
_PROGRAM = (sys.executable, "-m", "lakelib.cli")
_LOADED_BY_JOBS = (
    "lakelib.cli.main",
    "lakelib.cli.decide",
    "lakelib.cli.ingest",
    "lakelib.pipeline.backfilling",
    "lakelib.pipeline.deciding",
    "lakelib.pipeline.ingesting",
    "lakelib.work.spark.tasks",
    "pyspark.sql.connect.session",
)
_OF_A_TASK = re.compile(r"_?AIRFLOW_|SPARK_REMOTE$|SPARK_CONNECT_AUTHENTICATE_TOKEN$")
"""Variables that differ from job to job, and by which nothing goes that is loaded."""
_CLAIM_FILE = "claim"
_ANSWER_SECONDS = 2.0
_REQUEST_SECONDS = 1.0
_MOST_BYTES = 4 << 20
_AGAIN_SECONDS = 10.0
_LOOK_SECONDS = 15.0
_FROZEN_SECONDS = 30.0
_BEGUN = b"begun"
_PR_SET_PDEATHSIG = 1
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    attempt: str
    arguments: list[str]
    environment: dict[str, str]
    folder: str


# Tasks


def start_as_fork(attempt: Path, command: Sequence[str], environment: Mapping[str, str], cwd: Path) -> bool:
    """Whether the attempt's job has been started, or will be by who has claimed it. If not, it is the caller's."""
    address = os.environ.get(ADDRESS)
    if not address or tuple(command[: len(_PROGRAM)]) != _PROGRAM:
        return False
    request = {
        "attempt": str(attempt),
        "arguments": list(command[len(_PROGRAM) :]),
        "environment": dict(environment),
        "folder": str(cwd),
    }
    return _ask(address, json.dumps(request).encode()) or not _claim(attempt)


def _ask(address: str, request: bytes) -> bool:
    with suppress(OSError), socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(_ANSWER_SECONDS)
        asked.connect(f"\0{address}")
        if _user_of(asked) != os.getuid():
            return False
        asked.sendall(request)
        asked.shutdown(socket.SHUT_WR)
        return asked.recv(len(_BEGUN)) == _BEGUN
    return False


def _user_of(connection: socket.socket) -> int:
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    user: int = _CREDENTIALS.unpack(found)[1]
    return user


def _claim(attempt: Path) -> bool:
    try:
        (attempt / _CLAIM_FILE).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


# The executor


class Forks:
    """The process, as the one that has started it keeps it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.address = f"lake-jobs-{uuid4()}"
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._begun = self._looked = -math.inf
        self._asked: socket.socket | None = None

    def ensure(self) -> None:
        """Starts it where it does not run; what keeps ending is started every ten seconds. One that runs and answers
        nobody is ended."""
        if self._process is not None and self._process.poll() is None:
            self._look(self._process)
        elif time.monotonic() - self._begun >= _AGAIN_SECONDS:
            self._begun = time.monotonic()
            self._process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", __name__.removeprefix("dags."), self.address, str(os.getpid())],
            env=self._environment,
            cwd=Path(__file__).resolve().parents[1],
            stdin=subprocess.DEVNULL,
        )

    def _look(self, process: "subprocess.Popen[bytes]") -> None:
        """Asks for nothing now and then, and hears at the next looks that the question was put aside."""
        since = time.monotonic() - self._looked
        if self._asked is None:
            if since >= _LOOK_SECONDS:
                self._looked, self._asked = time.monotonic(), _connected(self.address)
            return
        try:
            self._asked.recv(1)
        except BlockingIOError:
            if since < _FROZEN_SECONDS:
                return
            process.kill()
        except OSError:
            pass  # it has ended
        self._asked.close()
        self._asked = None

    def end(self) -> None:
        """Jobs that are at work go on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _connected(address: str) -> socket.socket | None:
    """Nothing while it loads."""
    asked = socket.socket(socket.AF_UNIX)
    asked.setblocking(False)
    try:
        asked.connect(f"\0{address}")
        asked.shutdown(socket.SHUT_WR)
    except OSError:
        asked.close()
        return None
    return asked


# The process itself


def main() -> NoReturn:
    address, parent = sys.argv[1], int(sys.argv[2])
    _end_with(parent)
    from lakelib.cli.__main__ import prepare

    ended = prepare()
    for name in _LOADED_BY_JOBS:
        importlib.import_module(name)
    gc.freeze()
    request = _serve(address)
    _become(request)

    from lakelib.cli.main import main as lake

    ended.append(lake())
    sys.exit(ended[0])


def _serve(address: str) -> _Request:
    """Returns in forks only: what they are to do."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks that have ended are not waited for
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{address}")
        listener.listen(64)
        while True:
            connection, _ = listener.accept()
            with connection:
                request = _read(connection)
                if request is None or os.fork():
                    continue
                listener.close()
                _watch_job(request, connection)
                return request


def _read(connection: socket.socket) -> _Request | None:
    until = time.monotonic() + _REQUEST_SECONDS
    if _user_of(connection) != os.getuid():
        return None
    read = b""
    with suppress(OSError, ValueError, TypeError):
        while len(read) < _MOST_BYTES:
            connection.settimeout(max(until - time.monotonic(), 0.001))
            if not (chunk := connection.recv(1 << 16)):
                break
            read += chunk
        request = _Request(**json.loads(read))
        differing = _differing(request.environment)
        if not differing:
            return request
        print(f"No fork for {request.attempt}: its environment differs in {', '.join(differing)}", flush=True)
    return None


def _differing(environment: Mapping[str, str]) -> list[str]:
    names = sorted({*environment, *os.environ})
    return [name for name in names if not _OF_A_TASK.match(name) and environment.get(name) != os.environ.get(name)]


def _watch_job(request: _Request, connection: socket.socket) -> None:
    """Returns in the job. The process that watches it ends here."""
    try:
        attempt = Path(request.attempt)
        os.setsid()
        if not _claim(attempt):
            os._exit(0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)  # they are the job's to heed
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _write_whole(attempt / "process", _own_process())
        job = os.fork()
        if not job:
            return
        with suppress(OSError):  # the task may be gone
            connection.sendall(_BEGUN)
        connection.close()
        code = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
        _write_whole(attempt / "exit_code", f"{code if code >= 0 else 128 - code}\n")
        os._exit(0)
    except BaseException as error:
        print(f"The job of {request.attempt} is not watched any more: {error!r}", flush=True)
        os._exit(125)


def _become(request: _Request) -> None:
    """This process is the job, as if it had been started as one."""
    with suppress(ImportError):  # before variables are set: it writes where they were
        from setproctitle import setproctitle

        setproctitle(" ".join([*_PROGRAM, *request.arguments]))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    log = os.open(Path(request.attempt, "log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    sys.path[0] = request.folder
    sys.argv = ["lake", *request.arguments]


def _own_process() -> str:
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    return f"{os.getpid()} {ticks} {Path('/proc/sys/kernel/random/boot_id').read_text()}"


def _write_whole(path: Path, text: str) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(text)
    draft.replace(path)


def _end_with(parent: int) -> None:
    """This process is told to end when its parent ends, however it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(0)


if __name__ == "__main__":
    main()
