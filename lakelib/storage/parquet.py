"""Storage. Writes and reads the Parquet files of tables, with the bounds of their columns."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelib.errors import CorruptionError, InvalidInputError, LakeError
from lakelib.model.files import ColumnBounds
from lakelib.model.options import TableOptions
from lakelib.model.schema import Column
from lakelib.plan.prune import Bounds
from lakelib.plan.scan import SMALL_FILE_BYTES
from lakelib.rows.buffers import takes_more
from lakelib.storage import bloom
from lakelib.storage.failures import translated_reading, translated_writing
from lakelib.storage.filesystem import Storage
from lakelib.storage.footers import (
    CACHE_BYTES,
    NAN_COLUMNS,
    Footer,
    FooterCache,
    Layout,
    arrange_leaves,
    file_bounds,
    has_path_of_its_own,
    is_float,
    nested_columns,
    parse_footer,
    row_group_bounds,
)

FIELD_ID = b"PARQUET:field_id"
"""Key in an Arrow field's metadata: the Parquet field id, which is the column's id in the table."""

_SAMPLE_ROWS = 1024
_LONG_ROW_BYTES = 4096
_SAMPLE_BYTES = _SAMPLE_ROWS * _LONG_ROW_BYTES
"""Of longer rows the sample has fewer, lest it be a second copy of all."""

_PAYS_BELOW = 0.5
"""A dictionary pays when fewer than this share of sampled values are distinct."""

_LEAST_COLUMN_BYTES = 1024
"""Where columns take less than this on average they are not compressed."""

_LEVELED = ("zstd", "gzip")

_INTEGERS = frozenset(("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz"))
"""The types that Parquet keeps as integers."""

_MOST_REQUESTS = 32
"""So many small files of a distant store are fetched at a time: nearly all of it is waiting."""

_MOST_LAYOUTS = 64

_footers = FooterCache(CACHE_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenParquet:
    path: str
    row_count: int
    size_bytes: int
    bounds: ColumnBounds


def write_file(
    storage: Storage,
    location: str,
    path: str,
    batches: Iterable[pa.Table],
    schema: pa.Schema,
    columns: Sequence[Column],
    options: TableOptions,
    lookup_columns: Sequence[Column] = (),
) -> WrittenParquet:
    """Writes tables of one schema as one durable file, a row group in memory at a time.

    `columns` are the table's columns that the schema holds (by name; hidden columns are not among them): the file
    carries their ids, the result their bounds. `lookup_columns` are those of them that rows are sorted by, in that
    order, and looked up by. If anything fails, the file is deleted again and the error raised.
    """
    writer = FileWriter(storage.at(location), path, schema, columns, options, lookup_columns)
    try:
        for table in _regrouped(batches, schema, options.row_group_rows):
            writer.write(table)
        return writer.finish()
    except BaseException:
        writer.discard()
        raise


def write_plain_file(path: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Writes a local file that is no table's, for other programs to read, and says how many rows it has."""
    row_count = 0
    with translated_writing(path), pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            row_count += batch.num_rows
    return row_count


def open_file(storage: Storage, location: str, path: str, size_bytes: int | None = None) -> "ParquetReader":
    """A file that the catalog names. Raises CorruptionError if it is not there, is not of the size given, or is not
    Parquet.

    The footers of recently opened files are kept: opening such a file again reads nothing, not even whether it exists.
    """
    return _open_below(storage.at(location), path, size_bytes)


def open_files(storage: Storage, location: str, files: Sequence[tuple[str, int]]) -> "list[ParquetReader]":
    """As `open_file`, of many files given by path and size: those of a distant store are asked for all at a time."""

    target = storage.at(location)

    def open_one(file: tuple[str, int]) -> ParquetReader:
        reader = _open_below(target, *file)
        reader.fetch()
        return reader

    if target.is_local or len(files) == 1:
        return [open_one(file) for file in files]
    with ThreadPoolExecutor(min(len(files), _MOST_REQUESTS), thread_name_prefix="lakelib-open") as pool:
        return list(pool.map(open_one, files))


def _open_below(target: Storage, path: str, size_bytes: int | None) -> "ParquetReader":
    uri = target.uri_of(path)
    footer = _footers.find((target, uri))
    if footer is not None:
        return ParquetReader(target, path, footer, None, size_bytes)
    stream = _open_stream(target, path, size_bytes)
    with translated_reading(uri):
        rows = _open_rows(target, stream)
        footer = parse_footer(rows.metadata)
    _footers.keep((target, uri), footer)
    return ParquetReader(target, path, footer, stream, size_bytes, rows)


def _open_rows(
    storage: Storage, stream: pa.NativeFile, metadata: pq.FileMetaData | None = None, coded_names: Sequence[str] = ()
) -> Any:
    """Without the ParquetFile around it: to make one takes as long as to open a small file, and its many parts are what
    the garbage collector would look through again and again."""
    rows = pq.ParquetReader()
    rows.open(
        stream,
        metadata=metadata,
        pre_buffer=_is_far(storage, stream),
        page_checksum_verification=True,
        read_dictionary=list(coded_names),
    )
    return rows


def _is_far(storage: Storage, stream: pa.NativeFile) -> bool:
    """Whether each read waits for the store, so that the bytes of several columns are better asked for together."""
    return not storage.is_local and not isinstance(stream, pa.BufferReader)


def _open_stream(storage: Storage, path: str, size_bytes: int | None) -> pa.NativeFile:
    """A small file is read as a whole, once. The store tells the size of a file that it opens: comparing it asks the
    store for nothing more."""
    stream = storage.open_input(path, named_by_catalog=True)
    uri = storage.uri_of(path)
    with translated_reading(uri):
        found_bytes = stream.size()
        if size_bytes == found_bytes <= SMALL_FILE_BYTES:
            with stream:
                return pa.BufferReader(stream.read_buffer(found_bytes))
    if size_bytes is not None and found_bytes != size_bytes:
        stream.close()
        raise CorruptionError(
            f"The file {uri} is not the Parquet file it should be: it has {found_bytes:,} bytes, and the catalog knows"
            f" it with {size_bytes:,}.",
            kind="unreadable_file",
            remedy="Restore it from a backup or a bucket version.",
        )
    return stream


def open_anew(storage: Storage, path: str, size_bytes: int | None = None) -> "ParquetReader":
    """As `open_file`, of what is stored now: no footer is taken from those that are kept, and none is added."""
    stream = _open_stream(storage, path, size_bytes)
    with translated_reading(storage.uri_of(path)):
        footer = parse_footer(pq.read_metadata(stream))
    return ParquetReader(storage, path, footer, stream, size_bytes)


class ParquetReader:
    """One immutable Parquet file. For one thread at a time; closes itself when it is forgotten."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        footer: Footer,
        stream: pa.NativeFile | None,
        size_bytes: int | None,
        rows: Any = None,
    ) -> None:
        self.uri = storage.uri_of(path)
        self.schema = footer.layout.schema
        self._storage = storage
        self._path = path
        self._footer = footer
        self._stream = stream
        self._size_bytes = size_bytes
        self._rows = rows
        self._coded_names: tuple[str, ...] = ()

    @property
    def row_count(self) -> int:
        count: int = self._footer.metadata.num_rows
        return count

    @property
    def row_group_count(self) -> int:
        count: int = self._footer.metadata.num_row_groups
        return count

    def row_group_bounds(self, row_group: int, column_name: str, type_text: str) -> Bounds:
        """The bounds of one column in one row group; `type_text` is the column's type in this file, or a wider one."""
        return row_group_bounds(self._footer, row_group, column_name, type_text)

    def may_hold(self, row_group: int, column_name: str, values: pa.Array) -> bool:
        """Whether a row group may hold one of the values, of the type that the column has in this file."""
        leaves = self._leaves_of(column_name)
        chunk = self._footer.metadata.row_group(row_group).column(leaves.start)
        if chunk.bloom_filter_offset is None or chunk.bloom_filter_length is None:
            return True
        with translated_reading(self.uri):
            stored = self._open_stream().read_at(chunk.bloom_filter_length, chunk.bloom_filter_offset)
        return bloom.may_hold(stored, values)

    def has_codes(self, column_name: str) -> bool:
        """Whether the file keeps the column as codes of a dictionary, and they can be asked for."""
        if not self.row_group_count or not has_path_of_its_own(column_name, self._footer.layout.nested):
            return False
        leaves = self._leaves_of(column_name)
        return bool(self._footer.metadata.row_group(0).column(leaves.start).has_dictionary_page)

    def keep_codes(self, column_names: Sequence[str]) -> None:
        """From now on these columns of text or bytes come as Arrow dictionary arrays: codes are cheaper to filter."""
        if self._coded_names != tuple(column_names):
            self._coded_names = tuple(column_names)
            self._rows = None

    def fetch(self) -> None:
        """Asks the store for the file now; a small one is read, a large one is found."""
        self._open_stream()

    def row_groups_matching(self, test: Callable[[int], bool]) -> list[int]:
        """The row groups, in order, that pass a test of their number."""
        return [row_group for row_group in range(self.row_group_count) if test(row_group)]

    def read_row_groups(self, row_groups: Sequence[int], columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of some row groups, in the order given, with the columns named, in the order named; None is all."""
        names = self.schema.names if columns is None else list(columns)
        leaves = self.leaves_of(names)
        with translated_reading(self.uri):
            table = self._open().read_row_groups(list(row_groups), column_indices=leaves, use_threads=False)
            return table if table.column_names == names else table.select(names)

    def row_group_bytes(self, row_group: int) -> tuple[int, int]:
        """How many rows a row group has, and what they take before they are compressed."""
        metadata = self._footer.metadata.row_group(row_group)
        return metadata.num_rows, metadata.total_byte_size

    def read_in_steps(self, row_group: int, columns: Sequence[str], step_rows: int) -> Iterator[pa.Table]:
        """The rows of a row group, at most so many at a time, with the columns named, in the order named."""
        if self._footer.metadata.row_group(row_group).num_rows <= step_rows:
            yield self.read_row_groups([row_group], columns)
            return
        leaves = self.leaves_of(columns)
        with translated_reading(self.uri):
            batches = self._open().iter_batches(
                step_rows, row_groups=[row_group], column_indices=leaves, use_threads=False
            )
            for batch in batches:
                yield pa.Table.from_batches([batch]).select(list(columns))

    def read_all(self, columns: Sequence[str] | None = None) -> pa.Table:
        return self.read_row_groups(range(self.row_group_count), columns)

    def leaves_of(self, columns: Sequence[str]) -> list[int]:
        """Where the values of these columns are, in this file and in each of its schema."""
        return [leaf for name in columns for leaf in self._leaves_of(name)]

    def read_leaves(self, leaves: list[int]) -> pa.Table:
        """All rows, with the columns that have their values there, in the file's order."""
        with translated_reading(self.uri):
            return self._open().read_row_groups(
                list(range(self.row_group_count)), column_indices=leaves, use_threads=False
            )

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = self._rows = None

    def __enter__(self) -> "ParquetReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _leaves_of(self, name: str) -> range:
        leaves = self._footer.layout.leaves.get(name)
        if leaves is None:
            raise CorruptionError(
                f"The file {self.uri} has no column {name!r}; the catalog says that it has.",
                kind="missing_column",
                remedy="Restore the file from a backup or a bucket version.",
            )
        return leaves

    def _open(self) -> Any:
        if self._rows is None:
            self._rows = _open_rows(self._storage, self._open_stream(), self._footer.metadata, self._coded_names)
        return self._rows

    def _open_stream(self) -> pa.NativeFile:
        if self._stream is None:
            self._stream = _open_stream(self._storage, self._path, self._size_bytes)
        return self._stream


class FileWriter:
    """A file in the making: `write` row groups, then `finish`, or `discard` what came of it.

    Nothing is written before the first rows: they decide which columns get a dictionary.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: pa.Schema,
        columns: Sequence[Column],
        options: TableOptions,
        lookup_columns: Sequence[Column],
    ) -> None:
        self._storage = storage
        self._path = path
        self._uri = storage.uri_of(path)
        layout = _plan_layout(schema, tuple(columns))
        self._schema, self._nested, self._leaves = layout.schema, layout.nested, layout.leaves
        self._columns = columns
        self._options = options
        self._lookup_columns = lookup_columns
        self._float_columns = {column.name for column in columns if is_float(column.type)}
        self._nan_columns: set[str] = set()
        self._metadata: list[pq.FileMetaData] = []
        self._stream: pa.NativeFile = storage.open_output(path)
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        """Each table ends a row group; one that is longer than the options allow becomes several."""
        with translated_writing(self._uri):
            if self._writer is None:
                self._writer = self._open_writer(table)
            self._find_nan(table)
            self._writer.write_table(table, self._options.row_group_rows)

    def finish(self) -> WrittenParquet:
        with translated_writing(self._uri):
            writer = self._writer or self._open_writer(self._schema.empty_table())
            writer.add_key_value_metadata({NAN_COLUMNS: json.dumps(sorted(self._nan_columns)).encode()})
            writer.close()
            size_bytes = self._stream.tell()
            self._stream.close()
        self._storage.make_durable(self._path)
        metadata = self._metadata[0]
        return WrittenParquet(
            path=self._path,
            row_count=metadata.num_rows,
            size_bytes=size_bytes,
            bounds=file_bounds(metadata, self._leaves, self._columns, frozenset(self._nan_columns)),
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
        compression = self._choose_compression(first)
        dictionary_columns = _choose_dictionary_columns(first)
        return pq.ParquetWriter(
            self._stream,
            self._schema,
            compression=compression,
            compression_level=self._options.compression_level if compression in _LEVELED else None,
            write_page_checksum=True,
            store_schema=False,  # Parquet says it all, and a reader takes longer to parse it twice
            use_dictionary=dictionary_columns,
            column_encoding=self._choose_encodings(dictionary_columns),
            bloom_filter_options=self._choose_bloom_filters(first.num_rows, dictionary_columns),
            metadata_collector=self._metadata,
        )

    def _choose_compression(self, first: pa.Table) -> str:
        """A few bytes become no fewer, and to unpack them takes a reader longer than all else that it does."""
        is_worth_it = takes_more(first, _LEAST_COLUMN_BYTES * first.num_columns)
        return self._options.compression if is_worth_it else "none"

    def _choose_encodings(self, dictionary_columns: Sequence[str]) -> dict[str, str]:
        """Rows are sorted by the first lookup column: its integers differ little from one row to the next."""
        return {
            column.name: "DELTA_BINARY_PACKED"
            for column in self._lookup_columns[:1]
            if column.type in _INTEGERS
            and column.name not in dictionary_columns
            and has_path_of_its_own(column.name, self._nested)
        }

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
            and has_path_of_its_own(column.name, self._nested)
        }

    def _find_nan(self, table: pa.Table) -> None:
        for name in self._float_columns - self._nan_columns:
            if pc.any(pc.is_nan(table.column(name))).as_py():
                self._nan_columns.add(name)


@lru_cache(maxsize=_MOST_LAYOUTS)
def _plan_layout(schema: pa.Schema, columns: tuple[Column, ...]) -> Layout:
    """Of files with the ids of those columns: a writer of one mostly writes more of the same."""
    ids = {column.name: column.id for column in columns}
    fields = [
        field.with_metadata({FIELD_ID: str(ids[field.name])}) if field.name in ids else field.remove_metadata()
        for field in schema
    ]
    return Layout(schema=pa.schema(fields), leaves=arrange_leaves(schema), nested=nested_columns(schema))


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


def _sample_rows(first: pa.Table) -> int:
    if not takes_more(first, _LONG_ROW_BYTES * first.num_rows):
        return _SAMPLE_ROWS
    count: int = _SAMPLE_BYTES * first.num_rows // first.nbytes
    return max(2, count)


def _choose_dictionary_columns(first: pa.Table) -> list[str]:
    """The columns whose values repeat, judged by a sample: for others a dictionary costs time and gains nothing."""
    if first.num_rows < 2:
        return []
    sample = first.take(pa.array(range(0, first.num_rows, max(1, first.num_rows // _sample_rows(first)))))
    nested = nested_columns(first.schema)
    return [
        field.name
        for field in sample.schema
        if field.name not in nested
        and has_path_of_its_own(field.name, nested)
        and not pa.types.is_boolean(field.type)
        and pc.count_distinct(sample.column(field.name)).as_py() < _PAYS_BELOW * sample.num_rows
    ]
