"""Partition keys: which texts they are, what they mean, and which ones lie between two."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.errors import InvalidInputError
from lakelib.specs.partition_keys import (
    KEY_FORMATS,
    Step,
    format_partition,
    key_of_value,
    parse_partition,
    partition_keys,
)

STEPS: tuple[Step, ...] = ("day", "hour", "month")


@given(st.sampled_from(STEPS), st.datetimes())
def test_a_moments_key_says_where_its_step_begins(every: Step, moment: datetime) -> None:
    key = format_partition(every, moment)
    begin = parse_partition(every, key)
    assert begin is not None
    assert begin <= moment
    assert format_partition(every, begin) == key
    if moment.year >= 1000:  # strftime pads no years
        assert key == moment.strftime(KEY_FORMATS[every])


@given(st.sampled_from(STEPS), st.text(alphabet="0123456789-T: +Z\n", max_size=16))
def test_a_text_is_a_key_only_if_it_is_written_as_keys_are(every: Step, text: str) -> None:
    try:
        begin = parse_partition(every, text)
    except InvalidInputError:
        return
    assert begin is not None
    assert format_partition(every, begin) == text


@pytest.mark.parametrize(
    ("every", "key"),
    [
        ("day", "2026-02-29"),
        ("day", "2026-2-1"),
        ("day", "20260201"),
        ("day", "2026-W01-1"),
        ("day", "2026-11-18T05"),
        ("day", "2026-11-18\n"),
        ("day", "２０２６-11-18"),
        ("day", "all"),
        ("day", ""),
        ("hour", "2026-11-18T24"),
        ("hour", "2026-11-18 05"),
        ("hour", "2026-11-18T5"),
        ("hour", "2026-11-18"),
        ("month", "2026-13"),
        ("month", "2026-1"),
        ("month", "2026-11-18"),
        ("none", "2026-11-18"),
        ("none", "ALL"),
    ],
)
def test_any_other_text_is_refused_with_an_example(every: Step, key: str) -> None:
    with pytest.raises(InvalidInputError, match="Give a key such as") as raised:
        parse_partition(every, key)
    assert raised.value.kind == "invalid_partition_key"
    assert repr(key) in raised.value.message


@given(st.sampled_from(STEPS), st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)), st.integers(0, 60))
def test_a_range_has_each_key_between_its_ends_once_and_in_order(every: Step, moment: datetime, days: int) -> None:
    first, last = format_partition(every, moment), format_partition(every, moment + timedelta(days=days))
    keys = partition_keys(every, first, last)
    hours = (moment + timedelta(hours=hour) for hour in range(24 * days + 1))
    assert list(keys) == sorted({format_partition(every, hour) for hour in hours})


def test_ranges_cross_months_years_and_leap_days() -> None:
    assert partition_keys("day", "2028-02-28", "2028-03-01") == ("2028-02-28", "2028-02-29", "2028-03-01")
    assert partition_keys("hour", "2026-12-31T23", "2027-01-01T01") == (
        "2026-12-31T23",
        "2027-01-01T00",
        "2027-01-01T01",
    )
    assert partition_keys("month", "2026-11", "2027-02") == ("2026-11", "2026-12", "2027-01", "2027-02")
    assert partition_keys("day", "9999-12-30", "9999-12-31") == ("9999-12-30", "9999-12-31")


_LATE = datetime(2026, 11, 18, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("every", "value", "key"),
    [
        ("day", date(2026, 11, 18), "2026-11-18"),
        ("month", date(2026, 11, 18), "2026-11"),
        ("hour", _LATE, "2026-11-18T23"),
        ("hour", _LATE.astimezone(timezone(timedelta(hours=5))), "2026-11-18T23"),
        ("hour", _LATE.replace(tzinfo=None), "2026-11-18T23"),
        ("day", "2026-11-18", "2026-11-18"),
        ("day", "yesterday", None),
        ("day", None, None),
        ("none", None, "all"),
    ],
)
def test_a_value_of_the_keys_column_lies_in_a_step_or_in_none(every: Step, value: object, key: str | None) -> None:
    assert key_of_value(every, value) == key
