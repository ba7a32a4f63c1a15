"""An archive of Spark's classes as a JVM has them once it has read and checked them: `python -m tests.spark_classes`.

A JVM that maps it starts with half the work. One that finds none, or one made by another Java, starts as ever. It lies
in the environment whose jars it was made from.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as ConnectSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from infra.spark.connect import free_port, url_of

ARCHIVE = Path(sys.prefix, "spark-classes.jsa")
JVM_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=192m -Xlog:cds=off -Xlog:cds+dynamic=off"
)


def main() -> None:
    jars = Path(pyspark.__file__).parent / "jars"
    made_from = (jars, Path(__file__))
    if ARCHIVE.exists() and ARCHIVE.stat().st_mtime > max(each.stat().st_mtime for each in made_from):
        return
    with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as folder:
        unfinished = Path(folder, "archive")
        os.environ["SPARK_SUBMIT_OPTS"] = f"{JVM_OPTIONS} -XX:ArchiveClassesAtExit={unfinished}"
        os.environ["PYSPARK_PYTHON"] = sys.executable
        _use_spark(Path(folder))
        if unfinished.exists():  # a Java that cannot make one does without
            unfinished.rename(ARCHIVE)


def _use_spark(folder: Path) -> None:
    """A little of what tests do, in a classic session and, on the same JVM, over Connect. It writes the archive when it
    ends."""
    port = free_port()
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
    }
    session = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    _work(session, folder / "classic")
    remote = ConnectSession.builder.remote(url_of(port)).create()
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    _work(remote, folder / "remote")
    remote.stop()
    session.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=300)


def _work(session: Any, folder: Path) -> None:
    rows = session.createDataFrame(pa.table({"a": [1, 2, 3], "b": ["x", "y", None]}))
    for kind in ("parquet", "json", "csv"):
        path = str(folder / kind)
        rows.write.format(kind).save(path)
        session.read.schema(rows.schema).format(kind).load(path).where("a > 1 and b is not null").toArrow()
    session.read.parquet(str(folder / "parquet")).createOrReplaceTempView("t")
    counted = session.sql("select a % 2 as b, count(*), max(a) from t join range(3) on a = id group by all order by b")
    counted.repartition(2, "b").sort("b").mapInArrow(lambda batches: batches, counted.schema).cache().toArrow()
    session.dataSource.register(_Numbers)
    session.read.format("numbers").load().where("a > 1").collect()


class _Numbers(DataSource):
    """A source in Python, as lakelib's is one."""

    @classmethod
    def name(cls) -> str:
        return "numbers"

    def schema(self) -> str:
        return "a bigint"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _NumbersReader()


class _NumbersReader(DataSourceReader):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"a": [1, 2]})


if __name__ == "__main__":
    main()
