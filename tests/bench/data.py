"""Orders that look like real ones: unique keys in random order, spread over four days by key."""

from datetime import date

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]

PARTITIONS = 4
BUCKETS = 4
KEY_TYPES = {"int64": pa.int64(), "string": pa.string()}

_FIRST_DAY = (date(2026, 11, 15) - date(1970, 1, 1)).days
_FIRST_MICROSECOND = _FIRST_DAY * 86_400_000_000
_STATUSES = ("NEW", "PAID", "PACKED", "SHIPPED", "DELIVERED", "RETURNED", "CANCELLED")
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_UUID_BYTES = 36
_UUID_HYPHENS = (8, 13, 18, 23)


def orders_schema(key_kind: str) -> pa.Schema:
    return pa.schema(
        [
            pa.field("order_id", KEY_TYPES[key_kind], nullable=False),
            ("customer", pa.int64()),
            ("amount", pa.float64()),
            ("quantity", pa.int32()),
            ("status", pa.string()),
            ("updated_at", pa.timestamp("us", "UTC")),
            ("dt", pa.date32()),
        ]
    )


def make_orders(numbers: Numbers, key_kind: str, seed: int) -> pa.RecordBatch:
    """One order for each number. The number decides key and day; the seed everything else."""
    random = np.random.default_rng(seed)
    count = len(numbers)
    status_codes = pa.array(random.integers(0, len(_STATUSES), count, dtype=np.int8))
    updated_at = _FIRST_MICROSECOND + random.integers(0, PARTITIONS * 86_400_000_000, count)
    columns = [
        make_keys(numbers, key_kind),
        pa.array(random.integers(0, 200_000, count)),
        pa.array(np.round(random.gamma(2.0, 40.0, count), 2)),
        pa.array(random.integers(1, 20, count, dtype=np.int32)),
        pa.DictionaryArray.from_arrays(status_codes, pa.array(_STATUSES)).dictionary_decode(),
        pa.array(updated_at).view(pa.timestamp("us", "UTC")),
        pa.array((_FIRST_DAY + numbers % PARTITIONS).astype(np.int32)).view(pa.date32()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=orders_schema(key_kind))


def make_keys(numbers: Numbers, key_kind: str) -> pa.Array:
    return pa.array(numbers) if key_kind == "int64" else _uuid_strings(numbers)


def make_table(row_count: int, key_kind: str) -> pa.Table:
    """The orders 0 to `row_count`, in random order."""
    return pa.Table.from_batches([make_orders(np.random.default_rng(1).permutation(row_count), key_kind, seed=2)])


def make_upsert(row_count: int, table_rows: int, key_kind: str, number: int) -> pa.Table:
    """The `number`th upsert of a table of so many rows: half of the keys are in the table, half are new to it."""
    half = row_count // 2
    random = np.random.default_rng(100 + number)
    existing = random.choice(table_rows, half, replace=False)
    new = table_rows + number * half + np.arange(half)
    return pa.Table.from_batches(
        [make_orders(random.permutation(np.concatenate([existing, new])), key_kind, seed=200 + number)]
    )


def scattered(numbers: Numbers) -> Numbers:
    """Distinct numbers, in an order that looks random and needs no memory of the whole: a bijection of 62 bits."""
    mixed = numbers.astype(np.uint64)
    mask = np.uint64(2**62 - 1)
    for factor in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9):
        mixed = (mixed * np.uint64(factor)) & mask
        mixed ^= mixed >> np.uint64(31)
    return mixed.astype(np.int64)


def _uuid_strings(numbers: Numbers) -> pa.Array:
    """Texts in the form of a UUID, different for different numbers."""
    words = np.empty((len(numbers), 2), np.uint64)
    words[:, 0] = scattered(numbers)
    words[:, 1] = scattered(numbers + 2**40)
    raw = words.astype(">u8").view(np.uint8).reshape(-1, 16)
    digits = np.empty((len(numbers), 32), np.uint8)
    digits[:, 0::2] = _HEX[raw >> 4]
    digits[:, 1::2] = _HEX[raw & 15]
    text = np.full((len(numbers), _UUID_BYTES), ord("-"), np.uint8)
    text[:, [place for place in range(_UUID_BYTES) if place not in _UUID_HYPHENS]] = digits
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * _UUID_BYTES
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(text))
