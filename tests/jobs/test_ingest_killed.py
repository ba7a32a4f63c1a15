"""A job that is killed at any stage leaves all or nothing of it, and the same job again finishes the work once."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import psutil
import psycopg
import pytest

from lakelib import Lake
from tests.jobs.conftest import Ran, RunJob, rows_of
from tests.jobs.ingest_support import DAY, Shop, new_shop, order

ROOT = Path(__file__).resolve().parents[2]
KEY = "killed:1"
_CHECK = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "status"}, "scope": "merged"}

Kill = Callable[..., None]


@pytest.fixture(params=["spark", "local"])
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Shop:
    shop = new_shop(tmp_path)
    (shop.folder / "all.sql").write_text("SELECT * FROM source")
    shop.write_spec(gate=shop.write_gate(_CHECK), engine=request.param, transform="all.sql")
    shop.deliver([order(1), order(2)])
    return shop


@pytest.fixture
def kill(lake: Lake) -> Kill:
    """`kill("after", "stage", "ingest", …)`: the job in a process of its own, which ends at that moment."""

    def run(moment: str, query: str, job: str, *arguments: object) -> None:
        settings = lake.settings
        environment = {
            **os.environ,
            "LAKE_WAREHOUSE": settings.warehouse,
            "LAKE_CATALOG": str(settings.catalog),
            "SPARK_MASTER": "local[1]",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        command = [sys.executable, "-m", "tests.jobs.killed_job", moment, query, job, *map(str, arguments)]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _, errors = process.communicate(timeout=180)
        finally:
            _end_session(process.pid)
        assert process.returncode == -signal.SIGKILL, errors.decode()

    return run


def _end_session(leader: int) -> None:
    """Spark's JVM ends when its driver is gone, but takes its time."""
    rest = [each for each in psutil.process_iter() if _session_of(each.pid) == leader]
    for each in rest:
        each.kill()
    psutil.wait_procs(rest)


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _ingest(shop: Shop) -> tuple[object, ...]:
    return ("ingest", "--spec", shop.spec, "--partition", DAY, "--idempotency-key", KEY)


def _states(lake: Lake, shop: Shop) -> list[str]:
    """Of all commits of the table, by time."""
    with psycopg.connect(str(lake.settings.catalog)) as connection:
        rows = connection.execute(
            'select c.state from lake.commit c join lake."table" t on t.id = c.table_id'
            " where t.namespace || '.' || t.name = %s order by c.staged_at",
            [shop.table],
        ).fetchall()
    return [state for (state,) in rows]


def _finish(run_job: RunJob, shop: Shop) -> Ran:
    """What a scheduler does after a crash: the same jobs again."""
    ingested = run_job(*_ingest(shop))
    assert (ingested.code, ingested.facts["outcome"]) == (0, "accept"), ingested.err
    published = run_job("publish", "--commit", ingested.facts["commit"], "--spec", shop.spec)
    assert published.code == 0, published.err
    return ingested


@pytest.mark.parametrize(
    ("moment", "query", "staged_before"),
    [
        ("before", "stage", False),
        ("after", "stage", True),
        ("after", "judge", True),
    ],
)
def test_an_ingest_that_was_killed_is_finished_by_the_next(
    moment: str, query: str, staged_before: bool, shop: Shop, kill: Kill, run_job: RunJob, lake: Lake
) -> None:
    kill(moment, query, *_ingest(shop))
    assert lake.table(shop.table).head is None
    assert _states(lake, shop) == ["staged"] * staged_before
    ingested = _finish(run_job, shop)
    assert ingested.facts["adopted"] is staged_before
    assert _states(lake, shop) == ["published"]
    assert rows_of(lake.table(shop.table), "order_id") == [(1,), (2,)]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_publish_that_was_killed_is_finished_by_the_next(
    moment: str, shop: Shop, kill: Kill, run_job: RunJob, lake: Lake
) -> None:
    commit = run_job(*_ingest(shop)).facts["commit"]
    kill(moment, "publish", "publish", "--commit", commit)
    assert lake.staged(UUID(commit)).state == {"before": "staged", "after": "published"}[moment]
    published = run_job("publish", "--commit", commit)
    assert published.facts["published"] == [{"table": shop.table, "commit": commit, "snapshot": 1}]
    assert _states(lake, shop) == ["published"]
    again = run_job(*_ingest(shop))
    assert (again.facts["state"], again.facts["snapshot"]) == ("published", 1)
