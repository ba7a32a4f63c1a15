"""Storage. Writes the Parquet files of tables, with the bounds of their columns."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, LakeError
from lakelib.model.files import ColumnBounds
from lakelib.model.options import TableOptions
from lakelib.model.schema import Column, TableSchema
from lakelib.model.sortable import is_sortable
from lakelib.rows.buffers import takes_more
from lakelib.storage import bloom
from lakelib.storage.encodings import LEVELED, choose_dictionaries, find_incompressible, is_fixed
from lakelib.storage.failures import WRITE_FAILURES, translate_writing
from lakelib.storage.filesystem import Storage
from lakelib.storage.footers import (
    FLOATS,
    NAN_COLUMNS,
    FloatBounds,
    arrange_leaves,
    file_bounds,
    has_path_of_its_own,
    nested_columns,
    paths_of,
)

FIELD_ID = b"PARQUET:field_id"
"""Key in an Arrow field's metadata: the Parquet field id, which is the column's id in the table."""

_LEAST_PACKED_ROWS = 1024

_LEAST_COLUMN_BYTES = 1024
"""Where columns take less than this on average they are not compressed."""

_INTEGERS = frozenset(("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz"))
"""The types that Parquet keeps as integers."""

_MOST_PLANS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenParquet:
    path: str
    row_count: int
    size_bytes: int
    bounds: ColumnBounds


def write_file(
    storage: Storage,
    path: str,
    tables: Sequence[pa.Table],
    schema: pa.Schema,
    columns: TableSchema,
    options: TableOptions,
    lookup_columns: Sequence[Column] = (),
) -> WrittenParquet:
    """Writes tables of one schema as one durable file.

    `columns` are the table's columns that the schema holds (by name; hidden columns are not among them): the file
    carries their ids and has its own names for them, the result their bounds. `lookup_columns` are those of them that
    rows are sorted by, in that order, and looked up by. If anything fails, the file is deleted again and the error
    raised.
    """
    nan_columns = frozenset().union(*(columns_with_nan(table, columns.columns) for table in tables))
    writer = FileWriter(storage, path, schema, columns, options, lookup_columns, nan_columns)
    try:
        for table in _regrouped(tables, schema, options.row_group_rows):
            writer.write(table)
        return writer.finish()
    except BaseException:
        writer.discard()
        raise


def write_plain_file(path: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Writes a local file that is no table's, for other programs to read, and says how many rows it has."""
    row_count = 0
    try:
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
                row_count += batch.num_rows
    except WRITE_FAILURES as error:
        raise translate_writing(error, path) from error
    return row_count


def plain_bytes(table: pa.Table) -> bytes:
    """A small file of Parquet that is no table's, whole."""
    stream = pa.BufferOutputStream()
    pq.write_table(table, stream, compression="zstd")
    content: bytes = stream.getvalue().to_pybytes()
    return content


class FileWriter:
    """A file in the making: `write` row groups, then `finish`, or `discard` what came of it.

    Nothing is written before the first rows: they decide which columns get a dictionary, and which have statistics.
    Those leave NaN out, and readers that believe them do not find its rows: a column with NaN has none.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: pa.Schema,
        columns: TableSchema,
        options: TableOptions,
        lookup_columns: Sequence[Column],
        nan_columns: Collection[str] = (),
    ) -> None:
        """`nan_columns` are columns, as the table calls them, in which NaN is to be expected."""
        self._storage = storage
        self._path = path
        self._uri = storage.uri_of(path)
        self._plan = _plan_file(schema, columns)
        self._options = options
        self._lookup_columns = tuple(self._plan.own[column.name] for column in lookup_columns)
        self._expected_nan = frozenset(self._plan.own[name].name for name in nan_columns)
        self._nan_columns: set[str] = set()
        self._untold: dict[str, FloatBounds] = {}
        """What is known of columns without statistics."""
        self._metadata: list[pq.FileMetaData] = []
        self._stream: pa.NativeFile = storage.open_output(self._uri)
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> bool:
        """Each table ends a row group; one that is longer than the options allow becomes several. False: it is not
        written, for it has NaN in a column that has statistics, and belongs in another file."""
        try:
            named = table if self._plan.has_own_names else table.rename_columns(self._plan.schema.names)
            with_nan = {name for name in self._plan.floats if _has_nan(named.column(name))}
            if self._writer is None:
                self._untold = {name: FloatBounds() for name in self._plan.floats & (self._expected_nan | with_nan)}
                self._writer = self._open_writer(named)
            if not with_nan <= self._untold.keys():
                return False
            self._nan_columns |= with_nan
            for name, bounds in self._untold.items():
                bounds.add(named.column(name))
            self._writer.write_table(named, self._options.row_group_rows)
            return True
        except WRITE_FAILURES as error:
            raise translate_writing(error, self._uri) from error

    def finish(self) -> WrittenParquet:
        try:
            writer = self._writer or self._open_writer(self._plan.schema.empty_table())
            writer.add_key_value_metadata({NAN_COLUMNS: json.dumps(sorted(self._nan_columns)).encode()})
            writer.close()
            size_bytes = self._stream.tell()
            self._stream.close()
        except WRITE_FAILURES as error:
            raise translate_writing(error, self._uri) from error
        self._storage.make_durable(self._uri)
        metadata = self._metadata[0]
        return WrittenParquet(
            path=self._path,
            row_count=metadata.num_rows,
            size_bytes=size_bytes,
            bounds=file_bounds(metadata, self._plan.leaves, self._plan.bounded, self._nan_columns, self._untold),
        )

    def discard(self) -> None:
        """Closes, which may write the rest of a footer, and deletes what came of it. Raises nothing of its own."""
        with suppress(Exception):  # after a failed write the writer's own state decides what it raises
            if self._writer is not None:
                self._writer.close()
        with suppress(OSError, ValueError):
            self._stream.close()
        with suppress(LakeError):
            self._storage.delete_files((self._path,))

    def _open_writer(self, first: pa.Table) -> pq.ParquetWriter:
        dictionary_columns = choose_dictionaries(first, self._plan.by_name, self._options.row_group_rows)
        encodings = self._choose_encodings(first.num_rows, dictionary_columns)
        compression = self._choose_compression(first, dictionary_columns, encodings)
        leveled = [path for path, codec in compression.items() if codec in LEVELED]
        return pq.ParquetWriter(
            self._stream,
            self._plan.schema,
            compression=compression,
            compression_level=dict.fromkeys(leveled, self._options.compression_level) or None,
            write_page_checksum=True,
            store_schema=False,  # Parquet says it all, and a reader takes longer to parse it twice
            use_dictionary=dictionary_columns,
            column_encoding=encodings,
            bloom_filter_options=self._choose_bloom_filters(first.num_rows, dictionary_columns),
            write_statistics=self._choose_statistics(),
            metadata_collector=self._metadata,
        )

    def _choose_compression(
        self, first: pa.Table, dictionary_columns: Sequence[str], encodings: Mapping[str, str]
    ) -> dict[str, str]:
        """The codec of each Parquet column, by path. A few bytes become no fewer, and to unpack them takes a reader
        longer than all else that it does."""
        codec = self._options.compression
        if not takes_more(first, _LEAST_COLUMN_BYTES * first.num_columns):
            return dict.fromkeys(self._plan.paths, "none")
        chosen = dict.fromkeys(self._plan.paths, codec)
        if codec in LEVELED:
            rows = first.select([name for name in first.column_names if name in self._plan.fixed])
            level = self._options.compression_level
            full = find_incompressible(rows, dictionary_columns, encodings, codec, level)
            chosen |= dict.fromkeys(full, "none")
        return chosen

    def _choose_encodings(self, row_count: int, dictionary_columns: Sequence[str]) -> dict[str, str]:
        """Integers as their differences, in as few bits as those take: there is less to unpack. Of a few rows only
        those that rows are sorted by: others take more room so."""
        sorted_by = {column.name for column in self._lookup_columns[:1]}
        chosen = self._plan.integers if row_count >= _LEAST_PACKED_ROWS else self._plan.integers & sorted_by
        return dict.fromkeys(sorted(chosen.difference(dictionary_columns)), "DELTA_BINARY_PACKED")

    def _choose_bloom_filters(self, first_rows: int, dictionary_columns: Sequence[str]) -> dict[str, dict[str, Any]]:
        """A filter for each lookup column whose values hardly repeat: by others nobody finds a single row."""
        if first_rows < bloom.LEAST_ROWS:
            return {}
        options = bloom.bloom_options(min(first_rows, self._options.row_group_rows))
        return {
            column.name: options
            for column in self._lookup_columns
            if bloom.is_suited(column.type)
            and column.name not in dictionary_columns
            and column.name in self._plan.by_name
        }

    def _choose_statistics(self) -> bool | list[str]:
        """By path. Whether floats within others, and in columns that nobody sees, hold NaN is not looked up."""
        left_out = self._plan.unseen_floats | self._untold.keys()
        return [path for path in self._plan.paths if path not in left_out] if left_out else True


def columns_with_nan(table: pa.Table, columns: Sequence[Column]) -> set[str]:
    """The names of the columns that hold a NaN."""
    return {column.name for column in columns if column.type in FLOATS and _has_nan(table.column(column.name))}


def _has_nan(values: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.is_nan(values)).as_py())


@dataclass(frozen=True, slots=True, kw_only=True)
class _FilePlan:
    """What files of one schema share."""

    schema: pa.Schema
    """With the ids of the table's columns, and the names that files have for them."""
    has_own_names: bool
    """Whether those are the names that rows come with."""
    own: Mapping[str, Column]
    """The table's columns, as files name them, by the names that it has for them."""
    leaves: Mapping[str, range]
    """Where each top-level column's values are among the file's Parquet columns."""
    by_name: frozenset[str]
    """The columns that pyarrow can be told of by their names."""
    integers: frozenset[str]
    """Those of them that Parquet keeps as integers."""
    fixed: frozenset[str]
    """Those whose values are of one size, whatever they are."""
    floats: frozenset[str]
    unseen_floats: frozenset[str]
    """The paths of floats that are no columns of the table, but within one, or nobody's."""
    paths: tuple[str, ...]
    """Of all Parquet columns, as pyarrow names them."""
    bounded: tuple[Column, ...]
    """The table's columns that have bounds."""


@lru_cache(maxsize=_MOST_PLANS)
def _plan_file(schema: pa.Schema, columns: TableSchema) -> _FilePlan:
    """A writer of one file mostly writes more of the same."""
    own = {column.name: column.in_file for column in columns.columns}
    inside = pa.schema([_field_inside(field, own.get(field.name)) for field in schema])
    leaves, nested = arrange_leaves(inside), nested_columns(inside)
    floats = frozenset(column.name for column in own.values() if column.type in FLOATS)
    by_name = frozenset(name for name in leaves if name not in nested and has_path_of_its_own(name, nested))
    paths = [each for field in inside for each in paths_of(field)]
    return _FilePlan(
        schema=inside,
        has_own_names=inside.names == schema.names,
        own=own,
        leaves=leaves,
        by_name=by_name,
        integers=frozenset(
            column.name for column in own.values() if column.type in _INTEGERS and column.name in by_name
        ),
        fixed=frozenset(name for name in by_name if is_fixed(inside.field(name).type)),
        floats=floats,
        unseen_floats=frozenset(
            path for path, kind in paths if pa.types.is_floating(kind) and not (path in floats and path in leaves)
        ),
        paths=tuple(path for path, _ in paths),
        bounded=tuple(column for column in own.values() if column.name in leaves and is_sortable(column.type)),
    )


def _field_inside(field: pa.Field, own: Column | None) -> pa.Field:
    if own is None:
        return field.remove_metadata()
    return field.with_name(own.name).with_metadata({FIELD_ID: str(own.id)})


def _regrouped(tables: Iterable[pa.Table], schema: pa.Schema, row_group_rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of whole row groups, but for the last: each table that is written ends a row group."""
    pending: list[pa.Table] = []
    pending_rows = 0
    for table in tables:
        if not table.schema.equals(schema):
            raise InvalidInputError(f"Cannot write rows of {table.schema} to a file of {schema}.", kind="unwritable")
        pending.append(table)
        pending_rows += table.num_rows
        if pending_rows >= row_group_rows:
            collected = pa.concat_tables(pending)
            whole_rows = pending_rows - pending_rows % row_group_rows
            yield collected.slice(0, whole_rows)
            pending = [collected.slice(whole_rows)]
            pending_rows -= whole_rows
    if pending_rows:
        yield pa.concat_tables(pending)
