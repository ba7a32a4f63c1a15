"""Reads what has changed in a split: rows as they came, or what differs between two states of it.

Where only rows and deletes were added, the keys of these files are all that may have changed, and the newest row of
each is the answer, unless the table's own order of versions has a say. Where files were taken out, both states are held
against each other. Rows without a key are counted: as many of a kind as there are more of afterwards were added.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.model.changes import (
    CHANGE_COLUMN,
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    UPSERT,
    ChangeSplit,
    ChangeView,
    Way,
)
from lakelib.model.files import DataFile, Split
from lakelib.model.predicate import Predicate
from lakelib.model.schema import COMMIT_COLUMN, OP_COLUMN, Column, TableSchema
from lakelib.plan.prune import key_part
from lakelib.plan.where import COMMIT, asked_columns
from lakelib.rows.buffers import array_of_bytes, array_of_mask, array_of_numbers, fixed_values, whole_array
from lakelib.rows.differences import Digests, Pairing, are_alike, chosen, pair_runs, row_digests, unite_moves
from lakelib.rows.filter import matching_rows
from lakelib.rows.key_set import KeySet
from lakelib.rows.merge_engine import live_rows
from lakelib.rows.types import arrow_field, as_schema, hidden_field
from lakelib.storage.filesystem import Storage
from lakelib.work.read import ReadTarget, read_newest_in_order, read_split

_PLACES = {word: place for place, word in enumerate((DELETE, UPSERT, INSERT, UPDATE_BEFORE, UPDATE_AFTER))}
_WORDS = array_of_bytes([word.encode() for word in _PLACES], pa.string())

Mask = npt.NDArray[np.bool_]
Rows = Iterator[pa.Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTarget:
    """What a reader of changes needs to know. Plain values: a task gets it by pickle."""

    view: ChangeView
    after_id: int
    reading: ReadTarget
    """Of the rows: all columns that are wanted or looked at, the key's, the partition's, and `_commit`."""
    predicate: Predicate | None
    delete_predicate: Predicate | None
    """What of it can be told of a delete, which has no other columns."""
    kept_ids: frozenset[int]
    """The columns that a delete has."""
    compared_names: tuple[str, ...]
    """By which it is told, in the end, whether a row is another."""
    output_schema: pa.Schema
    moves_keys: bool = False
    """Whether a row may have come from another partition."""
    backwards: bool = False
    """In the view "net": from the later snapshot to the earlier one."""

    @property
    def key_names(self) -> list[str]:
        return [column.name for column in self.reading.primary_key]

    @property
    def told_in(self) -> str:
        return CHANGE_COLUMN if self.view is ChangeView.NET else OP_COLUMN

    @property
    def narrow(self) -> "ChangeTarget":
        """The same changes, of which only their kind is told."""
        return replace(self, output_schema=pa.schema([self.output_schema.field(self.told_in)]))

    def within(self, predicate: Predicate | None) -> "ChangeTarget":
        """The same changes as far as their keys match."""
        return replace(self, reading=self.reading.within(predicate))


def change_target(base: ReadTarget, schema: TableSchema, *, view: ChangeView, after_id: int) -> ChangeTarget:
    """For the columns and the predicate of a reader of rows."""
    has_key = bool(base.primary_key)
    kept = (*base.primary_key, *base.partition_by, *base.sequence_by, COMMIT)
    kept_ids = frozenset(column.id for column in kept)
    compared = (*base.columns, *base.asked_columns) if has_key else schema.columns  # without a key a row is all it has
    wanted = {column.id: column for column in (*compared, *kept)}
    early = key_part(base.predicate, [column.id for column in base.primary_key + base.partition_by])
    early = early if has_key else None
    return ChangeTarget(
        view=view,
        after_id=after_id,
        reading=replace(
            base, columns=tuple(wanted.values()), predicate=early, asked_columns=asked_columns(schema, early)
        ),
        predicate=base.predicate,
        delete_predicate=key_part(base.predicate, kept_ids) if has_key else base.predicate,
        kept_ids=kept_ids if has_key else frozenset(wanted),
        compared_names=tuple(dict.fromkeys(column.name for column in compared if column != COMMIT)),
        output_schema=told_schema(base.columns, view),
    )


def told_schema(columns: Sequence[Column], view: ChangeView) -> pa.Schema:
    """Of changes: the columns, `_commit`, and what has become of the row."""
    fields = [arrow_field(column).remove_metadata() for column in columns if column != COMMIT]
    if view is not ChangeView.NET:
        fields = [field.with_nullable(True) for field in fields]
    told_in = CHANGE_COLUMN if view is ChangeView.NET else OP_COLUMN
    return pa.schema([*fields, hidden_field(COMMIT_COLUMN), pa.field(told_in, pa.string(), nullable=False)])


def read_changes(storage: Storage, target: ChangeTarget, split: ChangeSplit) -> Rows:
    """The changes, in parts. Of those that are of one key the delete comes before what takes its place."""
    if split.beside:
        yield from read_united(storage, target, split)
        return
    source = _Source(storage, target, split)
    if not target.reading.primary_key:
        read = _fresh_rows if split.way is Way.FRESH else _rows_that_differ
    elif target.view is ChangeView.NET:
        read = _net_of_keys if split.way is Way.FRESH else _net
    elif split.way is Way.COMPARE:
        read = _versions_that_differ
    else:
        read = _winning_keys if _has_own_order(target) else _fresh_keys
    for rows in read(source):
        if rows.num_rows:
            yield rows


def read_united(storage: Storage, target: ChangeTarget, split: ChangeSplit) -> Rows:
    """The changes of several partitions: a row that has come from one to another is one row that has changed."""
    wide = replace(target, output_schema=told_schema(target.reading.columns, target.view))
    splits = (replace(split, beside=()), *split.beside)
    parts = [rows for each in splits for rows in read_changes(storage, wide, each)]
    if not parts:
        return
    told = unite_moves(pa.concat_tables(parts).combine_chunks(), target.view, target.key_names, target.compared_names)
    yield as_schema(told.select(target.output_schema.names), target.output_schema)


def _has_own_order(target: ChangeTarget) -> bool:
    """Whether a row that came later need not be what its key has. In the view of all commits it is told anyway."""
    reading = target.reading
    return (bool(reading.sequence_by) or reading.engine is not None) and target.view is not ChangeView.ALL


class _Source:
    """A split's files as runs."""

    def __init__(self, storage: Storage, target: ChangeTarget, split: ChangeSplit) -> None:
        self.storage = storage
        self.target = target
        self.split = split

    def run(self, files: tuple[DataFile, ...], *, among: KeySet | None = None) -> Rows:
        """The newest row of each key, deletes too."""
        if not files:
            return iter(())
        return read_newest_in_order(self.storage, replace(self.target.reading, among=among), self._part(files))

    def live(self, files: tuple[DataFile, ...], *, among: KeySet | None = None) -> Rows:
        """The rows that there are, in the order of their keys."""
        return (chosen(rows, _deleted(rows) == 0) for rows in self.run(files, among=among))

    def keys(self) -> KeySet:
        """Of which something may have changed."""
        keys_only = replace(self.target.reading, columns=self.target.reading.primary_key)
        parts = read_newest_in_order(self.storage, keys_only, self._part(self.split.fresh))
        return KeySet([rows.column(name) for name in self.target.key_names] for rows in parts)

    def pairs(self, before: Rows, after: Rows) -> Iterator[Pairing]:
        schema = self.target.reading.output_schema.append(hidden_field(OP_COLUMN))
        return pair_runs(before, after, self.target.key_names, (schema, schema))

    def rows_of(self, file: DataFile) -> Rows:
        """Of a table without a key."""
        return read_split(self.storage, self.target.reading, self._part((file,)))

    def _part(self, files: tuple[DataFile, ...]) -> Split:
        split = self.split
        return Split(partition=split.partition, depth=split.depth, prefix=split.prefix, files=files)


def _fresh_keys(source: _Source) -> Rows:
    """The newest row of each key is the table's."""
    for rows in source.run(source.split.fresh):
        yield _told(source, rows, UPSERT, _deleted(rows))


def _winning_keys(source: _Source) -> Rows:
    """Where versions have an order of their own, a row that came later may have lost."""
    among = source.keys()
    for pairing in source.pairs(source.run(source.split.fresh), source.live(source.split.after, among=among)):
        gone = chosen(pairing.before, _deleted(pairing.before) & ~pairing.before_paired)
        yield _deletes(source, _that_were_there(source, gone) if source.target.moves_keys else gone)
        newer = fixed_values(whole_array(pairing.after.column(COMMIT_COLUMN)), "<i8") > source.target.after_id
        yield _rows(source, chosen(pairing.after, newer), UPSERT)


def _that_were_there(source: _Source, gone: pa.Table) -> pa.Table:
    """Without those that came too late, and left where they came to."""
    if not gone.num_rows:
        return gone
    among = KeySet([[gone.column(name) for name in source.target.key_names]])
    before = source.live(source.split.before, among=among)
    found = [chosen(each.before, each.before_paired) for each in source.pairs(iter((gone,)), before)]
    return pa.concat_tables(found) if found else gone.slice(0, 0)


def _versions_that_differ(source: _Source) -> Rows:
    """A key has another version if that is of another commit."""
    split = source.split
    for pairing in source.pairs(source.live(split.before), source.live(split.after)):
        old, new = pairing.pairs
        other = ~_values_alike(old, new, [COMMIT_COLUMN])
        gone = ~pairing.before_paired
        if source.target.view is ChangeView.ALL:
            gone[np.flatnonzero(pairing.before_paired)[other]] = True
        came = ~pairing.after_paired
        came[np.flatnonzero(pairing.after_paired)[other]] = True
        yield _deletes(source, _with_commit(chosen(pairing.before, gone), split.snapshot_id))
        yield _rows(source, chosen(pairing.after, came), UPSERT)


def _net_of_keys(source: _Source) -> Rows:
    """What the keys of the fresh files had before, against what they have now."""
    split, among = source.split, source.keys()
    before = source.live(split.before, among=among)
    if _has_own_order(source.target):
        for pairing in source.pairs(before, source.live(split.after, among=among)):
            yield from _net_of(source, pairing)
    else:
        for pairing in source.pairs(before, source.run(split.fresh)):
            yield from _net_of(source, _without_deleted(pairing))


def _net(source: _Source) -> Rows:
    for pairing in source.pairs(source.live(source.split.before), source.live(source.split.after)):
        yield from _net_of(source, pairing)


def _without_deleted(pairing: Pairing) -> Pairing:
    """Rows that no fresh file names stay out; those that a delete names have nothing after them."""
    live = _deleted(pairing.after) == 0
    named = pairing.before_paired
    paired = named.copy()
    paired[np.flatnonzero(named)] = live[pairing.after_paired]
    return Pairing(
        before=chosen(pairing.before, named),
        after=chosen(pairing.after, live),
        before_paired=paired[named],
        after_paired=pairing.after_paired[live],
    )


def _net_of(source: _Source, pairing: Pairing) -> Rows:
    gone, came = chosen(pairing.before, ~pairing.before_paired), chosen(pairing.after, ~pairing.after_paired)
    old, new = pairing.pairs
    other = ~_values_alike(old, new, list(source.target.compared_names))
    if source.target.backwards:
        gone, came, old, new = came, gone, new, old
    yield _rows(source, gone, DELETE)
    yield _rows(source, chosen(old, other), UPDATE_BEFORE)
    yield _rows(source, chosen(new, other), UPDATE_AFTER)
    yield _rows(source, came, INSERT)


# Without a key


def _fresh_rows(source: _Source) -> Rows:
    added = _words(source.target)[1]
    for file in source.split.fresh:
        for rows in source.rows_of(file):
            yield _rows(source, rows, added)


def _rows_that_differ(source: _Source) -> Rows:
    """As many rows of a kind as there are more of on one side. Reads twice: what is alike, and then what is not."""
    split, target = source.split, source.target
    is_net = target.view is ChangeView.NET
    names = [*target.compared_names] if is_net else [*target.compared_names, COMMIT_COLUMN]
    sides = [_digests(source, files, names) for files in (split.before, split.after)]
    masks = _unmatched(*sides)
    for files, mask, word in zip((split.before, split.after), masks, _words(target), strict=True):
        start = 0
        for file in files:
            for rows in source.rows_of(file):
                found = chosen(rows, mask[start : start + rows.num_rows])
                start += rows.num_rows
                is_gone = word == DELETE and not is_net
                yield _rows(source, _with_commit(found, split.snapshot_id) if is_gone else found, word)


def _words(target: ChangeTarget) -> tuple[str, str]:
    """For a row that was there before alone, and for one that is there afterwards alone."""
    added = INSERT if target.view is ChangeView.NET else UPSERT
    return (added, DELETE) if target.backwards else (DELETE, added)


def _digests(source: _Source, files: tuple[DataFile, ...], names: list[str]) -> Digests:
    parts = [row_digests([rows.column(name) for name in names]) for file in files for rows in source.rows_of(file)]
    return np.concatenate([row_digests([pa.array([], pa.int64())]), *parts])


def _unmatched(before: Digests, after: Digests) -> tuple[Mask, Mask]:
    """Which rows of each side are left when those that are alike are taken out in pairs."""
    both = np.concatenate([before, after])
    _, kinds = np.unique(both, return_inverse=True)
    left, right = kinds[: len(before)], kinds[len(before) :]
    counts = [np.bincount(side, minlength=len(both)) for side in (left, right)]
    in_pairs = np.minimum(*counts)
    return _beyond(left, in_pairs), _beyond(right, in_pairs)


def _beyond(kinds: npt.NDArray[np.intp], counts: npt.NDArray[np.intp]) -> Mask:
    """Of each kind the rows that come after the first so many."""
    order = np.argsort(kinds, kind="stable")
    arranged = kinds[order]
    starts = np.searchsorted(arranged, arranged)
    mask = np.zeros(len(kinds), np.bool_)
    mask[order] = np.arange(len(kinds)) - starts >= counts[arranged]
    return mask


# As it is told


def _deleted(rows: pa.Table) -> Mask:
    live = live_rows(rows)
    return np.zeros(rows.num_rows, np.bool_) if live is None else ~live


def _values_alike(old: pa.Table, new: pa.Table, names: list[str]) -> Mask:
    return are_alike(old.select(names), new.select(names))


def _with_commit(rows: pa.Table, snapshot_id: int | None) -> pa.Table:
    place = rows.column_names.index(COMMIT_COLUMN)
    commits = array_of_numbers(np.full(rows.num_rows, snapshot_id, np.int64))
    return rows.set_column(place, hidden_field(COMMIT_COLUMN), commits)


def _deletes(source: _Source, rows: pa.Table) -> pa.Table:
    return _told(source, rows, DELETE, np.ones(rows.num_rows, np.bool_))


def _rows(source: _Source, rows: pa.Table, word: str) -> pa.Table:
    return _told(source, rows, word, np.zeros(rows.num_rows, np.bool_))


def _told(source: _Source, rows: pa.Table, word: str, bare: Mask) -> pa.Table:
    """The changes that match, as they are given. Those that are bare are deletes, and have the columns of one."""
    target = source.target
    if source.split.snapshot_id is not None and target.view is ChangeView.ALL:
        rows = _with_commit(rows, source.split.snapshot_id)
    words = _WORDS.take(array_of_numbers(np.where(bare, 0, _PLACES[word]).astype(np.int8)))
    mask = _matching(target, rows, bare)
    if bare.any():
        rows = _bared(target, rows, bare)
    columns = [words if name == target.told_in else rows.column(name) for name in target.output_schema.names]
    return as_schema(chosen(pa.table(columns, target.output_schema.names), mask), target.output_schema)


def _matching(target: ChangeTarget, rows: pa.Table, bare: Mask) -> Mask:
    mask = np.ones(rows.num_rows, np.bool_)
    for predicate, those in ((target.predicate, ~bare), (target.delete_predicate, bare)):
        if predicate is not None and those.any():
            matching = matching_rows(predicate, rows).to_numpy(zero_copy_only=False)
            mask &= matching | ~those
    return mask


def _bared(target: ChangeTarget, rows: pa.Table, bare: Mask) -> pa.Table:
    """NULL for what a delete does not say."""
    stays = array_of_mask(~bare)
    for place, column in enumerate(target.reading.columns):
        if column.id not in target.kept_ids:
            field = rows.schema.field(place)
            values = pc.if_else(stays, whole_array(rows.column(place)), pa.scalar(None, field.type))
            rows = rows.set_column(place, field.with_nullable(True), values)
    return rows
