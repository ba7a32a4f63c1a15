"""Work. Finds the rows whose keys have come to another partition, and writes the delete marks by which they leave.

The bucket of a key is known by its hash, in each partition: the files of the same bucket in the other partitions tell
where the key has been. Of them the columns of key and sequence are read, in the row groups that may have the keys.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.model.files import PartitionKey, Split
from lakelib.model.schema import COMMIT_COLUMN, OP_COLUMN
from lakelib.model.sortable import decode
from lakelib.plan.moves import Sought
from lakelib.plan.where import COMMIT
from lakelib.rows.buffers import array_of_mask, array_of_numbers, fixed_values, whole_array
from lakelib.rows.key_set import KeySet
from lakelib.rows.leaving import Versions, find_leaving
from lakelib.rows.merge_engine import live_rows, with_op
from lakelib.rows.raw_arrays import arrow_values
from lakelib.rows.sort import newest_order
from lakelib.rows.types import arrow_type
from lakelib.storage.filesystem import Storage
from lakelib.work.known_keys import files_with_keys
from lakelib.work.masks import like_first
from lakelib.work.parallel import collect_in_order
from lakelib.work.read import MOST_SOUGHT, ReadTarget, read_newest, read_versions
from lakelib.work.run_writer import RunTarget, write_runs
from lakelib.work.write import WrittenFiles, as_deletes

_OWN_AGE = 1 << 62
"""Whatever is new is newer than what was there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveWork:
    """What one task does. Plain values: a task gets it by pickle."""

    storage: Storage
    target: ReadTarget
    """Of key and sequence."""
    writes: RunTarget
    sought: Sought
    buffer_bytes: int
    is_stored: bool = False
    """Whether it is stored rows that are looked at, as if they were new: the latest commit's is the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Rows of one partition, their age, and whether they are new."""

    partition_key: PartitionKey
    rows: pa.Table
    age: int | None
    """None: by the commit of each."""


def read_own_keys(storage: Storage, target: ReadTarget, own: Sequence[Split]) -> pa.Table:
    """The keys of new rows."""
    names = [column.name for column in target.primary_key]
    empty = pa.Table.from_batches([], target.output_schema).select(names)
    found = (rows.select(names) for split in own for rows in read_newest(storage, target, split))
    return pa.concat_tables([empty, *found])


def write_leaving(work: MoveWork, threads: int) -> WrittenFiles:
    """Delete marks for the rows that leave. An error leaves no file behind."""
    parts = _read_parts(work, threads)
    if len({part.partition_key for part in parts}) < 2:
        return WrittenFiles(files=(), rows_in=0)
    rows_in = 0

    def marks() -> Iterator[pa.RecordBatch]:
        nonlocal rows_in
        for batch in _leaving(work, parts):
            rows_in += batch.num_rows
            yield as_deletes(batch, work.writes.schema)

    files = write_runs(work.storage, work.writes, marks(), buffer_bytes=work.buffer_bytes, threads=threads)
    return WrittenFiles(files=files, rows_in=rows_in)


def find_leaving_keys(work: MoveWork, threads: int) -> pa.Table:
    """The keys of rows that would leave, with their partitions: of nothing that is written."""
    parts = _read_parts(work, threads)
    columns = (*work.target.primary_key, *work.target.partition_by)
    names = list(dict.fromkeys(column.name for column in columns))
    empty = pa.table({column.name: pa.array([], arrow_type(column.type)) for column in columns}).select(names)
    if len({part.partition_key for part in parts}) < 2:
        return empty
    return pa.concat_tables([empty, *(pa.table(batch.select(names)) for batch in _leaving(work, parts))])


def _read_parts(work: MoveWork, threads: int) -> list[_Part]:
    if work.is_stored:
        return collect_in_order(work.sought.own, lambda split: _read_stored(work, split), threads)
    own = [part for split in work.sought.own for part in _read_own(work, split)]
    if not own or not work.sought.there:
        return own
    sought = _Keys(work.target, own)
    there = _that_may_have(work, sought, threads)
    return [*own, *collect_in_order(there, _there_reader(work, sought), threads)]


class _Keys:
    """Those of new rows."""

    def __init__(self, target: ReadTarget, own: Sequence[_Part]) -> None:
        names = [column.name for column in target.primary_key]
        rows = pa.concat_tables([part.rows.select(names) for part in own])
        self.columns = [whole_array(rows.column(name)) for name in names]
        self.first_values = whole_array(pc.unique(self.columns[0]))
        self.like = like_first(target.primary_key[0], self.first_values)

    @property
    def are_few(self) -> bool:
        """So that Bloom filters are asked for them."""
        return len(self.columns[0]) <= MOST_SOUGHT


def _that_may_have(work: MoveWork, sought: _Keys, threads: int) -> Sequence[Split]:
    """Of what was there the files that may have one of the keys."""
    there = work.sought.there
    if not sought.are_few:
        return there
    files = [file for split in there for file in split.files]
    found = files_with_keys(work.storage, work.target, files, sought.columns, sought.like, threads)
    left = (replace(split, files=tuple(file for file in split.files if file.id in found)) for split in there)
    return [split for split in left if split.files]


def _read_stored(work: MoveWork, split: Split) -> Iterator[_Part]:
    for rows in read_newest(work.storage, work.target, split):
        live = live_rows(rows)
        kept = rows if live is None else rows.filter(array_of_mask(live))
        yield _Part(partition_key=split.partition.key, rows=kept, age=None)


def _read_own(work: MoveWork, split: Split) -> Iterator[_Part]:
    age = _OWN_AGE + split.files[0].run
    for rows in read_newest(work.storage, _plain(work.target), split):
        yield _Part(partition_key=split.partition.key, rows=rows, age=age)


def _plain(target: ReadTarget) -> ReadTarget:
    """New rows have no commit yet."""
    return replace(target, columns=tuple(column for column in target.columns if column != COMMIT))


def _there_reader(work: MoveWork, sought: _Keys) -> Callable[[Split], Iterator[_Part]]:
    """Reads of what was there the rows that may have one of the keys."""
    target = work.target
    seeking = replace(target, among=KeySet([sought.columns]), among_like=sought.like)
    if len(sought.first_values) <= MOST_SOUGHT:  # which Bloom filters are asked for
        seeking = replace(seeking, predicate=sought.like, asked_columns=target.primary_key[:1])

    def read(split: Split) -> Iterator[_Part]:
        found = _newest_there(work.storage, seeking, split) if target.sequence_by else _live_there(work, seeking, split)
        return (_Part(partition_key=split.partition.key, rows=rows, age=None) for rows in found if rows.num_rows)

    return read


def _newest_there(storage: Storage, seeking: ReadTarget, split: Split) -> Iterator[pa.Table]:
    """Marks, too, say how new a key is."""
    return read_newest(storage, seeking, split)


def _live_there(work: MoveWork, seeking: ReadTarget, split: Split) -> Iterator[pa.Table]:
    """Where a new row is newer than all, those that are not deleted, as far as that is known without a merge: a mark
    too many hides nothing."""
    if not any(file.delete_count for file in split.files):
        yield from read_versions(work.storage, seeking, split)
        return
    telling = replace(seeking, columns=(*seeking.columns, COMMIT))
    parts = [with_op(rows) for rows in read_versions(work.storage, telling, split)]
    if not parts:
        return
    rows = pa.concat_tables(parts).combine_chunks()
    keys = [whole_array(rows.column(column.name)) for column in seeking.primary_key]
    is_live = fixed_values(whole_array(rows.column(OP_COLUMN)), "i1") & 1 == 0
    order_by = [whole_array(pc.fill_null(rows.column(COMMIT_COLUMN), 0)), array_of_numbers(is_live.astype(np.int64))]
    newest = newest_order(keys, order_by)
    yield rows.take(array_of_numbers(newest[is_live[newest]])).drop_columns([COMMIT_COLUMN, OP_COLUMN])


def _leaving(work: MoveWork, parts: Sequence[_Part]) -> Iterator[pa.RecordBatch]:
    """Key, partition and sequence of the marks, a batch a partition."""
    target = work.target
    key_names = [column.name for column in target.primary_key]
    order_names = [column.name for column in target.sequence_by]
    named = list(dict.fromkeys((*key_names, *order_names)))
    numbers = {key: number for number, key in enumerate(dict.fromkeys(part.partition_key for part in parts))}
    rows = pa.concat_tables([part.rows.select(named) for part in parts]).combine_chunks()
    lengths = [part.rows.num_rows for part in parts]
    versions = Versions(
        keys=[whole_array(rows.column(name)) for name in key_names],
        order_by=[whole_array(rows.column(name)) for name in order_names],
        age=np.concatenate([_ages(part) for part in parts]),
        partition=np.repeat([numbers[part.partition_key] for part in parts], lengths),
        is_live=np.concatenate([_is_live(part) for part in parts]),
        is_own=np.repeat([work.is_stored or part.age is not None for part in parts], lengths),
    )
    leaving, newest = find_leaving(versions.without_stale_marks())
    if not work.sought.tells_own:
        is_old = ~versions.is_own[leaving]
        leaving, newest = leaving[is_old], newest[is_old]
    for key, number in numbers.items():
        own = versions.partition[leaving] == number
        if own.any():
            yield _marks(work, key, rows, leaving[own], newest[own])


def _ages(part: _Part) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Of one sequence a row that was there is newer than the marks by which others left for it: those of a delete would
    have taken it away."""
    if part.age is not None:
        return np.full(part.rows.num_rows, part.age, np.int64)
    if COMMIT_COLUMN not in part.rows.column_names:
        return np.zeros(part.rows.num_rows, np.int64)
    commits = fixed_values(whole_array(pc.fill_null(part.rows.column(COMMIT_COLUMN), 0)), "<i8")
    return np.where(_is_live(part), 1 + commits, 0)


def _is_live(part: _Part) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    live = live_rows(part.rows) if OP_COLUMN in part.rows.column_names else None
    return np.ones(part.rows.num_rows, np.bool_) if live is None else live


def _marks(
    work: MoveWork,
    partition_key: PartitionKey,
    rows: pa.Table,
    leaving: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    newest: "np.ndarray[tuple[int], np.dtype[np.int64]]",
) -> pa.RecordBatch:
    """Of rows that leave: with the sequence of what they leave for, so that nothing older comes back."""
    columns: dict[str, pa.Array] = {}
    for column, part in zip(work.target.partition_by, partition_key, strict=True):
        raw = None if part is None else decode(column.type, part)
        columns[column.name] = pa.repeat(arrow_values(column.type, [raw])[0], len(leaving))
    for column in work.target.sequence_by:
        columns[column.name] = whole_array(rows.column(column.name)).take(array_of_numbers(newest))
    for column in work.target.primary_key:
        columns[column.name] = whole_array(rows.column(column.name)).take(array_of_numbers(leaving))
    return pa.record_batch(columns)
