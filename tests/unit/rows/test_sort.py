"""Sorting by key and keeping the newest; tests/property/test_kernels.py covers every type."""

import math
import random
import uuid

import numpy as np
import pyarrow as pa
import pytest

from lakelib.errors import InvalidInputError
from lakelib.rows.keys import BytesColumn, Rows, Words
from lakelib.rows.merge import keep_newest
from lakelib.rows.sort import group_order, newest_order, stable_order


def newest(keys: list, *orders: list) -> list[int]:
    return newest_order([pa.array(keys)], [pa.array(order) for order in orders]).tolist()


def test_of_equal_keys_the_last_row_stays() -> None:
    assert newest([3, 1, 3, 2, 1]) == [4, 3, 2]


def test_the_highest_order_value_wins_wherever_it_stands() -> None:
    assert newest([1, 1, 1], [5, 9, 7]) == [1]


def test_of_equal_order_values_the_last_row_stays() -> None:
    assert newest([1, 1, 1], [9, 9, 7]) == [1]


def test_later_order_columns_decide_where_earlier_ones_tie() -> None:
    assert newest([1, 1, 1], [9, 9, 7], [2, 1, 3]) == [0]


def test_a_null_order_value_is_older_than_any() -> None:
    assert newest([1, 1, 2, 2], [-(2**63), None, None, None]) == [0, 3]


def test_bytes_left_behind_a_null_do_not_count() -> None:
    offsets = np.array([0, 1, 2], np.int32)
    nulls = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x00"), pa.py_buffer(offsets), pa.py_buffer(b"ba")])
    assert newest_order([pa.array([1, 1])], [nulls]).tolist() == [1]


def test_nan_is_newer_than_infinity() -> None:
    assert newest([1, 1, 1], [math.inf, math.nan, 1.0]) == [1]


def test_negative_zero_ties_with_zero() -> None:
    assert newest([1, 1, 2, 2], [0.0, -0.0, -0.0, 0.0]) == [1, 3]


def test_negative_keys_come_first() -> None:
    assert newest([1, -1, 0, -(2**63), 2**63 - 1]) == [3, 1, 2, 0, 4]


def test_text_sorts_by_its_bytes_and_a_prefix_first() -> None:
    keys = ["b", "a\x00", "a", "", "é", "\uffff", "😀", "a\x00\x00"]
    assert [keys[row] for row in newest(keys)] == ["", "a", "a\x00", "a\x00\x00", "b", "é", "\uffff", "😀"]


def test_lengths_decide_also_where_longer_rows_have_dropped_out() -> None:
    keys = ["12345678" * 3 + "x", "a\x00", "a", "12345678" * 3 + "y"]
    assert newest(keys) == [0, 3, 2, 1]


def test_no_rows_give_no_order() -> None:
    assert newest_order([pa.array([], pa.string())], [pa.array([], pa.float64())]).tolist() == []


def test_nested_values_have_no_order() -> None:
    with pytest.raises(InvalidInputError, match="no order"):
        newest_order([pa.array([1, 1])], [pa.array([[1], [2]])])


@pytest.mark.parametrize("distinct", [50, 2_000, 10**6, 2**63])
def test_many_integers_sort_as_python_sorts_them(distinct: int) -> None:
    rng = random.Random(distinct)
    keys = [rng.randrange(-distinct, distinct) for _ in range(20_000)]
    last = {key: row for row, key in enumerate(keys)}
    assert newest(keys) == [last[key] for key in sorted(last)]


@pytest.mark.parametrize("prefix", ["", "customer/2026/"])
def test_many_texts_sort_as_python_sorts_them(prefix: str) -> None:
    rng = random.Random(5)
    keys = [prefix + str(uuid.UUID(int=rng.getrandbits(128) >> rng.choice((0, 100)))) for _ in range(5_000)] * 2
    last = {key: row for row, key in enumerate(keys)}
    assert newest(keys) == [last[key] for key in sorted(last)]


def test_a_sort_of_many_words_is_stable() -> None:
    words = np.random.default_rng(3).integers(0, 2**63, 3_000, dtype=np.uint64).repeat(3)
    np.random.default_rng(4).shuffle(words)
    assert stable_order(words).tolist() == np.argsort(words, kind="stable").tolist()


def test_groups_beyond_sixteen_bits_are_kept_apart() -> None:
    order, found, bounds = group_order(np.array([70_000, 4_464, 0, 70_000], np.int64))
    assert (order.tolist(), found.tolist(), bounds.tolist()) == ([2, 1, 0, 3], [0, 4_464, 70_000], [0, 1, 2, 4])


def test_grouping_takes_memory_by_rows_not_by_codes() -> None:
    order, found, bounds = group_order(np.array([2**60, 0, 2**60, 2**33], np.int64))
    assert (order.tolist(), found.tolist(), bounds.tolist()) == ([1, 3, 0, 2], [0, 2**33, 2**60], [0, 1, 2, 4])


def test_without_rows_there_are_no_groups() -> None:
    order, found, bounds = group_order(np.array([], np.int32))
    assert (order.tolist(), found.tolist(), bounds.tolist()) == ([], [], [0])


def test_a_long_common_prefix_is_not_compared_word_by_word(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    word = BytesColumn.word

    def noting(column: BytesColumn, number: int, rows: Rows | None) -> Words:
        asked.append(number)
        return word(column, number, rows)

    monkeypatch.setattr(BytesColumn, "word", noting)
    keys = pa.array([b"p" * 1_000_000 + ending for ending in (b"b", b"", b"a\x00", b"a", b"b")], pa.binary())
    assert newest_order([keys], []).tolist() == [1, 3, 2, 4]
    assert [None if mask is None else mask.tolist() for mask in keep_newest([[keys[:3]], [keys[3:]]], [])] == [
        [False, True, True],
        None,
    ]
    assert len(asked) < 200
