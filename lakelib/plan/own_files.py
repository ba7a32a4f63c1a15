"""Pure. Which of a scan's splits DuckDB may read from their files by itself: those whose rows are stored as readers see
them. Of some each row is seen; of others a mask has to say which are not.

It takes what Parquet says of a column's values for all there is to say, and Parquet leaves NaN out: rows of files that
may have one are lost, or found, by mistake.
"""

import math
import re
from collections.abc import Mapping, Sequence

from lakelib.dataclass import dataclass
from lakelib.model.files import DataFile, Split
from lakelib.model.schema import Column, TableSchema
from lakelib.model.sortable import encode, is_sortable
from lakelib.plan.scan import needs_merge

FLOATS = ("float", "double")
PLACES = ("file_index", "file_row_number")
"""What DuckDB tells of each row of a file, where the file has no column of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """A scan's splits by how they are read."""

    plain: tuple[Split, ...] = ()
    """Each row of their files is seen."""
    masked: tuple[Split, ...] = ()
    """Masks say which rows of their files are not seen. Some files may be in several splits, and are whole in them."""
    merged: tuple[Split, ...] = ()
    """DuckDB does not read them by itself."""


def sort_splits(
    splits: Sequence[Split], columns: Sequence[Column], schemas: Mapping[int, TableSchema], *, merges: bool
) -> Readings:
    """`columns` are those that are read. A partition's splits may share files: those that are not plain are masked all,
    or none of them."""
    if any(is_nested_float(column.type) for column in columns):
        return Readings(merged=tuple(splits))
    known = {schema_id: _has_columns(schema, columns) for schema_id, schema in schemas.items()}
    floats = [column for column in columns if column.type in FLOATS]

    def is_own(split: Split) -> bool:
        return all(
            known[file.schema_id] and not any(_may_hold_nan(file, column) for column in floats) for file in split.files
        )

    def is_whole(split: Split) -> bool:
        if merges and needs_merge(split):
            return False
        return all(not file.delete_count and file.depth >= split.depth for file in split.files)

    own = {id(split) for split in splits if is_own(split)}
    plain = tuple(split for split in splits if id(split) in own and is_whole(split))
    rest = [split for split in splits if id(split) not in own or not is_whole(split)]
    unreadable = {split.partition.id for split in rest if id(split) not in own}
    tells_places = not any(_hides_places(schema) for schema in schemas.values())
    masked = tuple(split for split in rest if merges and tells_places and split.partition.id not in unreadable)
    return Readings(plain=plain, masked=masked, merged=tuple(split for split in rest if split not in masked))


def _hides_places(stored: TableSchema) -> bool:
    """Whether files of the schema have a column that is called as what DuckDB tells of each row."""
    return any(column.name.casefold() in PLACES for column in stored.columns)


def is_nested_float(kind: str) -> bool:
    """Nothing is known of what is in a nested value."""
    return not is_sortable(kind) and re.search(r"\b(float|double)\b", kind) is not None


def _may_hold_nan(file: DataFile, column: Column) -> bool:
    """Unless the catalog says that all values are below it."""
    known = file.bounds.upper
    upper = known[column.id - 1] if column.id <= len(known) else None
    return upper is None or upper >= encode(column.type, math.nan)


def holds_nan(file: DataFile, column: Column) -> bool:
    """Whether the catalog says so."""
    known = file.bounds.upper
    upper = known[column.id - 1] if column.id <= len(known) else None
    return upper is not None and upper >= encode(column.type, math.nan)


def _has_columns(stored: TableSchema, columns: Sequence[Column]) -> bool:
    """Whether files of the schema have the columns under their names, in their types."""
    for column in columns:
        own = stored.by_id(column.id)
        if own is None or own.name != column.name or own.type != column.type or column.scale_since:
            return False
    return True
