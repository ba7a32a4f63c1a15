"""Pure. A set of keys that never misses one of its own, and lets a few others pass: cheap to ask for millions."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelib.rows.buffers import fixed_values, is_long_type, whole_array
from lakelib.rows.hash import Hashes, key_hashes

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

_SLOTS_A_KEY = 32
_NEAR_A_KEY = 128
_LEAST_BITS = 10
_MOST_BITS = 26
"""64 MiB. Of more keys more others pass, and nothing else."""


_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_NO_HASHES = np.zeros(0, np.uint64)
_NO_NUMBERS = np.zeros(0, np.int64)


_MOST_SOUGHT = 1 / 8
"""Of the rows that are asked about: to look so many keys up among them is cheaper than to look each row up."""


class KeySet:
    def __init__(self, keys: Iterable[Sequence[pa.Array | pa.ChunkedArray]]) -> None:
        """Of the key columns of some tables."""
        parts, numbers = [_NO_HASHES], [_NO_NUMBERS]
        is_of_numbers = True
        for columns in keys:
            found = _numbers_of(columns)
            is_of_numbers &= found is not None
            numbers = [*numbers, found] if is_of_numbers and found is not None else [_NO_NUMBERS]
            parts.append(_scattered(columns))
        self._numbers = np.sort(np.concatenate(numbers)) if is_of_numbers else None
        """The keys, where they are numbers."""
        self._near = None if self._numbers is None else _marked(self._numbers)
        """Which of the numbers from the lowest to the highest are keys, where those are not too far apart."""
        if self._near is not None:
            return
        wanted = max(1, sum(map(len, parts)) * _SLOTS_A_KEY)
        bits = min(_MOST_BITS, max(_LEAST_BITS, (wanted - 1).bit_length()))
        self._shift = np.uint64(64 - bits)
        self._slots = np.zeros(1 << bits, np.bool_)
        for part in parts:
            self._slots[part >> self._shift] = True

    @property
    def is_of_unlike(self) -> bool:
        """Whether no key was given twice, as far as that is known at once."""
        return self._numbers is not None and not (self._numbers[1:] == self._numbers[:-1]).any()

    def may_have(self, key_columns: Sequence[pa.Array | pa.ChunkedArray]) -> Mask:
        """Which rows may have a key of the set: all that do, and a few more."""
        numbers = None if self._numbers is None else _numbers_of(key_columns)
        if self._numbers is not None and numbers is not None and _ascend(numbers):
            sought = _between(self._numbers, numbers[0], numbers[-1])
            if len(sought) < len(numbers) * _MOST_SOUGHT:
                return _are_among(numbers, sought)
        if self._numbers is not None and self._near is not None:
            return _all_of(key_columns) if numbers is None else _are_marked(numbers, self._near, self._numbers[0])
        found: Mask = self._slots[_scattered(key_columns) >> self._shift]
        return found


def _ascend(numbers: Numbers) -> bool:
    """Whether there are some, in their order, none of them twice, as in a run."""
    return bool(len(numbers) and (numbers[1:] > numbers[:-1]).all())


def _between(ascending: Numbers, lowest: np.int64, highest: np.int64) -> Numbers:
    return ascending[np.searchsorted(ascending, lowest) : np.searchsorted(ascending, highest, side="right")]


def _are_among(ascending: Numbers, sought: Numbers) -> Mask:
    """Which of the ascending numbers are sought; none that is sought lies above them."""
    mask = np.zeros(len(ascending), np.bool_)
    places = np.searchsorted(ascending, sought)
    mask[places[ascending[places] == sought]] = True
    return mask


def _marked(ascending: Numbers) -> Mask | None:
    """Of the numbers from the lowest to the highest those that are there, if they lie close together: who asks for
    them in their order looks at one place after the other, where slots are all over the memory."""
    if not len(ascending):
        return None
    reach = int(ascending[-1]) - int(ascending[0]) + 1
    if reach > min(len(ascending) * _NEAR_A_KEY, 1 << _MOST_BITS):
        return None
    marked = np.zeros(reach, np.bool_)
    marked[ascending - ascending[0]] = True
    return marked


def _are_marked(numbers: Numbers, marked: Mask, lowest: np.int64) -> Mask:
    """Which are marked, counted from the lowest. What lies below it is as far above as no mark is."""
    places = (numbers - lowest).view(np.uint64)
    found: Mask = marked[np.minimum(places, np.uint64(len(marked) - 1)).view(np.int64)]
    found &= places < np.uint64(len(marked))
    return found


def _all_of(key_columns: Sequence[pa.Array | pa.ChunkedArray]) -> Mask:
    return np.ones(len(key_columns[0]), np.bool_)


def _numbers_of(key_columns: Sequence[pa.Array | pa.ChunkedArray]) -> Numbers | None:
    """The keys, if they are integers of 64 bits, and all are there; None for others."""
    return None if key_columns[0].null_count else _integers_of(key_columns)


def _integers_of(key_columns: Sequence[pa.Array | pa.ChunkedArray]) -> Numbers | None:
    """As `_numbers_of`. What stands for one that is NULL is arbitrary."""
    if len(key_columns) > 1 or not is_long_type(key_columns[0].type):
        return None
    return fixed_values(whole_array(key_columns[0]), "<i8")


def _scattered(key_columns: Sequence[pa.Array | pa.ChunkedArray]) -> Hashes:
    """A number of 64 bits for each key, the first of which are as good as random: the same for the same key, whether or
    not one beside it is NULL."""
    numbers = _integers_of(key_columns)
    if numbers is None:
        return key_hashes(key_columns)
    scattered: Hashes = numbers.view(np.uint64) * _FACTOR
    return scattered
