"""Frozen values: the files of a table, by partition and split, and masks, the rows of them that readers do not see."""

from typing import Any
from uuid import UUID

from lakelib.dataclass import dataclass

PartitionKey = tuple[bytes | None, ...]
"""One sortable encoding (`model.sortable`) a partition column; None is NULL. Equal keys are the same partition."""
FOLDER = "_masks"
"""Below a table's location: the masks that are files of their own."""


MAX_PARTITION_KEY_BYTES = 2000
"""The longest partition key: what the catalog's index over partitions holds, with room to spare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    id: int
    key: PartitionKey
    path: str
    """Relative to the table's location; '' for a table without partitions. For people: never parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBounds:
    """What is known of each column of a file, indexed by column id - 1. None is unknown.

    Bounds are sortable encodings and may be wider than the data (long values are cut), never narrower.
    """

    lower: tuple[bytes | None, ...] = ()
    upper: tuple[bytes | None, ...] = ()
    null_counts: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file that a writer has finished: the message a task returns. It is in no commit yet."""

    path: str
    """Relative to the table's location."""
    partition_key: PartitionKey
    partition_path: str
    depth: int
    prefix: int
    """All keys of the file share the first `depth` bits of their hash, and those bits are `prefix`."""
    run: int
    """Order among the files of one commit: of two rows of one key the one in the higher run is newer."""
    level: int
    row_count: int
    delete_count: int
    size_bytes: int
    bounds: ColumnBounds
    sequence: int | None = None
    """Of a compaction's file the newest sequence that it took in; else None: the snapshot that publishes the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file as the catalog knows it. Files of one split are ordered by (sequence, run)."""

    id: int
    path: str
    partition_id: int
    depth: int
    prefix: int
    run: int
    level: int
    row_count: int
    delete_count: int
    size_bytes: int
    schema_id: int
    sequence: int | None
    """Commit order of its rows: the snapshot that published it, or of a compaction the newest it took in.
    None while it is staged."""
    added_snapshot: int | None
    removed_snapshot: int | None
    bounds: ColumnBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """What one task reads: the keys under one hash prefix of one partition. `files` run from oldest to newest."""

    partition: Partition
    depth: int
    prefix: int
    files: tuple[DataFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSummary:
    """A partition at a snapshot. `stored_rows` counts rows of all its files: superseded ones and delete marks too."""

    values: dict[str, Any]
    path: str
    files: int
    stored_rows: int
    size_bytes: int
    newest_snapshot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSummary:
    """A live file. `path` is relative to the table's location; the keys are those whose hash begins with `prefix`."""

    path: str
    partition: dict[str, Any]
    row_count: int
    delete_count: int
    size_bytes: int
    depth: int
    prefix: int
    level: int
    added_snapshot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a snapshot holds. `stored_rows` counts rows of all its files: superseded ones and delete marks too."""

    files: int
    stored_rows: int
    size_bytes: int
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """A partition that a snapshot has added files to, or removed files from."""

    partition: Partition
    is_replaced: bool
    size_bytes: int
    """Of the files that were there before the snapshot, with those that came with it."""
    previous_snapshot: int | None
    """Of one that was replaced, the newest snapshot that had touched it before."""


# Masks


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
