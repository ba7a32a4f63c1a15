"""Promises of writing data frames: of the rows of a key the last one in the frame wins, whoever writes them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lakelib import Table
from tests.spark.conftest import NewTable

KEYS = 100
PARTITIONS = [2, 5, 8, 9, 23]
"""As many as tasks run at once, few, and more than write a key's rows each by itself."""

Write = Callable[[Table, DataFrame], Any]
Frames = Callable[[int], DataFrame]


@pytest.fixture
def cached(spark: SparkSession) -> Iterator[Frames]:
    """Frames that the executors hold, of so many partitions: each has all keys, in a version that is its number."""
    made: list[DataFrame] = []

    def make(partitions: int) -> DataFrame:
        frame = versions(spark, partitions).cache()
        frame.count()
        made.append(frame)
        return frame

    yield make
    for frame in made:
        frame.unpersist(blocking=True)


def versions(spark: SparkSession, partitions: int) -> DataFrame:
    number = sf.col("id")
    rows = spark.range(0, KEYS * partitions, 1, partitions)
    return rows.select((number % KEYS).alias("id"), sf.floor(number / KEYS).cast("int").alias("version"))


def last_of(partitions: int) -> list[tuple[int, int]]:
    return [(key, partitions - 1) for key in range(KEYS)]


def rows_of(table: Table) -> list[tuple[int, int]]:
    rows = table.scan().to_arrow().sort_by("id")
    return list(zip(rows["id"].to_pylist(), rows["version"].to_pylist(), strict=True))


def overwrite_all(table: Table, frame: DataFrame) -> None:
    table.overwrite(frame)


def upsert(table: Table, frame: DataFrame) -> None:
    table.upsert(frame)


def save(table: Table, frame: DataFrame) -> None:
    frame.write.format("lake").mode("append").save(table.name)


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_cached_frame_keeps_its_order(new_table: NewTable, cached: Frames, partitions: int) -> None:
    table = new_table("id bigint, version int", primary_key=["id"])
    table.upsert(cached(partitions))
    assert rows_of(table) == last_of(partitions)


@pytest.mark.parametrize("write", [overwrite_all, save])
@pytest.mark.parametrize("definition", [{"buckets": 4}, {"buckets": "postpone"}, {"partition_by": ["id"]}])
def test_every_write_and_every_keyed_table_keeps_it(
    new_table: NewTable, cached: Frames, write: Write, definition: dict[str, Any]
) -> None:
    table = new_table("id bigint, version int", primary_key=["id"], **definition)
    write(table, cached(23))
    assert rows_of(table) == last_of(23)


@pytest.mark.parametrize("distribution", ["auto", "none", "hash"])
def test_every_distribution_keeps_it(new_table: NewTable, cached: Frames, distribution: str) -> None:
    table = new_table("id bigint, version int", primary_key=["id"])
    table.upsert(cached(23).where("version < 20"), distribution=distribution)
    assert rows_of(table) == last_of(20)


def test_a_frame_that_was_planned_before_it_was_cached_keeps_it(
    spark: SparkSession, new_table: NewTable, cached: Frames
) -> None:
    table = new_table("id bigint, version int", primary_key=["id"])
    planned = versions(spark, 23)
    assert planned.count() == cached(23).count()
    table.upsert(planned)
    assert rows_of(table) == last_of(23)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_sorted_frame_keeps_its_order(
    spark: SparkSession, new_table: NewTable, with_settings: Callable[..., None], adaptive: str
) -> None:
    with_settings({
        "spark.sql.adaptive.enabled": adaptive,
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.shuffle.partitions": "23",
    })  # fmt: skip
    table = new_table("id bigint, version int", primary_key=["id"])
    table.upsert(versions(spark, 23).orderBy(sf.desc("version")))
    assert rows_of(table) == [(key, 0) for key in range(KEYS)]


def test_rows_without_a_key_are_still_written_by_few_tasks(new_table: NewTable, cached: Frames) -> None:
    table = new_table("id bigint, version int")
    table.append(cached(23))
    assert len(list(table.files())) == 2
    assert table.scan().to_arrow().num_rows == 23 * KEYS


def test_deletes_by_key_have_no_order(new_table: NewTable, cached: Frames) -> None:
    table = new_table("id bigint, version int", primary_key=["id"])
    frame = cached(23)
    table.upsert(frame)
    table.delete_keys(frame.where("id < 90").select("id"))
    assert rows_of(table) == last_of(23)[90:]
