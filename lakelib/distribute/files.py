"""Files as a source of rows that never cross the JVM: each Spark task reads its share with Arrow and writes runs.

Shares follow each other in the order of the files, and large Parquet files are cut at row groups, so that shares are
about equally heavy. Of two rows of a key the later one, in that order, is newer. Where rows must be shuffled, and for
people who want a data frame, the files are read by the same code and handed to Spark.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from lakelib.distribute.sessions import parallelism
from lakelib.distribute.sizes import are_long, sized_numbers
from lakelib.distribute.tasks import MESSAGE_DDL, MESSAGE_SCHEMA, Message, Task
from lakelib.distribute.told import told_in_text
from lakelib.distribute.types import spark_schema_of
from lakelib.distribute.writer import MOST_RUNS, gather, is_shuffled, task_work, write_frame
from lakelib.errors import InvalidInputError, LakeError
from lakelib.model.options import MIB
from lakelib.model.schema import Column, TableSchema
from lakelib.rows.align import Alignment, plan_alignment
from lakelib.rows.types import arrow_schema, column_type_text
from lakelib.rows.unite import TargetColumns
from lakelib.storage.filesystem import Storage
from lakelib.storage.source_files import SourceFile, find_source_files, if_unchanged, list_row_groups, naming
from lakelib.storage.source_reader import SourceReader
from lakelib.storage.source_text import text_bytes
from lakelib.storage.write_work import WriteWork, WrittenFiles, near_batches, write_batches

_LISTING_THREADS = 16
_LARGE_BYTES = 32 * MIB
_UNREAD_FACTOR = 4
"""How much more a Parquet file's rows take in memory than the file, where nothing better is known."""

_FILLED = 0.95
"""Of what a task can hold, so much is planned: a run more to write is a run more to merge."""

_FRAME_BYTES = 128 * MIB
"""What a task reads for a data frame."""

_OUTPUT_ROWS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """A file, or some row groups of it that follow each other."""

    file: SourceFile
    row_groups: tuple[int, ...] | None
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource:
    session: Any = field(repr=False)
    storage: Storage
    files: tuple[SourceFile, ...]
    """Those that have a row."""
    reader: SourceReader
    schema: pa.Schema
    """The columns of all files together."""
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)
    where: str | None = None
    """A condition of Spark SQL: only the rows for which it is true count."""

    @property
    def rereadable(self) -> bool:
        return True

    @property
    def size_bytes(self) -> int:
        """Nothing is in this process's memory."""
        return 0

    @property
    def is_empty(self) -> bool:
        return not self.files

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, read by this process, or collected where they are filtered."""
        if self.where is not None:
            yield from self.frame().toArrow().to_batches()
            return
        whole = [FilePart(file=file, row_groups=None, memory_bytes=0) for file in self.files]
        yield from _uniform_rows(self, _uniform_columns(self.schema), whole)

    def check(self, work: WriteWork) -> None:
        """Values are seen by the tasks only."""
        roles = frozenset(name.casefold() for name in (*work.target.order_names, *_names(work.target.partition_by)))
        for file in _unlike(self.files):
            with naming(file.uri, 0):
                _check_roles(self._names(file), roles)
                work.align(pa.schema([each for each in self.schema if each.name.casefold() in self._names(file)]))
        work.align(self.schema)

    def write(self, work: WriteWork, *, threads: int, distribution: str) -> WrittenFiles:
        parts = _plan_parts(self)
        memory_bytes = sum(part.memory_bytes for part in parts)
        if is_shuffled(work, distribution, lambda: memory_bytes) or self.where is not None:
            columns = arrow_schema(_uniform_columns(self.schema))
            return write_frame(self.frame(parts), columns, work, distribution, memory_bytes, self._has_long_rows)
        share = task_work(work)
        least = min(parallelism(self.session), MOST_RUNS)
        groups = _shared_out(parts, self._task_count(memory_bytes, round(_FILLED * share.buffer_bytes), least))
        rows = self._numbers(groups).mapInArrow(_writing_task(self._plain(), share, groups), MESSAGE_DDL).collect()
        return gather(work, sorted((pickle.loads(row[0]) for row in rows), key=lambda message: message.task))

    def frame(self, parts: Sequence[FilePart] | None = None) -> DataFrame:
        """The rows as a Spark data frame. Nothing is read yet. Raises InvalidInputError for a file that lacks a column
        that the table asks of each file, and that others have."""
        for file in _unlike(self.files):
            with naming(file.uri, 0):
                _check_roles(self._names(file), self.reader.target.roles & _folded(self.schema))
        parts = _plan_parts(self) if parts is None else parts
        memory_bytes = sum(part.memory_bytes for part in parts)
        groups = _shared_out(parts, self._task_count(memory_bytes, _FRAME_BYTES, parallelism(self.session)))
        columns = _uniform_columns(self.schema)
        task = _reading_task(self._plain(), columns, groups)
        numbers = sized_numbers(self.session, len(groups), memory_bytes, long_rows=self._has_long_rows)
        frame: DataFrame = numbers.mapInArrow(task, spark_schema_of(arrow_schema(columns)))
        return frame if self.where is None else frame.where(self.where)

    def with_constants(self, constants: Mapping[str, pa.Scalar]) -> "FileSource":
        """The source with columns of one value each added: to each file those that it has not already."""
        return replace(self, schema=_with_fields(self.schema, constants), constants=dict(constants))

    def filled(self, constants: Mapping[str, pa.Scalar]) -> "FileSource":
        """The source, whose files that lack one of these columns have its value, where others have the column."""
        present = _folded(self.schema)
        return self.with_constants({name: value for name, value in constants.items() if name.casefold() in present})

    @property
    def _has_long_rows(self) -> bool:
        return are_long(file.row_bytes for file in self.files)

    def _names(self, file: SourceFile) -> frozenset[str]:
        """Of the columns of the file's rows, casefolded."""
        return file.names | {name.casefold() for name in self.constants}

    def _plain(self) -> "FileSource":
        """What a task gets: sessions stay with the driver."""
        return replace(self, session=None, files=())

    def _numbers(self, groups: Sequence[object]) -> Any:
        return self.session.range(0, len(groups), 1, max(1, len(groups)))

    def _task_count(self, memory_bytes: int, task_bytes: int, least: int) -> int:
        """As many tasks as so many bytes a task make; beyond what runs at once, a multiple of that."""
        slots, wanted = parallelism(self.session), -(-memory_bytes // task_bytes)
        return max(least, wanted) if wanted <= slots else -(-wanted // slots) * slots


def open_files(
    session: Any,
    storage: Storage,
    files: Sequence[SourceFile],
    format: str,
    *,
    options: Mapping[str, str] | None = None,
    columns: Sequence[str] | None = None,
    declared: Sequence[Column] = (),
    target: TargetColumns | None = None,
) -> FileSource:
    """Files that were listed, in their order.

    They have the columns of all of them, in the types of the `target`, the table that they are for; files without a row
    say nothing. Of their `columns` just those are read. `declared` columns are the only ones, in these types. Raises
    InvalidInputError for a file that is not what it should be, columns that no file has, and types that do not go
    together.
    """
    reader = SourceReader.of(format, options or {}, columns, declared, target or TargetColumns())
    with ThreadPoolExecutor(_LISTING_THREADS, thread_name_prefix="lakelib-look") as pool:
        found = [file for file in pool.map(lambda file: reader.look_into(storage, file), files) if file is not None]
    alike: dict[pa.Schema, pa.Schema] = {}
    found = [replace(file, schema=alike.setdefault(file.schema, file.schema)) for file in found]
    reader, schema = reader.united(found)
    return FileSource(session=session, storage=storage, files=tuple(found), reader=reader, schema=schema)


def find_all_files(storage: Storage, paths: Sequence[str]) -> tuple[SourceFile, ...]:
    """The files of all paths, which are files, folders or patterns of either. Raises NotFoundError for a path without
    files."""
    return tuple(file for path in paths for file in find_source_files(storage, path))


def _unlike(files: Sequence[SourceFile]) -> list[SourceFile]:
    """The first file of each set of columns."""
    return list({file.names: file for file in reversed(files)}.values())[::-1]


def _names(columns: Sequence[Column]) -> list[str]:
    return [column.name for column in columns]


def _folded(schema: pa.Schema) -> frozenset[str]:
    return frozenset(name.casefold() for name in schema.names)


# Planning


def _plan_parts(source: FileSource) -> list[FilePart]:
    """The files, the large ones of them cut, in their order."""
    if source.reader.format != "parquet":
        return [FilePart(file=file, row_groups=None, memory_bytes=text_bytes(file)) for file in source.files]
    total = sum(file.size_bytes for file in source.files)
    large = min(_LARGE_BYTES, total // (4 * parallelism(source.session)))
    with ThreadPoolExecutor(_LISTING_THREADS, thread_name_prefix="lakelib-list") as pool:
        cut = list(pool.map(lambda file: _cut(source, file, large), source.files))
    return [part for parts in cut for part in parts]


def _cut(source: FileSource, file: SourceFile, large: int) -> list[FilePart]:
    if file.size_bytes <= large:
        return [FilePart(file=file, row_groups=None, memory_bytes=_UNREAD_FACTOR * file.size_bytes)]
    with if_unchanged(source.storage, file):
        groups = list_row_groups(source.storage, file, source.reader.columns)
    return [
        FilePart(file=file, row_groups=(number,), memory_bytes=group.memory_bytes)
        for number, group in enumerate(groups)
    ]


def _shared_out(parts: Sequence[FilePart], task_count: int) -> list[list[FilePart]]:
    """The parts, in their order, in at most so many shares of about equal weight."""
    total = sum(part.memory_bytes for part in parts) or 1
    shares: list[list[FilePart]] = [[] for _ in range(task_count)]
    weight = 0
    for part in parts:
        middle = weight + part.memory_bytes // 2
        shares[min(task_count - 1, middle * task_count // total)].append(part)
        weight += part.memory_bytes
    return [_joined(share) for share in shares if share]


def _joined(parts: Sequence[FilePart]) -> list[FilePart]:
    """Row groups of one file that follow each other are read as one part."""
    joined: list[FilePart] = []
    for part in parts:
        last = joined[-1] if joined else None
        if last is not None and last.file is part.file and last.row_groups and part.row_groups:
            joined[-1] = replace(last, row_groups=last.row_groups + part.row_groups)
        else:
            joined.append(part)
    return joined


# In a task


def _writing_task(source: FileSource, work: WriteWork, groups: Sequence[Sequence[FilePart]]) -> Task:
    """Gets the numbers of shares; reads and writes each, and gives a message of each, also of an error of lakelib's."""

    def write(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                try:
                    message = Message(task=number, written=_write_parts(source, work, groups[number]))
                except LakeError as error:
                    message = Message(task=number, error=error)
                yield pa.record_batch([pa.array([pickle.dumps(message)])], schema=MESSAGE_SCHEMA)

    return write


def _write_parts(source: FileSource, work: WriteWork, parts: Sequence[FilePart]) -> WrittenFiles:
    aligned = _aligned_rows(source, work, parts)
    return write_batches(replace(work, inside=None), work.align(source.schema).schema, aligned, threads=1)


def _aligned_rows(source: FileSource, work: WriteWork, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """The rows as the table wants them, checked here, where it is known which file they are of."""
    for batch, uri, first_row in _aligned_parts(source, parts, work.align):
        if work.inside is not None:
            with naming(uri, first_row):
                work.inside.check(batch)
        yield batch


def _check_roles(given: frozenset[str], roles: frozenset[str]) -> None:
    """Without these a row would land in another partition, or count as older than every other, unnoticed."""
    lacking = sorted(roles - given)
    if lacking:
        raise InvalidInputError(
            f"The column {lacking[0]!r} is missing, and it is one of key, partition or sequence, or may not be NULL.",
            kind="missing_column",
            remedy="Add it to the file; NULL may be its value where the table allows that, but has to be said.",
        )


def _reading_task(source: FileSource, columns: Sequence[Column], groups: Sequence[Sequence[FilePart]]) -> Task:
    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                with told_in_text():
                    for rows in _uniform_rows(source, columns, groups[number]):
                        yield from pa.Table.from_batches([rows]).to_batches(max_chunksize=_OUTPUT_ROWS)

    return read


def _uniform_rows(source: FileSource, columns: Sequence[Column], parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    wanted = TableSchema(id=1, columns=tuple(columns))
    casts = source.reader.target.explicit_cast

    def plan(schema: pa.Schema) -> Alignment:
        return plan_alignment(schema, wanted, required_ids=frozenset(), explicit_cast=casts)

    for batch, _, _ in _aligned_parts(source, parts, plan):
        yield batch


def _uniform_columns(schema: pa.Schema) -> tuple[Column, ...]:
    """The columns of a table that would hold just such rows."""
    return tuple(
        Column(id=column_id, name=found.name, type=column_type_text(found.name, found.type))
        for column_id, found in enumerate(schema, start=1)
    )


def _aligned_parts(
    source: FileSource, parts: Sequence[FilePart], plan: Callable[[pa.Schema], Alignment]
) -> Iterator[tuple[pa.RecordBatch, str, int]]:
    for part in parts:
        uri = part.file.uri
        alignment: Alignment | None = None
        for rows in source.reader.read(source.storage, part.file, part.row_groups):
            first_row = rows.first_row
            for batch in near_batches([_with_constants(rows.batch, part.file, source.constants)]):
                with naming(uri, first_row):
                    alignment = alignment or plan(batch.schema)
                    aligned = alignment.apply(batch)
                yield aligned, uri, first_row
                first_row += batch.num_rows


def _with_constants(batch: pa.RecordBatch, file: SourceFile, constants: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
    """The batch with the constants that the file does not say itself."""
    missing = {name: value for name, value in constants.items() if name.casefold() not in file.names}
    if not missing:
        return batch
    folded = {name.casefold() for name in missing}
    kept = batch.select([name for name in batch.schema.names if name.casefold() not in folded])
    schema = _with_fields(kept.schema, missing)
    added = [pa.repeat(value, batch.num_rows) for value in missing.values()]
    return pa.RecordBatch.from_arrays([*kept.columns, *added], schema=schema)


def _with_fields(schema: pa.Schema, constants: Mapping[str, pa.Scalar]) -> pa.Schema:
    present = {name.casefold() for name in schema.names}
    added = [pa.field(name, value.type) for name, value in constants.items() if name.casefold() not in present]
    return pa.schema([*schema, *added])
