"""A Spark standalone cluster on this machine, from the pip wheel: a master and workers on the loopback, on free ports.

    python infra/spark/standalone.py --workers 2

prints the master's URL and runs until Ctrl-C or SIGTERM, which ends all of it. Tests use `started_cluster`. The workers
see this project and run tasks with this Python. Needs pyspark and Java 17; each process writes a log in the folder.
"""

import argparse
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from importlib.util import find_spec
from pathlib import Path

from lakelib.dataclass import dataclass

PROJECT = Path(__file__).resolve().parents[2]

_HOST = "127.0.0.1"
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_MASTER_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER_REGISTERED = re.compile(r"Successfully registered with master (\S+)")
_START_SECONDS = 60
_STOP_SECONDS = 10


@dataclass(kw_only=True)
class Cluster:
    """A running cluster. `workers` are the processes of the workers, dead ones too, in the order of their start."""

    url: str
    folder: Path
    cores: int
    memory: str
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add_workers(self, count: int) -> None:
        """Returns once all of them are registered with the master."""
        begun = [self._begin_worker() for _ in range(count)]
        for process, log in begun:
            _wait_for(_WORKER_REGISTERED, log, process)

    def _begin_worker(self) -> tuple[subprocess.Popen[bytes], Path]:
        name = f"worker-{len(self.workers)}"
        size = ("--cores", str(self.cores), "--memory", self.memory)
        log = self.folder / f"{name}.log"
        host = _worker_host(len(self.workers))
        process = _start(_WORKER, *size, "--work-dir", str(self.folder / name), self.url, log=log, host=host)
        self.workers.append(process)
        return process, log


@contextmanager
def started_cluster(
    folder: Path, *, workers: int = 2, cores: int = 1, memory: str = "1g", port: int = 0
) -> Iterator[Cluster]:
    """A cluster while the block runs; its logs and the executors' are under the folder. Port 0 is any free one.

    `cores` and `memory` are what each worker has for its executors.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "master.log"
    master = _start(_MASTER, port=port, log=log)
    cluster: Cluster | None = None
    try:
        url = _wait_for(_MASTER_STARTED, log, master)
        cluster = Cluster(url=url, folder=folder, cores=cores, memory=memory)
        cluster.add_workers(workers)
        yield cluster
    finally:
        _stop([*(cluster.workers if cluster else ()), master])


def spark_home() -> Path:
    """The folder of the pip wheel, found without importing it."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise SystemExit("pyspark is not installed in this Python: pip install 'lakelib[spark]'.")
    return Path(found.origin).parent


def spark_environment(inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a Spark process of this project: this Python, this code, no port beyond the loopback."""
    paths = (str(PROJECT), inherited.get("PYTHONPATH", ""))
    return dict(inherited) | {
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }


def die_with_parent() -> None:
    """In the child: be told to stop when the parent ends, however it ends."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def _worker_host(number: int) -> str:
    """Spark runs no task twice at once on one host. On Linux all of 127.x.y.z is the loopback, so there are others."""
    return f"127.0.0.{1 + number % 250}" if sys.platform == "linux" else _HOST


def _start(name: str, *arguments: str, log: Path, host: str = _HOST, port: int = 0) -> subprocess.Popen[bytes]:
    """A process group of its own: its executors belong to it, and a Ctrl-C at the terminal does not reach it."""
    program = str(spark_home() / "bin" / "spark-class")
    command = [program, name, "--host", host, "--port", str(port), "--webui-port", "0"]
    with log.open("wb") as output:
        return subprocess.Popen(
            [*command, *arguments],
            env=spark_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )


def _wait_for(line: re.Pattern[str], log: Path, process: subprocess.Popen[bytes]) -> str:
    """What the process's log says in that line."""
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        found = line.search(log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.05)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    raise RuntimeError(f"A Spark process did not start; the end of {log}:\n{tail}")


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Asks all to end; what has not ended then, executors included, is killed."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + _STOP_SECONDS
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _kill_group(process.pid)


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="A Spark standalone cluster on this machine, until Ctrl-C.", allow_abbrev=False
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cores", type=int, default=1, help="of each worker")
    parser.add_argument("--memory", default="2g", help="of each worker, for its executors")
    parser.add_argument("--port", type=int, default=0, help="of the master; 0 is any free one")
    parser.add_argument("--folder", type=Path, help="for logs and what executors unpack; else a temporary one")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folder = given.folder or Path(tempfile.mkdtemp(prefix="lakelib-spark-"))
    try:
        with (
            suppress(KeyboardInterrupt),
            started_cluster(
                folder, workers=given.workers, cores=given.cores, memory=given.memory, port=given.port
            ) as cluster,
        ):
            print(cluster.url, flush=True)
            print(f"{given.workers} workers; logs are in {folder}. Ctrl-C ends it.", file=sys.stderr, flush=True)
            signal.pause()
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
