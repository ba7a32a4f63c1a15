"""Promises of gates on what a commit does to rows: it is counted exactly, whatever kind of commit it is, and one that
takes more than the bound is seen by nobody."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelib import Lake, RejectedError, StagedCommit, Table
from lakelib.model.gate import Outcome
from lakelib.specs.suite import Suite, parse_suite
from tests.acceptance.support import Engine, NewTable, data

SCHEMA = "id BIGINT, dt STRING, v BIGINT"
KINDS = {"id": pa.int64(), "dt": pa.string(), "v": pa.int64()}
MON, TUE = "2026-11-16", "2026-11-17"
CHANGES = ("inserted", "updated", "deleted")


def rows(*given: tuple[int, str, int]) -> pa.Table:
    return data(KINDS, *given)


def day(dt: str, ids: range, v: int = 0) -> pa.Table:
    return rows(*((number, dt, v) for number in ids))


def suite(*checks: str) -> Suite:
    return parse_suite("name: effects\nexpectations:\n" + "".join(f"- {check}\n" for check in checks))


def bound(change: str, most: float, scope: str = "merged", share: str = "") -> str:
    kind = f"expect_{share}rows_{change}_to_be_between"
    return f"{{type: {kind}, kwargs: {{max_value: {most}}}, scope: {scope}}}"


ALL_COUNTED = suite(*(bound(change, 1_000_000) for change in CHANGES))
FEW_GO = suite(bound("deleted", 0.01, share="proportion_of_"))


def counted(engine: Engine, staged: StagedCommit) -> dict[str, int]:
    verdict = engine.judge(staged, ALL_COUNTED)
    assert verdict.outcome is Outcome.ACCEPT
    return {name: count for check in verdict.checks for name, count in check.observed.items()}


WRITES: dict[str, Callable[[Table], StagedCommit]] = {
    "upsert": lambda t: t.stage_upsert(rows((1, MON, 7), (2, MON, 0), (900, MON, 9), (901, "new", 9))),
    "delete by predicate": lambda t: t.stage_delete("v = 0 AND id < 5"),
    "delete of a partition": lambda t: t.stage_delete(f"dt = '{TUE}'"),
    "overwrite": lambda t: t.stage_overwrite(rows((1, MON, 1), (3, MON, 0), (900, MON, 9))),
    "rollback": lambda t: t.stage_rollback(1),
}
"""Of 10 rows on Monday, in two runs whose second has written ids 8 and 9 again, and of 5 on Tuesday."""


@pytest.mark.parametrize(
    ("work", "has_key"), [(work, True) for work in WRITES] + [(work, False) for work in WRITES if work != "upsert"]
)
def test_what_a_commit_is_told_to_do_is_what_it_has_done(
    engine: Engine, new_table: NewTable, work: str, has_key: bool
) -> None:
    table = new_table(SCHEMA, primary_key=["id"] if has_key else [], partition_by=["dt"])
    table.append(day(MON, range(9)))
    table.append(pa.concat_tables([rows((8, MON, 5), (9, MON, 0)), day(TUE, range(100, 105))]))
    staged = WRITES[work](table)
    told = counted(engine, staged)
    staged.publish()
    done = table.history(exact=True)[0].summary
    assert told == {name: done[name] for name in told}
    assert sum(told.values()) > 0


def test_an_older_state_that_is_delivered_late_does_nothing(new_table: NewTable, engine: Engine) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"], sequence_by=["v"])
    table.upsert(rows((1, MON, 5), (2, MON, 5)))
    staged = table.stage_upsert(rows((1, MON, 3), (2, MON, 9), (3, MON, 1)))
    assert counted(engine, staged) == {"rows_inserted": 1, "rows_updated": 1, "rows_deleted": 0}


@pytest.mark.parametrize(
    "write",
    [
        lambda t, gate: t.delete("id < 2", gate=gate),
        lambda t, gate: t.delete(f"dt = '{TUE}'", gate=gate),
        lambda t, gate: t.overwrite(day(MON, range(2, 100)), partitions="dynamic", gate=gate),
        lambda t, gate: t.rollback(1, gate=gate),
    ],
    ids=["delete", "partition", "overwrite", "rollback"],
)
def test_a_commit_that_takes_more_rows_than_the_bound_is_rejected(new_table: NewTable, write: Any) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.append(day(MON, range(98)))
    table.append(pa.concat_tables([day(MON, range(98, 100)), day(TUE, range(200, 205))]))
    with pytest.raises(RejectedError, match=r"rows deleted, of [\d]+ that there were"):
        write(table, FEW_GO)
    assert table.head is not None
    assert (table.head.id, table.scan().count()) == (2, 105)


def test_a_commit_that_takes_as_many_rows_as_the_bound_is_published(new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.append(day(MON, range(100)))
    table.delete("id = 1", gate=FEW_GO)
    with pytest.raises(RejectedError, match="1 rows deleted, of 99 that there were"):
        table.delete("id = 2", gate=FEW_GO)


def test_a_share_is_of_the_partitions_touched_or_of_the_table(new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.append(pa.concat_tables([day(MON, range(30)), day(TUE, range(100, 110))]))
    shares = [bound("deleted", 0.99, scope, "proportion_of_") for scope in ("merged", "table")]
    verdict = table.stage_delete("id IN (101, 102)").judge(suite(*shares))
    assert [check.observed for check in verdict.checks] == [
        {"rows_deleted": 2, "rows_before": 10, "proportion": 0.2},
        {"rows_deleted": 2, "rows_before": 40, "proportion": 0.05},
    ]


def test_the_first_commit_of_a_table_changes_no_share_of_it(new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    gate = suite(bound("inserted", 0.5, share="proportion_of_", scope="table"))
    table.append(day(MON, range(10)), gate=gate)
    with pytest.raises(RejectedError):
        table.append(day(MON, range(10, 20)), gate=gate)


def test_rows_of_others_make_the_verdict_stale_and_it_is_measured_again(new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.append(day(MON, range(2)))
    staged = table.stage_upsert(rows((5, MON, 1), (6, MON, 1)), gate=suite(bound("updated", 0)))
    table.upsert(rows((5, MON, 9)))
    with pytest.raises(RejectedError, match="1 rows updated"):
        staged.publish()


def test_commits_beneath_count_as_rows_that_there_were(lake: Lake, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.append(day(MON, range(2)))
    first = table.stage_upsert(rows((2, MON, 1), (3, MON, 1)))
    second = table.stage_upsert(rows((3, MON, 2), (4, MON, 2)))
    verdict = second.judge(ALL_COUNTED, on_top_of=[first])
    assert [next(iter(check.observed.values())) for check in verdict.checks] == [1, 1, 0]


def test_the_report_says_what_the_commit_does(new_table: NewTable, tmp_path: Path) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.append(day(MON, range(100)))
    staged = table.stage_delete("id < 5", gate=FEW_GO)
    page = re.sub(r"</?bdi>", "", staged.report(tmp_path / "report.html").read_text())
    assert "<dt>What it does</dt><dd>0 inserted, 0 updated, 5 deleted" in page
    assert "5 rows deleted, of 100 that there were <small>5.00 %</small>" in page
