"""Looks on Spark's tasks whether a key of rows of files is NULL or comes twice."""

from collections.abc import Sequence

from pyspark.sql import functions as sql

from lakelib.model.schema import Column
from lakelib.work.key_check import KeyTrouble
from lakelib.work.spark.files import FileSource

_SHOWN = 3


def check_keys(source: FileSource, key: Sequence[Column], partition_by: Sequence[Column]) -> KeyTrouble | None:
    """As `lakelib.work.key_check.check_keys`."""
    columns = tuple({column.id: column for column in (*partition_by, *key)}.values())
    names = [_quoted(column.name) for column in columns]
    frame = source.frame().select(*names)
    lacking = [sql.sum(sql.col(_quoted(column.name)).isNull().cast("bigint")) for column in key]
    counts = frame.agg(*lacking).collect()[0]
    nulls = {column.name: int(count) for column, count in zip(key, counts, strict=True) if count}
    if nulls:
        return KeyTrouble(nulls=nulls)
    twice = frame.groupBy(*names).count().where("count > 1").limit(_SHOWN).select(*names)
    repeated = tuple(row.asDict() for row in twice.collect())
    return KeyTrouble(repeated=repeated) if repeated else None


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
