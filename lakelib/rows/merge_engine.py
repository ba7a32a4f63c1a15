"""Pure. What a merge engine is to those who read, write and rewrite runs, and how the rows whose keys come more than
once are handed to one; all others stay where they are.

The engine that keeps the newest version has no value here: None stands for it, and `rows.merge` knows how. Each other
one has a file of its own and is chosen by `engine_of`. They are plain values: tasks get them by pickle.

What a file shows of a key is what the versions in it come to. What merging it with others takes beyond that is in
columns that nobody sees, whose ids no other column has.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelib.model.merge import Merge, MergeEngine
from lakelib.model.schema import OP_COLUMN, Column, TableSchema
from lakelib.rows.aggregate import Aggregate
from lakelib.rows.buffers import array_of_mask, array_of_numbers, fixed_values, whole_array
from lakelib.rows.by_column import Group, PartialUpdate
from lakelib.rows.first_row import FirstRow
from lakelib.rows.keys import Rows
from lakelib.rows.types import hidden_field
from lakelib.rows.versions import Versions

Mask = npt.NDArray[np.bool_]
Parts = list[tuple[pa.Table, Mask | None]]


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


def fold_repeated(tables: Sequence[pa.Table], repeated: Rows, starts: Rows, engine: Engine) -> Parts:
    """The tables, and which of their rows stay (None: all), and after them the rows that were made. `repeated` are the
    rows, counted through all tables, of keys that come more than once, those of a key together, the oldest first."""
    if not len(repeated):
        return [(table, None) for table in tables]
    lengths = [table.num_rows for table in tables]
    kept = np.ones(sum(lengths), np.bool_)
    kept[repeated] = False
    chosen = _chosen(tables, kept, repeated, starts, engine)
    if chosen is not None:
        kept[repeated[chosen]] = True
    parts = [
        (table, None if mask.all() else mask)
        for table, mask in zip(tables, np.split(kept, np.cumsum(lengths)[:-1]), strict=True)
    ]
    if chosen is not None:
        return parts
    versions = Versions(rows=_taken(tables, ~kept, repeated), starts=starts)
    return [*parts, (engine.fold(versions), None)]


def _chosen(tables: Sequence[pa.Table], kept: Mask, repeated: Rows, starts: Rows, engine: Engine) -> Rows | None:
    """Of each key the version that is the row as it stands; None where rows have to be made. Looks at no other columns
    than those that tell."""
    if engine.chosen_by is None:
        return None
    names = list(engine.chosen_by)
    if any(OP_COLUMN in table.column_names for table in tables):
        tables = [table if OP_COLUMN in table.column_names else with_zeros(table) for table in tables]
        names.append(OP_COLUMN)
    if names:
        rows = _taken([table.select(names) for table in tables], ~kept, repeated)
    else:
        rows = pa.table({OP_COLUMN: _zeros(len(repeated))})
    return engine.chosen(Versions(rows=rows, starts=starts))


def _taken(tables: Sequence[pa.Table], mask: Mask, rows: Rows) -> pa.Table:
    """The rows of the mask, in the order of `rows`. Tables without `_op` delete nothing."""
    masks = np.split(mask, np.cumsum([table.num_rows for table in tables])[:-1])
    own = [table.filter(array_of_mask(part)) for table, part in zip(tables, masks, strict=True) if part.any()]
    if any(OP_COLUMN in table.column_names for table in own):
        own = [with_op(table) for table in own]
    ascending = np.flatnonzero(mask)
    together = pa.concat_tables(own, promote_options="default").combine_chunks()
    return together.take(array_of_numbers(np.searchsorted(ascending, rows)))


def with_op(rows: pa.Table) -> pa.Table:
    """With `_op`, whether the files had it or not."""
    return rows if OP_COLUMN in rows.column_names else with_zeros(rows)


def with_zeros(rows: pa.Table) -> pa.Table:
    """Rows of a file without delete marks, with a column that says so."""
    return rows.append_column(hidden_field(OP_COLUMN), _zeros(rows.num_rows))


def _zeros(count: int) -> pa.Array:
    return array_of_numbers(np.zeros(count, np.int8))


def live_rows(rows: pa.Table) -> Mask | None:
    """Which rows readers see; None for all."""
    if OP_COLUMN not in rows.column_names:
        return None
    ops = fixed_values(whole_array(rows.column(OP_COLUMN)), "i1")
    live: Mask = ops & 1 == 0
    return live
