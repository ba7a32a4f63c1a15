"""What a job does not need it does not load: a process that publishes is not to wait for Spark."""

import os
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from lakelib import Lake
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


def _staged(lake: Lake, shop: Shop) -> UUID:
    """The newest commit of the shop's table."""
    with lake.runtime.catalog.transaction() as connection:
        (found,) = connection.execute(
            "SELECT c.id FROM lake.commit c JOIN lake.table t ON t.id = c.table_id WHERE t.name = %s"
            " ORDER BY c.created_at DESC LIMIT 1",
            [shop.table.partition(".")[2]],
        ).fetchall()
    return UUID(str(found["id"]))


def test_a_partition_that_is_brought_by_the_job_itself_loads_no_spark(shop: Shop, lake: Lake) -> None:
    shop.write_spec(engine="local", gate=shop.write_gate(NOT_NULL))
    shop.deliver([order(1)])
    work = ("--spec", shop.spec, "--partition", DAY)
    assert _loaded(lake, "ingest", *work, "--idempotency-key", "light:1") == "0"
    first = _staged(lake, shop)
    (shop.folder / "tidy.sql").write_text(TIDY)
    shop.write_spec(engine="local", gate="gate.yaml", transform="tidy.sql")
    assert _loaded(lake, "ingest", *work, "--idempotency-key", "light/b:1") == "0 duckdb"
    second = _staged(lake, shop)
    assert _loaded(lake, "publish", "--commit", first) == "0"
    assert _loaded(lake, "publish", "--commit", second, "--spec", shop.spec) == "0", "it is judged again"
    assert _loaded(lake, "ingest", *work, "--idempotency-key", "light:1") == "3", "it was made in another way"


def test_what_follows_loads_no_spark(shop: Shop, lake: Lake) -> None:
    shop.write_spec(engine="local")
    shop.deliver([order(1)])
    work = ("--spec", shop.spec, "--partition", DAY)
    assert _loaded(lake, "ingest", *work, "--idempotency-key", "light:1") == "0"
    assert _loaded(lake, "discard", "--commit", _staged(lake, shop), "--reason", "a try") == "0"
    assert _loaded(lake, "maintain", shop.table, "--expire", "--dry-run") == "0"
    assert _loaded(lake, "compact", shop.table) == "0"


def test_a_source_that_is_not_there_is_said_without_spark(shop: Shop, lake: Lake) -> None:
    """Whatever the engine."""
    shop.write_spec()
    work = ("--spec", shop.spec, "--partition", DAY)
    assert _loaded(lake, "ingest", *work, "--idempotency-key", "light:1") == "4"


def test_tags_and_done_marks_of_airflow_load_no_spark() -> None:
    """Their modules are what the worker has besides Airflow."""
    program = (
        "import sys; sys.path.insert(0, 'dags'); import lakelib.lake, lakelib.ops.mark_done, lakelib.ops.tags;"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert ended.stdout == "[]\n"
