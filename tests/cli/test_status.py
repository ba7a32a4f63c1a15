"""`lake status`: tables and calendars, for people and for programs."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from lakelib import Lake, Table
from tests.cli.conftest import Run

D1, D2, D3 = (date(2026, 11, day) for day in (12, 13, 14))
_SPEC = """table: shop.late
columns: id BIGINT, dt DATE
primary_key: [id]
partition_by: [dt]
partition: {column: dt, every: day}
source: {path: "/in/{partition}/*.parquet", arrival: {timeout: 1s}}
schedule: {cron: "0 0 * * *", start: 2020-01-01}
spark: {timeout: 1s}
"""


@pytest.fixture(scope="module")
def daily(lake: Lake) -> Table:
    """Two days, the second of which waits for a person with a correction; and one that somebody decided against."""
    table = lake.create_table("shop.daily", "id BIGINT, dt DATE", primary_key=["id"], partition_by=["dt"])
    for day in (D1, D2):
        table.upsert(*_written(day)[:1], properties=_written(day)[1])
    table.stage_upsert(_written(D2)[0], properties=_written(D2)[1]).reject("twice \x1b[31mthe rows")
    table.stage_upsert(_written(D3)[0], properties=_written(D3)[1]).discard("ann", "not ours")
    return table


def _written(day: date) -> tuple[pa.Table, dict[str, str]]:
    data = pa.table({"id": pa.array([day.day], pa.int64()), "dt": pa.array([day], pa.date32())})
    return data, {"partition": str(day), "partition_by": "day dt"}


def test_all_tables_show_what_somebody_should_look_at(run: Run, daily: Table) -> None:
    (line,) = [line for line in run("status").lines if line.startswith("shop.daily")]
    assert "1 waiting, 1 rejected" in line
    document = run("status", "--json").document
    (told,) = [each for each in document["tables"] if each["table"] == "shop.daily"]
    assert (told["troubles"], told["snapshot"]) == ({"waiting": 1, "rejected": 1}, 2)
    assert [each["partition"] for each in told["waiting"]] == [str(D2)]


def test_a_table_shows_its_calendar_and_says_why(run: Run, daily: Table) -> None:
    ran = run("status", "shop.daily")
    assert "2026-11             ·?x" in ran.lines[ran.lines.index("") + 1]
    assert "ann decided against it: not ours" in ran.out
    assert "twice \\x1b[31mthe rows" in ran.out
    partitions = run("status", "shop.daily", "--json").document["partitions"]
    assert [(each["partition"], each["standing"]) for each in partitions] == [
        (str(D1), "published"),
        (str(D2), "waiting"),
        (str(D3), "rejected"),
    ]


def test_specs_say_what_is_due(run: Run, daily: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "late.yaml").write_text(_SPEC)
    (tmp_path / "wrong.yaml").write_text("table: shop.wrong\n")
    for words in (("status", "--specs", str(tmp_path)), ("status",)):
        monkeypatch.setenv("LAKE_TABLES", str(tmp_path) if len(words) == 1 else "")
        ran = run(*words)
        (line,) = [line for line in ran.lines if line.startswith("shop.late")]
        assert "1 missing" in line
        assert "wrong.yaml" in ran.err
    assert len(run("status", "shop.late", "--json").document["wrong_specs"]) == 1


def test_a_folder_of_specs_that_is_not_there_is_said(run: Run, daily: Table, tmp_path: Path) -> None:
    ran = run("status", "--specs", str(tmp_path / "none"), "--json")
    assert (ran.code, ran.out) == (4, "")
    assert "folder_not_found" in ran.err
