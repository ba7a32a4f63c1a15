"""Pure. Holds two runs against each other: which keys both have, and which only one of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelib.rows.buffers import array_of_mask, whole_array
from lakelib.rows.merge import keep_newest, key_windows

Mask = npt.NDArray[np.bool_]


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
        yield Pairing(
            before=left,
            after=right,
            before_paired=_paired(left, right, key_names),
            after_paired=_paired(right, left, key_names),
        )


def chosen(rows: pa.Table, mask: Mask) -> pa.Table:
    return rows if mask.all() else rows.filter(array_of_mask(mask))


def _paired(rows: pa.Table, others: pa.Table, key_names: Sequence[str]) -> Mask:
    """Which of the rows have a key that is among the others'."""
    if not rows.num_rows or not others.num_rows:
        return np.zeros(rows.num_rows, np.bool_)
    keys = [[whole_array(table.column(name)) for name in key_names] for table in (rows, others)]
    alone = keep_newest(keys, [[], []])[0]
    return np.zeros(rows.num_rows, np.bool_) if alone is None else ~alone
