"""A run that waits for its source: in a real triggerer, which is killed meanwhile."""

import os
import signal
from datetime import date
from urllib.parse import quote

import pytest

from infra.airflow.api import wait_for
from infra.airflow.lifecycle import running_parts
from infra.demo.runs import trigger
from infra.demo.shop import ORDERS_A_DAY, write_day
from tests.e2e.support import ORDERS, Live, green, rows_of

pytestmark = pytest.mark.timeout(900)
_DAY = date(2026, 8, 20)


def test_a_run_that_waits_for_its_source_outlives_the_triggerer(live: Live) -> None:
    run_id = trigger(live.api, ORDERS, partition=_DAY.isoformat())
    task = f"/api/v2/dags/{ORDERS}/dagRuns/{quote(run_id, safe='')}/taskInstances/wait_for_source"

    def looks() -> bool | None:
        found = live.api.get(task)
        return True if found["state"] == "deferred" and found["triggerer_job"] else None

    wait_for(looks, seconds=120, what="a triggerer that looks for the source")
    before = live.api.get(task)
    killed = running_parts(live.home)["triggerer"]
    os.kill(killed.pid, signal.SIGKILL)
    wait_for(
        lambda: True if running_parts(live.home).get("triggerer", killed) != killed else None,
        seconds=120,
        what="the keeper's work",
    )
    write_day(live.home.landing, _DAY)
    green(live, live.watch.wait_for_end(run_id, seconds=300))
    assert rows_of(live, _DAY.isoformat()) == ORDERS_A_DAY
    after = live.api.get(task)
    assert (after["state"], after["try_number"]) == ("success", 1)
    assert after["pid"] == before["pid"], "no other process has had the task"
