"""Frozen values: columns and schemas. A column keeps its id for life; its name may change.

A column's type is Spark's type text, the one spelling used in the catalog, in messages and in DDL:
`boolean tinyint smallint int bigint float double decimal(p,s) string binary date timestamp timestamp_ntz
array<…> map<…,…> struct<name:type,…>`. Inside a struct a name that is not a plain identifier is quoted with backticks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import IntEnum
from functools import cached_property

from lakelib.dataclass import dataclass

COMMIT_COLUMN = "_commit"
"""Hidden column of every file: the snapshot that made the row; null means the file's own sequence."""

OP_COLUMN = "_op"
"""Hidden column of files that hold deletes: 0 for a row, 1 for a delete mark; see `Op`."""

HIDDEN_COLUMNS = (COMMIT_COLUMN, OP_COLUMN)

HIDDEN_PREFIX = "__lakelib_"
"""Columns of files that say more of a row than it shows are named so."""


class Op(IntEnum):
    """What a row of a file is. Odd ones are no rows to a reader."""

    ROW = 0
    DELETE = 1
    """What is older does not count, and there is no row."""
    ANEW = 2
    """A row that came after a delete: what is older does not count."""
    VALUES = 3
    """Values that count in a row, if there is one."""
    VALUES_ANEW = 5
    """The same after a delete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table. `id` is dense from 1, never reused within a table."""

    id: int
    name: str
    type: str
    nullable: bool = True
    function: str | None = None
    """What an aggregate makes of the column's values; None is what the merge engine does with every column."""
    comment: str = ""
    scale_since: int = 0
    """The schema version since which a decimal has its scale: bounds of older files are in another one."""
    stored_as: str = ""
    """How files of this schema version call the column, where that is not its name."""

    @property
    def in_file(self) -> "Column":
        """The column under the name that files have for it."""
        return replace(self, name=self.stored_as, stored_as="") if self.stored_as else self

    def tells_bounds(self, schema_id: int) -> bool:
        """Whether files of that schema version have bounds of the column as its type encodes them."""
        return schema_id >= self.scale_since


@dataclass(frozen=True, kw_only=True)  # without slots: it remembers where its columns are
class TableSchema:
    """The columns of a table at one schema version. Names are unique without regard to case."""

    id: int
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def find(self, name: str) -> Column | None:
        """The column of that name, without regard to case."""
        return self._by_name.get(name.casefold())

    def by_id(self, column_id: int) -> Column | None:
        return self._by_id.get(column_id)

    def select(self, column_ids: Iterable[int]) -> tuple[Column, ...]:
        """The columns of those ids, in the order of the ids."""
        return tuple(self._by_id[column_id] for column_id in column_ids)

    @cached_property
    def in_files(self) -> "TableSchema":
        """The columns under the names that files of this version have for them."""
        columns = tuple(column.in_file for column in self.columns)
        return self if columns == self.columns else TableSchema(id=self.id, columns=columns)

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, object]:
        """A pickle holds the columns once."""
        return {"id": self.id, "columns": self.columns}

    @cached_property
    def _hash(self) -> int:
        """Schemas are what plans are remembered by: of a wide one it takes a while."""
        return hash((self.id, self.columns))

    @cached_property
    def _by_id(self) -> Mapping[int, Column]:
        return {column.id: column for column in self.columns}

    @cached_property
    def _by_name(self) -> Mapping[str, Column]:
        return {column.name.casefold(): column for column in self.columns}
