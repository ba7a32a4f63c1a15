"""Pure. Which of a scan's splits DuckDB may read from their files by itself: those of which each row is one that
readers see, stored as they see it.

It takes what Parquet says of a column's values for all there is to say, and Parquet leaves NaN out: rows of files that
may have one are lost, or found, by mistake.
"""

import math
import re
from collections.abc import Mapping, Sequence

from lakelib.model.files import DataFile, Split
from lakelib.model.schema import Column, TableSchema
from lakelib.model.sortable import encode, is_sortable
from lakelib.plan.scan import needs_merge

FLOATS = ("float", "double")


def plain_splits(
    splits: Sequence[Split], columns: Sequence[Column], schemas: Mapping[int, TableSchema], *, merges: bool
) -> tuple[list[Split], list[Split]]:
    """Those splits, and the others. `columns` are those that are read."""
    known = {schema_id: _has_columns(schema, columns) for schema_id, schema in schemas.items()}
    if any(is_nested_float(column.type) for column in columns):
        return [], list(splits)
    floats = [column for column in columns if column.type in FLOATS]

    def is_plain(split: Split) -> bool:
        if merges and needs_merge(split):
            return False
        return all(
            known[file.schema_id]
            and not file.delete_count
            and file.depth >= split.depth
            and not any(_may_hold_nan(file, column) for column in floats)
            for file in split.files
        )

    plain = [split for split in splits if is_plain(split)]
    return plain, [split for split in splits if split not in plain] if len(plain) < len(splits) else []


def is_nested_float(kind: str) -> bool:
    """Nothing is known of what is in a nested value."""
    return not is_sortable(kind) and re.search(r"\b(float|double)\b", kind) is not None


def _may_hold_nan(file: DataFile, column: Column) -> bool:
    """Unless the catalog says that all values are below it."""
    known = file.bounds.upper
    upper = known[column.id - 1] if column.id <= len(known) else None
    return upper is None or upper >= encode(column.type, math.nan)


def _has_columns(stored: TableSchema, columns: Sequence[Column]) -> bool:
    """Whether files of the schema have the columns under their names, in their types."""
    for column in columns:
        own = stored.by_id(column.id)
        if own is None or own.name != column.name or own.type != column.type or column.scale_since:
            return False
    return True
