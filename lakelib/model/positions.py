"""Frozen values: how far somebody has come in a table's history: consumers, which are named positions, the changes that
a run has read, as the commit keeps them that was made of them, and streams."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from lakelib.dataclass import dataclass
from lakelib.model.table import SILENT_KINDS

CHANGES = "changes"
"""The property of a commit that says which changes it was made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerInfo:
    """A consumer as it stands."""

    table_id: int
    name: str
    position: int
    """All up to this snapshot was read; 0 is before the first."""
    keep_for: timedelta
    """How long what it has not read yet is kept from expiry."""
    created_at: datetime
    created_by: str
    advanced_at: datetime | None
    """None if it never has."""
    advanced_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far somebody is behind: by what a consumer has not read yet, or a view of a table does not show. Compactions
    bring nothing, and do not count."""

    snapshots: int
    rows: int
    """That commits brought, delete marks too."""
    age: timedelta
    """Of the oldest commit among them."""

    def __str__(self) -> str:
        snapshots = f"{self.snapshots:,} snapshot{'' if self.snapshots == 1 else 's'}"
        rows = f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
        return f"{snapshots}, {rows}, {timedelta(seconds=int(self.age.total_seconds()))}"


NO_LAG = Lag(snapshots=0, rows=0, age=timedelta(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStatus:
    """A consumer, and how far behind it is."""

    table: str
    name: str
    position: int
    head: int
    lag: Lag
    keep_for: timedelta
    holds: int
    """So many snapshots stay at least because of it."""
    created_at: datetime
    created_by: str
    advanced_at: datetime | None
    advanced_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """A consumer is to move on, from the position that was read."""

    table_id: int
    name: str
    from_id: int
    to_id: int
    backwards: bool = False
    """Whether it may move to an earlier position."""
    move: UUID = field(default_factory=uuid4)
    """Who asks again, since the reply was lost, is known by it."""


# What a commit was made of


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRange:
    """What a run has read of a table, and from which position of its consumer."""

    view: str
    table: str
    table_id: int
    consumer: str
    from_id: int
    """Where the consumer stood."""
    to_id: int
    is_whole: bool
    """All rows were read, as they are at the last snapshot: not what came after the position."""

    def advance(self, commit_id: UUID | None = None) -> Advance:
        """How the consumer moves with what was made of the range. A commit moves it once, whoever publishes it."""
        moved = {} if commit_id is None else {"move": commit_id}
        return Advance(
            table_id=self.table_id,
            name=self.consumer,
            from_id=self.from_id,
            to_id=self.to_id,
            backwards=self.to_id < self.from_id,
            **moved,
        )


def ranges_as_text(ranges: Sequence[ReadRange]) -> str:
    """As a commit keeps them."""
    return json.dumps([_said(each) for each in ranges])


def _said(range_: ReadRange) -> dict[str, Any]:
    return {
        "view": range_.view,
        "table": range_.table,
        "table_id": range_.table_id,
        "consumer": range_.consumer,
        "from": range_.from_id,
        "to": range_.to_id,
        "whole": range_.is_whole,
    }


def ranges_of(properties: Mapping[str, str]) -> tuple[ReadRange, ...]:
    """What a commit says that it was made of. A property of the name that others gave says nothing."""
    text = properties.get(CHANGES)
    try:
        return () if text is None else tuple(map(_range, json.loads(text)))
    except (ValueError, TypeError, KeyError):
        return ()


def _range(said: Mapping[str, Any]) -> ReadRange:
    return ReadRange(
        view=str(said["view"]),
        table=str(said["table"]),
        table_id=int(said["table_id"]),
        consumer=str(said["consumer"]),
        from_id=int(said["from"]),
        to_id=int(said["to"]),
        is_whole=bool(said["whole"]),
    )


# Streams


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
        return self.kind in SILENT_KINDS
