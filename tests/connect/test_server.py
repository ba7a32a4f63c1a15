"""A Spark Connect server that stays: what it keeps is bounded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from infra.spark.connect import Server, started_server
from infra.spark.python_daemon import IDLE_SECONDS
from tests.waiting import wait_until

WAIT_SECONDS = 60


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server whose Python is not kept for long, neither workers nor what forks them."""
    monkeypatch.setenv(IDLE_SECONDS, "1")
    with started_server(tmp_path, settings={"spark.python.worker.reuse": "false"}) as server:
        yield server


def session_of(server: Server) -> Any:
    from pyspark.sql.connect.session import SparkSession

    return SparkSession.builder.remote(server.url).create()


def numbers_by_python(session: Any) -> list[int]:
    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    return sorted(row[0] for row in session.range(0, 10, 1, 2).mapInArrow(same, "id bigint").collect())


def python_of(server: Server) -> list[psutil.Process]:
    children = psutil.Process(server.process.pid).children(recursive=True)
    return [child for child in children if child.status() != psutil.STATUS_ZOMBIE and "python" in child.name()]


def test_a_server_does_not_keep_the_python_of_each_session_that_it_ever_had(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    first, second = session_of(server), session_of(server)
    assert [numbers_by_python(session) for session in (first, second)] == [list(range(10))] * 2
    first.stop()
    wait_until(lambda: not python_of(server), WAIT_SECONDS)
    assert numbers_by_python(second) == list(range(10)), "another one is started where it is needed"
    second.stop()


def test_the_workers_of_a_session_find_loaded_what_work_on_the_lake_loads(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import gc
        import sys

        yield pa.RecordBatch.from_pydict(
            {"found": ["lakelib.work.spark.tasks" in sys.modules and gc.get_freeze_count() > 0]}
        )

    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    session = session_of(server)
    assert [row[0] for row in session.range(0, 10, 1, 2).mapInArrow(loaded, "found boolean").collect()] == [True, True]
    session.stop()
