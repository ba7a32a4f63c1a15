"""Pure. A set of keys that never misses one of its own, and lets a few others pass: cheap to ask for millions."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelib.rows.buffers import fixed_values, is_long_type, whole_array
from lakelib.rows.hash import Hashes, key_hashes

Mask = npt.NDArray[np.bool_]

_SLOTS_A_KEY = 32
_LEAST_BITS = 10
_MOST_BITS = 26
"""64 MiB. Of more keys more others pass, and nothing else."""


_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class KeySet:
    def __init__(self, keys: Iterable[Sequence[pa.Array | pa.ChunkedArray]]) -> None:
        """Of the key columns of some tables."""
        parts = [_scattered(columns) for columns in keys]
        wanted = max(1, sum(map(len, parts)) * _SLOTS_A_KEY)
        bits = min(_MOST_BITS, max(_LEAST_BITS, (wanted - 1).bit_length()))
        self._shift = np.uint64(64 - bits)
        self._slots = np.zeros(1 << bits, np.bool_)
        for part in parts:
            self._slots[part >> self._shift] = True

    def may_have(self, key_columns: Sequence[pa.Array | pa.ChunkedArray]) -> Mask:
        """Which rows may have a key of the set: all that do, and a few more."""
        found: Mask = self._slots[_scattered(key_columns) >> self._shift]
        return found


def _scattered(key_columns: Sequence[pa.Array | pa.ChunkedArray]) -> Hashes:
    """A number of 64 bits for each key, the first of which are as good as random."""
    first = key_columns[0]
    if len(key_columns) == 1 and is_long_type(first.type) and not first.null_count:
        scattered: Hashes = fixed_values(whole_array(first), "<u8") * _FACTOR
        return scattered
    return key_hashes(key_columns)
