"""Pure. Merges sorted runs: of each key the newest row stays, or what a merge engine makes of all. Says, too, whether a
key comes more than once.

A run is sorted by key and has one row a key. Runs are given from oldest to newest. `keep_newest` judges runs that are
in memory; `merge_windows` streams runs of any size, a window of keys at a time.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelib.rows.buffers import array_of_mask, array_of_numbers, fixed_values, is_long_type, whole_array
from lakelib.rows.keys import Parts, Rows, first_words, is_one_word, open_columns, value_reader
from lakelib.rows.merge_engine import Engine, fold_repeated
from lakelib.rows.sort import Ranking, key_order, newest_of, newest_order, stable_order

Mask = npt.NDArray[np.bool_]
Window = list[tuple[pa.Table, Mask | None]]
"""The rows of one range of keys: a slice of each run that has any, and which of its rows stay (None: all); after them
the rows that an engine has made."""


KeyValue = tuple[Any, ...]


def keep_newest(
    runs_keys: Sequence[Sequence[pa.Array]], runs_order_by: Sequence[Sequence[pa.Array]]
) -> list[Mask | None]:
    """For each run which rows are the newest of their key: highest in the order columns, then in the newest run.

    `runs_keys` and `runs_order_by` hold the columns of each run; the latter may be empty. None stands for all rows.
    """
    if len(runs_keys) < 2:
        return [None] * len(runs_keys)
    keys = list(zip(*runs_keys, strict=True))
    order_by = list(zip(*runs_order_by, strict=True))
    words = first_words(keys[0])
    order = stable_order(words)
    arranged = words[order]
    equals_next = arranged[1:] == arranged[:-1]
    if order_by:
        older = _older_rows(keys, order_by, _suspects(order, equals_next))
    elif len(keys) == 1 and is_one_word(keys[0]):
        older = order[:-1][equals_next]
    else:
        older = _older_of_neighbours(keys, order, equals_next)
    return _masks(older, [len(run[0]) for run in runs_keys])


def _older_of_neighbours(keys: Sequence[Parts], order: Rows, equals_next: Mask) -> Rows:
    """The rows whose key a later run has too, found in an order by first word and then by run.

    Nearly all rows that share a first word share their key: then the earlier of two neighbours is the older. Only sets
    of rows where that is not so are sorted.
    """
    at = np.flatnonzero(equals_next)
    if not len(at):
        return at
    same = _have_same_keys(keys, order[at], order[at + 1], _suspects(order, equals_next))
    if same.all():
        return order[at]
    sets = np.cumsum(np.diff(at, prepend=at[0]) > 1)
    mixed = np.zeros(len(at), np.bool_)
    mixed[sets[~same]] = True
    settled = ~mixed[sets]
    unsettled = np.zeros_like(equals_next)
    unsettled[at[~settled]] = True
    return np.concatenate([order[at[settled]], _older_rows(keys, (), _suspects(order, unsettled))])


def _have_same_keys(keys: Sequence[Parts], left: Rows, right: Rows, suspects: Rows) -> Mask:
    """Which pairs of a left and a right row have the same key; all of them are among the suspects."""
    place = np.empty(int(suspects[-1]) + 1, np.int64)
    place[suspects] = np.arange(len(suspects))
    left, right = place[left], place[right]
    same = np.ones(len(left), np.bool_)
    for column in open_columns([_take(parts, suspects) for parts in keys]):
        for number in range(column.count_words(None)):
            same &= column.word(number, left) == column.word(number, right)
        last = column.last_word(np.concatenate([left, right]))
        if last is not None:
            same &= last[: len(left)] == last[len(left) :]
    return same


def _suspects(order: Rows, equals_next: Mask) -> Rows:
    """The rows, ascending, that equal a neighbour in the order."""
    suspect = np.zeros(len(order), np.bool_)
    suspect[order[:-1][equals_next]] = True
    suspect[order[1:][equals_next]] = True
    return np.flatnonzero(suspect)


def _older_rows(keys: Sequence[Parts], order_by: Sequence[Parts], suspects: Rows) -> Rows:
    """Those of the suspects (ascending rows through all runs) that another suspect of the same key replaces."""
    if not len(suspects):
        return suspects
    key_columns = open_columns([_take(parts, suspects) for parts in keys])
    order_columns = open_columns([_take(parts, suspects) for parts in order_by])
    older = np.ones(len(suspects), np.bool_)
    older[newest_of(key_columns, order_columns, len(suspects))] = False
    return suspects[older]


def _take(parts: Parts, rows: Rows) -> list[pa.Array]:
    """Rows, ascending through all parts, of a column; parts that are taken whole are not copied."""
    ends = np.cumsum([len(part) for part in parts])
    taken = []
    for part, end, chosen in zip(parts, ends, np.split(rows, np.searchsorted(rows, ends[:-1])), strict=True):
        if len(chosen) == len(part):
            taken.append(part)
        else:
            taken.append(part.take(array_of_numbers(chosen - (end - len(part)))))
    return taken


def _masks(older: Rows, lengths: Sequence[int]) -> list[Mask | None]:
    """A mask for each run that loses rows; `older` counts through all runs."""
    keep = np.ones(sum(lengths), np.bool_)
    keep[older] = False
    masks = np.split(keep, np.cumsum(lengths)[:-1])
    return [None if mask.all() else mask for mask in masks]


def merge_windows(
    runs: Sequence[Iterator[pa.Table]],
    key_names: Sequence[str],
    order_names: Sequence[str],
    *,
    engine: Engine | None = None,
    most_rows: int | None = None,
) -> Iterator[Window]:
    """Merges runs that arrive table by table (a row group each), in windows of ascending keys.

    Holds one table of each run, and of one run the next as well. A window uses up at least one table, or has about
    `most_rows` rows, if that is given: tables of many runs that hold the same keys are used up at the same time.
    """
    for window in key_windows(runs, key_names, most_rows=most_rows):
        slices = [rows for _, rows in window]
        if engine is not None:
            yield _fold(slices, key_names, engine)
            continue
        masks = keep_newest(*(_columns_of(slices, names) for names in (key_names, order_names)))
        yield list(zip(slices, masks, strict=True))


def key_windows(
    runs: Sequence[Iterator[pa.Table]], key_names: Sequence[str], *, most_rows: int | None = None
) -> Iterator[list[tuple[int, pa.Table]]]:
    """Goes through sorted runs together, by ranges of ascending keys: of each run that has rows there its number and
    those rows. See `merge_windows`."""
    cursors = [(number, _Cursor(run, key_names)) for number, run in enumerate(runs)]
    while cursors := [(number, cursor) for number, cursor in cursors if cursor.fill()]:
        left = [cursor for _, cursor in cursors]
        limit = _upper_limit(left)
        if most_rows is not None:
            limit = _lower_limit(left, limit, most_rows)
        yield [(number, rows) for number, cursor in cursors if (rows := cursor.cut(limit)).num_rows]


def _fold(tables: Sequence[pa.Table], key_names: Sequence[str], engine: Engine) -> Window:
    """Of tables that each have a key but once."""
    if len(tables) < 2:
        return [(table, None) for table in tables]
    repeated, starts = repeated_keys(list(zip(*_columns_of(tables, key_names), strict=True)))
    return fold_repeated(tables, repeated, starts, engine)


def repeated_keys(keys: Sequence[Parts]) -> tuple[Rows, Rows]:
    """The rows, through all parts, whose key comes more than once: by key, and in their order. And where among them
    each key begins."""
    words = first_words(keys[0])
    order = stable_order(words)
    arranged = words[order]
    equals_next = arranged[1:] == arranged[:-1]
    if len(keys) == 1 and is_one_word(keys[0]):
        return _neighbours(order, equals_next)
    suspects = _suspects(order, equals_next)
    if not len(suspects):
        return suspects, suspects
    ranking = Ranking(len(suspects))
    ranking.sort_by(open_columns([_take(parts, suspects) for parts in keys]))
    starts = np.flatnonzero(np.diff(ranking.group, prepend=-1))
    return suspects[ranking.order[ranking.tied]], starts


def _neighbours(order: Rows, equals_next: Mask) -> tuple[Rows, Rows]:
    """As `repeated_keys`, of keys that are equal where their first words are."""
    repeated = np.zeros(len(order), np.bool_)
    repeated[:-1] = equals_next
    repeated[1:] |= equals_next
    begins = repeated.copy()
    begins[1:] &= ~equals_next
    at = np.flatnonzero(repeated)
    return order[at], np.flatnonzero(begins[at])


def merge_tables(
    tables: Sequence[pa.Table], key_names: Sequence[str], order_names: Sequence[str], engine: Engine | None = None
) -> pa.Table:
    """Tables of one schema, from oldest to newest, as one run: one row of each key, sorted by key. A table may have a
    key more than once. For an engine `order_names` say in which order the rows have come."""
    rows = pa.concat_tables(tables).combine_chunks()
    if engine is not None:
        return _merged_by(engine, _in_order(rows, order_names), key_names)
    keys, order_by = ([whole_array(rows.column(name)) for name in names] for names in (key_names, order_names))
    return rows.take(array_of_numbers(newest_order(keys, order_by)))


def _merged_by(engine: Engine, rows: pa.Table, key_names: Sequence[str]) -> pa.Table:
    repeated, starts = repeated_keys([[key] for key in _columns_of([rows], key_names)[0]])
    parts = fold_repeated([rows], repeated, starts, engine)
    kept = [table if mask is None else table.filter(array_of_mask(mask)) for table, mask in parts]
    merged = pa.concat_tables(kept, promote_options="default").combine_chunks()
    keys = open_columns([[key] for key in _columns_of([merged], key_names)[0]])
    return merged.take(array_of_numbers(key_order(keys, merged.num_rows)))


def _in_order(rows: pa.Table, order_names: Sequence[str]) -> pa.Table:
    if not order_names:
        return rows
    order = key_order(open_columns([[column] for column in _columns_of([rows], order_names)[0]]), rows.num_rows)
    return rows.take(array_of_numbers(order))


def arrange_window(parts: Window, key_names: Sequence[str]) -> pa.Table:
    """The rows of a window that stay, as one table sorted by key."""
    if len(parts) == 1:
        table, mask = parts[0]
        return table if mask is None else table.filter(array_of_mask(mask))
    keep = np.concatenate([np.ones(table.num_rows, np.bool_) if mask is None else mask for table, mask in parts])
    tables = [table for table, _ in parts]
    keys = open_columns([list(column) for column in zip(*_columns_of(tables, key_names), strict=True)])
    order = key_order(keys, len(keep))
    return pa.concat_tables(tables, promote_options="default").take(array_of_numbers(order[keep[order]]))


def _columns_of(tables: Sequence[pa.Table], names: Sequence[str]) -> list[list[pa.Array]]:
    return [[whole_array(table.column(name)) for name in names] for table in tables]


def _upper_limit(cursors: Sequence["_Cursor"]) -> KeyValue | None:
    """The greatest key up to which every run is in memory; None where all runs are, to their end.

    Only the run that would set the limit is asked whether more of it comes. So one run at a time holds a second table,
    and a thousand runs of one table each are one window.
    """
    by_last_key = sorted(cursors, key=lambda cursor: cursor.last_key)
    return next((cursor.last_key for cursor in by_last_key if cursor.has_more()), None)


def _lower_limit(cursors: Sequence["_Cursor"], limit: KeyValue | None, most_rows: int) -> KeyValue | None:
    """The limit, or a lower one that few enough rows of every run come before."""
    share = max(1, most_rows // len(cursors))
    keys = [cursor.key_at(share - 1) for cursor in cursors if cursor.row_count > share]
    return min(keys if limit is None else [*keys, limit], default=None)


class _Cursor:
    """A run being read: the table in memory and the row in it that comes next."""

    def __init__(self, tables: Iterator[pa.Table], key_names: Sequence[str]) -> None:
        self._tables = (table for table in tables if table.num_rows)
        self._key_names = key_names
        self._table: pa.Table | None = None
        self._following: pa.Table | None = None
        self._readers: list[Callable[[int], Any]] = []
        self._row = 0
        self.last_key: KeyValue = ()

    def fill(self) -> bool:
        """Makes sure that a row is in memory; False at the end of the run."""
        if self._table is None and self.has_more():
            self._open(self._following)
            self._following = None
        return self._table is not None

    def _open(self, table: pa.Table) -> None:
        self._table, self._row = table, 0
        self._readers = [value_reader(column) for column in _columns_of([table], self._key_names)[0]]
        self.last_key = self._key_at(table.num_rows - 1)

    def has_more(self) -> bool:
        """Whether tables follow the one in memory."""
        if self._following is None:
            self._following = next(self._tables, None)
        return self._following is not None

    @property
    def row_count(self) -> int:
        """How many rows are in memory."""
        return 0 if self._table is None else self._table.num_rows - self._row

    def key_at(self, place: int) -> KeyValue:
        """The key of one of the rows in memory."""
        return self._key_at(self._row + place)

    def cut(self, limit: KeyValue | None) -> pa.Table:
        """The rows in memory up to and including the limit, without copying."""
        assert self._table is not None
        end = self._table.num_rows
        if limit is not None and limit < self.last_key:
            end = bisect_right(range(end), limit, lo=self._row, key=self._key_at)
        piece = self._table.slice(self._row, end - self._row)
        self._row = end
        if end == self._table.num_rows:
            self._table, self._readers = None, []
        return piece

    def _key_at(self, row: int) -> KeyValue:
        return tuple(reader(row) for reader in self._readers)


def have_repeated(keys: Sequence[Sequence[pa.Array]]) -> bool:
    """Of key columns, each in parts."""
    if len(keys) == 1 and all(is_long_type(part.type) and not part.null_count for part in keys[0]):
        numbers = np.sort(np.concatenate([fixed_values(part, "<i8") for part in keys[0]]))
        return bool((numbers[1:] == numbers[:-1]).any())
    return bool(len(repeated_keys(keys)[0]))
