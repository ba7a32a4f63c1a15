"""Pure. Which values a column has, or combinations of values several have, and how often: what must be seen of all rows
before anything can be said.

Gathered rows are counted by value where that makes them fewer. They can be told apart into heaps, each with all rows
of its values, so that what does not fit in one place is answered in several. Where only repeats matter, values are
compared by a number of 64 bits first, and exactly only those whose number comes again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.gates.row_tests import members_array
from lakelib.gates.rows import as_floats, python_values
from lakelib.rows.buffers import array_of_mask, array_of_numbers, fixed_values, whole_array
from lakelib.rows.hash import key_hashes

_COUNT = "count"
_GATHERED_ROWS = 262_144
_WORTH_COUNTING = 0.5
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
        self._waiting.append(pa.table([*columns, once], [*names, _COUNT]))
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
        self._worth_counting = counted.num_rows <= _WORTH_COUNTING * waiting.num_rows
        self._counted, self._waiting, self._waiting_rows = [counted], [], 0


def count_values(rows: pa.Table) -> pa.Table:
    """Each value once. NULL is a value, and NaN is equal to NaN."""
    names = rows.column_names[:-1]
    found = rows.group_by(names, use_threads=False).aggregate([(_COUNT, "sum")])
    return found.select([*names, f"{_COUNT}_sum"]).rename_columns([*names, _COUNT])


def row_keys(rows: pa.Table) -> Keys:
    """A number for each row; equal values have the same."""
    return key_hashes([_hashable(rows[name]) for name in rows.column_names[:-1]])


def _hashable(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Text stays in its chunks: one array may not hold all of it."""
    if not pa.types.is_floating(column.type):
        return column
    numbers = as_floats(whole_array(column))
    return pc.if_else(pc.is_nan(numbers), pa.scalar(math.nan), numbers).view(pa.int64())


# What is asked of values


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was found of some heap; of all of them together once they are put together."""

    unexpected: int = 0
    """Rows, or values, that are not as expected."""
    distinct: int = 0
    """Values; where a set is given, those of its members that are there."""
    sample: tuple[Any, ...] = ()
    most: int = 0
    """How often the most common values are there, and how many they are."""
    ties: int = 0
    numbers: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a check asks of all values of its columns."""

    sample: int = 0

    in_one_place = False

    def answer(self, rows: pa.Table) -> Answer:
        raise NotImplementedError

    def merge(self, left: Answer, right: Answer) -> Answer:
        """Of two heaps. What is asked in one place has one heap, and is never asked this."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats(Question):
    """How many rows have a value that others have, too; and how many values there are."""

    def answer(self, rows: pa.Table) -> Answer:
        suspects = _suspects(rows)
        if not suspects.num_rows:
            return Answer(distinct=rows.num_rows)
        counted = count_values(suspects)
        repeated = counted.filter(pc.greater(counted[_COUNT], 1))
        return Answer(
            unexpected=pc.sum(repeated[_COUNT]).as_py() or 0,
            distinct=rows.num_rows - suspects.num_rows + counted.num_rows,
            sample=_repeated_sample(repeated, self.sample),
        )

    def merge(self, left: Answer, right: Answer) -> Answer:
        return Answer(
            unexpected=left.unexpected + right.unexpected,
            distinct=left.distinct + right.distinct,
            sample=(*left.sample, *right.sample)[: self.sample],
        )


def _suspects(rows: pa.Table) -> pa.Table:
    """Without rows whose value is there only once."""
    keys = row_keys(rows)
    in_order = np.sort(keys)
    again = np.unique(in_order[1:][in_order[1:] == in_order[:-1]])
    several = _counts(rows) > 1
    if len(again):
        places = np.minimum(np.searchsorted(again, keys), len(again) - 1)
        several |= again[places] == keys
    return rows.filter(array_of_mask(several))


def _counts(rows: pa.Table) -> npt.NDArray[np.int64]:
    return fixed_values(whole_array(rows[_COUNT]), "<i8")


def _numbers(values: pa.Array) -> npt.NDArray[Any]:
    return fixed_values(values, "<i8" if pa.types.is_integer(values.type) else "<f8")


def _repeated_sample(repeated: pa.Table, most: int) -> tuple[Any, ...]:
    """Each value as often as rows have it."""
    shown = repeated.slice(0, most)
    columns = [python_values(whole_array(shown[name])) for name in shown.column_names[:-1]]
    values = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    counts = shown[_COUNT].to_pylist()
    found = [value for value, count in zip(values, counts, strict=True) for _ in range(min(count, most))]
    return tuple(found[:most])


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership(Question):
    """Which values are in a set, and which of its members are there."""

    members: tuple[Any, ...]

    def answer(self, rows: pa.Table) -> Answer:
        values = whole_array(count_values(rows)["0"]).drop_null()
        members = members_array(self.members, values.type)
        outside = values.filter(pc.invert(pc.is_in(values, value_set=members)))
        first = pc.array_sort_indices(outside)[: self.sample]
        inside = pc.is_in(pc.unique(members), value_set=values)
        return Answer(
            unexpected=len(outside),
            sample=tuple(python_values(outside.take(first))),
            distinct=int(pc.sum(inside).as_py() or 0),
        )

    def merge(self, left: Answer, right: Answer) -> Answer:
        return Answer(
            unexpected=left.unexpected + right.unexpected,
            distinct=left.distinct + right.distinct,
            sample=tuple(sorted((*left.sample, *right.sample), key=_sortable)[: self.sample]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MostCommon(Question):
    """The values that are there most often."""

    members: tuple[Any, ...]

    def answer(self, rows: pa.Table) -> Answer:
        counted = count_values(rows.filter(rows["0"].is_valid()))
        if not counted.num_rows:
            return Answer()
        most = pc.max(counted[_COUNT]).as_py()
        values = whole_array(counted.filter(pc.equal(counted[_COUNT], most))["0"])
        members = members_array(self.members, values.type)
        first = pc.array_sort_indices(values)[: self.sample]
        return Answer(
            most=most,
            ties=len(values),
            sample=tuple(python_values(values.take(first))),
            distinct=int(pc.sum(pc.is_in(values, value_set=members)).as_py() or 0),
        )

    def merge(self, left: Answer, right: Answer) -> Answer:
        if left.most != right.most:
            return max(left, right, key=lambda answer: answer.most)
        return Answer(
            most=left.most,
            ties=left.ties + right.ties,
            sample=tuple(sorted((*left.sample, *right.sample), key=_sortable)[: self.sample]),
            distinct=left.distinct + right.distinct,
        )


def _sortable(value: Any) -> Any:
    return (isinstance(value, float) and math.isnan(value), value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles(Question):
    """The numbers at these shares of the way from the least to the greatest. NaN is none of them."""

    shares: tuple[float, ...]
    interpolation: str = "nearest"

    in_one_place = True

    def answer(self, rows: pa.Table) -> Answer:
        numbers, ends = _in_order(rows)
        if not len(numbers):
            return Answer(numbers=(None,) * len(self.shares))
        return Answer(numbers=tuple(_quantile(numbers, ends, share, self.interpolation) for share in self.shares))


def _in_order(rows: pa.Table) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """The numbers in order, and of each how many rows have it or a lower one."""
    rows = rows.filter(rows["0"].is_valid())
    values = whole_array(rows["0"])
    exact = pa.types.is_integer(values.type)
    numbers = _numbers(values.cast(pa.int64()) if exact else as_floats(values))
    counts = _counts(rows)
    if not exact:
        known = ~np.isnan(numbers)
        numbers, counts = numbers[known], counts[known]
    if not len(counts) or counts.max() == 1:
        return np.sort(numbers), np.arange(1, len(numbers) + 1)
    order = np.argsort(numbers)
    return numbers[order], np.cumsum(counts[order])


def _quantile(numbers: npt.NDArray[Any], ends: npt.NDArray[np.int64], share: float, interpolation: str) -> float:
    place = (int(ends[-1]) - 1) * share
    low, high = math.floor(place), math.ceil(place)
    between = place - low
    if interpolation == "nearest":
        low = high = low if between < 0.5 else high
    elif interpolation in ("lower", "higher"):
        low = high = low if interpolation == "lower" else high
    elif interpolation == "midpoint":
        between = 0.5
    first, second = (numbers[np.searchsorted(ends, rank, side="right")].item() for rank in (low, high))
    if first == second or not between:
        return float(first) if interpolation in ("linear", "midpoint") else first
    if between == 0.5:
        return float((first + second) / 2)
    return float(first + (second - first) * between)


@dataclass(frozen=True, slots=True, kw_only=True)
class FarFromMean(Question):
    """How many rows are so many standard deviations from the mean. Without a deviation none is."""

    threshold: float
    double_sided: bool

    in_one_place = True

    def answer(self, rows: pa.Table) -> Answer:
        rows = rows.filter(rows["0"].is_valid())
        numbers = _numbers(as_floats(whole_array(rows["0"])))
        counts = _counts(rows)
        count = int(counts.sum())
        if count < 2:
            return Answer()
        with np.errstate(all="ignore"):
            mean = float((numbers * counts).sum() / count)
            deviation = math.sqrt(float((np.square(numbers - mean) * counts).sum()) / (count - 1))
            if not deviation > 0 or math.isinf(deviation):
                return Answer()
            scores = (numbers - mean) / deviation
            far = np.abs(scores) >= abs(self.threshold) if self.double_sided else scores >= self.threshold
        counted = rows.filter(array_of_mask(far))
        return Answer(unexpected=int(counts[far].sum()), sample=_repeated_sample(counted, self.sample))
