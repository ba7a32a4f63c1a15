"""Large splits are cut by key: the parts together have exactly the split's rows."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakelib import Lake, Table
from lakelib.ops.read import ScanPlan
from lakelib.plan.scan import balance, choose_part_count, choose_task_count
from lakelib.work.read import cut_split, read_split
from tests.conftest import EXAMPLES

MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
KEYS: dict[str, st.SearchStrategy[Any]] = {
    "tinyint": st.integers(-128, 127),
    "bigint": st.sampled_from([-(2**63), 2**63 - 1]) | st.integers(-50, 50),
    "string": st.text("aAü日\U0001f600%_' ", max_size=3) | st.just("x" * 5000),
    "binary": st.binary(max_size=3) | st.just(b"\xff" * 70),
    "decimal(38,10)": st.integers(-99, 99).map(lambda number: Decimal(number).scaleb(-10)),
    "decimal(5,2)": st.integers(-99, 99).map(lambda number: Decimal(number).scaleb(-2)),
    "boolean": st.booleans(),
    "date": st.integers(-700_000, 100).map(lambda days: date(1970, 1, 1) + timedelta(days=days)),
    "timestamp": st.integers(-50, 50).map(lambda number: MOMENT + timedelta(microseconds=number)),
    "timestamp_ntz": st.integers(-50, 50).map(lambda number: MOMENT.replace(tzinfo=None) + timedelta(days=number)),
}


def key_of(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return row[:-1]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[str], list[list[tuple[Any, ...]]], set[int]]:
    """The types of the key's columns; batches of rows (key, order), no key twice in one; which of them are deletes."""
    types = draw(st.lists(st.sampled_from(tuple(KEYS)), min_size=1, max_size=2))
    row = st.tuples(*(KEYS[kind] for kind in types), st.integers(0, 9))
    batches = draw(st.lists(st.lists(row, min_size=1, max_size=40, unique_by=key_of), min_size=1, max_size=3))
    return types, batches, draw(st.sets(st.integers(1, 2)))


@given(history=histories(), parts=st.integers(2, 9), group_rows=st.integers(1, 5), ordered=st.booleans())
@settings(max_examples=EXAMPLES // 5, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_parts_of_a_split_are_the_split(
    lake: Lake, history: Any, parts: int, group_rows: int, ordered: bool
) -> None:
    table = written(lake, *history, group_rows, ordered)
    for where in (None, "o > 4"):
        check_parts(lake, table.scan(where=where)._plan, parts)


def written(
    lake: Lake,
    types: list[str],
    batches: list[list[tuple[Any, ...]]],
    deletes: set[int],
    group_rows: int,
    ordered: bool,
) -> Table:
    names = [f"k{place}" for place in range(len(types))]
    table = lake.create_table(
        f"shop.cut_{uuid4().hex}",
        ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True)) + ", o bigint",
        primary_key=names,
        buckets=1,
        sequence_by=["o"] if ordered else [],
        options={"row_group_rows": group_rows},
    )
    for number, batch in enumerate(batches):
        rows = pa.Table.from_pylist([dict(zip(table.schema.names, row, strict=True)) for row in batch], table.schema)
        (table.delete_keys if number in deletes else table.upsert)(rows)
    return table


def check_parts(lake: Lake, plan: ScanPlan, parts: int) -> None:
    storage = lake.runtime.storage
    for split in plan.splits:
        ranges = cut_split(storage, plan.target, split, parts)
        assert 1 <= len(ranges) <= parts
        parts = [
            row
            for within in ranges
            for rows in read_split(storage, plan.target.within(within), split)
            for row in rows.to_pylist()
        ]
        whole = [row for rows in read_split(storage, plan.target, split) for row in rows.to_pylist()]
        assert sorted(map(repr, parts)) == sorted(map(repr, whole))


def test_a_large_split_is_cut_into_equal_parts(lake: Lake) -> None:
    table = written(lake, ["bigint"], [[(number, 0) for number in range(-50, 50)]], set(), 5, False)
    plan = table.scan()._plan
    ranges = cut_split(lake.runtime.storage, plan.target, plan.splits[0], 4)
    counts = [
        sum(rows.num_rows for rows in read_split(lake.runtime.storage, plan.target.within(within), plan.splits[0]))
        for within in ranges
    ]
    assert counts == [25, 25, 25, 25]


def test_what_has_no_key_or_one_row_group_is_not_cut(lake: Lake) -> None:
    plain = lake.create_table(f"shop.cut_{uuid4().hex}", "o bigint")
    plain.append(pa.table({"o": [1, 2, 3]}))
    keyed = written(lake, ["bigint"], [[(1, 0), (2, 0)]], set(), 5, False)
    for table in (plain, keyed):
        plan = table.scan()._plan
        assert cut_split(lake.runtime.storage, plan.target, plan.splits[0], 4) == [None]


@given(sizes=st.lists(st.integers(0, 1000), max_size=50), slots=st.integers(1, 8))
def test_every_part_is_in_one_task_and_no_task_waits_for_another(sizes: list[int], slots: int) -> None:
    count = choose_task_count(sum(sizes), len(sizes), slots)
    tasks = balance(sizes, count)
    assert sorted(place for task in tasks for place in task) == list(range(len(sizes)))
    assert len(tasks) == min(count, len(sizes))
    weights = [sum(max(1, sizes[place]) for place in task) for task in tasks]
    heaviest_part = max((max(1, size) for size in sizes), default=0)
    assert max(weights, default=0) - min(weights, default=0) <= heaviest_part


@pytest.mark.parametrize(("size", "total", "parts"), [(100, 1000, 1), (1000, 1000, 8), (0, 0, 1), (1, 1, 1)])
def test_only_a_split_that_outweighs_the_others_is_cut(size: int, total: int, parts: int) -> None:
    assert choose_part_count(size, total, 4) == parts
