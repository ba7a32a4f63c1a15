"""Jobs write to gated tables: judged by the suite that they are told or that the table requires, or refused at once."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelib import Lake, Table
from tests.acceptance.support import require_by_name
from tests.jobs.conftest import NewTable, RunJob

SCHEMA = "id BIGINT NOT NULL, amount BIGINT"
SUITE = """
name: {name}
expectations:
- type: expect_column_values_to_not_be_null
  kwargs: {{column: {column}}}
"""
_MISSING = "/nowhere/rows.parquet"


@pytest.fixture
def table(new_table: NewTable) -> Table:
    return new_table(SCHEMA, primary_key=["id"])


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Amounts that are there, and one file where one is missing."""
    for name, amounts in (("good", [5, 6]), ("bad", [7, None])):
        pq.write_table(pa.table({"id": [1, 2], "amount": pa.array(amounts, pa.int64())}), tmp_path / f"{name}.parquet")
    return tmp_path


def suite(folder: Path, name: str = "amounts", column: str = "amount") -> Path:
    file = folder / f"{name}.yaml"
    file.write_text(SUITE.format(name=name, column=column))
    return file


@pytest.mark.parametrize("job", ["upsert", "append", "overwrite"])
def test_a_job_has_its_rows_judged_by_the_suite_that_it_is_told(
    lake: Lake, table: Table, run_job: RunJob, rows: Path, job: str
) -> None:
    given = [table.name, "--gate", suite(rows)]
    refused = run_job(job, *given, "--path", rows / "bad.parquet")
    assert (refused.code, refused.facts["error"]["kind"], table.head) == (6, "gate_rejected", None)
    done = run_job(job, *given, "--path", rows / "good.parquet")
    verdict = lake.staged(done.facts["commit"]).verdict
    assert verdict is not None
    assert (done.code, verdict.gate, verdict.engine) == (0, "amounts", "spark")


def test_a_query_is_judged_too_and_without_a_suite_by_the_one_that_the_table_requires(
    lake: Lake, table: Table, run_job: RunJob, rows: Path
) -> None:
    table.require_gate(suite(rows), by="ada")
    query = "SELECT 1L AS id, CAST(NULL AS BIGINT) AS amount"
    refused = run_job("sql", "--into", table.name, "--mode", "upsert", "--sql", query)
    assert (refused.code, refused.facts["error"]["kind"], table.head) == (6, "gate_rejected", None)
    done = run_job("sql", "--into", table.name, "--mode", "upsert", "--sql", query.replace("NULL", "1"))
    verdict = lake.staged(done.facts["commit"]).verdict
    assert verdict is not None
    assert verdict.gate == "amounts"


def test_what_cannot_succeed_is_refused_before_a_file_is_looked_for(
    lake: Lake, table: Table, run_job: RunJob, rows: Path
) -> None:
    def refused(*given: object) -> tuple[int, str]:
        ran = run_job("upsert", table.name, "--path", _MISSING, *given)
        return ran.code, ran.facts["error"]["kind"]

    assert refused() == (4, "missing_file")
    assert refused("--gate", rows / "none.yaml") == (4, "file_not_found")
    assert refused("--gate", suite(rows, column="price")) == (3, "invalid_suite")
    require_by_name(lake, table, "amounts")
    assert refused() == (6, "verdict_missing")
    assert refused("--gate", suite(rows, name="others")) == (6, "verdict_missing")
    table.require_gate(suite(rows), by="ada")
    assert refused("--gate", suite(rows, name="others")) == (3, "gate_differs")
    assert refused("--gate", suite(rows)) == (4, "missing_file")


def test_a_mode_that_the_table_does_not_take_is_refused_before_a_file_is_looked_for(
    new_table: NewTable, run_job: RunJob
) -> None:
    keyless = new_table(SCHEMA, partition_by=["amount"])
    ran = run_job("upsert", keyless.name, "--path", _MISSING)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "no_primary_key")
    ran = run_job("overwrite", keyless.name, "--partitions", "day=1", "--path", _MISSING)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "invalid_partitions")
