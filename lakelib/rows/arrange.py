"""Pure. Arranges the rows of a batch by partition and bucket."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.errors import InvalidInputError
from lakelib.model import sortable
from lakelib.model.files import MAX_PARTITION_KEY_BYTES, PartitionKey
from lakelib.model.schema import Column
from lakelib.rows.hash import hash_prefixes, key_hashes
from lakelib.rows.sort import group_order
from lakelib.rows.values import raw_values


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Rows of one bucket, in the order in which they came."""

    partition_key: PartitionKey
    prefix: int
    rows: pa.RecordBatch


def arrange_rows(
    batch: pa.RecordBatch, partition_by: Sequence[Column], primary_key: Sequence[Column], depth: int
) -> list[Piece]:
    """The batch's rows, a piece for each partition and hash prefix of `depth` bits that occurs."""
    partitions, codes = _partition_codes(batch, partition_by)
    if depth > 0:
        hashes = key_hashes([batch.column(column.name) for column in primary_key])
        codes = (codes << depth) | hash_prefixes(hashes, depth)
    group_count = len(partitions) << depth
    if group_count == 1:
        return [Piece(partition_key=partitions[0], prefix=0, rows=batch)]
    order, starts = group_order(codes, group_count)
    arranged = batch.take(pa.array(order))
    sizes = np.diff(starts)
    return [
        Piece(
            partition_key=partitions[group >> depth],
            prefix=int(group & ((1 << depth) - 1)),
            rows=arranged.slice(int(starts[group]), int(sizes[group])),
        )
        for group in np.flatnonzero(sizes)
    ]


def partition_keys(batch: pa.RecordBatch, partition_by: Sequence[Column]) -> list[PartitionKey]:
    """The partitions that occur in the batch."""
    return _partition_codes(batch, partition_by)[0]


def _partition_codes(
    batch: pa.RecordBatch, partition_by: Sequence[Column]
) -> tuple[list[PartitionKey], npt.NDArray[np.int64]]:
    """The partitions that occur in the batch, and for each row the number of its own."""
    keys: list[PartitionKey] = [()]
    codes = np.zeros(batch.num_rows, dtype=np.int64)
    for column in partition_by:
        values, value_codes = _value_codes(batch.column(column.name), column)
        if len(keys) == 1:
            keys, codes = [(*keys[0], value) for value in values], value_codes
        else:
            combined, codes = np.unique(codes * len(values) + value_codes, return_inverse=True)
            keys = [(*keys[code // len(values)], values[code % len(values)]) for code in combined.tolist()]
    _check_length(keys, partition_by)
    return keys, codes


def _check_length(keys: Sequence[PartitionKey], partition_by: Sequence[Column]) -> None:
    for key in keys:
        size_bytes = sum(len(part) for part in key if part is not None)
        if size_bytes > MAX_PARTITION_KEY_BYTES:
            raise InvalidInputError(
                f"Values of the partition columns {', '.join(column.name for column in partition_by)} take {size_bytes}"
                f" bytes; at most {MAX_PARTITION_KEY_BYTES} are possible.",
                kind="partition_key_too_long",
                remedy="Partition by a column with shorter values.",
            )


def _value_codes(array: pa.Array, column: Column) -> tuple[list[bytes | None], npt.NDArray[np.int64]]:
    encoded = pc.dictionary_encode(array, null_encoding="encode")
    values = [None if raw is None else sortable.encode(column.type, raw) for raw in raw_values(encoded.dictionary)]
    return values, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
