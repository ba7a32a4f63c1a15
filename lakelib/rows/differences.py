"""Pure. Holds rows against each other: two runs by their keys, rows side by side by their values, whole tables, and
changes of several partitions as one: a key that has left one for another has changed.

Rows that are alike have one digest, others two: 128 bits a row, so that two rows of a table which differ are never
taken for one in practice. NULL is a value of its own, a NaN is like any other NaN, and -0.0 is not 0.0. Lists and maps
are alike if they hold the same in the same order.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.model.changes import CHANGE_COLUMN, DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, ChangeView
from lakelib.model.schema import COMMIT_COLUMN, OP_COLUMN
from lakelib.rows.buffers import array_of_mask, array_of_numbers, fixed_values, valid_rows, whole_array
from lakelib.rows.hash import SEED, Hashes, key_hashes
from lakelib.rows.keys import Words, first_words, is_one_word
from lakelib.rows.merge import keep_newest, key_windows
from lakelib.rows.sort import newest_order

Mask = npt.NDArray[np.bool_]
Keys = Sequence[pa.Array]
"""The key columns of some rows."""
Digests = npt.NDArray[np.void]
"""Two words a row, to be compared and sorted as one value."""


def unite_moves(told: pa.Table, view: ChangeView, key_names: Sequence[str], compared_names: Sequence[str]) -> pa.Table:
    """ "latest": of a key the row, or one delete. "net": its row before and afterwards, if they differ. "all": every
    delete of the commit before what takes its place."""
    match view:
        case ChangeView.LATEST:
            return _latest(told, key_names)
        case ChangeView.NET:
            return _net(told, key_names, compared_names)
        case ChangeView.ALL:
            order = np.argsort(~_are(told, OP_COLUMN, DELETE), kind="stable")
            return told.take(array_of_numbers(order))


def _latest(told: pa.Table, key_names: Sequence[str]) -> pa.Table:
    is_row = array_of_numbers((~_are(told, OP_COLUMN, DELETE)).astype(np.int64))
    order_by = [is_row, whole_array(pc.fill_null(told.column(COMMIT_COLUMN), 0))]
    return told.take(array_of_numbers(np.sort(newest_order(_keys(told, key_names), order_by))))


def _net(told: pa.Table, key_names: Sequence[str], compared_names: Sequence[str]) -> pa.Table:
    gone, came = (_by_key(told, word, key_names) for word in (DELETE, INSERT))
    gone_paired, came_paired = paired(_keys(gone, key_names), _keys(came, key_names))
    old, new = chosen(gone, gone_paired), chosen(came, came_paired)
    other = ~are_alike(old.select(list(compared_names)), new.select(list(compared_names)))
    stays = ~(_are(told, CHANGE_COLUMN, DELETE) | _are(told, CHANGE_COLUMN, INSERT))
    return pa.concat_tables(
        [
            chosen(told, stays),
            chosen(gone, ~gone_paired),
            _as(chosen(old, other), UPDATE_BEFORE),
            _as(chosen(new, other), UPDATE_AFTER),
            chosen(came, ~came_paired),
        ]
    )


def _by_key(told: pa.Table, word: str, key_names: Sequence[str]) -> pa.Table:
    rows = chosen(told, _are(told, CHANGE_COLUMN, word)).combine_chunks()
    return rows.take(array_of_numbers(newest_order(_keys(rows, key_names), [])))


def _keys(rows: pa.Table, names: Sequence[str]) -> list[pa.Array]:
    return [whole_array(rows.column(name)) for name in names]


def _are(told: pa.Table, column: str, word: str) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    return np.asarray(pc.equal(told.column(column), word).to_numpy(), np.bool_)


def _as(rows: pa.Table, word: str) -> pa.Table:
    place = rows.column_names.index(CHANGE_COLUMN)
    return rows.set_column(place, rows.schema.field(place), pa.repeat(pa.scalar(word), rows.num_rows))


# Two runs, key by key


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The rows that both runs have of a range of keys, sorted by key. The rows in pairs stand in one order."""

    before: pa.Table
    after: pa.Table
    before_paired: Mask
    """Which rows of `before` have a row of their key in `after`."""
    after_paired: Mask

    @property
    def pairs(self) -> tuple[pa.Table, pa.Table]:
        return chosen(self.before, self.before_paired), chosen(self.after, self.after_paired)


def pair_runs(
    before: Iterator[pa.Table], after: Iterator[pa.Table], key_names: Sequence[str], schemas: Sequence[pa.Schema]
) -> Iterator[Pairing]:
    """Two runs, sorted by key and with one row a key, of these schemas. Memory does not grow with them."""
    for window in key_windows((before, after), key_names):
        sides = dict(window)
        left, right = (sides.get(side, schemas[side].empty_table()) for side in (0, 1))
        left_keys, right_keys = ([whole_array(side.column(name)) for name in key_names] for side in (left, right))
        before_paired, after_paired = paired(left_keys, right_keys)
        yield Pairing(before=left, after=right, before_paired=before_paired, after_paired=after_paired)


def chosen(rows: pa.Table, mask: Mask) -> pa.Table:
    return rows if mask.all() else rows.filter(array_of_mask(mask))


def paired(left: Keys, right: Keys) -> tuple[Mask, Mask]:
    """Which rows of either side have a key that the other has, too. Both are sorted by key, and have each once."""
    if not len(left[0]) or not len(right[0]):
        return np.zeros(len(left[0]), np.bool_), np.zeros(len(right[0]), np.bool_)
    if len(left) == 1 and is_one_word(left) and is_one_word(right):
        return _paired_words(first_words(left), first_words(right))
    return _are_replaced(left, right), _are_replaced(right, left)


def _paired_words(left: Words, right: Words) -> tuple[Mask, Mask]:
    """Of ascending words, none of them twice."""
    places = np.minimum(np.searchsorted(right, left), len(right) - 1)
    left_paired: Mask = right[places] == left
    right_paired = np.zeros(len(right), np.bool_)
    right_paired[places[left_paired]] = True
    return left_paired, right_paired


def _are_replaced(keys: Keys, others: Keys) -> Mask:
    stays = keep_newest([keys, others], [[], []])[0]
    return np.zeros(len(keys[0]), np.bool_) if stays is None else ~stays


def are_alike(left: pa.Table, right: pa.Table) -> Mask:
    """Tables of the same columns and as many rows."""
    alike = np.ones(left.num_rows, np.bool_)
    for one, other in zip(left.columns, right.columns, strict=True):
        if alike.any():
            alike &= _alike_values(whole_array(one), whole_array(other))
    return alike


def _alike_values(left: pa.Array, right: pa.Array) -> Mask:
    if pa.types.is_nested(left.type):
        same: Mask = row_digests([left]) == row_digests([right])
        return same
    if pa.types.is_floating(left.type):
        left, right = float_bits(left), float_bits(right)
    equal = pc.fill_null(pc.equal(left, right), False)
    if left.null_count and right.null_count:
        equal = pc.or_(equal, pc.and_(left.is_null(), right.is_null()))
    found: Mask = equal.to_numpy(zero_copy_only=False)
    return found


# Digests


_WORDS = np.dtype([("first", "<u8"), ("second", "<u8")])
_SEEDS = (SEED, 7919)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_OTHER = np.uint64(0xBF58476D1CE4E5B9)
_NULL = np.uint64(0x94D049BB133111EB)
_TURN = np.uint64(31)


def row_digests(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Digests:
    """One digest a row, over the columns in their order."""
    digests = np.zeros(len(columns[0]), _WORDS)
    arrays = [whole_array(column) for column in columns]
    for name, seed in zip(_WORDS.names or (), _SEEDS, strict=True):
        digests[name] = _joined([_hashed(array, seed) for array in arrays], len(digests))
    return digests


def _joined(parts: Sequence[Hashes], count: int) -> Hashes:
    running = np.zeros(count, np.uint64)
    for part in parts:
        running = _mixed(running * _FACTOR + part)
    return running


def _mixed(values: Hashes) -> Hashes:
    values = (values ^ (values >> _TURN)) * _OTHER
    return values ^ (values >> _TURN)


def _hashed(array: pa.Array, seed: int) -> Hashes:
    """A hash of each value; nulls have one of their own."""
    kind = array.type
    if pa.types.is_struct(kind):
        hashes = _joined([_hashed(field, seed) for field in array.flatten()], len(array))
    elif pa.types.is_map(kind) or pa.types.is_list(kind):
        hashes = _hashed_lists(array, seed)
    else:
        hashes = key_hashes([float_bits(array) if pa.types.is_floating(kind) else array], seed=seed)
    valid = valid_rows(array)
    return hashes if valid is None else np.where(valid, hashes, _NULL)


def _hashed_lists(array: pa.Array, seed: int) -> Hashes:
    """Each item counts with its place in the list, and the list with its length."""
    offsets = _offsets(array)
    items = _hashed(_items(array).slice(int(offsets[0]), int(offsets[-1] - offsets[0])), seed)
    offsets = offsets - offsets[0]
    lengths = np.diff(offsets)
    places = np.arange(len(items), dtype=np.int64) - np.repeat(offsets[:-1], lengths)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_mixed(items + places.view(np.uint64) * _FACTOR))])
    return _mixed(sums[offsets[1:]] - sums[offsets[:-1]] + lengths.view(np.uint64))


def _offsets(array: pa.Array) -> npt.NDArray[np.int64]:
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array) + 1, np.int64)
    offsets: npt.NDArray[Any] = np.frombuffer(buffer, "<i4", len(array) + 1, array.offset * 4)
    return offsets.astype(np.int64)


def _items(array: pa.Array) -> pa.Array:
    """All items that the array's offsets count, those of other rows too."""
    if not pa.types.is_map(array.type):
        return array.values
    return pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])


def float_bits(array: pa.Array) -> pa.Array:
    """Floats as integers of their bits: of every NaN the same."""
    wide = array.cast(pa.float64())
    values = fixed_values(wide, "<f8")
    numbers = np.where(np.isnan(values), np.nan, values)
    bits = pa.Array.from_buffers(pa.int64(), len(array), [None, pa.py_buffer(numbers)])
    return bits if not array.null_count else pc.if_else(array.is_valid(), bits, pa.scalar(None, pa.int64()))


def holds_same_rows(left: pa.Table, right: pa.Table, keys: Sequence[str]) -> bool:
    """Whatever their order; rows of one key are one row. A NaN is the same as nothing. Where there are no keys, rows
    that differ in nested values alone are told apart only if they come in one order."""
    if left.schema != right.schema or left.num_rows != right.num_rows:
        return False
    return bool(left.equals(right) or _in_order(left, keys).equals(_in_order(right, keys)))


def _in_order(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    names = keys or [field.name for field in rows.schema if not pa.types.is_nested(field.type)]
    return rows.sort_by([(name, "ascending") for name in names]) if names else rows
