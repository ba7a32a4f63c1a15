"""What a Spark session is asked about itself, classic or over Spark Connect."""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError

_SHARED_SCHEMES = ("file", "hdfs")
"""Storages that stock Spark reaches by itself under the names that lakelib gives them."""

_MANY_NUMBERS = "EXPLAIN SELECT id FROM range(0, 1000000)"
_SPLITS = re.compile(r"\bRange \(.*\bsplits=(\d+)")
_GUESSED_PARALLELISM = 8
"""Of a Spark Connect server that does not say how many tasks it runs at once."""

_told_parallelism: "WeakKeyDictionary[SparkSession, int]" = WeakKeyDictionary()
"""What servers have said, by session."""

_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_NO_LIMIT = 2**31 - 1
_ROWS_OF_ANY_SIZE = 1000
_SMALL_ROWS = 65_536

_changing = threading.Lock()
_users: "dict[SparkSession, _Users]" = {}
"""The sessions whose settings are changed at this moment."""


def is_connect(session: SparkSession) -> bool:
    return ".connect." in type(session).__module__


def is_reached_by_jvm(uri: str) -> bool:
    """Whether Spark's own readers find files by lakelib's URIs."""
    return urlsplit(uri).scheme in _SHARED_SCHEMES


def parallelism(session: SparkSession) -> int:
    """How many tasks run at once."""
    if not is_connect(session):
        return int(session.sparkContext.defaultParallelism)
    if session not in _told_parallelism:
        # No client may ask for the number; but Spark makes as many parts of numbers, and its plan says so.
        found = _SPLITS.search(str(session.sql(_MANY_NUMBERS).collect()[0][0]))
        _told_parallelism[session] = int(found[1]) if found else _GUESSED_PARALLELISM
    return _told_parallelism[session]


def checked_session(session: Any) -> SparkSession:
    """Raises InvalidInputError for what is no session."""
    if not (hasattr(session, "newSession") or is_connect(session)):
        raise InvalidInputError(
            f"{session!r} is no Spark session.", kind="invalid_session", remedy="Give a SparkSession, or none."
        )
    checked: SparkSession = session
    return checked


@contextmanager
def quick_batches(session: SparkSession, schema: pa.Schema, *, long_rows: bool = False) -> Iterator[None]:
    """Meanwhile the session hands rows to Python in batches of so many rows, not of so many bytes.

    To keep to a number of bytes Spark measures the whole batch again after each row, which takes seven times as long as
    all the rest. Rows of the schema that may be long come in small batches instead; those that are known to be long are
    measured. Of several users at once the first decides, and the last one restores what was there before.
    """
    with _changing:
        if session not in _users:
            _users[session] = _Users(before=_change(session, _wanted_settings(schema, long_rows)))
        users = _users[session]
        users.count += 1
    try:
        yield
    finally:
        with _changing:
            users.count -= 1
            if not users.count:
                _change(session, _users.pop(session).before)


@dataclass(slots=True)
class _Users:
    """Who relies on a session's changed settings, and what they were before."""

    before: dict[str, str | None]
    count: int = 0


def _wanted_settings(schema: pa.Schema, long_rows: bool) -> dict[str, str | None]:
    if long_rows:
        return {}
    rows = _ROWS_OF_ANY_SIZE if any(_may_be_long(field.type) for field in schema) else _SMALL_ROWS
    return {_BATCH_BYTES: str(_NO_LIMIT), _BATCH_ROWS: str(rows)}


def _may_be_long(kind: pa.DataType) -> bool:
    return not pa.types.is_primitive(kind) and not pa.types.is_decimal(kind)


@contextmanager
def changed_settings(session: SparkSession, settings: Mapping[str, str | None]) -> Iterator[None]:
    """Meanwhile the session has these settings; None is not set."""
    before = _change(session, dict(settings))
    try:
        yield
    finally:
        _change(session, before)


def _change(session: SparkSession, settings: dict[str, str | None]) -> dict[str, str | None]:
    """Changes the settings, None is not set; returns what they were."""
    before = {name: session.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        if value is None:
            session.conf.unset(name)
        else:
            session.conf.set(name, value)
    return before
