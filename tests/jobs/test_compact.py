"""The job compact: which tables it takes, where it runs, and what it tells."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from jobs import compact
from lakelib import Lake, Table
from tests.jobs.conftest import NewTable, RunJob, rows_of

_IN_PROCESS = """
import sys
from jobs import compact
code = compact.main(sys.argv[1:])
assert "pyspark" not in sys.modules
sys.exit(code)
"""


@pytest.fixture
def table(new_table: NewTable) -> Table:
    """A key in four runs."""
    table = new_table()
    for number in range(4):
        names = pa.table({"id": [1, 2 + number], "dt": pa.nulls(2, pa.date32()), "name": [str(number), "x"]})
        table.upsert(names)
    return table


def test_the_result_says_for_each_table_what_was_done(table: Table, new_table: NewTable, run_job: RunJob) -> None:
    other, rows = new_table(), rows_of(table)
    ran = run_job("compact", table.name, other.name, "--full")
    assert (ran.code, ran.facts["job"], ran.facts["ok"]) == (0, "compact", True)
    done, nothing = ran.facts["tables"]
    assert (done["table"], done["snapshot"], done["files_before"], done["files_after"]) == (table.name, 5, 4, 1)
    assert (nothing["table"], nothing["snapshot"], nothing["snapshots"]) == (other.name, None, [])
    assert f"compacted {table.name}: 4 files" in ran.out
    assert rows_of(table) == rows
    assert len(table.files()) == 1


def test_what_is_not_due_is_left_alone(new_table: NewTable, run_job: RunJob) -> None:
    table = new_table(options={"compact_delta_percent": 10_000}, primary_key=["id"])
    for number in range(2):
        table.upsert(pa.table({"id": [number]}))
    assert run_job("compact", table.name).facts["tables"][0]["units"] == 0
    assert run_job("compact", table.name, "--full").facts["tables"][0]["units"] == 1


def test_partitions_are_chosen_by_their_values(new_table: NewTable, run_job: RunJob) -> None:
    table = new_table("id bigint, p string", primary_key=["id"], partition_by=["p"])
    for _ in range(2):
        table.upsert(pa.table({"id": [1, 2], "p": ["a", "b"]}))
    ran = run_job("compact", table.name, "--full", "--where", "p = 'a'")
    assert ran.facts["tables"][0]["partitions"] == 1
    assert sorted(file.partition["p"] for file in table.files()) == ["a", "b", "b"]


def test_of_a_namespace_all_tables_are_compacted_whatever_fails(
    table: Table, lake: Lake, new_table: NewTable, run_job: RunJob
) -> None:
    unpartitioned = new_table("id bigint", primary_key=["id"])
    ran = run_job("compact", "--namespace", "shop", "--full", "--where", "dt is null")
    tables = {each["table"]: each for each in ran.facts["tables"]}
    assert ran.code == 3
    assert tables[unpartitioned.name]["error"]["kind"] == "unknown_column"
    assert ran.facts["error"]["family"] == "InvalidInputError"
    assert tables[table.name]["files_after"] == 1
    assert tables.keys() == {f"shop.{name}" for name in lake.tables("shop")}


def test_a_table_that_is_not_there_is_told(run_job: RunJob) -> None:
    ran = run_job("compact", "shop.nothing")
    assert (ran.code, ran.facts["error"]["kind"]) == (4, "table_not_found")


@pytest.mark.parametrize("wrong", [[], ["shop.a", "--all"], ["--all", "--namespace", "shop"]])
def test_tables_are_said_in_one_way(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        compact.main(wrong)
    assert ended.value.code == 2


def test_without_a_master_it_runs_in_process_without_spark(table: Table, lake: Lake, tmp_path: Path) -> None:
    settings, result = lake.settings, tmp_path / "result.json"
    place = ["--warehouse", settings.warehouse, "--catalog", str(settings.catalog), "--result", str(result)]
    ended = subprocess.run(
        [sys.executable, "-c", _IN_PROCESS, table.name, "--full", *place], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(result.read_text())["tables"][0]["files_before"] == 4
