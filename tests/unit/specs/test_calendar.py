"""Which partitions are due when: each once, whatever clocks do and however often cron ticks."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.errors import InvalidInputError
from lakelib.specs.calendar import Calendar, calendar_of, moment_of
from lakelib.specs.partition_keys import Step, partition_keys
from tests.conftest import THIN_MATRICES

CRONS = ("0 0 * * *", "30 1 * * *", "0 2 * * *", "30 2 * * *")
ODD_YEARS = [
    ("America/St_Johns", 2010),  # a minute of the new day, then an hour of the old one again
    ("Africa/Cairo", 2010),
    ("America/Asuncion", 2010),
    ("America/Sao_Paulo", 2010),
    ("Pacific/Apia", 2010),
    ("Antarctica/Troll", 2026),  # two hours
    ("Africa/Casablanca", 2026),
]
_LONG_AGO = datetime(1971, 1, 1, tzinfo=UTC)


def _scheduled(calendar: Calendar, begin: datetime, end: datetime) -> dict[str, datetime]:
    """The keys that follow each other, with the moments at which they are due."""
    found: dict[str, datetime] = {}
    key = calendar.next_key(None, begin, catchup=True, now=_LONG_AGO)
    while (due := calendar.due(key)) < end:
        assert key not in found
        found[key] = due
        key = calendar.next_key(key, begin, catchup=True, now=_LONG_AGO)
    return found


def _check_year(zone: str, year: int, cron: str) -> None:
    calendar = calendar_of("day", cron, zone)
    begin, end = (moment_of(datetime(which, 1, 1), ZoneInfo(zone)) for which in (year, year + 1))
    found = _scheduled(calendar, begin, end)
    assert tuple(found) == partition_keys("day", f"{year - 1}-12-31", f"{year}-12-30")
    for key, due in found.items():
        day = date.fromisoformat(key) + timedelta(days=1)
        assert due.astimezone(ZoneInfo(zone)).date() == day, (zone, cron, key)
        assert (due + timedelta(minutes=61)).astimezone(ZoneInfo(zone)).date() == day, (zone, cron, key)


@pytest.fixture(scope="module")
def zones() -> list[str]:
    """Of every zone one name: many are others' second names, of the same data."""
    by_data = {_data_of(zone): zone for zone in sorted(available_timezones())}
    return list(by_data.values())


def _data_of(zone: str) -> bytes:
    """As `zoneinfo` finds it."""
    for folder in TZPATH:
        if (path := Path(folder, zone)).is_file():
            return path.read_bytes()
    return files("tzdata.zoneinfo").joinpath(zone).read_bytes()


@pytest.mark.parametrize("cron", CRONS)
def test_in_every_zone_each_day_is_due_once_on_the_day_after(zones: list[str], cron: str) -> None:
    """`make test` takes one of these for each zone."""
    for zone in zones[CRONS.index(cron) :: len(CRONS)] if THIN_MATRICES else zones:
        _check_year(zone, 2026, cron)


@pytest.mark.parametrize(("zone", "year"), ODD_YEARS)
@pytest.mark.parametrize("cron", CRONS)
def test_in_years_whose_clocks_are_odd_too(zone: str, year: int, cron: str) -> None:
    _check_year(zone, year, cron)


@pytest.mark.parametrize("cron", ["0 0 1 * *", "30 1 1 * *", "0 2 1 * *", "30 2 28 * *"])
def test_in_every_zone_each_month_is_due_once(zones: list[str], cron: str) -> None:
    for zone in zones:
        calendar = calendar_of("month", cron, zone)
        begin, end = (moment_of(datetime(year, 1, 1), ZoneInfo(zone)) for year in (2026, 2027))
        found = _scheduled(calendar, begin, end)
        assert tuple(found) == partition_keys("month", "2025-12", "2026-11")
        assert [due.astimezone(ZoneInfo(zone)).month for due in found.values()] == list(range(1, 13))


@pytest.mark.parametrize("cron", ["@hourly", "30 * * * *"])
def test_each_hour_is_due_once(cron: str) -> None:
    calendar = calendar_of("hour", cron, "UTC")
    found = _scheduled(calendar, datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
    minutes = timedelta(minutes=calendar.cron.minutes[0])
    assert tuple(found) == partition_keys("hour", "2025-12-31T23", "2026-12-31T22")
    assert all(
        due == datetime.fromisoformat(key).replace(tzinfo=UTC) + timedelta(hours=1) + minutes
        for key, due in found.items()
    )


def test_a_time_that_a_day_lacks_is_the_moment_after_the_gap_and_one_that_comes_twice_the_later() -> None:
    new_york = ZoneInfo("America/New_York")
    assert moment_of(datetime(2026, 3, 8, 2, 30), new_york) == datetime(2026, 3, 8, 7, tzinfo=UTC)
    assert moment_of(datetime(2026, 11, 1, 1, 30), new_york) == datetime(2026, 11, 1, 6, 30, tzinfo=UTC)
    assert moment_of(datetime(2026, 3, 8, 0, 30), ZoneInfo("America/Havana")) == datetime(2026, 3, 8, 5, tzinfo=UTC)


# A cron that does not tick once a step


def test_a_tick_on_weekdays_makes_up_for_the_days_since_the_tick_before() -> None:
    calendar = calendar_of("day", "0 2 * * 1-5", "Europe/Berlin")
    found = _scheduled(calendar, datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
    assert tuple(found) == partition_keys("day", "2025-12-31", "2026-12-30")
    assert Counter(due.isoweekday() for due in found.values()).keys() == {1, 2, 3, 4, 5}
    assert found["2026-11-13"] == found["2026-11-15"] == datetime(2026, 11, 16, 1, tzinfo=UTC)


def test_of_two_ticks_on_a_day_the_second_is_not_about_the_day_that_it_is_on() -> None:
    calendar = calendar_of("day", "0 2,14 * * *", "UTC")
    found = _scheduled(calendar, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC))
    assert {due.hour for due in found.values()} == {2}
    assert all(due.date() == date.fromisoformat(key) + timedelta(days=1) for key, due in found.items())


@given(
    st.sampled_from(["day", "hour", "month"]),
    st.sampled_from(["0 2 * * *", "30 3 1 * *", "*/20 * * * *", "0 0 29 2 *", "15 4 1,15 * 1", "0 12 * 6 *"]),
    st.datetimes(datetime(2020, 1, 1), datetime(2024, 1, 1), timezones=st.just(UTC)),
)
def test_what_is_next_goes_on_without_a_gap(every: Step, cron: str, begin: datetime) -> None:
    calendar = calendar_of(every, cron, "UTC")
    keys = [calendar.next_key(None, begin, catchup=True, now=begin)]
    for _ in range(5):
        keys.append(calendar.next_key(keys[-1], begin, catchup=True, now=begin))
    assert tuple(keys) == partition_keys(every, keys[0], keys[-1])
    due = [calendar.due(key) for key in keys]
    assert due == sorted(due)
    assert due[0] >= begin


# Without catchup


def test_without_catchup_runs_begin_with_the_newest_tick() -> None:
    calendar = calendar_of("day", "0 2 * * *", "America/New_York")
    before, after = datetime(2026, 3, 8, 6, 59, tzinfo=UTC), datetime(2026, 3, 8, 7, tzinfo=UTC)
    assert calendar.next_key(None, None, catchup=False, now=before) == "2026-03-06"
    assert calendar.next_key(None, None, catchup=False, now=after) == "2026-03-07"
    assert calendar.next_key("2026-03-06", None, catchup=False, now=before) == "2026-03-07"
    assert calendar.next_key("2026-02-01", None, catchup=False, now=after) == "2026-03-07"
    start = datetime(2026, 4, 1, tzinfo=UTC)
    assert calendar.next_key(None, start, catchup=False, now=after) == "2026-03-31"


def test_without_catchup_all_days_of_the_newest_tick_are_made_up_for() -> None:
    calendar = calendar_of("day", "0 2 * * 1-5", "UTC")
    monday, keys = datetime(2026, 11, 16, 2, tzinfo=UTC), ["2026-11-12"]
    while calendar.due(keys[-1]) <= monday:
        keys.append(calendar.next_key(keys[-1], None, catchup=False, now=monday))
    assert keys == ["2026-11-12", "2026-11-13", "2026-11-14", "2026-11-15", "2026-11-16"]


# Backfills, and keys that are typed


def test_a_range_has_the_steps_that_begin_in_it() -> None:
    calendar = calendar_of("day", "0 2 * * *", "America/Havana")
    bounds = (moment_of(datetime(2026, 3, day), calendar.zone) for day in (7, 9))
    assert calendar.keys_from(*bounds) == ("2026-03-07", "2026-03-08", "2026-03-09")
    assert calendar.begin_of("2026-03-08") == datetime(2026, 3, 8, 5, tzinfo=UTC)


@pytest.mark.parametrize("key", ["2026-3-8", "0001-01-01", "all"])
def test_a_key_that_is_none_has_no_beginning(key: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        calendar_of("day", "@daily", "Asia/Tokyo").begin_of(key)
    assert raised.value.kind == "invalid_partition_key"
