"""Pure. A batch of rows, and what several checks ask of it, found once."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.gates.expectations import RowCondition
from lakelib.rows.buffers import array_of_numbers, whole_array

_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The rows that a check looks at: those that meet the condition."""

    condition: RowCondition | None = None
    without: tuple[str, ...] = ()
    """The columns whose NULLs leave a row out."""
    where_all: bool = False
    """A row is left out where all of these are NULL, not where any is."""


class Rows:
    """A batch. Floats are as they are compared: -0.0 is 0.0. `memory` outlives it: what is the same for all batches."""

    def __init__(self, batch: pa.RecordBatch, memory: dict[Any, Any]) -> None:
        self.count = batch.num_rows
        self._batch = batch
        self._memory = memory
        self._known: dict[Any, Any] = {}

    def column(self, name: str) -> pa.Array:
        return self._once(("column", name), lambda: self._read(name))

    def _read(self, name: str) -> pa.Array:
        column = whole_array(self._batch[name])
        return without_minus(column) if pa.types.is_floating(column.type) else column

    def is_null(self, name: str) -> pa.BooleanArray:
        return self._once(("null", name), lambda: self.column(name).is_null())

    def null_count(self, name: str) -> int:
        return int(self._batch[name].null_count)

    def text(self, name: str) -> pa.Array:
        """The values as text."""
        return self._once(("text", name), lambda: _as_text(self.column(name)))

    def length(self, name: str) -> pa.Array:
        """Of text in characters, of bytes in bytes."""
        return self._once(("length", name), lambda: _lengths(self.column(name), lambda: self.text(name)))

    def chosen(self, domain: Domain) -> pa.BooleanArray | None:
        """Which rows belong to the domain; None for all."""
        return self._once(("domain", domain), lambda: self._choose(domain))

    def of(self, domain: Domain, names: Sequence[str]) -> list[pa.Array]:
        """Columns, with the rows of the domain only."""
        chosen = self.chosen(domain)
        columns = [self.column(name) for name in names]
        return columns if chosen is None else [column.filter(chosen) for column in columns]

    def count_of(self, domain: Domain) -> int:
        chosen = self.chosen(domain)
        return self.count if chosen is None else int(chosen.true_count)

    def values_at(self, names: Sequence[str], places: pa.Array) -> list[list[Any]]:
        """Python's values of some rows, by column, as they are stored."""
        return [python_values(whole_array(self._batch[name]).take(places)) for name in names]

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._memory:
            self._memory[key] = make()
        return self._memory[key]

    def coded(self, name: str) -> pa.DictionaryArray:
        """The values as text, each text once."""
        return self._once(("coded", name), lambda: self.text(name).dictionary_encode())

    def _once(self, key: Any, find: Callable[[], Any]) -> Any:
        if key not in self._known:
            self._known[key] = find()
        return self._known[key]

    def _choose(self, domain: Domain) -> pa.BooleanArray | None:
        masks = []
        condition = domain.condition
        if condition is not None:
            masks.append(self._once(("condition", condition), lambda: self._meets(condition)))
        with_nulls = [name for name in domain.without if self.null_count(name)]
        if with_nulls and (not domain.where_all or len(with_nulls) == len(domain.without)):
            combine = pc.and_ if domain.where_all else pc.or_
            masks.append(pc.invert(reduce(combine, (self.is_null(name) for name in with_nulls))))
        return reduce(pc.and_, masks) if masks else None

    def _meets(self, condition: RowCondition) -> pa.BooleanArray:
        """NULLs meet no condition."""
        column = self.column(condition.column)
        if condition.operator == "not null":
            return column.is_valid()
        return pc.fill_null(_compare(condition.operator, column, condition.value), False)


def _compare(sign: str, column: pa.Array, value: Any) -> pa.Array:
    """Numbers are compared exactly, unless the column has floats."""
    if isinstance(value, str):
        return _COMPARISONS[sign](column, pa.scalar(value, column.type))
    if pa.types.is_floating(column.type):
        return _COMPARISONS[sign](as_floats(column), pa.scalar(float(value)))
    scale = column.type.scale if pa.types.is_decimal(column.type) else 0
    exact = value if isinstance(value, int) else Decimal(repr(value))
    wide = column.cast(pa.decimal256(70, max(scale, 20)))
    return _COMPARISONS[sign](wide, pa.scalar(Decimal(exact), pa.decimal256(70, max(scale, 20))))


def without_minus(floats: pa.Array) -> pa.Array:
    """-0.0 is 0.0 to whoever compares."""
    return pc.add(floats, array_of_numbers(np.zeros(1)).cast(floats.type)[0])


def _as_text(column: pa.Array) -> pa.Array:
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def _lengths(column: pa.Array, text: Callable[[], pa.Array]) -> pa.Array:
    return pc.binary_length(column) if pa.types.is_binary(column.type) else pc.utf8_length(text())


def python_values(values: pa.Array) -> list[Any]:
    """As Python has them; those that it has not, such as days of the year 20000, as text."""
    try:
        return list(values.to_pylist())
    except (ValueError, OverflowError):
        return list(values.cast(pa.string()).to_pylist())


def as_floats(column: pa.Array) -> pa.Array:
    """Numbers as floats: the nearest ones."""
    return column.cast(pa.float64(), safe=False)
