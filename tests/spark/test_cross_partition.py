"""Keys across partitions on Spark: its tasks look for the keys, and write the marks of rows that leave."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakelib.work import engines
from tests.acceptance.support import NewTable

_ROWS = 5000
_COLUMNS = "id BIGINT, p STRING, v BIGINT"


@pytest.mark.parametrize("distribution", ["none", "hash"])
@pytest.mark.parametrize("sequence_by", [[], ["v"]])
def test_rows_that_move_leave_by_tasks(
    spark: SparkSession,
    new_table: NewTable,
    monkeypatch: pytest.MonkeyPatch,
    sequence_by: list[str],
    distribution: str,
) -> None:
    def refuse(*given: Any, **more: Any) -> None:
        raise AssertionError("the driver has looked for keys itself")

    monkeypatch.setattr(engines, "_write_leaving_here", refuse)
    table = new_table(
        _COLUMNS,
        primary_key=["id"],
        partition_by=["p"],
        sequence_by=sequence_by,
        buckets=4,
        cross_partition=True,
        options={"min_bucket_file_bytes": 0},
    )
    rows = spark.range(_ROWS, numPartitions=4).selectExpr("id", "concat('p', id % 3) p", "0L v")
    table.upsert(rows, distribution=distribution)
    moved = spark.range(0, _ROWS, 2, numPartitions=3).selectExpr("id", "concat('p', (id + id % 5) % 3) p", "1L v")
    snapshot = table.upsert(moved, distribution=distribution)
    leaving = sum((number + number % 5) % 3 != number % 3 for number in range(0, _ROWS, 2))
    assert snapshot.summary["deletes_written"] == leaving
    found = (
        table.scan()
        .to_spark(spark)
        .selectExpr(
            "count(*)",
            "count(distinct id)",
            "sum(v)",
            "sum(int(p <> concat('p', if(v = 1, (id + id % 5) % 3, id % 3))))",
        )
    )
    assert tuple(found.collect()[0]) == (_ROWS, _ROWS, _ROWS // 2, 0)
    if sequence_by:
        late = spark.range(0, _ROWS, 1, numPartitions=2).selectExpr("id", "concat('q', id % 2) p", "id % 2 - 1 v")
        table.upsert(late, distribution=distribution)
        kept = table.scan(columns=["id", "p"]).to_spark(spark).where("p like 'q%'")
        assert kept.selectExpr("count(*)", "min(id % 2)").collect()[0][:] == (_ROWS // 2, 1)
