"""Pure. Turns column values into words: unsigned 64-bit integers whose lexicographic order is the order of the values.

Integers, dates, timestamps, booleans and floats have one word, decimals two. Strings and binaries have as many as their
length needs, read only for the rows that are asked for: a long string costs nothing while its first word tells it
apart. Strings that share so much that words do not get on are compared as a whole. NULL is below every value, NaN above
every number, and -0.0 equals 0.0.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.rows.buffers import (
    WORD_BYTES,
    ByteRows,
    array_of_numbers,
    byte_rows,
    fixed_values,
    is_byte_type,
    is_int_type,
    is_long_type,
    join_byte_rows,
    valid_rows,
)

Rows = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Parts = Sequence[pa.Array]
"""One column, in one or more arrays of one type: its rows are those of all arrays, in order."""

_MOST_WORDS = 32
"""Strings that tie in so many words are ranked as a whole: a step over all rows for each word of a long common prefix
would cost far more than to compare each with a few others."""

_SIGN = np.uint64(1 << 63)
_ALL = np.uint64(2**64 - 1)
_LEADING_BYTES = np.array([2**64 - (1 << 8 * (8 - count)) for count in range(9)], np.uint64)
"""Masks that keep the first 0 to 8 bytes of a big-endian word."""


class WordColumn(Protocol):
    """The words of one column. Rows that are equal in all words, the last one included, are equal."""

    def count_words(self, rows: Rows | None) -> int:
        """How many words those rows (all, if None) have before the last word."""

    def word(self, number: int, rows: Rows | None) -> Words:
        """One word of each of those rows (all, if None)."""

    def last_word(self, rows: Rows) -> Words | None:
        """What tells apart those of the rows that are equal in all other words; None if nothing is left to tell. It
        says nothing about rows of another call."""


@dataclass(frozen=True, slots=True)
class FixedColumn:
    words: Words

    def count_words(self, rows: Rows | None) -> int:
        return 1

    def word(self, number: int, rows: Rows | None) -> Words:
        return self.words if rows is None else self.words[rows]

    def last_word(self, rows: Rows) -> Words | None:
        return None


@dataclass(frozen=True, slots=True)
class BytesColumn:
    """Words are padded with zeros, so the length comes last: it tells 'a' from 'a' followed by a NUL. Where there are
    more bytes than words are made of, the rank of the whole value comes last."""

    rows: ByteRows
    shortest: int
    longest: int

    def count_words(self, rows: Rows | None) -> int:
        return min(_MOST_WORDS, -(-self._longest_of(rows) // WORD_BYTES))

    def _longest_of(self, rows: Rows | None) -> int:
        if rows is None or self.shortest == self.longest:
            return self.longest
        return int(self.rows.lengths[rows].max(initial=0))

    def word(self, number: int, rows: Rows | None) -> Words:
        at = number * WORD_BYTES
        if self.shortest == self.longest >= WORD_BYTES:
            return self._word_of_equal_lengths(min(at, self.longest - WORD_BYTES), rows)
        starts, lengths = self.rows.starts, self.rows.lengths
        if rows is not None:
            starts, lengths = starts[rows], lengths[rows]
        return self._gather(starts + at, lengths - at)

    def _word_of_equal_lengths(self, at: int, rows: Rows | None) -> Words:
        """Needs no padding: the last word may begin within the one before, of which it repeats bytes that are equal."""
        if rows is None and self.rows.packed:
            return self.rows.column(">u8", at, self.longest).astype(np.uint64)
        starts = self.rows.starts if rows is None else self.rows.starts[rows]
        return self.rows.view(">u8")[starts + at].astype(np.uint64)

    def last_word(self, rows: Rows) -> Words | None:
        if self._longest_of(rows) > _MOST_WORDS * WORD_BYTES:
            return self._ranks(rows)
        return None if self.shortest == self.longest else self.rows.lengths[rows].view(np.uint64)

    def _ranks(self, rows: Rows) -> Words:
        """The places of the values among those of the rows; equal values share one. 0 for an empty value."""
        starts, lengths = self.rows.starts, self.rows.lengths
        offsets = np.append(starts, starts[-1] + lengths[-1])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.rows.data)]
        values = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(starts), buffers)
        ranks = pc.rank(values.take(array_of_numbers(rows)), tiebreaker="dense").to_numpy()
        return np.where(lengths[rows] == 0, np.uint64(0), ranks)

    def _gather(self, positions: Rows, left: Rows) -> Words:
        """The word at each position, of which the first `left` bytes belong to the row.

        A word that would reach beyond the data is read further to the left and shifted.
        """
        view = self.rows.view(">u8")
        if left.min(initial=WORD_BYTES) >= WORD_BYTES:
            return view[positions].astype(np.uint64)
        reached = np.minimum(positions, len(view) - 1)
        words = view[reached].astype(np.uint64)
        beyond = np.clip(positions - reached, 0, WORD_BYTES - 1)
        words <<= (beyond * 8).astype(np.uint64)
        words &= _LEADING_BYTES[np.clip(left, 0, WORD_BYTES)]
        return words


def open_columns(columns: Sequence[Parts]) -> list[WordColumn]:
    """The word columns of several columns, first to last; their rows count through all parts.

    Raises InvalidInputError for a type that has no order.
    """
    return [opened for parts in columns for opened in _open_column(parts)]


def first_words(parts: Parts) -> Words:
    """The first word of every row: rows that differ in it are in its order. Copies no string."""
    if any(part.null_count for part in parts):
        return _open_column(parts)[0].word(0, None)
    if is_byte_type(parts[0].type):
        return np.concatenate([_bytes_column(byte_rows(part)).word(0, None) for part in parts])
    return np.concatenate([_fixed_words(part)[0] for part in parts])


def is_one_word(parts: Parts) -> bool:
    """Whether the first words alone decide the order."""
    kind = parts[0].type
    return not (is_byte_type(kind) or pa.types.is_decimal(kind) or any(part.null_count for part in parts))


def value_reader(array: pa.Array) -> Callable[[int], Any]:
    """A function from a row to a value that Python compares as the words compare; for key columns, without nulls."""
    if is_byte_type(array.type):
        rows = byte_rows(array)
        return lambda row: rows.data[rows.starts[row] : rows.starts[row] + rows.lengths[row]].tobytes()
    words = _fixed_words(array)
    return lambda row: tuple(int(word[row]) for word in words)


def _open_column(parts: Parts) -> list[WordColumn]:
    flags, opened = [], _open_values(parts)
    if any(part.null_count for part in parts):
        valid = np.concatenate([_valid(part) for part in parts])
        flags = [FixedColumn(valid.astype(np.uint64))]
    return [*flags, *opened]


def _open_values(parts: Parts) -> list[WordColumn]:
    if not is_byte_type(parts[0].type):
        per_part = [_fixed_words(part) for part in parts]
        return [FixedColumn(_joined(words)) for words in zip(*per_part, strict=True)]
    rows = join_byte_rows(parts)
    if any(part.null_count for part in parts):
        lengths = np.where(np.concatenate([_valid(part) for part in parts]), rows.lengths, 0)
        rows = ByteRows(data=rows.data, starts=rows.starts, lengths=lengths, packed=False)
    return [_bytes_column(rows)]


def _bytes_column(rows: ByteRows) -> BytesColumn:
    if len(rows.lengths) == 0:
        return BytesColumn(rows, 0, 0)
    return BytesColumn(rows, int(rows.lengths.min()), int(rows.lengths.max()))


def _joined(words: Sequence[Words]) -> Words:
    return words[0] if len(words) == 1 else np.concatenate(words)


def _valid(part: pa.Array) -> npt.NDArray[np.bool_]:
    valid = valid_rows(part)
    return np.ones(len(part), np.bool_) if valid is None else valid


def _fixed_words(array: pa.Array) -> list[Words]:
    """The words of an array of a fixed width; 0 at a null."""
    words = _value_words(array)
    if array.null_count == 0:
        return words
    valid = _valid(array)
    return [np.where(valid, word, np.uint64(0)) for word in words]


def _value_words(array: pa.Array) -> list[Words]:
    kind = array.type
    if is_long_type(kind):
        return [fixed_values(array, "<u8") ^ _SIGN]
    if is_int_type(kind):
        return [fixed_values(array, f"<i{kind.bit_width // 8}").astype(np.int64).view(np.uint64) ^ _SIGN]
    if pa.types.is_boolean(kind):
        return [fixed_values(array.cast(pa.uint8()), "u1").astype(np.uint64)]
    if pa.types.is_decimal128(kind):
        words = fixed_values(array, "<u8", 2)
        return [words[1::2] ^ _SIGN, words[::2]]
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return [_float_words(fixed_values(array, f"<f{kind.bit_width // 8}").astype(np.float64))]
    raise InvalidInputError(
        f"Values of type {kind} have no order.", kind="unsortable_type", remedy="Choose a column of a simple type."
    )


def _float_words(values: npt.NDArray[np.float64]) -> Words:
    bits = (values + 0.0).view(np.uint64)
    words: Words = np.where(bits & _SIGN, bits ^ _ALL, bits | _SIGN)
    words[np.isnan(values)] = _ALL
    return words
