"""An engine of this process that queries of people are carried out by. It is kept: who asks again waits no longer.

Its memory is bounded; what does not fit is laid down in a temporary folder. It reads the files below one folder, if
any, and else reaches no file and no network, and loads no extension: the text that it gets is none that people wrote,
and if it were, it could do no more than read those.
"""

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, LakeError, LostFileError
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
from lakelib.rows.align import retyped
from lakelib.rows.types import arrow_type
from lakelib.storage.vectors import Positions

Read = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
"""Gives the rows in these columns, in whatever order: all of them, or all that can make a difference."""

_SHARE_OF_MEMORY = 0.5
_WITH, _WITH_RECURSIVE = "WITH ", "WITH RECURSIVE "
_TOO_NARROW = re.compile(r"Overflow in (multiplication|addition|subtract) of DECIMAL\(18\)")
_ROW_BITS = 40
_PLACE = f"(file_row_number | (file_index::BIGINT << {_ROW_BITS}))"
"""Which row of which file: an anti join by one number takes less time than by two. What DuckDB asks of rows that can
fail for one, it asks after such a join."""


class _OverflowError(InvalidInputError):
    """A product has no room in the decimals that it was computed in."""


_SPOILING = ("limit_pushdown",)
"""A limit that is put below what is computed fails in DuckDB 1.5 behind a condition whose columns nobody else needs."""
_ASKING = ("join_filter_pushdown",)
"""What one side of a join knows of the other's keys is a Bloom filter, which streams are not asked by."""

_lock = Lock()
_engines: dict[tuple[int, str | None, bool], Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """What the query's text calls by a name: rows of files that DuckDB reads by itself, and a stream of others."""

    columns: tuple[tuple[str, str], ...]
    """Names and types."""
    paths: Sequence[str] = ()
    masked: Mapping[str, Positions] = field(default_factory=dict)
    """Files of which some rows are left out, and those."""
    read: Read | None = None

    @property
    def has_files(self) -> bool:
        return bool(self.paths or self.masked)


def run_query(
    queries: Sequence[str],
    columns: Sequence[tuple[str, str]],
    relations: Mapping[str, Relation],
    bound: Mapping[str, Any],
    *,
    folder: str | None,
    threads: int,
) -> Iterator[pa.RecordBatch]:
    """The rows of DuckDB's query in columns of these types, as a stream. Of several queries that say the same, the next
    one is taken where a product overflows in one. Raises InvalidInputError for values that it cannot be carried out
    with."""
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in columns])
    *tries, last = dict.fromkeys(queries)
    with _opened(folder, threads, relations) as cursor:
        for sql in tries:
            rows = _rows(cursor, sql, schema, relations, bound)
            try:
                first = next(rows, None)
            except _OverflowError:
                continue
            yield from (each for each in (first,) if each is not None)
            yield from rows
            return
        yield from _rows(cursor, last, schema, relations, bound)


def _rows(
    cursor: Any, sql: str, schema: pa.Schema, relations: Mapping[str, Relation], bound: Mapping[str, Any]
) -> Iterator[pa.RecordBatch]:
    failures: list[BaseException] = []
    with translated(_known_error, failures):
        named = _register(cursor, relations, failures)
        reader = cursor.execute(_over(sql, named), dict(bound)).to_arrow_reader(BATCH_ROWS)
    for batch in batches_of(reader, _known_error, failures):
        yield retyped(schema, batch)


def explain_query(
    sql: str, relations: Mapping[str, Relation], bound: Mapping[str, Any], *, folder: str | None, threads: int
) -> str:
    """How DuckDB would carry the query out. Nothing is read."""
    with _opened(folder, threads, relations) as cursor, translated(_known_error):
        named = _register(cursor, relations, [])
        return str(cursor.execute(f"EXPLAIN {_over(sql, named)}", dict(bound)).fetchall()[0][1])


@contextmanager
def _opened(folder: str | None, threads: int, relations: Mapping[str, Relation]) -> Iterator[Any]:
    streams = any(each.read is not None for each in relations.values())
    cursor = _engine(folder, threads, streams).cursor()
    try:
        yield cursor
    except BaseException:
        cursor.interrupt()  # else closing waits for a query that goes on
        raise
    finally:
        cursor.close()


def _engine(folder: str | None, threads: int, streams: bool) -> Any:
    """One for each folder, and one for queries over streams; a forked child has its own."""
    key = (os.getpid(), folder, streams)
    with _lock:
        if key not in _engines:
            _engines[key] = _start(folder, threads, streams)
        return _engines[key]


def _start(folder: str | None, threads: int, streams: bool) -> Any:
    spill = tempfile.mkdtemp(prefix="lakelib-sql-")
    atexit.register(shutil.rmtree, spill, ignore_errors=True)
    memory_bytes = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _SHARE_OF_MEMORY)
    try:
        connection = connect(memory_bytes, threads, spill, in_order=False)
    except ImportError:
        raise InvalidInputError(
            "SQL on the lake is carried out by DuckDB, which is not installed.",
            kind="duckdb_missing",
            remedy='pip install "lakelib[sql]"',
        ) from None
    if folder is not None:
        connection.execute(f"SET allowed_directories = [{_text(folder.rstrip('/') + '/')}]")
    connection.execute("SET parquet_metadata_cache = true")  # no file ever changes
    connection.execute(f"SET disabled_optimizers = '{','.join(_SPOILING + (_ASKING if streams else ()))}'")
    shut_off(connection)
    return connection


def _over(sql: str, named: Sequence[str]) -> str:
    """The query, with what stands for its relations before what it names itself."""
    if not named:
        return sql
    for word in (_WITH_RECURSIVE, _WITH):
        if sql.startswith(word):
            return f"{word}{', '.join(named)}, {sql.removeprefix(word)}"
    return f"{_WITH}{', '.join(named)} {sql}"


def _register(cursor: Any, relations: Mapping[str, Relation], failures: list[BaseException]) -> list[str]:
    """What streams is known to the cursor afterwards. Gives what else the query has to name."""
    named = []
    for name, relation in relations.items():
        parts = []
        if relation.paths:
            parts.append(_from_files(relation, relation.paths))
        if relation.masked:
            cursor.register(f"{name}_masked", _places(relation.masked.values()))
            seen = f" ANTI JOIN {quoted_name(f'{name}_masked')} AS masked ON {_PLACE} = masked.place"
            parts.append(_from_files(relation, list(relation.masked)) + seen)
        if relation.read is not None:
            streamed = f"{name}_rows" if parts else name
            cursor.register(streamed, _source(_naive_schema(relation), _watched(relation, failures)))
            chosen = ", ".join(quoted_name(column) for column, _ in relation.columns)
            parts.append(f"SELECT {chosen} FROM {quoted_name(streamed)}")
        if relation.has_files:
            named.append(f"{quoted_name(name)} AS NOT MATERIALIZED ({' UNION ALL '.join(parts)})")
    return named


def _source(schema: pa.Schema, read: Read) -> Any:
    from lakelib.local.arrow_source import ArrowSource  # it takes long to load

    return ArrowSource(schema, read)


def _from_files(relation: Relation, paths: Sequence[str]) -> str:
    chosen = ", ".join(_stored(column, kind) for column, kind in relation.columns)
    return f"SELECT {chosen} FROM read_parquet([{', '.join(map(_text, paths))}], hive_partitioning = false)"


def _places(masked: Iterable[Positions]) -> pa.Table:
    """The rows that are left out, of files in their order, as `_PLACE` tells of each row."""
    places = [positions | number << _ROW_BITS for number, positions in enumerate(masked)]
    return pa.table({"place": np.concatenate(places)})


def _watched(relation: Relation, failures: list[BaseException]) -> Read:
    """What goes wrong while it reads would be told as DuckDB's own error."""
    schema, read = _naive_schema(relation), relation.read
    assert read is not None

    def batches(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = pa.schema([schema.field(name) for name in names])
        try:
            for batch in read(names):
                yield retyped(wanted, batch.select(wanted.names))
        except BaseException as error:
            failures.append(error)
            raise

    return batches


def _stored(name: str, kind: str) -> str:
    """See `without_zone`."""
    column = quoted_name(name)
    return f"make_timestamp(epoch_us({column})) AS {column}" if kind == "timestamp" else column


def _naive_schema(relation: Relation) -> pa.Schema:
    return pa.schema([(name, without_zone(arrow_type(kind))) for name, kind in relation.columns])


def _known_error(error: Exception) -> LakeError:
    text, said = str(error), said_by_query(error)
    if said is not None:
        return _refused(said[1])
    if _TOO_NARROW.search(text):
        return _OverflowError(
            f"The query met a value that it cannot be carried out with: {first_line(error)}.",
            kind="sql_failed",
            remedy="Cast one of the factors to a decimal of 38 digits.",
        )
    if "No files found that match the pattern" in text or "No such file" in text:
        return LostFileError(
            f"A file that the catalog names is not there: {first_line(error)}", remedy="`lake doctor` tells of all."
        )
    if is_too_large(error):
        return InvalidInputError(
            "The query takes more memory than it may have, and more room than there is for temporary files.",
            kind="too_large",
            remedy="Ask of fewer rows or columns, or carry it out on Spark.",
        )
    if is_of_values(error):
        return _refused(first_line(error))
    return InvalidInputError(
        f"DuckDB refuses the query: {first_line(error)}", kind="sql_failed", remedy="Write it in another way."
    )


def _refused(what: str) -> InvalidInputError:
    return InvalidInputError(
        f"The query met a value that it cannot be carried out with: {what}.",
        kind="sql_failed",
        remedy="Leave the row out, or say in the query what becomes of such values.",
    )


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
