"""A driver of its own on a cluster, for a pytest process has one classic session, of another master.

Called as `python cluster_job.py <master, warehouse, catalog and Spark settings as JSON>`; then does the jobs ordered.
Tasks tell by files that they run, and wait or fail where the test wants it.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import lakelib
from jobs import ingest
from lakelib import Lake, Table
from tests.integration.spark.program import serve
from tests.integration.spark.read_files import read_files, refuse_files

TASKS = 2
_WAIT_SECONDS = 60
_Pandas = Iterator[pd.DataFrame]
_Act = Callable[[Path, TaskContext], None]


def live(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> dict[str, Any]:
    """A table's life: a load, upserts, merge-on-read, deletes; what is read after each."""
    table = lake.table(given["table"])
    steps = {}
    table.upsert(_rows(spark, 0, 10_000, 1), distribution="hash")
    steps["loaded"] = _seen(spark, table)
    table.upsert(_rows(spark, 9_000, 12_000, 2), distribution="none")
    table.upsert(_rows(spark, 11_000, 11_500, 3))
    steps["upserted"] = _seen(spark, table)
    table.delete_keys(_rows(spark, 0, 1_000, 0).select("id", "day"))
    table.delete("id >= 11900")
    steps["deleted"] = _seen(spark, table)
    return steps


def write_slowly(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> dict[str, Any]:
    """The first attempts of all tasks stay in the middle of their work until the test says go."""

    def wait(folder: Path, context: TaskContext) -> None:
        if context.attemptNumber() == 0:
            _wait_for((folder / "go").exists, "go")

    return _write(spark, lake, given, wait)


def write_with_failures(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> dict[str, Any]:
    """The first attempt of every task fails in the middle of its work."""

    def fail(folder: Path, context: TaskContext) -> None:
        if context.attemptNumber() == 0:
            raise RuntimeError("the first attempt fails")

    return _write(spark, lake, given, fail)


def write_with_a_straggler(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> dict[str, Any]:
    """One task's first attempt waits until a second one has come as far beside it; then both go on together."""

    def straggle(folder: Path, context: TaskContext) -> None:
        if context.partitionId() == 0 and context.attemptNumber() == 0:
            _wait_for((folder / "0-1").exists, "a second attempt")
            (folder / "together").touch()

    return _write(spark, lake, given, straggle)


def write_a_join(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> dict[str, Any]:
    """Two scans that Python reads, joined and written: the most tasks of a stage, and how they were joined."""
    table = lake.table(given["table"])
    for version in (1, 2):
        table.upsert(_rows(spark, 0, 20_000, version), distribution="none")
    left, right = (table.scan().to_spark(spark) for _ in range(2))
    small = table.scan(columns=["id"], where="id < 5").to_spark(spark).limit(5)
    joined = left.join(right.select("id", sf.col("version").alias("other")), "id").drop("other")
    spark.sparkContext.setJobGroup("joined", "a join is written")
    table.upsert(joined)
    tracker = spark.sparkContext.statusTracker()
    stages = [stage for job in tracker.getJobIdsForGroup("joined") for stage in tracker.getJobInfo(job).stageIds]
    tasks = [info.numTasks for stage in stages if (info := tracker.getStageInfo(stage)) is not None]
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "100000")
    plan = small.join(left, "id")._jdf.queryExecution().executedPlan().toString()
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    return {"tasks": max(tasks), "builds_left": "BuildLeft" in plan, **_seen(spark, table)}


def write_frames_in_order(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> dict[str, Any]:
    """Frames of 100 keys in each of 23 partitions, the versions of one frame above those of the one before: what is
    read after each."""
    table = lake.table(given["table"])
    cached = _versions(spark, 0).cache()
    cached.count()
    frames = {
        "cached": cached,
        "sorted": _versions(spark, 100).orderBy(sf.desc("version")),
        "repartitioned": _versions(spark, 200).repartition(5, "id").sortWithinPartitions("version"),
    }
    found = {}
    for name, frame in frames.items():
        table.upsert(frame)
        found[name] = _seen(spark, table)
    cached.unpersist(blocking=True)
    return found


def ingest_files(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> dict[str, Any]:
    """The job itself, in this driver's session, once there is room for all tasks at a time, and each begins at once."""
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus  # the driver is counted, too
    _wait_for(lambda: executors().size() > TASKS, "as many executors as tasks")
    spark.range(0, TASKS, 1, TASKS).mapInArrow(_loaded, "id BIGINT").collect()
    return {"exit_code": ingest.main(given["arguments"], spark)}


def _loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Python has what an ingest's tasks need."""
    import lakelib.work.spark.files  # noqa: F401

    yield from batches


def _write(spark: SparkSession, lake: Lake, given: dict[str, Any], act: _Act) -> dict[str, Any]:
    table = lake.table(given["table"])
    rows = _rows(spark, 0, given["rows"], 1)
    shaky = rows.mapInPandas(_shaken(Path(given["markers"]), given["rows"] // TASKS * 3 // 4, act), rows.schema)
    table.upsert(shaky, distribution=given["distribution"])
    return _seen(spark, table)


def _shaken(folder: Path, rows_before: int, act: _Act) -> Callable[[_Pandas], _Pandas]:
    """Hands rows on; after so many of them the task says that it runs, then acts."""

    def shaken(batches: _Pandas) -> _Pandas:
        context = TaskContext.get()
        assert context is not None
        passed = 0
        for batch in batches:
            yield batch
            passed += len(batch)
            if passed - len(batch) < rows_before <= passed:
                (folder / f"{context.partitionId()}-{context.attemptNumber()}").write_text(str(os.getpid()))
                act(folder, context)

    return shaken


def _wait_for(met: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not met():
        if time.monotonic() > deadline:
            raise TimeoutError(f"There is not: {what}")
        time.sleep(0.02)


def _rows(spark: SparkSession, first: int, end: int, version: int) -> DataFrame:
    """One row for each number: its day and its version."""
    day = (sf.col("id") % 2).cast("int").alias("day")
    return spark.range(first, end, numPartitions=TASKS).select("id", day, sf.lit(version).alias("version"))


def _versions(spark: SparkSession, first: int) -> DataFrame:
    """Each partition has all keys, in one version that is above that of the partition before."""
    number = sf.col("id")
    key, version = (number % 100).alias("id"), (first + sf.floor(number / 100)).cast("int").alias("version")
    return spark.range(0, 2_300, 1, 23).select(key, (key % 2).cast("int").alias("day"), version)


def _seen(spark: SparkSession, table: Table) -> dict[str, Any]:
    """What Spark reads, as sums: small enough to be told."""
    sums = [
        sf.count("*").alias("rows"),
        sf.countDistinct("id").alias("keys"),
        sf.sum("id").alias("ids"),
        sf.sum("version").alias("versions"),
    ]
    [row] = table.scan().to_spark(spark).agg(*sums).collect()
    return row.asDict()


def main() -> None:
    settings = json.loads(sys.argv[1])
    builder = SparkSession.builder.master(settings["master"])
    for name, value in settings["spark"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    with lakelib.connect(warehouse=settings["warehouse"], catalog=settings["catalog"]) as lake:
        writes = (write_slowly, write_with_failures, write_with_a_straggler, write_a_join, write_frames_in_order)
        jobs = (live, read_files, refuse_files, ingest_files, *writes)
        serve({job.__name__: lambda given, job=job: json.dumps(job(spark, lake, given)).encode() for job in jobs})
    spark.stop()


if __name__ == "__main__":
    main()
