"""Pure. Shows the buffers of Arrow arrays as NumPy arrays and the other way round, without copying."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelib.dataclass import dataclass

WORD_BYTES = 8

_MOST_BATCH_BYTES = 64 * 1024 * 1024

LARGEST_OFFSET = 2**31 - 1
"""The highest position in its buffer that an array of text or bytes can name with 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteRows:
    """Byte strings: row `i` is the `lengths[i]` bytes of `data` from `starts[i]`. `data` holds at least one word."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    packed: bool
    """The rows lie one behind the other, in order."""

    def view(self, dtype: str) -> npt.NDArray[Any]:
        """The value that begins at every byte of the data: item `i` is read from byte `i`, aligned or not."""
        count = self.data.size - np.dtype(dtype).itemsize + 1
        return np.ndarray((count,), dtype, self.data, strides=(1,))

    def column(self, dtype: str, at: int, length: int) -> npt.NDArray[Any]:
        """The value at byte `at` of each row, of packed rows that all have that length."""
        return np.ndarray(self.starts.shape, dtype, self.data, int(self.starts[0]) + at, (length,))


def array_of_numbers(values: npt.NDArray[Any]) -> pa.Array:
    """The numbers as an Arrow array. `pa.array` does the same, and imports pandas for it where that is installed, which
    takes longer than a small table takes to be read."""
    kept = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(kept.dtype), len(kept), [None, pa.py_buffer(kept)])


def array_of_mask(mask: npt.NDArray[np.bool_]) -> pa.Array:
    """The mask as an Arrow array; see `array_of_numbers`."""
    bits = np.packbits(mask, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, pa.py_buffer(bits)])


def array_of_bytes(values: Sequence[bytes], kind: pa.DataType) -> pa.Array:
    """Bytes, or text as UTF-8, as an Arrow array of the type; see `array_of_numbers`."""
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))])


def arrays_of(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def whole_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array; copies only what lies in several chunks."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def takes_more(rows: pa.RecordBatch | pa.Table, most_bytes: int) -> bool:
    """Whether the rows take more than so many bytes. What their buffers have in all, whoever's it is, is known long
    before which parts of them are theirs."""
    return bool(rows.get_total_buffer_size() > most_bytes and rows.nbytes > most_bytes)


def cut_batch(batch: pa.RecordBatch, most_bytes: int) -> list[pa.RecordBatch]:
    """The rows in batches that take at most so many bytes, unless one row takes more.

    Batches that share their bytes (of a dictionary, for example) are cut as if each row had an equal part of them.
    """
    if batch.num_rows < 2 or not takes_more(batch, most_bytes):
        return [batch]
    size_bytes = batch.nbytes
    step = max(1, batch.num_rows * most_bytes // size_bytes)
    parts = [batch.slice(start, step) for start in range(0, batch.num_rows, step)]
    if sum(part.nbytes for part in parts) > 2 * size_bytes:
        return parts
    return [smaller for part in parts for smaller in cut_batch(part, most_bytes)]


def near_batches(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    """The rows in batches that can be converted to arrays with 32-bit positions, whatever they come as."""
    return [with_near_buffers(part) for part in cut_batch(batch, _MOST_BATCH_BYTES)]


def with_near_buffers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch; columns with 64-bit positions that may lie too far inside their buffers for 32 bits are copied.

    pyarrow refuses to convert such a slice, however small it is.
    """
    if batch.get_total_buffer_size() <= LARGEST_OFFSET:
        return batch
    for place, column in enumerate(batch.columns):
        if "large_" in str(column.type) and sum(buffer.size for buffer in column.buffers() if buffer) > LARGEST_OFFSET:
            near = column.take(pa.array(np.arange(len(column))))
            batch = batch.set_column(place, batch.schema.field(place), near)
    return batch


def is_byte_type(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def is_long_type(kind: pa.DataType) -> bool:
    """Whether Arrow keeps the values as 64-bit integers."""
    return bool(pa.types.is_int64(kind) or pa.types.is_timestamp(kind))


def is_int_type(kind: pa.DataType) -> bool:
    """Whether the values are integers, as Arrow keeps them, of at most 32 bits."""
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_date32(kind)) and not is_long_type(kind)


def valid_rows(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Which rows are not null; None where all are."""
    if array.null_count == 0:
        return None
    valid: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def fixed_values(array: pa.Array, dtype: str, parts: int = 1) -> npt.NDArray[Any]:
    """The values of an array of a fixed width, `parts` items a row. What stands at a null is arbitrary."""
    kept = np.dtype(dtype)
    count = len(array) * parts
    buffer = array.buffers()[1]
    if buffer is None or count == 0:
        return np.zeros(count, kept)
    return np.frombuffer(buffer, kept, count, array.offset * parts * kept.itemsize)


def byte_rows(array: pa.Array) -> ByteRows:
    """The rows of a string or binary array."""
    _, offsets_buffer, data_buffer = array.buffers()
    if len(array) == 0 or offsets_buffer is None:
        offsets = np.zeros(len(array) + 1, np.int64)
    else:
        offsets = np.frombuffer(offsets_buffer, "<i4", len(array) + 1, array.offset * 4).astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer else np.zeros(0, np.uint8)
    return ByteRows(data=at_least_a_word(data), starts=offsets[:-1], lengths=np.diff(offsets), packed=True)


def join_byte_rows(arrays: Sequence[pa.Array]) -> ByteRows:
    """The rows of all arrays as one; positions have 64 bits, so that they may hold more than one Arrow array can."""
    opened = [byte_rows(array) for array in arrays]
    if len(opened) == 1:
        return opened[0]
    spans = [
        (int(rows.starts[0]), int(rows.starts[-1] + rows.lengths[-1])) if len(rows.starts) else (0, 0)
        for rows in opened
    ]
    data = np.concatenate([rows.data[first:last] for rows, (first, last) in zip(opened, spans, strict=True)])
    lengths = np.concatenate([rows.lengths for rows in opened])
    starts = np.cumsum(lengths) - lengths
    return ByteRows(data=at_least_a_word(data), starts=starts, lengths=lengths, packed=True)


def at_least_a_word(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return data if data.size >= WORD_BYTES else np.pad(data, (0, WORD_BYTES - data.size))
