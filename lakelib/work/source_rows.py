"""Work. The rows of files that somebody else has written, as a table wants them: which columns all of them have
together, what each must have itself, and batches that are checked where it is known which file they are of.

The same in process and in Spark's tasks. In process such rows are a source that a table's writes take.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import field, replace
from typing import Any, ClassVar, Self

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column, TableSchema
from lakelib.rows.align import Alignment, plan_alignment
from lakelib.rows.buffers import near_batches
from lakelib.rows.types import column_type_text
from lakelib.rows.unite import TargetColumns
from lakelib.storage.filesystem import Storage
from lakelib.work.parallel import stream_ahead
from lakelib.work.source_files import SourceFile, find_source_files, naming
from lakelib.work.source_reader import SourceReader
from lakelib.work.write import WriteWork, WrittenFiles, write_batches

_LOOKING_THREADS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """A file, or some row groups of it that follow each other."""

    file: SourceFile
    row_groups: tuple[int, ...] | None
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRows:
    """Files that were looked into, in their order: of two rows of a key the later one is newer."""

    storage: Storage
    files: tuple[SourceFile, ...]
    """Those that have a row."""
    reader: SourceReader
    schema: pa.Schema
    """The columns of all files together."""
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)
    session: ClassVar[Any] = None

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
        """All rows, read by this process, in the columns that all files have together."""
        yield from uniform_rows(self, uniform_columns(self.schema), self.whole_files)

    def check(self, work: WriteWork) -> None:
        """Values are seen when they are read."""
        self.check_roles(frozenset((*work.target.order_names, *_names(work.target.partition_by))))
        for file in _unlike(self.files):
            with naming(file.uri, 0):
                work.align(pa.schema([each for each in self.schema if each.name.casefold() in self._names(file)]))
        work.align(self.schema)

    def check_roles(self, names: frozenset[str]) -> None:
        """Raises InvalidInputError for a file that lacks a column of these names. Without it a row would land in
        another partition, or count as older than every other, unnoticed."""
        roles = frozenset(name.casefold() for name in names)
        for file in _unlike(self.files):
            lacking = sorted(roles - self._names(file))
            if lacking:
                with naming(file.uri, 0):
                    raise _lacking(lacking[0])

    def write(self, work: WriteWork, *, threads: int, distribution: str) -> WrittenFiles:
        self.check(work)
        return write_parts(self, work, self.whole_files, threads)

    def with_constants(self, constants: Mapping[str, pa.Scalar]) -> Self:
        """The source with columns of one value each added: to each file those that it has not already."""
        return replace(self, schema=_with_fields(self.schema, constants), constants=dict(constants))

    def filled(self, constants: Mapping[str, pa.Scalar]) -> Self:
        """The source, whose files that lack one of these columns have its value, where others have the column."""
        present = self.folded_names
        return self.with_constants({name: value for name, value in constants.items() if name.casefold() in present})

    @property
    def folded_names(self) -> frozenset[str]:
        """Of the columns that all files have together."""
        return frozenset(name.casefold() for name in self.schema.names)

    @property
    def whole_files(self) -> list[FilePart]:
        return [FilePart(file=file, row_groups=None, memory_bytes=0) for file in self.files]

    def _names(self, file: SourceFile) -> frozenset[str]:
        """Of the columns of the file's rows, casefolded."""
        return file.names | {name.casefold() for name in self.constants}


def find_all_files(storage: Storage, paths: Sequence[str]) -> tuple[SourceFile, ...]:
    """The files of all paths, which are files, folders or patterns of either. Raises NotFoundError for a path without
    files."""
    return tuple(file for path in paths for file in find_source_files(storage, path))


def look_into_files(
    storage: Storage,
    files: Sequence[SourceFile],
    format: str,
    *,
    options: Mapping[str, str] | None = None,
    columns: Sequence[str] | None = None,
    declared: Sequence[Column] = (),
    target: TargetColumns | None = None,
) -> FileRows:
    """Files that were listed, in their order.

    They have the columns of all of them, in the types of the `target`, the table that they are for; files without a row
    say nothing. Of their `columns` just those are read. `declared` columns are the only ones, in these types. Raises
    InvalidInputError for a file that is not what it should be, columns that no file has, and types that do not go
    together.
    """
    reader = SourceReader.of(format, options or {}, columns, declared, target or TargetColumns())
    with ThreadPoolExecutor(_LOOKING_THREADS, thread_name_prefix="lakelib-look") as pool:
        found = [file for file in pool.map(lambda file: reader.look_into(storage, file), files) if file is not None]
    alike: dict[pa.Schema, pa.Schema] = {}
    found = [replace(file, schema=alike.setdefault(file.schema, file.schema)) for file in found]
    reader, schema = reader.united(found)
    return FileRows(storage=storage, files=tuple(found), reader=reader, schema=schema)


def write_parts(source: FileRows, work: WriteWork, parts: Sequence[FilePart], threads: int) -> WrittenFiles:
    """Writes the rows of the parts as runs. An error leaves no file behind."""
    alignment = work.align(work.align(source.schema).schema)
    with closing(stream_ahead(parts, lambda part: _aligned_rows(source, work, part), threads)) as aligned:
        return write_batches(replace(work, inside=None), alignment, aligned, threads)


def uniform_rows(source: FileRows, columns: Sequence[Column], parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """The rows of the parts, all in these columns."""
    wanted = TableSchema(id=1, columns=tuple(columns))
    casts = source.reader.target.explicit_cast

    def plan(schema: pa.Schema) -> Alignment:
        return plan_alignment(schema, wanted, required_ids=frozenset(), explicit_cast=casts)

    for batch, _ in _aligned_parts(source, parts, plan):
        yield batch


def uniform_columns(schema: pa.Schema) -> tuple[Column, ...]:
    """The columns of a table that would hold just such rows."""
    return tuple(
        Column(id=column_id, name=found.name, type=column_type_text(found.name, found.type))
        for column_id, found in enumerate(schema, start=1)
    )


def _aligned_rows(source: FileRows, work: WriteWork, part: FilePart) -> Iterator[pa.RecordBatch]:
    """The rows as the table wants them, checked here, where it is known which file they are of."""
    for batch, uri in _aligned_parts(source, [part], work.align):
        if work.inside is not None:
            with naming(uri):
                work.inside.check(batch)
        yield batch


def _aligned_parts(
    source: FileRows, parts: Sequence[FilePart], plan: Callable[[pa.Schema], Alignment]
) -> Iterator[tuple[pa.RecordBatch, str]]:
    """The batches, each with its file."""
    for part in parts:
        uri, find_lines = part.file.uri, source.reader.line_finder(source.storage, part.file)
        alignment: Alignment | None = None
        for rows in source.reader.read(source.storage, part.file, part.row_groups):
            done = 0
            for batch in near_batches(_with_constants(rows.batch, part.file, source.constants)):
                numbers = None if rows.numbers is None else rows.numbers[done : done + batch.num_rows]
                with naming(uri, rows.first_row + done, find_lines, numbers):
                    alignment = alignment or plan(batch.schema)
                    aligned = alignment.apply(batch)
                yield aligned, uri
                done += batch.num_rows


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


def _unlike(files: Sequence[SourceFile]) -> list[SourceFile]:
    """The first file of each set of columns."""
    return list({file.names: file for file in reversed(files)}.values())[::-1]


def _names(columns: Sequence[Column]) -> list[str]:
    return [column.name for column in columns]


def _lacking(name: str) -> InvalidInputError:
    return InvalidInputError(
        f"The column {name!r} is missing, and it is one of key, partition or sequence, or may not be NULL.",
        kind="missing_column",
        remedy="Add it to the file; NULL may be its value where the table allows that, but has to be said.",
    )
