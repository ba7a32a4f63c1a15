"""Storage. The Bloom filters that Parquet files keep of their keys: which values a row group certainly does not hold.

They are Parquet's own (split blocks, XXH64 with seed 0, uncompressed), so other readers can use them too.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelib.rows.hash import key_hashes

FALSE_HITS = 0.05
"""Share of row groups that are read in vain. Fewer would make the filters larger than they are worth."""

LEAST_ROWS = 8192
"""Reading fewer rows is as quick as asking a filter."""

_SUITED = frozenset(("tinyint", "smallint", "int", "bigint", "string", "binary", "date", "timestamp", "timestamp_ntz"))
"""The types whose values Parquet keeps, and hashes, in the bytes that the key hash is made of."""

_BLOCK_WORDS = 8
_BLOCK_BYTES = 32
_SALTS = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)


def is_suited(type_text: str) -> bool:
    """Whether a column of that type can have a filter."""
    return type_text in _SUITED


def bloom_options(row_count: int) -> dict[str, Any]:
    """What pyarrow is told of a filter over row groups of so many distinct values."""
    return {"ndv": row_count, "fpp": FALSE_HITS}


def may_hold(stored: bytes, values: pa.Array) -> bool:
    """Whether a filter, as it is stored with its header, admits one of the values."""
    hashes = key_hashes([values], seed=0)
    blocks = _open_blocks(stored)
    chosen = blocks[((hashes >> np.uint64(32)) * np.uint64(len(blocks)) >> np.uint64(32)).astype(np.int64)]
    bits = (hashes.astype(np.uint32)[:, None] * _SALTS) >> np.uint32(27)
    admitted = (chosen >> bits) & np.uint32(1)
    return bool(admitted.all(axis=1).any())


def _open_blocks(stored: bytes) -> npt.NDArray[np.uint32]:
    """The bits follow a header that is shorter than one block; there are always a power of two of them."""
    size_bytes = 1 << (len(stored).bit_length() - 1)
    return np.frombuffer(stored, "<u4", offset=len(stored) - size_bytes).reshape(-1, _BLOCK_WORDS)
