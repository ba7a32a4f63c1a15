"""Work. Rewrites a split of a compaction: runs in, one run out, a row group or less of each in memory.

Of each key the newest row stays, or what the table's merge engine makes of all. Rows keep the commit that made them.
They come in the table's schema, whatever the schema of their file was. Where the output is deeper than the split, each
row goes to the bucket of its key's hash.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import count, groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.errors import CorruptionError, LakeError
from lakelib.model.files import DataFile, NewFile, Split
from lakelib.model.options import MIB
from lakelib.model.schema import COMMIT_COLUMN, OP_COLUMN, TableSchema
from lakelib.plan.compaction import READ_BYTES, age_of
from lakelib.plan.layout import estimate_row_bytes
from lakelib.plan.scan import gather_files, is_small
from lakelib.rows.align import FileAlignment, plan_file_alignment
from lakelib.rows.buffers import array_of_mask, whole_array
from lakelib.rows.hash import hash_prefixes, key_hashes
from lakelib.rows.keys import value_reader
from lakelib.rows.merge import arrange_window, merge_tables, merge_windows
from lakelib.rows.merge_engine import live_rows, stored_schema
from lakelib.rows.sort import group_order
from lakelib.rows.types import hidden_field
from lakelib.storage.filesystem import Storage
from lakelib.storage.parquet import ParquetReader, open_file
from lakelib.storage.parquet_writer import FileWriter, columns_with_nan
from lakelib.storage.paths import file_name, new_attempt_id
from lakelib.work.parallel import read_ahead
from lakelib.work.run_writer import RunTarget
from lakelib.work.small_files import open_alike

_WRITE_BYTES = 128 * MIB
"""What the rows take that are merged and not written yet, of all buckets together."""

_WINDOW_BYTES = 8 * MIB
"""About what the rows take that are merged at a time."""

_LEAST_STEP_ROWS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteWork:
    """What is to be done with a split. Plain values: a task gets it by pickle."""

    storage: Storage
    target: RunTarget
    schemas: Mapping[int, TableSchema]
    """The schema versions of the files."""
    split: Split
    output_depth: int
    drops_deletes: bool
    sequence: int
    run: int
    level: int
    threads: int = 1
    """With several small files are read ahead of the merge."""


def rewrite_split(work: RewriteWork) -> tuple[NewFile, ...]:
    """The split's rows as finished files of one run, in key order within a bucket. An error leaves no file behind."""
    buckets = _Buckets(work)
    try:
        with closing(_merged_rows(work)) as merged:
            for rows in merged:
                buckets.write(rows)
        return buckets.finish()
    except BaseException:
        buckets.discard()
        raise


# Reading


def _merged_rows(work: RewriteWork) -> Generator[pa.Table, None, None]:
    """The rows that stay, in key order, with `_op` only if they are to be stored with it."""
    streams = list(_streams(work))
    small = [files for files in streams if is_small(files[0])]
    with read_ahead(small, partial(_read_small_stream, work), work.threads) as reads:
        runs = list(_open_runs(work, streams, reads))
        if work.target.primary_key:
            yield from _merge(work, runs)
        else:
            for run in runs:
                yield from run


def _merge(work: RewriteWork, runs: Sequence[Iterator[pa.Table]]) -> Iterator[pa.Table]:
    key_names = [column.name for column in work.target.primary_key]
    window_rows = _WINDOW_BYTES // estimate_row_bytes(work.target.schema.columns)
    engine = work.target.engine
    for window in merge_windows(runs, key_names, work.target.order_names, engine=engine, most_rows=window_rows):
        rows = arrange_window(window, key_names)
        live = live_rows(rows) if work.drops_deletes else None
        if live is not None:
            rows = rows.filter(array_of_mask(live)).drop_columns([OP_COLUMN])
        if rows.num_rows:
            yield rows


def _by_run(work: RewriteWork) -> Sequence[DataFile]:
    """The files, oldest first; those of one run and bucket follow each other in the order of their keys."""
    return sorted(work.split.files, key=lambda file: (age_of(file), file.depth, file.prefix, file.id))


def _run_of(file: DataFile) -> tuple[object, ...]:
    return age_of(file), file.depth, file.prefix


def _streams(work: RewriteWork) -> Iterator[list[DataFile]]:
    """The files, oldest first, those together that are read as one run: of one run and bucket, or small."""
    for _, gathered in groupby(gather_files(_by_run(work)), key=lambda files: is_small(files[0]) or _run_of(files[0])):
        if is_small((found := list(gathered))[0][0]):
            yield from found
        else:
            yield [file for files in found for file in files]


def _open_runs(
    work: RewriteWork, streams: Sequence[Sequence[DataFile]], small_reads: Sequence[Callable[[], list[pa.Table]]]
) -> Iterator[Iterator[pa.Table]]:
    """The rows of each stream; nothing is read yet."""
    read_bytes = READ_BYTES // (max(1, len(streams)) if work.target.primary_key else 1)
    waiting = iter(small_reads)
    for files in streams:
        if is_small(files[0]):
            yield _once_read(next(waiting))
        else:
            yield _read_run(work, files, read_bytes)


def _once_read(read: Callable[[], list[pa.Table]]) -> Iterator[pa.Table]:
    yield from read()


def _read_small_stream(work: RewriteWork, files: Sequence[DataFile]) -> list[pa.Table]:
    """The rows of small files that are read as one run: only the newest row of each key."""
    key_names = [column.name for column in work.target.primary_key]
    found = [rows for rows in _read_small_files(work, files, _working_schema(work)) if rows.num_rows]
    if key_names and len(files) > 1 and found:
        return [merge_tables(found, key_names, work.target.order_names, work.target.engine)]
    return found


def _read_small_files(work: RewriteWork, files: Sequence[DataFile], schema: pa.Schema) -> Iterator[pa.Table]:
    for alike in open_alike(work.storage, work.target.location, files):
        alignment = _alignment(work, alike.schema_id)
        rows = alignment.apply(alike.read(_stored_names(alignment, alike.files[0])))
        rows = _of_schema(alike.with_commits(rows, [age_of(file)[0] for file in alike.files]), schema)
        yield _of_split(rows, work) if any(file.depth < work.split.depth for file in alike.files) else rows


def _alignment(work: RewriteWork, schema_id: int) -> FileAlignment:
    stored = stored_schema(work.target.engine, work.schemas[schema_id])
    return plan_file_alignment(stored, work.target.stored_columns.columns)


def _stored_names(alignment: FileAlignment, file: DataFile) -> list[str]:
    return [*alignment.file_columns, COMMIT_COLUMN, *([OP_COLUMN] if file.delete_count else [])]


def _read_run(work: RewriteWork, files: Sequence[DataFile], read_bytes: int) -> Iterator[pa.Table]:
    """The rows of files that follow each other, a few at a time, all of one schema."""
    key_names = [column.name for column in work.target.primary_key]
    schema = _working_schema(work)
    last: tuple[object, ...] | None = None
    for file in files:
        for rows in _read_file(work, file, schema, read_bytes):
            if key_names:
                first, last_here = _ends(rows, key_names)
                if last is not None and not last < first:
                    raise _out_of_order(work, file)
                last = last_here
            yield rows


def _ends(rows: pa.Table, key_names: Sequence[str]) -> tuple[tuple[object, ...], tuple[object, ...]]:
    readers = [value_reader(whole_array(rows.column(name))) for name in key_names]
    return tuple(read(0) for read in readers), tuple(read(rows.num_rows - 1) for read in readers)


def _out_of_order(work: RewriteWork, file: DataFile) -> CorruptionError:
    uri = work.storage.at(work.target.location).uri_of(file.path)
    return CorruptionError(
        f"The file {uri} does not begin after the keys that come before it in its run.",
        kind="keys_out_of_order",
        remedy="Restore it from a backup or a bucket version.",
    )


def _read_file(work: RewriteWork, file: DataFile, schema: pa.Schema, read_bytes: int) -> Iterator[pa.Table]:
    stored = work.schemas[file.schema_id]
    alignment = _alignment(work, file.schema_id)
    names = _stored_names(alignment, file)
    with open_file(work.storage, work.target.location, file.path, file.size_bytes) as reader:
        for row_group in range(reader.row_group_count):
            step_rows = _step_rows(reader, row_group, read_bytes, estimate_row_bytes(stored.columns))
            for read in reader.read_in_steps(row_group, names, step_rows):
                rows = _of_schema(_with_commit(alignment.apply(read), age_of(file)[0]), schema)
                if file.depth < work.split.depth:
                    rows = _of_split(rows, work)
                if rows.num_rows:
                    yield rows


def _step_rows(reader: ParquetReader, row_group: int, read_bytes: int, row_bytes: int) -> int:
    row_count, size_bytes = reader.row_group_bytes(row_group)
    memory_bytes = max(size_bytes, row_bytes * row_count)
    return row_count if memory_bytes <= read_bytes else max(_LEAST_STEP_ROWS, row_count * read_bytes // memory_bytes)


def _working_schema(work: RewriteWork) -> pa.Schema:
    """Of the rows of all runs: the table's columns, NULL allowed as in delete marks, and the hidden ones."""
    fields = [field.with_nullable(True) for field in work.target.stored_schema if field.name != OP_COLUMN]
    has_deletes = any(file.delete_count for file in work.split.files)
    return pa.schema(fields + ([hidden_field(OP_COLUMN)] if has_deletes else []))


def _with_commit(rows: pa.Table, sequence: int) -> pa.Table:
    """A row without a commit of its own has that of its file."""
    filled = pc.fill_null(rows.column(COMMIT_COLUMN), sequence)
    return rows.set_column(rows.column_names.index(COMMIT_COLUMN), hidden_field(COMMIT_COLUMN), filled)


def _of_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """A row of a file without `_op` deletes nothing."""
    columns = []
    for field in schema:
        if field.name == OP_COLUMN and OP_COLUMN not in rows.column_names:
            columns.append(pa.chunked_array([pa.array(np.zeros(rows.num_rows, np.int8))]))
        else:
            columns.append(rows.column(field.name))
    return pa.Table.from_arrays(columns, schema=schema)


def _of_split(rows: pa.Table, work: RewriteWork) -> pa.Table:
    """The rows of a file that covers more keys than the split does."""
    return rows.filter(pa.array(_prefixes(rows, work, work.split.depth) == work.split.prefix))


def _prefixes(rows: pa.Table, work: RewriteWork, depth: int) -> npt.NDArray[np.int32]:
    return hash_prefixes(key_hashes([rows.column(column.name) for column in work.target.primary_key]), depth)


# Writing


class _Buckets:
    """The output, by bucket. What waits to be written is bounded for all of them together."""

    def __init__(self, work: RewriteWork) -> None:
        self._work = work
        self._attempt = new_attempt_id()
        self._numbers = count()
        self._buckets: dict[int, _Bucket] = {}

    def write(self, rows: pa.Table) -> None:
        for prefix, part in self._by_bucket(rows):
            if prefix not in self._buckets:
                self._buckets[prefix] = _Bucket(self._work, prefix, self._attempt, self._numbers)
            self._buckets[prefix].write(part)
        while sum(bucket.waiting_bytes for bucket in self._buckets.values()) > _WRITE_BYTES:
            max(self._buckets.values(), key=lambda bucket: bucket.waiting_bytes).flush()

    def _by_bucket(self, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        depth, split = self._work.output_depth, self._work.split
        if depth == split.depth:
            yield split.prefix, rows
            return
        order, found, bounds = group_order(_prefixes(rows, self._work, depth))
        arranged = rows.take(pa.array(order))
        for prefix, start, end in zip(found.tolist(), bounds.tolist(), bounds[1:].tolist(), strict=False):
            yield prefix, arranged.slice(start, end - start)

    def finish(self) -> tuple[NewFile, ...]:
        return tuple(file for _, bucket in sorted(self._buckets.items()) for file in bucket.finish())

    def discard(self) -> None:
        for bucket in self._buckets.values():
            bucket.discard()


class _Bucket:
    """One bucket's output: files that follow each other in key order."""

    def __init__(self, work: RewriteWork, prefix: int, attempt: str, numbers: "count[int]") -> None:
        self._work = work
        self._prefix = prefix
        self._attempt = attempt
        self._numbers = numbers
        self._schema = work.target.stored_schema
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self.waiting_bytes = 0
        self._writer: FileWriter | None = None
        self._path = ""
        self._file_bytes = self._delete_count = 0
        self._files: list[NewFile] = []
        self._nan_columns: set[str] = set()
        """Columns for which a file has ended: those after it have no statistics of them."""

    def write(self, rows: pa.Table) -> None:
        options = self._work.target.options
        self._waiting.append(_stored(rows, self._schema))
        self._waiting_rows += rows.num_rows
        self.waiting_bytes += rows.nbytes
        if self._waiting_rows >= options.row_group_rows:
            waiting = pa.concat_tables(self._waiting)
            whole_rows = self._waiting_rows - self._waiting_rows % options.row_group_rows
            for start in range(0, whole_rows, options.row_group_rows):
                self._write_row_group(waiting.slice(start, options.row_group_rows))
            self._wait_with(waiting.slice(whole_rows))

    def flush(self) -> None:
        """Writes what waits, in a row group that is smaller than usual."""
        if self._waiting_rows:
            self._write_row_group(pa.concat_tables(self._waiting))
        self._wait_with(self._schema.empty_table())

    def finish(self) -> list[NewFile]:
        self.flush()
        if self._writer is not None:
            self._end_file(self._writer)
        return self._files

    def discard(self) -> None:
        """Deletes all files. Raises nothing of its own."""
        if self._writer is not None:
            self._writer.discard()
        with suppress(LakeError):
            self._root.delete_files([file.path for file in self._files])

    @property
    def _root(self) -> Storage:
        return self._work.storage.at(self._work.target.location)

    def _wait_with(self, rows: pa.Table) -> None:
        self._waiting = [rows] if rows.num_rows else []
        self._waiting_rows, self.waiting_bytes = rows.num_rows, rows.nbytes

    def _write_row_group(self, rows: pa.Table) -> None:
        target = self._work.target
        if self._writer is None:
            self._writer = self._begin_file()
        if not self._writer.write(rows):  # of its NaN the file's statistics would say nothing
            self._end_file(self._writer)
            self._nan_columns |= columns_with_nan(rows, target.schema.columns)
            self._writer = self._begin_file()
            self._writer.write(rows)
        pa.default_memory_pool().release_unused()  # else freed memory stays with the process, half as much again
        self._file_bytes += rows.nbytes
        if target.holds_deletes:
            self._delete_count += rows.num_rows - int(pc.sum(pc.equal(rows.column(OP_COLUMN), 0)).as_py() or 0)
        if self._file_bytes >= target.options.target_file_bytes:
            self._end_file(self._writer)

    def _begin_file(self) -> FileWriter:
        target, folder = self._work.target, self._work.split.partition.path
        name = file_name(target.file_kind, self._attempt, next(self._numbers))
        self._path = f"{folder}/{name}" if folder else name
        return FileWriter(
            self._root,
            self._path,
            self._schema,
            target.schema,
            target.options,
            target.primary_key,
            self._nan_columns,
        )

    def _end_file(self, writer: FileWriter) -> None:
        written = writer.finish()
        work = self._work
        self._files.append(
            NewFile(
                path=self._path,
                partition_key=work.split.partition.key,
                partition_path=work.split.partition.path,
                depth=work.output_depth,
                prefix=self._prefix,
                run=work.run,
                level=work.level,
                row_count=written.row_count,
                delete_count=self._delete_count,
                size_bytes=written.size_bytes,
                bounds=written.bounds,
                sequence=work.sequence,
            )
        )
        self._writer = None
        self._file_bytes = self._delete_count = 0


def _stored(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows as files keep them."""
    return pa.Table.from_arrays([rows.column(name) for name in schema.names], schema=schema)
