"""A database in this process for as long as one query is carried out: the views that it reads, and its rows.

Its memory is bounded; what does not fit is laid down in a temporary folder, and is gone with it. It reaches no file and
no network, and loads no extension.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any, ClassVar

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, LakeError, OnlySparkError
from lakelib.model.schema import Column
from lakelib.plan.local_query import LocalQuery
from lakelib.plan.local_types import INTERRUPTED, UNLIKE, WRONG
from lakelib.rows.align import retyped
from lakelib.rows.types import arrow_type, plain_schema
from lakelib.work.write import WriteWork, WrittenFiles, write_batches

_BATCH_ROWS = 65_536
_UTC = pa.timestamp("us", "UTC")
_NAIVE = pa.timestamp("us")
_INCOMING = "lakelib_incoming"
_REFUSED = ("ConversionException", "OutOfRangeException", "InvalidInputException")
"""What DuckDB raises for a value."""
_TOO_LARGE = ("Out of Memory Error", "failed to offload")


@contextmanager
def opened_database(memory_bytes: int, threads: int) -> Iterator["Database"]:
    """Raises OnlySparkError where DuckDB is not installed."""
    try:
        import duckdb
    except ImportError:
        raise OnlySparkError('a query: DuckDB is not installed (pip install "lakelib[local]")') from None
    with tempfile.TemporaryDirectory(prefix="lakelib-local-") as folder:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{memory_bytes}B",
            "temp_directory": folder,
            "threads": threads,
            "preserve_insertion_order": True,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        connection = duckdb.connect(config=settings)
        try:
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            yield Database(connection)
        finally:
            connection.close()


class Database:
    """For one thread at a time."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def load(self, view: str, columns: Iterable[Column], batches: Iterable[pa.RecordBatch]) -> None:
        """The rows as a table that is called as the view is, in their order."""
        schema = plain_schema(tuple(columns))
        incoming = _Incoming(batches)
        naive = pa.schema([each.with_type(_without_zone(each.type)) for each in schema])
        reader = pa.RecordBatchReader.from_batches(naive, (retyped(naive, batch) for batch in incoming.rows()))
        self._connection.register(_INCOMING, reader)
        name = view.replace('"', '""')
        try:
            with _translated(incoming):
                self._connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM {_INCOMING}')
        finally:
            self._connection.unregister(_INCOMING)

    def rows(self, query: LocalQuery) -> "QueryRows":
        """The query's rows. Raises OnlySparkError if it cannot be carried out over what was loaded."""
        with _translated():
            found = self._connection.execute(f"SELECT * FROM ({query.sql}) LIMIT 0").to_arrow_reader(1).schema
        schema = pa.schema(
            [
                pa.field(name, _checked_type(kind, given))
                for (name, kind), given in zip(query.columns, found.types, strict=True)
            ]
        )
        return QueryRows(schema=schema, database=self, sql=query.sql)

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        with _translated():
            reader = self._connection.execute(sql).to_arrow_reader(_BATCH_ROWS)
        while True:
            with _translated():
                batch = next(reader, None)
            if batch is None:
                return
            yield batch


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRows:
    """The rows of a query as a table's writes take them."""

    schema: pa.Schema
    database: Database
    sql: str
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)
    session: ClassVar[Any] = None

    @property
    def rereadable(self) -> bool:
        return True

    @property
    def size_bytes(self) -> int:
        """Nothing but what the database holds is in memory."""
        return 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self.database.batches(self.sql):
            added = [pa.repeat(value, batch.num_rows) for value in self.constants.values()]
            yield retyped(self.schema, pa.RecordBatch.from_arrays([*batch.columns, *added], names=self.schema.names))

    def check(self, work: WriteWork) -> None:
        """Values are seen when the query is carried out."""
        work.align(self.schema)

    def write(self, work: WriteWork, *, threads: int, distribution: str) -> WrittenFiles:
        return write_batches(work, work.align(self.schema), self.batches(), threads)

    def with_constants(self, constants: Mapping[str, pa.Scalar]) -> "QueryRows":
        """The source with columns of one value each added: those that it has not already."""
        present = {name.casefold() for name in self.schema.names}
        missing = {name: value for name, value in constants.items() if name.casefold() not in present}
        added = [pa.field(name, value.type) for name, value in missing.items()]
        return replace(self, schema=pa.schema([*self.schema, *added]), constants={**self.constants, **missing})


class _Incoming:
    """Batches on their way into the database, which would tell of their errors as of its own."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.error: BaseException | None = None

    def rows(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._batches
        except BaseException as error:
            self.error = error
            raise


@contextmanager
def _translated(incoming: _Incoming | None = None) -> Iterator[None]:
    """DuckDB's errors as lakelib's."""
    import duckdb

    try:
        yield
    except RuntimeError as error:
        if str(error) == INTERRUPTED:
            raise KeyboardInterrupt from None
        raise
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if incoming is not None and incoming.error is not None:
            raise incoming.error from None
        known = _known_error(error)
        if known is None:
            raise
        raise known from error


def _known_error(error: Exception) -> LakeError | None:
    text = str(error)
    for sign in (UNLIKE, WRONG):
        _, is_marked, what = text.partition(sign)
        if is_marked and sign == UNLIKE:
            return OnlySparkError(what.splitlines()[0])
        if is_marked:
            return _refused(what.splitlines()[0])
    if any(sign in text for sign in _TOO_LARGE):
        return OnlySparkError("more memory than local.memory_bytes, and room for its temporary files")
    kind = type(error).__name__
    if kind in ("BinderException", "ParserException", "CatalogException", "NotImplementedException"):
        return OnlySparkError(f"a query that DuckDB refuses: {text.splitlines()[0]}")
    is_refused = kind in _REFUSED or text.startswith(("Conversion Error", "Out of Range Error", "Invalid Input Error"))
    return _refused(text.splitlines()[0]) if is_refused else None


def _refused(what: str) -> InvalidInputError:
    return InvalidInputError(
        f"The transform met a value that it cannot be carried out with: {what}.",
        kind="transform_failed",
        remedy="Correct the row, or have the query say what becomes of such values.",
    )


def _checked_type(kind: str, given: pa.DataType) -> pa.DataType:
    """The Arrow type of a column of Spark's type. What is nested is only handed on; zones in it have another name."""
    wanted = arrow_type(kind)
    if not pa.types.is_nested(wanted) and _without_zone(wanted) != given:
        raise OnlySparkError(f"a column of {kind}, which DuckDB takes for {given}")
    return wanted


def _without_zone(kind: pa.DataType) -> pa.DataType:
    return _NAIVE if kind == _UTC else kind
