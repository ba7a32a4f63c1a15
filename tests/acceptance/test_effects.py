"""What a snapshot did to rows: counted where it is known for nothing, and else by reading its changes."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest

from lakelib import Table
from tests.acceptance.support import NewTable, data

SCHEMA = "id BIGINT, dt DATE, v BIGINT"
KINDS = {"id": pa.int64(), "dt": pa.date32(), "v": pa.int64()}
MON, TUE = date(2026, 11, 16), date(2026, 11, 17)
Counts = tuple[int | None, int | None, int | None]
NOT_KNOWN: Counts = (None, None, None)


def rows(*given: tuple[int, date, int]) -> pa.Table:
    return data(KINDS, *given)


def counts(snapshot: Any) -> Counts:
    return tuple(snapshot.summary[f"rows_{what}"] for what in ("inserted", "updated", "deleted"))  # type: ignore[return-value]


STEPS: list[tuple[Callable[[Table], Any], Counts, Counts, Counts]] = [
    (lambda t: t.append(rows((1, MON, 1), (2, MON, 2), (3, TUE, 3))), NOT_KNOWN, (3, 0, 0), (3, 0, 0)),
    (lambda t: t.append(rows((4, MON, 4))), NOT_KNOWN, (1, 0, 0), (1, 0, 0)),
    (lambda t: t.append(rows()), (0, 0, 0), (0, 0, 0), (0, 0, 0)),
    (lambda t: t.delete("v <= 2"), (0, 0, 2), (0, 0, 2), (0, 0, 2)),
    (lambda t: t.delete("v > 100"), (0, 0, 0), (0, 0, 0), (0, 0, 0)),
    (lambda t: next(iter(t.compact(full=True).snapshots), None), (0, 0, 0), (0, 0, 0), (0, 0, 0)),
    (lambda t: t.delete(f"dt = '{TUE}'"), (0, 0, 1), (0, 0, 1), (0, 0, 1)),
    (lambda t: t.evolve(add=[("n", "int")]), (0, 0, 0), (0, 0, 0), (0, 0, 0)),
    (lambda t: t.overwrite(rows()), (0, 0, 1), (0, 0, 1), (0, 0, 1)),
]


@pytest.mark.parametrize("has_key", [True, False])
def test_what_is_known_for_nothing_is_said_at_once_and_all_else_is_counted(new_table: NewTable, has_key: bool) -> None:
    table = new_table(SCHEMA, primary_key=["id"] if has_key else [], partition_by=["dt"])
    wanted: list[Counts] = []
    for work, keyed, plain, exact in STEPS:
        snapshot = work(table)
        if snapshot is not None:  # where there was something to compact
            assert counts(snapshot) == (keyed if has_key else plain)
            wanted.append(exact)
    assert [counts(snapshot) for snapshot in table.history(exact=True)] == wanted[::-1]


def test_rows_that_take_the_place_of_others_are_counted_by_their_changes(new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.upsert(rows((1, MON, 1), (2, MON, 2)))
    table.upsert(rows((1, MON, 7), (2, MON, 2), (3, TUE, 3)))
    table.overwrite(rows((1, MON, 8), (9, MON, 9)))
    table.rollback(2)
    assert [counts(each) for each in table.history()] == [NOT_KNOWN] * 4
    assert [counts(each) for each in table.history(exact=True)] == [(2, 1, 1), (1, 1, 2), (1, 1, 0), (2, 0, 0)]


def test_a_partition_with_more_than_one_run_is_counted_by_its_changes(new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.upsert(rows((1, MON, 1)))
    table.upsert(rows((1, MON, 2), (2, MON, 2)))
    assert counts(table.delete(f"dt = '{MON}'")) == NOT_KNOWN
    assert counts(table.history(exact=True)[0]) == (0, 0, 2)


def test_a_rollback_that_only_takes_or_brings_is_counted(new_table: NewTable) -> None:
    table = new_table(SCHEMA, partition_by=["dt"])
    table.append(rows((1, MON, 1)))
    table.append(rows((2, MON, 2), (3, TUE, 3)))
    assert counts(table.rollback(1)) == (0, 0, 2)
    assert counts(table.rollback(2)) == (2, 0, 0)
    assert counts(table.rollback(2)) == (0, 0, 0)
    assert [counts(each) for each in table.history(exact=True)][:3] == [(0, 0, 0), (2, 0, 0), (0, 0, 2)]


def test_what_a_delete_took_in_meanwhile_is_not_told_wrongly(new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.upsert(rows((1, MON, 1)))
    staged = table.stage_overwrite(rows())
    table.compact(full=True)
    table.upsert(rows((2, MON, 2)))
    table.overwrite(rows())
    assert staged.state == "staged"
    assert counts(table.history(exact=True)[0]) == (0, 0, 2)


def test_what_the_past_does_not_tell_any_more_is_none(new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.upsert(rows((1, MON, 1)))
    table.upsert(rows((1, MON, 2)))
    table.expire(keep_last=1, grace=timedelta(0))
    assert [counts(each) for each in table.history(exact=True)] == [NOT_KNOWN]
