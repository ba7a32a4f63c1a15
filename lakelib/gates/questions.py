"""Pure. What checks ask of all values of a column, or of several: heap by heap, where that goes."""

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.gates.row_tests import members_array
from lakelib.gates.rows import as_floats, python_values
from lakelib.gates.summary import COUNT, count_values, row_keys
from lakelib.rows.buffers import array_of_mask, fixed_values, whole_array


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


class Question(Protocol):
    """What a check asks of all values of its columns."""

    def answer(self, rows: pa.Table) -> Answer: ...


@runtime_checkable
class AskedOfHeaps(Question, Protocol):
    """May be asked of each heap on its own. What is asked otherwise needs all values in one place."""

    def merge(self, left: Answer, right: Answer) -> Answer:
        """Of two heaps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """How many rows have a value that others have, too; and how many values there are."""

    sample: int = 0

    def answer(self, rows: pa.Table) -> Answer:
        suspects = _suspects(rows)
        if not suspects.num_rows:
            return Answer(distinct=rows.num_rows)
        counted = count_values(suspects)
        repeated = counted.filter(pc.greater(counted[COUNT], 1))
        return Answer(
            unexpected=pc.sum(repeated[COUNT]).as_py() or 0,
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
    return fixed_values(whole_array(rows[COUNT]), "<i8")


def _numbers(values: pa.Array) -> npt.NDArray[Any]:
    return fixed_values(values, "<i8" if pa.types.is_integer(values.type) else "<f8")


def _repeated_sample(repeated: pa.Table, most: int) -> tuple[Any, ...]:
    """Each value as often as rows have it."""
    shown = repeated.slice(0, most)
    columns = [python_values(whole_array(shown[name])) for name in shown.column_names[:-1]]
    values = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    counts = shown[COUNT].to_pylist()
    found = [value for value, count in zip(values, counts, strict=True) for _ in range(min(count, most))]
    return tuple(found[:most])


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Which values are in a set, and which of its members are there."""

    members: tuple[Any, ...]
    sample: int = 0

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
class MostCommon:
    """The values that are there most often."""

    members: tuple[Any, ...]
    sample: int = 0

    def answer(self, rows: pa.Table) -> Answer:
        counted = count_values(rows.filter(rows["0"].is_valid()))
        if not counted.num_rows:
            return Answer()
        most = pc.max(counted[COUNT]).as_py()
        values = whole_array(counted.filter(pc.equal(counted[COUNT], most))["0"])
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
class Quantiles:
    """The numbers at these shares of the way from the least to the greatest. NaN is none of them."""

    shares: tuple[float, ...]
    interpolation: str = "nearest"
    sample: int = 0

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
class FarFromMean:
    """How many rows are so many standard deviations from the mean. Without a deviation none is."""

    threshold: float
    double_sided: bool
    sample: int = 0

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
