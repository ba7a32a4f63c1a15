"""Who does what in a live Airflow: tables follow their specs without a restart, and no task owns the lake."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil
import psycopg
import pytest

from infra.airflow.api import wait_for
from infra.airflow.instance import PROJECT
from infra.demo.runs import trigger, unpause
from lakelib.errors import NotFoundError
from tests.e2e.support import Live, green, wait_for_job

pytestmark = pytest.mark.timeout(1200)

TABLE, DAG = "shop.returns", "ingest__shop__returns"
DAY = "2026-11-03"
SPEC = """\
table: shop.returns
columns: {columns}
primary_key: [return_id]
partition_by: [dt]
source: {{format: json, path: "${{LANDING}}/returns/{{partition}}/*.json"}}
write: {{merge_schema: true}}
partition: {{column: dt, every: day}}
gate: ../gates/returns.yaml
retries: {{count: 3, delay: 2s}}
"""
GATE = """\
name: returns
expectations:
"""
CHECK = "  - {{type: expect_column_values_to_not_be_null, kwargs: {{column: {column}}}}}\n"


def test_a_spec_that_is_dropped_in_is_carried_out_by_tasks_that_do_not_own_the_lake(live: Live) -> None:
    write_spec(live, "return_id BIGINT, dt DATE", "return_id")
    deliver(live, [{"return_id": 1, "dt": DAY}, {"return_id": 2, "dt": DAY}])
    wait_for(lambda: knows_dag(live), seconds=180, what="the DAG of the new spec")
    unpause(live.api, DAG)
    run_id = trigger(live.api, DAG, conf={"partition": DAY})
    environment = environment_of_job(live, run_id)
    green(live, live.watch.wait_for_end(run_id))
    assert sorted(rows(live)) == [(1, None), (2, None)]

    check_that_it_owns_nothing(live, environment)

    write_spec(live, "return_id BIGINT, dt DATE, reason STRING", "return_id", "reason")
    wait_for(lambda: requires_version(live, 2), seconds=60, what="the keeper's work")
    deliver(live, [{"return_id": 2, "dt": DAY, "reason": "torn"}])
    green(live, live.watch.wait_for_end(trigger(live.api, DAG, conf={"partition": DAY})))
    assert sorted(rows(live)) == [(1, None), (2, "torn")]


def check_that_it_owns_nothing(live: Live, environment: Mapping[str, str]) -> None:
    """With what a task has in its environment."""
    refused = {
        "release": ["gate", "release", TABLE, "--by", "task", "--reason", "in the way"],
        "grant": ["grant", "owner", "lake_jobs"],
    }
    for words in refused.values():
        done = subprocess.run(
            [sys.executable, "-m", "lakelib.cli", *words, "--json"],
            env=dict(environment),
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 3, done.stderr
        assert json.loads(done.stderr)["error"]["kind"] == "catalog_refused"
    assert requires_version(live, 1)
    with psycopg.connect(environment["LAKE_CATALOG"], autocommit=True) as db:
        for text in ("set role lake_owner_postgres", "set role postgres", "delete from lake.gate_requirement"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(text.encode())


def environment_of_job(live: Live, run_id: str) -> dict[str, str]:
    attempt = wait_for_job(live, DAG, run_id, "stage_and_judge")
    found: dict[str, str] = psutil.Process(int((attempt / "process").read_text().split()[0])).environ()
    return found


def write_spec(live: Live, columns: str, *checked: str) -> None:
    """The gate first: a spec whose suite is not there is wrong."""
    folder = Path(live.environment["LAKE_TABLES"])
    checks = "".join(CHECK.format(column=column) for column in checked)
    (folder.parent / "gates" / "returns.yaml").write_text(GATE + checks)
    (folder / "returns.yaml").write_text(SPEC.format(columns=columns))


def deliver(live: Live, found: list[dict[str, object]]) -> None:
    folder = live.home.landing / "returns" / DAY
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "returns.json").write_text("".join(json.dumps(row) + "\n" for row in found))
    (folder / "_READY").touch()


def knows_dag(live: Live) -> bool | None:
    return True if DAG in {dag["dag_id"] for dag in live.api.get("/api/v2/dags", limit=100)["dags"]} else None


def requires_version(live: Live, version: int) -> bool | None:
    try:
        required = live.lake.table(TABLE).required_gate
    except NotFoundError:
        return None
    return True if required is not None and required.version == version else None


def rows(live: Live) -> list[tuple[int, str | None]]:
    found = live.lake.table(TABLE).scan().to_arrow().to_pylist()
    return [(row["return_id"], row.get("reason")) for row in found]
