"""Work. Sources of rows: what a write asks of one, and whatever speaks Arrow as one: a schema, and a stream of
batches."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import Any, ClassVar, Protocol, runtime_checkable

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.progress import counted
from lakelib.rows.align import Alignment
from lakelib.rows.buffers import near_batches
from lakelib.work.write import WriteWork, WrittenFiles, write_batches

_BATCH_ROWS = 131_072
"""Tables are handed on in parts that are worth a thread's while."""
_ROW_COUNT: Callable[[pa.RecordBatch], int] = attrgetter("num_rows")


@runtime_checkable
class RowSource(Protocol):
    """`batches()` and `write()` may be called again only if `rereadable`."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def rereadable(self) -> bool: ...

    @property
    def session(self) -> Any:
        """The Spark session whose tasks have the rows; None for rows that this process has."""

    @property
    def size_bytes(self) -> int:
        """What the rows take in memory already, with all that is in the same buffers; 0 if they come as a stream."""

    def batches(self) -> Iterator[pa.RecordBatch]: ...

    def check(self, work: WriteWork) -> None:
        """Raises the InvalidInputError that the work would end in, as far as it can be known without writing."""

    def write(self, work: WriteWork, *, threads: int, distribution: str) -> WrittenFiles:
        """Checks, and does the work. An error leaves no file behind."""

    def with_constants(self, constants: Mapping[str, pa.Scalar]) -> "RowSource":
        """The source with columns of one value each added: those that it has not already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowSource:
    """Rows that this process writes."""

    data: pa.Table | pa.RecordBatchReader
    schema: pa.Schema
    rereadable: bool
    size_bytes: int
    session: ClassVar[Any] = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        return iter(self.data.to_batches(max_chunksize=_BATCH_ROWS) if isinstance(self.data, pa.Table) else self.data)

    def check(self, work: WriteWork) -> None:
        self._checked(work)

    def _checked(self, work: WriteWork) -> Alignment:
        alignment = work.align(self.schema)
        if work.inside is not None and self.rereadable:
            rows = 0
            for batch in chain.from_iterable(map(near_batches, self.batches())):
                work.inside.check(alignment.apply(batch, rows))
                rows += batch.num_rows
        return alignment

    def write(self, work: WriteWork, *, threads: int, distribution: str) -> WrittenFiles:
        alignment = self._checked(work)
        if self.rereadable:
            work = replace(work, inside=None)
        rows = self.data.num_rows if isinstance(self.data, pa.Table) else None
        with counted("Writing rows", self.batches(), rows, _ROW_COUNT) as batches:
            return write_batches(work, alignment, batches, threads)

    def with_constants(self, constants: Mapping[str, pa.Scalar]) -> RowSource:
        present = {name.casefold() for name in self.schema.names}
        missing = {name: value for name, value in constants.items() if name.casefold() not in present}
        return _extended(self, missing) if missing else self


def open_arrow(data: Any) -> ArrowSource:
    """Takes an Arrow Table, RecordBatch or RecordBatchReader, any object with an Arrow stream or array interface
    (pandas, Polars, DuckDB …), a list of rows as dicts, or a dict of columns as lists. Raises InvalidInputError for
    anything else."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not isinstance(data, pa.Table | pa.RecordBatchReader):
        data = _from_interface(data)
    return _source_of(data)


def _source_of(data: pa.Table | pa.RecordBatchReader) -> ArrowSource:
    is_table = isinstance(data, pa.Table)
    size_bytes = data.get_total_buffer_size() if is_table else 0
    return ArrowSource(data=data, schema=data.schema, rereadable=is_table, size_bytes=size_bytes)


def _extended(source: ArrowSource, missing: Mapping[str, pa.Scalar]) -> ArrowSource:
    if isinstance(source.data, pa.Table):
        table = source.data
        for name, value in missing.items():
            table = table.append_column(name, pa.repeat(value, table.num_rows))
        return _source_of(table)
    schema = pa.schema([*source.schema, *(pa.field(name, value.type) for name, value in missing.items())])

    def extended() -> Iterator[pa.RecordBatch]:
        for batch in source.batches():
            added = [pa.repeat(value, batch.num_rows) for value in missing.values()]
            yield pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)

    return _source_of(pa.RecordBatchReader.from_batches(schema, extended()))


def _from_interface(data: Any) -> pa.Table | pa.RecordBatchReader:
    if isinstance(data, list):
        return _from_columns(_columns_of(data))
    if isinstance(data, dict):
        return _from_columns(data)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(data)])
    raise InvalidInputError(
        f"The data is a {type(data).__module__}.{type(data).__qualname__}, which holds no Arrow rows.",
        kind="unknown_data",
        remedy="Give a pyarrow Table, RecordBatch or RecordBatchReader, a data frame that exports Arrow, Spark's, or a"
        " list of dicts.",
    )


def _columns_of(rows: list[Any]) -> dict[str, list[Any]]:
    """Of rows that all have the same names: one that lacks a name may be a mistake, and its column would be NULL."""
    first = rows[0] if rows else {}
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            raise _wrong_rows(f"Row {place} of the list is a {type(row).__qualname__}", "Give dicts: a value by name.")
        if row.keys() != first.keys():
            names = ", ".join(sorted(map(repr, row.keys() ^ first.keys())))
            raise _wrong_rows(f"Row {place} and row 0 do not both have {names}", "Say NULL, too: a name with None.")
    return {name: [row[name] for row in rows] for name in first}


def _from_columns(columns: dict[Any, Any]) -> pa.Table:
    for name in columns:
        if not isinstance(name, str):
            raise _wrong_rows(f"{name!r} is no name of a column", "Give text.")
    try:
        return pa.table(columns)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _wrong_rows(f"The values make no columns: {error}", "Give each column values of one type.") from error


def _wrong_rows(what: str, remedy: str) -> InvalidInputError:
    return InvalidInputError(f"{what}.", kind="unknown_data", remedy=remedy)
