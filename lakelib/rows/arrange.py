"""Pure. Arranges the rows of a batch by partition and bucket."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model import sortable
from lakelib.model.files import MAX_PARTITION_KEY_BYTES, PartitionKey
from lakelib.model.schema import Column
from lakelib.rows.hash import hash_prefixes, key_hashes
from lakelib.rows.sort import group_order
from lakelib.rows.values import raw_values


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPart:
    """Rows of one partition and hash prefix, in the order in which they came: a range of a batch that is arranged."""

    partition_key: PartitionKey
    depth: int
    prefix: int
    batch: pa.RecordBatch
    start: int
    row_count: int

    @property
    def rows(self) -> pa.RecordBatch:
        """Made anew each time: many small batches held at once would outweigh their rows."""
        return self.batch.slice(self.start, self.row_count)


def arrange_rows(
    batch: pa.RecordBatch,
    partition_by: Sequence[Column],
    primary_key: Sequence[Column],
    depth: int,
    *,
    least_part_rows: int = 0,
) -> list[RowPart]:
    """The batch's rows, a part for each partition and hash prefix of `depth` bits that occurs.

    If the parts had fewer than `least_part_rows` rows on average, there is just one for each partition, of depth 0.
    """
    partitions, codes = _partition_codes(batch, partition_by)
    if (len(partitions) << depth) * least_part_rows > batch.num_rows:
        depth = 0
    if depth > 0:
        hashes = key_hashes([batch.column(column.name) for column in primary_key])
        codes = (codes << depth) | hash_prefixes(hashes, depth)
    elif len(partitions) == 1:
        return [_part(partitions[0], 0, 0, batch, 0, batch.num_rows)]
    order, found, bounds = group_order(codes)
    arranged = batch.take(pa.array(order))
    mask = (1 << depth) - 1
    return [
        _part(partitions[code >> depth], depth, code & mask, arranged, start, end - start)
        for code, start, end in zip(found.tolist(), bounds.tolist(), bounds[1:].tolist(), strict=False)
    ]


def deepen_parts(parts: Sequence[RowPart], primary_key: Sequence[Column], depth: int) -> list[RowPart]:
    """The rows of parts of one partition and prefix, in order, split to `depth`."""
    rows = pa.concat_batches([part.rows for part in parts])
    return [replace(part, partition_key=parts[0].partition_key) for part in arrange_rows(rows, (), primary_key, depth)]


def partition_keys(batch: pa.RecordBatch, partition_by: Sequence[Column]) -> list[PartitionKey]:
    """The partitions that occur in the batch."""
    return _partition_codes(batch, partition_by)[0]


def _part(
    partition_key: PartitionKey, depth: int, prefix: int, batch: pa.RecordBatch, start: int, row_count: int
) -> RowPart:
    return RowPart(
        partition_key=partition_key, depth=depth, prefix=prefix, batch=batch, start=start, row_count=row_count
    )


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
