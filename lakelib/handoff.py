"""How rows are handed to other libraries: as an Arrow stream, and as Polars and DuckDB have them. What they are made of
is imported when it is asked for."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from lakelib.errors import InvalidInputError
from lakelib.model.predicate import Predicate
from lakelib.model.schema import TableSchema
from lakelib.plan.polars_where import where_of

Read = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
"""Gives the rows in these columns."""


class Rows(Protocol):
    """What a scan, changes and a result have in common."""

    @property
    def schema(self) -> pa.Schema: ...
    def to_arrow(self) -> pa.Table: ...
    def to_batches(self) -> Iterator[pa.RecordBatch]: ...


class NarrowRows(Rows, Protocol):
    """Rows of which only some are read, if that is asked for."""

    def narrowed(self, columns: Sequence[str], where: Predicate | None) -> Rows: ...


def to_reader(rows: Rows) -> pa.RecordBatchReader:
    """The rows as a stream. Nothing is read before the first batch is asked for."""
    reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
    # A reader made of Python batches ignores close(). One that is imported frees what it was imported from.
    return pa.RecordBatchReader.from_stream(reader)


def to_capsule(rows: Rows, requested_schema: object) -> object:
    """Arrow's C stream, in the types that its consumer would rather have, if those are asked for and hold each value.
    Raises InvalidInputError for other columns."""
    if requested_schema is None:
        return to_reader(rows).__arrow_c_stream__()
    wanted = pa.Schema._import_from_c_capsule(requested_schema)
    if wanted.names != rows.schema.names:
        raise InvalidInputError(
            f"The stream has the columns {', '.join(rows.schema.names)}, and not {', '.join(wanted.names)}.",
            kind="invalid_columns",
            remedy="Ask for other types of them only: columns=[…] says which are read.",
        )
    return to_reader(rows).cast(wanted).__arrow_c_stream__()


def to_polars(rows: Rows) -> Any:
    """A Polars DataFrame. Raises InvalidInputError where Polars is not installed."""
    return _polars().from_arrow(rows.to_arrow())


def to_lazy_polars(rows: NarrowRows, schema: TableSchema | None) -> Any:
    """A LazyFrame that reads the columns and rows that are asked of it. `schema` says what may be asked of rows before
    they are read; None: nothing."""
    polars = _polars()

    def read(names: list[str] | None, predicate: Any, most: int | None, batch_rows: int | None) -> Iterator[Any]:
        asked = None if names is None else [*dict.fromkeys([*names, *_roots(predicate)])]
        # The first rows are those of all, whatever is asked of them.
        where = None if predicate is None or most is not None or schema is None else where_of(predicate, schema)
        narrow = rows.narrowed(rows.schema.names if asked is None else asked or rows.schema.names[:1], where)
        for batch in narrow.to_batches():
            frame = polars.from_arrow(batch)
            if most is not None:
                frame = frame.head(most)
                most -= frame.height
            if predicate is not None:
                frame = frame.filter(predicate)
            yield frame if names is None else frame.select(names)
            if most == 0:
                return

    shape = polars.from_arrow(rows.schema.empty_table()).schema
    return polars.io.plugins.register_io_source(read, schema=shape)


def to_duckdb(schema: pa.Schema, read: Read, connection: Any) -> Any:
    """A relation of DuckDB's. Raises InvalidInputError where DuckDB is not installed."""
    from lakelib.local.arrow_source import relation_of  # it loads what only DuckDB needs

    return relation_of(schema, read, connection)


def _roots(predicate: Any) -> list[str]:
    return [] if predicate is None else list(predicate.meta.root_names())


def _polars() -> Any:
    try:
        import polars
    except ImportError:
        raise InvalidInputError(
            "Polars is not installed.", kind="polars_missing", remedy="pip install polars"
        ) from None
    return polars
