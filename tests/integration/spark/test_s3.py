"""Tables on S3 over HTTP, on a stock Spark: nothing in the JVM knows S3. The tasks know the store by what the driver
was given, not by their environment."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import lakelib
import lakelib.spark
from lakelib import Lake, Table
from lakelib.model.gate import Scope
from lakelib.settings import StorageSettings
from lakelib.specs.suite import parse_suite
from tests.conftest import BUCKET

TABLE = "shop.orders"
GATE = """
name: versions
expectations:
  - {type: expect_column_values_to_be_between, kwargs: {column: version, min_value: 2}, scope: staged}
  - {type: expect_column_values_to_be_between, kwargs: {column: version, min_value: 2}, scope: merged}
"""


@pytest.fixture(scope="module")
def s3_lake(s3_settings: StorageSettings, module_catalog_url: str) -> Iterator[Lake]:
    given = {name: value for name, value in asdict(s3_settings).items() if value is not None}
    with lakelib.connect(warehouse=f"s3://{BUCKET}/spark", catalog=module_catalog_url, **given) as lake:
        lake.create_namespace("shop")
        yield lake


@pytest.fixture
def table(s3_lake: Lake) -> Iterator[Table]:
    definition: dict[str, Any] = {"primary_key": ["id"], "partition_by": ["day"], "buckets": 2}
    yield s3_lake.create_table(TABLE, "id BIGINT, day STRING, version INT", **definition)
    s3_lake.drop_table(TABLE)


def rows(spark: SparkSession, first: int, end: int, version: int) -> DataFrame:
    day = sf.concat(sf.lit("a/b="), (sf.col("id") % 2).cast("string")).alias("day")
    return spark.range(first, end, numPartitions=2).select("id", day, sf.lit(version).alias("version"))


def versions(frame: DataFrame) -> dict[int, int]:
    """The version of each key."""
    found = [(row["id"], row["version"]) for row in frame.collect()]
    assert len(dict(found)) == len(found)
    return dict(found)


def is_read_by_jvm(frame: DataFrame) -> bool:
    return "FileScan" in frame._jdf.queryExecution().toString()


def test_nothing_in_the_jvm_knows_s3(spark: SparkSession) -> None:
    with pytest.raises(Py4JJavaError, match=r"No FileSystem for scheme|ClassNotFound"):
        spark.read.parquet(f"s3a://{BUCKET}/spark").count()


@pytest.mark.parametrize("distribution", ["none", "hash"])
def test_upserts_and_deletes_are_merged_on_read(
    s3_lake: Lake, table: Table, spark: SparkSession, distribution: str
) -> None:
    table.upsert(rows(spark, 0, 1000, 1), distribution=distribution)
    table.upsert(rows(spark, 900, 1100, 2), distribution=distribution)
    table.delete_keys(rows(spark, 0, 10, 0).select("id", "day"), distribution=distribution)
    expected = dict.fromkeys(range(10, 900), 1) | dict.fromkeys(range(900, 1100), 2)
    scan = table.scan()
    assert versions(scan.to_spark(spark)) == expected
    assert dict(zip(*scan.to_arrow().select(["id", "version"]).to_pydict().values(), strict=True)) == expected
    lakelib.spark.register(spark, s3_lake)
    read = spark.read.format("lake").load(TABLE)
    assert versions(read) == expected
    assert versions(read.where("version = 2 and id < 950")) == dict.fromkeys(range(900, 950), 2)


def test_files_that_need_no_merge_are_read_through_arrow(table: Table, spark: SparkSession) -> None:
    table.upsert(rows(spark, 0, 1000, 1), distribution="hash")
    read = table.scan(columns=["id", "version"], where="day = 'a/b=1' and id >= 100").to_spark(spark)
    assert not is_read_by_jvm(read)
    assert versions(read) == dict.fromkeys(range(101, 1000, 2), 1)


def test_the_format_writes_and_overwrites(s3_lake: Lake, table: Table, spark: SparkSession) -> None:
    lakelib.spark.register(spark, s3_lake)
    rows(spark, 0, 100, 1).write.format("lake").mode("append").save(TABLE)
    rows(spark, 50, 60, 2).write.format("lake").mode("overwrite").save(TABLE)
    assert versions(spark.read.format("lake").load(TABLE)) == dict.fromkeys(range(50, 60), 2)
    assert versions(spark.read.format("lake").option("at", "1").load(TABLE)) == dict.fromkeys(range(100), 1)


def test_tasks_compact_what_is_on_s3(table: Table, spark: SparkSession) -> None:
    table.upsert(rows(spark, 0, 1000, 1), distribution="none")
    table.upsert(rows(spark, 900, 1100, 2), distribution="none")
    table.delete_keys(rows(spark, 0, 10, 0).select("id", "day"))
    done = table.compact(full=True, session=spark)
    assert (done.files_before, done.files_after, done.rows_after) == (12, len(table.files()), 1090)
    assert done.files_after < done.files_before
    assert versions(table.scan().to_spark(spark)) == dict.fromkeys(range(10, 900), 1) | dict.fromkeys(
        range(900, 1100), 2
    )


def test_a_gate_judges_rows_on_s3(table: Table, spark: SparkSession) -> None:
    table.upsert(rows(spark, 0, 100, 1))
    staged = table.stage_upsert(rows(spark, 90, 110, 2))
    verdict = staged.judge(parse_suite(GATE), spark)
    assert [(each.scope, each.row_count, each.unexpected_count) for each in verdict.checks] == [
        (Scope.STAGED, 20, 0),
        (Scope.MERGED, 110, 90),
    ]
