"""Work. Writes runs: aligned batches in, finished files out.

Batches are arranged by partition as they come, and by bucket too where that leaves large parts, and held in a bounded
buffer. Each time the buffer is full, and when the input ends, each partition is split as deep as its size warrants, and
every bucket's rows are sorted, reduced to one row a key, and written: a run. With several threads a run is written
while the next one is collected.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import field, replace
from functools import lru_cache
from itertools import count
from typing import Self

import numpy as np
import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, LakeError
from lakelib.model.files import NewFile, PartitionKey
from lakelib.model.options import MIB, TableOptions
from lakelib.model.schema import COMMIT_COLUMN, OP_COLUMN, Column, TableSchema
from lakelib.model.table import Buckets
from lakelib.plan.layout import choose_depth, choose_file_count, likely_depth
from lakelib.rows.arrange import RowPart, arrange_rows, deepen_parts
from lakelib.rows.buffers import array_of_mask, cut_batch, whole_array
from lakelib.rows.merge import have_repeated, keep_newest, merge_tables
from lakelib.rows.merge_engine import Engine, stored_schema
from lakelib.rows.sort import newest_order
from lakelib.rows.types import arrow_field, hidden_field
from lakelib.storage.filesystem import Storage
from lakelib.storage.parquet_writer import write_file
from lakelib.storage.paths import file_name, new_attempt_id, partition_path

LARGEST_BUFFER_BYTES = 1024 * MIB
"""No run takes more in memory: an Arrow array of text or bytes holds at most 2 GiB."""

_ARRANGED_ROWS = 65_536
"""Smaller batches are arranged together: else a partition's rows would come in ever so many parts."""

_ARRANGED_BYTES = 64 * MIB
"""What is arranged together takes no more, unless it is one row."""

_LEAST_PART_ROWS = 256
"""Smaller parts cost more, each for itself, than splitting them later."""

_AHEAD_BYTES = 128 * MIB
"""So much of a run is collected, at most, while the one before it is written."""

_SMALL_ROWS = 20_000
"""Fewer rows are handled by the calling thread: handing them over would cost more."""

_FEW_FILES = 4
"""As many small files the calling thread writes itself, if they are local."""

_LOCAL_WRITERS = 4
_REMOTE_WRITERS = 16
"""Threads that write small files: most of the time they wait for the store."""

_WAITING_BYTES = 16 * MIB
"""What those threads may hold at a time."""

_MOST_SCHEMAS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTarget:
    """What a writer needs to know of a table. Plain values: a task gets it by pickle."""

    location: str
    schema: TableSchema
    primary_key: tuple[Column, ...]
    partition_by: tuple[Column, ...]
    order_names: tuple[str, ...]
    """Columns that decide which of two rows of a key is newer, the most significant first. For an engine, in which
    order they have come."""
    buckets: Buckets
    options: TableOptions
    file_kind: str
    """Goes into the files' names: what made them."""
    holds_deletes: bool = False
    holds_commits: bool = False
    """The batches bring their own `_commit`; else it is null, which means the commit that adds the file."""
    engine: Engine | None = None
    """What makes one row of the versions of a key; None: the newest is the row."""
    one_partition: bool = False
    """Whether a run has a key in one partition at most: where its newest row is."""

    @property
    def stored_schema(self) -> pa.Schema:
        """The columns of a file."""
        key_ids = tuple(column.id for column in self.primary_key)
        return _stored_schema(self.engine, self.schema, key_ids, self.holds_deletes)

    @property
    def stored_columns(self) -> TableSchema:
        """The table's columns, and those that nobody sees."""
        return stored_schema(self.engine, self.schema)


@lru_cache(maxsize=_MOST_SCHEMAS)
def _stored_schema(
    engine: Engine | None, schema: TableSchema, key_ids: tuple[int, ...], holds_deletes: bool
) -> pa.Schema:
    fields = [
        _stored_field(column).with_nullable(column.nullable or (holds_deletes and column.id not in key_ids))
        for column in stored_schema(engine, schema).columns
    ]
    hidden = (COMMIT_COLUMN, OP_COLUMN) if holds_deletes else (COMMIT_COLUMN,)
    return pa.schema(fields + [hidden_field(name) for name in hidden])


def _stored_field(column: Column) -> pa.Field:
    """A column that nobody sees has no id that Parquet's readers could ask for."""
    field = arrow_field(column)
    return field if column.id > 0 else field.remove_metadata()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arranged:
    """Some batches of the input, arranged together."""

    parts: list[RowPart]
    size_bytes: int
    row_count: int


@dataclass(slots=True, kw_only=True)
class _Run:
    """What is collected for a run."""

    number: int = 0
    parts: list[RowPart] = field(default_factory=list)
    size_bytes: int = 0
    row_count: int = 0

    def add(self, arranged: _Arranged) -> None:
        self.parts.extend(arranged.parts)
        self.size_bytes += arranged.size_bytes
        self.row_count += arranged.row_count


@dataclass(frozen=True, slots=True, kw_only=True)
class _BucketRows:
    """What a run has of one bucket: the rows of one file, or of several if they are many."""

    run: _Run
    partition_key: PartitionKey
    depth: int
    prefix: int
    batches: list[pa.RecordBatch]


def write_runs(
    storage: Storage,
    target: RunTarget,
    batches: Iterable[pa.RecordBatch],
    *,
    buffer_bytes: int,
    threads: int,
    single_run: bool = False,
) -> tuple[NewFile, ...]:
    """Writes aligned rows: the table's columns, hidden ones that the target holds, and auxiliary order columns. Gives
    the files of all runs. An error leaves no file behind.

    With `single_run` the rows must fit into one buffer: columns that are not stored decide their order.
    """
    with _RunWriter(storage, target, buffer_bytes=buffer_bytes, threads=threads, single_run=single_run) as writer:
        for batch in batches:
            writer.write(batch)
        return writer.finish()


class _RunWriter:
    """One writer's work on one commit, with threads of its own. A context manager: left by an error, it deletes what it
    wrote."""

    def __init__(
        self, storage: Storage, target: RunTarget, *, buffer_bytes: int, threads: int, single_run: bool
    ) -> None:
        self._root = storage.at(target.location)
        self._target = target
        self._stored_schema = target.stored_schema
        self._buffer_bytes = min(buffer_bytes, LARGEST_BUFFER_BYTES)
        self._threads = threads
        self._single_run = single_run
        self._pool: ThreadPoolExecutor | None = None
        self._writing_pool: ThreadPoolExecutor | None = None
        self._writing: Future[list[NewFile]] | None = None
        """The run before the one that is collected."""
        self._is_left = False
        self._is_remote = not self._root.is_local
        self._attempt = new_attempt_id()
        self._numbers = count()
        self._paths: list[str] = []
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = self._waiting_rows = 0
        self._arranging: list[Future[_Arranged]] = []
        self._run = _Run()
        self._files: list[NewFile] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._is_left = True
        for pool in (self._writing_pool, self._pool):
            if pool is not None:
                pool.shutdown(cancel_futures=True)
        if kind is not None:
            with suppress(LakeError):  # the error that ended the write is the one to be told
                self._root.delete_files(self._paths)

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        for part in cut_batch(batch, _ARRANGED_BYTES):
            size_bytes = part.nbytes
            if self._waiting_bytes + size_bytes > min(_ARRANGED_BYTES, self._buffer_bytes):
                self._arrange_waiting()
            self._waiting.append(part)
            self._waiting_bytes += size_bytes
            self._waiting_rows += part.num_rows
            if self._waiting_rows >= _ARRANGED_ROWS:
                self._arrange_waiting()

    def finish(self) -> tuple[NewFile, ...]:
        """Writes what is held, and gives the files of all runs."""
        self._arrange_waiting()
        while self._arranging:
            self._hold(self._arranging.pop(0).result())
        last = self._write_run(self._run)
        self._await_written()
        return (*self._files, *last)

    def _arrange_waiting(self) -> None:
        if not self._waiting:
            return
        batches, size_bytes, row_count = self._waiting, self._waiting_bytes, self._waiting_rows
        self._waiting = []
        self._waiting_bytes = self._waiting_rows = 0
        if row_count < _SMALL_ROWS and not self._arranging:
            self._hold(self._arrange(batches, size_bytes))
            return
        self._arranging.append(self._workers().submit(self._arrange, batches, size_bytes))
        while len(self._arranging) > self._threads:
            self._hold(self._arranging.pop(0).result())

    def _arrange(self, batches: list[pa.RecordBatch], size_bytes: int) -> _Arranged:
        batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        target = self._target
        if target.one_partition:
            batch = _newest_rows(batch, target)
        parts = arrange_rows(
            batch,
            target.partition_by,
            target.primary_key,
            likely_depth(target.buckets),
            least_part_rows=_LEAST_PART_ROWS,
        )
        return _Arranged(parts=parts, size_bytes=size_bytes, row_count=batch.num_rows)

    def _hold(self, arranged: _Arranged) -> None:
        run = self._run
        if run.parts and run.size_bytes + arranged.size_bytes > LARGEST_BUFFER_BYTES:
            self._end_run()
        self._run.add(arranged)
        if self._run.size_bytes >= self._buffer_bytes:
            self._end_run()
        elif self._run.size_bytes >= _AHEAD_BYTES:
            self._await_written()

    def _end_run(self) -> None:
        """Makes room for more rows, which will be of another run."""
        if self._single_run:
            raise _too_large_for_one_run(self._buffer_bytes)
        self._await_written()
        run, self._run = self._run, _Run(number=self._run.number + 1)
        if self._threads == 1:
            self._files += self._write_run(run)
            return
        self._workers()  # which the writing thread asks for, too
        if self._writing_pool is None:
            self._writing_pool = ThreadPoolExecutor(1, thread_name_prefix="lakelib-run")
        self._writing = self._writing_pool.submit(self._write_run, run)

    def _await_written(self) -> None:
        """The run that is being written has its files."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            self._files += writing.result()

    def _write_run(self, run: _Run) -> list[NewFile]:
        return [file for files in self._write_buckets(run, self._take_buckets(run)) for file in files]

    def _take_buckets(self, run: _Run) -> list[_BucketRows]:
        """What is held, by file: each partition is split as deep as its size warrants."""
        if self._target.one_partition and len({part.partition_key for part in run.parts}) > 1:
            run.parts = _newest_parts(run.parts, self._target)
        by_partition: dict[PartitionKey, list[RowPart]] = defaultdict(list)
        for part in run.parts:
            by_partition[part.partition_key].append(part)
        run.parts = []
        depths = {key: self._choose_depth(run, parts) for key, parts in by_partition.items()}
        most_rows = min(_ARRANGED_ROWS, _ARRANGED_BYTES * run.row_count // max(1, run.size_bytes))
        together = [some for key, parts in by_partition.items() for some in _together(parts, depths[key], most_rows)]
        by_partition.clear()
        buckets: dict[tuple[PartitionKey, int], _BucketRows] = {}
        for parts in self._deepened(run, together, depths):
            for part in parts:
                key, depth = part.partition_key, depths[part.partition_key]
                prefix = part.prefix >> (part.depth - depth)
                new = _BucketRows(run=run, partition_key=key, depth=depth, prefix=prefix, batches=[])
                buckets.setdefault((key, prefix), new).batches.append(part.rows)
        return list(buckets.values())

    def _choose_depth(self, run: _Run, parts: Sequence[RowPart]) -> int:
        if not choose_depth(run.size_bytes, self._target.buckets, self._target.options):
            return 0  # for all partitions together: to look at each would take longer than to write a few rows
        size_bytes = sum(part.rows.nbytes for part in parts)
        return choose_depth(size_bytes, self._target.buckets, self._target.options)

    def _deepened(
        self, run: _Run, together: Sequence[Sequence[RowPart]], depths: dict[PartitionKey, int]
    ) -> Iterator[Sequence[RowPart]]:
        def deepen(parts: Sequence[RowPart]) -> Sequence[RowPart]:
            depth = depths[parts[0].partition_key]
            return parts if parts[0].depth >= depth else deepen_parts(parts, self._target.primary_key, depth)

        if run.row_count < _SMALL_ROWS or not any(depths.values()):
            return map(deepen, together)
        return self._workers().map(deepen, together)

    def _write_buckets(self, run: _Run, buckets: Sequence[_BucketRows]) -> list[list[NewFile]]:
        """The files of each bucket. They are emptied, so that their rows are gone once they are written."""
        writers = self._choose_writers(run, len(buckets))
        if writers == 1:
            return [self._write_bucket(bucket) for bucket in buckets]
        with ThreadPoolExecutor(writers, thread_name_prefix="lakelib-write") as pool:
            return list(pool.map(self._write_bucket, buckets))

    def _choose_writers(self, run: _Run, bucket_count: int) -> int:
        """How many threads write so many files: where files are small, most of the time is waiting for the store."""
        is_small = run.row_count < _SMALL_ROWS and bucket_count <= _FEW_FILES and not self._is_remote
        if bucket_count == 1 or is_small:
            return 1
        most = _REMOTE_WRITERS if self._is_remote else _LOCAL_WRITERS
        return max(self._threads, min(most, _WAITING_BYTES * bucket_count // max(1, run.size_bytes)))

    def _write_bucket(self, bucket: _BucketRows) -> list[NewFile]:
        """Sorts, keeps the newest row of each key, and writes one file, or several that follow in key order."""
        if self._is_left:
            return []
        rows = pa.Table.from_batches(bucket.batches).combine_chunks()
        bucket.batches.clear()
        rows = _with_hidden(self._sorted(rows), self._stored_schema)
        file_count = self._choose_file_count(bucket.run, rows)
        step = -(-rows.num_rows // file_count)
        return [self._write_file(bucket, rows.slice(start, step)) for start in range(0, rows.num_rows, step)]

    def _choose_file_count(self, run: _Run, rows: pa.Table) -> int:
        options = self._target.options
        most = choose_file_count(run.size_bytes, options)
        return 1 if most == 1 else choose_file_count(rows.nbytes, options)

    def _sorted(self, rows: pa.Table) -> pa.Table:
        target = self._target
        if target.engine is not None:
            key_names = [column.name for column in target.primary_key]
            return merge_tables([target.engine.lift(rows)], key_names, target.order_names, target.engine)
        if not target.primary_key or rows.num_rows < 2:
            return rows
        keys = [whole_array(rows.column(column.name)) for column in target.primary_key]
        order = newest_order(keys, [whole_array(rows.column(name)) for name in target.order_names])
        return rows.take(pa.array(order))

    def _write_file(self, bucket: _BucketRows, rows: pa.Table) -> NewFile:
        folder = partition_path(self._target.partition_by, bucket.partition_key)
        name = file_name(self._target.file_kind, self._attempt, next(self._numbers))
        path = f"{folder}/{name}" if folder else name
        self._paths.append(path)
        written = write_file(
            self._root,
            path,
            [rows],
            self._stored_schema,
            self._target.schema,
            self._target.options,
            self._target.primary_key,
        )
        return NewFile(
            path=path,
            partition_key=bucket.partition_key,
            partition_path=folder,
            depth=bucket.depth,
            prefix=bucket.prefix,
            run=bucket.run.number,
            level=0,
            row_count=written.row_count,
            delete_count=_count_deletes(rows) if self._target.holds_deletes else 0,
            size_bytes=written.size_bytes,
            bounds=written.bounds,
        )

    def _workers(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="lakelib-write")
        return self._pool


def _newest_rows(batch: pa.RecordBatch, target: RunTarget) -> pa.RecordBatch:
    """Of each key the newest row, in the order in which they came."""
    keys, order_by = _ranked_by(batch, target)
    if not have_repeated([[key] for key in keys]):
        return batch
    return batch.take(pa.array(np.sort(newest_order(keys, order_by))))


def _newest_parts(parts: list[RowPart], target: RunTarget) -> list[RowPart]:
    """The parts without the rows that later ones have the keys of. No part has a key twice."""
    batches = [part.rows for part in parts]
    ranked = [_ranked_by(batch, target) for batch in batches]
    if not have_repeated(list(zip(*(keys for keys, _ in ranked), strict=True))):
        return parts
    masks = keep_newest([keys for keys, _ in ranked], [order_by for _, order_by in ranked])
    kept = [
        part if mask is None else replace(part, batch=batch.filter(array_of_mask(mask)), start=0, row_count=mask.sum())
        for part, batch, mask in zip(parts, batches, masks, strict=True)
    ]
    return [part for part in kept if part.row_count]


def _ranked_by(batch: pa.RecordBatch, target: RunTarget) -> tuple[list[pa.Array], list[pa.Array]]:
    """The columns by which rows are of one key, and by which the newest is known."""
    keys = [whole_array(batch.column(column.name)) for column in target.primary_key]
    return keys, [whole_array(batch.column(name)) for name in target.order_names]


def _together(parts: Sequence[RowPart], depth: int, most_rows: int) -> Iterator[list[RowPart]]:
    """The parts of one partition, in order, those in one list that a thread splits together: they are too shallow. The
    part that gives them so many rows is the last one."""
    some: list[RowPart] = []
    row_count = 0
    for part in parts:
        if some and (part.depth < depth) != (some[0].depth < depth):
            yield some
            some, row_count = [], 0
        some.append(part)
        row_count += part.row_count
        if part.depth < depth and row_count >= most_rows:
            yield some
            some, row_count = [], 0
    if some:
        yield some


def _with_hidden(rows: pa.Table, stored: pa.Schema) -> pa.Table:
    """The columns that are stored, in order: auxiliary ones go, `_commit` comes unless the rows brought it."""
    columns = [
        pa.nulls(rows.num_rows, pa.int64())
        if field.name == COMMIT_COLUMN and COMMIT_COLUMN not in rows.column_names
        else rows.column(field.name)
        for field in stored
    ]
    return pa.Table.from_arrays(columns, schema=stored)


def _count_deletes(rows: pa.Table) -> int:
    return int(np.count_nonzero(rows.column(OP_COLUMN).to_numpy()))


def _too_large_for_one_run(buffer_bytes: int) -> InvalidInputError:
    larger = "Raise the table option write_buffer_bytes" if buffer_bytes < LARGEST_BUFFER_BYTES else "Write fewer rows"
    return InvalidInputError(
        f"The rows to be ordered by aux_order take more than the write buffer of {buffer_bytes} bytes.",
        kind="write_buffer_exceeded",
        remedy=f"{larger}, or store the order columns and name them in sequence_by.",
    )
