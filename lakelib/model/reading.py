"""Frozen values: the changes of a table that a run has read, as the commit keeps them that was made of them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from lakelib.dataclass import dataclass
from lakelib.model.consumer import Advance

CHANGES = "changes"
"""The property of a commit that says which changes it was made of."""


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
