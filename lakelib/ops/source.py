"""Rows as a caller hands them in: anything that speaks Arrow, seen as a schema and a stream of batches; or a Spark data
frame, which Spark's tasks write."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from lakelib.errors import InvalidInputError
from lakelib.model.table import TableInfo
from lakelib.ops.request import WriteRequest
from lakelib.progress import bar, counted
from lakelib.rows.unite import TargetColumns
from lakelib.storage.write_work import WriteWork, WrittenFiles, near_batches, write_batches

_BATCH_ROWS = 131_072
"""Tables are handed on in parts that are worth a thread's while."""


@runtime_checkable
class RowSource(Protocol):
    """`batches()` and `write()` may be called again only if `rereadable`."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def rereadable(self) -> bool: ...

    @property
    def size_bytes(self) -> int:
        """What the rows take in memory already, with all that is in the same buffers; 0 if they come as a stream."""

    def batches(self) -> Iterator[pa.RecordBatch]: ...

    def check(self, work: WriteWork) -> None:
        """Raises the InvalidInputError that the work would end in, as far as it can be known without writing."""

    def write(self, work: WriteWork, *, threads: int, distribution: str) -> WrittenFiles:
        """Does the work with rows that were checked. An error leaves no file behind."""

    def with_constants(self, constants: Mapping[str, pa.Scalar]) -> "RowSource":
        """The source with columns of one value each added: those that it has not already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowSource:
    """Rows that this process writes."""

    schema: pa.Schema
    data: pa.Table | pa.RecordBatchReader

    @property
    def rereadable(self) -> bool:
        return isinstance(self.data, pa.Table)

    @property
    def size_bytes(self) -> int:
        return self.data.get_total_buffer_size() if isinstance(self.data, pa.Table) else 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        if isinstance(self.data, pa.Table):
            yield from self.data.to_batches(max_chunksize=_BATCH_ROWS)
        else:
            yield from self.data

    def check(self, work: WriteWork) -> None:
        alignment = work.align(self.schema)
        if work.inside is not None and self.rereadable:
            rows = 0
            for batch in near_batches(self.batches()):
                work.inside.check(alignment.apply(batch, rows))
                rows += batch.num_rows

    def write(self, work: WriteWork, *, threads: int, distribution: str) -> WrittenFiles:
        if self.rereadable:
            work = replace(work, inside=None)
        rows = self.data.num_rows if isinstance(self.data, pa.Table) else None
        with bar("Writing rows", rows) as shown:
            batches = counted(self.batches(), shown, lambda batch: batch.num_rows)
            return write_batches(work, self.schema, batches, threads)

    def with_constants(self, constants: Mapping[str, pa.Scalar]) -> RowSource:
        present = {name.casefold() for name in self.schema.names}
        missing = {name: value for name, value in constants.items() if name.casefold() not in present}
        return _extended(self, missing) if missing else self


def open_source(data: Any) -> RowSource:
    """Takes an Arrow Table, RecordBatch or RecordBatchReader, any object with an Arrow stream or array interface
    (pandas, Polars, DuckDB …), a Spark DataFrame, a source of rows, a list of rows as dicts, or a dict of columns as
    lists. Raises InvalidInputError for anything else."""
    if _is_spark_frame(data):
        from lakelib.distribute.frames import open_frame  # not everybody has Spark

        return _with_columns(open_frame(data))
    if not isinstance(data, pa.Table) and isinstance(data, RowSource):
        return _with_columns(data)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not isinstance(data, pa.Table | pa.RecordBatchReader):
        data = _from_interface(data)
    return _with_columns(ArrowSource(schema=data.schema, data=data))


def target_columns(table: TableInfo, request: WriteRequest) -> TargetColumns:
    """What the table asks of each file whose rows it is to take."""
    roles = (*table.primary_key, *table.partition_by, *table.sequence_by)
    needed = (*roles, *(column for column in table.schema.columns if not column.nullable))
    return TargetColumns(
        columns=table.schema.columns,
        roles=frozenset(column.name.casefold() for column in needed),
        fixed=frozenset(column.name.casefold() for column in (*table.primary_key, *table.partition_by)),
        explicit_cast=request.explicit_cast,
        merge_schema=request.merge_schema,
    )


def judged_where_it_is(request: WriteRequest, data: Any) -> WriteRequest:
    """The request, whose gate judges rows that Spark has in Spark's session."""
    session = _session_of(data)
    if session is None:
        return request
    judging = None if request.judging is None else replace(request.judging, session=session)
    return replace(request, judging=judging, session=session)


def _session_of(data: Any) -> Any:
    """That of a data frame, or of a source that Spark's tasks read."""
    if _is_spark_frame(data):
        return data.sparkSession
    is_source = not isinstance(data, pa.Table) and isinstance(data, RowSource)
    return getattr(data, "session", None) if is_source else None


def _is_spark_frame(data: Any) -> bool:
    """Whether it is a DataFrame, classic or Spark Connect's; found out without importing pyspark."""
    return any(
        base.__module__.startswith("pyspark.sql.") and base.__name__ == "DataFrame" for base in type(data).__mro__
    )


def _with_columns(source: RowSource) -> RowSource:
    if len(source.schema) == 0:
        raise InvalidInputError(
            "The data has no columns.", kind="no_columns", remedy="Give at least the primary key columns."
        )
    return source


def _extended(source: ArrowSource, missing: Mapping[str, pa.Scalar]) -> ArrowSource:
    if isinstance(source.data, pa.Table):
        table = source.data
        for name, value in missing.items():
            table = table.append_column(name, pa.repeat(value, table.num_rows))
        return ArrowSource(schema=table.schema, data=table)
    schema = pa.schema([*source.schema, *(pa.field(name, value.type) for name, value in missing.items())])

    def extended() -> Iterator[pa.RecordBatch]:
        for batch in source.batches():
            added = [pa.repeat(value, batch.num_rows) for value in missing.values()]
            yield pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)

    return ArrowSource(schema=schema, data=pa.RecordBatchReader.from_batches(schema, extended()))


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
