"""A Spark Connect server on this machine, from the pip wheel: on the loopback, with bounded memory.

    python infra/spark/connect.py --cores 2 --memory 1g

prints its address and runs until Ctrl-C or SIGTERM, which ends it. Whoever reaches its port runs what he likes with the
rights of its owner, so it takes only clients with the token that SPARK_CONNECT_AUTHENTICATE_TOKEN holds, if it holds
one. Its tasks see this project and run with this Python. Needs pyspark and Java 17.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from lakelib.dataclass import dataclass

sys.path.append(str(Path(__file__).resolve().parents[2]))

from infra.spark.standalone import die_with_parent, spark_environment, spark_home

_HOST = "127.0.0.1"
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_START_SECONDS = 90
_STOP_SECONDS = 10
USUAL_PORT = 15002
TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_JAVA_OPTIONS = (
    "-XX:+ExitOnOutOfMemoryError -XX:MaxDirectMemorySize=256m -XX:MaxMetaspaceSize=512m -XX:+UseSerialGC"
    " -Djava.net.preferIPv4Stack=true"
)
"""What is out of memory answers nobody: it ends, and who watches it starts another one."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server; its process is the JVM itself."""

    url: str
    process: subprocess.Popen[bytes]


def server_command(
    *, port: int, cores: int, memory: str, folder: Path, settings: Mapping[str, str] | None = None
) -> list[str]:
    """`memory` is the heap's; what Spark puts on disk goes to the folder."""
    given = {
        "spark.connect.grpc.binding.address": _HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.default.parallelism": str(cores),
        "spark.driver.bindAddress": _HOST,
        "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
        "spark.driver.host": _HOST,
        "spark.driver.memory": memory,
        "spark.driver.maxResultSize": "256m",
        "spark.local.dir": str(folder / "blocks"),
        "spark.log.level": "WARN",
        "spark.python.daemon.module": "infra.spark.python_daemon",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        "spark.ui.enabled": "false",
        **(settings or {}),
    }
    options = [word for name, value in given.items() for word in ("--conf", f"{name}={value}")]
    submit = str(spark_home() / "bin" / "spark-submit")
    return [submit, "--class", _CLASS, "--name", "lake", "--master", f"local[{cores}]", *options, "spark-internal"]


def server_environment(token: str | None, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Without a token: as the environment says."""
    own = {name: value for name, value in spark_environment(inherited).items() if name != "SPARK_REMOTE"}
    return own | {"SPARK_CONNECT_MODE": "0"} | ({} if token is None else {TOKEN: token})


@contextmanager
def started_server(
    folder: Path,
    *,
    cores: int = 2,
    memory: str = "1g",
    port: int = 0,
    token: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """A server while the block runs, with its log in the folder. Port 0 is any free one."""
    port = port or free_port()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            server_command(port=port, cores=cores, memory=memory, folder=folder, settings=settings),
            env=server_environment(token),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    try:
        _wait_until_open(process, port, log)
        yield Server(url=url_of(port), process=process)
    finally:
        _end(process)


def url_of(port: int) -> str:
    """By this name PySpark sends a token without TLS: it does not leave the machine."""
    return f"sc://localhost:{port}"


def is_open(port: int) -> bool:
    """Whether somebody listens there."""
    with suppress(OSError), socket.create_connection((_HOST, port), timeout=1):
        return True
    return False


def free_port() -> int:
    """One that nobody listens on at this moment."""
    with socket.socket() as listener:
        listener.bind((_HOST, 0))
        port: int = listener.getsockname()[1]
        return port


def _wait_until_open(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if is_open(port):
            return
        time.sleep(0.05)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    raise RuntimeError(f"The Spark Connect server did not start; the end of {log}:\n{tail}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """With the JVM ends its Python."""
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(
        description="A Spark Connect server on this machine, until Ctrl-C.", allow_abbrev=False
    )
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1, help="so many tasks run at once")
    parser.add_argument("--memory", default="1g", help="of the JVM; the tasks' Python has its own besides")
    parser.add_argument("--port", type=int, default=USUAL_PORT, help="0 is any free one")
    parser.add_argument("--folder", type=Path, help="for its log and its blocks; else a temporary one")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folder = given.folder or Path(tempfile.mkdtemp(prefix="lakelib-connect-"))
    try:
        with (
            suppress(KeyboardInterrupt),
            started_server(folder, cores=given.cores, memory=given.memory, port=given.port) as server,
        ):
            print(server.url, flush=True)
            print(f"Its log is in {folder}. Ctrl-C ends it.", file=sys.stderr, flush=True)
            server.process.wait()
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
