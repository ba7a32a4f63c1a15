"""Spark is told how large the rows are that Python makes: its plans show it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import lakelib.spark
from lakelib import Lake, Table
from lakelib.work.spark.files import FileSource, find_all_files, open_files
from lakelib.work.spark.sizes import estimated_bytes, has_long_rows, partition_count, row_bytes, sized_numbers
from lakelib.work.spark.tasks import Task, writing_task
from tests.spark.conftest import NewTable

MIB = 2**20
Change = Callable[[dict[str, str]], None]


ID = pa.schema([("id", pa.int64())])


def size_of(frame: Any) -> int:
    return int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan())


def merged_table(new_table: NewTable, count: int) -> Table:
    """Its files need a merge, and have a column of two types, so that Python reads them."""
    table = new_table("id bigint, name string, amount float", primary_key=["id"])
    for number in range(2):
        if number:
            table.evolve(widen={"amount": "double"})
        amounts = pa.array([0.5] * count, pa.float64() if number else pa.float32())
        table.append(pa.table({"id": range(count), "name": ["n"] * count, "amount": amounts}))
    return table


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("size_bytes", [0, 1, 1_000, 3 * MIB, 2**37])
def test_the_numbers_are_just_those_whatever_size_they_stand_for(
    spark: SparkSession, count: int, size_bytes: int
) -> None:
    numbers = sized_numbers(spark, count, size_bytes)
    assert size_bytes <= size_of(numbers) <= size_bytes + 3_000 * count
    assert [row.id for row in numbers.collect()] == list(range(count))
    assert numbers.rdd.getNumPartitions() == count
    assert sized_numbers(spark, 0, 0).count() == 0


def test_a_row_takes_what_spark_takes_it_for(spark: SparkSession) -> None:
    ddl = (
        "a boolean, b tinyint, c smallint, d int, e bigint, f float, g double, h string, i binary, j date, k timestamp,"
        " l timestamp_ntz, m decimal(10,2), n decimal(38,2), o array<int>, p map<string,int>, q struct<x:int,y:string>"
    )
    frame = spark.range(10).selectExpr(*(f"CAST(NULL AS {each}) AS c{n}" for n, each in enumerate(types_of(ddl))))
    from lakelib.work.spark.types import arrow_schema_of

    assert size_of(frame) == 10 * 8 * row_bytes(arrow_schema_of(frame.schema)) // row_bytes(ID)


def types_of(ddl: str) -> list[str]:
    from pyspark.sql.types import StructType

    return [field.dataType.simpleString() for field in StructType.fromDDL(ddl)]


def test_a_scan_that_python_reads_has_its_size(spark: SparkSession, new_table: NewTable) -> None:
    table = merged_table(new_table, 50_000)
    full = table.scan().to_spark(spark)
    rows = 100_000
    assert rows * 44 <= size_of(full) < 2 * rows * 44
    assert size_of(table.scan(columns=["id"]).to_spark(spark)) < size_of(full)
    assert full.count() == 50_000


def test_of_a_join_the_small_side_is_broadcast_whichever_it_is(
    spark: SparkSession, new_table: NewTable, with_settings: Change
) -> None:
    with_settings({"spark.sql.autoBroadcastJoinThreshold": str(MIB)})
    large = merged_table(new_table, 50_000).scan().to_spark(spark)
    small = merged_table(new_table, 10).scan().to_spark(spark)
    joined = small.join(large, "id")
    assert "BroadcastHashJoin" in plan_of(joined)
    assert "BuildLeft" in plan_of(joined)
    assert "SortMergeJoin" in plan_of(large.join(large.withColumnRenamed("name", "other"), "id"))
    assert joined.count() == 10


def test_a_scan_that_spark_reads_by_masks_has_the_size_of_its_files(spark: SparkSession, new_table: NewTable) -> None:
    table = new_table("id bigint, name string", primary_key=["id"])
    for _ in range(2):
        table.append(pa.table({"id": range(50_000), "name": ["n"] * 50_000}))
    frame = table.scan().to_spark(spark)
    assert "MapInArrow" not in plan_of(frame)
    assert size_of(frame) <= sum(file.size_bytes for file in table.files()) * 2
    assert frame.count() == 50_000


def test_many_tiny_files_are_read_by_python(
    spark: SparkSession, new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table("id bigint, name string", primary_key=["id"])
    for number in range(3):
        table.upsert(pa.table({"id": [1, number], "name": ["n", "n"]}))
    assert "MapInArrow" not in plan_of(table.scan().to_spark(spark))
    monkeypatch.setattr("lakelib.work.spark.read._MOST_SMALL_FILES", 2)
    assert "MapInArrow" in plan_of(table.scan().to_spark(spark))


def test_views_have_their_size_too(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = merged_table(new_table, 50_000)
    lakelib.spark.views(spark, lake, "shop")
    assert size_of(spark.table(table.name.partition(".")[2])) >= 100_000 * 44


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"id": range(100_000), "name": ["n"] * 100_000}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("id,name\n" + "1,n\n" * 100_000)
    return tmp_path


@pytest.mark.parametrize(("format", "least"), [("parquet", 100_000 * 8), ("csv", 4 * 100_000)])
def test_the_rows_of_files_have_their_size(
    spark: SparkSession, lake: Lake, folder: Path, format: str, least: int
) -> None:
    storage = lake.runtime.storage
    options = {"header": "true"} if format == "csv" else {}
    files = find_all_files(storage, [str(folder / f"a.{format}")])
    frame = open_files(spark, storage, files, format, options=options).frame()
    assert size_of(frame) >= least
    assert frame.count() == 100_000


def test_a_join_is_not_taken_for_the_product_of_its_sides(spark: SparkSession, new_table: NewTable) -> None:
    left, right = (merged_table(new_table, 20_000).scan().to_spark(spark) for _ in range(2))
    joined = left.join(right.selectExpr("id", "name AS other"), "id")
    assert size_of(joined) > 2**40
    assert estimated_bytes(joined) == pytest.approx(2 * 40_000 * 64, rel=0.1)


def test_a_join_is_written_by_few_tasks(spark: SparkSession, new_table: NewTable) -> None:
    left, right = (merged_table(new_table, 20_000).scan().to_spark(spark) for _ in range(2))
    table = new_table("id bigint, name string, amount double, other string", primary_key=["id"])
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("joined", "a join is written")
    table.upsert(left.join(right.selectExpr("id", "name AS other"), "id"))
    stages = [stage for job in tracker.getJobIdsForGroup("joined") for stage in tracker.getJobInfo(job).stageIds]
    tasks = [info.numTasks for stage in stages if (info := tracker.getStageInfo(stage)) is not None]
    assert max(tasks) <= 16
    assert table.scan().to_arrow().num_rows == 20_000


def test_a_copy_from_table_to_table_is_shuffled_where_it_is_large(
    spark: SparkSession, new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakelib.work.spark.write._RUN_BYTES", 2**17)
    source = merged_table(new_table, 50_000)
    schema, options = "id bigint, name string, amount double", {"min_bucket_file_bytes": 0}
    copy = new_table(schema, primary_key=["id"], buckets=4, options=options)
    copy.upsert(source.scan().to_spark(spark))
    assert [file.prefix for file in sorted(copy.files(), key=lambda file: file.prefix)] == [0, 1, 2, 3]
    assert copy.scan().to_arrow().num_rows == 50_000


def lines_of(spark: SparkSession, lake: Lake, file: Path, length: int) -> FileSource:
    """40 lines of JSON, each with a text of that length."""
    file.write_text("".join(json.dumps({"id": number, "name": "n" * length}) + "\n" for number in range(40)))
    storage = lake.runtime.storage
    return open_files(spark, storage, find_all_files(storage, [str(file)]), "json")


def test_long_rows_are_known_whatever_is_made_of_them(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    short, long = (lines_of(spark, lake, tmp_path / f"{length}.json", length).frame() for length in (100, 100_000))
    assert not has_long_rows(short)
    assert has_long_rows(long)
    assert has_long_rows(short.join(long.selectExpr("id", "upper(name) AS other"), "id").orderBy("id"))


def test_a_scan_of_long_rows_is_one(spark: SparkSession, new_table: NewTable) -> None:
    table = new_table("id bigint, name string", primary_key=["id"])
    for seed in range(2):
        names = [Random(seed + number).randbytes(100_000).hex() for number in range(4)]
        table.upsert(pa.table({"id": range(4), "name": names}))
    assert has_long_rows(table.scan().to_spark(spark))
    assert not has_long_rows(merged_table(new_table, 10).scan().to_spark(spark))


@pytest.mark.parametrize("distribution", ["none", "hash"])
def test_long_rows_are_handed_to_python_by_their_bytes(
    spark: SparkSession,
    lake: Lake,
    new_table: NewTable,
    with_settings: Change,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    distribution: str,
) -> None:
    with_settings({"spark.sql.execution.arrow.maxBytesPerBatch": str(MIB)})
    seen = tmp_path / "seen"
    seen.mkdir()

    def noting_task(*given: Any) -> Task:
        task = writing_task(*given)

        def noted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                (seen / f"{batch.column(0)[0]}").write_text(str(batch.nbytes))
                yield batch

        return lambda batches: task(noted(batches))

    monkeypatch.setattr("lakelib.work.spark.write.writing_task", noting_task)
    table = new_table("id bigint, name string", primary_key=["id"])
    frame = lines_of(spark, lake, tmp_path / "long.json", 100_000).frame().selectExpr("id", "upper(name) AS name")
    table.upsert(frame, distribution=distribution)
    assert max(int(file.read_text()) for file in seen.iterdir()) < 2 * MIB
    assert table.scan(columns=["id"]).to_arrow().num_rows == 40


def test_a_join_that_sends_one_side_to_everybody_has_the_partitions_of_the_other(spark: SparkSession) -> None:
    few, many = spark.range(0, 10, 1, 3), spark.range(0, 10_000_000, 1, 5)
    joined = many.join(few.withColumnRenamed("id", "other"), sf.col("id") == sf.col("other"))
    assert partition_count(few) == 3
    assert partition_count(joined.where("id > 3").select("id")) == 5 == joined.rdd.getNumPartitions()
    assert partition_count(joined.repartition(2)) is None
    assert partition_count(joined.groupBy("id").count()) is None
    assert partition_count(few.crossJoin(few.withColumnRenamed("id", "other"))) is None
