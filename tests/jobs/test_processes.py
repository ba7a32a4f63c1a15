"""Jobs as processes of their own, as schedulers start them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelib import Lake
from tests.jobs.conftest import NewTable, rows_of

ROOT = Path(__file__).resolve().parents[2]
_QUIET = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.driver.bindAddress": "127.0.0.1"}


def _environment(lake: Lake) -> dict[str, str]:
    settings = {"LAKE_WAREHOUSE": lake.settings.warehouse, "LAKE_CATALOG": str(lake.settings.catalog)}
    return {**os.environ, **settings, "SPARK_LOCAL_IP": "127.0.0.1"}


def _run(command: list[str], environment: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": [1, 2], "dt": pa.nulls(2, pa.date32())}), path)
    return path


def test_a_job_runs_under_spark_submit_and_its_exit_code_comes_through(
    lake: Lake, new_table: NewTable, rows: Path, tmp_path: Path
) -> None:
    """The script is all that spark-submit is told of: the folder is not on Python's path."""
    table, result = new_table(), tmp_path / "result.json"
    submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]"]
    submit += [part for name, value in _QUIET.items() for part in ("--conf", f"{name}={value}")]
    environment = _environment(lake) | {"PYSPARK_PYTHON": sys.executable}
    environment.pop("PYTHONPATH", None)
    job = [str(ROOT / "jobs" / "upsert.py"), "--path", str(rows), "--result", str(result), "--progress"]
    ended = _run([*submit, *job, table.name], environment, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(result.read_text())["rows_in"] == 2
    assert rows_of(table, "id") == [(1,), (2,)]
    ended = _run([*submit, *job, "shop.nothing"], environment, tmp_path)
    assert ended.returncode == 4, ended.stderr


def test_what_a_session_of_a_job_makes_of_moments_does_not_depend_on_the_machine(lake: Lake, tmp_path: Path) -> None:
    program = (
        "from lakelib.pipeline.sessions import opened_session\n"
        "from tests.understood import understood\n"
        "around = understood('compact', ['--all', '--master', 'local[1]']).surroundings\n"
        "with opened_session('zones', around, None) as session:\n"
        "    found = session.sql(\"select current_timezone(), cast(timestamp'2026-03-08T02:30:00Z' as string),\"\n"
        "                        \" unix_timestamp(cast('2026-03-08 02:30:00' as timestamp))\").first()\n"
        "print(*found, sep='|')\n"
    )
    environment = _environment(lake) | {"TZ": "America/New_York", "PYTHONPATH": str(ROOT)}
    ended = _run([sys.executable, "-c", program], environment, tmp_path)
    assert ended.stdout.strip() == "UTC|2026-03-08 02:30:00|1772937000", ended.stderr


def test_a_job_runs_as_a_module_with_a_session_of_its_own(
    lake: Lake, new_table: NewTable, rows: Path, tmp_path: Path
) -> None:
    table = new_table()
    environment = _environment(lake) | {"SPARK_MASTER": "local[1]"}
    environment.pop("PYSPARK_PYTHON", None)
    ended = _run([sys.executable, "-m", "jobs.append", table.name, "--path", str(rows)], environment, ROOT)
    assert ended.returncode == 0, ended.stderr
    assert f"append {table.name}\n  snapshot    1, append" in ended.stdout
    assert rows_of(table, "id") == [(1,), (2,)]
