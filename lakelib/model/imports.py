"""Frozen values: what an import is asked for, what it has pinned, and what came of it."""

from enum import Enum
from itertools import accumulate

from lakelib.dataclass import dataclass
from lakelib.model.upkeep import readable_bytes


class SourceKind(Enum):
    DELTA = "delta"
    PARQUET = "parquet"


class Duplicates(Enum):
    """What becomes of keys that come more than once in a source."""

    REFUSE = "refuse"
    """Nothing is imported."""
    LAST = "last"
    """The highest of the table's `sequence_by` stays; without it, the one that comes last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedFile:
    """A file of a source as it was when the import began."""

    uri: str
    size_bytes: int
    version: str
    folder_values: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan:
    """What an import copies, and in which batches: the same for each run of it."""

    kind: SourceKind
    source: str
    version: int | None
    """Of a Delta table."""
    files: tuple[PinnedFile, ...]
    """In the order in which they are copied."""
    batches: tuple[int, ...]
    """How many of the files each batch has."""

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def ranges(self) -> tuple[range, ...]:
        """Which files each batch has."""
        ends = accumulate(self.batches)
        return tuple(range(end - count, end) for end, count in zip(ends, self.batches, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ImportResult:
    """What an import has brought."""

    table: str
    kind: str
    source: str
    version: int | None
    """Of a Delta table: as of when it was imported."""
    dry_run: bool
    files: int
    size_bytes: int
    """Of the source's files."""
    batches: int
    batches_before: int
    """Of these, those that an earlier run has brought."""
    rows: int | None
    """That were read in all batches; None for a dry run."""
    snapshot: int | None
    """The newest one that it has made; None if there was nothing to copy, and for a dry run."""
    seconds: float

    def __repr__(self) -> str:
        source = f"{self.files:,} files, {readable_bytes(self.size_bytes)}, of {self.source}"
        came = "dry run" if self.dry_run else f"{self.rows or 0:,} rows in {self.batches:,} commits"
        return f"<ImportResult {self.table}: {came} from {source}>"
