"""Frozen values: masks, the rows of files that readers of a snapshot do not see."""

from uuid import UUID

from lakelib.dataclass import dataclass

FOLDER = "_masks"
"""Below a table's location: the masks that are files of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """The rows of one file that later runs supersede or delete, and its delete marks, as of a snapshot: positions in a
    vector (`storage.vectors`), which is a file of its own, or here where it is small or is not kept."""

    file_id: int
    path: str | None
    """Of the file of the vector, relative to the table's location."""
    inline: bytes | None
    """The vector. Exactly one of the two is set."""
    size_bytes: int
    """Of the vector."""
    cardinality: int
    """How many rows are masked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskState:
    """What is known of the masks of one partition, as a snapshot shows it."""

    partition_id: int
    touched_at: int
    """The last snapshot up to the one asked for that added or removed files there."""
    known_at: int | None
    """The newest snapshot up to the one asked for as of which masks are kept."""
    newest_at: int | None
    """The newest snapshot of all as of which masks are kept."""
    is_reset: bool
    """Whether files went since, or came back, other than by compactions: rows may be seen again."""

    @property
    def is_known(self) -> bool:
        return self.known_at is not None and self.known_at >= self.touched_at


def vector_path(name: UUID) -> str:
    """As Delta names the file of a deletion vector, in a folder of lakelib's."""
    return f"{FOLDER}/deletion_vector_{name}.bin"
