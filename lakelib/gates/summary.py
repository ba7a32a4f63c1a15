"""Pure. Least, greatest, sum, mean and spread of a column's values, gathered batch by batch and put together."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.gates.rows import as_floats
from lakelib.rows.buffers import fixed_values

_LOW_BITS = 32


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
