"""Work. What the log of another system's table says of a file beside the file itself: how its columns are called, the
values that all its rows have, and which of its rows are deleted.

Plain values: a task gets them with the file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field

import numpy as np
import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.rows.types import is_list_like

FIELD_ID = b"PARQUET:field_id"
"""Where pyarrow tells the number that Parquet has for a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedColumn:
    """A column, or a part of one, as the log knows it."""

    name: str
    inside: str
    """Its name in files."""
    id: int | None = None
    """Its number in files, where the log goes by that and not by names."""
    kind: pa.DataType | None = None
    """Its type, of a whole column."""
    parts: tuple["LoggedColumn", ...] = ()
    """The fields of a struct; of a list its elements', of a map its keys' and values'. Empty for plain values."""

    def is_called(self, given: pa.Field) -> bool:
        if self.id is not None:
            return bool((given.metadata or {}).get(FIELD_ID) == str(self.id).encode())
        return bool(self.inside.casefold() == given.name.casefold())


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A column of a file, and what it is called outside."""

    inside: str
    field: pa.Field
    """Its name for readers, and its type of just the parts that the log knows."""
    leaves: tuple[int, ...]
    """Where its values are among the Parquet columns."""

    def named(self, column: pa.Array) -> pa.Array:
        """The column's values, whose parts have the names that readers know."""
        return column if column.type == self.field.type else column.view(self.field.type)


@dataclass(frozen=True, slots=True)
class LoggedColumns:
    """All columns of a table that its files may hold."""

    columns: tuple[LoggedColumn, ...]

    def reach(self, schema: pa.Schema) -> list[Reached]:
        """The columns of a file that the log knows. Others are of columns that were dropped."""
        reached, first = [], 0
        for given in schema:
            column = next((each for each in self.columns if each.is_called(given)), None)
            count = _count_leaves(given.type)
            if column is not None:
                kind, kept = _known_parts(given.type, column, first)
                if kept:
                    found = pa.field(column.name, kind)
                    reached.append(Reached(inside=given.name, field=found, leaves=tuple(kept)))
            first += count
        return reached

    def lacking(self, reached: Sequence[Reached]) -> list[pa.Field]:
        """The columns that a file does not have, which are NULL in it, as the log means it."""
        names = {each.field.name for each in reached}
        return [pa.field(each.name, each.kind) for each in self.columns if each.name not in names]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedFile:
    columns: LoggedColumns
    values: tuple[tuple[str, pa.Scalar], ...] = ()
    """Of columns that have one value in the file, and are not stored in it."""
    deleted: bytes | None = field(default=None, repr=False)
    """A bit for each row from the first on, the lowest of a byte first: whether it is deleted. Later rows are not."""

    def keep(self, batch: pa.RecordBatch, first_row: int) -> tuple[pa.RecordBatch, Sequence[int] | None]:
        """Those of the rows, which begin at the file's row `first_row`, that are not deleted, and their numbers in the
        file; None if all are kept."""
        if self.deleted is None:
            return batch, None
        first_byte, last_byte = first_row // 8, -(-(first_row + batch.num_rows) // 8)
        some = np.frombuffer(self.deleted[first_byte:last_byte], np.uint8)
        bits = np.unpackbits(some, bitorder="little")[first_row % 8 :]
        is_deleted = np.zeros(batch.num_rows, np.bool_)
        told = min(len(bits), batch.num_rows)
        is_deleted[:told] = bits[:told]
        if not is_deleted.any():
            return batch, None
        kept = np.flatnonzero(~is_deleted)
        return batch.take(pa.array(kept)), (kept + first_row).tolist()


def pack_deleted(kept: pa.BooleanArray) -> bytes:
    """The bits of `LoggedFile.deleted`, of whether each row is kept."""
    is_kept: np.ndarray = kept.to_numpy(zero_copy_only=False).astype(np.bool_)
    packed: bytes = np.packbits(~is_kept, bitorder="little").tobytes()
    return packed


def _known_parts(given: pa.DataType, column: LoggedColumn, first: int) -> tuple[pa.DataType, list[int]]:
    """The type of the parts that the log knows, under its names, and the places of their values, the first of the
    column's being `first`."""
    if not pa.types.is_nested(given) or not column.parts:
        return given, list(range(first, first + _count_leaves(given)))
    found: list[tuple[LoggedColumn, pa.Field, pa.DataType, list[int]]] = []
    for part, known in _parts(given, column):
        if known is not None:
            kind, kept = _known_parts(part.type, known, first)
            if kept:
                found.append((known, part, kind, kept))
        first += _count_leaves(part.type)
    places = [place for _, _, _, kept in found for place in kept]
    return (_rebuilt(given, found) if places else given), places


def _parts(given: pa.DataType, column: LoggedColumn) -> Iterator[tuple[pa.Field, LoggedColumn | None]]:
    """The fields of a nested type, each with what the log knows of it."""
    parts = [given.field(index) for index in range(given.num_fields)]
    if pa.types.is_struct(given):
        for part in parts:
            yield part, next((each for each in column.parts if each.is_called(part)), None)
    elif pa.types.is_map(given):
        yield given.key_field, column.parts[0]
        yield given.item_field, column.parts[1]
    else:
        yield parts[0], column.parts[0]


def _rebuilt(given: pa.DataType, found: Sequence[tuple[LoggedColumn, pa.Field, pa.DataType, list[int]]]) -> pa.DataType:
    kinds = [kind for _, _, kind, _ in found]
    if pa.types.is_struct(given):
        return pa.struct([part.with_type(kind).with_name(known.name) for known, part, kind, _ in found])
    if pa.types.is_map(given):
        return pa.map_(given.key_field.with_type(kinds[0]), given.item_field.with_type(kinds[1]))
    element = found[0][1].with_type(kinds[0])
    return pa.large_list(element) if pa.types.is_large_list(given) else pa.list_(element)


def _count_leaves(kind: pa.DataType) -> int:
    if pa.types.is_map(kind):
        return _count_leaves(kind.key_type) + _count_leaves(kind.item_type)
    if is_list_like(kind):
        return _count_leaves(kind.value_type)
    if pa.types.is_struct(kind):
        return sum(_count_leaves(kind.field(index).type) for index in range(kind.num_fields))
    return 1
