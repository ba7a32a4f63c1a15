"""Work. Reads a split: its files' rows, merged by key, filtered, projected.

Rows are merged first and filtered afterwards; only what the predicate says of key and partition columns, which all
versions of a row share, is used before.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.model.files import DataFile, Split
from lakelib.model.predicate import And, Compare, Comparison, In, Predicate, Raw, columns_of, conjuncts_of
from lakelib.model.schema import COMMIT_COLUMN, OP_COLUMN, Column, TableSchema
from lakelib.model.sortable import decode
from lakelib.plan.prune import Bounds, key_part, may_match
from lakelib.plan.scan import gather_files, is_small, needs_merge
from lakelib.plan.where import COMMIT
from lakelib.rows.align import FileAlignment, plan_file_alignment
from lakelib.rows.buffers import array_of_mask
from lakelib.rows.filter import matching_rows
from lakelib.rows.hash import hash_prefixes, key_hashes
from lakelib.rows.key_set import KeySet
from lakelib.rows.merge import Window, arrange_window, merge_tables, merge_windows
from lakelib.rows.merge_engine import Engine, live_rows, stored_schema, with_op
from lakelib.rows.raw_arrays import arrow_values
from lakelib.rows.types import arrow_field, as_schema, hidden_field
from lakelib.storage.filesystem import Storage
from lakelib.storage.parquet import ParquetReader, open_file
from lakelib.work.parallel import read_ahead
from lakelib.work.small_files import AlikeFiles, open_alike

Mask = npt.NDArray[np.bool_]

MOST_SOUGHT = 100
"""Of more values than these some is nearly always admitted by a row group's Bloom filter."""

_MOST_OPEN_FILES = 64
"""Of a split with more files than this none stays open between two row groups: a process may open only so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTarget:
    """What a reader needs to know of a table and of what is wanted. Plain values: a task gets it by pickle."""

    location: str
    schemas: Mapping[int, TableSchema]
    """The schema versions of the files."""
    columns: tuple[Column, ...]
    """What the reader gives, in order; `plan.where.COMMIT` among them for the commit of each row."""
    predicate: Predicate | None
    asked_columns: tuple[Column, ...]
    """The columns that the predicate looks at."""
    is_asked_again: bool = False
    """Whether who gets the rows asks the predicate of each: it may be left out where that costs less."""
    primary_key: tuple[Column, ...]
    partition_by: tuple[Column, ...]
    sequence_by: tuple[Column, ...]
    among: KeySet | None = None
    """Only rows whose keys may be in the set, if there is one."""
    among_like: Predicate | None = None
    """What all keys of the set are like: it rules out row groups, and is asked of no row."""
    engine: Engine | None = None
    """What makes one row of the versions of a key; None: the newest is the row."""

    @property
    def output_schema(self) -> pa.Schema:
        return _output_schema(self.columns)

    @property
    def order_names(self) -> list[str]:
        """By which the newest version is known. An engine knows by itself."""
        return [column.name for column in self.sequence_by] if self.engine is None else []

    def within(self, predicate: Predicate | None) -> "ReadTarget":
        """The same rows as far as they match; the predicate is over key columns."""
        if predicate is None:
            return self
        both = predicate if self.predicate is None else And(parts=(self.predicate, predicate))
        asked = dict.fromkeys((*self.asked_columns, *self.primary_key))
        return replace(self, predicate=both, asked_columns=tuple(asked))


def read_split(storage: Storage, target: ReadTarget, split: Split) -> Iterator[pa.Table]:
    """The split's rows in parts of at most a row group a file. Memory does not grow with the split."""
    yield from read_splits(storage, target, (split,))


def read_splits(storage: Storage, target: ReadTarget, splits: Sequence[Split], threads: int = 1) -> Iterator[pa.Table]:
    """The rows of one split, or of several that `plan.scan.gather_splits` has put together. With several threads small
    files are read ahead of who takes the rows."""
    plan = _ReadPlan(target, splits)
    with _open_runs(storage, plan, threads) as runs:
        if plan.merges:
            for parts in _merge(target, runs):
                for rows, mask in parts:
                    yield from _finish(plan, rows, mask)
        else:
            for run in runs:
                for rows in run:
                    yield from _finish(plan, rows, None)


def read_newest(storage: Storage, target: ReadTarget, split: Split) -> Iterator[pa.Table]:
    """The newest row of each key, delete marks too, with `_op` where there may be any. Of the predicate that part
    counts which looks at the key and the partition alone."""
    fixed_ids = {column.id for column in target.primary_key + target.partition_by}
    plan = _ReadPlan(replace(target, predicate=key_part(target.predicate, fixed_ids)), (split,))
    with _open_runs(storage, plan) as runs:
        if plan.merges:
            for parts in _merge(target, runs):
                for rows, mask in parts:
                    yield _with_deletes(target, rows if mask is None else rows.filter(pa.array(mask)))
        else:
            yield from (_with_deletes(target, rows) for run in runs for rows in run)


def read_versions(storage: Storage, target: ReadTarget, split: Split) -> Iterator[pa.Table]:
    """Rows as the files have them, none merged with another, delete marks too, with `_op` where there may be any.
    The predicate is over key columns."""
    plan = _ReadPlan(target, (split,), apart=True)
    with _open_runs(storage, plan) as runs:
        yield from (_with_deletes(target, rows) for run in runs for rows in run)


def read_newest_in_order(storage: Storage, target: ReadTarget, split: Split) -> Iterator[pa.Table]:
    """The newest row of each key, deletes too, all with `_op`, sorted by key: a run. Of the predicate that part counts
    which looks at the key and the partition alone."""
    fixed_ids = {column.id for column in target.primary_key + target.partition_by}
    plan = _ReadPlan(replace(target, predicate=key_part(target.predicate, fixed_ids)), (split,), in_order=True)
    names = [column.name for column in target.primary_key]
    with _open_runs(storage, plan) as runs:
        for parts in _merge(target, runs):
            kept = [rows if mask is None else rows.filter(array_of_mask(mask)) for rows, mask in parts]
            yield arrange_window([(with_op(_with_deletes(target, rows)), None) for rows in kept], names)


def _merge(target: ReadTarget, runs: Sequence[Iterator[pa.Table]]) -> Iterator[Window]:
    names = [column.name for column in target.primary_key]
    return merge_windows(runs, names, target.order_names, engine=target.engine)


def _with_deletes(target: ReadTarget, rows: pa.Table) -> pa.Table:
    plain = as_schema(rows.select([column.name for column in target.columns]), target.output_schema)
    if OP_COLUMN not in rows.column_names:
        return plain
    return plain.append_column(OP_COLUMN, rows.column(OP_COLUMN))


def cut_split(storage: Storage, target: ReadTarget, split: Split, part_count: int) -> list[Predicate | None]:
    """Ranges of the first key column, about equally full, that together are the split: at most so many.

    They follow the row groups of its largest file, which is sorted by key. [None], the whole, if it cannot be cut.
    """
    if not target.primary_key:
        return [None]
    column = target.primary_key[0]
    largest = max(split.files, key=lambda file: file.size_bytes)
    stored = target.schemas[largest.schema_id].by_id(column.id)
    if stored is None or stored.type != column.type:
        return [None]
    with open_file(storage, target.location, largest.path, largest.size_bytes) as reader:
        starts = [
            reader.row_group_bounds(number, stored.name, stored.type).lower for number in range(reader.row_group_count)
        ]
    step = max(1, -(-len(starts) // part_count))
    cuts = sorted({start for start in starts[step::step] if start is not None and start != starts[0]})
    points = [decode(column.type, cut) for cut in cuts]
    edges = zip([None, *points], [*points, None], strict=True)
    return [_between(column, low, high) for low, high in edges]


def _between(column: Column, low: Raw | None, high: Raw | None) -> Predicate | None:
    """Values from `low` on and below `high`; None is no limit."""
    parts: list[Predicate] = []
    if low is not None:
        parts.append(Compare(column=column, op=Comparison.GE, value=low))
    if high is not None:
        parts.append(Compare(column=column, op=Comparison.LT, value=high))
    return And(parts=tuple(parts)) if parts else None


class _ReadPlan:
    """What is the same for all files that are read together. Only the rows of a single split are ever merged."""

    def __init__(
        self, target: ReadTarget, splits: Sequence[Split], *, in_order: bool = False, apart: bool = False
    ) -> None:
        """`in_order`: the rows are merged, and sorted by that, in any case; `apart`: in none."""
        self.target = target
        self.split = split = splits[0]
        self._is_alone = len(splits) == 1
        self.files = [file for one in splits for file in one.files]
        self.merges = self._is_alone and bool(target.primary_key) and not apart and (in_order or needs_merge(split))
        known = _known_columns(target)
        self.early_predicate = _early_predicate(target, self.merges, frozenset(known) - {COMMIT.id})
        self.late_predicate = target.predicate if target.predicate != self.early_predicate else None
        self.sought = _sought_values(self.early_predicate, target.primary_key)
        early_ids = _ids_in(self.early_predicate)
        if target.among is not None:
            early_ids |= {column.id for column in target.primary_key}
        wanted_ids = {column.id for column in target.columns} | _ids_in(self.late_predicate)
        if self.merges:
            merging = merging_columns(target, wanted_ids)
            known |= {column.id: column for column in merging}
            wanted_ids |= {column.id for column in merging}
        elif any(self.is_shared(file) for file in split.files):
            wanted_ids |= {column.id for column in target.primary_key}
        judged_ids = _ids_in(self.late_predicate) | {column.id for column in target.primary_key + target.sequence_by}
        self.carried_columns = tuple(
            column
            for column in target.columns
            if column.type in ("string", "binary") and column.id not in judged_ids | early_ids
            if target.engine is None or not self.merges
        )
        self.needs_commit = COMMIT.id in wanted_ids
        self.early_columns = tuple(known[column_id] for column_id in sorted(early_ids))
        self.late_columns = tuple(known[column_id] for column_id in sorted(wanted_ids - early_ids - {COMMIT.id}))
        self._alignments: dict[int, tuple[FileAlignment, FileAlignment]] = {}
        self._stored: dict[int, TableSchema] = {}

    def stored(self, schema_id: int) -> TableSchema:
        """The columns of files of one version of the schema."""
        if schema_id not in self._stored:
            self._stored[schema_id] = stored_schema(self.target.engine, self.target.schemas[schema_id])
        return self._stored[schema_id]

    @property
    def asks_early(self) -> bool:
        """Whether rows are left out before they are merged."""
        return self.early_predicate is not None or self.target.among is not None

    def early_mask(self, asked: pa.Table) -> Mask:
        """The rows that pass, given their early columns."""
        among = self.target.among
        if self.early_predicate is None:
            mask = np.ones(asked.num_rows, np.bool_)
        else:
            mask = matching_rows(self.early_predicate, asked).to_numpy(zero_copy_only=False)
        if among is not None:
            mask = mask & among.may_have([asked.column(column.name) for column in self.target.primary_key])
        return mask

    def is_shared(self, file: DataFile) -> bool:
        """Whether the file covers more keys than its split does. No file of splits that are read together does."""
        return self._is_alone and file.depth < self.split.depth

    def alignments(self, schema_id: int) -> tuple[FileAlignment, FileAlignment]:
        """Of the early and of the late columns, for files of one schema."""
        if schema_id not in self._alignments:
            stored = self.stored(schema_id)
            early, late = (plan_file_alignment(stored, columns) for columns in (self.early_columns, self.late_columns))
            self._alignments[schema_id] = early, late
        return self._alignments[schema_id]


def merging_columns(target: ReadTarget, wanted_ids: Collection[int]) -> tuple[Column, ...]:
    """What merging rows with these columns takes beside them."""
    if target.engine is None:
        return target.primary_key + target.sequence_by
    return target.primary_key + target.engine.needed(wanted_ids)


def _early_predicate(target: ReadTarget, merges: bool, stored_ids: frozenset[int]) -> Predicate | None:
    """What may be asked of a row before it is known whether it is the newest of its key."""
    if target.predicate is None:
        return None
    fixed_ids = frozenset(column.id for column in target.primary_key + target.partition_by)
    return key_part(target.predicate, fixed_ids if merges else stored_ids)


def _sought_values(predicate: Predicate | None, primary_key: Sequence[Column]) -> list[tuple[Column, pa.Array]]:
    """The key columns of which every match has one of a few values, and those values."""
    sought: list[tuple[Column, pa.Array]] = []
    for conjunct in conjuncts_of(predicate):
        match conjunct:
            case Compare(column=Column() as column, op=Comparison.EQ, value=raw) if column in primary_key:
                sought.append((column, arrow_values(column.type, [raw])))
            case In(column=Column() as column, values=raws) if column in primary_key and 0 < len(raws) <= MOST_SOUGHT:
                sought.append((column, arrow_values(column.type, raws)))
    return sought


def _known_columns(target: ReadTarget) -> dict[int, Column]:
    columns = (*target.primary_key, *target.partition_by, *target.sequence_by, *target.columns, *target.asked_columns)
    return {column.id: column for column in columns}


def _ids_in(predicate: Predicate | None) -> frozenset[int]:
    return frozenset() if predicate is None else columns_of(predicate)


@contextmanager
def _open_runs(storage: Storage, plan: _ReadPlan, threads: int = 1) -> Iterator[list[Iterator[pa.Table]]]:
    """The rows of each file, and of small files that follow each other. Where rows are merged each is one run."""

    def read_small(files: Sequence[DataFile]) -> list[pa.Table]:
        return _read_small_run(storage, plan, files)

    gathered = list(gather_files(plan.files))
    with read_ahead([files for files in gathered if is_small(files[0])], read_small, threads) as reads:
        waiting = iter(reads)
        yield [
            _once_read(next(waiting)) if is_small(files[0]) else _read_file(storage, plan, files[0])
            for files in gathered
        ]


def _once_read(read: Callable[[], list[pa.Table]]) -> Iterator[pa.Table]:
    yield from read()


def _read_small_run(storage: Storage, plan: _ReadPlan, files: Sequence[DataFile]) -> list[pa.Table]:
    found = [rows for rows in _read_small_files(storage, plan, files) if rows.num_rows]
    if not (plan.merges and len(files) > 1 and found):
        return found
    key_names = [column.name for column in plan.target.primary_key]
    target = plan.target
    return [merge_tables(_of_one_schema(plan, found), key_names, target.order_names, target.engine)]


def _read_small_files(storage: Storage, plan: _ReadPlan, files: Sequence[DataFile]) -> Iterator[pa.Table]:
    """The files' rows that belong to the split and pass the early predicate: a table for files that are alike."""
    for alike in open_alike(storage, plan.target.location, files):
        rows = _read_alike(plan, alike)
        if rows is not None and any(plan.is_shared(file) for file in alike.files):
            rows = _of_prefix(rows, plan)
        if rows is not None:
            yield rows


def _read_alike(plan: _ReadPlan, alike: AlikeFiles) -> pa.Table | None:
    """The matching rows, or None. Columns that only a match needs are read of the files that have one."""
    early, late = plan.alignments(alike.schema_id)
    if not plan.asks_early:
        return _read_alike_late(plan, late, alike)
    asked = early.apply(alike.read(early.file_columns or (COMMIT_COLUMN,)))
    mask = plan.early_mask(asked)
    if not mask.any():
        return None
    matching, kept = alike.with_any(mask)
    rows = _read_alike_late(plan, late, matching).filter(array_of_mask(kept))
    return _side_by_side(asked.filter(array_of_mask(mask)), rows)


def _read_alike_late(plan: _ReadPlan, late: FileAlignment, alike: AlikeFiles) -> pa.Table:
    """As `_read_late`, of all rows of the files."""
    rows = late.apply(alike.read([*late.file_columns, *_hidden_names(plan, alike.hold_deletes, late.file_columns)]))
    return alike.with_commits(rows, [file.sequence for file in alike.files]) if plan.needs_commit else rows


def _of_one_schema(plan: _ReadPlan, tables: Sequence[pa.Table]) -> list[pa.Table]:
    """The wanted columns, with `_op` if one of the tables has it: rows of a file without it delete nothing."""
    names = [column.name for column in plan.early_columns + plan.late_columns]
    names += [COMMIT_COLUMN] if plan.needs_commit else []
    if any(OP_COLUMN in rows.column_names for rows in tables):
        names.append(OP_COLUMN)
        tables = [with_op(rows) for rows in tables]
    return [rows.select(names) for rows in tables]


def _read_file(storage: Storage, plan: _ReadPlan, file: DataFile) -> Iterator[pa.Table]:
    """The file's rows that belong to the split and pass the early predicate, a row group at a time."""
    reader = open_file(storage, plan.target.location, file.path, file.size_bytes)
    stored = plan.stored(file.schema_id)
    coded = _coded_names(plan, stored, reader)
    reader.keep_codes(tuple(coded.values()))
    source = _FileSource(
        reader=reader,
        stored=stored,
        file=file,
        early=plan.alignments(file.schema_id)[0],
        late=plan_file_alignment(stored, [column for column in plan.late_columns if column.name not in coded]),
        coded=coded,
    )
    crowded = len(plan.files) > _MOST_OPEN_FILES
    for row_group in range(reader.row_group_count):
        rows = _read_row_group(source, plan, row_group)
        if crowded or row_group == reader.row_group_count - 1:
            reader.close()
        if rows is not None and plan.is_shared(file):
            rows = _of_prefix(rows, plan)
        if rows is not None and rows.num_rows:
            yield rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileSource:
    reader: ParquetReader
    stored: TableSchema
    file: DataFile
    early: FileAlignment
    late: FileAlignment
    coded: Mapping[str, str]
    """Late columns that are read as codes of a dictionary, and their names in the file."""


def _coded_names(plan: _ReadPlan, stored: TableSchema, reader: ParquetReader) -> dict[str, str]:
    """Columns that are only carried along: their codes become values when the rows to drop are gone."""
    coded: dict[str, str] = {}
    for column in plan.carried_columns:
        kept = stored.by_id(column.id)
        if kept is not None and kept.type == column.type and reader.has_codes(kept.name):
            coded[column.name] = kept.name
    return coded


def _read_row_group(source: _FileSource, plan: _ReadPlan, row_group: int) -> pa.Table | None:
    """The matching rows of a row group, or None. Columns that only a match needs are read once there is one."""
    if not plan.asks_early:
        return _read_late(source, plan, row_group)
    predicates = (plan.early_predicate, plan.target.among_like)
    if any(each is not None and not _may_match(source, row_group, each) for each in predicates):
        return None
    if not _may_hold(source, row_group, plan.sought):
        return None
    asked = source.early.apply(
        source.reader.read_row_groups([row_group], source.early.file_columns or (COMMIT_COLUMN,))
    )
    mask = plan.early_mask(asked)
    if not mask.any():
        return None
    chosen = None if mask.all() else array_of_mask(mask)
    late = _read_late(source, plan, row_group, chosen)
    return _side_by_side(asked if chosen is None else asked.filter(chosen), late)


def _may_match(source: _FileSource, row_group: int, predicate: Predicate) -> bool:
    def bounds(column: Column) -> Bounds:
        stored = source.stored.by_id(column.id)
        if stored is None:
            return Bounds(null_count=1, row_count=1)
        if not column.tells_bounds(source.stored.id):
            return Bounds(row_count=1)
        return source.reader.row_group_bounds(row_group, stored.name, stored.type)

    return may_match(predicate, bounds)


def _may_hold(source: _FileSource, row_group: int, sought: Sequence[tuple[Column, pa.Array]]) -> bool:
    """Whether each of the columns may have one of the values sought in the row group."""
    return all(may_hold_values(source.reader, source.stored, row_group, column, values) for column, values in sought)


def may_hold_values(
    reader: ParquetReader, stored: TableSchema, row_group: int, column: Column, values: pa.Array
) -> bool:
    """Whether the column may have one of the values, of its type, in the row group of a file of the schema `stored`."""
    kept = stored.by_id(column.id)
    return kept is None or kept.type != column.type or reader.may_hold(row_group, kept.name, values)


def _read_late(source: _FileSource, plan: _ReadPlan, row_group: int, chosen: pa.Array | None = None) -> pa.Table:
    """The columns that every row of the result needs, `_op` where the file has it, and `_commit` if it is wanted: of
    the rows that are chosen, if some are."""
    stored_names = [*source.late.file_columns, *source.coded]
    hidden = _hidden_names(plan, source.file.delete_count > 0, stored_names)
    aligned_names, coded_names = [*source.late.file_columns, *hidden], source.coded.values()
    read = source.reader.read_row_groups([row_group], [*aligned_names, *coded_names])
    if chosen is not None:
        read = read.filter(chosen)
    rows = source.late.apply(read.select(aligned_names))
    if source.coded:
        rows = _side_by_side(rows, read.select(list(coded_names)).rename_columns(list(source.coded)))
    return _with_commits(rows, source.file.sequence) if plan.needs_commit else rows


def _hidden_names(plan: _ReadPlan, holds_deletes: bool, others: Sequence[str]) -> list[str]:
    """The hidden columns to read with others: at least one column tells how many rows there are."""
    hidden = [OP_COLUMN] if holds_deletes else []
    return [*hidden, COMMIT_COLUMN] if plan.needs_commit or not (others or hidden) else hidden


def _with_commits(rows: pa.Table, sequence: int | None) -> pa.Table:
    """A row without a commit of its own has that of its file; one of a staged file has none yet."""
    if sequence is None:
        return rows
    place = rows.column_names.index(COMMIT_COLUMN)
    filled = pc.fill_null(rows.column(place), sequence)
    return rows.set_column(place, hidden_field(COMMIT_COLUMN), filled)


def _side_by_side(left: pa.Table, right: pa.Table) -> pa.Table:
    fields = [*left.schema, *right.schema]
    columns = {field.name: column for field, column in zip(fields, [*left.columns, *right.columns], strict=True)}
    return pa.table(columns)


def _of_prefix(rows: pa.Table, plan: _ReadPlan) -> pa.Table:
    """The rows of a file that covers more keys than the split does."""
    hashes = key_hashes([rows.column(column.name) for column in plan.target.primary_key])
    return rows.filter(array_of_mask(hash_prefixes(hashes, plan.split.depth) == plan.split.prefix))


def _finish(plan: _ReadPlan, rows: pa.Table, mask: Mask | None) -> Iterator[pa.Table]:
    """Drops superseded and deleted rows and those that do not match, and gives the wanted columns."""
    live = live_rows(rows)
    if live is not None:
        mask = live if mask is None else mask & live
    if plan.late_predicate is not None:
        matching = matching_rows(plan.late_predicate, rows, mask).to_numpy(zero_copy_only=False)
        mask = matching if mask is None else mask & matching
    rows = rows.select([column.name for column in plan.target.columns])
    if mask is not None:
        rows = rows.filter(array_of_mask(mask))
    if rows.num_rows:
        yield as_schema(rows, plan.target.output_schema)


@lru_cache
def _output_schema(columns: tuple[Column, ...]) -> pa.Schema:
    return pa.schema([_output_field(column) for column in columns])


def _output_field(column: Column) -> pa.Field:
    return hidden_field(COMMIT_COLUMN) if column == COMMIT else arrow_field(column).remove_metadata()
