"""Interop. What a version that was written here says of itself in its `commitInfo`: whose it is, and what the next one
has to know of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lakelib.dataclass import dataclass
from lakelib.interop.delta.actions import Action, CommitInfo

FIELD = "lake"
COUNT = "actions"
"""How many actions the version has: one that was cut between two lines is told by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    commit: str
    """The id of the commit in the catalog: no other writer's version has it."""
    snapshot: int
    mode: str
    began: int
    """The version from which on the log has all versions."""
    schema_id: int
    seen: tuple[int, ...]
    """The versions of the schema that files told of so far were written with."""
    features: tuple[str, ...]
    names: Mapping[int, str] | None
    """How columns are called in the files; None while that is their name."""
    is_partitioned: bool

    def to_object(self) -> dict[str, Any]:
        return {
            "commit": self.commit,
            "snapshot": self.snapshot,
            "mode": self.mode,
            "began": self.began,
            "schema": self.schema_id,
            "seen": list(self.seen),
            "features": list(self.features),
            "names": None if self.names is None else {str(number): name for number, name in self.names.items()},
            "partitioned": self.is_partitioned,
        }


def find_note(actions: Iterable[Action]) -> Note | None:
    """None for a version that somebody else has written."""
    for action in actions:
        if isinstance(action, CommitInfo):
            return _parse(action.others.get(FIELD))
    return None


def is_cut(actions: Sequence[Action]) -> bool:
    """Whether a version says that it has had more actions, or fewer."""
    said = next((action.others.get(FIELD) for action in actions if isinstance(action, CommitInfo)), None)
    return isinstance(said, Mapping) and said.get(COUNT, len(actions)) != len(actions)


def _parse(said: Any) -> Note | None:
    try:
        names = said["names"]
        return Note(
            commit=str(said["commit"]),
            snapshot=int(said["snapshot"]),
            mode=str(said["mode"]),
            began=int(said["began"]),
            schema_id=int(said["schema"]),
            seen=tuple(int(each) for each in said["seen"]),
            features=tuple(str(each) for each in said["features"]),
            names=None if names is None else {int(number): str(name) for number, name in names.items()},
            is_partitioned=bool(said["partitioned"]),
        )
    except (TypeError, KeyError, ValueError, AttributeError):
        return None
