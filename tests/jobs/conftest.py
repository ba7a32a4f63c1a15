"""Fixtures of the job tests: a lake on local files, and jobs run in this process with its Spark session."""

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakelib import Lake, Table

SCHEMA = "id BIGINT NOT NULL, dt DATE, amount DECIMAL(10,2), name STRING, at TIMESTAMP"

NewTable = Callable[..., Table]
Facts = dict[str, Any]


@dataclass(frozen=True)
class Ran:
    """What a job left behind."""

    code: int
    facts: Facts
    out: str
    err: str


RunJob = Callable[..., Ran]


_NUMBERS = count()


@pytest.fixture
def new_table(lake: Lake) -> NewTable:
    """Makes a table of a name of its own, of orders by id and day unless something else is said."""

    def make(schema: Any = SCHEMA, **definition: Any) -> Table:
        given = definition or {"primary_key": ["id"], "partition_by": ["dt"], "buckets": 2}
        return lake.create_table(f"shop.t{next(_NUMBERS)}", schema, **given)

    return make


@pytest.fixture
def run_job(lake: Lake, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> RunJob:
    """`run_job("upsert", table, …)` runs the job on the test's lake and session, and reads its result file."""
    return _runner(lake, spark, tmp_path, capsys)


@pytest.fixture
def run_without_spark(lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> RunJob:
    """As `run_job`, for jobs that need no session."""
    return _runner(lake, None, tmp_path, capsys)


def _runner(lake: Lake, session: SparkSession | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> RunJob:
    settings = lake.settings

    def run(job: str, *arguments: object) -> Ran:
        result = tmp_path / "result.json"
        result.unlink(missing_ok=True)
        lake_arguments = ["--warehouse", settings.warehouse, "--catalog", str(settings.catalog)]
        given = [str(argument) for argument in arguments]
        main = importlib.import_module(f"jobs.{job}").main
        code = main([*given, *lake_arguments, "--result", str(result)], session)
        told = capsys.readouterr()
        return Ran(code, json.loads(result.read_text()), told.out, told.err)

    return run


def rows_of(table: Table, *columns: str) -> list[tuple[Any, ...]]:
    """The table's rows, sorted."""
    found = table.scan(columns=columns or None).to_arrow()
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True), key=repr)
