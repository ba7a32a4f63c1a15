"""Promises of a verdict's report: what failed, in which rows, how it was before, and how to see it."""

import shlex
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelib import Lake, Table
from lakelib.gates.failing import tell_failures
from lakelib.ops import report
from lakelib.ops.report import find_out
from lakelib.specs.suite import Suite, parse_suite
from tests.acceptance.support import NewTable, data

COLUMNS = {"id": pa.int64(), "dt": pa.string(), "amount": pa.int32(), "email": pa.string()}
DAY, DAY_BEFORE = "2026-11-18", "2026-11-17"
SUITE = """
name: orders
expectations:
- name: amounts
  type: expect_column_values_to_be_between
  kwargs: {column: amount, min_value: 0, max_value: 100}
- name: mails
  type: expect_column_values_to_match_regex
  kwargs: {column: email, regex: "@"}
- name: hidden
  type: expect_column_values_to_not_be_null
  kwargs: {column: amount}
  sample: 0
- name: few
  type: expect_table_row_count_to_be_between
  kwargs: {max_value: 3}
"""


@pytest.fixture
def table(new_table: NewTable) -> Table:
    return new_table("id BIGINT, dt DATE, amount INT, email STRING", primary_key=["id"], partition_by=["dt"])


def suite() -> Suite:
    return parse_suite(SUITE)


def rows(day: str, *given: tuple[int, int | None, str]) -> pa.Table:
    return data(COLUMNS, *((number, day, amount, email) for number, amount, email in given))


def stage(table: Table, day: str, *given: tuple[int, int | None, str], **options: Any) -> Any:
    told = {"partition": day, "source": f"/in/{day}", "source_files": "a.json, b.json"}
    return table.stage_upsert(rows(day, *given), explicit_cast=True, properties=told, gate=suite(), **options)


WRONG = ((1, 5, "a@b"), (2, -1, "a@b"), (3, -1, "nobody"), (4, 700, "a@b"), (5, None, "a@b"))


def test_the_rows_that_failed_are_counted_by_value_and_named_by_key(lake: Lake, table: Table) -> None:
    staged = stage(table, DAY, *WRONG, idempotency_key=("airflow/days/run", 1))
    found = find_out(lake.runtime, staged.verdict)
    assert (found.partition, found.source, found.run, found.rows) == (DAY, f"/in/{DAY}", "airflow/days/run", 5)
    amounts = found.failing["amounts"]
    assert sorted(key["id"] for key in amounts.keys) == [2, 3, 4]
    assert set(amounts.keys[0]) == {"id", "dt"}
    assert amounts.values == ((-1, 2), (700, 1))
    assert [key["id"] for key in found.failing["mails"].keys] == [3]
    assert (found.failing["hidden"].keys, found.failing["hidden"].values) == ((), ())
    assert "few" not in found.failing
    lines = tell_failures(staged.verdict, found)
    assert [line.partition(" (")[0] for line in lines] == ["amounts", "mails", "hidden", "few"]
    assert lines[0].startswith("amounts (critical): 3 of 5 rows, 60.00 %; such as id=")


def test_the_report_says_where_rows_come_from_what_failed_and_how_it_was_the_day_before(
    table: Table, tmp_path: Path
) -> None:
    stage(table, DAY_BEFORE, (9, 5, "a@b"), (8, 5, "nobody")).publish(by="ada", reason="known")
    text = unescape(stage(table, DAY, *WRONG).report(tmp_path / "report.html").read_text())
    for said in (
        DAY,
        f"/in/{DAY}",
        "a.json, b.json",
        f"{DAY_BEFORE}: 2",
        f"{DAY_BEFORE}, the partition before: 1 of 2 rows, 50.00 %",
        f"{DAY_BEFORE}, the partition before: observed 2",
        "<code>-1</code> × 2",
        "Such rows",
        "lake scan",
    ):
        assert said in text.replace("<bdi>", "").replace("</bdi>", ""), said


def test_the_command_shows_just_the_rows_that_failed(lake: Lake, table: Table) -> None:
    staged = stage(table, DAY, *WRONG)
    words = shlex.split(find_out(lake.runtime, staged.verdict).failing["amounts"].command)
    assert words[:5] == ["lake", "scan", table.name, "--staged", str(staged.id)]
    shown = staged.scan(where=words[words.index("--where") + 1], scope="staged").to_arrow()
    assert sorted(shown["id"].to_pylist()) == [2, 3, 4]


def test_values_that_nobody_is_to_see_are_in_neither_report_nor_line(lake: Lake, table: Table, tmp_path: Path) -> None:
    table.set_options({"sensitive_columns": "email, amount"})
    staged = stage(table, DAY, (2, -777, "secret"), (3, 1, "a@b"))
    found = find_out(lake.runtime, staged.verdict)
    told = "\n".join([*tell_failures(staged.verdict, found), staged.report(tmp_path / "report.html").read_text()])
    assert not any(secret in told for secret in ("777", "secret"))
    assert found.failing["amounts"].values == (("***", 1),)


def test_a_report_of_rows_that_are_gone_is_made_all_the_same(lake: Lake, table: Table, tmp_path: Path) -> None:
    staged = stage(table, DAY, *WRONG)
    location = Path(table.location.removeprefix("file://"))
    for file in location.rglob("*.parquet"):
        file.unlink()
    assert find_out(lake.runtime, staged.verdict).failing == {}
    assert "3</b> of 5 rows" in staged.report(tmp_path / "report.html").read_text()


def test_who_makes_a_report_does_not_read_for_ever(
    lake: Lake, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large commit the values that the verdict has are shown, and the command that finds the rows."""
    staged = stage(table, DAY, *WRONG)
    monkeypatch.setattr(report, "_MOST_BYTES", 10)
    found = find_out(lake.runtime, staged.verdict).failing["amounts"]
    assert (found.keys, found.values, found.has_more) == ((), (), True)
    page = staged.report(tmp_path / "report.html").read_text()
    assert "<code>-1</code>" in page
    assert found.command.split()[:3] == ["lake", "scan", table.name]
