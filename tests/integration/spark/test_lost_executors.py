"""Executors, workers and machines lost while tasks write, of an upsert and of an ingest: exactly the right rows, each
once, and what the lost attempts have left is cleaned up. Takes minutes: `make soak` names this file."""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from infra.spark.standalone import Cluster
from lakelib import Lake, Table
from lakelib.ops.provide import provide_table
from lakelib.specs.table_spec import load_spec
from tests.integration.spark.cluster import (
    attempts,
    check_leftovers,
    check_rows,
    check_written,
    files_on_disk,
    lose,
    names,
    worker_of,
    write,
)
from tests.integration.spark.program import Program, wait_until

FILES = 2
ROWS_A_FILE = 1_000_000
"""So many that a task has written runs long before it has all of its rows."""

DAY = "2026-11-18"
SPEC = """
table: {table}
columns: id BIGINT, dt DATE, version INT
primary_key: [id]
partition_by: [dt]
buckets: 2
options: {{write_buffer_bytes: 65536, min_bucket_file_bytes: 0}}
source: {{format: json, path: '{folder}/{{partition}}/*.json'}}
partition: {{column: dt, every: day}}
"""
QUERY = "SELECT id, dt, version FROM source WHERE version = 1"

losses = pytest.mark.parametrize("lost", ["executor", "worker", "machine"])


@pytest.fixture(autouse=True)
def two_workers(cluster: Cluster) -> Iterator[None]:
    """There are two again afterwards."""
    yield
    cluster.add_workers(2 - len(workers_of(cluster)))


@losses
@pytest.mark.parametrize("distribution", ["none", "hash"])
def test_an_upsert_that_lost_tasks_has_each_row_once(
    driver: Program, lake: Lake, table: Table, cluster: Cluster, markers: Path, distribution: str, lost: str
) -> None:
    answer = write(driver, "write_slowly", table, markers, distribution)
    wait_until(lambda: names(markers) >= {"0-0", "1-0"}, "both tasks run", driver)
    if distribution == "none":
        wait_until(lambda: len(attempts(files_on_disk(table))) == 2, "both tasks have written a run", driver)
    lose(cluster, worker_of(cluster, int((markers / "0-0").read_text())), lost)
    (markers / "go").touch()
    check_written(table, answer.read())
    assert "0-1" in names(markers)
    if distribution == "none":
        assert check_leftovers(lake, table)
        check_written(table, answer.read())


@losses
@pytest.mark.parametrize("query", [None, QUERY], ids=["plain", "transform"])
def test_an_ingest_that_lost_tasks_has_each_row_once(
    driver: Program, lake: Lake, cluster: Cluster, tmp_path: Path, query: str | None, lost: str
) -> None:
    spec = deliver(tmp_path, f"shop.{'plain' if query is None else 'transformed'}_{lost}", query)
    table = provided(lake, spec)
    result = tmp_path / "result.json"
    answer = driver.order("ingest_files", arguments=arguments(lake, spec, result))
    wait_until(lambda: len(attempts(files_on_disk(table))) == FILES, "both tasks have written a run", driver)
    first = attempts(files_on_disk(table))
    lose(cluster, workers_of(cluster)[0], lost)
    assert json.loads(answer.read()) == {"exit_code": 0}
    told = json.loads(result.read_text())
    assert (told["outcome"], told["rows_in"]) == ("accept", FILES * ROWS_A_FILE)
    lake.staged(UUID(told["commit"])).publish()
    check_rows(table, FILES * ROWS_A_FILE)
    left = check_leftovers(lake, table)
    if lost == "machine":  # else the task's Python may have been in time to take back what it has written
        assert attempts(left) & first
    check_rows(table, FILES * ROWS_A_FILE)


def deliver(folder: Path, table: str, query: str | None) -> Path:
    """The partition's files, and the spec of the table."""
    landing = folder / DAY
    landing.mkdir()
    for number in range(FILES):
        ids = range(number * ROWS_A_FILE, (number + 1) * ROWS_A_FILE)
        lines = (f'{{"id": {each}, "dt": "{DAY}", "version": 1}}\n' for each in ids)
        (landing / f"{number}.json").write_text("".join(lines))
    (landing / "_READY").touch()
    spec = folder / "ingested.yaml"
    spec.write_text(SPEC.format(table=table, folder=folder))
    if query is not None:
        (folder / "query.sql").write_text(query)
        spec.write_text(spec.read_text() + "transform: query.sql\n")
    return spec


def provided(lake: Lake, spec: Path) -> Table:
    found = load_spec(spec)
    provide_table(lake.runtime, found)
    return lake.table(found.table)


def arguments(lake: Lake, spec: Path, result: Path) -> list[str]:
    settings = lake.settings
    named = {
        "spec": spec,
        "partition": DAY,
        "idempotency-key": "ingested:1",
        "warehouse": settings.warehouse,
        "catalog": settings.catalog,
        "result": result,
    }
    return [f"--{name}={value}" for name, value in named.items()]


def workers_of(cluster: Cluster) -> list[int]:
    """Those that run."""
    return [number for number, worker in enumerate(cluster.workers) if worker.poll() is None]
