"""Reads a planned scan as a Spark data frame.

Files that need no merge are read by Spark's own Parquet reader where it reaches them, and all of them where their masks
are known; all else goes through the kernels, so many parts a task. Splits that would keep a job waiting are cut by key.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructType

from lakelib.model.files import DataFile, Split
from lakelib.model.predicate import Predicate
from lakelib.model.schema import COMMIT_COLUMN, Column
from lakelib.plan.scan import balance, choose_part_count, choose_task_count, is_small, needs_merge
from lakelib.plan.where import COMMIT
from lakelib.rows.types import arrow_field, arrow_schema, arrow_type
from lakelib.storage.filesystem import Storage
from lakelib.storage.parquet import check_sizes
from lakelib.work.read import ReadTarget, cut_split
from lakelib.work.spark.conditions import condition, fits_the_jvm, named
from lakelib.work.spark.opened import ROW_INDEX, opened, tells_places, without_masked
from lakelib.work.spark.sessions import is_reached_by_jvm, parallelism
from lakelib.work.spark.sizes import are_long, row_bytes, sized_numbers
from lakelib.work.spark.tasks import ReadPart, reading_task
from lakelib.work.spark.types import spark_schema_of

_PLAIN_URI = re.compile(r"[A-Za-z0-9_./:=,+@ -]*\Z")
"""Spark takes other characters of a path for a pattern, or for an escape."""

_READ_OPTIONS = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
}
"""Whatever the session says: no file is left out in silence, and old dates are those that were written."""

_MOST_MASKED_ROWS = 2_000_000_000
"""Every executor gets a bit for each row of a file with a mask: 256 MB for so many."""

_MOST_LOOKED_UP = 0.25
"""Each row of a frame with masks is looked up: two frames cost more than looking up this share of rows in vain."""

_MOST_SMALL_FILES = 500
"""Of more the kernels read many at a time, where Spark opens each by itself."""

_FLOATS = ("float", "double")

_MOST_FRAMES = 20
"""Files of one schema version (and of one commit, where that is asked for) are one frame. Of many, the plan is slow."""


def read_frame(
    session: SparkSession,
    storage: Storage,
    target: ReadTarget,
    splits: Sequence[Split],
    vectors: Mapping[int, bytes] | None = None,
) -> DataFrame:
    """The rows of the splits; the vectors of the files' masks are given only if `takes_masks` says so. Nothing is read
    yet."""
    plain = _plain_target(target)
    if vectors is not None:
        return _masked_frame(session, storage, plain, splits, vectors)
    own = [split for split in splits if _is_plain(storage, plain, split)]
    frames = _plain_groups(plain, own)
    if len(frames) > _MOST_FRAMES or not (plain.predicate is None or fits_the_jvm(plain.predicate)):
        own, frames = [], {}
    found = [_plain_frame(session, storage, plain, files) for files in frames.values()]
    direct = {id(split) for split in own}
    merged = [split for split in splits if id(split) not in direct]
    if merged or not found:
        found.append(_merged_frame(session, storage, target, merged))
    return _together(found)


def takes_masks(session: SparkSession, storage: Storage, target: ReadTarget, splits: Sequence[Split]) -> bool:
    """Whether Spark's own reader can read all files, and would not read them anyway."""
    target = _plain_target(target)
    if target.engine is not None or all(_is_plain(storage, target, split) for split in splits):
        return False
    files = _files_of(splits)
    return (
        all(_is_plain_file(storage, target, file) for file in files)
        and len({_group_of(target, file) for file in files}) * 2 <= _MOST_FRAMES
        and sum(file.row_count for file in files) <= _MOST_MASKED_ROWS
        and not _have_long_rows(files)
        and sum(map(is_small, files)) <= _MOST_SMALL_FILES
        and (target.predicate is None or fits_the_jvm(target.predicate))
        and tells_places(session)
    )


# Read by the JVM


def _plain_target(target: ReadTarget) -> ReadTarget:
    """What Spark's own reader is asked for: it hears of a predicate from the query that asks it again."""
    return replace(target, predicate=None, asked_columns=()) if target.is_asked_again else target


def _masked_frame(
    session: SparkSession,
    storage: Storage,
    target: ReadTarget,
    splits: Sequence[Split],
    vectors: Mapping[int, bytes],
) -> DataFrame:
    """Every file once, whichever splits it belongs to, without its masked rows."""
    groups: dict[tuple[int, int | None], list[DataFile]] = defaultdict(list)
    for file in _files_of(splits):
        groups[_group_of(target, file)].append(file)
    parts = [part for files in groups.values() for part in _read_together(files, vectors)]
    return _together([_plain_frame(session, storage, target, files, vectors) for files in parts])


def _read_together(files: Sequence[DataFile], vectors: Mapping[int, bytes]) -> list[list[DataFile]]:
    """In one frame, unless so many of the rows are in files without a mask that it pays not to look them up."""
    whole = [file for file in files if file.id not in vectors]
    unmasked = sum(file.row_count for file in whole)
    if unmasked <= _MOST_LOOKED_UP * sum(file.row_count for file in files):
        return [list(files)]
    return [part for part in ([file for file in files if file.id in vectors], whole) if part]


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    """One after the other. Of columns that are those of the first one, Spark 4.3 loses sight where an inner query asks
    for them and its values are grouped: they have names of their own."""
    if len(frames) == 1:
        return frames[0]
    return reduce(DataFrame.unionAll, frames).toDF(*frames[0].columns)


def _files_of(splits: Sequence[Split]) -> list[DataFile]:
    return list({file.id: file for split in splits for file in split.files}.values())


def _is_plain(storage: Storage, target: ReadTarget, split: Split) -> bool:
    """Whether the split's files hold just its rows, in the types that are wanted, where Spark finds them."""
    if target.primary_key and (needs_merge(split) or any(file.depth < split.depth for file in split.files)):
        return False
    return all(_is_plain_file(storage, target, file) for file in split.files)


def _is_plain_file(storage: Storage, target: ReadTarget, file: DataFile) -> bool:
    stored = target.schemas[file.schema_id]
    uri = storage.at(target.location).uri_of(file.path)
    if not is_reached_by_jvm(uri) or not _PLAIN_URI.match(uri):
        return False
    kept = ((column, stored.by_id(column.id)) for column in _columns_read(target))
    return all(found is None or (found.type == column.type and _is_safe(found)) for column, found in kept)


def _is_safe(column: Column) -> bool:
    """Whether Spark may read the column itself: see `_shielded`, which does not reach fields of a struct."""
    return not _has_float_field(arrow_type(column.type))


def _has_float_field(kind: pa.DataType) -> bool:
    if not pa.types.is_struct(kind):
        return False
    return any(pa.types.is_floating(field.type) or _has_float_field(field.type) for field in kind)


def _columns_read(target: ReadTarget) -> list[Column]:
    """The stored columns that are wanted or that the predicate looks at."""
    columns = {column.id: column for column in (*target.columns, *target.asked_columns) if column.id != COMMIT.id}
    return list(columns.values())


def _plain_groups(target: ReadTarget, splits: Sequence[Split]) -> dict[tuple[int, int | None], list[DataFile]]:
    """The files by what must be known of them to read them: schema version, and commit where that is wanted."""
    groups: dict[tuple[int, int | None], list[DataFile]] = defaultdict(list)
    for split in splits:
        for file in split.files:
            groups[_group_of(target, file)].append(file)
    return groups


def _group_of(target: ReadTarget, file: DataFile) -> tuple[int, int | None]:
    return file.schema_id, file.sequence if _asks_commit(target) else None


def _asks_commit(target: ReadTarget) -> bool:
    return COMMIT in (*target.columns, *target.asked_columns)


def _plain_frame(
    session: SparkSession,
    storage: Storage,
    target: ReadTarget,
    files: Sequence[DataFile],
    vectors: Mapping[int, bytes] = MappingProxyType({}),
) -> DataFrame:
    """The rows of files of one group, without those that are masked."""
    stored = target.schemas[files[0].schema_id]
    columns = _columns_read(target)
    kept = [found for found in (stored.by_id(column.id) for column in columns) if found is not None]
    root = storage.at(target.location)
    frame = _opened(session, root, files, _file_schema(kept), vectors)
    if _asks_commit(target) or not all(_is_shown_so(column, stored.by_id(column.id)) for column in columns):
        shown = [_shown(column, stored.by_id(column.id)).alias(column.name) for column in columns]
        if _asks_commit(target):
            commit = sf.coalesce(sf.col(COMMIT_COLUMN), sf.lit(files[0].sequence).cast("bigint"))
            shown.append(commit.alias(COMMIT_COLUMN))
        frame = frame.select(*shown)
    if target.predicate is not None:
        frame = frame.where(condition(target.predicate))
    return frame.select(*(named(column.name) for column in target.columns))


def _opened(
    session: SparkSession,
    root: Storage,
    files: Sequence[DataFile],
    schema: StructType,
    vectors: Mapping[int, bytes],
) -> DataFrame:
    """The files as they are, without their masked rows."""
    is_masked = any(file.id in vectors for file in files)
    if is_masked:
        check_sizes(root, [(file.path, file.size_bytes) for file in files])
        schema = schema.add(ROW_INDEX, LongType())
    uris = [root.uri_of(file.path) for file in files]

    def open_files() -> DataFrame:
        frame = session.read.schema(schema).options(**_READ_OPTIONS).parquet(*uris)
        return without_masked(session, frame, files, vectors) if is_masked else frame

    return opened(session, uris, schema, [vectors.get(file.id, b"") for file in files] if is_masked else [], open_files)


def _is_shown_so(column: Column, stored: Column | None) -> bool:
    """Whether the file's column is the column: each that is made takes some calls into the JVM."""
    return stored is not None and stored.name == column.name and stored.type not in _FLOATS


def _shown(column: Column, stored: Column | None) -> SparkColumn:
    """The column as the file has it; NULL where the file is older than the column."""
    if stored is None:
        return sf.lit(None).cast(spark_schema_of(pa.schema([arrow_field(column)])).fields[0].dataType)
    return _shielded(stored)


def _shielded(column: Column) -> SparkColumn:
    """The same values. Behind the function no comparison of floats is pushed down to Spark's Parquet reader, which
    would drop row groups for bounds that leave out NaN, and for dictionaries in which -0.0 is not 0.0."""
    value = named(column.name)
    return sf.nanvl(value, value) if column.type in _FLOATS else value


def _file_schema(columns: Sequence[Column]) -> StructType:
    return spark_schema_of(arrow_schema(columns)).add(COMMIT_COLUMN, LongType())


# Read by the kernels


def _merged_frame(session: SparkSession, storage: Storage, target: ReadTarget, splits: Sequence[Split]) -> DataFrame:
    schema = spark_schema_of(target.output_schema)
    if not splits:
        return session.createDataFrame([], schema)
    dealt = deal_parts(storage, target, splits, parallelism(session))
    long_rows = _have_long_rows(_files_of(splits))
    numbers = sized_numbers(session, len(dealt), _size_bytes(target, splits), long_rows=long_rows)
    return numbers.mapInArrow(reading_task(storage, target, dealt), schema)


def _have_long_rows(files: Sequence[DataFile]) -> bool:
    """Of which Spark has to be told, where Python gets the rows in the end."""
    return are_long(file.size_bytes // max(1, file.row_count) for file in files)


def _size_bytes(target: ReadTarget, splits: Sequence[Split]) -> int:
    """At most so many bytes have the rows, as far as is known: what Spark takes such rows to have, or, where values are
    long, what the columns take in the files."""
    files = {file.path: file for split in splits for file in split.files}.values()
    wanted = row_bytes(target.output_schema)
    stored = max(row_bytes(arrow_schema(schema.columns)) for schema in target.schemas.values())
    taken = sum(file.size_bytes for file in files) * min(wanted, stored) // stored
    return max(wanted * sum(file.row_count for file in files), taken)


def deal_parts(storage: Storage, target: ReadTarget, splits: Sequence[Split], slots: int) -> list[list[ReadPart]]:
    """The splits, cut where they are large, dealt to tasks that are about equally heavy."""
    parts = _cut_parts(storage, target, splits, slots)
    sizes = [part.size_bytes for part in parts]
    dealt = balance(sizes, choose_task_count(sum(sizes), len(parts), slots))
    return [[parts[place] for place in places] for places in dealt]


def _cut_parts(storage: Storage, target: ReadTarget, splits: Sequence[Split], slots: int) -> list[ReadPart]:
    total = sum(split.size_bytes for split in splits)
    parts: list[ReadPart] = []
    for split in splits:
        count = choose_part_count(split.size_bytes, total, slots)
        ranges: Sequence[Predicate | None] = cut_split(storage, target, split, count) if count > 1 else [None]
        parts += [ReadPart(split=split, within=within, size_bytes=split.size_bytes // len(ranges)) for within in ranges]
    return parts
