"""Frozen values: what a doctor finds in a lake, and what it put right."""

from collections.abc import Mapping
from datetime import timedelta
from enum import Enum

from lakelib.dataclass import dataclass
from lakelib.model.upkeep import readable_bytes

DEFAULT_DOCTOR_GRACE = timedelta(days=1)


class Harm(Enum):
    """What a finding may have cost, the gravest first."""

    DAMAGED = "damaged"
    """Rows are lost or wrong, or cannot be read."""
    AT_RISK = "at_risk"
    """Nothing is lost yet, and something may be if nobody acts."""
    NOTABLE = "notable"
    """Worth knowing; nothing has to be done."""


REPAIRS = ("queue", "leases", "files", "keys")
"""What a doctor puts right when it is told to: live files leave the deletion queue; holds that have run out go; files
that are damaged come back from a backup; of a key that stands in several partitions, where it should be in one, the
newest row stays. But for that one none of them takes a row away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it should be."""

    severity: Harm
    kind: str
    """A stable word, such as "missing_file"."""
    table: str | None
    """None for what is not about one table."""
    place: str
    """The file's URI, or what it is in the catalog: "snapshot 7", "commit …", "lease of host/17"."""
    detail: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """Something that was put right, or would be if it was no dry run."""

    kind: str
    """One of `REPAIRS`."""
    table: str | None
    place: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DoctorReport:
    """What a doctor looked at and found. It holds the first findings of each kind; `counts` counts all."""

    deep: bool
    dry_run: bool
    """Whether repairs were only told."""
    tables: tuple[str, ...]
    files: int
    """Those that the catalog names and that were compared with the storage."""
    size_bytes: int
    unstaged: int
    """Files that no commit names and that are so young that a running writer may stage them yet."""
    findings: tuple[Finding, ...]
    counts: Mapping[str, int]
    """How many findings there are of each kind."""
    repairs: tuple[Repair, ...]
    seconds: float

    @property
    def severity(self) -> Harm | None:
        """The worst there is; None where nothing was found."""
        found = {finding.severity for finding in self.findings}
        return next((severity for severity in Harm if severity in found), None)

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is damaged and nothing at risk."""
        return self.severity in (None, Harm.NOTABLE)

    def __repr__(self) -> str:
        looked = f"{len(self.tables):,} tables, {self.files:,} files, {readable_bytes(self.size_bytes)}"
        counts = [f"{kind}: {count:,}" for kind, count in self.counts.items()]
        return "\n  ".join((f"<DoctorReport of {looked}", *(counts or ["nothing was found"]))) + ">"
