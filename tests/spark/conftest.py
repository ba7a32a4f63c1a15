"""Fixtures of the tests of `lakelib.spark` and of reading data frames: a lake that the session knows."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lakelib
import lakelib.spark
from lakelib import Lake, Table
from tests.conftest import SHORT_WAY, SPARKS_OWN_WAY

NewTable = Callable[..., Table]

_NUMBERS = count()


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> Iterator[SparkSession]:
    """It goes Spark's own way."""
    for name, value in SPARKS_OWN_WAY.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in SHORT_WAY.items():
        spark.conf.set(name, value)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with lakelib.connect(warehouse=str(tmp_path_factory.mktemp("lake")), catalog=module_catalog_url) as lake:
        lake.create_namespace("shop")
        lakelib.spark.register(spark, lake)
        yield lake


@pytest.fixture
def new_name() -> str:
    """The name of a table that is not there."""
    return f"shop.t{next(_NUMBERS)}"


@pytest.fixture
def new_table(lake: Lake) -> NewTable:
    def make(schema: Any, **definition: Any) -> Table:
        return lake.create_table(f"shop.t{next(_NUMBERS)}", schema, **definition)

    return make


@pytest.fixture
def with_settings(spark: SparkSession) -> Iterator[Callable[..., None]]:
    """Sets Spark settings for one test."""
    before: dict[str, str | None] = {}

    def change(settings: dict[str, str]) -> None:
        for name, value in settings.items():
            before.setdefault(name, spark.conf.get(name, None))
            spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)
