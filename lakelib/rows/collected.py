"""Pure. Lists, maps and texts of the versions of each key put together.

`values` run by key, from the oldest to the newest; those of the mask `given` count; `starts` is where each key begins.
A key without any has NULL.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.rows.buffers import array_of_mask, array_of_numbers
from lakelib.rows.keys import Rows
from lakelib.rows.versions import NONE, Mask, taken

Counts = npt.NDArray[np.int64]


def collect_list(values: pa.Array, given: Mask, starts: Rows) -> pa.Array:
    """All elements, one list after the other."""
    kept = _kept(values, given)
    return _lists(kept.flatten(), _count_by_key(_lengths(kept), starts), given, starts, values.type)


def collect_set(values: pa.Array, given: Mask, starts: Rows) -> pa.Array:
    """Each element once, where it came first; NULL is none."""
    kept = _kept(values, given)
    elements = kept.flatten()
    keys = np.repeat(np.arange(len(starts)), _count_by_key(_lengths(kept), starts))
    valid = elements.is_valid().to_numpy(zero_copy_only=False)
    places = np.flatnonzero(valid)[_firsts(keys[valid], elements.filter(array_of_mask(valid)))]
    counts = np.bincount(keys[places], minlength=len(starts)).astype(np.int64)
    return _lists(elements.take(array_of_numbers(places)), counts, given, starts, values.type)


def merge_maps(values: pa.Array, given: Mask, starts: Rows) -> pa.Array:
    """All entries; of those of one key of the map the last."""
    kept = _kept(values, given)
    offsets = kept.offsets.to_numpy()
    inner = slice(int(offsets[0]), int(offsets[-1]))
    map_keys, items = kept.keys[inner], kept.items[inner]
    keys = np.repeat(np.arange(len(starts)), _count_by_key(np.diff(offsets).astype(np.int64), starts))
    places = (len(keys) - 1 - _firsts(keys[::-1], map_keys.take(array_of_numbers(np.arange(len(keys))[::-1]))))[::-1]
    counts = np.bincount(keys[places], minlength=len(starts)).astype(np.int64)
    chosen = array_of_numbers(places)
    return pa.MapArray.from_arrays(
        _offsets(counts), map_keys.take(chosen), items.take(chosen), type=values.type, mask=_nulls(given, starts)
    )


def join_text(values: pa.Array, given: Mask, starts: Rows, delimiter: str) -> pa.Array:
    """The texts, with the delimiter between them."""
    counts = np.add.reduceat(given.astype(np.int64), starts)
    lists = _lists(values.filter(array_of_mask(given)), counts, given, starts, pa.list_(values.type))
    return pc.binary_join(lists, pa.scalar(delimiter, values.type))


def _kept(values: pa.Array, given: Mask) -> pa.Array:
    """A copy, so that what lies in it is what its rows have."""
    return taken(values, np.where(given, np.arange(len(values)), NONE))


def _lengths(values: pa.Array) -> Counts:
    lengths: Counts = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def _count_by_key(lengths: Counts, starts: Rows) -> Counts:
    counts: Counts = np.add.reduceat(lengths, starts)
    return counts


def _firsts(keys: Rows, values: pa.Array) -> Rows:
    """Of each value of a key the place where it comes first, ascending."""
    if not len(keys):
        return keys
    codes = pc.dictionary_encode(values).indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, places = np.unique(keys * (int(codes.max()) + 1) + codes, return_index=True)
    return np.sort(places)


def _lists(elements: pa.Array, counts: Counts, given: Mask, starts: Rows, kind: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(_offsets(counts), elements, type=kind, mask=_nulls(given, starts))


def _offsets(counts: Counts) -> pa.Array:
    return array_of_numbers(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))


def _nulls(given: Mask, starts: Rows) -> pa.Array:
    return array_of_mask(~np.logical_or.reduceat(given, starts))
