"""Conditions mean what they mean in Spark: the same rows, and the same refusals, whoever is asked."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lakelib.errors import InvalidInputError
from lakelib.plan.where import parse_where
from lakelib.rows.filter import matching_rows
from tests.conftest import EXAMPLES
from tests.property.test_where_texts import table_of
from tests.property.where_texts import SCHEMA, VALUES, Piece, conditions

TOGETHER = 20
"""So many conditions are one job."""


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """Rows with each value beside some of the others, NULL among them."""
    samples = {name: [None, *_samples(strategy)] for name, strategy in VALUES.items()}
    places = range(max(map(len, samples.values())) * 5)
    step = {name: 1 + number for number, name in enumerate(samples)}
    return table_of(
        [{name: each[place * step[name] % len(each)] for name, each in samples.items()} for place in places]
    )


def _samples(strategy: st.SearchStrategy[Any]) -> list[Any]:
    found: list[Any] = []

    @settings(max_examples=60, database=None, deadline=None, phases=[Phase.generate])
    @given(strategy)
    def collect(value: Any) -> None:
        if repr(value) not in map(repr, found):
            found.append(value)

    collect()
    return sorted(found, key=repr)


@pytest.fixture(scope="module")
def frame(spark: SparkSession, rows: pa.Table) -> Iterator[DataFrame]:
    """In a session whose zone is that of all conditions of the lake."""
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    numbered = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    yield spark.createDataFrame(numbered).cache()
    spark.conf.set("spark.sql.session.timeZone", zone)


@settings(
    max_examples=max(3, EXAMPLES // 25),
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(asked=st.lists(conditions, min_size=TOGETHER, max_size=TOGETHER, unique_by=lambda each: each.text))
def test_a_condition_means_what_it_means_in_spark(frame: DataFrame, rows: pa.Table, asked: list[Piece]) -> None:
    expected: dict[str, list[int] | None] = {each.text: found_here(each.text, rows) for each in asked}
    sure = [text for text, found in expected.items() if found is not None]
    columns = [sf.coalesce(sf.expr(text).cast("boolean"), sf.lit(False)).alias(f"c{n}") for n, text in enumerate(sure)]
    told = frame.select("row", *columns).toArrow().sort_by("row")
    in_spark = {text: pc.indices_nonzero(told.column(f"c{number}")).to_pylist() for number, text in enumerate(sure)}
    assert [(text, rows, expected[text]) for text, rows in in_spark.items() if rows != expected[text]] == []
    refused = [text for text, found in expected.items() if found is None][:2]
    assert [text for text in refused if not is_refused(frame, text)] == []


def is_refused(frame: DataFrame, text: str) -> bool:
    try:
        frame.select(sf.expr(text)).toArrow()  # of a filter Spark asks what it likes first
    except PySparkException:
        return True
    return False


def found_here(text: str, rows: pa.Table) -> list[int] | None:
    """The rows; None where it is refused for a value."""
    try:
        mask = matching_rows(parse_where(text, SCHEMA), rows)
    except InvalidInputError as error:
        if "cannot be computed" not in error.message:
            raise
        return None
    found: list[int] = pc.indices_nonzero(mask).to_pylist()
    return found
