"""Command lines are taken as they are meant, or refused."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from lakelib import Table
from lakelib.cli.main import main
from lakelib.pipeline.outcome import explain_failure
from tests.cli.conftest import Run
from tests.cli.test_decide import stage
from tests.understood import asked_for

UPSERT = ["upsert", "shop.orders", "--sql", "SELECT 1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["expire", "shop.orders", "--keep", "3"], "unknown arguments: --keep\n"),
        (["tables", "a", "b", "c"], "unknown arguments: 2 too many\n"),
        (["scan", "shop.orders", "--where", "a > 1", "-w", "a > 2"], "-w is given twice\n"),
        (["reject", str(uuid4()), "--reason", "--debug"], "--reason is without its value; "),
        (["reject", str(uuid4()), "--reason"], "--reason is without its value; "),
        ([*UPSERT, "--catlog=postgresql://u:hunter2@h/db", "--resu", "x"], "unknown arguments: --catlog, --resu\n"),
        ([*UPSERT, "--option", "header"], "--option 'header' is not NAME=VALUE"),
        ([*UPSERT, "--property", "a=1", "--property", "a=2"], "--property names 'a' twice"),
        (["compact"], "give tables by name, or --namespace NAMESPACE, or --all"),
        (["publish"], "Name commits"),
    ],
)
def test_what_is_not_meant_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.err.startswith("error: ")
    assert said in told.err
    assert "hunter2" not in told.err
    assert told.out == ""


def test_wrong_arguments_of_a_job_are_told_to_programs_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", "--json", "--spec", "a"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["kind"] == "wrong_usage"


def test_paths_follow_their_option_up_to_the_next_one() -> None:
    asked = asked_for(["append", "shop.orders", "--path", "a", "b=c", "--format", "csv", "--path", "d"])
    assert asked.source.paths == ("a", "b=c", "d")
    asked = asked_for(["overwrite", "--path=a", "--partitions", "dt=2026-11-18", "p=", "--", "shop.orders"])
    assert (asked.table, asked.source.paths, asked.partitions) == ("shop.orders", ("a",), {"dt": "2026-11-18", "p": ""})


def test_names_behind_two_dashes_are_no_options() -> None:
    assert asked_for(["compact", "--full", "--", "--all", "-x"]).selection.tables == ("--all", "-x")


def test_a_value_may_begin_with_a_dash_where_it_is_no_option() -> None:
    assert asked_for([*UPSERT, "--aux-order", "-a"]).write["aux_order"] == ("-a",)


def test_a_value_may_be_named_as_an_argument_is(run: Run, orders: Table) -> None:
    assert "customer 1" in run("scan", orders.name, "--format", "table").out


def test_what_takes_rows_or_files_away_is_a_dry_run_until_it_is_meant(run: Run, orders: Table) -> None:
    asked = ["overwrite", orders.name, "--sql", "SELECT 1"]
    assert run(*asked, "--json").document == {"dry_run": True, "replaces": "all"}
    assert "nothing was changed; --yes does it" in run(*asked, "--partitions", "dt=2026-11-18").out
    assert run(*asked, "--partitions", "nope=1").code == 3
    assert run("sql", "--into", orders.name, "--mode", "overwrite", "--sql", "x", "--json").document["dry_run"] is True
    assert [asked_for(["maintain", "--vacuum", *more]).dry_run for more in ([], ["--dry-run"], ["--yes"])] == [
        True,
        True,
        False,
    ]
    assert orders.head is not None
    assert orders.head.id == 2


# How work ends


def test_a_result_has_the_facts_of_json_and_how_it_ended(run: Run, orders: Table, tmp_path: Path) -> None:
    staged = stage(orders)
    facts = run("publish", staged.id, "--json").document
    told = run("publish", "--commit", staged.id, "--result", tmp_path / "result.json")
    assert told.out.startswith(f"publish\n  published   {orders.name}, snapshot 3")
    result = json.loads((tmp_path / "result.json").read_text())
    assert result.pop("seconds") >= 0
    assert result == {"job": "publish", "ok": True, "exit_code": 0, **facts}


def test_several_commits_are_rejected_at_once(run: Run, orders: Table) -> None:
    first, second = stage(orders), stage(orders)
    told = run("reject", first.id, "--commit", second.id, "--reason", "half a day", "--json").document
    assert told == [{"table": orders.name, "commit": str(each.id), "state": "rejected"} for each in (first, second)]


def test_where_a_part_failed_there_is_what_was_done_and_the_first_error(run: Run, orders: Table) -> None:
    told = run("compact", orders.name, "shop.nope", "--full", "--json")
    assert [each["table"] for each in told.document["tables"]] == [orders.name, "shop.nope"]
    assert (told.code, json.loads(told.err)["error"]["kind"]) == (4, told.document["error"]["kind"])
    alone = run("compact", "shop.nope", "--json")
    assert (alone.code, alone.out, json.loads(alone.err)["exit_code"]) == (4, "", 4)
    assert run("compact", "shop.nope").err.startswith("error: There is no table shop.nope.")


def test_without_spark_it_is_said_what_takes_it() -> None:
    failed = explain_failure(ModuleNotFoundError("No module named 'pyspark'", name="pyspark.sql"))
    assert (failed.exit_code, failed.kind, "lakelib[spark]" in failed.remedy) == (3, "spark_missing", True)
