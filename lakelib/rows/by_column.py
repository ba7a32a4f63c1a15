"""Pure. Merge engines that make a row of the versions of a key column by column: what they share, and "partial_update":
each column has the newest value that is not NULL.

Columns of the key and of the partition are the same in all versions. Those of the table's sequence follow it. Of the
others an engine says how they are made. Where the table has a sequence, a column that takes one of its values keeps by
it the sequence that this had, in a column that nobody sees: versions that come late find their place.

Of a partial update the columns of a sequence group follow an order of their own: they are those of the version that is
highest in the group's sequence, NULLs too, and of several of the one that came last. A version whose sequence there is
NULL says nothing of the group.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.model.schema import COMMIT_COLUMN, HIDDEN_PREFIX, OP_COLUMN, Column, Op, TableSchema
from lakelib.rows.buffers import array_of_numbers, fixed_values, valid_rows, whole_array
from lakelib.rows.keys import Rows
from lakelib.rows.versions import NONE, Mask, Versions, taken

Made = dict[str, pa.Array]
"""What becomes of some columns, by name."""


_IDS_EACH = 1000
_FIRST_ID = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ByColumn:
    columns: tuple[Column, ...]
    """All of the table's."""
    fixed_ids: frozenset[int]
    """Of the key and the partition."""
    sequence: tuple[Column, ...]

    def needed(self, column_ids: Collection[int]) -> tuple[Column, ...]:
        sequence_ids = {column.id for column in self.sequence}
        found: list[Column] = []
        for column in self.columns:
            if column.id in column_ids and column.id not in self.fixed_ids:
                found += self.sequence if column.id in sequence_ids else self.beside(column)
        return tuple(dict.fromkeys(found))

    def hidden(self, schema: TableSchema) -> tuple[Column, ...]:
        known = {column.id for column in schema.columns}
        own = replace(self, columns=schema.columns, sequence=schema.select(each.id for each in self.sequence))
        found = (each for column in own.free_columns for each in own.beside(column))
        return tuple(dict.fromkeys(each for each in found if each.id not in known))

    @property
    def free_columns(self) -> tuple[Column, ...]:
        """Those that the engine makes."""
        taken = self.fixed_ids | {column.id for column in self.sequence}
        return tuple(column for column in self.columns if column.id not in taken)

    def beside(self, column: Column) -> tuple[Column, ...]:
        """The columns that merging this one takes."""
        return self.at(column)

    def at(self, column: Column) -> tuple[Column, ...]:
        """The sequence that the column's value had."""
        return tuple(
            hidden_column(column, f"at_{column.id}_{each.id}", place, each.type)
            for place, each in enumerate(self.sequence)
        )

    @property
    def chosen_by(self) -> tuple[str, ...] | None:
        return None

    def chosen(self, versions: Versions) -> Rows | None:
        return None

    def lift(self, rows: pa.Table) -> pa.Table:
        lifted = {name: whole_array(rows.column(name)) for name in rows.column_names}
        lifted |= self.lifted(rows)
        for column in self.free_columns:
            for each, source in zip(self.at(column), self.sequence, strict=False):  # all of them, or none
                lifted[each.name] = whole_array(rows.column(source.name))
        return pa.table(lifted)

    def lifted(self, rows: pa.Table) -> Made:
        """The columns that files have otherwise than they are given."""
        return {}

    def fold(self, versions: Versions) -> pa.Table:
        made: dict[str, pa.Array] = {}
        for part in self._parts(versions):
            made |= part
        names = [name for name in versions.rows.column_names if name in made]
        fields = [versions.rows.schema.field(name).with_nullable(True) for name in names]
        return pa.table([made[name] for name in names], schema=pa.schema(fields))

    def _parts(self, versions: Versions) -> Iterator[Made]:
        present = set(versions.rows.column_names)
        last = versions.last_rows
        yield {
            name: versions.take(name, last)
            for name in present & {COMMIT_COLUMN, OP_COLUMN, *(each.name for each in self._fixed_columns)}
        }
        if versions.op is not None:
            yield {OP_COLUMN: array_of_numbers(versions.op)}
        sequence = [column.name for column in self.sequence]
        if sequence and present.issuperset(sequence):
            newest = versions.highest(sequence, versions.all())
            yield {name: versions.take(name, newest) for name in sequence}
        for column in self.free_columns:
            if column.name in present:
                yield self.made(versions, column)

    @property
    def _fixed_columns(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.id in self.fixed_ids)

    def made(self, versions: Versions, column: Column) -> Made:
        """What becomes of a column, and of what is beside it."""
        return self.picked(versions, column, versions.given(column.name))

    def picked(self, versions: Versions, column: Column, mask: Mask, *, oldest: bool = False) -> Made:
        """The newest of these values, or the oldest."""
        at = [each.name for each in self.at(column)]
        if at:
            rows = (versions.lowest if oldest else versions.highest)(at, mask)
        else:
            rows = (versions.first if oldest else versions.last)(mask)
        return {name: versions.take(name, rows) for name in (column.name, *at)}


def hidden_column(column: Column, name: str, place: int, type_text: str) -> Column:
    """One of the columns that nobody sees beside another."""
    column_id = -(_FIRST_ID + column.id * _IDS_EACH + place)
    return Column(id=column_id, name=f"{HIDDEN_PREFIX}{name}", type=type_text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Columns that are replaced together."""

    sequence: tuple[Column, ...]
    columns: tuple[Column, ...]

    @property
    def members(self) -> tuple[Column, ...]:
        return (*self.sequence, *self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialUpdate(ByColumn):
    groups: tuple[Group, ...] = ()

    def beside(self, column: Column) -> tuple[Column, ...]:
        group = self._group_of(column)
        return ByColumn.at(self, column) if group is None else group.sequence

    def at(self, column: Column) -> tuple[Column, ...]:
        return () if self._group_of(column) is not None else ByColumn.at(self, column)

    def _group_of(self, column: Column) -> Group | None:
        return next((group for group in self.groups if any(each.id == column.id for each in group.members)), None)

    def lifted(self, rows: pa.Table) -> Made:
        """What comes without its group's sequence is not taken."""
        lifted: dict[str, pa.Array] = {}
        emptied = _is_emptied(rows)
        for group in self.groups:
            lifted |= _only(rows, group.columns, _has_sequence(rows, group) & ~emptied)
        grouped = {each.id for group in self.groups for each in group.members}
        return lifted | _only(rows, [each for each in self.free_columns if each.id not in grouped], ~emptied)

    def made(self, versions: Versions, column: Column) -> Made:
        group = self._group_of(column)
        if group is None:
            return ByColumn.made(self, versions, column)
        return {column.name: versions.take(column.name, self._newest(versions, group))}

    def _newest(self, versions: Versions, group: Group) -> Rows:
        names = [each.name for each in group.sequence]
        return versions.remembered(
            tuple(names), lambda: versions.highest(names, _has_sequence(versions.rows, group) & versions.all())
        )


def _only(rows: pa.Table, columns: Iterable[Column], mask: Mask) -> Made:
    """The columns with the values of the rows of the mask; those that stay as they are are left out."""
    if mask.all():
        return {}
    places = np.where(mask, np.arange(rows.num_rows), NONE)
    return {each.name: taken(whole_array(rows.column(each.name)), places) for each in columns}


def _is_emptied(rows: pa.Table) -> Mask:
    """Which rows say that groups are empty from then on."""
    if OP_COLUMN not in rows.column_names:
        return np.zeros(rows.num_rows, np.bool_)
    emptied: Mask = fixed_values(whole_array(rows.column(OP_COLUMN)), "i1") == Op.VALUES
    return emptied


def _has_sequence(rows: pa.Table, group: Group) -> Mask:
    """Of which rows the group's sequence is told, at least in part."""
    told = np.zeros(rows.num_rows, np.bool_)
    for each in group.sequence:
        valid = valid_rows(whole_array(rows.column(each.name)))
        told = np.ones_like(told) if valid is None else told | valid
    return told
