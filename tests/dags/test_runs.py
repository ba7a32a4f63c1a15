"""Runs of the project's own DAGs, with real jobs on Spark, on the tables of the demo's shop: on a Spark Connect server
that stays, and in Spark applications of their own."""

import os
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from infra.demo.shop import BAD_ORDERS, ORDERS_A_DAY, write_day
from lakelib import Lake

from .conftest import PROJECT, Lab, Place

ORDERS, REVENUE = "ingest__shop__orders", "ingest__shop__daily_revenue"
GOOD, NEXT, BAD = "2026-11-02", "2026-11-03", "2026-11-04"


@pytest.fixture(scope="module")
def lab(open_lab: Callable[..., Lab], place: Place, remote: str) -> Lab:
    for day in (GOOD, NEXT, BAD):
        write_day(place.landing, date.fromisoformat(day), bad=day == BAD)
    lab = open_lab(SPARK_REMOTE=remote)
    lab("parse")
    return lab


@pytest.fixture(scope="module")
def submitting_lab(lab: Lab, open_lab: Callable[..., Lab]) -> Lab:
    """Beside the other one."""
    options = f"{os.environ['SPARK_SUBMIT_OPTS']} -Dspark.sql.shuffle.partitions=2"
    submitting = open_lab(SPARK_MASTER="local[2]", SPARK_SUBMIT_OPTS=options)
    submitting("parse")
    return submitting


def _count(lake: Lake, table: str, day: str, at: Any = None) -> int:
    return lake.table(table).scan(where=f"dt = '{day}'", at=at).to_arrow().num_rows


@pytest.fixture(scope="module")
def ingested(lab: Lab) -> dict[str, Any]:
    """A run of a day whose orders are as they should be."""
    return lab.run(ORDERS, partition_key=GOOD)


def test_a_day_comes_to_the_table_and_is_tagged_and_marked_done(ingested: dict[str, Any], lake: Lake) -> None:
    assert ingested["state"] == "success"
    orders = lake.table("shop.orders")
    assert _count(lake, "shop.orders", GOOD) == ORDERS_A_DAY
    snapshot = ingested["xcom"]["publish"]["published"][0]["snapshot"]
    assert [(tag.name, tag.snapshot_id) for tag in orders.tags()] == [(f"dt-{GOOD}-{snapshot}", snapshot)]
    assert orders.is_done({"dt": GOOD})


def test_a_run_leaves_the_report_of_its_gate(ingested: dict[str, Any], place: Place) -> None:
    (report,) = (place.folder / "airflow/lake_runs" / ORDERS / ingested["run_id"]).rglob("report.html")
    assert "every order has a customer" in report.read_text()
    assert ingested["links"]["stage_and_judge"].startswith(f"/lake/reports/{ORDERS}/")


def test_a_table_made_from_another_reads_the_snapshot_that_woke_it(
    lab: Lab, lake: Lake, ingested: dict[str, Any]
) -> None:
    orders = lake.table("shop.orders")
    (run,) = [(run_id, key) for dag_id, run_id, key in lab("wake") if dag_id == REVENUE]
    before = orders.scan(where=f"dt = '{GOOD}' and status <> 'cancelled'").to_arrow()
    orders.delete(f"dt = '{GOOD}' and amount > 100", gate=PROJECT / "dags/gates/orders.yaml")
    assert run[1] == GOOD
    assert lab("go", dag_id=REVENUE, run_id=run[0])["state"] == "success"
    (row,) = lake.table("shop.daily_revenue").scan().to_arrow().to_pylist()
    assert (row["orders"], row["revenue"]) == (before.num_rows, sum(before["amount"].to_pylist()))


def test_a_day_that_its_gate_rejects_is_published_only_by_a_person(lab: Lab, lake: Lake) -> None:
    run_id = lab("start", dag_id=ORDERS, conf={"partition": BAD})
    waiting = lab("go", dag_id=ORDERS, run_id=run_id)
    staged = waiting["xcom"]["stage_and_judge"]
    assert (waiting["tasks"]["review"], staged["outcome"]) == ("awaiting_input", "reject")
    assert _count(lake, "shop.orders", BAD) == 0
    answer = {"option": "publish", "reason": "the shop will correct them", "user": "anna"}
    assert lab("go", dag_id=ORDERS, run_id=run_id, answer=answer)["state"] == "success"
    assert _count(lake, "shop.orders", BAD) == ORDERS_A_DAY
    assert BAD_ORDERS > 0


def test_an_atomic_backfill_of_two_tables_is_one_transaction(submitting_lab: Lab, lake: Lake) -> None:
    conf = {"tables": ["shop.orders", "shop.payments"], "from": NEXT, "to": NEXT, "atomic": True, "dry_run": False}
    ran = submitting_lab.run("backfill", conf=conf)
    assert ran["state"] == "success"
    assert _count(lake, "shop.orders", NEXT) == ORDERS_A_DAY
    published = {(one["table"], one["commit"]) for one in ran["xcom"]["publish[0]"]["published"]}
    downstream = "shop.daily_revenue"  # reads both of them, and is made anew in the same transaction
    heads = {(table, str(lake.table(table).history()[0].commit_id)) for table in (*conf["tables"], downstream)}
    assert heads == published
    assert lake.table("shop.payments").is_done({"dt": NEXT})
