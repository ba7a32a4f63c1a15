"""A real standalone cluster of two workers: whatever becomes of its tasks, a commit has exactly the right rows."""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from infra.spark.standalone import Cluster, started_cluster
from lakelib import Lake, Table
from tests.integration.spark.cluster_job import TASKS
from tests.integration.spark.program import Answer, Program, started_program, wait_until
from tests.integration.spark.read_files import WAYS

SCRIPT = Path(__file__).with_name("cluster_job.py")
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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with started_cluster(tmp_path_factory.mktemp("cluster"), workers=2, cores=1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def driver(
    cluster: Cluster, lake: Lake, module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Program]:
    settings = {"master": cluster.url, "warehouse": lake.warehouse, "catalog": module_catalog_url, "spark": SETTINGS}
    with started_program(SCRIPT, settings, tmp_path_factory.mktemp("driver")) as driver:
        yield driver


@pytest.fixture
def table(lake: Lake) -> Iterator[Table]:
    """An empty table that is written in small runs."""
    yield lake.create_table(
        "shop.orders",
        "id BIGINT, day INT, version INT",
        primary_key=["id"],
        partition_by=["day"],
        buckets=2,
        options={"write_buffer_bytes": 65_536, "min_bucket_file_bytes": 0},
    )
    lake.drop_table("shop.orders")


@pytest.fixture
def markers(tmp_path: Path) -> Path:
    """Where tasks say that they run: a file `<task>-<attempt>` with the number of the process."""
    folder = tmp_path / "markers"
    folder.mkdir()
    return folder


def test_a_table_lives_on_a_cluster(driver: Program, table: Table) -> None:
    found = json.loads(driver.order("live", table=table.name).read())
    assert found == {
        "loaded": sums(dict.fromkeys(range(10_000), 1)),
        "upserted": sums(upserted()),
        "deleted": sums({key: version for key, version in upserted().items() if 1_000 <= key < 11_900}),
    }
    check_files(table)


def test_files_of_others_are_taken_or_refused_alike_on_every_way(driver: Program, lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table(
        "shop.files", "id BIGINT, seq BIGINT, name STRING", primary_key=["id"], sequence_by=["seq"]
    )
    found = json.loads(driver.order("read_files", table=table.name, folder=str(tmp_path)).read())
    rows = [[1, 2, None], [2, 1, None]]
    told = {"good": rows, "lacking": "missing_column", "changed": "source_changed"}
    assert found == dict.fromkeys(WAYS, told)
    lake.drop_table(table.name)


def test_a_join_of_scans_is_written_by_few_tasks_and_the_small_side_is_sent_around(
    driver: Program, table: Table
) -> None:
    found = json.loads(driver.order("write_a_join", table=table.name).read())
    assert found.pop("tasks") <= 32
    assert found.pop("builds_left")
    assert found == sums(dict.fromkeys(range(20_000), 2))


def test_of_a_frame_that_executors_hold_the_last_partition_wins(driver: Program, table: Table) -> None:
    found = json.loads(driver.order("write_a_cached_frame", table=table.name).read())
    assert found == sums(dict.fromkeys(range(100), 22))
    check_files(table)


def upserted() -> dict[int, int]:
    rows = dict.fromkeys(range(9_000), 1) | dict.fromkeys(range(9_000, 12_000), 2)
    return rows | dict.fromkeys(range(11_000, 11_500), 3)


@pytest.mark.parametrize("distribution", ["none", "hash"])
def test_a_worker_killed_in_the_middle_of_a_write_costs_no_row_and_leaves_none_twice(
    driver: Program, table: Table, cluster: Cluster, markers: Path, distribution: str
) -> None:
    answer = write(driver, "write_slowly", table, markers, distribution)
    wait_until(lambda: names(markers) == {"0-0", "1-0"}, "both tasks run", driver)
    if distribution == "none":
        wait_until(lambda: len(attempts(table)) == 2, "both tasks have written a run", driver)
    kill_machine_of(cluster, int((markers / "0-0").read_text()))
    (markers / "go").touch()
    check_written(table, answer.read())
    assert "0-1" in names(markers)
    if distribution == "none":
        assert len(attempts(table)) == 3
        assert files_on_disk(table) > {file.path for file in table.files()}
    cluster.add_workers(1)


@pytest.mark.parametrize("distribution", ["none", "hash"])
def test_tasks_that_fail_and_are_run_again_leave_each_row_once(
    driver: Program, table: Table, markers: Path, distribution: str
) -> None:
    check_written(table, write(driver, "write_with_failures", table, markers, distribution).read())
    assert names(markers) >= {f"{task}-{attempt}" for task in range(TASKS) for attempt in range(2)}


@pytest.mark.parametrize("distribution", ["none", "hash"])
def test_a_task_that_spark_runs_twice_at_once_leaves_each_row_once(
    driver: Program, table: Table, markers: Path, distribution: str
) -> None:
    check_written(table, write(driver, "write_with_a_straggler", table, markers, distribution).read())
    assert "together" in names(markers)


def write(driver: Program, job: str, table: Table, markers: Path, distribution: str) -> Answer:
    return driver.order(job, table=table.name, markers=str(markers), rows=ROWS, distribution=distribution)


# What must be there


def sums(rows: dict[int, int]) -> dict[str, int]:
    return {"rows": len(rows), "keys": len(rows), "ids": sum(rows), "versions": sum(rows.values())}


def check_written(table: Table, answer: bytes) -> None:
    """Spark and Arrow read all rows, each once; the snapshot has the files of one attempt of each task, no others."""
    assert json.loads(answer) == sums(dict.fromkeys(range(ROWS), 1))
    assert table.scan(columns=["id"]).to_arrow().sort_by("id")["id"].to_pylist() == list(range(ROWS))
    assert sum(file.row_count for file in table.files()) == ROWS
    check_files(table)


def check_files(table: Table) -> None:
    """Every file of the snapshot is there, and the commits tell of as many files and rows as there are."""
    files = list(table.files())
    assert {file.path for file in files} <= files_on_disk(table)
    assert len({file.path for file in files}) == len(files)
    told = [snapshot.summary for snapshot in table.history()]
    assert len(files) == sum(each["files_added"] - each["files_removed"] for each in told)
    assert sum(file.row_count for file in files) == sum(each["rows_written"] + each["deletes_written"] for each in told)


def files_on_disk(table: Table) -> set[str]:
    root = Path(unquote(urlsplit(table.location).path))
    return {str(path.relative_to(root)) for path in root.rglob("*.parquet")}


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def attempts(table: Table) -> set[str]:
    """Of whom there are files: each attempt at a task has an id, which is in the names."""
    return {path.rpartition("/")[2].split("-")[1] for path in files_on_disk(table)}


# Killing


def kill_machine_of(cluster: Cluster, task: int) -> None:
    """Ends with -9 all that would end with the machine on which the task's process runs: worker, executor, Python."""
    parents = parents_of_all()
    [worker] = [each for each in cluster.workers if each.returncode is None and each.pid in ancestors(task, parents)]
    for process in parents:
        if worker.pid in ancestors(process, parents):
            os.kill(process, signal.SIGKILL)
    worker.kill()
    worker.wait()


def parents_of_all() -> dict[int, int]:
    """The parent of each process."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            # The name of the program, in parentheses, may hold anything; the parent is the second word after it.
            found[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    return found


def ancestors(process: int, parents: Mapping[int, int]) -> list[int]:
    """The processes above, nearest first."""
    found = []
    while process in parents:
        process = parents[process]
        found.append(process)
    return found
