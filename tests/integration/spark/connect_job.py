"""A Spark Connect client of its own, without a JVM.

Called as `python connect_job.py <remote, warehouse and catalog as JSON>`; then does the jobs ordered, and answers with
what Spark has read, as an Arrow file.
"""

import json
import sys
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import lakelib
import lakelib.spark
from lakelib import InvalidInputError, Lake
from lakelib.specs.suite import parse_suite
from tests.integration.spark.program import serve
from tests.integration.spark.read_files import read_files
from tests.spark.constant_writer import frame_of_constants

ZONE = "America/New_York"


def rows(spark: SparkSession, first: int, end: int, version: int) -> DataFrame:
    """Moments from 1890 to 2063, in summer time and not, and as the clock of the session shows them."""
    moment = sf.timestamp_seconds(sf.lit(-2_524_608_000) + sf.col("id") * 3600 * 1009)
    return spark.range(first, end, numPartitions=3).select(
        "id",
        (sf.col("id") % 3).cast("string").alias("day"),
        moment.alias("moment"),
        moment.cast("timestamp_ntz").alias("clock"),
        sf.when(sf.col("id") % 2 == 0, sf.array(sf.struct(sf.lit(version).alias("version")))).alias("nested"),
    )


def upsert(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> DataFrame:
    table = lake.table(given["table"])
    table.upsert(rows(spark, 0, 1000, 1), distribution=given["distribution"])
    table.upsert(rows(spark, 500, 1500, 2), distribution=given["distribution"])
    table.delete_keys(rows(spark, 0, 10, 0).select("id", "day"), distribution=given["distribution"])
    return table.scan().to_spark(spark)


def read_plainly(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> DataFrame:
    """One run: nothing is to be merged."""
    table = lake.table(given["table"])
    table.upsert(rows(spark, 0, 1000, 1).coalesce(1), distribution="none")
    return table.scan(where="id >= 500").to_spark(spark)


def use_format(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> DataFrame:
    """All save modes; what the format reads, filtered."""
    lakelib.spark.register(spark, lake)
    name = given["table"]
    rows(spark, 0, 100, 1).write.format("lake").mode("append").save(name)
    rows(spark, 50, 150, 2).write.format("lake").mode("overwrite").save(name)
    rows(spark, 150, 200, 3).write.format("lake").mode("append").save(name)
    rows(spark, 0, 10, 4).write.format("lake").mode("ignore").save(name)
    with pytest.raises(InvalidInputError, match="is there already"):
        rows(spark, 0, 10, 5).write.format("lake").mode("errorifexists").save(name)
    return spark.read.format("lake").load(name).where("id >= 60")


def give_constants(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> DataFrame:
    """As an overwrite of one partition gives them to its rows."""
    return frame_of_constants(spark)


def judge(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> DataFrame:
    """What a gate says of rows, on the server and in the client."""
    suite = parse_suite(given["suite"])
    staged = lake.table(given["table"]).stage_upsert(rows(spark, 0, 1000, 1))
    found = [
        (verdict.engine, check.name, check.status.value, check.unexpected_count, check.detail)
        for verdict in (staged.judge(suite, spark), staged.judge(suite))
        for check in verdict.checks
    ]
    return spark.createDataFrame(found, "engine string, name string, status string, unexpected int, detail string")


def publish_gated(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> DataFrame:
    """A write that is judged where its rows are."""
    table = lake.table(given["table"])
    snapshot = table.upsert(rows(spark, 0, 1000, 1), gate=parse_suite(given["suite"]))
    verdict = lake.staged(snapshot.commit_id).verdict
    assert verdict is not None
    return spark.createDataFrame([(verdict.engine, verdict.outcome.value)], "engine string, outcome string")


def read_others_files(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> pa.Table:
    """What became of them, on every way, as one text."""
    return pa.table({"found": [json.dumps(read_files(spark, lake, given))]})


def main() -> None:
    settings = json.loads(sys.argv[1])
    spark = SparkSession.builder.remote(settings["remote"]).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    with lakelib.connect(warehouse=settings["warehouse"], catalog=settings["catalog"]) as lake:
        jobs = (upsert, read_plainly, use_format, give_constants, judge, publish_gated)
        served = {job.__name__: lambda given, job=job: _as_file(job(spark, lake, given).toArrow()) for job in jobs}
        serve({**served, "read_others_files": lambda given: _as_file(read_others_files(spark, lake, given))})
    spark.stop()


def _as_file(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


if __name__ == "__main__":
    main()
