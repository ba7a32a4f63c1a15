"""Files and partitions that cannot hold a matching row are not opened."""

import pytest

from lakelib.model.files import ColumnBounds, DataFile
from lakelib.model.predicate import Predicate, Raw
from lakelib.model.schema import Column, TableSchema
from lakelib.model.sortable import encode
from lakelib.plan.prune import (
    Bounds,
    file_may_match,
    key_part,
    key_tuples,
    may_match,
    partition_may_match,
)
from lakelib.plan.where import parse_where

SCHEMA = TableSchema(
    id=1,
    columns=(
        Column(id=1, name="id", type="bigint", nullable=False),
        Column(id=2, name="s", type="string"),
        Column(id=3, name="x", type="double"),
        Column(id=4, name="dt", type="date"),
        Column(id=5, name="n", type="bigint"),
    ),
)
KINDS = {column.id: column.type for column in SCHEMA.columns}


def where(text: str) -> Predicate:
    return parse_where(text, SCHEMA)


def file_with(ranges: dict[int, tuple[Raw | None, Raw | None]], null_count: int = 0) -> DataFile:
    """A file of ten rows with these lowest and highest values by column id."""

    def bound(column_id: int, side: int) -> bytes | None:
        value = ranges.get(column_id, (None, None))[side]
        return None if value is None else encode(KINDS[column_id], value)

    return DataFile(
        id=1, path="f", partition_id=1, depth=0, prefix=0, run=0, level=0, row_count=10, delete_count=0,
        size_bytes=1, schema_id=1, sequence=1, added_snapshot=1, removed_snapshot=None,
        bounds=ColumnBounds(
            lower=tuple(bound(column_id, 0) for column_id in KINDS),
            upper=tuple(bound(column_id, 1) for column_id in KINDS),
            null_counts=tuple(null_count for _ in KINDS),
        ),
    )  # fmt: skip


FILE = file_with({1: (10, 20), 2: ("ma", "mz"), 3: (0.0, float("nan")), 5: (21, 30)})


@pytest.mark.parametrize(
    "text",
    [
        "id = 9",
        "id < 10",
        "id <= 9",
        "id > 20",
        "NOT (id <= 20)",
        "NOT (id BETWEEN 5 AND 25)",
        "id IN (1, 9, 21)",
        "id <=> 21",
        "s LIKE 'n%'",
        "s LIKE 'lz_%'",
        "s NOT LIKE 'm%'",
        "s = 'm'",
        "s IS NULL",
        "NOT (s IS NOT NULL)",
        "x < 0.0",
        "x = -1.0",
        "s LIKE 'm'",
        "id = n",
        "id >= n",
        "NOT (n > id)",
        "dt IS NULL OR id = 9",
        "id = 15 AND s = 'a'",
        "id = 9 OR s = 'a'",
        "NOT (id = 15 OR id <> 9)",
        "FALSE",
        "NULL",
        "id = NULL",
    ],
)
def test_a_file_outside_the_predicate_is_pruned(text: str) -> None:
    assert not file_may_match(where(text), FILE)


@pytest.mark.parametrize(
    "text",
    [
        "id = 10",
        "id <> 10",
        "id >= 20",
        "id IN (1, 15, 99)",
        "NOT (id = 10)",
        "s LIKE 'm%'",
        "s LIKE '%z'",
        "s NOT LIKE 'mb%'",
        "s > 'my'",
        "x = 'NaN'",
        "x > 1e300",
        "id < n",
        "id <> n",
        "dt = '2026-11-18'",
        "_commit > 5",
        "id = 9 OR s = 'mb'",
        "TRUE",
    ],
)
def test_a_file_that_may_match_is_kept(text: str) -> None:
    assert file_may_match(where(text), FILE)


def test_a_file_of_nothing_but_null_matches_only_is_null() -> None:
    empty = file_with({}, null_count=10)
    assert [
        file_may_match(where(text), empty) for text in ("s IS NULL", "s = 'a'", "NOT (s = 'a')", "s NOT LIKE 'a'")
    ] == [
        True,
        False,
        False,
        False,
    ]


def test_a_column_that_is_newer_than_the_file_prunes_nothing() -> None:
    later = Column(id=9, name="later", type="int")
    schema = TableSchema(id=2, columns=(*SCHEMA.columns, later))
    assert file_may_match(parse_where("later = 1", schema), FILE)


def test_cut_bounds_of_long_text_prune_only_what_lies_beyond_them() -> None:
    known = Bounds(lower=b"m" * 64, upper=b"m" * 63 + b"n", null_count=0, row_count=1)
    assert may_match(where(f"s = '{'m' * 70}'"), lambda _: known)
    assert not may_match(where(f"s = '{'m' * 62}n'"), lambda _: known)
    assert not may_match(where(f"s < '{'m' * 10}'"), lambda _: known)


DT = SCHEMA.columns[3]


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        ("dt = '1970-01-02'", {1}),
        ("dt <> '1970-01-02'", {2}),
        ("dt IS NULL", {None}),
        ("dt IS NOT NULL AND id = 5", {1, 2}),
        ("dt IN ('1970-01-02', '1970-01-03')", {1, 2}),
        ("dt = '1970-01-02' OR id = 5", {1, 2, None}),
        ("(dt = '1970-01-02' AND id = 5) OR (dt = '1970-01-03' AND id = 6)", {1, 2}),
    ],
)
def test_partitions_are_pruned_by_their_values(text: str, matching: set[int | None]) -> None:
    keys = {day: (None if day is None else encode("date", day),) for day in (1, 2, None)}
    assert {day for day, key in keys.items() if partition_may_match(where(text), [DT], key)} == matching


def test_parts_are_the_conjuncts_over_the_given_columns_alone() -> None:
    predicate = where("dt = '1970-01-02' AND id = 5 AND (dt IS NULL OR id = 6) AND (id = 1 OR id = 5) AND n > 2")
    assert key_part(predicate, (4,)) == where("dt = '1970-01-02'")
    assert key_part(predicate, (1,)) == where("id = 5 AND (id = 1 OR id = 5)")
    assert key_part(predicate, (2,)) is None
    assert key_part(None, (1,)) is None


KEY = (SCHEMA.columns[0], SCHEMA.columns[1])


@pytest.mark.parametrize(
    ("text", "tuples"),
    [
        ("id = 1 AND s = 'a'", [(1, "a")]),
        ("id IN (1, 2) AND s = 'a' AND n > 5", [(1, "a"), (2, "a")]),
        ("(id = 1 OR id = 2) AND s IN ('a', 'b')", [(1, "a"), (1, "b"), (2, "a"), (2, "b")]),
        ("id IN (1, NULL) AND s = 'a'", [(1, "a")]),
        ("id IN (1, 2) AND id = 2 AND s = 'a'", [(2, "a")]),
        ("id = 1 AND id = 2 AND s = 'a'", []),
        ("id = 10.5 AND s = 'a'", []),
        ("id = 1", None),
        ("id = 1 AND s > 'a'", None),
        ("id = 1 OR s = 'a'", None),
        ("NOT (id = 1) AND s = 'a'", None),
    ],
)
def test_key_tuples_are_given_when_every_key_column_is_fixed(text: str, tuples: list[tuple[Raw, ...]] | None) -> None:
    assert key_tuples(where(text), KEY) == tuples


def test_key_tuples_stop_at_the_limit() -> None:
    both = where(f"id IN ({', '.join(map(str, range(40)))}) AND s IN ('a', 'b', 'c')")
    assert len(key_tuples(both, KEY, limit=120) or []) == 120
    assert key_tuples(both, KEY, limit=119) is None


def test_no_predicate_or_no_key_fixes_nothing() -> None:
    assert key_tuples(None, KEY) is None
    assert key_tuples(where("id = 1"), ()) is None
