"""Files as a source of rows that never cross the JVM: each Spark task reads its parts with Arrow and writes runs.

The parts are dealt out in the order of the files, and large Parquet files are cut at row groups, so that tasks are
about equally heavy. Of two rows of a key the later one, in that order, is newer. Where rows must be shuffled, and for
people who want a data frame, the files are read by the same code and handed to Spark. It is looked, too, whether a key
of their rows is NULL or comes twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, fields, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.options import MIB
from lakelib.model.schema import Column
from lakelib.rows.convert import python_rows
from lakelib.rows.types import arrow_schema
from lakelib.rows.unite import TargetColumns
from lakelib.storage.filesystem import Storage
from lakelib.work.key_check import Key
from lakelib.work.source_files import SourceFile, if_unchanged, list_row_groups
from lakelib.work.source_rows import (
    FilePart,
    FileRows,
    find_all_files,
    look_into_files,
    uniform_columns,
    uniform_rows,
    write_parts,
)
from lakelib.work.source_text import text_bytes
from lakelib.work.spark.sessions import parallelism
from lakelib.work.spark.sizes import are_long, sized_numbers
from lakelib.work.spark.tasks import MESSAGE_DDL, gather, numbered_task, tell
from lakelib.work.spark.types import spark_schema_of
from lakelib.work.spark.write import MOST_RUNS, is_shuffled, join_runs, task_work, write_frame
from lakelib.work.write import WriteWork, WrittenFiles

__all__ = ["FileSource", "find_all_files", "open_files"]

_LISTING_THREADS = 16
_LARGE_BYTES = 32 * MIB
_UNREAD_FACTOR = 4
"""How much more a Parquet file's rows take in memory than the file, where nothing better is known."""
_SHOWN = 3


_FILLED = 0.95
"""Of what a task can hold, so much is planned: a run more to write is a run more to merge."""

_FRAME_BYTES = 128 * MIB
"""What a task reads for a data frame."""

_OUTPUT_ROWS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource(FileRows):
    """Rows of files that Spark's tasks read."""

    session: Any = field(repr=False)  # type: ignore[misc]
    where: str | None = None
    """A condition of Spark SQL: only the rows for which it is true count."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, read by this process, or collected where they are filtered."""
        if self.where is not None:
            yield from self.frame().toArrow().to_batches()
            return
        yield from FileRows.batches(self)

    def write(self, work: WriteWork, *, threads: int, distribution: str) -> WrittenFiles:
        self.check(work)
        parts = _plan_parts(self)
        memory_bytes = sum(part.memory_bytes for part in parts)
        if is_shuffled(work, distribution, lambda: memory_bytes) or self.where is not None:
            columns = arrow_schema(uniform_columns(self.schema))
            return write_frame(self.frame(parts), columns, work, distribution, memory_bytes, self._has_long_rows)
        own = task_work(work)
        least = min(parallelism(self.session), MOST_RUNS)
        dealt = _dealt(parts, self._task_count(memory_bytes, round(_FILLED * own.buffer_bytes), least))
        source = self._plain()
        task = numbered_task(lambda number: tell(number, lambda: write_parts(source, own, dealt[number], threads=1)))
        root = work.storage.at(work.target.location)
        return join_runs(gather(root, self._numbers(len(dealt)).mapInArrow(task, MESSAGE_DDL).collect()))

    def frame(self, parts: Sequence[FilePart] | None = None) -> DataFrame:
        """The rows as a Spark data frame. Nothing is read yet. Raises InvalidInputError for a file that lacks a column
        that the table asks of each file, and that others have."""
        self.check_roles(self.reader.target.roles & self.folded_names)
        parts = _plan_parts(self) if parts is None else parts
        memory_bytes = sum(part.memory_bytes for part in parts)
        dealt = _dealt(parts, self._task_count(memory_bytes, _FRAME_BYTES, parallelism(self.session)))
        columns = uniform_columns(self.schema)
        source = self._plain()
        task = numbered_task(lambda number: _cut_batches(uniform_rows(source, columns, dealt[number])))
        numbers = sized_numbers(self.session, len(dealt), memory_bytes, long_rows=self._has_long_rows)
        frame: DataFrame = numbers.mapInArrow(task, spark_schema_of(arrow_schema(columns)))
        return frame if self.where is None else frame.where(self.where)

    @property
    def _has_long_rows(self) -> bool:
        return are_long(file.row_bytes for file in self.files)

    def _plain(self) -> "FileSource":
        """What a task gets: sessions stay with the driver."""
        return replace(self, session=None, files=())

    def _numbers(self, count: int) -> Any:
        return self.session.range(0, count, 1, max(1, count))

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
    """As `look_into_files`, for Spark's tasks to read."""
    found = look_into_files(storage, files, format, options=options, columns=columns, declared=declared, target=target)
    return FileSource(session=session, **{each.name: getattr(found, each.name) for each in fields(found)})


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


def _dealt(parts: Sequence[FilePart], task_count: int) -> list[list[FilePart]]:
    """The parts, in their order, for at most so many tasks, of about equal weight."""
    total = sum(part.memory_bytes for part in parts) or 1
    dealt: list[list[FilePart]] = [[] for _ in range(task_count)]
    weight = 0
    for part in parts:
        middle = weight + part.memory_bytes // 2
        dealt[min(task_count - 1, middle * task_count // total)].append(part)
        weight += part.memory_bytes
    return [_joined(some) for some in dealt if some]


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


def _cut_batches(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        yield from pa.Table.from_batches([batch]).to_batches(max_chunksize=_OUTPUT_ROWS)


def find_repeated(source: FileSource, key: Sequence[Column], partition_by: Sequence[Column]) -> tuple[Key, ...]:
    """As `lakelib.work.key_check.find_repeated`; of a key that is NULL the error says how often."""
    columns = tuple({column.id: column for column in (*partition_by, *key)}.values())
    names = [_quoted(column.name) for column in columns]
    frame = source.frame().select(*names)
    lacking = [sql.sum(sql.col(_quoted(column.name)).isNull().cast("bigint")) for column in key]
    counts = frame.agg(*lacking).collect()[0]
    for column, count in zip(key, counts, strict=True):
        if count:
            raise InvalidInputError(
                f"Column {column.name!r} is NULL in {count:,} rows, and may not be NULL.",
                kind="null_value",
                remedy="Give values, or choose another key.",
            )
    twice = frame.groupBy(*names).count().where("count > 1").limit(_SHOWN).select(*names)
    return tuple(python_rows(twice.toArrow().cast(arrow_schema(columns))))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
