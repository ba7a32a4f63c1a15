"""Frozen values: how the versions of a key become one row. Columns are named by id: their names may change."""

import json
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

from lakelib.dataclass import dataclass
from lakelib.model.schema import TableSchema


class MergeEngine(Enum):
    DEDUPLICATE = "deduplicate"
    """The newest version of a key is the row."""
    FIRST_ROW = "first_row"
    """The oldest version of a key is the row."""
    PARTIAL_UPDATE = "partial_update"
    """Each column has the newest value that is not NULL, or follows the sequence of its group."""
    AGGREGATE = "aggregate"
    """Each column has what its function makes of all values."""


class OnDelete(Enum):
    """What a delete does to a row of a table with partial updates."""

    ROW = "row"
    REFUSE = "refuse"
    GROUPS = "groups"
    """It empties the sequence groups, and the row stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceGroup:
    """Columns that are replaced together, by a version whose sequence is not NULL and no lower than theirs."""

    sequence: tuple[int, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """What a table does with versions. The functions of an aggregate are told by its columns."""

    engine: MergeEngine = MergeEngine.DEDUPLICATE
    groups: tuple[SequenceGroup, ...] = ()
    on_delete: OnDelete = OnDelete.ROW
    retract: bool = False
    """Whether `delete_keys` takes values back, instead of rows away."""

    @property
    def is_newest(self) -> bool:
        """Whether one version, the newest, is the row: who knows nothing of merging may leave out the others."""
        return self.engine is MergeEngine.DEDUPLICATE

    @property
    def keeps_marks(self) -> bool:
        """Whether marks say more than that what is older does not count."""
        return self.retract or self.on_delete is OnDelete.GROUPS

    @property
    def group_ids(self) -> frozenset[int]:
        """The columns that groups name."""
        return frozenset(each for group in self.groups for each in (*group.sequence, *group.columns))

    def as_text(self) -> str:
        """As the catalog keeps it."""
        told: dict[str, Any] = {"engine": self.engine.value}
        if self.groups:
            told["groups"] = [{"sequence": group.sequence, "columns": group.columns} for group in self.groups]
        if self.on_delete is not OnDelete.ROW:
            told["on_delete"] = self.on_delete.value
        if self.retract:
            told["retract"] = True
        return self.engine.value if len(told) == 1 else json.dumps(told)

    def in_names(self, schema: TableSchema) -> str | dict[str, Any]:
        """As it was given to `create_table`, with the columns' present names."""
        told: dict[str, Any] = {"engine": self.engine.value}
        if self.groups:
            told["groups"] = [
                {
                    "sequence": [column.name for column in schema.select(group.sequence)],
                    "columns": [column.name for column in schema.select(group.columns)],
                }
                for group in self.groups
            ]
        if self.on_delete is not OnDelete.ROW:
            told["on_delete"] = self.on_delete.value
        if self.retract:
            told["retract"] = True
        functions = {column.name: column.function for column in schema.columns if column.function is not None}
        if functions:
            told["functions"] = functions
        return self.engine.value if len(told) == 1 else told


DEDUPLICATE = Merge()


@lru_cache(maxsize=256)
def merge_from_text(text: str) -> Merge:
    """What `Merge.as_text` has told."""
    told: Mapping[str, Any] = json.loads(text) if text.startswith("{") else {"engine": text}
    return Merge(
        engine=MergeEngine(told["engine"]),
        groups=tuple(
            SequenceGroup(sequence=tuple(group["sequence"]), columns=tuple(group["columns"]))
            for group in told.get("groups", ())
        ),
        on_delete=OnDelete(told.get("on_delete", OnDelete.ROW.value)),
        retract=bool(told.get("retract", False)),
    )
