"""Frozen values: suites as they were registered, and which of them a table requires."""

from dataclasses import field
from datetime import datetime

from lakelib.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredSuite:
    """The suite that must have passed a commit to a table. Two suites of one hash check the same."""

    name: str
    version: int
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSuite:
    """A suite in the catalog. Versions of a name are 1, 2, …; one that was registered never changes."""

    name: str
    version: int
    hash: str
    text: str = field(repr=False)
    """In YAML."""
    critical_checks: int
    """How many of its checks reject a commit. Without one it lets everything pass, and no table can require it."""
    registered_by: str
    registered_at: datetime

    @property
    def required(self) -> RequiredSuite:
        return RequiredSuite(name=self.name, version=self.version, hash=self.hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequirement:
    """That a table requires a suite, or has required it until it was released."""

    name: str
    version: int | None = None
    """None, as is what follows, for a gate that is required by its name alone: any suite of that name will do."""
    hash: str | None = None
    required_by: str | None = None
    required_at: datetime | None = None
    released_by: str | None = None
    """Who has released the table from it, or has put another suite in its place; None while it holds."""
    release_reason: str | None = None
    released_at: datetime | None = None
