"""The job maintain: what expires, what is deleted, what a dry run names, and how it goes on where something fails."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs import maintain
from lakelib import Lake, Table
from lakelib.storage.filesystem import Storage
from lakelib.storage.listing import FailedDelete
from tests.jobs.conftest import NewTable, RunJob


@pytest.fixture(autouse=True)
def swept(lake: Lake) -> None:
    """Nothing is left of other tests."""
    for name in lake.tables("shop"):
        lake.drop_table(f"shop.{name}")
    lake.vacuum(grace=timedelta(0))


@pytest.fixture
def table(new_table: NewTable) -> Table:
    """Three snapshots, of one file each."""
    made = new_table("id BIGINT NOT NULL", primary_key=["id"])
    for number in range(3):
        made.overwrite(pa.table({"id": [number]}))
    return made


def stored(table: Table) -> list[Path]:
    return list(Path(table.location.removeprefix("file://")).rglob("*.parquet"))


def test_expire_and_vacuum_in_one_run(table: Table, run_job: RunJob) -> None:
    tag = table.tag("first", at=1)
    ran = run_job("maintain", table.name, "--expire", "--vacuum", "--keep-last", 1, "--grace", "0s")
    assert ran.facts.pop("seconds") >= 0
    vacuum = ran.facts.pop("vacuum")
    assert ran.facts == {
        "job": "maintain",
        "ok": True,
        "exit_code": 0,
        "dry_run": False,
        "tables": [
            {
                "table": table.name,
                "snapshots": 1,
                "kept_back": {"tag first": 1},
                "held": [f"tag first (since {tag.created_at:%Y-%m-%d}, for ever): 1 snapshot (1)"],
                "commits": 0,
                "tags": 0,
                "leases": 0,
                "files": 1,
                "bytes": vacuum["bytes"],
                "oldest": 1,
            }
        ],
    }
    assert (vacuum["files"], vacuum["orphans"], vacuum["failed"], len(stored(table))) == (1, 0, [], 2)
    assert ", for ever): 1 snapshot (1)" in ran.out


def test_a_dry_run_names_each_file_and_deletes_none(table: Table, run_job: RunJob) -> None:
    table.expire(keep_last=1, grace=timedelta(0))
    orphan = stored(table)[0].with_name(f"upsert-{'0' * 32}-00000.parquet")
    orphan.write_bytes(b"")
    ran = run_job("maintain", "--all", "--vacuum", "--orphans-older-than", "0s", "--dry-run")
    named = {Path(line.removeprefix("would delete file://")) for line in ran.out.splitlines() if "would delete" in line}
    assert (ran.code, ran.facts["dry_run"], len(stored(table))) == (0, True, 4)
    run_job("maintain", "--all", "--vacuum", "--orphans-older-than", "0s")
    assert named == {orphan, *named} - set(stored(table))
    assert len(named) == 3


def test_a_dry_run_of_an_expiry_changes_nothing(table: Table, run_job: RunJob) -> None:
    ran = run_job("maintain", "--namespace", "shop", "--expire", "--older-than", "0s", "--dry-run")
    assert [(each["table"], each["snapshots"]) for each in ran.facts["tables"]] == [(table.name, 2)]
    assert len(table.history()) == 3


def test_without_rules_the_last_ten_and_the_last_week_stay(table: Table, run_job: RunJob) -> None:
    assert run_job("maintain", "--all", "--expire").facts["tables"][0]["snapshots"] == 0


def test_files_that_cannot_be_deleted_are_told_and_end_with_7(
    table: Table, run_job: RunJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.expire(keep_last=1, grace=timedelta(0))
    refused = lambda storage, paths: tuple(FailedDelete(path=path, reason="denied") for path in paths)  # noqa: E731
    monkeypatch.setattr(Storage, "delete_files", refused)
    ran = run_job("maintain", "--all", "--vacuum")
    assert (ran.code, ran.facts["ok"], ran.facts["error"]["kind"]) == (7, False, "files_not_deleted")
    assert [each["reason"] for each in ran.facts["vacuum"]["failed"]] == ["denied", "denied"]
    assert "could not delete 2 files" in ran.err
    assert len(stored(table)) == 3


def test_where_one_table_fails_the_others_are_done(table: Table, run_job: RunJob) -> None:
    ran = run_job("maintain", "shop.nothing", table.name, "--expire", "--vacuum", "--keep-last", 1)
    assert (ran.code, ran.facts["ok"], ran.facts["error"]["kind"]) == (4, False, "table_not_found")
    assert [each["table"] for each in ran.facts["tables"]] == [table.name, "shop.nothing"]
    assert "vacuum" in ran.facts
    assert "failed      shop.nothing" in ran.err
    assert len(table.history()) == 1


def test_a_namespace_that_is_not_there_ends_with_4(run_job: RunJob) -> None:
    assert run_job("maintain", "--namespace", "nothing", "--expire").code == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--all"], "--expire, --vacuum, or both"),
        (["--expire"], "tables by name"),
        (["shop.a", "--all", "--expire"], "tables by name"),
        (["shop.a", "--vacuum", "--keep-last", "3"], "for --expire"),
        (["--all", "--expire", "--older-than", "soon"], "a length of time"),
        (["--all", "--vacuum", "--result", "/nowhere/at/all.json"], "does not exist"),
    ],
)
def test_wrong_arguments_end_with_2_and_say_why(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[Any]
) -> None:
    with pytest.raises(SystemExit) as ended:
        maintain.main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
