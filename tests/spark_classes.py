"""An archive of Spark's classes as a JVM has them once it has read and checked them: `python -m tests.spark_classes`.

A JVM that maps it starts with half the work. One that finds none, or one made by another Java, starts as ever. It lies
in the environment whose jars it was made from.
"""

import os
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

ARCHIVE = Path(sys.prefix, "spark-classes.jsa")
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:cds=off -Xlog:cds+dynamic=off"


def main() -> None:
    jars = Path(pyspark.__file__).parent / "jars"
    if ARCHIVE.exists() and ARCHIVE.stat().st_mtime > jars.stat().st_mtime:
        return
    with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as folder:
        unfinished = Path(folder, "archive")
        os.environ["SPARK_SUBMIT_OPTS"] = f"{JVM_OPTIONS} -XX:ArchiveClassesAtExit={unfinished}"
        os.environ["PYSPARK_PYTHON"] = sys.executable
        _use_spark()
        if unfinished.exists():  # a Java that cannot make one does without
            unfinished.rename(ARCHIVE)


def _use_spark() -> None:
    """A little of what tests do. The JVM writes the archive when it ends."""
    options = {"spark.driver.host": "127.0.0.1", "spark.driver.memory": "1g", "spark.ui.enabled": "false"}
    session = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    session.createDataFrame(pa.table({"a": [1, 2, 3]})).createOrReplaceTempView("t")
    counted = session.sql("select a % 2 as b, count(*), max(a) from t group by all order by b")
    counted.repartition(2, "b").mapInArrow(lambda batches: batches, counted.schema).toArrow()
    session.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=120)


if __name__ == "__main__":
    main()
