"""Interop. Pure. The state of a table that a log tells: its actions, one version after the other."""

from collections.abc import Iterable, Sequence
from dataclasses import field

from lakelib.dataclass import dataclass
from lakelib.interop.delta.actions import Action, Add, CommitInfo, DomainMetadata, Metadata, Protocol, Remove, Txn


@dataclass(slots=True)
class LogState:
    """What is so after the actions that were applied."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: dict[str, Add] = field(default_factory=dict)
    """By path: of one path one is live at most."""
    applications: dict[str, Txn] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    commit: CommitInfo | None = None
    """Of the last version."""

    def apply(self, actions: Iterable[Action]) -> "LogState":
        """One version, or a checkpoint: what is removed and added again is there."""
        found: Sequence[Action] = tuple(actions)
        self.commit = None
        for action in found:
            match action:
                case Remove():
                    self.files.pop(action.path, None)
                case Protocol():
                    self.protocol = action
                case Metadata():
                    self.metadata = action
                case Txn():
                    self.applications[action.app_id] = action
                case DomainMetadata():
                    self.domains[action.domain] = action
                case CommitInfo():
                    self.commit = action
        for action in found:
            if isinstance(action, Add):
                self.files[action.path] = action
        return self
