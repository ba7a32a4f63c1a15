"""Pure. What is gathered of a column's values batch by batch, and put together: least, greatest, sum, mean and spread;
or which values there are, or combinations of values of several columns, and how often: what must be seen of all rows.

Gathered rows are counted by value where that makes them fewer. They can be told apart into heaps, each with all rows of
its values, so that what does not fit in one place is answered in several. Where only repeats matter, values are
compared by a number of 64 bits first, and exactly only those whose number comes again.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.gates.rows import as_floats
from lakelib.rows.buffers import array_of_mask, array_of_numbers, fixed_values, whole_array
from lakelib.rows.hash import key_hashes

_LOW_BITS = 32
COUNT = "count"
"""The last column of a heap: how often the values are there."""


@dataclass(slots=True)
class Summary:
    """Of no values first. NaN is neither least nor greatest; whoever asks for either knows of it."""

    count: int = 0
    """Of values: NULL is none."""
    nan_count: int = 0
    least: Any = None
    greatest: Any = None
    """Days and moments as they are stored."""
    total: Any = 0
    """Exact, of whole numbers and decimals."""
    mean: float = math.nan
    squares: float = 0.0
    """The sum of the squared distances from the mean."""

    def add(self, values: pa.Array) -> None:
        values = values.drop_null()
        if len(values):
            self.merge(_summarise(values))

    def merge(self, other: "Summary") -> None:
        if not other.count:
            return
        if not self.count:
            for name in self.__dataclass_fields__:
                setattr(self, name, getattr(other, name))
            return
        self.least = _of_both(min, self.least, other.least)
        self.greatest = _of_both(max, self.greatest, other.greatest)
        self.total += other.total
        self.nan_count += other.nan_count
        count = self.count + other.count
        with np.errstate(all="ignore"):
            distance = np.float64(other.mean) - np.float64(self.mean)
            self.squares = float(self.squares + other.squares + distance**2 * self.count * other.count / count)
            self.mean = float(self.mean + distance * other.count / count)
        self.count = count

    @property
    def average(self) -> float | None:
        return None if not self.count else _ratio(self.total, self.count)

    @property
    def deviation(self) -> float | None:
        """Of a sample: there is none of fewer than two values."""
        return None if self.count < 2 else math.sqrt(self.squares / (self.count - 1))


def _ratio(total: Any, count: int) -> float:
    return float(total / count)


def _of_both(choose: Any, left: Any, right: Any) -> Any:
    return right if left is None else left if right is None else choose(left, right)


def _summarise(values: pa.Array) -> Summary:
    if pa.types.is_temporal(values.type):
        least, greatest = _ends(values)
        return Summary(count=len(values), least=least, greatest=greatest)
    numbers = fixed_values(as_floats(values), "<f8")
    nans = int(np.isnan(numbers).sum()) if pa.types.is_floating(values.type) else 0
    least, greatest = _ends(values) if nans < len(values) else (None, None)
    with np.errstate(all="ignore"):
        mean = float(numbers.mean())
        squares = float(np.square(numbers - mean).sum())
    return Summary(
        count=len(values),
        nan_count=nans,
        least=least,
        greatest=greatest,
        total=_total(values, numbers),
        mean=mean,
        squares=squares,
    )


def _ends(values: pa.Array) -> tuple[Any, Any]:
    """Days and moments as they are stored, which Python may not have."""
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    found = pc.min_max(values)
    return found["min"].as_py(), found["max"].as_py()


def _total(values: pa.Array, numbers: Any) -> Any:
    if pa.types.is_floating(values.type):
        with np.errstate(all="ignore"):
            return float(numbers.sum())
    if pa.types.is_decimal(values.type):
        found: Decimal = pc.sum(values.cast(pa.decimal256(70, values.type.scale))).as_py()
        return found
    whole = fixed_values(values.cast(pa.int64()), "<i8")
    high = int((whole >> _LOW_BITS).sum())  # no sum of a batch passes 64 bits
    return (high << _LOW_BITS) + int((whole & (2**_LOW_BITS - 1)).sum())


# How often values are there


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
