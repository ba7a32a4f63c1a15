"""Pure. Which values a column has, or combinations of values several have, and how often: what must be seen of all rows
before anything can be said.

Gathered rows are counted by value where that makes them fewer. They can be told apart into heaps, each with all rows
of its values, so that what does not fit in one place is answered in several. Where only repeats matter, values are
compared by a number of 64 bits first, and exactly only those whose number comes again.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.gates.rows import as_floats
from lakelib.rows.buffers import array_of_mask, array_of_numbers, whole_array
from lakelib.rows.hash import key_hashes

COUNT = "count"
"""The last column of a heap: how often the values are there."""

_GATHERED_ROWS = 262_144
_WORTHCOUNTING = 0.5
"""Counting pays where values are no more than this share of the rows."""

Keys = npt.NDArray[np.uint64]


class Heap:
    """Rows of some columns, and how often each is there."""

    def __init__(self) -> None:
        self._counted: list[pa.Table] = []
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._worth_counting = True

    def add(self, columns: Sequence[pa.Array]) -> None:
        names = [str(place) for place in range(len(columns))]
        once = array_of_numbers(np.ones(len(columns[0]), np.int64))
        self._waiting.append(pa.table([*columns, once], [*names, COUNT]))
        self._waiting_rows += len(once)
        if self._worth_counting and self._waiting_rows >= _GATHERED_ROWS:
            self._count_waiting()

    def heaps(self, count: int) -> list[tuple[int, pa.Table]]:
        """All rows in so many heaps, of which some may be empty: equal values are in one heap."""
        rows = self._all()
        if rows is None:
            return []
        if count == 1:
            return [(0, rows)]
        numbers = row_keys(rows) % np.uint64(count)
        found = ((number, rows.filter(array_of_mask(numbers == np.uint64(number)))) for number in range(count))
        return [(number, heap) for number, heap in found if heap.num_rows]

    def _all(self) -> pa.Table | None:
        tables = [*self._counted, *self._waiting]
        return pa.concat_tables(tables) if tables else None

    def _count_waiting(self) -> None:
        waiting = pa.concat_tables([*self._counted, *self._waiting])
        counted = count_values(waiting)
        self._worth_counting = counted.num_rows <= _WORTHCOUNTING * waiting.num_rows
        self._counted, self._waiting, self._waiting_rows = [counted], [], 0


def count_values(rows: pa.Table) -> pa.Table:
    """Each value once. NULL is a value, and NaN is equal to NaN."""
    names = rows.column_names[:-1]
    found = rows.group_by(names, use_threads=False).aggregate([(COUNT, "sum")])
    return found.select([*names, f"{COUNT}_sum"]).rename_columns([*names, COUNT])


def row_keys(rows: pa.Table) -> Keys:
    """A number for each row; equal values have the same."""
    return key_hashes([_hashable(rows[name]) for name in rows.column_names[:-1]])


def _hashable(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Text stays in its chunks: one array may not hold all of it."""
    if not pa.types.is_floating(column.type):
        return column
    numbers = as_floats(whole_array(column))
    return pc.if_else(pc.is_nan(numbers), pa.scalar(math.nan), numbers).view(pa.int64())
