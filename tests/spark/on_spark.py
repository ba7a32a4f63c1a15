"""Tests of `lake.sql` and `tx.sql` are tests of Spark, too: meanwhile they are `lakelib.spark.sql`."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakelib.spark
from lakelib import Lake
from lakelib.lake import Transaction
from lakelib.work.spark.types import arrow_schema_of


class Answer:
    """A frame, read as a result is."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    @property
    def asks_explanation(self) -> bool:
        return list(self._frame.columns) == ["plan"]

    def explain(self) -> str:
        assert self.asks_explanation
        return "\n".join(row.plan for row in self._frame.collect())

    def count(self) -> int:
        return int(self._frame.count())

    def to_arrow(self) -> pa.Table:
        return self._frame.toArrow().cast(arrow_schema_of(self._frame.schema))


@pytest.fixture
def sql_on_spark(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    def sql(lake: Lake | Transaction, text: str, options: Mapping[str, Any] | None = None, /, **values: Any) -> Answer:
        return Answer(lakelib.spark.sql(spark, lake, text, options, **values))

    monkeypatch.setattr(Lake, "sql", sql)
    monkeypatch.setattr(Transaction, "sql", sql)
