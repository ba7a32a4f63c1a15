"""Frozen values: what users of a catalog may do. A role has its rights by grants in the database."""

from enum import Enum

from lakelib.dataclass import dataclass


class Role(Enum):
    READER = "reader"
    WRITER = "writer"
    PUBLISHER = "publisher"
    MAINTAINER = "maintainer"
    OWNER = "owner"


class Right(Enum):
    """What the database asks for. The values are its names for them."""

    READ = "read"
    WRITE = "write"
    JUDGE = "judge"
    MAINTAIN = "maintain"
    OWN = "own"

    @property
    def role(self) -> Role:
        """The least role that has the right."""
        return _LEAST_ROLES[self]

    @property
    def words(self) -> str:
        return _WORDS[self]


_LEAST_ROLES = {
    Right.READ: Role.READER,
    Right.WRITE: Role.WRITER,
    Right.JUDGE: Role.PUBLISHER,
    Right.MAINTAIN: Role.MAINTAINER,
    Right.OWN: Role.OWNER,
}
_WORDS = {
    Right.READ: "read the lake",
    Right.WRITE: "write rows",
    Right.JUDGE: "judge, approve and reject commits, tag snapshots and mark partitions done",
    Right.MAINTAIN: "compact, expire and vacuum",
    Right.OWN: "create, change and drop tables, require gates, grant roles and migrate the catalog",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A user of the database who was given a role."""

    role: Role
    user: str
