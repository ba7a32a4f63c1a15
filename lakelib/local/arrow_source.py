"""Rows as DuckDB scans them: it says which columns it wants, and of which rows, and takes them as a stream. A relation
of DuckDB's is one of them.

It takes what derives from a pyarrow Dataset for one, and calls `scanner` each time that it scans, from any thread.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lakelib.errors import InvalidInputError

Read = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
"""Gives the rows in these columns, in whatever order: all of them, or all that can make a difference."""


class ArrowSource(ds.Dataset):  # type: ignore[misc]
    """A relation that may be scanned more than once."""

    def __init__(self, schema: pa.Schema, read: Read) -> None:
        self._schema = schema
        self._read = read

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: object
    ) -> "_Scanner":
        """DuckDB asks a row nothing more that it has put into the filter."""
        names = self._schema.names if columns is None else list(columns)
        return _Scanner(self._schema, self._read, names, filter)


class _Scanner:
    """What DuckDB asks of a pyarrow Scanner."""

    def __init__(self, schema: pa.Schema, read: Read, names: Sequence[str], filter: pc.Expression | None) -> None:
        asked = "" if filter is None else str(filter)
        # An expression does not tell its columns. To read one too many does no harm.
        self._names = [each.name for each in schema if each.name in names or each.name in asked]
        self._floats = [name for name in self._names if name in asked and _has_floats(schema.field(name).type)]
        self._schema, self._read, self._filter = schema, read, filter
        self.projected_schema = pa.schema([schema.field(name) for name in names])

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.projected_schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._read(self._names or self._schema.names[:1]):
            yield from self._matching(pa.Table.from_batches([batch])).select(self.projected_schema.names).to_batches()

    def _matching(self, rows: pa.Table) -> pa.Table:
        if self._filter is None or not self._floats:
            return rows if self._filter is None else rows.filter(self._filter)
        asked, text = rows, str(self._filter)
        for name in self._floats:
            if f"is_nan({name})" not in text:
                asked = _with_highest(asked, name)
        return rows.take(asked.append_column("", pa.array(np.arange(rows.num_rows))).filter(self._filter).column(""))


def _has_floats(kind: pa.DataType) -> bool:
    """Also where a filter may look into it."""
    return pa.types.is_floating(kind) or (pa.types.is_struct(kind) and any(_has_floats(field.type) for field in kind))


def _with_highest(rows: pa.Table, name: str) -> pa.Table:
    """NaN is above all numbers for DuckDB; for Arrow it is neither above nor below one."""
    place = rows.schema.get_field_index(name)
    field = rows.schema.field(place)
    highest = [_highest(chunk) for chunk in rows.column(place).chunks]
    return rows.set_column(place, field, pa.chunked_array(highest, field.type))


def _highest(values: pa.Array) -> pa.Array:
    if pa.types.is_floating(values.type):
        return pc.if_else(pc.is_nan(values), pa.scalar(math.inf, values.type), values)
    if not pa.types.is_struct(values.type):
        return values
    parts = [_highest(values.field(place)) for place in range(values.type.num_fields)]
    return pa.StructArray.from_arrays(parts, fields=list(values.type), mask=values.is_null())


def relation_of(schema: pa.Schema, read: Read, connection: Any = None) -> Any:
    """The rows in a connection, DuckDB's own if none is given, read each time that they are asked for: in the columns
    that are. Raises InvalidInputError where DuckDB is not installed."""
    try:
        import duckdb
    except ImportError:
        raise InvalidInputError(
            "DuckDB is not installed.", kind="duckdb_missing", remedy='pip install "lakelib[sql]"'
        ) from None
    return (duckdb.default_connection() if connection is None else connection).from_arrow(ArrowSource(schema, read))
