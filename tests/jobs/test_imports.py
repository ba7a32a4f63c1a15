"""What a job does not need it does not load: a process that publishes is not to wait for Spark."""

import json
import os
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from lakelib import Lake
from lakelib.specs.table_spec import load_spec
from tests.jobs.ingest_support import DAY, Shop, new_shop, order

ROOT = Path(__file__).resolve().parents[2]
NOT_NULL = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "status"}, "scope": "merged"}
TIDY = "SELECT order_id, dt, lower(trim(status)) AS status, amount, updated_at FROM source"
HEAVY = ("airflow", "duckdb", "great_expectations", "py4j", "pyspark")
"""pandas is not among them: where it is installed, Arrow loads it to look whether a list is a frame."""
PROGRAM = """
import sys
from jobs.{job} import main
code = main(sys.argv[1:])
print(code, *[name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""


TASKS = """
import os, sys
sys.path.insert(0, "dags")
path, day, *heavy = sys.argv[1:]
from lake_dags import actions
from lake_dags.sensor import look
from lakelib.specs.table_spec import load_spec
spec = load_spec(path)
assert look(spec.source_path(day, os.environ), spec.marker_path(day, os.environ)).is_complete
print([name for name in (*heavy, "psycopg", "sqlglot") if name in sys.modules])
actions.tag_snapshot(spec, day, 1)
actions.mark_done(spec, day, 1)
actions.changed_keys(spec, day, 1, tuple)
print([name for name in heavy if name in sys.modules])
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return new_shop(tmp_path)


def _loaded(lake: Lake, job: str, *arguments: object) -> str:
    """How the job ended, and what of the heavy modules it loaded."""
    settings = {"LAKE_WAREHOUSE": lake.settings.warehouse, "LAKE_CATALOG": str(lake.settings.catalog)}
    program = PROGRAM.format(job=job, heavy=HEAVY)
    command = [sys.executable, "-c", program, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, env=os.environ | settings)
    return ended.stderr.splitlines()[-1]


def _staged(lake: Lake, shop: Shop, key: str) -> str:
    """A partition is brought; its commit."""
    result = shop.folder / "result.json"
    work = ("--spec", shop.spec, "--partition", DAY, "--idempotency-key", key, "--result", result)
    told = _loaded(lake, "ingest", *work)
    assert told == ("0 duckdb" if load_spec(shop.spec).transform else "0")
    return str(json.loads(result.read_text())["commit"])


def test_a_partition_that_the_job_itself_brings_loads_no_spark(shop: Shop, lake: Lake) -> None:
    shop.write_spec(engine="local", gate=shop.write_gate(NOT_NULL))
    shop.deliver([order(1)])
    first = _staged(lake, shop, "light:1")
    (shop.folder / "tidy.sql").write_text(TIDY)
    shop.write_spec(engine="local", gate="gate.yaml", transform="tidy.sql")
    second = _staged(lake, shop, "light/b:1")
    assert _loaded(lake, "publish", "--commit", first) == "0"
    assert _loaded(lake, "publish", "--commit", second, "--spec", shop.spec) == "0", "it is judged again"
    verdict = lake.staged(UUID(second)).verdict
    assert verdict is not None
    assert verdict.base_snapshot_id == 1


def test_what_follows_loads_no_spark(shop: Shop, lake: Lake) -> None:
    shop.write_spec(engine="local")
    shop.deliver([order(1)])
    commit = _staged(lake, shop, "light:1")
    assert _loaded(lake, "discard", "--commit", commit, "--reason", "a try") == "0"
    assert _loaded(lake, "maintain", shop.table, "--expire", "--dry-run") == "0"
    assert _loaded(lake, "compact", shop.table) == "0"


def test_a_source_that_is_not_there_is_said_without_spark(shop: Shop, lake: Lake) -> None:
    """Whatever the engine."""
    shop.write_spec()
    work = ("--spec", shop.spec, "--partition", DAY)
    assert _loaded(lake, "ingest", *work, "--idempotency-key", "light:1") == "4"


def test_what_tasks_of_airflow_do_themselves_loads_no_spark(shop: Shop, lake: Lake) -> None:
    """And who only looks for a source loads no driver of the catalog and no parser."""
    shop.write_spec(engine="local", publish="{tag: {name: 'dt-{partition}', keep: 9d}, mark_done: [done_partition]}")
    shop.deliver([order(1)])
    assert _loaded(lake, "publish", "--commit", _staged(lake, shop, "light:1")) == "0"
    settings = {"LAKE_WAREHOUSE": lake.settings.warehouse, "LAKE_CATALOG": str(lake.settings.catalog)}
    command = [sys.executable, "-c", TASKS, str(shop.spec), DAY, *HEAVY[1:]]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, env=os.environ | settings)
    assert ended.stdout.splitlines()[-2:] == ["[]", "[]"]
    assert [tag.snapshot_id for tag in lake.table(shop.table).tags()] == [1]
