"""Lengths of time and cron expressions, as specs write them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.specs.calendar import parse_cron
from lakelib.specs.texts import LONGEST_LENGTH, format_duration, parse_duration


def _in_seconds(length: timedelta) -> timedelta:
    return timedelta(days=length.days, seconds=length.seconds)


@given(st.timedeltas(min_value=timedelta(0), max_value=LONGEST_LENGTH).map(_in_seconds))
def test_a_length_of_time_comes_back_from_its_text(length: timedelta) -> None:
    assert parse_duration(format_duration(length)) == length


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("0s", timedelta(0)),
        ("30s", timedelta(seconds=30)),
        ("90m", timedelta(minutes=90)),
        ("6h", timedelta(hours=6)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(days=14)),
        ("1h30m", timedelta(minutes=90)),
        ("1d 12h", timedelta(hours=36)),
    ],
)
def test_units_are_added_up(text: str, length: timedelta) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize(
    "text",
    [
        "",
        "6",
        "h",
        "6 h",
        "-6h",
        "1.5h",
        "6H",
        "6h ",
        "6h\n",
        "2 weeks",
        "1h 1h",
        "1h,30m",
        "٣h",
        "9" * 20 + "w",
        "9" * 5000 + "s",
        "365001d",
        "365000d 1s",
    ],
)
def test_any_other_text_is_no_length_of_time(text: str) -> None:
    with pytest.raises(ValueError, match="a length of time"):
        parse_duration(text)


@pytest.mark.parametrize(
    "text",
    [
        "* * * * *",
        "0 2 * * *",
        "*/15 0-6/2 1,15 JAN-mar,12 mon-fri",
        "59 23 31 12 7",
        "0 0 30 2 mon",
        "0 0 29,31 feb *",
        "  0   2 * * sun ",
        "@daily",
    ],
)
def test_cron_expressions_are_accepted(text: str) -> None:
    parse_cron(text)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of month"),
        ("* * 32 * *", "day of month"),
        ("* * * 13 *", "month"),
        ("* * * foo *", "month"),
        ("* * * * 8", "day of week"),
        ("*/0 * * * *", "minute"),
        ("*/60 * * * *", "minute"),
        ("5/10 * * * *", "minute"),
        ("30-10 * * * *", "minute"),
        ("1, * * * *", "minute"),
        ("-1 * * * *", "minute"),
        ("1-2-3 * * * *", "minute"),
        ("? * * * *", "minute"),
        ("* * * *", "five fields"),
        ("* * * * * *", "five fields"),
        ("", "five fields"),
        ("@reboot", "five fields"),
        ("@Daily", "five fields"),
        ("0 0 30 2 *", "a day of month that one of its months has"),
        ("0 0 31 4,jun *", "a day of month that one of its months has"),
    ],
)
def test_what_is_wrong_with_a_cron_expression_is_said_of_its_field(text: str, field: str) -> None:
    with pytest.raises(ValueError, match=f"^{field}"):
        parse_cron(text)
