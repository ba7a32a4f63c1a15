"""While lakelib writes, a session hands over batches bounded by rows; afterwards it is as it was."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelib.work.spark.sessions import quick_batches

_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
NUMBERS = pa.schema([("id", pa.int64()), ("amount", pa.decimal128(12, 2))])
TEXTS = pa.schema([("id", pa.int64()), ("note", pa.string())])


def settings(session: SparkSession) -> tuple[str | None, str | None]:
    return session.conf.get(_BYTES), session.conf.get(_ROWS)


@pytest.mark.parametrize(("schema", "rows"), [(NUMBERS, "65536"), (TEXTS, "1000")], ids=["numbers", "texts"])
def test_rows_that_may_be_long_come_in_small_batches(spark: SparkSession, schema: pa.Schema, rows: str) -> None:
    before = settings(spark)
    with quick_batches(spark, schema):
        assert settings(spark) == ("2147483647", rows)
    assert settings(spark) == before


def test_rows_that_are_long_come_as_spark_bounds_them(spark: SparkSession) -> None:
    before = settings(spark)
    with quick_batches(spark, TEXTS, long_rows=True):
        assert settings(spark) == before


def test_the_last_of_several_users_restores_what_was_there(spark: SparkSession) -> None:
    before = settings(spark)
    first, second = quick_batches(spark, NUMBERS), quick_batches(spark, TEXTS)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert settings(spark) == ("2147483647", "65536")
    second.__exit__(None, None, None)
    assert settings(spark) == before


def test_an_error_restores_what_was_there(spark: SparkSession) -> None:
    before = settings(spark)
    with pytest.raises(RuntimeError), quick_batches(spark, NUMBERS):
        raise RuntimeError
    assert settings(spark) == before
