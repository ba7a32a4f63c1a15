"""Frozen values: how far a stream has come in a table's history."""

from collections.abc import Mapping
from typing import Any

from lakelib.dataclass import dataclass
from lakelib.model.table import CommitKind


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPosition:
    """A place in a table's history, as a checkpoint keeps it. It names no file: a compaction changes nothing of it."""

    table_id: int
    snapshot_id: int
    """All changes up to this snapshot were read; of the first snapshot, where `parts` says so, only a part."""
    parts: int | None = None
    """So many parts of the first snapshot were read; None: all."""
    since: int | None = None
    """After which snapshot the stream began, of its first batch, if it did not begin with a snapshot's rows."""
    columns: str
    """What the stream's columns are, as a digest."""
    asked: str
    """What the stream was asked for, as a digest."""
    consumer: str
    """Who keeps what was not read yet."""

    def as_dict(self) -> dict[str, Any]:
        """As Spark writes it down."""
        known = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in known.items() if value is not None}


def parse_position(found: Mapping[str, Any]) -> StreamPosition | None:
    """None for the place at which every stream begins."""
    return StreamPosition(**found) if "table_id" in found else None


BEGINNING: dict[str, Any] = {"read": "nothing"}
"""Before anything was read; where that is in the history is decided by the first batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """A snapshot that a stream has not read yet."""

    id: int
    kind: str
    schema_id: int
    row_count: int
    """That it brought, delete marks too."""

    @property
    def is_silent(self) -> bool:
        """Whether every row is as it was before."""
        return self.kind in (CommitKind.COMPACT.value, CommitKind.EVOLVE.value)
