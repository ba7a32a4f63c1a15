"""Sketches of distinct values: what the library makes, made for all keys at once, and the same in any grouping."""

import random
import sys

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from lakelib import InvalidInputError
from lakelib.rows.distinct import LG_K, MOST_EXACT, estimates, merged_sketches, single_sketches

_ODD = [0, -1, 1, 2**63 - 1, -(2**63)]


def _values(count: int) -> list[int]:
    drawn = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, count)
    return [*_ODD, *drawn.tolist()][:count]


def _merged(sketches: list[bytes | None]) -> bytes | None:
    array = pa.array(sketches, pa.binary())
    made: bytes | None = merged_sketches(array, array.is_valid().to_numpy(False), np.array([0]))[0].as_py()
    return made


def _library(values: list[int]) -> datasketches.hll_sketch:
    sketch = datasketches.hll_sketch(LG_K, datasketches.HLL_4)
    for value in values:
        sketch.update(value)
    return sketch


def test_a_value_leaves_what_the_library_notes_of_it() -> None:
    values = _values(500)
    assert single_sketches(pa.array(values)).to_pylist() == [_library([each]).serialize_compact() for each in values]
    assert single_sketches(pa.array([None, 3])).to_pylist()[0] is None


@pytest.mark.parametrize("count", [2, 7, 8, 24, 25, 96, 97, MOST_EXACT])
def test_small_sketches_are_the_librarys(count: int) -> None:
    values = _values(count)
    made = _merged(single_sketches(pa.array(values)).to_pylist())
    expected = _library(values)
    assert made is not None
    assert (made[:8], len(made)) == (expected.serialize_compact()[:8], len(expected.serialize_compact()))
    assert datasketches.hll_sketch.deserialize(made).get_estimate() == expected.get_estimate()
    assert estimates(pa.array([made], pa.binary())).to_pylist() == [count]


@pytest.mark.parametrize("count", [MOST_EXACT + 1, 3000])
def test_any_grouping_of_many_gives_the_same_number(count: int) -> None:
    sketches = single_sketches(pa.array(_values(count))).to_pylist()
    expected = estimates(pa.array([_merged(sketches)], pa.binary()))[0].as_py()
    assert abs(expected - count) < count * 0.06
    for seed in range(3):
        dice, runs = random.Random(seed), sketches
        while len(runs) > 1:
            several = min(len(runs), dice.choice([3, 400, 1000]))
            at = dice.randint(0, len(runs) - several)
            runs = [*runs[:at], _merged(runs[at : at + several]), *runs[at + several :]]
        assert estimates(pa.array(runs, pa.binary()))[0].as_py() == expected


def test_keys_with_few_values_with_many_and_with_none_stand_side_by_side() -> None:
    values = single_sketches(pa.array(_values(1000)))
    given = np.ones(1000, np.bool_)
    given[3:5] = False
    merged = merged_sketches(values, given, np.array([0, 3, 5, 700]))
    counted = estimates(merged).to_pylist()
    assert (counted[0], counted[1], counted[3]) == (3, None, 300)
    assert counted[2] == pytest.approx(695, rel=0.06)


def test_many_values_take_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketches", None)
    assert estimates(single_sketches(pa.array([4, None]))).to_pylist() == [1, None]
    with pytest.raises(InvalidInputError) as refused:
        _merged(single_sketches(pa.array(_values(MOST_EXACT + 1))).to_pylist())
    assert refused.value.kind == "sketches_missing"
    assert "lakelib[sketches]" in refused.value.remedy
