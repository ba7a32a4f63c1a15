"""Pure. Holds two runs against each other: which keys both have, and which only one of them."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.rows.buffers import array_of_mask, whole_array
from lakelib.rows.keys import Words, first_words, is_one_word
from lakelib.rows.merge import keep_newest, key_windows

Mask = npt.NDArray[np.bool_]
Keys = Sequence[pa.Array]
"""The key columns of some rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The rows that both runs have of a range of keys, sorted by key. The rows in pairs stand in one order."""

    before: pa.Table
    after: pa.Table
    before_paired: Mask
    """Which rows of `before` have a row of their key in `after`."""
    after_paired: Mask

    @property
    def pairs(self) -> tuple[pa.Table, pa.Table]:
        return chosen(self.before, self.before_paired), chosen(self.after, self.after_paired)


def pair_runs(
    before: Iterator[pa.Table], after: Iterator[pa.Table], key_names: Sequence[str], schemas: Sequence[pa.Schema]
) -> Iterator[Pairing]:
    """Two runs, sorted by key and with one row a key, of these schemas. Memory does not grow with them."""
    for window in key_windows((before, after), key_names):
        sides = dict(window)
        left, right = (sides.get(side, schemas[side].empty_table()) for side in (0, 1))
        left_keys, right_keys = ([whole_array(side.column(name)) for name in key_names] for side in (left, right))
        before_paired, after_paired = paired(left_keys, right_keys)
        yield Pairing(before=left, after=right, before_paired=before_paired, after_paired=after_paired)


def chosen(rows: pa.Table, mask: Mask) -> pa.Table:
    return rows if mask.all() else rows.filter(array_of_mask(mask))


def paired(left: Keys, right: Keys) -> tuple[Mask, Mask]:
    """Which rows of either side have a key that the other has, too. Both are sorted by key, and have each once."""
    if not len(left[0]) or not len(right[0]):
        return np.zeros(len(left[0]), np.bool_), np.zeros(len(right[0]), np.bool_)
    if len(left) == 1 and is_one_word(left) and is_one_word(right):
        return _paired_words(first_words(left), first_words(right))
    return _are_replaced(left, right), _are_replaced(right, left)


def _paired_words(left: Words, right: Words) -> tuple[Mask, Mask]:
    """Of ascending words, none of them twice."""
    places = np.minimum(np.searchsorted(right, left), len(right) - 1)
    left_paired: Mask = right[places] == left
    right_paired = np.zeros(len(right), np.bool_)
    right_paired[places[left_paired]] = True
    return left_paired, right_paired


def _are_replaced(keys: Keys, others: Keys) -> Mask:
    stays = keep_newest([keys, others], [[], []])[0]
    return np.zeros(len(keys[0]), np.bool_) if stays is None else ~stays
