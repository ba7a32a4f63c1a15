"""A streaming query in a process of its own: it copies a table until nothing is left to be read, or until it is killed.

Called as `python stream_job.py <what to do as JSON>`. With `dies` it kills itself, JVM and all, once the table has the
next batch and before Spark knows of it.
"""

import json
import os
import signal
import sys
from typing import Any

from pyspark.sql import SparkSession

import lakelib
import lakelib.spark
from lakelib.spark import stream_batches

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def main() -> None:
    given = json.loads(sys.argv[1])
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if given["dies"]:
        _die_after_writing(spark)
    with lakelib.connect(warehouse=given["warehouse"], catalog=given["catalog"]) as lake:
        lakelib.spark.register(spark, lake)
        stream = spark.readStream.format("lake").option("maxSnapshotsPerTrigger", given["snapshots"])
        frame = stream.option("startingAfter", 0).load(given["source"])
        if given["rows_only"]:
            frame = frame.where("_op = 'upsert'").drop("_op", "_commit")
        writer = frame.writeStream.format("lake").option("checkpointLocation", given["checkpoint"])
        writer.trigger(availableNow=True).start(given["target"]).awaitTermination()
    spark.stop()


def _die_after_writing(spark: SparkSession) -> None:
    write = stream_batches.write

    def write_and_die(*given: Any) -> None:
        write(*given)
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        os.kill(gateway.proc.pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    stream_batches.write = write_and_die  # type: ignore[assignment]


if __name__ == "__main__":
    main()
