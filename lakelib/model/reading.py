"""Frozen values: the changes of a table that a run has read, as the commit keeps them that was made of them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from lakelib.model.consumer import Advance

PREFIX = "changes."
"""Begins the property of a commit that says what it was made from, by view."""


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

    @property
    def property(self) -> tuple[str, str]:
        """As a commit keeps it."""
        said = {
            "table": self.table,
            "table_id": self.table_id,
            "consumer": self.consumer,
            "from": self.from_id,
            "to": self.to_id,
            "whole": self.is_whole,
        }
        return f"{PREFIX}{self.view}", json.dumps(said)

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


def ranges_of(properties: Mapping[str, str]) -> tuple[ReadRange, ...]:
    """What a commit says that it was made from. Properties that others gave such a name say nothing."""
    return tuple(_ranges(properties))


def _ranges(properties: Mapping[str, str]) -> Iterator[ReadRange]:
    for name, text in properties.items():
        if not name.startswith(PREFIX):
            continue
        try:
            said = json.loads(text)
            yield ReadRange(
                view=name.removeprefix(PREFIX),
                table=str(said["table"]),
                table_id=int(said["table_id"]),
                consumer=str(said["consumer"]),
                from_id=int(said["from"]),
                to_id=int(said["to"]),
                is_whole=bool(said["whole"]),
            )
        except (ValueError, TypeError, KeyError):
            continue
