"""Rows as a caller hands them in: anything that speaks Arrow, seen as a schema and a stream of batches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakelib.errors import InvalidInputError

_BATCH_ROWS = 131_072
"""Tables are handed on in pieces that are worth a thread's while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSource:
    """`batches()` may be called again only if `rereadable`."""

    schema: pa.Schema
    data: pa.Table | pa.RecordBatchReader

    @property
    def rereadable(self) -> bool:
        return isinstance(self.data, pa.Table)

    @property
    def size_bytes(self) -> int:
        """What the rows take in memory already; 0 for a stream."""
        return self.data.nbytes if isinstance(self.data, pa.Table) else 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        if isinstance(self.data, pa.Table):
            yield from self.data.to_batches(max_chunksize=_BATCH_ROWS)
        else:
            yield from self.data


def open_source(data: Any) -> RowSource:
    """Takes an Arrow Table, RecordBatch or RecordBatchReader, or any object with an Arrow stream or array interface
    (pandas, Polars, DuckDB …). Raises InvalidInputError for anything else."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not isinstance(data, pa.Table | pa.RecordBatchReader):
        data = _from_interface(data)
    if len(data.schema) == 0:
        raise InvalidInputError(
            "The data has no columns.", kind="no_columns", remedy="Give at least the primary key columns."
        )
    return RowSource(schema=data.schema, data=data)


def with_constants(source: RowSource, constants: Mapping[str, pa.Scalar]) -> RowSource:
    """The source with columns of one value each added: those that it has not already."""
    present = {name.casefold() for name in source.schema.names}
    missing = {name: value for name, value in constants.items() if name.casefold() not in present}
    if not missing:
        return source
    if isinstance(source.data, pa.Table):
        table = source.data
        for name, value in missing.items():
            table = table.append_column(name, pa.repeat(value, table.num_rows))
        return RowSource(schema=table.schema, data=table)
    schema = pa.schema([*source.schema, *(pa.field(name, value.type) for name, value in missing.items())])

    def extended() -> Iterator[pa.RecordBatch]:
        for batch in source.batches():
            added = [pa.repeat(value, batch.num_rows) for value in missing.values()]
            yield pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)

    return RowSource(schema=schema, data=pa.RecordBatchReader.from_batches(schema, extended()))


def _from_interface(data: Any) -> pa.Table | pa.RecordBatchReader:
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(data)])
    raise InvalidInputError(
        f"The data is a {type(data).__module__}.{type(data).__qualname__}, which holds no Arrow rows.",
        kind="unknown_data",
        remedy="Give a pyarrow Table, RecordBatch or RecordBatchReader, or a data frame that exports Arrow.",
    )
