"""Storage. Reads the Parquet files of tables: whole row groups, some columns of them, or their bounds alone."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakelib.errors import CorruptionError
from lakelib.plan.prune import Bounds
from lakelib.plan.scan import SMALL_FILE_BYTES
from lakelib.storage import bloom
from lakelib.storage.failures import translated_reading
from lakelib.storage.file_cache import FileCache
from lakelib.storage.filesystem import Storage
from lakelib.storage.footers import (
    CACHE_BYTES,
    Footer,
    has_path_of_its_own,
    parse_footer,
    row_group_bounds,
)

_MOST_REQUESTS = 32
"""So many small files of a distant store are fetched at a time: nearly all of it is waiting."""

_BLOOM_BYTES = 64 * 1024 * 1024
"""How much memory the Bloom filters take that a process keeps."""

_footers = FileCache[Footer](CACHE_BYTES)
_blooms = FileCache[bytes](_BLOOM_BYTES)


def read_plain_file(storage: Storage, path: str) -> pa.Table:
    """A whole file of Parquet that is no table's. Raises NotFoundError, or CorruptionError for what is no Parquet."""
    with translated_reading(storage.uri_of(path)), storage.open_input(path) as stream:
        return pq.read_table(stream)


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
    _footers.keep((target, uri), footer, footer.memory_bytes)
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
        raise _of_another_size(uri, found_bytes, size_bytes)
    return stream


def check_sizes(storage: Storage, files: Iterable[tuple[str, int]]) -> None:
    """Raises CorruptionError for a file, given by path and size, that is not there or has another size."""
    for path, size_bytes in files:
        found_bytes = storage.size(path, named_by_catalog=True)
        if found_bytes != size_bytes:
            raise _of_another_size(storage.uri_of(path), found_bytes, size_bytes)


def _of_another_size(uri: str, found_bytes: int, size_bytes: int) -> CorruptionError:
    return CorruptionError(
        f"The file {uri} is not the Parquet file it should be: it has {found_bytes:,} bytes, and the catalog knows"
        f" it with {size_bytes:,}.",
        kind="unreadable_file",
        remedy="Restore it from a backup or a bucket version.",
    )


def open_anew(storage: Storage, path: str, size_bytes: int | None = None) -> "ParquetReader":
    """As `open_file`, of what is stored now: no footer is taken from those that are kept, and none is added."""
    stream = _open_stream(storage, path, size_bytes)
    with translated_reading(storage.uri_of(path)):
        footer = parse_footer(pq.read_metadata(stream))
    return ParquetReader(storage, path, footer, stream, size_bytes)


def open_stream(stream: pa.NativeFile, *, is_far: bool) -> Any:
    """pyarrow's own reader of a file that no table has written: nothing of it is kept."""
    return pq.ParquetFile(stream, pre_buffer=is_far)


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

    @property
    def hides_nan(self) -> bool:
        """Whether columns that hold NaN have statistics, which leave it out."""
        places = [self._leaves_of(name).start for name in self._footer.nan_columns or ()]
        groups = map(self._footer.metadata.row_group, range(self.row_group_count))
        return any(group.column(place).is_stats_set for group in groups for place in places)

    def row_group_bounds(self, row_group: int, column_name: str, type_text: str) -> Bounds:
        """The bounds of one column in one row group; `type_text` is the column's type in this file, or a wider one."""
        return row_group_bounds(self._footer, row_group, column_name, type_text)

    def may_hold(self, row_group: int, column_name: str, values: pa.Array) -> bool:
        """Whether a row group may hold one of the values, of the type that the column has in this file."""
        leaves = self._leaves_of(column_name)
        chunk = self._footer.metadata.row_group(row_group).column(leaves.start)
        if chunk.bloom_filter_offset is None or chunk.bloom_filter_length is None:
            return True
        key = (self._storage, self.uri, chunk.bloom_filter_offset)
        stored = _blooms.find(key)
        if stored is None:
            with translated_reading(self.uri):
                stored = self._open_stream().read_at(chunk.bloom_filter_length, chunk.bloom_filter_offset)
            _blooms.keep(key, stored, len(stored))
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
