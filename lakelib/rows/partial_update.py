"""Pure. The merge engine "partial_update": each column has the newest value that is not NULL.

The columns of a sequence group follow an order of their own: they are those of the version that is highest in the
group's sequence, NULLs too, and of several of the one that came last. A version whose sequence there is NULL says
nothing of the group.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.model.schema import OP_COLUMN, Column, Op
from lakelib.rows.buffers import fixed_values, valid_rows, whole_array
from lakelib.rows.by_column import ByColumn, Made
from lakelib.rows.keys import Rows
from lakelib.rows.versions import NONE, Mask, Versions, taken


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
