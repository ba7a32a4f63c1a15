"""Pure. Of keys that stand in several partitions: which rows have to leave, and which version they leave for."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.rows.buffers import array_of_numbers, fixed_values, is_long_type
from lakelib.rows.keys import Rows
from lakelib.rows.merge import have_repeated, repeated_keys
from lakelib.rows.sort import newest_order

Mask = npt.NDArray[np.bool_]

_NO_ROWS: Rows = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Rows and delete marks of keys, at most a few of each."""

    keys: Sequence[pa.Array]
    order_by: Sequence[pa.Array]
    """What says by itself which of two versions is newer."""
    age: npt.NDArray[np.int64]
    """What says it of others: the higher is newer."""
    partition: npt.NDArray[np.int64]
    is_live: Mask
    """Those that are no delete marks."""
    is_own: Mask
    """Those of the commit in question: a key that has none stays as it is."""
    counts: Mask | None = None
    """Those that say anything; None for all."""

    def without_stale_marks(self) -> "Versions":
        """Marks say how new a key is where it has no row. Where it has one they are of a time when a key could be in
        several partitions, or older than the row."""
        marks = ~self.is_own & ~self.is_live
        if not self.order_by or not marks.any():
            return self
        there = np.flatnonzero(~self.is_own)
        chosen = array_of_numbers(there)
        keys = [key.take(chosen) for key in self.keys]
        live = array_of_numbers(self.is_live[there].astype(np.int64))
        telling = there[newest_order(keys, [live, *(column.take(chosen) for column in self.order_by)])]
        counts = ~marks
        counts[telling] = True
        return replace(self, counts=counts)


def find_leaving(versions: Versions) -> tuple[Rows, Rows]:
    """The rows that stand in another partition than the newest version of their key, and that version of each."""
    if versions.is_own.all() and not have_repeated([[key] for key in versions.keys]):
        return _NO_ROWS, _NO_ROWS
    found = _find_by_number(versions)
    if found is not None:
        return found
    rows, starts = repeated_keys([[key] for key in versions.keys])
    if not len(rows):
        return rows, rows
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
    if versions.counts is not None:
        counts = versions.counts[rows]
        rows, group = rows[counts], group[counts]
        starts = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
        group = np.cumsum(np.append(False, group[1:] != group[:-1]))
    chosen = array_of_numbers(rows)
    order_by = [*(column.take(chosen) for column in versions.order_by), array_of_numbers(versions.age[rows])]
    newest = rows[newest_order([array_of_numbers(group)], order_by)][group]
    leaves: Mask = versions.is_live[rows] & (versions.partition[rows] != versions.partition[newest])
    leaves &= np.logical_or.reduceat(versions.is_own[rows], starts)[group]
    return rows[leaves], newest[leaves]


def _find_by_number(versions: Versions) -> tuple[Rows, Rows] | None:
    """Where keys are numbers, no own one comes twice, and versions have no order of their own: an own one is the
    newest. None for others."""
    key = versions.keys[0]
    if versions.order_by or len(versions.keys) > 1 or not is_long_type(key.type) or key.null_count:
        return None
    numbers = fixed_values(key, "<i8")
    own = np.flatnonzero(versions.is_own)
    own = own[np.argsort(numbers[own], kind="stable")]
    arranged = numbers[own]
    if not len(own) or (arranged[1:] == arranged[:-1]).any():
        return None
    others = np.flatnonzero(~versions.is_own & versions.is_live)
    places = np.minimum(np.searchsorted(arranged, numbers[others]), len(own) - 1)
    newest = own[places]
    leaves = (numbers[newest] == numbers[others]) & (versions.partition[others] != versions.partition[newest])
    return others[leaves], newest[leaves]
