"""Part of all writes: what a writer of a table's runs needs to know."""

from lakelib.model.schema import TableSchema
from lakelib.model.table import TableInfo
from lakelib.ops.merging import merge_engine
from lakelib.work.run_writer import RunTarget

MOVES = "moved"
"""Goes into the names of files of marks for rows that leave their partition."""


def run_target(
    table: TableInfo,
    schema: TableSchema,
    *,
    file_kind: str,
    order_names: tuple[str, ...],
    holds_deletes: bool = False,
    holds_commits: bool = False,
    one_partition: bool = False,
) -> RunTarget:
    return RunTarget(
        location=table.location,
        schema=schema,
        primary_key=schema.select(table.primary_key_ids),
        partition_by=schema.select(table.partition_ids),
        order_names=order_names,
        buckets=table.buckets,
        options=table.options,
        file_kind=file_kind,
        holds_deletes=holds_deletes,
        holds_commits=holds_commits,
        engine=merge_engine(table, schema),
        one_partition=one_partition,
    )


def order_names(table: TableInfo, schema: TableSchema) -> tuple[str, ...]:
    """By which the newest version is known. Other merge engines know by themselves, and take rows as they come."""
    if not table.merge.is_newest:
        return ()
    return tuple(column.name for column in schema.select(table.sequence_ids))


def moves_target(table: TableInfo, schema: TableSchema) -> RunTarget:
    """How the marks of rows that leave are written."""
    return run_target(table, schema, file_kind=MOVES, order_names=order_names(table, schema), holds_deletes=True)
