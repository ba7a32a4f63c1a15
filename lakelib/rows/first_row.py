"""Pure. The merge engine "first_row": the oldest version of a key is the row, and what comes later changes nothing.

Oldest is the lowest sequence, where the table has one, and among equals the first that came. A delete takes away what
came before it; the first version after it is the row then.
"""

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.model.schema import OP_COLUMN, Column, TableSchema
from lakelib.rows.buffers import array_of_numbers
from lakelib.rows.keys import Rows
from lakelib.rows.versions import NONE, Versions


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRow:
    sequence: tuple[Column, ...] = ()

    def needed(self, column_ids: Collection[int]) -> tuple[Column, ...]:
        return self.sequence

    def hidden(self, schema: TableSchema) -> tuple[Column, ...]:
        return ()

    def lift(self, rows: pa.Table) -> pa.Table:
        return rows

    @property
    def chosen_by(self) -> tuple[str, ...] | None:
        return tuple(column.name for column in self.sequence)

    def chosen(self, versions: Versions) -> Rows | None:
        return self._oldest(versions) if versions.ops is None else None

    def fold(self, versions: Versions) -> pa.Table:
        oldest = self._oldest(versions)
        # Of a key that has delete marks alone the mark stays.
        rows = versions.rows.take(array_of_numbers(np.where(oldest == NONE, versions.last_rows, oldest)))
        if versions.op is None:
            return rows
        place = rows.column_names.index(OP_COLUMN)
        return rows.set_column(place, rows.field(place), array_of_numbers(versions.op))

    def _oldest(self, versions: Versions) -> Rows:
        if not self.sequence:
            return versions.first(versions.all())
        return versions.lowest([column.name for column in self.sequence], versions.all())
