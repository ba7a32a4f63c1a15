"""Pure. What a merge engine is to those who read, write and rewrite runs.

The engine that keeps the newest version has no value here: None stands for it, and `rows.merge` knows how. Each other
one has a file of its own and is chosen by `engine_of`. They are plain values: tasks get them by pickle.

What a file shows of a key is what the versions in it come to. What merging it with others takes beyond that is in
columns that nobody sees, whose ids no other column has.
"""

from collections.abc import Collection
from functools import lru_cache
from typing import Protocol

import pyarrow as pa

from lakelib.model.merge import Merge, MergeEngine
from lakelib.model.schema import Column, TableSchema
from lakelib.rows.aggregate import Aggregate
from lakelib.rows.first_row import FirstRow
from lakelib.rows.keys import Rows
from lakelib.rows.partial_update import Group, PartialUpdate
from lakelib.rows.versions import Versions


class Engine(Protocol):
    """How versions of a key become one row. Any grouping of versions that follow each other gives the same row."""

    def __hash__(self) -> int: ...

    def needed(self, column_ids: Collection[int]) -> tuple[Column, ...]:
        """What merging these columns takes beside them, the columns that nobody sees included."""

    def hidden(self, schema: TableSchema) -> tuple[Column, ...]:
        """The columns that nobody sees, of files of this version of the schema."""

    def lift(self, rows: pa.Table) -> pa.Table:
        """Rows as they are given, as files have them."""

    @property
    def chosen_by(self) -> tuple[str, ...] | None:
        """The columns, beside what is deleted, by which one of a key's versions is chosen; None where rows are made."""

    def chosen(self, versions: Versions) -> Rows | None:
        """Of each key the version that is the row as it stands; None where rows have to be made."""

    def fold(self, versions: Versions) -> pa.Table:
        """One row of each key, with the columns of the versions."""


def engine_of(
    merge: Merge,
    schema: TableSchema,
    key_ids: tuple[int, ...],
    partition_ids: tuple[int, ...],
    sequence_ids: tuple[int, ...],
) -> Engine | None:
    """The engine of a table whose columns are these; None keeps the newest version."""
    if merge.engine is MergeEngine.DEDUPLICATE or not key_ids:
        return None
    return _engine_of(merge, schema, key_ids, partition_ids, sequence_ids)


@lru_cache(maxsize=256)
def _engine_of(
    merge: Merge,
    schema: TableSchema,
    key_ids: tuple[int, ...],
    partition_ids: tuple[int, ...],
    sequence_ids: tuple[int, ...],
) -> Engine:
    sequence = schema.select(sequence_ids)
    if merge.engine is MergeEngine.FIRST_ROW:
        return FirstRow(sequence=sequence)
    fixed_ids = frozenset((*key_ids, *partition_ids))
    if merge.engine is MergeEngine.AGGREGATE:
        return Aggregate(columns=schema.columns, fixed_ids=fixed_ids, sequence=sequence, retract=merge.retract)
    groups = tuple(
        Group(sequence=schema.select(group.sequence), columns=schema.select(group.columns)) for group in merge.groups
    )
    return PartialUpdate(columns=schema.columns, fixed_ids=fixed_ids, sequence=sequence, groups=groups)


def stored_schema(engine: Engine | None, schema: TableSchema) -> TableSchema:
    """The columns of files of this version of the schema, those that nobody sees included."""
    return schema if engine is None else _stored_schema(engine, schema)


@lru_cache(maxsize=256)
def _stored_schema(engine: Engine, schema: TableSchema) -> TableSchema:
    hidden = engine.hidden(schema)
    return TableSchema(id=schema.id, columns=(*schema.columns, *hidden)) if hidden else schema
