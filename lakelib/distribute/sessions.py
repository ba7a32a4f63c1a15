"""What a Spark session is asked about itself, classic or over Spark Connect."""

from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

_SHARED_SCHEMES = ("file", "hdfs")
"""Storages that stock Spark reaches by itself under the names that lakelib gives them."""

_GUESSED_PARALLELISM = 8
"""Of a Spark Connect server that does not say how many tasks it runs at once."""


def is_connect(session: SparkSession) -> bool:
    return ".connect." in type(session).__module__


def is_reached_by_jvm(uri: str) -> bool:
    """Whether Spark's own readers find files by lakelib's URIs."""
    return urlsplit(uri).scheme in _SHARED_SCHEMES


def parallelism(session: SparkSession) -> int:
    """How many tasks run at once."""
    if not is_connect(session):
        return int(session.sparkContext.defaultParallelism)
    known: Any = session.conf.get("spark.default.parallelism", None)
    return int(known) if known else _GUESSED_PARALLELISM
