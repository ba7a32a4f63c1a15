"""Digests of rows, and rows side by side: alike is what holds the same, to the bit."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.rows.differences import are_alike, row_digests

_STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])
_TYPES: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "bigint": (pa.int64(), (0, 1, -1, None)),
    "double": (pa.float64(), (0.0, -0.0, 1.5, math.nan, math.inf, None)),
    "float": (pa.float32(), (0.0, -0.0, 1.5, math.nan, None)),
    "string": (pa.string(), ("", "a", "a\0", "b", None)),
    "list": (pa.list_(pa.string()), ([], [""], ["a"], ["a", "b"], ["b", "a"], [None], None)),
    "lists": (pa.list_(pa.list_(pa.int64())), ([], [[]], [[], []], [[1]], [[1], []], [[], [1]], None)),
    "map": (pa.map_(pa.string(), pa.float64()), ([], [("a", 0.0)], [("a", -0.0)], [("a", None)], None)),
    "struct": (_STRUCT, ({"a": 1, "b": None}, {"a": None, "b": None}, {"a": 1, "b": ""}, None)),
}


def _said(value: Any) -> str:
    return repr(value)


@pytest.mark.parametrize("kind", _TYPES)
@given(data=st.data())
def test_values_are_alike_if_they_are_the_same_to_the_bit(kind: str, data: st.DataObject) -> None:
    arrow, values = _TYPES[kind]
    pairs = data.draw(st.lists(st.tuples(st.sampled_from(values), st.sampled_from(values)), min_size=1))
    padding = data.draw(st.integers(0, 3))
    left, right = (
        pa.array([values[0]] * padding + list(side), arrow).slice(padding) for side in zip(*pairs, strict=True)
    )
    expected = [_said(one) == _said(other) for one, other in pairs]
    assert (row_digests([left]) == row_digests([right])).tolist() == expected
    assert are_alike(pa.table({"v": left}), pa.table({"v": right})).tolist() == expected


def test_a_value_in_one_column_is_not_one_in_another() -> None:
    one, nothing = pa.array([1], pa.int64()), pa.array([None], pa.int64())
    assert row_digests([one, nothing]) != row_digests([nothing, one])
    assert row_digests([one, one]) != row_digests([one, nothing])


def test_many_rows_have_as_many_digests() -> None:
    numbers = np.arange(100_000)
    digests = row_digests([pa.array(numbers // 317), pa.array(numbers % 317)])
    assert len(np.unique(digests)) == len(numbers)
