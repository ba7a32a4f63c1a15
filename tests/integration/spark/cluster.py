"""What the tests on a standalone cluster have in common: its driver, what must be there after a write, and killing."""

import json
import os
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psutil

from infra.spark.standalone import Cluster
from lakelib import Lake, Table
from tests.integration.spark.cluster_job import TASKS
from tests.integration.spark.program import Answer, Program

DRIVER = Path(__file__).with_name("cluster_job.py")
ROWS = TASKS * 400_000
"""So many that a task has written runs before it has all of its rows."""

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"],
    "spark.executor.memory": "512m",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    # A task that takes longer than the other one is soon begun a second time.
    "spark.speculation": "true",
    "spark.speculation.efficiency.enabled": "false",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
}

NO_GRACE = timedelta(0)
_END_SECONDS = 30


def write(driver: Program, job: str, table: Table, markers: Path, distribution: str) -> Answer:
    return driver.order(job, table=table.name, markers=str(markers), rows=ROWS, distribution=distribution)


# What must be there


def sums(rows: dict[int, int]) -> dict[str, int]:
    return {"rows": len(rows), "keys": len(rows), "ids": sum(rows), "versions": sum(rows.values())}


def check_written(table: Table, answer: bytes) -> None:
    """Spark and Arrow read all rows, each once; the snapshot has the files of one attempt of each task, no others."""
    assert json.loads(answer) == sums(dict.fromkeys(range(ROWS), 1))
    check_rows(table, ROWS)


def check_rows(table: Table, count: int) -> None:
    """Each number below the count is there once, in the files too."""
    assert table.scan(columns=["id"]).to_arrow().sort_by("id")["id"].to_pylist() == list(range(count))
    assert sum(file.row_count for file in table.files()) == count
    check_files(table)


def check_files(table: Table) -> None:
    """Every file of the snapshot is there, and the commits tell of as many files and rows as there are."""
    files = list(table.files())
    assert {file.path for file in files} <= files_on_disk(table)
    assert len({file.path for file in files}) == len(files)
    told = [snapshot.summary for snapshot in table.history()]
    assert len(files) == sum(each["files_added"] - each["files_removed"] for each in told)
    assert sum(file.row_count for file in files) == sum(each["rows_written"] + each["deletes_written"] for each in told)


def check_leftovers(lake: Lake, table: Table) -> set[str]:
    """What lost attempts have left goes with the next vacuum, and nothing else does; what it was."""
    live = {file.path for file in table.files()}
    left = files_on_disk(table) - live
    assert lake.vacuum(grace=NO_GRACE).orphans >= len(left)
    assert files_on_disk(table) == live
    return left


def files_on_disk(table: Table) -> set[str]:
    root = Path(unquote(urlsplit(table.location).path))
    return {str(path.relative_to(root)) for path in root.rglob("*.parquet")}


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def attempts(paths: set[str]) -> set[str]:
    """Of whom there are files: each attempt at a task has an id, which is in the names."""
    return {path.rpartition("/")[2].split("-")[1] for path in paths}


# Killing


def lose(cluster: Cluster, worker: int, what: str) -> None:
    """Ends the worker's executor with -9 (another one is started), the worker itself (its executor ends when it
    notices, and may have done its task by then), or all that would end with the machine. Meanwhile tasks stand still,
    lest one be done just in time. When this returns nothing is left of those that were lost."""
    leader = psutil.Process(cluster.workers[worker].pid)
    [executor] = filter(_runs, leader.children())
    below = leader.children(recursive=True)
    tasks = [task for each in _executors(cluster) for task in each.children(recursive=True)]
    for task in tasks:
        task.suspend()
    for each in {"executor": [executor], "worker": [leader], "machine": [leader, *below]}[what]:
        each.kill()
    if what != "executor":
        cluster.workers[worker].wait()
    if what != "worker":
        _await_end([executor])
    for task in tasks:
        with suppress(psutil.NoSuchProcess):
            task.resume()
    _await_end(below)


def worker_of(cluster: Cluster, task: int) -> int:
    """The worker below which the task's process runs."""
    above = {each.pid for each in psutil.Process(task).parents()}
    [worker] = [number for number, each in enumerate(cluster.workers) if each.returncode is None and each.pid in above]
    return worker


def _executors(cluster: Cluster) -> list[psutil.Process]:
    workers = [psutil.Process(each.pid) for each in cluster.workers if each.poll() is None]
    return [executor for worker in workers for executor in worker.children() if _runs(executor)]


def _await_end(processes: list[psutil.Process]) -> None:
    deadline = time.monotonic() + _END_SECONDS
    while any(map(_runs, processes)):
        assert time.monotonic() < deadline, processes
        time.sleep(0.02)


def _runs(process: psutil.Process) -> bool:
    """One that has ended may be listed until its parent asks for it."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
