"""Promises of streams and gates on Spark for tables that merge versions: a batch counts once, and is judged as what
rows become by it."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakelib import Lake, Table
from lakelib.model.verdict import Outcome
from lakelib.specs.suite import parse_suite
from tests.spark.conftest import NewTable
from tests.spark.streams import SCHEMA, Streams, batch, rows_in
from tests.spark.test_stream_write import upserts

_SUMS = {"engine": "aggregate", "functions": {"n": "sum", "last": "last"}}
_NOT_MANY = """
name: few
expectations:
- type: expect_column_values_to_be_between
  kwargs: {column: n, max_value: 3}
  severity: critical
  scope: merged
"""


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Streams:
    return Streams(spark=spark, checkpoint=tmp_path / "checkpoint")


@pytest.fixture
def orders(new_table: NewTable) -> Table:
    orders = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"], buckets=2)
    orders.upsert(batch((1, "a", "x"), (2, "b", "y"), (3, "a", "z")))
    return orders


@pytest.fixture
def sums(new_table: NewTable) -> Table:
    """How many rows of a day there were, and the newest of them."""
    return new_table("dt STRING, n BIGINT, last STRING", primary_key=["dt"], merge=_SUMS)


def test_a_batch_that_runs_again_is_not_added_again(streams: Streams, orders: Table, sums: Table) -> None:
    def ones(frame: DataFrame) -> DataFrame:
        return upserts(frame).selectExpr("dt", "bigint(1) AS n", "v AS last")

    streams.copy(orders.name, sums.name, change=ones)
    orders.upsert(batch((4, "a", "w")))
    streams.copy(orders.name, sums.name, change=ones)
    sums.compact(full=True)
    streams.forget_last_commit()
    streams.copy(orders.name, sums.name, change=ones)
    counted = [(row["dt"], row["n"]) for row in sums.scan().to_arrow().sort_by("dt").to_pylist()]
    assert counted == [("a", 3), ("b", 1)]


def test_a_stream_tells_sums_or_what_was_added_as_it_is_asked(
    streams: Streams, sums: Table, new_table: NewTable, tmp_path: Path
) -> None:
    """Rows as they are for a table that keeps them, what was added for one that adds as well."""
    copy = new_table("dt STRING, n BIGINT, last STRING", primary_key=["dt"])
    twin = new_table("dt STRING, n BIGINT, last STRING", primary_key=["dt"], merge=_SUMS)
    others = replace(streams, checkpoint=tmp_path / "twin")
    for round_ in range(2):
        for day in "aba":
            sums.upsert(pa.table({"dt": [day], "n": [1], "last": [f"{round_}"]}))
        if round_:
            sums.delete_keys(pa.table({"dt": ["b"]}))
            sums.compact(full=True)
        streams.copy(sums.name, copy.name, read={"startingAfter": 0, "view": "latest"})
        others.copy(sums.name, twin.name, read={"view": "all"})
        assert rows_in(copy) == rows_in(twin) == rows_in(sums)
    assert rows_in(sums) == [("a", 4, "1")]
    with pytest.raises(Exception, match="whether it tells what each commit gave"):
        streams.load(sums.name)


def test_deletes_of_a_stream_that_would_take_nothing_back_are_refused(
    streams: Streams, orders: Table, new_table: NewTable
) -> None:
    """Of a delete changes know the key alone."""
    merge = {"engine": "aggregate", "functions": {"n": "sum"}, "retract": True}
    target = new_table("id BIGINT, n BIGINT", primary_key=["id"], merge=merge)

    def numbers(frame: DataFrame) -> DataFrame:
        return frame.selectExpr("id", "length(v) AS n", "_op", "_commit")

    orders.delete_keys(pa.table({"id": [1], "dt": ["a"]}))
    with pytest.raises(Exception, match="they would do nothing"):
        streams.copy(orders.name, target.name, change=numbers, read={"startingAfter": 0, "view": "all"})
    assert rows_in(target) == []


def test_a_gate_on_spark_judges_what_rows_become(lake: Lake, sums: Table, spark: SparkSession) -> None:
    sums.upsert(pa.table({"dt": ["a"], "n": [2], "last": ["x"]}))
    for n, outcome in ((1, Outcome.ACCEPT), (2, Outcome.REJECT)):
        frame = spark.createDataFrame([("a", n, "y")], "dt STRING, n BIGINT, last STRING")
        assert sums.stage_upsert(frame).judge(parse_suite(_NOT_MANY), spark).outcome is outcome
