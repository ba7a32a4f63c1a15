"""Pure. Digests of whole rows: rows that are alike have one digest, others two.

128 bits a row, so that two rows of a table which differ are never taken for one in practice. NULL is a value of its
own, a NaN is like any other NaN, and -0.0 is not 0.0. Lists and maps are alike if they hold the same in the same order.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.rows.buffers import fixed_values, valid_rows, whole_array
from lakelib.rows.hash import SEED, Hashes, key_hashes

Digests = npt.NDArray[np.void]
"""Two words a row, to be compared and sorted as one value."""

_WORDS = np.dtype([("first", "<u8"), ("second", "<u8")])
_SEEDS = (SEED, 7919)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_OTHER = np.uint64(0xBF58476D1CE4E5B9)
_NULL = np.uint64(0x94D049BB133111EB)
_TURN = np.uint64(31)


def row_digests(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Digests:
    """One digest a row, over the columns in their order."""
    digests = np.zeros(len(columns[0]), _WORDS)
    arrays = [whole_array(column) for column in columns]
    for name, seed in zip(_WORDS.names or (), _SEEDS, strict=True):
        digests[name] = _joined([_hashed(array, seed) for array in arrays], len(digests))
    return digests


def _joined(parts: Sequence[Hashes], count: int) -> Hashes:
    running = np.zeros(count, np.uint64)
    for part in parts:
        running = _mixed(running * _FACTOR + part)
    return running


def _mixed(values: Hashes) -> Hashes:
    values = (values ^ (values >> _TURN)) * _OTHER
    return values ^ (values >> _TURN)


def _hashed(array: pa.Array, seed: int) -> Hashes:
    """A hash of each value; nulls have one of their own."""
    kind = array.type
    if pa.types.is_struct(kind):
        hashes = _joined([_hashed(field, seed) for field in array.flatten()], len(array))
    elif pa.types.is_map(kind) or pa.types.is_list(kind):
        hashes = _hashed_lists(array, seed)
    else:
        hashes = key_hashes([float_bits(array) if pa.types.is_floating(kind) else array], seed=seed)
    valid = valid_rows(array)
    return hashes if valid is None else np.where(valid, hashes, _NULL)


def _hashed_lists(array: pa.Array, seed: int) -> Hashes:
    """Each item counts with its place in the list, and the list with its length."""
    offsets = _offsets(array)
    items = _hashed(_items(array).slice(int(offsets[0]), int(offsets[-1] - offsets[0])), seed)
    offsets = offsets - offsets[0]
    lengths = np.diff(offsets)
    places = np.arange(len(items), dtype=np.int64) - np.repeat(offsets[:-1], lengths)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_mixed(items + places.view(np.uint64) * _FACTOR))])
    return _mixed(sums[offsets[1:]] - sums[offsets[:-1]] + lengths.view(np.uint64))


def _offsets(array: pa.Array) -> npt.NDArray[np.int64]:
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array) + 1, np.int64)
    offsets: npt.NDArray[Any] = np.frombuffer(buffer, "<i4", len(array) + 1, array.offset * 4)
    return offsets.astype(np.int64)


def _items(array: pa.Array) -> pa.Array:
    """All items that the array's offsets count, those of other rows too."""
    if not pa.types.is_map(array.type):
        return array.values
    return pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])


def float_bits(array: pa.Array) -> pa.Array:
    """Floats as integers of their bits: of every NaN the same."""
    wide = array.cast(pa.float64())
    values = fixed_values(wide, "<f8")
    numbers = np.where(np.isnan(values), np.nan, values)
    bits = pa.Array.from_buffers(pa.int64(), len(array), [None, pa.py_buffer(numbers)])
    return bits if not array.null_count else pc.if_else(array.is_valid(), bits, pa.scalar(None, pa.int64()))
