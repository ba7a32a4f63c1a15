"""Pure. What merge engines share that make a row of the versions of a key column by column.

Columns of the key and of the partition are the same in all versions. Those of the table's sequence follow it. Of the
others an engine says how they are made. Where the table has a sequence, a column that takes one of its values keeps by
it the sequence that this had, in a column that nobody sees: versions that come late find their place.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.model.schema import COMMIT_COLUMN, HIDDEN_PREFIX, OP_COLUMN, Column, TableSchema
from lakelib.rows.buffers import array_of_numbers, whole_array
from lakelib.rows.keys import Rows
from lakelib.rows.versions import Mask, Versions

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
