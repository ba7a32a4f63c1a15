"""Work. Finds the rows of a split's files that none of its readers sees: superseded ones, and delete marks.

The merge that a reader does, over the columns of key and sequence alone; what loses is told by file and position. Where
only some files are fresh, of the others just the rows are merged whose keys the fresh ones may have.

For tables without a sequence of their own it is said of each row of a partition's files, too, from which snapshot on
nobody sees it: of a key the row of the next run supersedes it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.model.files import DataFile, Split
from lakelib.model.predicate import And, Compare, Comparison, In, Predicate, Raw
from lakelib.model.schema import OP_COLUMN, Column, TableSchema
from lakelib.plan.prune import Bounds, may_match
from lakelib.plan.scan import gather_files, is_small
from lakelib.rows.align import FileAlignment, plan_file_alignment
from lakelib.rows.buffers import array_of_mask, array_of_numbers, fixed_values, whole_array
from lakelib.rows.hash import hash_prefixes, key_hashes
from lakelib.rows.key_set import KeySet
from lakelib.rows.merge import merge_windows
from lakelib.rows.values import raw_values
from lakelib.storage.filesystem import Storage
from lakelib.storage.parquet import ParquetReader, open_file
from lakelib.storage.vectors import Positions, encode_positions
from lakelib.work.read import MOST_SOUGHT, ReadTarget, may_hold_values
from lakelib.work.small_files import open_alike

PLACE = "_place"
"""Column: which row of the split's files it is, counted through all of them."""
_NEVER = np.iinfo(np.int64).max

Snapshots = npt.NDArray[np.int64]


_FEW = 4
"""Fresh rows are few where they are at most one in so many: then it pays to look for their keys alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskWork:
    """What finding the masked rows of one split takes. Plain values: a task gets it by pickle."""

    target: ReadTarget
    split: Split
    fresh_ids: frozenset[int] | None
    """The files that came since the masks of the others were found; None: nothing is known of any."""

    @property
    def sought_ids(self) -> frozenset[int]:
        """The files whose keys are sought in the others, of which none supersedes another that is not masked. Where
        nothing is known those are the heaviest run."""
        if self.fresh_ids is not None:
            return self.fresh_ids
        runs: dict[tuple[int | None, int], list[DataFile]] = defaultdict(list)
        for file in self.split.files:
            runs[file.sequence, file.run].append(file)
        heaviest = max(runs.values(), key=lambda run: sum(file.row_count for file in run))
        if any(file.delete_count for file in heaviest):
            return frozenset(file.id for file in self.split.files)
        return frozenset(file.id for file in self.split.files) - {file.id for file in heaviest}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sought:
    """The keys of the fresh files: of other rows only those count that may have one."""

    keys: KeySet
    first_key: Column
    first_column: Predicate
    """What the first key column of such a row is like."""
    few_values: pa.Array | None
    """All values of the first key column, if they are few."""


def find_masked(storage: Storage, work: MaskWork) -> dict[int, bytes]:
    """The vectors of the masked rows by file; with `fresh_ids` of those masked since. Files without any are left
    out. Of a file that covers more keys than the split, those of the split's keys."""
    files = work.split.files
    sought = _sought_keys(storage, work)
    ends = np.cumsum([file.row_count for file in files])
    starts = dict(zip((file.id for file in files), ends - [file.row_count for file in files], strict=True))
    runs = [run for group in gather_files(files) for run in _open_group(storage, work, group, starts, sought)]
    key_names = [column.name for column in work.target.primary_key]
    order_names = [column.name for column in work.target.sequence_by]
    lost = [
        places
        for window in merge_windows(runs, key_names, order_names)
        for rows, mask in window
        if (places := _lost_places(rows, mask)) is not None
    ]
    if not lost:
        return {}
    found = np.sort(np.concatenate(lost))
    parts = np.split(found, np.searchsorted(found, ends[:-1]))
    return {
        file.id: encode_positions(part - starts[file.id]) for file, part in zip(files, parts, strict=True) if len(part)
    }


def open_runs(storage: Storage, work: MaskWork) -> Iterator[Iterator[pa.Table]]:
    """Keys and delete marks of all rows of the files, a run a file, in any order: `PLACE` says which row it is, counted
    through all of them."""
    ends = np.cumsum([file.row_count for file in work.split.files])
    starts = {file.id: int(end) - file.row_count for file, end in zip(work.split.files, ends, strict=True)}
    for group in gather_files(work.split.files):
        yield from _open_group(storage, work, group, starts, None)


def _lost_places(rows: pa.Table, mask: npt.NDArray[np.bool_] | None) -> Positions | None:
    gone = None if mask is None else ~mask
    if OP_COLUMN in rows.column_names:
        marks = fixed_values(whole_array(rows.column(OP_COLUMN)), "i1") != 0
        gone = marks if gone is None else gone | marks
    if gone is None or not gone.any():
        return None
    places: Positions = fixed_values(whole_array(rows.column(PLACE)), "<i8")[gone]
    return places


def _sought_keys(storage: Storage, work: MaskWork) -> _Sought | None:
    """None where the keys of all files are as good as sought."""
    sought_ids = work.sought_ids
    fresh = [file for file in work.split.files if file.id in sought_ids]
    total = sum(file.row_count for file in work.split.files)
    if sum(file.row_count for file in fresh) * _FEW > total:
        return None
    starts = dict.fromkeys((file.id for file in fresh), 0)
    runs = (run for group in gather_files(fresh) for run in _open_group(storage, work, group, starts, None))
    names = [column.name for column in work.target.primary_key]
    keys = pa.concat_tables([rows.select(names) for run in runs for rows in run])
    values = whole_array(pc.unique(keys.column(0)))
    few = values if len(values) <= MOST_SOUGHT else None
    first = work.target.primary_key[0]
    return _Sought(keys=KeySet([keys.columns]), first_key=first, first_column=like_first(first, values), few_values=few)


def like_first(column: Column, values: pa.Array) -> Predicate:
    if len(values) <= MOST_SOUGHT:
        return In(column=column, values=_raws(values))
    ends = pc.min_max(values)
    low, high = _raws(pa.array([ends["min"], ends["max"]], values.type))
    bounds = ((Comparison.GE, low), (Comparison.LE, high))
    return And(parts=tuple(Compare(column=column, op=op, value=value) for op, value in bounds))


def _raws(array: pa.Array) -> tuple[Raw, ...]:
    return tuple(raw for raw in raw_values(array) if raw is not None)


def _open_group(
    storage: Storage, work: MaskWork, files: Sequence[DataFile], starts: Mapping[int, int], sought: _Sought | None
) -> list[Iterator[pa.Table]]:
    """A run a file: key and sequence columns, `_op` where there are marks, and the place of each row."""
    if is_small(files[0]):
        return [iter((rows,)) for rows in _small_runs(storage, work, files, starts, sought)]
    file = files[0]
    return [_large_run(storage, work, file, starts[file.id], sought)]


def _small_runs(
    storage: Storage, work: MaskWork, files: Sequence[DataFile], starts: Mapping[int, int], sought: _Sought | None
) -> Iterator[pa.Table]:
    target = work.target
    for alike in open_alike(storage, target.location, files):
        alignment = _alignment(target, target.schemas[alike.schema_id])
        names = [*alignment.file_columns, *([OP_COLUMN] if alike.hold_deletes else [])]
        rows = alignment.apply(alike.read(names))
        start = 0
        for file in alike.files:
            own = rows.slice(start, file.row_count)
            start += file.row_count
            yield _placed(work, file, own, starts[file.id], sought)


def _large_run(
    storage: Storage, work: MaskWork, file: DataFile, start: int, sought: _Sought | None
) -> Iterator[pa.Table]:
    stored = work.target.schemas[file.schema_id]
    alignment = _alignment(work.target, stored)
    names = [*alignment.file_columns, *([OP_COLUMN] if file.delete_count else [])]
    with open_file(storage, work.target.location, file.path, file.size_bytes) as reader:
        for row_group in range(reader.row_group_count):
            row_count, _ = reader.row_group_bytes(row_group)
            if sought is None or _may_hold_some(reader, stored, row_group, sought):
                rows = alignment.apply(reader.read_row_groups([row_group], names))
                yield _placed(work, file, rows, start, sought)
            start += row_count


def _alignment(target: ReadTarget, stored: TableSchema) -> FileAlignment:
    wanted = {column.id: column for column in (*target.primary_key, *target.sequence_by)}
    return plan_file_alignment(stored, list(wanted.values()))


def _may_hold_some(reader: ParquetReader, stored: TableSchema, row_group: int, sought: _Sought) -> bool:
    def bounds(column: Column) -> Bounds:
        kept = stored.by_id(column.id)
        assert kept is not None  # columns of the key are there from the beginning
        return reader.row_group_bounds(row_group, kept.name, kept.type)

    if not may_match(sought.first_column, bounds):
        return False
    few = sought.few_values
    return few is None or may_hold_values(reader, stored, row_group, sought.first_key, few)


def _placed(work: MaskWork, file: DataFile, rows: pa.Table, start: int, sought: _Sought | None) -> pa.Table:
    """The rows that count, each with its place."""
    placed = rows.append_column(PLACE, array_of_numbers(np.arange(start, start + rows.num_rows, dtype=np.int64)))
    keys = [rows.column(column.name) for column in work.target.primary_key]
    kept: npt.NDArray[np.bool_] | None = None
    if sought is not None and rows.num_rows:
        kept = sought.keys.may_have(keys)
    if file.depth < work.split.depth and rows.num_rows:
        own = hash_prefixes(key_hashes(keys), work.split.depth) == work.split.prefix
        kept = own if kept is None else kept & own
    return placed if kept is None or kept.all() else placed.filter(array_of_mask(kept))


# What a commit supersedes


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseded:
    """From which snapshot on the rows of each file are masked, in the order of the file."""

    files: dict[int, DataFile]
    since: dict[int, Snapshots]

    def changed_at(self, snapshot_id: int) -> list[DataFile]:
        """The files of which rows are masked from this snapshot on."""
        return [self.files[file_id] for file_id, since in self.since.items() if (since == snapshot_id).any()]

    def vector(self, file_id: int, snapshot_id: int) -> tuple[bytes, int] | None:
        """The positions that are masked as of a snapshot, and how many; None for none."""
        places = np.flatnonzero(self.since[file_id] <= snapshot_id)
        return (encode_positions(places), len(places)) if len(places) else None


def find_marks(storage: Storage, location: str, file: DataFile) -> npt.NDArray[np.int64]:
    """The places of a file's rows that are no rows to a reader."""
    reader = open_file(storage, location, file.path, file.size_bytes)
    ops = reader.read_row_groups(range(reader.row_group_count), [OP_COLUMN]).column(OP_COLUMN)
    return np.flatnonzero(fixed_values(whole_array(ops), "i1") & 1)


def find_superseded(storage: Storage, target: ReadTarget, split: Split) -> Superseded:
    """Of a partition from whose files none goes. `files` run from oldest to newest, by sequence and run."""
    work = MaskWork(target=target, split=split, fresh_ids=None)
    runs = [pa.concat_tables(list(run)) for run in open_runs(storage, work)]
    names = [column.name for column in target.primary_key]
    rows = pa.concat_tables([run.select([*names, PLACE]) for run in runs])
    ends = np.cumsum([file.row_count for file in split.files])
    added = np.repeat(
        np.array([file.added_snapshot or 0 for file in split.files], np.int64),
        [file.row_count for file in split.files],
    )
    since = np.full(len(added), _NEVER, np.int64)
    # Rows are counted from the oldest file to the newest: of a key the next place supersedes the one before.
    order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in (*names, PLACE)])
    ordered = rows.take(order)
    places = fixed_values(whole_array(ordered.column(PLACE)), "<i8")
    if len(places) > 1:
        same = _are_alike([ordered.column(name) for name in names])
        older, newer = places[:-1][same], places[1:][same]
        since[older] = np.maximum(added[older], added[newer])
    for run in runs:
        if OP_COLUMN in run.column_names:
            is_mark = fixed_values(whole_array(run.column(OP_COLUMN)), "i1") != 0
            marks = fixed_values(whole_array(run.column(PLACE)), "<i8")[is_mark]
            since[marks] = added[marks]
    parts = np.split(since, ends[:-1])
    return Superseded(
        files={file.id: file for file in split.files},
        since={file.id: part for file, part in zip(split.files, parts, strict=True)},
    )


def _are_alike(columns: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.bool_]:
    """Whether each row has the key of the one before it."""
    alike = None
    for column in columns:
        whole = whole_array(column)
        equal = pc.equal(whole.slice(1), whole.slice(0, len(whole) - 1)).to_numpy(zero_copy_only=False)
        alike = equal if alike is None else alike & equal
    assert alike is not None
    return np.asarray(alike, np.bool_)
