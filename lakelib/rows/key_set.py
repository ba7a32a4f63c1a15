"""Pure. A set of keys that never misses one of its own, and lets a few others pass: cheap to ask for millions."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelib.rows.hash import Hashes, key_hashes

Mask = npt.NDArray[np.bool_]

_SLOTS_A_KEY = 32
_LEAST_BITS = 10
_MOST_BITS = 26
"""64 MiB. Of more keys more others pass, and nothing else."""


class KeySet:
    def __init__(self, hashes: Iterable[Hashes]) -> None:
        parts = list(hashes)
        wanted = max(1, sum(map(len, parts)) * _SLOTS_A_KEY)
        bits = min(_MOST_BITS, max(_LEAST_BITS, (wanted - 1).bit_length()))
        self._shift = np.uint64(64 - bits)
        self._slots = np.zeros(1 << bits, np.bool_)
        for part in parts:
            self._slots[part >> self._shift] = True

    def may_have(self, key_columns: Sequence[pa.Array | pa.ChunkedArray]) -> Mask:
        """Which rows may have a key of the set: all that do, and a few more."""
        found: Mask = self._slots[key_hashes(key_columns) >> self._shift]
        return found
