"""Deciding with the command: which commits wait, publishing and rejecting them, partitions that are done."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from lakelib import Lake, StagedCommit, Table
from lakelib.ops.status import look
from tests.cli.conftest import Run, order_rows, write_suite


def stage(table: Table, many: int = 3, **options: Any) -> StagedCommit:
    return table.stage_upsert(order_rows(many, 9), **options)


def test_commits_that_wait_are_listed_the_newest_first(run: Run, orders: Table) -> None:
    first = stage(orders, idempotency_key=("nightly", 7), properties={"run": "r3"})
    second = stage(orders, 5)
    second.reject("half of it is missing")

    newest, oldest = run("commits", orders.name, "--json").document
    staged_at = datetime.fromisoformat(oldest.pop("staged_at"))
    assert abs((datetime.now(UTC) - staged_at).total_seconds()) < 60
    assert {name: oldest[name] for name in oldest if name != "summary"} == {
        "commit": str(first.id),
        "table": orders.name,
        "state": "staged",
        "kind": "upsert",
        "gate": None,
        "outcome": None,
        "decided_at": None,
        "reason": None,
        "base_snapshot": 2,
        "head_snapshot": 2,
        "snapshot": None,
        "application": "nightly",
        "version": 7,
        "approved_by": None,
        "approval_reason": None,
        "properties": {"run": "r3"},
    }
    assert oldest["summary"]["rows_in"] == 3
    assert (newest["commit"], newest["state"], newest["reason"]) == (
        str(second.id),
        "rejected",
        "half of it is missing",
    )
    told = run("commits", orders.name).lines
    assert [line.split()[:3] for line in told[1:]] == [
        [str(second.id), orders.name, "rejected"],
        [str(first.id), orders.name, "staged"],
    ]
    assert "half of it is missing" in told[1]
    assert "nightly:7" in told[2]


def test_commits_are_chosen_by_state(run: Run, orders: Table) -> None:
    assert run("commits", orders.name, "--json").document == []
    assert "No commit is staged or rejected." in run("commits", orders.name).err
    published = run("commits", orders.name, "--state", "published", "--json").document
    assert [each["snapshot"] for each in published] == [2, 1]
    assert len(run("commits", orders.name, "-s", "published", "-n", 1, "--json").document) == 1
    assert run("commits", orders.name, "-s", "lost").code == 2
    assert run("commits", "shop.nope").code == 4


def test_a_commit_is_published(run: Run, orders: Table) -> None:
    staged = stage(orders)
    told = run("publish", staged.id, "--json").document
    assert told == {"published": [{"table": orders.name, "commit": str(staged.id), "snapshot": 3}]}
    assert run("publish", staged.id, "--json").document == told
    assert run("publish", staged.id).out == f"{orders.name}: commit {staged.id} is snapshot 3\n"


def test_commits_are_published_together_or_not_at_all(run: Run, lake: Lake, orders: Table) -> None:
    log = lake.create_table("shop.log", "n BIGINT", if_not_exists=True)
    first, second = stage(orders), log.stage_append(pa.table({"n": [1]}))
    refused = stage(orders)
    refused.reject("no")
    head = log.head
    assert run("publish", first.id, second.id, refused.id).code == 6
    assert (orders.head and orders.head.id, log.head) == (2, head)
    assert run("publish", first.id, second.id).code == 0
    assert orders.head is not None
    assert orders.head.id == 3
    assert log.head != head


def test_a_rejected_commit_is_published_by_a_person_who_says_why(run: Run, orders: Table) -> None:
    staged = stage(orders)
    staged.reject("looks wrong")
    assert run("publish", staged.id).code == 6
    assert run("publish", staged.id, "--by", "ann").code == 2
    assert run("publish", staged.id, "--by", "ann", "--reason", "It was the sale.").code == 0
    (found,) = (
        each for each in run("commits", orders.name, "-s", "published", "--json").document if each["approved_by"]
    )
    assert "published by ann: It was the sale." in run("commits", orders.name, "-s", "published").out
    assert (found["commit"], found["approved_by"], found["approval_reason"]) == (
        str(staged.id),
        "ann",
        "It was the sale.",
    )


def test_a_person_decides_against_a_commit_that_waits(run: Run, lake: Lake, orders: Table) -> None:
    refused = stage(orders)
    refused.reject("negative amounts")
    again = run("reject", refused.id, "--reason", "so it is")
    assert "was rejected before, and its reason stays; with --by a person decides" in again.out
    assert waiting(orders, lake) == 1
    assert run("reject", refused.id, "--reason", "so it is", "--by", "ann").code == 0
    assert waiting(orders, lake) == 0
    accepted = stage(orders)
    assert run("reject", accepted.id, "--reason", "only a try", "--by", "ann").code == 0
    assert waiting(orders, lake) == 0


def waiting(orders: Table, lake: Lake) -> int:
    return sum(len(table.waiting) for table in look(lake.runtime).tables if table.table == orders.name)


def test_a_commit_is_rejected(run: Run, orders: Table) -> None:
    staged = stage(orders)
    assert run("reject", staged.id).code == 2
    told = run("reject", staged.id, "--reason", "a test", "--json").document
    assert told == {"table": orders.name, "commit": str(staged.id), "state": "rejected"}
    assert run("publish", staged.id).code == 6


def test_a_commit_is_named_by_the_first_digits_of_its_id(run: Run, orders: Table) -> None:
    refused, accepted = stage(orders), stage(orders)
    assert run("scan", orders.name, "--staged", str(refused.id)[:13], "--count").out == "3\n"
    assert run("reject", str(refused.id)[:13], "--reason", "a test").code == 0
    assert refused.state == "rejected"
    told = run("publish", str(accepted.id)[:13], accepted.id, "--commit", accepted.id.hex[:20], "--json").document
    assert told == {"published": [{"table": orders.name, "commit": str(accepted.id), "snapshot": 3}]}
    unknown = run("gate", "show", uuid4().hex[:20])
    assert (unknown.code, "There is no commit whose id begins with" in unknown.err) == (4, True)
    assert "`lake commits` lists them" in unknown.err


def test_ids_that_are_none_and_commits_that_are_not_there(run: Run) -> None:
    for command in (["publish"], ["reject", "--reason", "x"], ["gate", "show"]):
        assert run(*command, "7").code == 2
        assert run(*command, uuid4()).code == 4


# Verdicts


def test_a_verdict_is_shown_check_by_check(run: Run, orders: Table, tmp_path: Path) -> None:
    staged = stage(orders, 5)
    assert run("gate", "show", staged.id).code == 4
    staged.judge(write_suite(tmp_path, most=0.02, severity="warning"))

    told = run("gate", "show", staged.id, "--json").document
    assert (told["table"], told["state"]) == (orders.name, "staged")
    verdict = told["verdict"]
    assert (verdict["commit_id"], verdict["gate"], verdict["outcome"], verdict["engine"]) == (
        str(staged.id),
        "orders",
        "warn",
        "arrow",
    )
    assert [(check["status"], check["severity"], check["unexpected_count"]) for check in verdict["checks"]] == [
        ("passed", "critical", 0),
        ("failed", "warning", 2),
    ]
    shown = run("gate", "show", staged.id).out
    assert shown.startswith("WARN by gate orders\n")
    assert "customers are named" in shown
    assert "0.03" in shown
    (listed,) = run("commits", orders.name, "--json").document
    assert (listed["gate"], listed["outcome"]) == ("orders", "warn")


def test_a_verdict_says_what_the_commit_does_to_rows(run: Run, orders: Table, tmp_path: Path) -> None:
    staged = stage(orders, 5)
    file = tmp_path / "effects.yaml"
    kwargs = "{kwargs: {min_value: 1000}, scope: merged, type: expect_rows_inserted_to_be_between}"
    file.write_text(f"name: effects\nexpectations:\n- {kwargs}\n")
    rejected = run("gate", "judge", staged.id, file, "--json").document
    came = rejected["rows_inserted"]
    assert rejected["verdict"]["checks"][0]["observed"] == {"rows_inserted": came}
    shown = run("gate", "show", staged.id).out
    assert f"{came} inserted" in shown
    assert f"{came} rows inserted" in shown


def test_a_commit_is_judged(run: Run, orders: Table, tmp_path: Path) -> None:
    staged = stage(orders, 5)
    assert run("gate", "judge", staged.id, write_suite(tmp_path)).code == 0
    rejected = run("gate", "judge", staged.id, write_suite(tmp_path, most=0.02), "--json")
    assert (rejected.code, rejected.document["state"]) == (6, "rejected")
    assert rejected.document["verdict"]["outcome"] == "reject"
    assert run("publish", staged.id).code == 6
    assert run("gate", "judge", staged.id, tmp_path / "nope.yaml").code in (3, 4)


def test_a_verdict_is_written_as_a_page(run: Run, orders: Table, tmp_path: Path) -> None:
    staged = stage(orders, 5)
    staged.judge(write_suite(tmp_path))
    told = run("gate", "report", staged.id, tmp_path / "report.html", "--json").document
    assert told == {"table": orders.name, "commit": str(staged.id), "report": str(tmp_path / "report.html")}
    assert "customers are named" in (tmp_path / "report.html").read_text()


def test_a_verdict_fits_a_narrow_terminal(run_on_terminal: Any, orders: Table, tmp_path: Path) -> None:
    staged = stage(orders, 5)
    staged.judge(write_suite(tmp_path, most=0.02))
    ran = run_on_terminal(60, "gate", "show", str(staged.id))
    assert ran.code == 0
    assert max(map(len, (line.rstrip() for line in ran.lines))) <= 60


# Partitions that are done


def test_a_partition_is_marked_done_and_listed(run: Run, orders: Table) -> None:
    marked = run("mark-done", orders.name, "dt=2026-11-17", "--json").document
    assert {name: marked[name] for name in marked if not name.endswith("_at")} == {
        "table": orders.name,
        "partition": {"dt": "2026-11-17"},
        "path": "dt=2026-11-17",
        "done": True,
        "snapshot": 2,
    }
    assert Path(orders.location.removeprefix("file://"), "dt=2026-11-17", "_SUCCESS").exists()
    (listed,) = run("done", orders.name, "--json").document
    assert listed == {name: marked[name] for name in marked if name != "table"}
    assert "dt=2026-11-17" in run("done", orders.name).out

    orders.upsert(order_rows(3, 9))
    assert run("done", orders.name, "--json").document == []
    assert "No partition" in run("done", orders.name).err
    (reset,) = run("done", orders.name, "--all", "--json").document
    assert (reset["done"], reset["reset_at"] is not None) == (False, True)


def test_actions_are_chosen(run: Run, orders: Table) -> None:
    told = run("mark-done", orders.name, "dt=2026-11-16", "--action", "done_partition")
    assert told.out == f"{orders.name}: dt=2026-11-16 is done as of snapshot 2\n"
    assert not Path(orders.location.removeprefix("file://"), "dt=2026-11-16", "_SUCCESS").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["2026-11-16"],
        ["dt=2026-11-16", "dt=2026-11-17"],
        ["dt=2026-11-16", "--action", "nothing"],
        ["dt=2026-11-16", "--param", "a=b"],
        ["dt=2026-11-16", "--report", "http://127.0.0.1:9/", "--param", "a"],
    ],
)
def test_marks_that_are_asked_for_wrongly(run: Run, orders: Table, arguments: list[str]) -> None:
    assert run("mark-done", orders.name, *arguments).code == 2
    assert orders.done_partitions() == []


def test_null_is_a_value_of_a_partition(run: Run, lake: Lake) -> None:
    table = lake.create_table("shop.nulls", "p STRING, n INT", partition_by=["p"], if_not_exists=True)
    run("mark-done", table.name, "p=__HIVE_DEFAULT_PARTITION__")
    run("mark-done", table.name, "p=")
    assert [each["partition"] for each in run("done", table.name, "--json").document] == [{"p": ""}, {"p": None}]
    told = run("done", table.name).out
    assert "p=''" in told
    assert "p=NULL" in told


def test_a_service_that_does_not_answer_is_told_of(run: Run, orders: Table) -> None:
    told = run("mark-done", orders.name, "dt=2026-11-16", "--report", "http://127.0.0.1:9/x", "--param", "team=shop")
    assert told.code == 7
    assert "http://127.0.0.1:9/x" in told.err
    assert orders.is_done({"dt": "2026-11-16"})


# Gates that tables require


def test_a_gate_is_registered_required_and_released(run: Run, orders: Table, tmp_path: Path) -> None:
    made = run("gate", "register", write_suite(tmp_path), "--by", "ann", "--json").document
    assert (made["gate"], made["critical_checks"], made["registered_by"]) == ("orders", 2, "ann")
    held = run("gate", "require", orders.name, "orders", "--by", "ann", "--json").document
    assert (held["hash"], held["version"], held["released_at"]) == (made["hash"], made["version"], None)
    (listed,) = (each for each in run("gate", "list", "--json").document if orders.name in each["tables"])
    assert (listed["gate"], listed["version"]) == ("orders", made["version"])
    described = run("describe", orders.name, "--json").document
    assert (described["required_gate"], described["gate_history"]) == (held, [held])
    assert f"orders, version {made['version']} ({made['hash']})" in run("describe", orders.name).out

    assert run("gate", "release", orders.name, "--by", "bob").code == 2
    kept = run("gate", "release", orders.name, "--by", "bob", "--reason", "no source", "--json").document
    assert (kept["required_by"], kept["released_by"], kept["release_reason"]) == ("ann", "bob", "no source")
    assert run("gate", "show", orders.name, "--json").document == [kept]
    assert "no source" in run("gate", "show", orders.name).out
    assert "by bob" in run("describe", orders.name).out
    assert run("gate", "release", orders.name, "--by", "bob", "--reason", "again").code == 3


def test_a_gate_that_is_not_registered_cannot_be_required(run: Run, orders: Table) -> None:
    told = run("gate", "require", orders.name, "nowhere")
    assert told.code == 4
    assert "lake gate register" in told.err
    assert run("gate", "show", orders.name, "--json").document == []


def test_a_commit_is_judged_by_what_its_table_requires(run: Run, orders: Table, tmp_path: Path) -> None:
    orders.require_gate(write_suite(tmp_path))
    staged = stage(orders)
    assert run("gate", "judge", staged.id).code == 0
    assert run("publish", staged.id).code == 0
    assert orders.head is not None
    assert orders.head.id == 3
