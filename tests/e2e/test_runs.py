"""What people and schedules start in a live Airflow, and what the lake holds afterwards."""

from datetime import date

import pytest

from infra.airflow.api import ApiError, wait_for
from infra.demo.runs import Run, answer_review, failed_tasks, returned, trigger
from infra.demo.shop import BAD_ORDERS, ORDERS_A_DAY, write_correction, write_customers, write_day
from tests.e2e.support import CUSTOMERS, ORDERS, REVENUE, Live, check_follow_ups, clear, green, rows_of


def test_a_scheduled_run_waits_for_its_files_and_brings_them(live: Live) -> None:
    run = wait_for(lambda: scheduled(live), seconds=60, what="a scheduled run")
    write_day(live.home.landing, date.fromisoformat(run.partition))
    ended = green(live, live.watch.wait_for_end(run.run_id))
    assert rows_of(live, run.partition) == ORDERS_A_DAY
    check_follow_ups(live, run.partition, snapshot_of(live, ended))


def test_a_table_that_is_not_cut_by_time_is_scheduled_too(live: Live) -> None:
    write_customers(live.home.landing, date(2026, 11, 1))
    run = wait_for(
        lambda: next((run for run in live.watch.look() if run.dag_id == CUSTOMERS and run.state == "success"), None),
        seconds=180,
        what="the run of customers",
    )
    assert run.run_type == "scheduled"
    assert live.lake.table("shop.customers").scan().count() > 100


def test_a_run_by_hand_takes_its_partition_from_the_form(live: Live) -> None:
    write_day(live.home.landing, date(2026, 11, 3))
    run_id = trigger(live.api, ORDERS, conf={"partition": "2026-11-03"})
    ended = green(live, live.watch.wait_for_end(run_id))
    assert rows_of(live, "2026-11-03") == ORDERS_A_DAY
    check_follow_ups(live, "2026-11-03", snapshot_of(live, ended))


def test_a_table_made_from_another_reads_the_snapshot_that_woke_it(live: Live) -> None:
    write_day(live.home.landing, date(2026, 11, 4))
    trigger(live.api, ORDERS, partition="2026-11-04")
    orders = green(live, live.watch.wait_for(ORDERS, "2026-11-04"))
    published = snapshot_of(live, orders)
    woken = green(live, live.watch.wait_for(REVENUE, "2026-11-04"))
    assert woken.run_type == "asset_triggered"
    snapshot = snapshot_of(live, woken)
    made = next(found for found in live.lake.table("shop.daily_revenue").history() if found.id == snapshot)
    assert made.properties["reads.shop.orders"] == str(published)
    revenue = live.lake.table("shop.daily_revenue").scan(where="dt = '2026-11-04'").to_arrow().to_pylist()
    assert [row["orders"] for row in revenue] == [ORDERS_A_DAY]


def test_airflows_own_backfill_brings_each_partition_of_its_range(live: Live) -> None:
    days = [date(2026, 10, day) for day in (5, 6, 7)]
    for day in days:
        write_day(live.home.landing, day)
    live.api.post(
        "/api/v2/backfills",
        {
            "dag_id": ORDERS,
            "from_date": "2026-10-05T00:00:00Z",
            "to_date": "2026-10-07T23:59:59Z",
            "max_active_runs": 2,
        },
    )
    runs = [green(live, live.watch.wait_for(ORDERS, day.isoformat())) for day in days]
    assert {run.run_type for run in runs} == {"backfill"}
    assert [rows_of(live, day.isoformat()) for day in days] == [ORDERS_A_DAY] * 3


def test_a_person_publishes_what_the_gate_rejected(live: Live) -> None:
    write_day(live.home.landing, date(2026, 11, 5), bad=True)
    trigger(live.api, ORDERS, partition="2026-11-05")
    run = live.watch.wait_for(ORDERS, "2026-11-05")
    assert run.state == "review"
    staged = returned(live.api, run, "stage_and_judge")
    assert rows_of(live, "2026-11-05") == 0
    assert live.lake.staged(staged["commit"]).scan(scope="staged").count() == ORDERS_A_DAY
    with pytest.raises(ApiError, match="403"):
        answer_review(live.viewer, run, choice="publish", reason="I would like to")
    answer_review(live.api, run, choice="publish", reason="known to be wrong")
    green(live, live.watch.wait_for_end(run.run_id))
    assert live.api.get(run.path)["note"].startswith("Lake: Published although its gate rejected it, by admin")
    assert rows_of(live, "2026-11-05") == ORDERS_A_DAY
    wrong = live.lake.table("shop.orders").scan(where="dt = '2026-11-05' and (customer_id is null or amount < 0)")
    assert wrong.count() == BAD_ORDERS


def test_a_discarded_day_fails_and_is_repaired_by_clearing_what_its_page_says(live: Live) -> None:
    day = date(2026, 11, 6)
    write_day(live.home.landing, day, bad=True)
    trigger(live.api, ORDERS, partition=day.isoformat())
    run = live.watch.wait_for(ORDERS, day.isoformat())
    answer_review(live.api, run, choice="discard", reason="not a single customer")
    run = live.watch.wait_for_end(run.run_id)
    assert (run.state, failed_tasks(live.api, run), rows_of(live, day.isoformat())) == ("failed", ["publish"], 0)
    write_correction(live.home.landing, day)
    clear(live, run, "stage_and_judge")
    green(live, live.watch.wait_for_end(run.run_id))
    assert rows_of(live, day.isoformat()) == ORDERS_A_DAY
    assert live.api.get(run.path)["note"] is None


def scheduled(live: Live) -> Run | None:
    return next((run for run in live.watch.look() if run.dag_id == ORDERS and run.run_type == "scheduled"), None)


def snapshot_of(live: Live, run: Run) -> int:
    """The snapshot that the run has published."""
    (published,) = returned(live.api, run, "publish")["published"]
    return int(published["snapshot"])
