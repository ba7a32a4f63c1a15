"""Pure. Which of a scan's splits an engine may read from their files by itself: those of which each row is one that
readers see, stored as they see it."""

from collections.abc import Mapping, Sequence

from lakelib.model.files import Split
from lakelib.model.schema import Column, TableSchema
from lakelib.plan.scan import needs_merge


def plain_splits(
    splits: Sequence[Split], columns: Sequence[Column], schemas: Mapping[int, TableSchema], *, merges: bool
) -> tuple[list[Split], list[Split]]:
    """Those splits, and the others. `columns` are those that are read."""
    known = {schema_id: _has_columns(schema, columns) for schema_id, schema in schemas.items()}

    def is_plain(split: Split) -> bool:
        if merges and needs_merge(split):
            return False
        return all(
            known[file.schema_id] and not file.delete_count and file.depth >= split.depth for file in split.files
        )

    plain = [split for split in splits if is_plain(split)]
    return plain, [split for split in splits if split not in plain] if len(plain) < len(splits) else []


def _has_columns(stored: TableSchema, columns: Sequence[Column]) -> bool:
    """Whether files of the schema have the columns under their names, in their types."""
    for column in columns:
        own = stored.by_id(column.id)
        if own is None or own.name != column.name or own.type != column.type or column.scale_since:
            return False
    return True
