"""Carries a query out: Spark's own SQL over frames. And compiles one, over views that have columns and no rows: what is
wrong with it is known at once."""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import (
    ArithmeticException,
    DateTimeException,
    NumberFormatException,
    PySparkException,
    SparkRuntimeException,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import NullType

from lakelib.errors import InvalidInputError
from lakelib.work.revised import Revised
from lakelib.work.spark.conditions import named
from lakelib.work.spark.sessions import changed_settings, is_connect
from lakelib.work.spark.types import arrow_schema_of, spark_schema_of

_MEANT = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
}
"""What a query means depends on them. Spark takes them when it analyses it."""
Compile = Callable[[str, Mapping[str, pa.Schema], str], pa.Schema]
"""The columns that a query gives over views of these columns, for a partition's key. Raises InvalidInputError with what
Spark has against it."""


_analysing = threading.Lock()


def run_query(
    session: SparkSession,
    text: str,
    frames: Mapping[str, DataFrame],
    bound: Mapping[str, Any],
    columns: Sequence[tuple[str, str]],
) -> DataFrame:
    """The rows of a query whose text is a format: each frame's key in braces stands for it. Its columns are called as
    these are, if any are known, and those that are always NULL are of their types. Raises InvalidInputError with what
    Spark has against it."""
    with _analysed(session) as is_changed:
        frame = _asked(session, text, frames, bound)
        frame = _called(frame, columns) if columns else frame
        return _kept(session, frame) if is_changed and is_connect(session) else frame


@contextmanager
def told_of_values() -> Iterator[None]:
    """What Spark says of a value that a query cannot be carried out with, as InvalidInputError."""
    try:
        yield
    except (ArithmeticException, DateTimeException, NumberFormatException, SparkRuntimeException) as error:
        raise InvalidInputError(
            f"The query met a value that it cannot be carried out with: {_said(error)}",
            kind="sql_failed",
            remedy="Leave the row out, or say in the query what becomes of such values.",
        ) from None


def count_revised(frame: DataFrame, revised: Revised) -> Counter[int]:
    """How many rows there are of each kind of change. Raises InvalidInputError for one that is wrong."""
    is_checked = revised.wrong in frame.columns
    told = [revised.change, revised.wrong] if is_checked else [revised.change]
    counts: Counter[int] = Counter()
    is_wrong = False
    for row in frame.groupBy(*map(named, told)).agg(sf.count("*").alias("n")).collect():
        counts[row[0]] += row["n"]
        is_wrong = is_wrong or (is_checked and row[1] is not None)
    if is_wrong:
        first = frame.where(named(revised.wrong).isNotNull()).limit(1).toArrow().cast(arrow_schema_of(frame.schema))
        for batch in first.to_batches():
            revised.check(batch)
    return counts


@contextmanager
def kept(frame: DataFrame) -> Iterator[None]:
    """Meanwhile Spark keeps the rows that it computes of the frame, unless it does anyway."""
    is_kept = frame.storageLevel != StorageLevel.NONE
    if not is_kept:
        frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield
    finally:
        if not is_kept:
            frame.unpersist()


def known_frame(session: SparkSession, rows: pa.Table) -> DataFrame:
    """A few rows that are known already."""
    return session.createDataFrame(rows, spark_schema_of(rows.schema))


def _asked(session: SparkSession, text: str, frames: Mapping[str, DataFrame], bound: Mapping[str, Any]) -> DataFrame:
    try:
        frame = session.sql(text if frames else text.format(), args=dict(bound), **frames)
        _ = frame.schema  # a server has looked at nothing yet
    except PySparkException as error:
        raise InvalidInputError(
            f"Spark does not take the query: {_said(error)}", kind="invalid_sql", remedy="Correct the query."
        ) from None
    return frame


def _said(error: PySparkException) -> str:
    return " ".join(str(error).partition("JVM stacktrace")[0].split())


def _called(frame: DataFrame, columns: Sequence[tuple[str, str]]) -> DataFrame:
    frame = frame.toDF(*(name for name, _ in columns))
    voids = {
        name: named(name).cast(kind)
        for (name, kind), field in zip(columns, frame.schema, strict=True)
        if isinstance(field.dataType, NullType)
    }
    return frame.withColumns(voids) if voids else frame


@contextmanager
def _analysed(session: SparkSession) -> Iterator[bool]:
    """Meanwhile the session's settings are those that a query means; whether they were others."""
    with _analysing:  # of one at a time: the settings are the session's
        others = {name: value for name, value in _MEANT.items() if session.conf.get(name, None) != value}
        with changed_settings(session, others):
            yield bool(others)


def _kept(session: SparkSession, frame: DataFrame) -> DataFrame:
    """As it is understood now. A server analyses a query each time that it is asked for, but a view once: it stays as
    long as the session does."""
    name = f"lake_sql_{uuid4().hex}"
    frame.createTempView(name)
    return session.table(name)


# Compiling


_AT_START = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_CHECKED_WITH = {"spark.sql.session.timeZone": "UTC", "spark.sql.variable.substitute": "false"}
_REMOTE = "SPARK_REMOTE"


@contextmanager
def opened_compiler() -> Iterator[Compile]:
    """A session of its own: beside the one of this process, if there is one, else of a Spark that ends with it."""
    active = SparkSession.getActiveSession()
    session = active.newSession() if active is not None else _started()
    for name, value in _CHECKED_WITH.items():
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
