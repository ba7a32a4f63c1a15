"""Pure. Hashes primary keys exactly as Spark SQL's xxhash64 does, so that every engine puts a key into the same bucket.

XXH64, seed 42, chained over the columns: the hash of one column is the seed of the next. All arithmetic wraps at 64
bits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelib.errors import InvalidInputError
from lakelib.rows.buffers import (
    WORD_BYTES,
    ByteRows,
    arrays_of,
    byte_rows,
    fixed_values,
    is_byte_type,
    is_int_type,
    is_long_type,
    valid_rows,
)

Hashes = npt.NDArray[np.uint64]

SEED = 42
BLOCK_ROWS = 32_768
"""Rows hashed at a time: what one step writes, the next step still finds in the processor's cache."""

LONG_DECIMAL_DIGITS = 18
"""Decimals of up to this precision hash as 64-bit integers."""

STRIPE_BYTES = 32

P1 = np.uint64(0x9E3779B185EBCA87)
P2 = np.uint64(0xC2B2AE3D27D4EB4F)
P3 = np.uint64(0x165667B19E3779F9)
P4 = np.uint64(0x85EBCA77C2B2AE63)
P5 = np.uint64(0x27D4EB2F165667C5)
MINUS_P1 = np.uint64(2**64 - int(P1))
P1_PLUS_P2 = np.uint64((int(P1) + int(P2)) % 2**64)


def key_hashes(columns: Sequence[pa.Array | pa.ChunkedArray], *, seed: int = SEED) -> Hashes:
    """One hash a row, over the columns in their order. A null leaves the hash of the columns before it unchanged.

    Raises InvalidInputError for a column of a type that cannot be a key.
    """
    hashes = np.full(len(columns[0]), seed, np.uint64)
    for column in columns:
        start = 0
        for array in arrays_of(column):
            _hash_array(array, hashes[start : start + len(array)])
            start += len(array)
    return hashes


def hash_prefixes(hashes: Hashes, depth: int) -> npt.NDArray[np.int32]:
    """The first `depth` bits of each hash, as a number; 0 at depth 0."""
    if depth == 0:
        return np.zeros(len(hashes), np.int32)
    return (hashes >> np.uint64(64 - depth)).astype(np.int32)


def _hash_array(array: pa.Array, running: Hashes) -> None:
    for start in range(0, len(array), BLOCK_ROWS):
        block = array.slice(start, BLOCK_ROWS)
        seeds = running[start : start + BLOCK_ROWS]
        valid = valid_rows(block)
        hashes = seeds if valid is None else seeds.copy()
        _hash_block(block, hashes)
        if valid is not None:
            np.copyto(seeds, hashes, where=valid)


def _hash_block(block: pa.Array, hashes: Hashes) -> None:
    """Replaces each hash, the row's seed, by the hash of its value."""
    kind = block.type
    if is_byte_type(kind):
        _hash_bytes(byte_rows(block), hashes)
    elif is_long_type(kind):
        _hash_longs(fixed_values(block, "<u8"), hashes)
    elif is_int_type(kind):
        _hash_ints(fixed_values(block, f"<i{kind.bit_width // 8}").astype(np.int32).view(np.uint32), hashes)
    elif pa.types.is_boolean(kind):
        _hash_ints(fixed_values(block.cast(pa.uint8()), "u1"), hashes)
    elif pa.types.is_decimal128(kind) and kind.precision <= LONG_DECIMAL_DIGITS:
        _hash_longs(fixed_values(block, "<u8", 2)[::2], hashes)
    elif pa.types.is_decimal128(kind):
        _hash_bytes(_big_integers(block), hashes)
    else:
        raise InvalidInputError(
            f"A column of type {kind} cannot be hashed.", kind="invalid_key_type", remedy="Choose another key column."
        )


def _big_integers(block: pa.Array) -> ByteRows:
    """The unscaled values as Java's BigInteger.toByteArray gives them: big-endian, as few bytes as keep the sign."""
    words = fixed_values(block, "<i8", 2).reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]
    sign = high >> 63
    magnitude_low, magnitude_high = (low ^ sign).view(np.uint64), (high ^ sign).view(np.uint64)
    lengths = np.ones(len(block), np.int64)
    for bits in range(7, 64, 8):
        limit = np.uint64(1 << bits)
        lengths += (magnitude_low >= limit) | (magnitude_high > 0)
        lengths += magnitude_high >= limit
    data = words[:, ::-1].astype(">i8").view(np.uint8).reshape(-1)
    starts = np.arange(16, 16 * len(block) + 16, 16, dtype=np.int64) - lengths
    return ByteRows(data=data, starts=starts, lengths=lengths, packed=False)


def _hash_longs(values: npt.NDArray[np.uint64], hashes: Hashes) -> None:
    scratch = np.empty_like(hashes)
    hashes += P5 + np.uint64(8)
    _mix_word(hashes, values, scratch)
    _finish(hashes, scratch)


def _hash_ints(values: npt.NDArray[Any], hashes: Hashes) -> None:
    scratch = np.empty_like(hashes)
    hashes += P5 + np.uint64(4)
    _mix_half(hashes, values, scratch)
    _finish(hashes, scratch)


def _hash_bytes(rows: ByteRows, hashes: Hashes) -> None:
    shortest, longest = int(rows.lengths.min()), int(rows.lengths.max())
    if shortest == longest and rows.packed:
        _hash_equal_lengths(rows, longest, hashes)
    else:
        _hash_mixed_lengths(rows, hashes)


def _hash_equal_lengths(rows: ByteRows, length: int, hashes: Hashes) -> None:
    """Equal lengths put the words of all rows at equal distances: they are read without gathering."""
    scratch = np.empty_like(hashes)
    at = length - length % STRIPE_BYTES
    if at:
        lanes = _open_lanes(hashes)
        for start in range(0, at, WORD_BYTES):
            _mix_lane(lanes[start // WORD_BYTES % 4], rows.column("<u8", start, length), scratch)
        _close_lanes(lanes, hashes, scratch)
    else:
        hashes += P5
    hashes += np.uint64(length)
    for start in range(at, length - 7, 8):
        _mix_word(hashes, rows.column("<u8", start, length), scratch)
    at = length - length % 8
    if length - at >= 4:
        _mix_half(hashes, rows.column("<u4", at, length), scratch)
    for start in range(length - length % 4, length):
        _mix_byte(hashes, rows.column("u1", start, length), scratch)
    _finish(hashes, scratch)


def _hash_mixed_lengths(rows: ByteRows, hashes: Hashes) -> None:
    """Longest rows first, so that the rows that have a stripe left are the first ones."""
    order = np.argsort(-rows.lengths)
    starts, lengths, mixed = rows.starts[order], rows.lengths[order], hashes[order]
    words = rows.view("<u8")
    long = int(np.searchsorted(-lengths, -STRIPE_BYTES, "right"))
    if long:
        _mix_stripes(words, starts[:long], lengths[:long], mixed[:long])
    mixed[long:] += P5
    mixed += lengths.view(np.uint64)
    _mix_rest(rows, words, starts + (lengths & -STRIPE_BYTES), lengths % STRIPE_BYTES, mixed)
    _finish(mixed, np.empty_like(mixed))
    hashes[order] = mixed


def _mix_stripes(
    words: npt.NDArray[np.uint64], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], hashes: Hashes
) -> None:
    lanes = _open_lanes(hashes)
    scratch = np.empty_like(hashes)
    stripes = lengths // STRIPE_BYTES
    for stripe in range(int(stripes[0])):
        active = int(np.searchsorted(-stripes, -stripe))
        for number, lane in enumerate(lanes):
            values = words[starts[:active] + (stripe * STRIPE_BYTES + number * 8)]
            _mix_lane(lane[:active], values, scratch[:active])
    _close_lanes(lanes, hashes, scratch)


def _mix_rest(
    rows: ByteRows,
    words: npt.NDArray[np.uint64],
    at: npt.NDArray[np.int64],
    left: npt.NDArray[np.int64],
    hashes: Hashes,
) -> None:
    """Mixes in what the stripes leave of each row: `left` bytes, fewer than 32, from `at`."""
    for word in range(3):
        some = np.flatnonzero(left >= 8 * word + 8)
        _mix_some(_mix_word, hashes, some, words[at[some] + 8 * word])
    at, left = at + (left & -8), left & 7
    some = np.flatnonzero(left >= 4)
    _mix_some(_mix_half, hashes, some, rows.view("<u4")[at[some]])
    at, left = at + (left & -4), left & 3
    for byte in range(3):
        some = np.flatnonzero(left > byte)
        _mix_some(_mix_byte, hashes, some, rows.data[at[some] + byte])


def _mix_some(mix: Any, hashes: Hashes, some: npt.NDArray[np.intp], values: npt.NDArray[Any]) -> None:
    mixed = hashes[some]
    mix(mixed, values, np.empty_like(mixed))
    hashes[some] = mixed


def _open_lanes(seeds: Hashes) -> tuple[Hashes, Hashes, Hashes, Hashes]:
    return seeds + P1_PLUS_P2, seeds + P2, seeds.copy(), seeds + MINUS_P1


def _close_lanes(lanes: tuple[Hashes, ...], hashes: Hashes, scratch: Hashes) -> None:
    hashes[:] = 0
    for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True):
        turned = lane.copy()
        _rotate(turned, bits, scratch)
        hashes += turned
    for lane in lanes:
        lane *= P2
        _rotate(lane, 31, scratch)
        lane *= P1
        hashes ^= lane
        hashes *= P1
        hashes += P4


def _mix_lane(lane: Hashes, values: npt.NDArray[np.uint64], scratch: Hashes) -> None:
    np.multiply(values, P2, out=scratch)
    lane += scratch
    _rotate(lane, 31, scratch)
    lane *= P1


def _mix_word(hashes: Hashes, values: npt.NDArray[np.uint64], scratch: Hashes) -> None:
    mixed = values * P2
    _rotate(mixed, 31, scratch)
    mixed *= P1
    hashes ^= mixed
    _rotate(hashes, 27, scratch)
    hashes *= P1
    hashes += P4


def _mix_half(hashes: Hashes, values: npt.NDArray[Any], scratch: Hashes) -> None:
    np.multiply(values, P1, out=scratch)
    hashes ^= scratch
    _rotate(hashes, 23, scratch)
    hashes *= P2
    hashes += P3


def _mix_byte(hashes: Hashes, values: npt.NDArray[np.uint8], scratch: Hashes) -> None:
    np.multiply(values, P5, out=scratch)
    hashes ^= scratch
    _rotate(hashes, 11, scratch)
    hashes *= P1


def _finish(hashes: Hashes, scratch: Hashes) -> None:
    for bits, factor in ((33, P2), (29, P3)):
        np.right_shift(hashes, np.uint64(bits), out=scratch)
        hashes ^= scratch
        hashes *= factor
    np.right_shift(hashes, np.uint64(32), out=scratch)
    hashes ^= scratch


def _rotate(values: Hashes, bits: int, scratch: Hashes) -> None:
    np.right_shift(values, np.uint64(64 - bits), out=scratch)
    values <<= np.uint64(bits)
    values |= scratch
