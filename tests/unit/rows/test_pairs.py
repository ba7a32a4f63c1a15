"""Runs held against each other: which keys both have."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.rows.differences import pair_runs
from lakelib.rows.key_set import KeySet

_KEYS = {"bigint": pa.int64(), "string": pa.string()}


def _run(keys: set[int], kind: str, cuts: list[int]) -> list[pa.Table]:
    values = sorted(keys) if kind == "bigint" else sorted(map(str, keys))
    rows = pa.table({"k": pa.array(values, _KEYS[kind]), "n": pa.array(range(len(values)), pa.int64())})
    edges = sorted({0, len(values), *(cut for cut in cuts if cut < len(values))})
    return [rows.slice(start, end - start) for start, end in pairwise(edges)]


_keys = st.sets(st.integers(-50, 50))
_cuts = st.lists(st.integers(0, 40), max_size=3)


@pytest.mark.parametrize("kind", _KEYS)
@given(before=_keys, after=_keys, cuts=_cuts, others=_cuts)
def test_pairs_are_the_keys_that_both_have(
    kind: str, before: set[int], after: set[int], cuts: list[int], others: list[int]
) -> None:
    schema = pa.schema([("k", _KEYS[kind]), ("n", pa.int64())])
    runs = iter(_run(before, kind, cuts)), iter(_run(after, kind, others))
    both, gone, came = [], [], []
    for pairing in pair_runs(*runs, ["k"], (schema, schema)):
        old, new = pairing.pairs
        assert old.column("k").to_pylist() == new.column("k").to_pylist()
        both += old.column("k").to_pylist()
        gone += pairing.before.filter(pa.array(~pairing.before_paired)).column("k").to_pylist()
        came += pairing.after.filter(pa.array(~pairing.after_paired)).column("k").to_pylist()
    shown = (lambda key: key) if kind == "bigint" else str
    assert sorted(both) == sorted(map(shown, before & after))
    assert sorted(gone) == sorted(map(shown, before - after))
    assert sorted(came) == sorted(map(shown, after - before))


@pytest.mark.parametrize("kind", _KEYS)
def test_a_set_of_keys_misses_none_and_lets_few_others_pass(kind: str) -> None:
    own, others = (pa.array(range(*span)).cast(_KEYS[kind]) for span in ((0, 10_000), (10_000, 110_000)))
    keys = KeySet([[own.slice(0, 5_000)], [own.slice(5_000)]])
    assert keys.may_have([own]).all()
    assert keys.may_have([pa.chunked_array([others])]).sum() < 10_000
    assert not KeySet([]).may_have([own]).any()


@pytest.mark.parametrize("lowest", [-(2**63), -5_000, 2**63 - 10_000])
def test_keys_that_lie_close_together_are_told_exactly(lowest: int) -> None:
    near = range(lowest, lowest + 10_000)
    own = pa.array(near[::3], pa.int64())
    asked = pa.array([*near, *{-(2**63), -(2**62), -1, 2**62, 2**63 - 1}.difference(near)], pa.int64())
    found = KeySet([[own]]).may_have([asked])
    assert asked.filter(pa.array(found)).to_pylist() == own.to_pylist()


@pytest.mark.parametrize("apart", [1, 2**40])
@pytest.mark.parametrize("kind", _KEYS)
def test_keys_beside_one_that_is_null_are_not_missed(kind: str, apart: int) -> None:
    own = pa.array([1, None, 1 + apart]).cast(_KEYS[kind])
    asked = pa.array([1 + apart, 7 + apart, None, 1]).cast(_KEYS[kind])
    for keys in (KeySet([[own]]), KeySet([[own], [own.drop_null()]]), KeySet([[own.drop_null()]])):
        assert keys.may_have([own.drop_null()]).all()
        assert keys.may_have([asked])[[0, 3]].all()
