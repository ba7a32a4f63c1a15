"""A Hive metastore of PySpark's own jars, on a folder, and what Spark's own Hive client sees there."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark

from tests.spark_classes import JVM_OPTIONS

_CLASS = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_START_SECONDS = 180


@contextmanager
def started_metastore(folder: Path) -> Iterator[str]:
    """Its address. It ends with the block."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/db;create=true",
        "hive.metastore.warehouse.dir": f"{folder}/warehouse",
        "hive.metastore.thrift.bind.host": "127.0.0.1",
        "hive.metastore.schema.verification": "false",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.async.log.enabled": "false",  # what it logs with by default is not among the jars
    }
    entries = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
    (folder / "hive-site.xml").write_text(f"<configuration>{''.join(entries)}</configuration>")
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    around = os.environ | {"SPARK_CONF_DIR": str(folder), "SPARK_DAEMON_JAVA_OPTS": JVM_OPTIONS}
    with (folder / "log.txt").open("wb") as log:
        running = subprocess.Popen(
            [str(program), _CLASS, "-p", str(port)], env=around, cwd=folder, stdout=log, stderr=log
        )
        try:
            _wait(running, port, folder / "log.txt")
            yield f"thrift://127.0.0.1:{port}"
        finally:
            running.kill()
            running.wait()


def _wait(running: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        assert running.poll() is None, log.read_text()
        with socket.socket() as client:
            client.settimeout(1)
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"the metastore did not start: {log.read_text()}")


_CLIENT = """
import json, sys
from pyspark.sql import SparkSession
address, folder, *queries = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.warehouse.dir", folder + "/client").config("spark.sql.session.timeZone", "UTC")
spark = builder.config("spark.hadoop.hive.metastore.uris", address).enableHiveSupport().getOrCreate()
found = [[list(row) for row in spark.sql(query).collect()] for query in queries]
print("FOUND" + json.dumps(found, default=str))
spark.stop()
"""


def ask_spark(address: str, folder: Path, queries: Sequence[str]) -> list[list[list[Any]]]:
    """The rows of each query, as a Spark that keeps its tables in the metastore answers them."""
    ran = subprocess.run(
        [sys.executable, "-c", _CLIENT, address, str(folder), *queries],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    (answer,) = (line for line in ran.stdout.splitlines() if line.startswith("FOUND"))
    found: list[list[list[Any]]] = json.loads(answer.removeprefix("FOUND"))
    return found
