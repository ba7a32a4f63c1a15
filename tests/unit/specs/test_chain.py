"""What is made from what, and in which order."""

from pathlib import Path

import pytest

from lakelib.errors import InvalidInputError
from lakelib.specs import folder
from lakelib.specs.folder import check_count, find_followers, in_order, keys_after
from lakelib.specs.table_spec import TableSpec, parse_spec


def spec(name: str, *after: str, reads: str = "", every: str = "day") -> TableSpec:
    """Of the table `s.<name>`, which comes after others."""
    column = {"day": "dt", "month": "m"}[every]
    return parse_spec(
        f"table: s.{name}\ncolumns: dt DATE, m STRING\npartition_by: [{column}]\ntransform: {Path(__file__)}\n"
        f"reads: {{v: {reads or (after or ('s.any',))[0]}}}\nwrite: {{mode: overwrite}}\n"
        f"partition: {{column: {column}, every: {every}}}\nschedule: {{after: [{', '.join(after) or 's.any'}]}}\n",
        Path("/specs/s.yaml"),
    )


FIRST, SECOND, THIRD = spec("first"), spec("second", "s.first"), spec("third", "s.second", every="month")


def test_each_comes_after_what_it_is_made_from() -> None:
    for given in ([THIRD, SECOND, FIRST], [SECOND, THIRD, FIRST], [FIRST, SECOND, THIRD]):
        assert in_order(given) == (FIRST, SECOND, THIRD)
    apart = spec("apart")
    assert in_order([apart, THIRD, FIRST]) == (apart, THIRD, FIRST)


def test_tables_that_read_each_other_have_an_order_all_the_same() -> None:
    one, other = spec("one", reads="s.other"), spec("other", reads="s.one")
    assert {each.table for each in in_order([one, other])} == {"s.one", "s.other"}


def test_who_follows_follows_also_through_others() -> None:
    assert find_followers([THIRD, FIRST, SECOND], ["s.first"]) == (SECOND, THIRD)
    assert find_followers([THIRD, FIRST, SECOND], ["s.third"]) == ()


def test_keys_are_those_of_the_table_that_follows() -> None:
    specs = {each.table: each for each in (FIRST, SECOND, THIRD)}
    days = {"s.second": ["2026-10-31", "2026-11-01", "2026-11-02", "all"], "s.any": ["2026-01-01"]}
    assert keys_after(THIRD, days, specs) == {"2026-10", "2026-11"}
    assert keys_after(SECOND, {"s.first": ["2026-11-01", "no day"]}, specs) == {"2026-11-01"}


def test_the_bound_is_of_all_partitions() -> None:
    check_count(folder.MOST_TOGETHER, "are named")
    with pytest.raises(InvalidInputError, match="401 partitions are named, and one transaction takes 400"):
        check_count(folder.MOST_TOGETHER + 1, "are named")
