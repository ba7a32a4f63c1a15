"""Promises of gates: nothing is seen that its gate has not passed, and what a verdict rests on is what is published."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pyarrow as pa
import pytest

from lakelib import (
    ConflictError,
    InvalidInputError,
    Lake,
    NotFoundError,
    RejectedError,
    RetryableError,
    Table,
)
from lakelib.model.gate import Outcome, Scope, Status
from lakelib.ops import commit, judge
from lakelib.ops.judge import Judging
from lakelib.specs.suite import Suite, parse_suite
from tests.acceptance.support import NewTable, data, raised, require_by_name

SCHEMA = "id BIGINT, dt DATE, amount DECIMAL(10, 2)"
COLUMNS = {"id": pa.int64(), "dt": pa.string(), "amount": pa.decimal128(10, 2)}
CAST = {"explicit_cast": True}

HAS_AMOUNT = "{type: expect_column_values_to_not_be_null, kwargs: {column: amount}}"
ONE_OF_A_KEY = "{type: expect_column_values_to_be_unique, kwargs: {column: amount}, scope: merged}"
FEW_ROWS = "{type: expect_table_row_count_to_be_between, kwargs: {max_value: 3}, scope: table}"
TOO_LONG = "{type: expect_column_values_to_match_regex, kwargs: {column: id, regex: '(?i)1'}, limit_seconds: 0.001}"
"""A pattern that is left to Python, which has no time for it: the check errs, and says nothing of the rows."""


def suite(*checks: str, name: str = "orders") -> Suite:
    return parse_suite(f"name: {name}\nexpectations:\n" + "".join(f"- {check}\n" for check in checks))


def rows(*given: tuple[int, str, Any]) -> pa.Table:
    return data(COLUMNS, *given)


GOOD = rows((1, "2026-11-18", 1), (2, "2026-11-18", 2))
BAD = rows((3, "2026-11-18", 3), (4, "2026-11-18", None))


@pytest.fixture
def table(new_table: NewTable) -> Table:
    return new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])


@pytest.fixture
def gated(lake: Lake, new_table: NewTable) -> Table:
    """A table that requires its gate by name."""
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    require_by_name(lake, table, "orders")
    return table


def ids(table: Table) -> list[int]:
    return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())


# Verdicts


@pytest.mark.parametrize(
    ("checks", "outcome"),
    [
        ((HAS_AMOUNT,), Outcome.REJECT),
        ((HAS_AMOUNT.replace("}}", "}, severity: warning}"),), Outcome.WARN),
        ((HAS_AMOUNT.replace("}}", "}, severity: info}"),), Outcome.ACCEPT),
        ((ONE_OF_A_KEY, FEW_ROWS), Outcome.ACCEPT),
        ((TOO_LONG,), Outcome.ERRORED),
        ((TOO_LONG, HAS_AMOUNT), Outcome.REJECT),
    ],
)
def test_the_verdict_is_kept_with_the_commit(
    lake: Lake, table: Table, checks: tuple[str, ...], outcome: Outcome
) -> None:
    staged = table.stage_upsert(BAD, **CAST)
    assert staged.verdict is None
    verdict = staged.judge(suite(*checks))
    assert verdict.outcome is outcome
    assert lake.staged(staged.id).verdict == verdict
    assert staged.state == ("rejected" if outcome is Outcome.REJECT else "staged")


def test_a_verdict_has_its_evidence(table: Table) -> None:
    table.append(GOOD, **CAST)
    verdict = table.stage_upsert(BAD, **CAST).judge(suite(HAS_AMOUNT, FEW_ROWS))
    missing, few = verdict.checks
    assert (missing.status, missing.row_count, missing.unexpected_count, missing.sample) == (
        Status.FAILED,
        2,
        1,
        (None,),
    )
    assert (few.scope, few.status, few.observed) == (Scope.TABLE, Status.FAILED, 4)
    assert (verdict.base_snapshot_id, verdict.engine, verdict.gate) == (1, "arrow", "orders")
    assert verdict.suite_hash == suite(FEW_ROWS, HAS_AMOUNT).hash


def test_each_scope_has_its_rows(table: Table) -> None:
    table.append(rows((1, "2026-11-17", 1), (2, "2026-11-18", 2), (3, "2026-11-18", 3)), **CAST)
    staged = table.stage_upsert(rows((2, "2026-11-18", 20), (4, "2026-11-18", 4)), **CAST)
    checks = []
    for scope, count, total in (("staged", 2, 24), ("merged", 3, 27), ("table", 4, 28)):
        bounds = f"column: amount, min_value: {total}, max_value: {total}"
        checks.append(f"{{type: expect_table_row_count_to_equal, kwargs: {{value: {count}}}, scope: {scope}}}")
        checks.append(f"{{type: expect_column_sum_to_be_between, kwargs: {{{bounds}}}, scope: {scope}}}")
    assert staged.judge(suite(*checks)).outcome is Outcome.ACCEPT


def test_partitions_that_a_commit_empties_are_merged_scope_too(table: Table) -> None:
    table.append(rows((1, "2026-11-17", 1), (2, "2026-11-18", 2)), **CAST)
    check = "{type: expect_table_row_count_to_equal, kwargs: {value: 0}, scope: merged}"
    assert table.stage_delete("dt = '2026-11-17'").judge(suite(check)).outcome is Outcome.ACCEPT


def test_checks_see_columns_in_their_order_however_few_are_read(table: Table) -> None:
    checks = [
        "{type: expect_table_columns_to_match_ordered_list, kwargs: {column_list: [id, dt, amount]}}",
        "{type: expect_table_column_count_to_equal, kwargs: {value: 3}}",
        "{type: expect_column_to_exist, kwargs: {column: amount, column_index: 2}}",
        HAS_AMOUNT,
    ]
    assert table.stage_append(GOOD, **CAST).judge(suite(*checks)).outcome is Outcome.ACCEPT


def test_a_commit_that_extends_the_schema_is_judged_in_its_own(table: Table) -> None:
    more = GOOD.append_column("note", pa.array(["a", None]))
    staged = table.stage_append(more, merge_schema=True, **CAST)
    check = "{type: expect_column_values_to_not_be_null, kwargs: {column: note}}"
    assert staged.judge(suite(check)).checks[0].unexpected_count == 1


def test_a_suite_that_does_not_fit_the_table_is_refused_with_file_and_line(table: Table, tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text("name: orders\nexpectations:\n- type: expect_column_to_exst\n  kwargs: {column: a}\n")
    staged = table.stage_append(GOOD, **CAST)
    with raised(InvalidInputError, "invalid_suite") as caught:
        staged.judge(path)
    assert f"{path}, line 3: there is no expectation 'expect_column_to_exst'. Do you mean" in caught.value.message
    assert (staged.state, staged.verdict) == ("staged", None)


def test_what_is_published_or_given_up_cannot_be_judged(table: Table) -> None:
    published = table.stage_append(GOOD, idempotency_key=("a", 1), **CAST)
    given_up = table.stage_append(GOOD, idempotency_key=("b", 1), **CAST)
    table.stage_append(GOOD, idempotency_key=("b", 1), **CAST)
    published.publish()
    for staged in (published, given_up):
        with raised(ConflictError, "commit_decided"):
            staged.judge(suite(HAS_AMOUNT))


def test_a_verdict_on_what_was_decided_while_it_was_made_is_not_kept(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = table.stage_append(GOOD, idempotency_key=("a", 1), **CAST)
    given_up = table.stage_append(GOOD, idempotency_key=("b", 1), **CAST)
    others = iter((published.publish, lambda: table.stage_append(GOOD, idempotency_key=("b", 1), **CAST)))
    decide_outcome = judge.decide_outcome

    def decide_behind_another(checks: Any) -> Outcome:
        next(others)()
        return decide_outcome(checks)

    monkeypatch.setattr(judge, "decide_outcome", decide_behind_another)
    for staged in (published, given_up):
        with raised(ConflictError, "commit_decided"):
            staged.judge(suite(HAS_AMOUNT))
        assert staged.verdict is None


# Publishing


def test_a_rejected_commit_is_invisible_and_inspectable(lake: Lake, table: Table) -> None:
    staged = table.stage_upsert(BAD, **CAST)
    staged.judge(suite(HAS_AMOUNT))
    with raised(RejectedError, "commit_rejected") as caught:
        staged.publish()
    assert "column_values_to_not_be_null (amount) (1 of 2 rows)" in caught.value.message
    assert ids(table) == []
    again = lake.staged(str(staged.id))
    assert again.scan(scope="staged").count() == 2
    assert "rejected, gate orders: reject" in repr(again)


def test_a_person_publishes_a_rejected_commit_by_name_and_reason(table: Table) -> None:
    staged = table.stage_upsert(BAD, properties={"source": "s"}, **CAST)
    staged.judge(suite(HAS_AMOUNT))
    snapshot = staged.publish(by="ada", reason="refunds have no amount")
    assert snapshot.properties == {"source": "s", "approved_by": "ada", "approval_reason": "refunds have no amount"}
    assert ids(table) == [3, 4]
    assert staged.publish(by="bob", reason="again") == snapshot


@pytest.mark.parametrize(("by", "reason"), [("ada", None), (None, "why"), (" ", "why"), ("ada", ""), ("a\0", "why")])
def test_a_name_needs_a_reason_and_a_reason_a_name(table: Table, by: str | None, reason: str | None) -> None:
    staged = table.stage_upsert(GOOD, **CAST)
    with raised(InvalidInputError, "invalid_approval"):
        staged.publish(by=by, reason=reason)
    assert staged.state == "staged"


def test_a_person_overrules_gates_and_not_conflicts(table: Table) -> None:
    table.append(GOOD, **CAST)
    staged = table.stage_overwrite(BAD, **CAST)
    staged.judge(suite(HAS_AMOUNT))
    table.append(rows((9, "2026-11-18", 9)), **CAST)
    with raised(ConflictError, "rows_added"):
        staged.publish(by="ada", reason="fine")


def test_a_rejected_commit_whose_work_was_published_since_stays_rejected(table: Table) -> None:
    staged = table.stage_upsert(BAD, idempotency_key=("a", 1), **CAST)
    staged.judge(suite(HAS_AMOUNT))
    table.upsert(GOOD, idempotency_key=("a", 1), **CAST)
    with raised(ConflictError, "fenced"):
        staged.publish(by="ada", reason="fine")
    assert ids(table) == [1, 2]


def test_a_rejected_commit_stays_so_whatever_a_later_verdict_says(table: Table) -> None:
    staged = table.stage_upsert(BAD, **CAST)
    staged.judge(suite(HAS_AMOUNT))
    assert staged.judge(suite(FEW_ROWS)).outcome is Outcome.ACCEPT
    assert (staged.state, staged.verdict and staged.verdict.outcome) == ("rejected", Outcome.ACCEPT)
    with raised(RejectedError, "commit_rejected"):
        staged.publish()


def test_a_check_that_errored_is_no_reject_and_no_pass(table: Table) -> None:
    staged = table.stage_upsert(GOOD, **CAST)
    assert staged.judge(suite(TOO_LONG)).outcome is Outcome.ERRORED
    with raised(RejectedError, "verdict_not_passed"):
        staged.publish()
    assert staged.judge(suite(HAS_AMOUNT)).outcome is Outcome.ACCEPT
    assert staged.publish().id == 1


def test_of_two_gates_both_must_pass(table: Table) -> None:
    staged = table.stage_upsert(GOOD, **CAST)
    staged.judge(suite(TOO_LONG, name="other"))
    staged.judge(suite(HAS_AMOUNT))
    with raised(RejectedError, "verdict_not_passed"):
        staged.publish()


WRITES: dict[str, Callable[..., Any]] = {
    "append": lambda table, **options: table.append(GOOD, **CAST, **options),
    "upsert": lambda table, **options: table.upsert(GOOD, **CAST, **options),
    "overwrite all": lambda table, **options: table.overwrite(GOOD, **CAST, **options),
    "overwrite dynamic": lambda table, **options: table.overwrite(GOOD, "dynamic", **CAST, **options),
    "overwrite static": lambda table, **options: table.overwrite(GOOD, {"dt": "2026-11-18"}, **CAST, **options),
    "delete rows": lambda table, **options: table.delete("amount > 5", **options),
    "delete partition": lambda table, **options: table.delete("dt = '2026-11-18'", **options),
    "delete keys": lambda table, **options: table.delete_keys(GOOD, **CAST, **options),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_required_gate_is_required_of_every_write(gated: Table, write: Callable[..., Any]) -> None:
    gated.append(rows((7, "2026-11-18", 7)), gate=suite(HAS_AMOUNT), **CAST)
    with raised(RejectedError, "verdict_missing"):
        write(gated)
    with raised(RejectedError, "verdict_missing"):
        write(gated, gate=suite(HAS_AMOUNT, name="another"))
    assert ids(gated) == [7]
    assert write(gated, gate=suite(HAS_AMOUNT)).id == 2


def test_a_required_gate_is_required_in_transactions(lake: Lake, gated: Table, table: Table) -> None:
    judged, other = table.stage_append(GOOD, gate=suite(HAS_AMOUNT), **CAST), gated.stage_append(GOOD, **CAST)
    with raised(RejectedError, "verdict_missing"), lake.transaction() as tx:
        tx.add(judged)
        tx.add(other)
    assert (ids(table), ids(gated)) == ([], [])
    other.judge(suite(HAS_AMOUNT))
    with lake.transaction() as tx:
        tx.add(judged)
        tx.add(other)
    assert (ids(table), ids(gated)) == ([1, 2], [1, 2])


def test_what_brings_no_rows_needs_no_gate(gated: Table) -> None:
    for number in range(3):
        gated.append(rows((number, "2026-11-18", number)), gate=suite(HAS_AMOUNT), **CAST)
    gated.evolve(add=[("note", "string")])
    gated.compact(full=True)
    assert ids(gated) == [0, 1, 2]
    with raised(InvalidInputError, "invalid_gate"):
        gated.evolve(add=[("more", "string")], gate=suite(HAS_AMOUNT))


# Writes with a gate


def test_a_write_that_its_gate_rejects_publishes_nothing(lake: Lake, table: Table) -> None:
    with raised(RejectedError, "gate_rejected") as caught:
        table.upsert(BAD, gate=suite(HAS_AMOUNT), **CAST)
    assert "1 of 1 checks failed: column_values_to_not_be_null (amount) (1 of 2 rows)" in caught.value.message
    commit_id = caught.value.message.partition("rejected commit ")[2].partition(":")[0]
    assert (table.head, lake.staged(commit_id).state) == (None, "rejected")


def test_a_write_whose_gate_errs_can_be_tried_again(lake: Lake, table: Table) -> None:
    with raised(RetryableError, "gate_errored") as caught:
        table.upsert(GOOD, gate=suite(TOO_LONG), **CAST)
    commit_id = caught.value.message.partition("could not judge commit ")[2].partition(":")[0]
    assert (table.head, lake.staged(commit_id).state) == (None, "staged")


def test_a_staged_write_with_a_gate_is_judged_at_once(table: Table) -> None:
    staged = table.stage_upsert(BAD, gate=suite(HAS_AMOUNT), **CAST)
    assert (staged.state, staged.verdict and staged.verdict.outcome) == ("rejected", Outcome.REJECT)


@pytest.mark.parametrize("gate", [7, object(), b"x"])
def test_a_gate_is_a_suite_or_its_path(table: Table, gate: Any) -> None:
    with raised(InvalidInputError, "invalid_gate"):
        table.upsert(GOOD, gate=gate, **CAST)


def test_a_gate_that_is_wrong_is_told_before_anything_is_written(table: Table, tmp_path: Path) -> None:
    with raised(NotFoundError, "file_not_found"):
        table.upsert(GOOD, gate=tmp_path / "none.yaml", **CAST)
    with raised(InvalidInputError, "invalid_suite"):
        table.upsert(GOOD, gate=suite("{type: expect_nothing}"), **CAST)
    with raised(InvalidInputError, "invalid_suite"):
        table.upsert(GOOD, gate=suite(HAS_AMOUNT.replace("amount", "amout")), **CAST)
    assert table.head is None


def test_a_delete_that_makes_others_wait_is_judged_meanwhile(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "_FREE_TRIES", 0)
    table.append(GOOD, **CAST)
    with raised(RejectedError, "gate_rejected"):
        table.delete("amount = 1", gate=suite("{type: expect_table_row_count_to_equal, kwargs: {value: 7}}"))
    assert ids(table) == [1, 2]
    table.delete("amount = 1", gate=suite(ONE_OF_A_KEY))
    assert ids(table) == [2]


# The head has moved


def other_writer(table: Table, *given: tuple[int, str, Any]) -> None:
    table.append(rows(*given), **CAST)


def test_a_stale_verdict_is_made_again_where_it_was_made(table: Table) -> None:
    staged = table.stage_append(rows((2, "2026-11-18", 2)), **CAST)
    staged.judge(suite(ONE_OF_A_KEY))
    other_writer(table, (1, "2026-11-18", 1))
    staged.publish()
    assert (ids(table), staged.verdict and staged.verdict.base_snapshot_id) == ([1, 2], 1)


def test_who_judges_again_what_others_have_published_meanwhile_gets_their_snapshot(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = table.stage_upsert(GOOD, **CAST)
    staged.judge(suite(ONE_OF_A_KEY))
    table.upsert(rows((9, "2026-11-18", 9)), **CAST)
    again = judge.judge

    def judge_behind_another(*given: Any) -> Any:
        monkeypatch.setattr(judge, "judge", again)
        other = lake.staged(staged.id)
        other.judge(suite(ONE_OF_A_KEY))
        other.publish()
        return again(*given)

    monkeypatch.setattr(judge, "judge", judge_behind_another)
    assert (staged.publish().id, staged.state) == (2, "published")
    assert ids(table) == [1, 2, 9]


def test_a_verdict_that_turns_is_a_reject(table: Table) -> None:
    staged = table.stage_append(rows((2, "2026-11-18", 1)), **CAST)
    assert staged.judge(suite(ONE_OF_A_KEY)).outcome is Outcome.ACCEPT
    other_writer(table, (1, "2026-11-18", 1))
    with raised(RejectedError, "gate_rejected"):
        staged.publish()
    assert (ids(table), staged.state) == ([1], "rejected")


def test_elsewhere_a_stale_verdict_is_a_conflict(lake: Lake, table: Table) -> None:
    staged = table.stage_append(rows((2, "2026-11-18", 2)), **CAST)
    staged.judge(suite(ONE_OF_A_KEY))
    other_writer(table, (1, "2026-11-18", 1))
    elsewhere = lake.staged(staged.id)
    with raised(ConflictError, "verdict_stale") as caught:
        elsewhere.publish()
    assert "judge the commit again" in caught.value.remedy
    elsewhere.judge(suite(ONE_OF_A_KEY))
    assert elsewhere.publish().id == 2


@pytest.mark.parametrize("change", ["append", "upsert", "delete", "drop", "overwrite"])
def test_every_change_of_judged_partitions_makes_the_verdict_stale(lake: Lake, table: Table, change: str) -> None:
    other_writer(table, (1, "2026-11-18", 1), (5, "2026-11-19", 5))
    staged = table.stage_append(rows((2, "2026-11-18", 2)), **CAST)
    staged.judge(suite(ONE_OF_A_KEY))
    changes: dict[str, Callable[[], Any]] = {
        "append": lambda: table.append(rows((3, "2026-11-18", 3)), **CAST),
        "upsert": lambda: table.upsert(rows((1, "2026-11-18", 3)), **CAST),
        "delete": lambda: table.delete("amount = 1"),
        "drop": lambda: table.delete("dt = '2026-11-18'"),
        "overwrite": lambda: table.overwrite(rows((3, "2026-11-18", 3)), "dynamic", **CAST),
    }
    changes[change]()
    table.compact(full=True)
    with raised(ConflictError, "verdict_stale"):
        lake.staged(staged.id).publish()


@pytest.mark.parametrize("check", [HAS_AMOUNT, ONE_OF_A_KEY])
def test_changes_elsewhere_leave_a_verdict_on_partitions_alone(lake: Lake, table: Table, check: str) -> None:
    other_writer(table, (1, "2026-11-18", 1))
    staged = table.stage_append(rows((2, "2026-11-18", 2)), **CAST)
    staged.judge(suite(check))
    other_writer(table, (5, "2026-11-19", 5))
    assert lake.staged(staged.id).publish().id == 3


def test_a_verdict_on_staged_rows_is_never_stale(lake: Lake, table: Table) -> None:
    staged = table.stage_append(rows((2, "2026-11-18", 2)), **CAST)
    staged.judge(suite(HAS_AMOUNT))
    other_writer(table, (1, "2026-11-18", 1))
    assert lake.staged(staged.id).publish().id == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda table: (table.evolve(drop=["amount"]), table.evolve(add="amount DECIMAL(10, 2)")),
        lambda table: table.evolve(rename={"amount": "other"}, add="amount DECIMAL(10, 2)"),
        lambda table: table.evolve(widen={"amount": "DECIMAL(12, 2)"}),
        lambda table: table.evolve(rename={"amount": "other"}),
    ],
    ids=["dropped and added again", "another of its name", "another type", "renamed"],
)
def test_a_verdict_is_on_columns_and_not_on_their_names(lake: Lake, table: Table, change: Any) -> None:
    staged = table.stage_append(rows((2, "2026-11-18", 2)), **CAST)
    assert staged.judge(suite(HAS_AMOUNT)).outcome is Outcome.ACCEPT
    change(table)
    with raised(ConflictError, "verdict_stale"):
        lake.staged(staged.id).publish()


def test_what_judged_a_column_that_is_another_judges_it_again(table: Table) -> None:
    staged = table.stage_append(rows((2, "2026-11-18", 2)), **CAST)
    assert staged.judge(suite(HAS_AMOUNT)).outcome is Outcome.ACCEPT
    table.evolve(drop=["amount"])
    table.evolve(add="amount DECIMAL(10, 2)")
    with raised(RejectedError, "gate_rejected"):
        staged.publish()


@pytest.mark.parametrize(
    ("check", "stale"),
    [
        ("{type: expect_table_column_count_to_equal, kwargs: {value: 3}}", True),
        ("{type: expect_column_to_exist, kwargs: {column: id}}", True),
        (HAS_AMOUNT, False),
    ],
)
def test_a_column_more_is_of_interest_to_who_looked_at_the_columns(
    lake: Lake, table: Table, check: str, stale: bool
) -> None:
    staged = table.stage_append(rows((2, "2026-11-18", 2)), **CAST)
    staged.judge(suite(check))
    table.evolve(add="note STRING")
    if stale:
        with raised(ConflictError, "verdict_stale"):
            lake.staged(staged.id).publish()
    else:
        assert lake.staged(staged.id).publish().id == 2


def test_any_change_makes_a_verdict_on_the_table_stale(lake: Lake, table: Table) -> None:
    staged = table.stage_append(rows((2, "2026-11-18", 2)), **CAST)
    staged.judge(suite(FEW_ROWS))
    other_writer(table, (5, "2026-11-19", 5))
    with raised(ConflictError, "verdict_stale"):
        lake.staged(staged.id).publish()


@pytest.mark.parametrize("check", [ONE_OF_A_KEY, FEW_ROWS])
def test_what_changes_no_row_makes_no_verdict_stale(lake: Lake, table: Table, check: str) -> None:
    for number in range(2):
        other_writer(table, (number, "2026-11-18", number))
    staged = table.stage_append(rows((2, "2026-11-18", 2)), **CAST)
    staged.judge(suite(check))
    assert table.compact(full=True)
    table.evolve(add=[("note", "string")])
    assert lake.staged(staged.id).publish().id == 5


def test_an_overwrite_is_judged_on_what_it_leaves_after_a_compaction(table: Table) -> None:
    for number in range(2):
        other_writer(table, (number, "2026-11-18", number))
    staged = table.stage_overwrite(rows((7, "2026-11-18", 7)), "dynamic", **CAST)
    table.compact(full=True)
    check = "{type: expect_table_row_count_to_equal, kwargs: {value: 1}, scope: merged}"
    assert staged.judge(suite(check)).outcome is Outcome.ACCEPT
    staged.publish()
    assert ids(table) == [7]


def test_a_direct_overwrite_is_judged_on_what_it_replaces_at_last(table: Table) -> None:
    other_writer(table, (1, "2026-11-18", 1), (2, "2026-11-19", 2))
    check = "{type: expect_table_row_count_to_equal, kwargs: {value: 2}, scope: table}"
    table.overwrite(rows((7, "2026-11-18", 7)), {"dt": "2026-11-18"}, gate=suite(check), **CAST)
    assert ids(table) == [2, 7]


def test_commits_of_one_transaction_are_judged_on_top_of_each_other(lake: Lake, table: Table) -> None:
    first, second = (table.stage_append(rows((number, "2026-11-18", number)), **CAST) for number in (1, 2))
    for staged in (first, second):
        staged.judge(suite(ONE_OF_A_KEY))
    with lake.transaction() as tx:
        tx.add(first)
        tx.add(second)
    assert ids(table) == [1, 2]
    assert second.verdict is not None
    assert second.verdict.beneath == (first.id,)


def test_what_was_judged_on_top_of_others_is_not_judged_again(lake: Lake, table: Table) -> None:
    """A day whose check holds only with the day before."""
    other_writer(table, (1, "2026-11-18", 1))
    three = "{type: expect_table_row_count_to_equal, kwargs: {value: 3}, scope: merged}"
    first, second = (table.stage_append(rows((number, "2026-11-18", number)), **CAST) for number in (2, 3))
    verdict = second.judge(suite(three), on_top_of=[first])
    assert (verdict.outcome, verdict.beneath) == (Outcome.ACCEPT, (first.id,))
    assert sorted(second.scan(["id"], on_top_of=[first]).to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert sorted(second.scan(["id"]).to_arrow()["id"].to_pylist()) == [1, 3]
    with lake.transaction() as tx:
        tx.add(lake.staged(first.id))
        tx.add(lake.staged(second.id))
    assert second.verdict is not None
    assert second.verdict.judged_at == verdict.judged_at


def test_no_message_names_a_snapshot_that_nobody_can_see(lake: Lake, table: Table) -> None:
    other_writer(table, (1, "2026-11-18", 1))
    first, second = (table.stage_append(rows((number, "2026-11-18", number)), **CAST) for number in (2, 3))
    second.judge(suite(ONE_OF_A_KEY))
    with raised(ConflictError, "verdict_stale") as stale, lake.transaction() as tx:
        tx.add(first)
        tx.add(lake.staged(second.id))
    assert "same transaction" in str(stale.value)
    assert not re.search("snapshot [2-9]", str(stale.value))
    third, fourth = (table.stage_overwrite(rows((number, "2026-11-19", 4)), "dynamic", **CAST) for number in (4, 5))
    with raised(ConflictError, "rows_added") as conflict, lake.transaction() as tx:
        tx.add(third)
        tx.add(fourth)
    assert "same transaction" in str(conflict.value)
    assert not re.search("snapshot [2-9]", str(conflict.value))
    assert ids(table) == [1]


def test_rows_of_others_are_none_to_be_judged_on_top_of(lake: Lake, table: Table, gated: Table) -> None:
    first, other = (each.stage_append(rows((2, "2026-11-18", 2)), **CAST) for each in (table, gated))
    for wrong in (other, first, first.id):
        with raised(InvalidInputError, "invalid_on_top_of"):
            first.judge(suite(ONE_OF_A_KEY), on_top_of=[wrong])  # type: ignore[list-item]
    with raised(InvalidInputError, "invalid_scope"):
        first.scan(scope="staged", on_top_of=[table.stage_append(rows((3, "2026-11-18", 2)), **CAST)])


def test_what_two_commits_of_one_transaction_break_together_is_rejected(lake: Lake, table: Table) -> None:
    first, second = (table.stage_append(rows((number, "2026-11-18", 7)), **CAST) for number in (1, 2))
    for staged in (first, second):
        assert staged.judge(suite(ONE_OF_A_KEY)).outcome is Outcome.ACCEPT
    with raised(RejectedError, "gate_rejected"), lake.transaction() as tx:
        tx.add(first)
        tx.add(second)
    assert ids(table) == []
    assert (first.state, second.state) == ("staged", "rejected")


def test_a_verdict_on_top_of_a_commit_that_was_not_published_is_stale(lake: Lake, table: Table) -> None:
    first, second = (table.stage_append(rows((number, "2026-11-18", number)), **CAST) for number in (1, 2))
    judging = Judging(suite=suite(ONE_OF_A_KEY))
    judge.judge(lake.runtime, second.id, judging, [first.id])
    with raised(ConflictError, "verdict_stale"):
        lake.staged(second.id).publish()
    first.publish()
    assert lake.staged(second.id).publish().id == 2


def test_a_transaction_judges_again_what_has_become_stale(lake: Lake, table: Table, gated: Table) -> None:
    first = table.stage_append(rows((2, "2026-11-18", 2)), gate=suite(ONE_OF_A_KEY), **CAST)
    second = gated.stage_append(rows((2, "2026-11-18", 2)), gate=suite(FEW_ROWS), **CAST)
    other_writer(table, (1, "2026-11-18", 1))
    with lake.transaction() as tx:
        tx.add(first)
        tx.add(second)
    assert (ids(table), ids(gated)) == ([1, 2], [2])
    assert first.verdict is not None
    assert first.verdict.base_snapshot_id == 1


def test_writers_with_gates_at_once_lose_nothing(table: Table) -> None:
    """Each is judged on top of those that came before it."""
    gate = suite(ONE_OF_A_KEY, "{type: expect_table_row_count_to_be_between, kwargs: {max_value: 4}, scope: table}")

    def write(number: int) -> None:
        table.append(rows((number, "2026-11-18", number)), gate=gate, **CAST)

    with ThreadPoolExecutor(4) as threads:
        done = [threads.submit(write, number) for number in range(4)]
    assert [each.exception() for each in done] == [None] * 4
    assert ids(table) == [0, 1, 2, 3]


# Looking at commits


def test_a_commit_is_found_by_its_id(lake: Lake, table: Table) -> None:
    staged = table.stage_append(GOOD, **CAST)
    found = lake.staged(staged.id)
    assert (found.id, found.table_name) == (staged.id, table.name)
    assert repr(found) == f"<StagedCommit {staged.id} of {table.name}: staged, not judged>"
    with raised(NotFoundError, "commit_not_found"):
        lake.staged(uuid4())
    with raised(InvalidInputError, "invalid_commit_id"):
        lake.staged("no id")


def test_a_commit_is_found_by_how_its_id_begins(lake: Lake, table: Table) -> None:
    staged = table.stage_append(GOOD, **CAST)
    for text in (str(staged.id)[:13], staged.id.hex[:9], str(staged.id)[:12].upper(), str(staged.id)):
        assert lake.staged(text).id == staged.id
    for text in (staged.id.hex[:3], "", "zzzz", f"{staged.id}0"):
        with raised(InvalidInputError, "invalid_commit_id"):
            lake.staged(text)
    with raised(NotFoundError, "commit_not_found"):
        lake.staged(uuid4().hex[:20])


def test_of_commits_whose_ids_begin_alike_none_is_chosen(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    alike = uuid4().hex[:10]
    ids = iter([UUID(alike + uuid4().hex[10:]) for _ in range(2)])
    monkeypatch.setattr("lakelib.ops.write.uuid4", lambda: next(ids))
    first, second = table.stage_append(GOOD, **CAST), table.stage_append(GOOD, **CAST)
    assert first.id.hex[:10] == second.id.hex[:10] == alike
    second.reject("no")
    with raised(InvalidInputError, "ambiguous_commit_id") as told:
        lake.staged(alike)
    assert f"{first.id} ({table.name}, staged)" in told.value.message
    assert f"{second.id} ({table.name}, rejected)" in told.value.message


def test_the_report_is_a_file_that_tells_the_verdict(table: Table, tmp_path: Path) -> None:
    staged = table.stage_append(BAD, **CAST)
    with raised(NotFoundError, "verdict_not_found"):
        staged.report(tmp_path / "report.html")
    staged.judge(suite(HAS_AMOUNT))
    page = staged.report(tmp_path / "report.html").read_text()
    assert all(word in page for word in (table.name, "Rejected", "rejected", str(staged.id)))
    with raised(InvalidInputError, "unwritable_file"):
        staged.report(tmp_path / "none" / "report.html")


SECRETS = (
    "{type: expect_column_values_to_be_null, kwargs: {column: secret}}",
    "{type: expect_column_values_to_be_unique, kwargs: {column: number}}",
    "{type: expect_column_max_to_be_between, kwargs: {column: number, max_value: 1}}",
    "{type: expect_column_mean_to_be_between, kwargs: {column: number, max_value: 1}}",
    "{type: expect_compound_columns_to_be_unique, kwargs: {column_list: [number, id]}}",
    "{type: expect_column_values_to_be_between, kwargs: {column: id, max_value: 0}}",
)
TOLD = pa.table({"id": [7, 7], "secret": ["attack at dawn", None], "number": [4711, 4711]})


def test_no_verdict_shows_a_sensitive_value(new_table: NewTable, tmp_path: Path) -> None:
    table = new_table("id BIGINT, secret STRING, number BIGINT", options={"sensitive_columns": "secret, number"})
    staged = table.stage_append(TOLD)
    verdict = staged.judge(suite(*SECRETS))
    assert [check.sample for check in verdict.checks] == [
        ("***",),
        ("***", "***"),
        (),
        (),
        ({"number": "***", "id": 7}, {"number": "***", "id": 7}),
        (7, 7),
    ]
    assert [check.observed for check in verdict.checks[2:4]] == ["***", 4711]
    page = tmp_path / "report.html"
    staged.report(page)
    assert "attack" not in page.read_text()


def test_a_sensitive_column_stays_one_under_another_name(new_table: NewTable) -> None:
    table = new_table("id BIGINT, secret STRING", options={"sensitive_columns": "secret"})
    with raised(InvalidInputError, "sensitive_column"):
        table.evolve(rename={"secret": "open"})
    table.set_options({"sensitive_columns": "secret,open"})
    table.evolve(rename={"secret": "open"})
    assert table.stage_append(pa.table({"id": [1], "open": ["x"]})).judge(
        suite("{type: expect_column_values_to_be_null, kwargs: {column: open}}")
    ).checks[0].sample == ("***",)


def test_what_a_verdict_shows_of_rows_goes_with_them(lake: Lake, new_table: NewTable) -> None:
    table = new_table("id BIGINT, secret STRING, number BIGINT")
    rejected, kept = table.stage_append(TOLD), table.stage_append(TOLD)
    for staged in (rejected, kept):
        assert any(check.sample for check in staged.judge(suite(*SECRETS)).checks)
    kept.publish(by="ada", reason="a test")
    table.expire(staged_older_than=timedelta(0))
    gone, there = lake.staged(rejected.id).verdict, lake.staged(kept.id).verdict
    assert gone is not None
    assert there is not None
    assert not any(check.sample for check in gone.checks)
    assert any(check.sample for check in there.checks)
    assert [check.unexpected_count for check in gone.checks] == [check.unexpected_count for check in there.checks]
