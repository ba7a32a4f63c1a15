"""Pure. About how many distinct values there were: sketches that can be put together, one for each key.

They are HLL sketches of Apache DataSketches, as its `serialize_compact` writes them: Spark's `hll_sketch_estimate`, and
whoever else knows the format, reads what lies in a file. Up to `MOST_EXACT` values a sketch is a list of what it has
seen, and those are made, and put together, here, for all keys at once. Beyond that the library does it, key by key.

The library's own number depends on the way in which a large sketch was made. Each of ours says that it came about in
no order (`_NO_ORDER`), for then its number is that of its content alone: any grouping gives the same.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.errors import InvalidInputError
from lakelib.rows.buffers import array_of_mask, array_of_numbers, byte_rows, fixed_values, valid_rows
from lakelib.rows.keys import Rows
from lakelib.rows.versions import Mask

LG_K = 12
"""A large sketch has 2 to the power of it places: 2 KiB, and an error of about 1.6 %."""
MOST_EXACT = 3 << (LG_K - 5)
_MOST_LISTED = 7
_SEED = 9001
_LIST, _SET, _HLL = 0, 1, 2
_VERSION, _FAMILY, _COMPACT, _NO_ORDER = 1, 7, 8, 16
_LIST_HEAD, _SET_HEAD = 8, 12
"""Bytes before what was seen."""

Coupons = npt.NDArray[np.uint32]
"""What a sketch keeps of a value: 26 bits of its hash, and how many zeros another part of it begins with."""


def single_sketches(values: pa.Array) -> pa.Array:
    """A sketch of each value, an integer; NULL for none."""
    valid = valid_rows(values)
    coupons = _coupons(fixed_values(values, "<i8"))
    numbers = np.arange(len(coupons))
    made = _listed(numbers, coupons, len(coupons))
    return made if valid is None else pc.if_else(array_of_mask(valid), made, pa.scalar(None, made.type))


def merged_sketches(sketches: pa.Array, given: Mask, starts: Rows) -> pa.Array:
    """Of each key one sketch of all that its given ones have seen, NULL where none is given."""
    chosen = sketches.filter(array_of_mask(given))
    of_keys = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(sketches)))[given]
    data, begins, kinds, counts = _opened(chosen)
    is_large = np.zeros(len(starts), np.bool_)
    is_large[of_keys[kinds == _HLL]] = True
    owners, coupons = _distinct(of_keys, data, begins, kinds, counts)
    is_large |= np.bincount(owners, minlength=len(starts)) > MOST_EXACT
    small = ~is_large[owners]
    made = _listed(owners[small], coupons[small], len(starts))
    if is_large.any():
        made = _with_large(made, is_large, chosen, of_keys, kinds, owners, coupons)
    some = np.zeros(len(starts), np.bool_)
    some[of_keys] = True
    return made if some.all() else pc.if_else(array_of_mask(some), made, pa.scalar(None, made.type))


def estimates(sketches: pa.Array) -> pa.Array:
    """About how many distinct values each has seen; NULL stays NULL."""
    valid = valid_rows(sketches)
    present = sketches if valid is None else sketches.filter(array_of_mask(valid))
    _, _, kinds, counts = _opened(present)
    for place in np.flatnonzero(kinds == _HLL):
        counts[place] = round(_library().hll_sketch.deserialize(present[int(place)].as_py()).get_estimate())
    if valid is None:
        return array_of_numbers(counts)
    numbers = np.zeros(len(sketches), np.int64)
    numbers[valid] = counts
    return pc.if_else(array_of_mask(valid), array_of_numbers(numbers), pa.scalar(None, pa.int64()))


def check_library() -> None:
    """Raises InvalidInputError where sketches cannot be put together."""
    _library()


def _library() -> Any:
    try:
        import datasketches
    except ImportError as error:
        raise InvalidInputError(
            "Counting distinct values takes a library of sketches, which is not installed.",
            kind="sketches_missing",
            remedy='pip install "lakelib[sketches]".',
        ) from error
    return datasketches


# What a value leaves


def _coupons(values: npt.NDArray[np.int64]) -> Coupons:
    """As the library makes them: of MurmurHash3 with 128 bits."""
    with np.errstate(over="ignore"):
        first, second = _murmur(values.view(np.uint64))
    zeros = np.minimum(64 - _bit_lengths(second), 62)
    return ((zeros + 1).astype(np.uint32) << np.uint32(26)) | (first & np.uint64(0x3FFFFFF)).astype(np.uint32)


def _murmur(words: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Of eight bytes each."""
    turned = words * np.uint64(0x87C37B91114253D5)
    turned = ((turned << np.uint64(31)) | (turned >> np.uint64(33))) * np.uint64(0x4CF5AD432745937F)
    first = (turned ^ np.uint64(_SEED)) ^ np.uint64(8)
    second = np.uint64(_SEED) ^ np.uint64(8)
    first = first + second
    first, other = _finished(first), _finished(first + second)
    first = first + other
    return first, other + first


def _finished(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    words = (words ^ (words >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return words ^ (words >> np.uint64(33))


def _bit_lengths(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Of each half, which a double holds exactly."""
    high, low = words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)
    lengths = np.where(high > 0, 32 + np.frexp(high.astype(np.float64))[1], np.frexp(low.astype(np.float64))[1])
    return lengths.astype(np.int64)


# Small sketches, all at once


def _opened(
    sketches: pa.Array,
) -> tuple[npt.NDArray[np.uint8], Rows, Rows, Rows]:
    """The bytes, and of each sketch where it begins, what it is, and how many values are listed in it."""
    if not len(sketches):
        none = np.zeros(0, np.int64)
        return np.zeros(0, np.uint8), none, none, none
    rows = byte_rows(sketches)
    kinds = (rows.data[rows.starts + 7] & 3).astype(np.int64)
    counts = rows.data[rows.starts + 6].astype(np.int64)
    sets = np.flatnonzero(kinds == _SET)
    counts[sets] = _words(rows.data, rows.starts[sets] + 8)
    counts[kinds == _HLL] = 0
    return rows.data, rows.starts, kinds, counts


def _words(data: npt.NDArray[np.uint8], places: Rows) -> Coupons:
    """The 32-bit number at each place."""
    found: Coupons = _at_any_byte(data, "<u4")[places]
    return found


def _at_any_byte(data: npt.NDArray[np.uint8], dtype: str) -> npt.NDArray[Any]:
    """The data as numbers that begin at each of its bytes."""
    return np.ndarray((max(0, len(data) - np.dtype(dtype).itemsize + 1),), dtype, data, strides=(1,))


def _distinct(
    of_keys: Rows, data: npt.NDArray[np.uint8], begins: Rows, kinds: Rows, counts: Rows
) -> tuple[Rows, Coupons]:
    """All that is listed, once a key, by key and value: the key, and what was seen."""
    heads = np.where(kinds == _LIST, _LIST_HEAD, _SET_HEAD)
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    coupons = _words(data, np.repeat(begins + heads, counts) + 4 * within)
    both = np.sort((np.repeat(of_keys, counts).astype(np.uint64) << np.uint64(32)) | coupons)
    both = both[np.append(True, both[1:] != both[:-1])[: len(both)]]
    return (both >> np.uint64(32)).astype(np.int64), (both & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def _listed(owners: Rows, coupons: Coupons, count: int) -> pa.Array:
    """A sketch of what each of so many keys has seen; they ascend. Of a key that has none it means nothing."""
    counts = np.bincount(owners, minlength=count).astype(np.int64)
    heads = np.where(counts <= _MOST_LISTED, _LIST_HEAD, _SET_HEAD)
    offsets = np.concatenate(([0], np.cumsum(heads + 4 * counts)))
    data = np.zeros(int(offsets[-1]), np.uint8)
    _at_any_byte(data, "<u8")[offsets[:-1]] = _heads(counts)
    sets = np.flatnonzero(counts > _MOST_LISTED)
    _at_any_byte(data, "<u4")[offsets[sets] + _LIST_HEAD] = counts[sets]
    within = np.arange(len(coupons)) - np.repeat(np.cumsum(counts) - counts, counts)
    _at_any_byte(data, "<u4")[np.repeat(offsets[:-1] + heads, counts) + 4 * within] = coupons
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)])


def _heads(counts: Rows) -> npt.NDArray[np.uint64]:
    """The first eight bytes of sketches with so many values, as one number each."""
    is_list = counts <= _MOST_LISTED
    slots = np.maximum(5, np.ceil(np.log2(np.maximum(counts, 1) * (4 / 3)))).astype(np.int64)
    parts = (
        np.where(is_list, 2, 3),
        _VERSION,
        _FAMILY,
        LG_K,
        np.where(is_list, 3, slots),
        _COMPACT,
        np.where(is_list, counts, 0),
        np.where(is_list, _LIST, _SET),
    )
    found = np.zeros(len(counts), np.int64)
    for place, part in enumerate(parts):
        found |= np.asarray(part, np.int64) << (8 * place)
    return found.astype(np.uint64)


# Large ones, by the library


def _with_large(
    made: pa.Array, is_large: Mask, chosen: pa.Array, of_keys: Rows, kinds: Rows, owners: Rows, coupons: Coupons
) -> pa.Array:
    """In the places of the keys whose sketches are large, those of the library."""
    keys = np.flatnonzero(is_large)
    hlls = np.flatnonzero(kinds == _HLL)
    first_hll, last_hll = (np.searchsorted(of_keys[hlls], keys, side) for side in ("left", "right"))
    first_coupon, last_coupon = (np.searchsorted(owners, keys, side) for side in ("left", "right"))
    large = [
        _united(
            [chosen[int(place)].as_py() for place in hlls[first_hll[number] : last_hll[number]]],
            coupons[first_coupon[number] : last_coupon[number]],
        )
        for number in range(len(keys))
    ]
    places = np.arange(len(made))
    places[keys] = len(made) + np.arange(len(keys))
    return pa.concat_arrays([made, pa.array(large, pa.binary())]).take(array_of_numbers(places))


def _united(sketches: Sequence[bytes], coupons: Coupons) -> bytes:
    library = _library()
    union = library.hll_union(LG_K)
    for sketch in sketches:
        union.update(library.hll_sketch.deserialize(sketch))
    for start in range(0, len(coupons), MOST_EXACT):
        part = coupons[start : start + MOST_EXACT]
        listed = _listed(np.zeros(len(part), np.int64), part, 1)[0].as_py()
        union.update(library.hll_sketch.deserialize(listed))
    united = bytearray(union.get_result(library.HLL_4).serialize_compact())
    united[5] |= _NO_ORDER
    return bytes(united)
