"""`lake sql` on Spark, as the job and by the address of a master or server, says what it says in this process."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs import sql
from lakelib import Lake, Table
from lakelib.cli.main import main
from tests.jobs.conftest import NewTable

Said = Callable[..., str]


@pytest.fixture
def orders(new_table: NewTable, lake: Lake) -> Table:
    table = new_table()
    for rows in (
        "(1, DATE '2026-11-18', 1.5, 'a', NULL), (2, NULL, NULL, 'b', NULL)",
        "(1, DATE '2026-11-18', 2, 'c', NULL)",
    ):
        lake.sql(f"INSERT INTO {table.name} VALUES {rows}")
    return table


@pytest.fixture
def said(lake: Lake, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Said:
    """What a command prints, by a job with the test's session or in this process."""

    def say(*words: str, job: bool = True) -> str:
        given = [*words, "--warehouse", lake.settings.warehouse, "--catalog", str(lake.settings.catalog)]
        code = sql.main(given, spark) if job else main(["sql", *given])
        told = capsys.readouterr()
        assert code == 0, told.err
        return told.out

    return say


@pytest.mark.parametrize("format", ["table", "json", "csv"])
def test_a_query_is_answered_alike(said: Said, orders: Table, format: str) -> None:
    query = f"SELECT id, amount, name, _commit AS c FROM {orders.name} WHERE id < $most ORDER BY id"
    words = [query.replace("$most", "3"), "--format", format]

    found = said(*words)

    assert found == said(*words, job=False)
    assert "2.00" in found


def test_rows_go_into_a_file(said: Said, orders: Table, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.csv" for name in ("job", "here")]
    for file, is_job in zip(files, (True, False), strict=True):
        said(f"SELECT * FROM {orders.name} ORDER BY id", "--output", str(file), job=is_job)

    assert files[0].read_text() == files[1].read_text()


def test_no_more_rows_are_asked_for_than_are_shown(said: Said, orders: Table) -> None:
    assert said("SELECT explode(sequence(1, 1000000)) AS n", "--limit", "2", "--json") == '{"n": 1}\n{"n": 2}\n'


def test_a_statement_that_changes_something_is_told(said: Said, orders: Table) -> None:
    text = f"INSERT INTO {orders.name} (id, dt) SELECT id + 10, dt FROM {orders.name}"

    assert '"rows_written": 2' in said(text, "--json")
    assert orders.scan().count() == 4
    assert "upserted" in said(f"EXPLAIN {text}")
