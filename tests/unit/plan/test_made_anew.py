"""Which partitions are made anew, told by values of what they come from."""

from datetime import UTC, date, datetime

import pytest

from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column
from lakelib.plan.describe import describe_predicate
from lakelib.plan.made_anew import check_column, mark_of, rows_with, value_of
from lakelib.specs.partition_keys import Step


def _column(kind: str) -> Column:
    return Column(id=1, name="dt", type=kind)


@pytest.mark.parametrize(
    ("every", "value", "mark"),
    [
        ("day", date(2026, 11, 18), "2026-11-18"),
        ("day", datetime(2026, 11, 18, 23, 59, tzinfo=UTC), "2026-11-18"),
        ("hour", datetime(2026, 11, 18, 5, 30), "2026-11-18T05"),
        ("month", date(2026, 11, 18), "2026-11"),
        ("day", "a text", "a text"),
        ("day", None, None),
    ],
)
def test_a_value_says_which_partition_it_belongs_to(every: Step, value: object, mark: str | None) -> None:
    assert mark_of(every, value) == mark


def test_neighbouring_days_are_one_range() -> None:
    said = describe_predicate(
        rows_with("day", ["2026-11-18", "2026-11-30", "2026-11-19", "2026-12-01"], _column("date"))
    )
    assert said.count(">=") == said.count("<") - said.count("<=") == 2
    assert all(day in said for day in ("2026-11-18", "2026-11-20", "2026-11-30", "2026-12-02"))


def test_rows_without_a_value_are_a_partition_too() -> None:
    assert "IS NULL" in describe_predicate(rows_with("day", [None, "2026-11-18"], _column("timestamp")))
    assert describe_predicate(rows_with("day", [None], _column("string"))).endswith("IS NULL")


def test_texts_are_taken_as_they_are() -> None:
    said = describe_predicate(rows_with("day", ["2026-11-18", "o'clock"], _column("string")))
    assert "'2026-11-18'" in said
    assert " IN " in said
    assert value_of("day", "o'clock", "string") == "o'clock"


def test_what_is_no_key_has_no_day() -> None:
    assert value_of("month", "2026-11", "date") == "2026-11-01"
    assert value_of("day", None, "date") is None
    with pytest.raises(InvalidInputError):
        value_of("day", "o'clock", "date")


@pytest.mark.parametrize("column", [None, Column(id=1, name="dt", type="bigint")])
def test_a_column_that_tells_no_time_is_said(column: Column | None) -> None:
    with pytest.raises(InvalidInputError) as raised:
        check_column(column, "dt", "shop.orders", "day")
    assert raised.value.kind == "no_partition_column"


def test_a_day_does_not_tell_the_hour() -> None:
    assert check_column(_column("date"), "dt", "shop.orders", "month").type == "date"
    with pytest.raises(InvalidInputError):
        check_column(_column("date"), "dt", "shop.orders", "hour")
