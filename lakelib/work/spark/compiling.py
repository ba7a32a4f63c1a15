"""Queries are compiled by Spark over views that have columns and no rows: what is wrong with one is known at once."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakelib.errors import InvalidInputError
from lakelib.work.spark.types import arrow_schema_of, spark_schema_of

Compile = Callable[[str, Mapping[str, pa.Schema], str], pa.Schema]
"""The columns that a query gives over views of these columns, for a partition's key. Raises InvalidInputError with what
Spark has against it."""

_AT_START = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_MEANT = {"spark.sql.session.timeZone": "UTC", "spark.sql.variable.substitute": "false"}
_REMOTE = "SPARK_REMOTE"


@contextmanager
def opened_compiler() -> Iterator[Compile]:
    """A session of its own: beside the one of this process, if there is one, else of a Spark that ends with it."""
    active = SparkSession.getActiveSession()
    session = active.newSession() if active is not None else _started()
    for name, value in _MEANT.items():
        session.conf.set(name, value)
    try:
        yield lambda query, views, key: _compiled(session, query, views, key)
    finally:
        if active is None:
            session.stop()


def _started() -> SparkSession:
    if os.environ.get(_REMOTE):  # empty is none
        return SparkSession.builder.getOrCreate()
    builder = SparkSession.builder.appName("lake check").master("local[1]")
    for name, value in _AT_START.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _compiled(session: SparkSession, query: str, views: Mapping[str, pa.Schema], key: str) -> pa.Schema:
    try:
        for name, schema in views.items():
            session.createDataFrame([], spark_schema_of(schema)).createOrReplaceTempView(name)
        return arrow_schema_of(session.sql(query, args={"partition": key}).schema)
    except PySparkException as error:
        said = " ".join(str(error).partition("JVM stacktrace")[0].split())
        raise InvalidInputError(
            f"Spark does not take the query: {said}", kind="invalid_query", remedy="Correct the query."
        ) from None
    finally:
        for name in views:
            session.catalog.dropTempView(name)
