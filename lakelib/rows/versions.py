"""Pure. The versions of some keys side by side, and what is chosen or made of those of each key at once: a row, or
lists, maps and texts put together.

Merge engines are told in these terms: nothing here looks at one row after the other.
"""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.model.schema import OP_COLUMN, Op
from lakelib.rows.buffers import array_of_mask, array_of_numbers, fixed_values, valid_rows, whole_array
from lakelib.rows.keys import Rows, open_columns
from lakelib.rows.sort import key_order

Mask = npt.NDArray[np.bool_]

NONE = -1
"""In place of a row: there is none."""
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)  # without slots: it remembers what counts
class Versions:
    """Rows of one table after the other, those of a key together, from the oldest to the newest."""

    rows: pa.Table
    starts: Rows
    """Where each key begins."""

    @property
    def last_rows(self) -> Rows:
        """The newest version of each key."""
        return np.append(self.starts[1:], self.rows.num_rows) - 1

    @cached_property
    def ops(self) -> npt.NDArray[np.int8] | None:
        """None where all are rows."""
        if OP_COLUMN not in self.rows.column_names:
            return None
        found: npt.NDArray[np.int8] = fixed_values(whole_array(self.rows.column(OP_COLUMN)), "i1")
        return found if found.any() else None

    @cached_property
    def counted(self) -> Mask | None:
        """The versions whose values count: not delete marks, nor what is older than one. None for all."""
        if self.ops is None:
            return None
        counted: Mask = (self._places >= self._spread(self._resets)) & (self.ops != Op.DELETE)
        return counted

    @cached_property
    def op(self) -> npt.NDArray[np.int8] | None:
        """What the row that is made of each key is; None where all are rows."""
        if self.ops is None or self.counted is None:
            return None
        is_row = np.logical_or.reduceat(self.counted & (self.ops & 1 == 0), self.starts)
        has_values = np.logical_or.reduceat(self.counted, self.starts)
        is_anew = self._resets != NONE
        of_rows = np.where(is_anew, Op.ANEW, Op.ROW)
        of_others = np.where(has_values, np.where(is_anew, Op.VALUES_ANEW, Op.VALUES), Op.DELETE)
        made: npt.NDArray[np.int8] = np.where(is_row, of_rows, of_others).astype(np.int8)
        return made

    @cached_property
    def _resets(self) -> Rows:
        """The last version of each key that says that what is older does not count."""
        assert self.ops is not None
        resets = np.isin(self.ops, (Op.DELETE, Op.ANEW, Op.VALUES_ANEW))
        found: Rows = np.maximum.reduceat(np.where(resets, self._places, NONE), self.starts)
        return found

    @cached_property
    def _places(self) -> Rows:
        return np.arange(self.rows.num_rows)

    def _spread(self, of_keys: Rows) -> Rows:
        """Of each version what its key has."""
        return np.repeat(of_keys, np.diff(self.starts, append=self.rows.num_rows))

    def numbers(self) -> Rows:
        """Of each version the number of its key."""
        return self._spread(np.arange(len(self.starts)))

    def remembered(self, what: tuple[str, ...], find: Callable[[], Rows]) -> Rows:
        """What was found before for several columns, if it was."""
        if what not in self._found:
            self._found[what] = find()
        return self._found[what]

    @cached_property
    def _found(self) -> dict[tuple[str, ...], Rows]:
        return {}

    def all(self) -> Mask:
        """The versions that count."""
        return np.ones(self.rows.num_rows, np.bool_) if self.counted is None else self.counted

    def of_rows(self) -> Mask:
        """The versions that count and are rows, not values alone."""
        return self.all() if self.ops is None else self.all() & (self.ops & 1 == 0)

    def given(self, name: str) -> Mask:
        """The versions that count and have a value in the column."""
        column = whole_array(self.rows.column(name))
        if not column.null_count:
            return self.all()
        valid = valid_rows(column)
        if valid is None:
            return self.all()
        return valid if self.counted is None else valid & self.counted

    def any(self, mask: Mask) -> Mask:
        """The keys of which a version is in the mask."""
        found: Mask = np.logical_or.reduceat(mask, self.starts)
        return found

    def last(self, mask: Mask) -> Rows:
        """Of each key the last version in the mask."""
        found: Rows = np.maximum.reduceat(np.where(mask, self._places, NONE), self.starts)
        return found

    def first(self, mask: Mask) -> Rows:
        """Of each key the first version in the mask."""
        beyond = self.rows.num_rows
        found: Rows = np.minimum.reduceat(np.where(mask, self._places, beyond), self.starts)
        found[found == beyond] = NONE
        return found

    def highest(self, names: Sequence[str], mask: Mask) -> Rows:
        """Of each key the version in the mask that is highest in these columns; of several the last."""
        order = self._order(names)
        return _in_order(order, np.maximum.reduceat(np.where(mask, _ranks(order), NONE), self.starts))

    def lowest(self, names: Sequence[str], mask: Mask) -> Rows:
        """Of each key the version in the mask that is lowest in these columns; of several the first."""
        order = self._order(names)
        beyond = self.rows.num_rows
        found = np.minimum.reduceat(np.where(mask, _ranks(order), beyond), self.starts)
        found[found == beyond] = NONE
        return _in_order(order, found)

    def _order(self, names: Sequence[str]) -> Rows:
        columns = open_columns([[whole_array(self.rows.column(name))] for name in names])
        return key_order(columns, self.rows.num_rows)

    def take(self, name: str, rows: Rows) -> pa.Array:
        """The column's values of these rows, NULL for none."""
        return taken(whole_array(self.rows.column(name)), rows)


def taken(values: pa.Array, rows: Rows) -> pa.Array:
    """The values of these rows, NULL for none."""
    places = array_of_numbers(rows)
    if len(rows) and int(rows.min()) == NONE:
        places = pc.if_else(array_of_mask(rows != NONE), places, pa.scalar(None, pa.int64()))
    return values.take(places)


def _ranks(order: Rows) -> Rows:
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks


def _in_order(order: Rows, ranks: Rows) -> Rows:
    """The rows of these ranks; none stays none."""
    if not len(order):
        return ranks
    return np.where(ranks == NONE, NONE, order[ranks])


# Collections


def collect_list(values: pa.Array, given: Mask, starts: Rows) -> pa.Array:
    """All elements, one list after the other."""
    kept = _kept(values, given)
    return _lists(kept.flatten(), _count_by_key(_lengths(kept), starts), given, starts, values.type)


def collect_set(values: pa.Array, given: Mask, starts: Rows) -> pa.Array:
    """Each element once, where it came first; NULL is none."""
    kept = _kept(values, given)
    elements = kept.flatten()
    keys = np.repeat(np.arange(len(starts)), _count_by_key(_lengths(kept), starts))
    valid = elements.is_valid().to_numpy(zero_copy_only=False)
    places = np.flatnonzero(valid)[_firsts(keys[valid], elements.filter(array_of_mask(valid)))]
    counts = np.bincount(keys[places], minlength=len(starts)).astype(np.int64)
    return _lists(elements.take(array_of_numbers(places)), counts, given, starts, values.type)


def merge_maps(values: pa.Array, given: Mask, starts: Rows) -> pa.Array:
    """All entries; of those of one key of the map the last."""
    kept = _kept(values, given)
    offsets = kept.offsets.to_numpy()
    inner = slice(int(offsets[0]), int(offsets[-1]))
    map_keys, items = kept.keys[inner], kept.items[inner]
    keys = np.repeat(np.arange(len(starts)), _count_by_key(np.diff(offsets).astype(np.int64), starts))
    places = (len(keys) - 1 - _firsts(keys[::-1], map_keys.take(array_of_numbers(np.arange(len(keys))[::-1]))))[::-1]
    counts = np.bincount(keys[places], minlength=len(starts)).astype(np.int64)
    chosen = array_of_numbers(places)
    return pa.MapArray.from_arrays(
        _offsets(counts), map_keys.take(chosen), items.take(chosen), type=values.type, mask=_nulls(given, starts)
    )


def join_text(values: pa.Array, given: Mask, starts: Rows, delimiter: str) -> pa.Array:
    """The texts, with the delimiter between them."""
    counts = np.add.reduceat(given.astype(np.int64), starts)
    lists = _lists(values.filter(array_of_mask(given)), counts, given, starts, pa.list_(values.type))
    return pc.binary_join(lists, pa.scalar(delimiter, values.type))


def _kept(values: pa.Array, given: Mask) -> pa.Array:
    """A copy, so that what lies in it is what its rows have."""
    return taken(values, np.where(given, np.arange(len(values)), NONE))


def _lengths(values: pa.Array) -> Counts:
    lengths: Counts = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def _count_by_key(lengths: Counts, starts: Rows) -> Counts:
    counts: Counts = np.add.reduceat(lengths, starts)
    return counts


def _firsts(keys: Rows, values: pa.Array) -> Rows:
    """Of each value of a key the place where it comes first, ascending."""
    if not len(keys):
        return keys
    codes = pc.dictionary_encode(values).indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, places = np.unique(keys * (int(codes.max()) + 1) + codes, return_index=True)
    return np.sort(places)


def _lists(elements: pa.Array, counts: Counts, given: Mask, starts: Rows, kind: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(_offsets(counts), elements, type=kind, mask=_nulls(given, starts))


def _offsets(counts: Counts) -> pa.Array:
    return array_of_numbers(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))


def _nulls(given: Mask, starts: Rows) -> pa.Array:
    return array_of_mask(~np.logical_or.reduceat(given, starts))
