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
from lakelib.local.connection import (
    BATCH_ROWS,
    batches_of,
    connect,
    first_line,
    is_of_values,
    is_too_large,
    quoted_name,
    said_by_query,
    shut_off,
    translated,
    without_zone,
)
from lakelib.model.schema import Column
from lakelib.plan.local_query import LocalQuery
from lakelib.plan.local_types import UNLIKE
from lakelib.rows.align import retyped
from lakelib.rows.types import arrow_type, plain_schema
from lakelib.work.write import WriteWork, WrittenFiles, write_batches

_INCOMING = "lakelib_incoming"


@contextmanager
def opened_database(memory_bytes: int, threads: int) -> Iterator["Database"]:
    """Raises OnlySparkError where DuckDB is not installed."""
    with tempfile.TemporaryDirectory(prefix="lakelib-local-") as folder:
        try:
            connection = connect(memory_bytes, threads, folder, in_order=True)
        except ImportError:
            raise OnlySparkError('a query: DuckDB is not installed (pip install "lakelib[local]")') from None
        try:
            shut_off(connection)
            yield Database(connection)
        except BaseException:
            connection.interrupt()  # else closing waits for a query that goes on
            raise
        finally:
            connection.close()


class Database:
    """For one thread at a time."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def load(self, view: str, columns: Iterable[Column], batches: Iterable[pa.RecordBatch]) -> None:
        """The rows as a table that is called as the view is, in their order."""
        schema = plain_schema(tuple(columns))
        failures: list[BaseException] = []
        incoming = _watched(batches, failures)
        naive = pa.schema([each.with_type(without_zone(each.type)) for each in schema])
        reader = pa.RecordBatchReader.from_batches(naive, (retyped(naive, batch) for batch in incoming))
        self._connection.register(_INCOMING, reader)
        try:
            with translated(_known_error, failures):
                self._connection.execute(f"CREATE OR REPLACE TABLE {quoted_name(view)} AS SELECT * FROM {_INCOMING}")
        finally:
            self._connection.unregister(_INCOMING)

    def rows(self, query: LocalQuery) -> "QueryRows":
        """The query's rows. Raises OnlySparkError if it cannot be carried out over what was loaded."""
        with translated(_known_error):
            found = self._connection.execute(f"SELECT * FROM ({query.sql}) LIMIT 0").to_arrow_reader(1).schema
        schema = pa.schema(
            [
                pa.field(name, _checked_type(kind, given))
                for (name, kind), given in zip(query.columns, found.types, strict=True)
            ]
        )
        return QueryRows(schema=schema, database=self, sql=query.sql)

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        with translated(_known_error):
            reader = self._connection.execute(sql).to_arrow_reader(BATCH_ROWS)
        yield from batches_of(reader, _known_error)


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


def _watched(batches: Iterable[pa.RecordBatch], failures: list[BaseException]) -> Iterator[pa.RecordBatch]:
    """On their way into the database, which would tell of their errors as of its own."""
    try:
        yield from batches
    except BaseException as error:
        failures.append(error)
        raise


def _known_error(error: Exception) -> LakeError | None:
    said = said_by_query(error)
    if said is not None:
        sign, what = said
        return OnlySparkError(what) if sign == UNLIKE else _refused(what)
    if is_too_large(error):
        return OnlySparkError("more memory than local.memory_bytes, and room for its temporary files")
    if type(error).__name__ in ("BinderException", "ParserException", "CatalogException", "NotImplementedException"):
        return OnlySparkError(f"a query that DuckDB refuses: {first_line(error)}")
    return _refused(first_line(error)) if is_of_values(error) else None


def _refused(what: str) -> InvalidInputError:
    return InvalidInputError(
        f"The transform met a value that it cannot be carried out with: {what}.",
        kind="transform_failed",
        remedy="Correct the row, or have the query say what becomes of such values.",
    )


def _checked_type(kind: str, given: pa.DataType) -> pa.DataType:
    """The Arrow type of a column of Spark's type. What is nested is only handed on; zones in it have another name."""
    wanted = arrow_type(kind)
    if not pa.types.is_nested(wanted) and without_zone(wanted) != given:
        raise OnlySparkError(f"a column of {kind}, which DuckDB takes for {given}")
    return wanted
