"""A real standalone cluster of two workers: whatever becomes of its tasks, a commit has exactly the right rows."""

import json
from pathlib import Path

import pytest

from infra.spark.standalone import Cluster
from lakelib import Lake, Table
from tests.integration.spark.cluster import (
    attempts,
    check_files,
    check_written,
    files_on_disk,
    lose,
    names,
    sums,
    worker_of,
    write,
)
from tests.integration.spark.cluster_job import TASKS
from tests.integration.spark.program import Program, wait_until
from tests.integration.spark.read_files import WAYS


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


def test_files_that_are_not_as_they_should_be_leave_nothing_on_any_way(
    driver: Program, table: Table, tmp_path: Path
) -> None:
    found = json.loads(driver.order("refuse_files", table=table.name, folder=str(tmp_path)).read())
    told = {
        "astray": "missing_column",
        "unknown": "unknown_column",
        "gone": "source_changed",
        "grown": "source_changed",
    }
    assert found == dict.fromkeys(WAYS, told)
    assert table.head is None
    assert files_on_disk(table) == set()


def test_a_join_of_scans_is_written_by_few_tasks_and_the_small_side_is_sent_around(
    driver: Program, table: Table
) -> None:
    found = json.loads(driver.order("write_a_join", table=table.name).read())
    assert found.pop("tasks") <= 32
    assert found.pop("builds_left")
    assert found == sums(dict.fromkeys(range(20_000), 2))


def test_of_a_key_the_later_row_in_the_frame_wins_whatever_was_done_to_it(driver: Program, table: Table) -> None:
    found = json.loads(driver.order("write_frames_in_order", table=table.name).read())
    newest = {"cached": 22, "sorted": 100, "repartitioned": 222}
    assert found == {name: sums(dict.fromkeys(range(100), version)) for name, version in newest.items()}
    check_files(table)


def upserted() -> dict[int, int]:
    rows = dict.fromkeys(range(9_000), 1) | dict.fromkeys(range(9_000, 12_000), 2)
    return rows | dict.fromkeys(range(11_000, 11_500), 3)


def test_a_machine_lost_in_the_middle_of_a_write_costs_no_row_and_leaves_none_twice(
    driver: Program, table: Table, cluster: Cluster, markers: Path
) -> None:
    answer = write(driver, "write_slowly", table, markers, "none")
    wait_until(lambda: names(markers) == {"0-0", "1-0"}, "both tasks run", driver)
    wait_until(lambda: len(attempts(files_on_disk(table))) == 2, "both tasks have written a run", driver)
    lose(cluster, worker_of(cluster, int((markers / "0-0").read_text())), "machine")
    (markers / "go").touch()
    check_written(table, answer.read())
    assert "0-1" in names(markers)
    assert len(attempts(files_on_disk(table))) == 3
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
