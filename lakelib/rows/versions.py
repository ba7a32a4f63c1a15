"""Pure. The versions of some keys side by side, and what is chosen or made of those of each key at once.

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
