"""Pools: what Spark does at once is bounded, and no task waits for a pool that is not there."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Lab

_SPEC = """\
table: a.{engine}
engine: {engine}
columns: id BIGINT
primary_key: [id]
source: {{path: /in/*.parquet}}
"""
CORES = os.cpu_count() or 1


@pytest.mark.parametrize(("said", "slots"), [("", CORES), ("5", 5), ("no number", CORES), ("0", CORES)])
def test_a_scheduler_that_starts_makes_the_pools_that_are_missing(
    open_lab: Callable[..., Lab], said: str, slots: int
) -> None:
    lab = open_lab(LAKE_SPARK_SLOTS=said)
    for name in ("lake_spark", "lake_sessions", "lake_maintenance"):
        lab("set_pool", name=name, slots=None)
    made = lab("pools")
    assert (made["lake_spark"], made["lake_sessions"], made["lake_maintenance"]) == (slots, 2 * CORES, 1)
    assert ("LAKE_SPARK_SLOTS is" in lab.log()) == (said in ("no number", "0"))


def test_a_pool_that_is_there_stays_as_it_is(lab: Lab) -> None:
    lab("set_pool", name="lake_spark", slots=7)
    assert lab("pools")["lake_spark"] == 7


def test_what_may_need_spark_takes_a_slot_and_nothing_else_does(open_lab: Callable[..., Lab], tmp_path: Path) -> None:
    engines = ("spark", "auto", "local")
    for engine in engines:
        (tmp_path / f"{engine}.yaml").write_text(_SPEC.format(engine=engine))
    lab = open_lab(LAKE_TABLES=str(tmp_path))
    assert lab("parse")["errors"] == {}
    taking = {
        engine: {task for task, pool in lab("pools_of", dag_id=f"ingest__a__{engine}").items() if pool == "lake_spark"}
        for engine in engines
    }
    both = {"stage_and_judge", "publish"}
    assert taking == {"spark": both, "auto": both, "local": set()}


@pytest.mark.parametrize(
    ("spark", "pool"),
    [
        ("", "lake_sessions"),
        ("spark: {conf: {spark.sql.shuffle.partitions: 4}}", "lake_sessions"),
        ("spark: {conf: {spark.driver.memory: 1g}}", "lake_spark"),
        ("spark: {remote: 'sc://other'}", "lake_sessions"),
        ("spark: {master: 'local[2]'}", "lake_spark"),
        ("spark: {connection: somewhere}", "lake_spark"),
        ("engine: auto", "lake_sessions"),
    ],
)
def test_a_session_on_a_server_takes_no_slot_of_the_applications(
    open_lab: Callable[..., Lab], tmp_path: Path, spark: str, pool: str
) -> None:
    (tmp_path / "spec.yaml").write_text(_SPEC.format(engine="spark").replace("engine: spark\n", "") + spark)
    lab = open_lab(LAKE_TABLES=str(tmp_path), SPARK_REMOTE="sc://localhost:1")
    assert lab("parse")["errors"] == {}
    assert lab("pools_of", dag_id="ingest__a__spark")["stage_and_judge"] == pool


@pytest.mark.parametrize("dag_id", ["ingest__shop__orders", "backfill", "compact", "maintain"])
def test_each_pool_of_a_task_is_there(lab: Lab, dag_id: str) -> None:
    assert set(lab("pools_of", dag_id=dag_id).values()) <= set(lab("pools"))
