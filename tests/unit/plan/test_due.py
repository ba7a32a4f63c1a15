"""Which partitions are due, and which have fallen behind."""

from datetime import UTC, date, datetime, timedelta

import pytest

from lakelib.model import sortable
from lakelib.model.status import Standing
from lakelib.plan import due
from lakelib.plan.due import Behind, Keying
from lakelib.specs.partition_keys import Step
from lakelib.specs.table_fields import Schedule

NOON = datetime(2026, 11, 19, 12, tzinfo=UTC)
DAY_20410 = (date(2025, 11, 18) - date(1970, 1, 1)).days


def due_keys(every: Step, cron: str, *runs: str, now: datetime = NOON, **more: object) -> tuple[str, ...]:
    schedule = Schedule(cron=cron, **more)  # type: ignore[arg-type]
    calendar = due.calendar_for(every, schedule)
    assert calendar is not None
    return due.keys_due(calendar, schedule, dict.fromkeys(runs, 1), now)


@pytest.mark.parametrize(
    ("hour", "newest"), [(0, "2026-11-17"), (1, "2026-11-17"), (2, "2026-11-18"), (23, "2026-11-18")]
)
def test_a_day_is_due_at_the_first_tick_after_it(hour: int, newest: str) -> None:
    assert due_keys("day", "0 2 * * *", now=NOON.replace(hour=hour)) == (newest,)


def test_a_month_and_an_hour_are_due_after_they_are_over() -> None:
    assert due_keys("month", "0 3 5 * *") == ("2026-10",)
    assert due_keys("month", "0 3 25 * *") == ("2026-09",)
    hours = due_keys("hour", "10 * * * *", "2026-11-19T08")
    assert hours == ("2026-11-19T08", "2026-11-19T09", "2026-11-19T10")


def test_what_is_due_begins_with_the_start_or_with_the_first_run() -> None:
    start = date(2026, 11, 15)
    days = tuple(f"2026-11-{day}" for day in (15, 16, 17, 18))
    assert due_keys("day", "0 2 * * *", start=start, catchup=True) == days
    assert due_keys("day", "0 2 * * *", "2026-11-17", start=start, catchup=True) == days
    assert due_keys("day", "0 2 * * *", start=start) == days[-1:]
    assert due_keys("day", "0 2 * * *", "2026-11-17", start=start) == days[-2:]
    assert due_keys("day", "0 2 * * *", "2026-11-01", start=start) == days
    assert due_keys("day", "0 2 * * *", start=date(2026, 12, 1)) == ()
    assert due_keys("day", "0 2 * * *", "2026-12-01") == ()


def test_a_table_that_no_clock_fills_has_no_calendar() -> None:
    assert due.calendar_for("day", None) is None
    assert due.calendar_for("none", Schedule(cron="@daily")) is None
    assert due.calendar_for("day", Schedule(after=("shop.orders",))) is None


def test_the_last_tick_is_of_the_schedules_time_zone() -> None:
    assert due.last_tick(Schedule(cron="0 2 * * *"), NOON) == datetime(2026, 11, 19, 2, tzinfo=UTC)
    berlin = Schedule(cron="0 2 * * *", timezone="Europe/Berlin")
    assert due.last_tick(berlin, NOON) == datetime(2026, 11, 19, 1, tzinfo=UTC)


def test_what_is_due_is_late_first_and_missing_then() -> None:
    assert due.lateness(NOON, timedelta(hours=1), NOON + timedelta(minutes=59)) is Standing.LATE
    assert due.lateness(NOON, timedelta(hours=1), NOON + timedelta(hours=1)) is Standing.MISSING


@pytest.mark.parametrize(
    ("every", "type_text", "raw", "key"),
    [
        ("day", "date", DAY_20410, "2025-11-18"),
        ("month", "date", DAY_20410, "2025-11"),
        ("hour", "timestamp", DAY_20410 * 86_400_000_000 + 5 * 3_600_000_000, "2025-11-18T05"),
        ("day", "date", -1, "1969-12-31"),
        ("day", "string", "2025-11-18", "2025-11-18"),
        ("day", "string", "else", None),
        ("day", "string", "", None),
        ("day", "date", 2**40, None),
        ("none", "string", "else", "all"),
    ],
)
def test_a_partitions_value_belongs_to_a_key(every: Step, type_text: str, raw: int | str, key: str | None) -> None:
    assert due.key_of_part(every, type_text, sortable.encode(type_text, raw)) == key


def test_rows_without_a_value_and_tables_without_a_column_belong_to_no_key() -> None:
    assert due.key_of_part("day", "date", None) is None
    assert due.key_of_part("day", "", b"anything") is None
    assert due.keys_changed(Keying(every="none"), {None: 7, b"x": 4}, {}) == {"all": 7}


def test_changes_of_a_finer_input_are_gathered_and_those_of_a_coarser_one_count_for_nothing() -> None:
    days = {"2026-10-31": 9, "2026-11-01": 3, "2026-11-30": 5}
    assert due.changes_for("day", "day", days) == days
    assert due.changes_for("month", "day", days) == {"2026-10": 9, "2026-11": 5}
    assert due.changes_for("none", "day", days) == {"all": 9}
    assert due.changes_for("day", "month", {"2026-11": 5}) == {}
    assert due.changes_for("day", "none", {"all": 5}) == {}


def test_only_the_newest_run_of_a_partition_counts() -> None:
    runs, changes = {"a": 4, "b": 2}, {"a": 7, "b": 7}
    reads = {"shop.orders": {1: 5, 4: 7, 2: 6}, "shop.gone": {4: 1}}
    assert due.find_behind(runs, reads, {"shop.orders": changes}) == {
        "b": Behind(input="shop.orders", seen=6, changed=7)
    }


def test_what_a_commit_calls_its_partition_may_be_no_key() -> None:
    assert [due.is_key("day", key) for key in ("2026-11-18", "2026-11", "all", "")] == [True, False, False, False]
