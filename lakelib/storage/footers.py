"""Storage. What a Parquet footer says of columns: where they are, and their bounds."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelib.dataclass import dataclass
from lakelib.model.files import ColumnBounds
from lakelib.model.predicate import Raw
from lakelib.model.schema import Column
from lakelib.model.sortable import encode, encode_both, is_sortable
from lakelib.plan.prune import Bounds

FLOATS = ("float", "double")
"""Types whose values may be NaN."""
NAN_COLUMNS = b"lake.nan_columns"
"""Key in a footer: names of the float columns that hold a NaN, a JSON list. Parquet's own statistics leave NaN out."""

_ARROW_SCHEMA = b"ARROW:schema"
"""Key in a footer: what Arrow knows of the columns and Parquet does not."""

MAX_BOUND_BYTES = 64
"""Bounds of strings and binaries are cut to this length in the catalog."""

_NAN = float("nan")
_MOST_LAYOUTS = 16
_layouts: tuple[tuple[pq.ParquetSchema, bytes | None, "Layout"], ...] = ()
"""Of the files that were opened lately, newest first, and what their footers say of it."""

CACHE_BYTES = 64 * 1024 * 1024
"""How much memory the footers take that a process keeps."""

_COLUMN_BYTES = 800
"""What a column takes in memory for itself and for each row group, beside what the footer says of it.

A process was measured to grow by 840 to 1,060 bytes for each, with 7, 24 and 60 columns, 1 and 10 row groups, one
thread and four, of which a footer has about 120; the fewest columns come last.
"""


class _Raw(NamedTuple):
    """A column chunk's statistics. Its bounds are None where all values are null, or where they are not known."""

    lower: Raw | None
    upper: Raw | None
    null_count: int | None
    row_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What files of one schema share."""

    schema: pa.Schema
    leaves: Mapping[str, range]
    """Where each top-level column's values are among the file's Parquet columns."""
    nested: frozenset[str]
    """The columns that have parts, which have names of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    metadata: pq.FileMetaData
    layout: Layout
    nan_columns: frozenset[str] | None
    """None in a file that does not say: any float column may hold a NaN."""

    @property
    def memory_bytes(self) -> int:
        metadata = self.metadata
        return int(metadata.serialized_size + _COLUMN_BYTES * metadata.num_columns * (metadata.num_row_groups + 1))


def parse_footer(metadata: pq.FileMetaData) -> Footer:
    stored = metadata.metadata or {}
    stated = stored.get(NAN_COLUMNS)
    nan_columns = None if stated is None else frozenset(json.loads(stated))
    return Footer(metadata=metadata, layout=_layout_of(metadata, stored.get(_ARROW_SCHEMA)), nan_columns=nan_columns)


def _layout_of(metadata: pq.FileMetaData, arrow_schema: bytes | None) -> Layout:
    """Files of one table mostly have one schema: what it says is found out once."""
    global _layouts
    found = metadata.schema
    for schema, said, layout in _layouts:
        if said == arrow_schema and schema.equals(found):
            return layout
    arrow = found.to_arrow_schema()
    layout = Layout(schema=arrow, leaves=arrange_leaves(arrow), nested=nested_columns(arrow))
    _layouts = ((found, arrow_schema, layout), *_layouts[: _MOST_LAYOUTS - 1])
    return layout


def arrange_leaves(schema: pa.Schema) -> dict[str, range]:
    """Where each column's values are among the Parquet columns: a nested column has one for each field with values."""
    leaves, start = {}, 0
    for field in schema:
        end = start + _count_leaves(field.type)
        leaves[field.name] = range(start, end)
        start = end
    return leaves


def _count_leaves(arrow_type: pa.DataType) -> int:
    if not pa.types.is_nested(arrow_type):
        return 1
    return sum(_count_leaves(arrow_type.field(index).type) for index in range(arrow_type.num_fields))


def paths_of(field: pa.Field, above: str = "") -> list[tuple[str, pa.DataType]]:
    """The Parquet columns of a column, as pyarrow names them, and their types."""
    path, kind = f"{above}{field.name}", field.type
    if pa.types.is_struct(kind):
        return [each for inner in kind for each in paths_of(inner, f"{path}.")]
    if pa.types.is_map(kind):
        return [
            *paths_of(kind.key_field.with_name("key"), f"{path}.key_value."),
            *paths_of(kind.item_field.with_name("value"), f"{path}.key_value."),
        ]
    if pa.types.is_nested(kind):
        return paths_of(kind.value_field.with_name("element"), f"{path}.list.")
    return [(path, kind)]


def nested_columns(schema: pa.Schema) -> frozenset[str]:
    """The names of the columns that have parts."""
    return frozenset(field.name for field in schema if pa.types.is_nested(field.type))


def has_path_of_its_own(name: str, nested: frozenset[str]) -> bool:
    """Whether pyarrow, which names columns by dotted path, cannot mean a nested column's part by a column's name."""
    return not any(name[:end] in nested for end, character in enumerate(name) if character == ".")


def row_group_bounds(footer: Footer, row_group: int, column_name: str, type_text: str) -> Bounds:
    """The bounds of one column in one row group."""
    row_count = footer.metadata.row_group(row_group).num_rows
    leaves = footer.layout.leaves.get(column_name, range(0))
    if len(leaves) != 1 or not is_sortable(type_text):
        return Bounds(row_count=row_count)
    raw = _raw_statistics(footer.metadata.row_group(row_group), leaves.start)
    may_hold_nan = footer.nan_columns is None or column_name in footer.nan_columns
    return _encoded(type_text, raw, type_text in FLOATS and may_hold_nan)


class FloatBounds:
    """What a column of floats has held so far, where a file says nothing of it."""

    def __init__(self) -> None:
        self._lower: float | None = None
        self._upper: float | None = None
        self._null_count = self._row_count = 0

    def add(self, values: pa.ChunkedArray) -> None:
        """NaN is left out, as in a file's statistics."""
        found = pc.min_max(pc.if_else(pc.is_nan(values), None, values)).as_py()
        lowers = [each for each in (self._lower, found["min"]) if each is not None]
        uppers = [each for each in (self._upper, found["max"]) if each is not None]
        self._lower, self._upper = min(lowers, default=None), max(uppers, default=None)
        self._null_count += values.null_count
        self._row_count += len(values)

    def told(self, type_text: str, *, holds_nan: bool) -> Bounds:
        lower = _NAN if self._lower is None and holds_nan else self._lower
        return _encoded(type_text, _Raw(lower, self._upper, self._null_count, self._row_count), holds_nan)


def file_bounds(
    metadata: pq.FileMetaData,
    leaves: Mapping[str, range],
    columns: Sequence[Column],
    nan_columns: Collection[str],
    untold: Mapping[str, FloatBounds],
) -> ColumnBounds:
    """The bounds of a whole file, long ones cut, of columns that have some. `nan_columns` are those that hold a NaN,
    `untold` tells of those that the metadata says nothing of."""
    row_groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    found = {
        column.id: untold[column.name].told(column.type, holds_nan=column.name in nan_columns)
        if column.name in untold
        else _file_column_bounds(row_groups, leaves[column.name].start, column.type, column.name in nan_columns)
        for column in columns
    }
    unknown = Bounds(row_count=0)
    every = [found.get(column_id, unknown) for column_id in range(1, max(found, default=0) + 1)]
    return ColumnBounds(
        lower=tuple(None if one.lower is None else cut_lower(one.lower) for one in every),
        upper=tuple(None if one.upper is None else cut_upper(one.upper) for one in every),
        null_counts=tuple(one.null_count for one in every),
    )


def cut_lower(encoded: bytes) -> bytes:
    """A lower bound that is short enough to store, and not above the given one."""
    return encoded[:MAX_BOUND_BYTES]


def cut_upper(encoded: bytes) -> bytes | None:
    """An upper bound that is short enough to store, and not below the given one; None where there is none."""
    if len(encoded) <= MAX_BOUND_BYTES:
        return encoded
    head = encoded[:MAX_BOUND_BYTES].rstrip(b"\xff")
    return head[:-1] + bytes((head[-1] + 1,)) if head else None


def _file_column_bounds(
    row_groups: Sequence[pq.RowGroupMetaData], leaf: int, type_text: str, holds_nan: bool
) -> Bounds:
    bounds = [_encoded(type_text, _raw_statistics(row_group, leaf), holds_nan) for row_group in row_groups]
    return bounds[0] if len(bounds) == 1 else _joined(bounds, holds_nan)


def _raw_statistics(row_group: pq.RowGroupMetaData, leaf: int) -> _Raw:
    chunk = row_group.column(leaf)
    row_count, statistics = chunk.num_values, chunk.statistics
    if statistics is None:
        return _Raw(None, None, None, row_count)
    null_count = statistics.null_count if statistics.has_null_count else None
    if not statistics.has_min_max:
        return _Raw(None, None, null_count, row_count)
    return _Raw(statistics.min_raw, statistics.max_raw, null_count, row_count)


def _encoded(type_text: str, raw: _Raw, holds_nan: bool) -> Bounds:
    lower, upper = _encode(type_text, raw.lower, raw.upper)
    return Bounds(
        lower=lower,
        upper=encode(type_text, _NAN) if holds_nan else upper,
        null_count=raw.null_count,
        row_count=raw.row_count,
    )


def _joined(parts: Sequence[Bounds], holds_nan: bool) -> Bounds:
    """Of all row groups. One whose rows are all NULL has no bounds, and the others' hold for it too."""
    known = all(part.lower is not None or part.null_count == part.row_count for part in parts)
    nulls = [part.null_count for part in parts if part.null_count is not None]
    uppers = (part.upper for part in parts if part.upper is not None)
    return Bounds(
        lower=min((part.lower for part in parts if part.lower is not None), default=None) if known else None,
        upper=max(uppers, default=None) if known or holds_nan else None,
        null_count=sum(nulls) if len(nulls) == len(parts) else None,
        row_count=sum(part.row_count for part in parts),
    )


def _encode(type_text: str, lower: Raw | None, upper: Raw | None) -> tuple[bytes | None, bytes | None]:
    """Parquet keeps strings as UTF-8 and decimals as big-endian two's complement."""
    if not isinstance(lower, bytes) or not isinstance(upper, bytes):
        return encode_both(type_text, lower, upper)
    if type_text.startswith("decimal("):
        return encode_both(
            type_text, int.from_bytes(lower, "big", signed=True), int.from_bytes(upper, "big", signed=True)
        )
    return lower, upper
