"""The builders on Spark: a merge of a data frame's rows, and an update, by Spark's tasks."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from lakelib import InvalidInputError, Table
from tests.spark.conftest import NewTable


@pytest.fixture
def table(new_table: NewTable) -> Table:
    made = new_table("id BIGINT NOT NULL, p STRING NOT NULL, n BIGINT", primary_key=["id"], partition_by=["p"])
    made.upsert([{"id": number, "p": "ab"[number % 2], "n": number} for number in range(1, 7)])
    return made


def numbers(table: Table) -> dict[int, int | None]:
    return {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}


def effect(table: Table) -> tuple[Any, ...]:
    assert table.head is not None
    return tuple(table.head.summary[f"rows_{each}"] for each in ("inserted", "updated", "deleted"))


def test_a_data_frame_is_merged_by_its_session(table: Table, spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, "b", 100), (2, "a", None), (9, "a", 9)], "id bigint, p string, n bigint")

    merge = table.merge(rows).when_matched_delete("source.n IS NULL").when_matched_update({"n": "target.n + source.n"})
    merge.when_not_matched_insert().execute(idempotency_key=("spark", 1))

    assert numbers(table) == {1: 101, 3: 3, 4: 4, 5: 5, 6: 6, 9: 9}
    assert effect(table) == (1, 1, 1)


def test_rows_that_chance_makes_are_the_same_whenever_they_are_looked_at(table: Table, spark: SparkSession) -> None:
    """They are looked at for doubles, for the keys that they have, and to be written."""
    keys = (sf.rand() * 1_000_000_000).cast("bigint").alias("id")
    rows = spark.range(50).select(keys, sf.lit("a").alias("p"), sf.lit(0).alias("n")).dropDuplicates(["id"])

    table.merge(rows).when_not_matched_insert().execute()

    assert len(numbers(table)) == 6 + effect(table)[0]


def test_an_update_is_carried_out_by_the_session_that_is_given(table: Table, spark: SparkSession) -> None:
    table.update({"n": "n * $by"}, "p = 'a'", parameters={"by": 10}, session=spark)
    staged = table.stage_update({"n": "size(array(n, n))"}, "id = 1", session=spark)  # what Spark alone computes
    staged.publish()

    assert numbers(table) == {1: 2, 2: 20, 3: 3, 4: 40, 5: 5, 6: 60}
    assert effect(table) == (0, 1, 0)


def test_a_table_is_merged_by_the_session_that_is_given(table: Table, new_table: NewTable, spark: SparkSession) -> None:
    source = new_table("id BIGINT, p STRING, n BIGINT")
    source.append([{"id": 1, "p": "b", "n": 7}])

    table.merge(source, session=spark).when_matched_update().execute()

    assert numbers(table)[1] == 7


def test_two_rows_of_a_frame_for_one_change_nothing(table: Table, spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, "b", 1), (1, "b", 2)], "id bigint, p string, n bigint")

    with pytest.raises(InvalidInputError, match="Two rows of the source"):
        table.merge(rows).when_matched_update().execute()

    assert len(table.history()) == 1


@pytest.mark.parametrize("session", ["spark", 5])
def test_what_is_no_session_is_refused(table: Table, session: object) -> None:
    with pytest.raises(InvalidInputError, match="is no Spark session"):
        table.update({"n": "1"}, session=session)


def test_a_row_that_cannot_be_changed_leaves_no_file(table: Table, spark: SparkSession) -> None:
    files = sorted(Path(table.location.removeprefix("file://")).rglob("*.parquet"))
    rows = spark.createDataFrame([(1, "a", 1)], "id bigint, p string, n bigint")

    with pytest.raises(InvalidInputError, match="another key, or another partition"):
        table.merge(rows, on=["id"]).when_matched_update().execute()

    assert len(table.history()) == 1
    assert sorted(Path(table.location.removeprefix("file://")).rglob("*.parquet")) == files
