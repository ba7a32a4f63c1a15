"""Looks on Spark's tasks whether a key of rows of files is NULL or comes twice."""

from collections.abc import Sequence

from pyspark.sql import functions as sql

from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column
from lakelib.rows.convert import python_rows
from lakelib.rows.types import arrow_schema
from lakelib.work.key_check import Key
from lakelib.work.spark.files import FileSource

_SHOWN = 3


def find_repeated(source: FileSource, key: Sequence[Column], partition_by: Sequence[Column]) -> tuple[Key, ...]:
    """As `lakelib.work.key_check.find_repeated`; of a key that is NULL the error says how often."""
    columns = tuple({column.id: column for column in (*partition_by, *key)}.values())
    names = [_quoted(column.name) for column in columns]
    frame = source.frame().select(*names)
    lacking = [sql.sum(sql.col(_quoted(column.name)).isNull().cast("bigint")) for column in key]
    counts = frame.agg(*lacking).collect()[0]
    for column, count in zip(key, counts, strict=True):
        if count:
            raise InvalidInputError(
                f"Column {column.name!r} is NULL in {count:,} rows, and may not be NULL.",
                kind="null_value",
                remedy="Give values, or choose another key.",
            )
    twice = frame.groupBy(*names).count().where("count > 1").limit(_SHOWN).select(*names)
    found = twice.toArrow().cast(arrow_schema(columns))
    return tuple(python_rows(found))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
