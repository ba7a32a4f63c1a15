"""What a backfill is to do: which partitions of which tables, said by days or by keys."""

from pathlib import Path
from typing import Any

import pytest

from dags.lake_dags.backfill_plan import Range, plan_html, plan_items
from lakelib.errors import InvalidInputError
from lakelib.specs.table_spec import TableSpec, parse_spec

_COLUMNS = {"day": "dt DATE", "hour": "at TIMESTAMP", "month": "month STRING"}


def spec(every: str) -> TableSpec:
    """Of the table `s.<every>`."""
    text = f"table: s.{every}\ncolumns: id BIGINT, dt DATE, at TIMESTAMP, month STRING\nprimary_key: [id]\n"
    if every == "copy":
        text += "partition: {every: day}\nwrite: {mode: overwrite, partitions: all}\n"
    elif every != "none":
        column = _COLUMNS[every].split()[0]
        text += f"partition_by: [{column}]\npartition: {{column: {column}, every: {every}}}\n"
    return parse_spec(text + 'source: {path: "/in/{partition}/x"}\n', Path("/specs/s.yaml"))


SPECS = [spec(every) for every in ("day", "hour", "month", "none", "copy")]


def keys(table: str, **params: Any) -> list[str]:
    given = {**dict.fromkeys(("from", "to", "from_key", "to_key")), **params}
    return [item["partition"] for item in plan_items(SPECS, [table], Range.of(given))]


@pytest.mark.parametrize(
    ("table", "count", "first", "last"),
    [
        ("s.day", 3, "2026-10-31", "2026-11-02"),
        ("s.hour", 72, "2026-10-31T00", "2026-11-02T23"),
        ("s.month", 2, "2026-10", "2026-11"),
        ("s.none", 1, "all", "all"),
        ("s.copy", 1, "2026-11-02", "2026-11-02"),
    ],
)
def test_days_say_the_partitions_of_every_table(table: str, count: int, first: str, last: str) -> None:
    found = keys(table, **{"from": "2026-10-31", "to": "2026-11-02"})
    assert (len(found), found[0], found[-1]) == (count, first, last)


def test_one_day_is_enough_and_keys_say_it_to_the_hour() -> None:
    assert keys("s.day", **{"from": "2026-11-02"}) == ["2026-11-02"]
    assert keys("s.hour", from_key="2026-11-02T22", to_key="2026-11-03T00") == [
        "2026-11-02T22",
        "2026-11-02T23",
        "2026-11-03T00",
    ]
    with pytest.raises(InvalidInputError, match="'2026-11' is not that of a day"):
        keys("s.day", from_key="2026-11")


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, "neither are said"),
        ({"from": "2026-11-02", "to_key": "2026-11"}, "both are said"),
        ({"to": "2026-11-02"}, "the first of the partitions"),
    ],
)
def test_a_range_that_nobody_can_mean_is_refused(params: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        keys("s.day", **params)


def test_the_page_says_how_and_which_and_shows_names_as_text() -> None:
    items = [{"table": "s.day", "partition": "2026-11-02"}, {"table": "<b>", "partition": "all"}]
    page = plan_html(items, atomic=True, dry_run=True)
    for said in ("2 partitions", "in one transaction", "This is a dry run", "2026-11-02", "&lt;b&gt;"):
        assert said in page
    assert "one by one" in plan_html(items, atomic=False, dry_run=False)
