"""Writes runs: aligned batches in, finished files out. The same in the calling process and in a Spark task.

Batches are arranged by partition and bucket as they come and held in a bounded buffer. Each time the buffer is full,
and when the input ends, every bucket's rows are sorted, reduced to one row a key, and written: a run.
"""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

import pyarrow as pa

from lakelib.errors import InvalidInputError, LakeError
from lakelib.model.files import NewFile, PartitionKey
from lakelib.model.options import TableOptions
from lakelib.model.schema import COMMIT_COLUMN, OP_COLUMN, Column, TableSchema
from lakelib.model.table import Buckets
from lakelib.plan.layout import choose_depth, choose_file_count, deepest_split
from lakelib.rows.arrange import Piece, arrange_rows
from lakelib.rows.sort import newest_order
from lakelib.rows.types import arrow_field, hidden_field
from lakelib.storage.filesystem import Storage
from lakelib.storage.parquet import write_file
from lakelib.storage.paths import file_name, new_attempt_id, partition_path

_SMALL_ROWS = 20_000
"""Fewer rows are handled by the calling thread: handing them over would cost more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTarget:
    """What a writer needs to know of a table. Plain values: a task gets it by pickle."""

    location: str
    schema: TableSchema
    primary_key: tuple[Column, ...]
    partition_by: tuple[Column, ...]
    order_names: tuple[str, ...]
    """Columns that decide which of two rows of a key is newer, the most significant first."""
    buckets: Buckets
    options: TableOptions
    file_kind: str
    """Goes into the files' names: what made them."""
    holds_deletes: bool = False
    holds_commits: bool = False
    """The batches bring their own `_commit`; else it is null, which means the commit that adds the file."""

    @property
    def stored_schema(self) -> pa.Schema:
        """The columns of a file."""
        loose = self.holds_deletes
        keys = {column.id for column in self.primary_key}
        fields = [
            arrow_field(column).with_nullable(column.nullable or (loose and column.id not in keys))
            for column in self.schema.columns
        ]
        hidden = (COMMIT_COLUMN, OP_COLUMN) if self.holds_deletes else (COMMIT_COLUMN,)
        return pa.schema(fields + [hidden_field(name) for name in hidden])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """The rows of one file, or of several if they are many: one bucket's share of a run."""

    partition_key: PartitionKey
    depth: int
    prefix: int
    batches: list[pa.RecordBatch]


class RunWriter:
    """One writer's work on one commit. Not for several callers at once; it uses threads of its own.

    A context manager: left by an error, it deletes what it wrote.
    """

    def __init__(
        self, storage: Storage, target: RunTarget, *, buffer_bytes: int, threads: int, single_run: bool = False
    ) -> None:
        """With `single_run` the rows must fit into one buffer: columns that are not stored decide their order."""
        self._storage = storage
        self._target = target
        self._stored_schema = target.stored_schema
        self._depth = deepest_split(target.buckets)
        self._buffer_bytes = buffer_bytes
        self._threads = threads
        self._single_run = single_run
        self._pool: ThreadPoolExecutor | None = None
        self._attempt = new_attempt_id()
        self._numbers = count()
        self._paths: list[str] = []
        self._arranging: list[Future[list[Piece]]] = []
        self._pieces: list[Piece] = []
        self._held_bytes = 0
        self._held_rows = 0
        self._run = 0
        self._files: list[NewFile] = []

    def __enter__(self) -> "RunWriter":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        if kind is not None:
            with suppress(LakeError):  # the error that ended the write is the one to be told
                self._storage.at(self._target.location).delete_files(self._paths)

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes aligned rows: the table's columns, hidden ones that the target holds, and auxiliary order columns."""
        if batch.num_rows == 0:
            return
        if batch.num_rows < _SMALL_ROWS and not self._arranging:
            self._hold(self._arrange(batch))
            return
        self._arranging.append(self._workers().submit(self._arrange, batch))
        while len(self._arranging) > self._threads:
            self._hold(self._arranging.pop(0).result())

    def finish(self) -> tuple[NewFile, ...]:
        """Writes what is held, and gives the files of all runs."""
        while self._arranging:
            self._hold(self._arranging.pop(0).result())
        self._flush()
        return tuple(self._files)

    def _arrange(self, batch: pa.RecordBatch) -> list[Piece]:
        return arrange_rows(batch, self._target.partition_by, self._target.primary_key, self._depth)

    def _hold(self, pieces: list[Piece]) -> None:
        self._pieces.extend(pieces)
        self._held_bytes += sum(piece.rows.nbytes for piece in pieces)
        self._held_rows += sum(piece.rows.num_rows for piece in pieces)
        if self._held_bytes >= self._buffer_bytes:
            if self._single_run:
                raise _too_large_for_one_run(self._buffer_bytes)
            self._flush()

    def _flush(self) -> None:
        if not self._pieces:
            return
        groups = _group_pieces(self._pieces, self._target, self._depth)
        self._pieces = []
        if self._held_rows < _SMALL_ROWS:
            written = [self._write_group(group) for group in groups]
        else:
            jobs = [self._workers().submit(self._write_group, group) for group in groups]
            groups.clear()
            written = [job.result() for job in jobs]
        self._files.extend(file for files in written for file in files)
        self._held_bytes = self._held_rows = 0
        self._run += 1

    def _write_group(self, group: _Group) -> list[NewFile]:
        """Sorts, keeps the newest row of each key, and writes one file, or several that follow in key order."""
        rows = pa.Table.from_batches(group.batches).combine_chunks()
        group.batches.clear()
        rows = _with_hidden(self._sorted(rows), self._stored_schema)
        file_count = choose_file_count(rows.nbytes, self._target.options)
        step = -(-rows.num_rows // file_count)
        return [self._write_file(group, rows.slice(start, step)) for start in range(0, rows.num_rows, step)]

    def _sorted(self, rows: pa.Table) -> pa.Table:
        if not self._target.primary_key:
            return rows
        keys = [_whole(rows, column.name) for column in self._target.primary_key]
        order = newest_order(keys, [_whole(rows, name) for name in self._target.order_names])
        return rows.take(pa.array(order))

    def _write_file(self, group: _Group, rows: pa.Table) -> NewFile:
        folder = partition_path(self._target.partition_by, group.partition_key)
        name = file_name(self._target.file_kind, self._attempt, next(self._numbers))
        path = f"{folder}/{name}" if folder else name
        self._paths.append(path)
        written = write_file(
            self._storage,
            self._target.location,
            path,
            [rows],
            self._stored_schema,
            self._target.schema.columns,
            self._target.options,
            self._target.primary_key,
        )
        return NewFile(
            path=path,
            partition_key=group.partition_key,
            partition_path=folder,
            depth=group.depth,
            prefix=group.prefix,
            run=self._run,
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


def _group_pieces(pieces: Sequence[Piece], target: RunTarget, depth: int) -> list[_Group]:
    """Pieces that go into one file together: each partition is split as deep as its size warrants."""
    sizes: dict[PartitionKey, int] = defaultdict(int)
    for piece in pieces:
        sizes[piece.partition_key] += piece.rows.nbytes
    depths = {key: choose_depth(size, target.buckets, target.options) for key, size in sizes.items()}
    groups: dict[tuple[PartitionKey, int], _Group] = {}
    for piece in pieces:
        chosen = depths[piece.partition_key]
        prefix = piece.prefix >> (depth - chosen)
        group = groups.setdefault(
            (piece.partition_key, prefix),
            _Group(partition_key=piece.partition_key, depth=chosen, prefix=prefix, batches=[]),
        )
        group.batches.append(piece.rows)
    return list(groups.values())


def _with_hidden(rows: pa.Table, stored: pa.Schema) -> pa.Table:
    """The columns that are stored, in order: auxiliary ones go, `_commit` comes unless the rows brought it."""
    columns = [
        pa.nulls(rows.num_rows, pa.int64())
        if field.name == COMMIT_COLUMN and COMMIT_COLUMN not in rows.column_names
        else rows.column(field.name)
        for field in stored
    ]
    return pa.Table.from_arrays(columns, schema=stored)


def _whole(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _count_deletes(rows: pa.Table) -> int:
    marks: int = rows.column(OP_COLUMN).to_numpy().sum()
    return int(marks)


def _too_large_for_one_run(buffer_bytes: int) -> InvalidInputError:
    return InvalidInputError(
        f"The rows to be ordered by aux_order take more than the write buffer of {buffer_bytes} bytes.",
        kind="write_buffer_exceeded",
        remedy="Raise the table option write_buffer_bytes, or store the order columns and name them in sequence_by.",
    )
