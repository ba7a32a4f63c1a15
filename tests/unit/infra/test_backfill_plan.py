"""What a backfill is to do: which partitions of which tables, said by days or by keys."""

from pathlib import Path
from typing import Any

import pytest

from dags.lake_dags.backfill_plan import Plan, Range, make_plan, plan_html, plan_items
from dags.lake_dags.spark_target import SparkChoice, shared_choice
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
    how = {"items": items, "downstream": True}
    page = plan_html(Plan(**how, follows=items[:1], woken=["s.<i>"], atomic=True, dry_run=True))
    for said in (
        *("2 partitions", "in one transaction", "This is a dry run", "2026-11-02", "&lt;b&gt;", "s.&lt;i&gt;"),
        *("With them 1 partition of tables", "late corrections"),
    ):
        assert said in page
    assert "one by one" in plan_html(Plan(**how, atomic=False, dry_run=False))


# What is made from what


def follower(name: str, every: str, *after: str, **more: str) -> TableSpec:
    """Of the table `s.<name>`, made from others by a query."""
    column = _COLUMNS.get(every, "id ").split()[0]
    fields = {
        "reads": "{" + ", ".join(f"v{place}: {table}" for place, table in enumerate(after)) + "}",
        "write": "{mode: overwrite}",
        "schedule": f"{{after: [{', '.join(after)}]}}",
        **({} if every == "none" else {"partition": f"{{column: {column}, every: {every}}}"}),
        **more,
    }
    text = f"table: s.{name}\ncolumns: id BIGINT, dt DATE, at TIMESTAMP, month STRING\npartition_by: [{column}]\n"
    lines = "".join(f"{field}: {value}\n" for field, value in fields.items())
    return parse_spec(f"{text}transform: {_QUERY}\n{lines}", Path("/specs/s.yaml"))


_QUERY = Path(__file__)
DAY_COPY = follower("again", "day", "s.day")
MONTHS = follower("months", "month", "s.again")
WHOLE = follower("sums", "none", "s.months", "s.hour")
ADDED = follower("log", "day", "s.day", write="{mode: append}")
OWN = follower("own", "day", "s.day", reads="{a: s.day, b: s.own}")
LISTED = follower("listed", "day", "s.log")
CHAIN = [*SPECS, LISTED, WHOLE, OWN, MONTHS, ADDED, DAY_COPY]


def plan(*keys: str, table: str = "s.day", **how: bool) -> Plan:
    items = [{"table": table, "partition": key} for key in keys]
    return make_plan(CHAIN, items, **{"atomic": True, "dry_run": False, "downstream": True, **how})


def test_what_a_query_makes_from_the_tables_alone_follows_in_the_order_of_the_chain_each_once() -> None:
    found = plan("2026-10-31", "2026-11-01", "2026-11-02")
    assert [(item["table"], item["partition"]) for item in found.follows] == [
        *(("s.again", day) for day in ("2026-10-31", "2026-11-01", "2026-11-02")),
        *(("s.months", month) for month in ("2026-10", "2026-11")),
        ("s.sums", "all"),
    ]
    assert set(found.woken) == {"s.log", "s.own", "s.listed"}
    (batch,) = found.batches()
    assert batch["tables"] == ["s.day", "s.again", "s.months", "s.sums"]
    assert (batch["name"], batch["downstream"]) == ("s.day 2026-10-31 and 2 more", True)


def test_one_by_one_all_are_woken_and_without_downstream_none() -> None:
    found = plan("2026-11-01", "2026-11-02", atomic=False)
    assert (found.follows, len(found.batches())) == ([], 2)
    assert {"s.again", "s.months", "s.sums", "s.log"} <= set(found.woken)
    found = plan("2026-11-01", downstream=False)
    assert (found.follows, found.woken, found.batches()[0]["downstream"]) == ([], [], False)


def test_what_no_transaction_can_hold_is_refused_by_the_plan() -> None:
    with pytest.raises(InvalidInputError, match="401 partitions"):
        plan(*(f"{2000 + number}-01-01" for number in range(401)), downstream=False)
    with pytest.raises(InvalidInputError, match="402 partitions"):
        plan(*(f"2026-01-01T{number % 24:02}" for number in range(401)), table="s.hour")
    with pytest.raises(InvalidInputError, match=r"s\.own reads itself"):
        plan("2026-11-01", "2026-11-02", table="s.own")
    assert plan("2026-11-01", table="s.own").batches()


def test_one_job_has_one_spark() -> None:
    here, there = SparkChoice(master="local[2]"), SparkChoice(remote="sc://there")
    assert shared_choice({"a": here, "b": SparkChoice(conf={"spark.x": "1"})}, alone=False) == SparkChoice(
        master="local[2]", conf={"spark.x": "1"}
    )
    sql = SparkChoice(conf={"spark.sql.ansi.enabled": "false"})
    assert shared_choice({"a": sql, "b": here}, alone=False) == here
    assert shared_choice({"a": sql}, alone=True) == sql
    for other in (there, SparkChoice(connection="c")):
        with pytest.raises(ValueError, match="a and b cannot be made in one transaction"):
            shared_choice({"a": here, "b": other}, alone=False)
    with pytest.raises(ValueError, match=r"conf, spark\.x"):
        shared_choice({"a": SparkChoice(conf={"spark.x": "1"}), "b": SparkChoice(conf={"spark.x": "2"})}, alone=False)
