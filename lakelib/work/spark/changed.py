"""Rows of a change that a query computes: counted by what becomes of them, and as a write takes them."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from lakelib.work.spark.conditions import named
from lakelib.work.spark.types import arrow_schema_of


def look_over(frame: DataFrame, change: str, wrong: str | None) -> tuple[dict[int, int], pa.Table]:
    """How many rows there are of each kind of change, and one of those that are wrong, if any is."""
    told = [change] if wrong is None else [change, wrong]
    counts: dict[int, int] = {}
    is_wrong = False
    for row in frame.groupBy(*map(named, told)).agg(sf.count("*").alias("n")).collect():
        counts[row[0]] = counts.get(row[0], 0) + row["n"]
        is_wrong = is_wrong or (wrong is not None and row[1] is not None)
    schema = arrow_schema_of(frame.schema)
    if not is_wrong or wrong is None:
        return counts, schema.empty_table()
    return counts, frame.where(named(wrong).isNotNull()).limit(1).toArrow().cast(schema)


def with_words(frame: DataFrame, names: Sequence[str], change: str, word: str, words: Mapping[int, str]) -> DataFrame:
    """The columns of these names, of which one is a word for the change."""
    told = sf.lit(None).cast("string")
    for number, each in words.items():
        told = sf.when(named(change) == number, each).otherwise(told)
    return frame.select(*(told.alias(word) if name == word else named(name) for name in names))
