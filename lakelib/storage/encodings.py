"""Pure. Chooses how the columns of a Parquet file are kept, by a sample of its first rows: what takes readers least."""

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelib.rows.buffers import takes_more

LEVELED = ("zstd", "gzip")
"""Codecs that take a reader longer than what they pack."""

_SAMPLE_ROWS = 1024
_LONG_ROW_BYTES = 4096
_SAMPLE_BYTES = _SAMPLE_ROWS * _LONG_ROW_BYTES
"""Of longer rows the sample has fewer, lest it be a second copy of all."""

_PAYS_BELOW = 0.5
"""A dictionary pays when fewer than this share of sampled values are distinct."""

_NUMBERS_PAY_BELOW = 0.25
"""One of numbers of eight bytes and more pays, too, when a row group has fewer distinct ones than this share of its
rows: dictionary and codes take less than half of what the numbers do."""
_LEAST_ALIKE = 8
"""Of fewer sampled values that are like others nothing follows for the rows that are not sampled."""

_LEAST_TRIED_ROWS = 65_536
"""Of fewer rows a trial takes longer than unpacking them."""
_TRIED_ROWS, _TRIED_PARTS = 16_384, 4
_PACKED_BELOW = 0.95
"""What a codec leaves more of than this is kept without: a reader takes as long to unpack it."""


def choose_dictionaries(first: pa.Table, by_name: Collection[str], row_group_rows: int) -> list[str]:
    """The columns whose values repeat: for others a dictionary costs time and gains nothing."""
    if first.num_rows < 2:
        return []
    sample = first.take(pa.array(range(0, first.num_rows, max(1, first.num_rows // _sample_rows(first)))))
    group_rows = min(first.num_rows, row_group_rows)
    return [
        field.name
        for field in sample.schema
        if field.name in by_name
        and not pa.types.is_boolean(field.type)
        and _repeats(sample.column(field.name), group_rows)
    ]


def find_incompressible(
    first: pa.Table, dictionary_columns: Sequence[str], encodings: Mapping[str, str], codec: str, level: int
) -> list[str]:
    """The columns of which a codec leaves nearly all, by a trial of a few rows."""
    if first.num_rows < _LEAST_TRIED_ROWS or not first.num_columns:
        return []
    step, part = first.num_rows // _TRIED_PARTS, _TRIED_ROWS // _TRIED_PARTS
    rows = pa.concat_tables([first.slice(start * step, part) for start in range(_TRIED_PARTS)])
    tried: list[pq.FileMetaData] = []
    pq.write_table(
        rows,
        pa.BufferOutputStream(),
        compression=codec,
        compression_level=level,
        use_dictionary=[name for name in dictionary_columns if name in rows.column_names],
        column_encoding={name: each for name, each in encodings.items() if name in rows.column_names} or None,
        write_statistics=False,
        store_schema=False,
        metadata_collector=tried,
    )
    group = tried[0].row_group(0)
    columns = [group.column(place) for place in range(rows.num_columns)]
    return [
        name
        for name, column in zip(rows.column_names, columns, strict=True)
        if column.total_compressed_size > _PACKED_BELOW * column.total_uncompressed_size
    ]


def is_fixed(kind: pa.DataType) -> bool:
    """Whether all values take as much room, so that no codec can be missed by more than that."""
    of = pa.types
    return any(is_so(kind) for is_so in (of.is_integer, of.is_floating, of.is_decimal, of.is_temporal))


def _sample_rows(first: pa.Table) -> int:
    if not takes_more(first, _LONG_ROW_BYTES * first.num_rows):
        return _SAMPLE_ROWS
    count: int = _SAMPLE_BYTES * first.num_rows // first.nbytes
    return max(2, count)


def _repeats(sample: pa.ChunkedArray, row_count: int) -> bool:
    """Whether a dictionary of so many values, of which these are some, pays."""
    distinct: int = pc.count_distinct(sample).as_py()
    if distinct < _PAYS_BELOW * len(sample):
        return True
    alike = len(sample) - distinct
    if alike < _LEAST_ALIKE or not (pa.types.is_float64(sample.type) or pa.types.is_decimal(sample.type)):
        return False
    # Of n values, taken of D that are equally frequent, n² / 2D are like one before.
    return len(sample) ** 2 / (2 * alike) < _NUMBERS_PAY_BELOW * row_count
