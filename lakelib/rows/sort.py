"""Pure. Sorts rows by key, keeps the newest of each key, and groups rows by code.

A sort looks at one word of the key at a time (see `rows.keys`), and after the first word only at the rows that
still tie. Every sort here is stable: rows of equal keys stay in their order.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelib.rows.keys import Rows, WordColumn, Words, open_columns

FEW_RUNS = 16
"""Up to so many runs that are sorted already, merging them is faster than sorting the whole."""

_RADIX_BITS = 16
_ROW_BITS = np.uint64(32)
_ROW_MASK = np.uint64(2**32 - 1)


def newest_order(keys: Sequence[pa.Array], order_by: Sequence[pa.Array]) -> Rows:
    """The rows in key order, of each key only the newest: the highest in `order_by`, and of those the last."""
    ranking = Ranking(len(keys[0]))
    ranking.sort_by(open_columns([[key] for key in keys]))
    if not len(ranking.tied):
        return ranking.order
    return _newest_of_tied(ranking, open_columns([[column] for column in order_by]))


def newest_of(keys: Sequence[WordColumn], order_by: Sequence[WordColumn], row_count: int) -> Rows:
    """As `newest_order`, of columns that are opened already."""
    ranking = Ranking(row_count)
    ranking.sort_by(keys)
    return _newest_of_tied(ranking, order_by) if len(ranking.tied) else ranking.order


def _newest_of_tied(ranking: "Ranking", order_by: Sequence[WordColumn]) -> Rows:
    keep = np.ones(len(ranking.order), np.bool_)
    keep[ranking.tied] = False
    keep[ranking.tied[_ends(ranking.group)]] = True
    # Sorting by more columns moves rows only within their key's positions, so the newest comes to stand last.
    ranking.sort_by(order_by)
    return ranking.order[keep]


def key_order(keys: Sequence[WordColumn], row_count: int) -> Rows:
    """The rows in key order, all of them."""
    ranking = Ranking(row_count)
    ranking.sort_by(keys)
    return ranking.order


def group_order(codes: npt.NDArray[np.integer]) -> tuple[Rows, npt.NDArray[np.integer], Rows]:
    """The rows arranged by code (≥ 0), in their order within a group; the codes that occur; the bounds of the groups.

    The rows of code `found[i]` are `order[bounds[i]:bounds[i + 1]]`. Takes memory by rows, however large the codes are.
    """
    # NumPy sorts 16-bit integers by radix: two such passes still beat one sort of wider codes.
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    for shift in range(_RADIX_BITS, int(codes.max(initial=0)).bit_length(), _RADIX_BITS):
        digits = (codes >> shift).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    arranged = codes[order]
    starts = np.flatnonzero(arranged[1:] != arranged[:-1]) + 1
    bounds = np.concatenate(([0], starts, [len(codes)])) if len(codes) else np.zeros(1, np.int64)
    return order, arranged[bounds[:-1]], bounds


def stable_order(words: Words) -> Rows:
    """What argsort(kind="stable") gives, faster."""
    count = len(words)
    descents = int(np.count_nonzero(words[1:] < words[:-1]))
    if descents == 0:
        return np.arange(count)
    if descents <= FEW_RUNS:
        return np.argsort(words, kind="stable")
    low, row_bits = words.min(), np.uint64(count.bit_length())
    if int(words.max() - low).bit_length() + int(row_bits) <= 64:
        packed = (words - low) << row_bits
        packed |= np.arange(count, dtype=np.uint64)
        packed.sort()
        rows: Rows = (packed & np.uint64((1 << int(row_bits)) - 1)).view(np.int64)
        return rows
    return _in_row_order(np.argsort(words), words)


def _in_row_order(order: Rows, words: Words) -> Rows:
    """Repairs what an unstable sort did to rows of equal words."""
    arranged = words[order]
    tied, group = _ties(arranged[1:] == arranged[:-1])
    if len(tied):
        order[tied] = _packed_sort(group, order[tied])
    return order


class Ranking:
    """Rows being sorted word by word, from an order that so far knows no difference between them.

    `order` holds the row at each position. `tied` are the positions, ascending, of rows that equal a neighbour in all
    words so far; `group` numbers the sets of equal rows among them, also ascending.
    """

    def __init__(self, row_count: int) -> None:
        self.order: Rows = np.arange(row_count)
        self.tied: Rows = self.order if row_count > 1 else self.order[:0]
        self.group: Rows = np.zeros(len(self.tied), np.int64)

    def sort_by(self, columns: Iterable[WordColumn]) -> None:
        """Sorts the rows that tie by further columns."""
        for column in columns:
            self._sort_by_column(column)

    def _sort_by_column(self, column: WordColumn) -> None:
        number = 0
        while len(self.tied) and number < column.count_words(self._asked_rows()):
            self._split(column.word(number, self._asked_rows()))
            number += 1
        last = column.last_word(self.order[self.tied]) if len(self.tied) else None
        if last is not None:
            self._split(last)

    def _asked_rows(self) -> Rows | None:
        """None where all rows tie and none has moved, so that columns are read through, not gathered."""
        return None if self.tied is self.order else self.order[self.tied]

    def _split(self, words: Words) -> None:
        """Sorts each set of equal rows by one more word, and parts it where the word differs."""
        order = _order_in_groups(self.group, words)
        if order is not None:
            words = words[order]
            self._move_tied(order)
        equals_next = words[1:] == words[:-1]
        if not _is_one(self.group):
            equals_next &= self.group[1:] == self.group[:-1]
        tied, group = _ties(equals_next)
        if len(tied) < len(words) or order is not None:
            self.tied = self.tied[tied]
        self.group = group

    def _move_tied(self, order: Rows) -> None:
        if self.tied is self.order:
            self.order = order
        else:
            self.order[self.tied] = self.order[self.tied[order]]


def _order_in_groups(group: Rows, words: Words) -> Rows | None:
    """A stable order by (group, word); None where the words are in order already. Groups are ascending."""
    falls = words[1:] < words[:-1]
    if not _is_one(group):
        falls &= group[1:] == group[:-1]
    if not falls.any():
        return None
    order = stable_order(words)
    return order if _is_one(group) else order[_packed_sort(group[order], np.arange(len(words)))]


def _is_one(group: Rows) -> bool:
    """Whether all belong to one group."""
    return bool(group[0] == group[-1])


def _packed_sort(group: Rows, rows: Rows) -> Rows:
    """The row numbers, which are distinct, sorted by (group, row). Sorting plain integers beats sorting indices."""
    packed = group.astype(np.uint64) << _ROW_BITS
    packed |= rows.astype(np.uint64)
    packed.sort()
    packed &= _ROW_MASK
    return packed.view(np.int64)


def _ties(equals_next: npt.NDArray[np.bool_]) -> tuple[Rows, Rows]:
    """The positions that equal a neighbour, and the number of the set that each belongs to."""
    if not equals_next.any():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    equals_previous = np.concatenate(([False], equals_next))
    in_set = equals_previous.copy()
    in_set[:-1] |= equals_next
    tied = np.flatnonzero(in_set)
    return tied, np.cumsum(~equals_previous[tied]) - 1


def _ends(group: Rows) -> Rows:
    """The last index of each group."""
    return np.append(np.flatnonzero(group[1:] != group[:-1]), len(group) - 1)
