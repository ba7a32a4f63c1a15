"""The ingest job and a table's gate: what it says of a commit, and what becomes of that when the job runs again."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from lakelib import Lake
from lakelib.model.table import TableInfo
from lakelib.ops import provide
from lakelib.specs.suite import load_suite
from tests.jobs.conftest import Ran, RunJob, rows_of
from tests.jobs.ingest_support import DAY, Shop, new_shop, order

STATUS = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "status"}}
AMOUNT = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "amount", "min_value": 0}}
TOO_LONG = {
    "type": "expect_column_values_to_match_regex",
    "kwargs": {"column": "status", "regex": "(?i)open"},
    "limit_seconds": 0.001,
}
"""A pattern that is left to Python, which has no time for it: the check errs, and says nothing of the rows."""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return new_shop(tmp_path)


def _ingest(run_job: RunJob, shop: Shop, version: int, *more: object) -> Ran:
    return run_job("ingest", "--spec", shop.spec, "--partition", DAY, "--idempotency-key", f"gate:{version}", *more)


@pytest.mark.parametrize(
    ("row", "outcome", "state"),
    [
        (order(1), "accept", "staged"),
        (order(1, amount=-1.5), "warn", "staged"),
        (order(1, status=None), "reject", "rejected"),
    ],
)
def test_the_outcome_is_that_of_the_gate_and_the_report_tells_it(
    row: dict[str, object], outcome: str, state: str, shop: Shop, run_job: RunJob, lake: Lake, tmp_path: Path
) -> None:
    shop.write_spec(gate=shop.write_gate(STATUS, {**AMOUNT, "severity": "warning"}))
    shop.deliver([row, order(2)])
    report = tmp_path / "verdict.html"
    ran = _ingest(run_job, shop, 1, "--report", report)
    assert (ran.code, ran.facts["outcome"], ran.facts["state"]) == (0, outcome, state)
    assert ran.facts["report"] == str(report)
    assert outcome in report.read_text()
    assert shop.table in report.read_text()
    verdict = lake.staged(UUID(ran.facts["commit"])).verdict
    assert verdict is not None
    assert (verdict.outcome.value, verdict.engine, verdict.gate) == (outcome, "spark", "orders")
    assert lake.table(shop.table).head is None


def test_a_reviewer_is_told_which_rows_failed_and_how_it_was_the_day_before(
    shop: Shop, run_job: RunJob, lake: Lake, tmp_path: Path
) -> None:
    shop.write_spec(gate=shop.write_gate(STATUS), publish='{tag: {name: "v{snapshot}", keep: 90d}}')
    shop.deliver([order(7, dt="2026-11-17")], key="2026-11-17")
    given = ["ingest", "--spec", shop.spec, "--partition"]
    before = run_job(*given, "2026-11-17", "--idempotency-key", "before:1")
    assert (before.facts["failures"], "warning" in before.err) == ([], False)
    lake.staged(UUID(before.facts["commit"])).publish()
    shop.deliver([order(1, status=None), order(2), order(3, status=None)])
    report = tmp_path / "verdict.html"
    ran = run_job(*given, DAY, "--idempotency-key", "now:1", "--report", report)
    [line] = ran.facts["failures"]
    assert "2 of 3 rows, 66.67 %; such as order_id=" in line
    assert line in ran.out
    page = report.read_text()
    for said in ("now</bdi>", f"{shop.landing}/{DAY}", "part-0.json", "0 of 1 rows", "lake scan", "status IS NULL"):
        assert said in page


def test_the_table_requires_the_gate_from_its_making(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec(gate=shop.write_gate(STATUS))
    shop.deliver([order(1)])
    assert _ingest(run_job, shop, 1).code == 0
    required = lake.table(shop.table).required_gate
    assert required is not None
    assert (required.name, required.required_by) == ("orders", f"spec {shop.spec}")
    assert required.hash == load_suite(shop.folder / "gate.yaml").hash


def test_a_table_gets_a_gate_and_keeps_it_until_a_person_says_otherwise(
    shop: Shop, run_job: RunJob, lake: Lake
) -> None:
    shop.write_spec()
    shop.deliver([order(1)])
    assert _ingest(run_job, shop, 1).code == 0
    shop.write_spec(gate=shop.write_gate(STATUS))
    assert _ingest(run_job, shop, 1).facts["adopted"] is True
    table = lake.table(shop.table)
    assert table.options == {"required_gate": "orders"}
    shop.write_spec(gate=shop.write_gate(STATUS, name="other"))
    ran = _ingest(run_job, shop, 2)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "table_differs")
    assert "requires the gate 'orders', and its spec's gate is 'other'" in ran.facts["error"]["message"]
    shop.write_spec()
    assert "its spec has no gate" in _ingest(run_job, shop, 2).facts["error"]["message"]
    table.release_gate(by="ann", reason="a test")
    assert _ingest(run_job, shop, 2).code == 0


def test_a_suite_that_does_not_fit_the_table_is_told_before_anything_is_staged(shop: Shop, run_job: RunJob) -> None:
    shop.write_spec(gate=shop.write_gate({**STATUS, "kwargs": {"column": "colour"}}))
    shop.deliver([order(1)])
    ran = _ingest(run_job, shop, 1)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "invalid_suite")
    assert "gate.yaml, line 1" in ran.facts["error"]["message"]
    shop.write_gate(STATUS)
    assert _ingest(run_job, shop, 1).facts["adopted"] is False


def test_a_gate_that_errs_ends_with_7_and_is_asked_again(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec(gate=shop.write_gate(TOO_LONG))
    shop.deliver([order(1)])
    ran = _ingest(run_job, shop, 1)
    assert (ran.code, ran.facts["error"]["kind"]) == (7, "gate_errored")
    again = _ingest(run_job, shop, 1)
    assert again.facts["error"]["kind"] == "gate_errored"
    assert lake.table(shop.table).head is None
    shop.write_gate(STATUS)
    mended = _ingest(run_job, shop, 1)
    assert (mended.code, mended.facts["outcome"], mended.facts["adopted"]) == (0, "accept", True)


def test_what_a_person_published_while_its_gate_erred_is_told_so(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec(gate=shop.write_gate(TOO_LONG))
    shop.deliver([order(1)])
    message = _ingest(run_job, shop, 1).facts["error"]["message"]
    commit = next(word.strip(":,.") for word in message.split() if word.count("-") == 4)
    assert run_job("publish", "--commit", commit, "--by", "ann", "--reason", "looked at it").code == 0
    told = _ingest(run_job, shop, 1)
    assert (told.code, told.facts["state"], told.facts["outcome"]) == (0, "published", "warn")


def test_a_verdict_is_taken_up_and_one_of_another_suite_is_made_anew(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec(gate=shop.write_gate(STATUS))
    shop.deliver([order(1, amount=-1.5)])
    first = _ingest(run_job, shop, 1)
    verdict = lake.staged(UUID(first.facts["commit"])).verdict
    again = _ingest(run_job, shop, 1)
    assert (again.facts["adopted"], again.facts["outcome"]) == (True, "accept")
    assert lake.staged(UUID(first.facts["commit"])).verdict == verdict
    shop.write_gate(STATUS, AMOUNT)
    stricter = _ingest(run_job, shop, 1)
    assert stricter.facts["commit"] == first.facts["commit"]
    assert (stricter.facts["outcome"], stricter.facts["state"]) == ("reject", "rejected")


def test_what_an_older_version_of_the_gate_accepted_is_judged_by_the_newer_before_it_is_published(
    shop: Shop, run_job: RunJob, lake: Lake
) -> None:
    shop.write_spec(gate=shop.write_gate(STATUS))
    shop.deliver([order(1, amount=-1.5)])
    poor = _ingest(run_job, shop, 1).facts["commit"]
    shop.deliver([order(2)])
    good = _ingest(run_job, shop, 2).facts["commit"]
    shop.write_gate(STATUS, AMOUNT)
    shop.deliver([order(3)])
    assert _ingest(run_job, shop, 3).code == 0
    told = run_job("publish", "--commit", good)
    assert (told.code, told.facts["error"]["kind"]) == (6, "verdict_of_another_suite")
    told = run_job("publish", "--commit", poor, "--spec", shop.spec)
    assert (told.code, told.facts["error"]["kind"]) == (6, "gate_rejected")
    assert run_job("publish", "--commit", good, "--spec", shop.spec).code == 0


def test_a_verdict_of_another_gate_of_the_same_checks_is_not_taken_up(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec(gate=shop.write_gate(STATUS))
    shop.deliver([order(1)])
    commit = _ingest(run_job, shop, 1).facts["commit"]
    lake.table(shop.table).release_gate(by="ann", reason="it has another name from now on")
    shop.write_gate(STATUS, name="renamed")
    again = _ingest(run_job, shop, 1)
    assert (again.facts["commit"], again.facts["outcome"]) == (commit, "accept")
    assert run_job("publish", "--commit", commit).code == 0


def test_a_commit_is_judged_though_what_it_was_made_from_is_gone(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    customers = f"{shop.table}_customers"
    lake.create_table(customers, "id BIGINT")
    (shop.folder / "orders.sql").write_text("SELECT source.* FROM source LEFT ANTI JOIN customers ON id = order_id")
    gate = shop.write_gate(TOO_LONG)
    shop.write_spec(gate=gate, transform="orders.sql", reads=f"{{customers: {customers}}}")
    shop.deliver([order(1)])
    assert _ingest(run_job, shop, 1).code == 7
    lake.drop_table(customers)
    shop.write_gate(STATUS)
    ran = _ingest(run_job, shop, 1)
    assert (ran.code, ran.facts.get("outcome"), ran.facts.get("adopted")) == (0, "accept", True)


def test_a_gate_that_a_person_requires_meanwhile_stays_required(
    shop: Shop, run_job: RunJob, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.write_spec()
    shop.deliver([order(1)])
    strict = shop.folder / shop.write_gate(STATUS, name="strict")
    compare = provide.compare_table

    def compare_while_a_person_decides(table: TableInfo, *given: Any, **more: Any) -> Any:
        lake.table(shop.table).require_gate(load_suite(strict))
        return compare(table, *given, **more)

    monkeypatch.setattr(provide, "compare_table", compare_while_a_person_decides)
    assert _ingest(run_job, shop, 1).code == 0
    assert lake.table(shop.table).options == {"required_gate": "strict"}


def test_a_rejected_commit_stays_so_and_the_corrected_rows_are_another(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec(gate=shop.write_gate(STATUS))
    shop.deliver([order(1, status=None)])
    first = _ingest(run_job, shop, 1)
    shop.deliver([order(1)])
    again = _ingest(run_job, shop, 1)
    assert (again.facts["commit"], again.facts["outcome"]) == (first.facts["commit"], "reject")
    corrected = _ingest(run_job, shop, 2)
    assert (corrected.facts["outcome"], corrected.facts["adopted"]) == ("accept", False)
    assert run_job("publish", "--commit", corrected.facts["commit"]).code == 0
    assert rows_of(lake.table(shop.table), "order_id", "status") == [(1, "open")]
