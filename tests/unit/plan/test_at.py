"""Text that names a snapshot means one thing, wherever it is given."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.cli.arguments import read_at
from lakelib.errors import InvalidInputError
from lakelib.pipeline.arguments import Query
from lakelib.plan.meant import parse_at
from lakelib.spark.options import parse_read
from tests.understood import understood

MORNING = datetime(2026, 11, 18, 10, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("42", 42),
        ("007", 7),
        ("20261118", 20261118),
        ("tag:eod", "tag:eod"),
        ("tag:", "tag:"),
        ("tag:42\n", "tag:42\n"),
        ("2026-11-18T10:30", MORNING),
        ("2026-11-18 10:30:00.000000", MORNING),
        ("2026-11-18T10:30Z", MORNING),
        ("2026-11-18T12:30+02:00", MORNING),
        ("2026-11-18", MORNING.replace(hour=0, minute=0)),
    ],
)
def test_numbers_tags_and_moments_are_read(text: str, at: Any) -> None:
    found = parse_at(text)
    assert (found, type(found)) == (at, type(at))


@pytest.mark.parametrize(
    "text",
    ["", " ", "head", "-1", "+1", "1.0", "4 2", "42\n", " 42", "٤٢", "²", "1_000", "Tag:eod", "2026-13-01", "9" * 5000],
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_at(text)
    assert refused.value.kind == "invalid_at"
    assert len(str(refused.value)) < 400


@given(
    st.datetimes(
        timezones=st.none() | st.sampled_from([UTC, timezone(timedelta(hours=-14)), timezone(timedelta(hours=5.5))])
    )
)
def test_a_moment_comes_back_from_its_text(moment: datetime) -> None:
    assert parse_at(moment.isoformat()) == (moment if moment.tzinfo else moment.replace(tzinfo=UTC))


@pytest.mark.parametrize(
    "text", ["42", "tag:eod", "tag:a@b", "2026-11-18T10:30", "2026-11-18 10:30+05:30", "2026-11-18"]
)
def test_all_surfaces_read_alike(text: str) -> None:
    job = understood("append", ["shop.t", "--sql", "SELECT 1", "--lake-view", f"v=shop.s@{text}"])
    assert isinstance(job.source, Query)
    given = {read_at(text), parse_read({"path": "shop.t", "at": text}).at, job.source.lake_views[0].at}
    assert given == {parse_at(text)}
