"""Frozen values: what a gate found in a staged commit."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

from lakelib.dataclass import dataclass
from lakelib.model.effect import measured_text
from lakelib.model.html import html_table

_MOST_TOLD = 10
_LONGEST_LINE = 200


class Outcome(Enum):
    ACCEPT = "accept"
    WARN = "warn"
    REJECT = "reject"
    ERRORED = "errored"
    """A check could not be carried out: nothing is said of the data."""


class Severity(Enum):
    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class Scope(Enum):
    """Which rows a check looks at."""

    STAGED = "staged"
    """The commit's own rows."""
    MERGED = "merged"
    """The partitions that the commit touches, as they would be after publishing."""
    TABLE = "table"
    """The whole table, as it would be after publishing."""


class Status(Enum):
    PASSED = "passed"
    FAILED = "failed"
    ERRORED = "errored"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one check of a gate found."""

    name: str
    expectation: str
    """The type of Great Expectations' expectation."""
    arguments: Mapping[str, Any]
    scope: Scope
    severity: Severity
    status: Status
    observed: Any = None
    """What was measured, as JSON can hold it."""
    row_count: int | None = None
    unexpected_count: int | None = None
    sample: tuple[Any, ...] = ()
    """A few of the values that were not as expected."""
    detail: str = ""
    """For a check that errored: why."""

    def told(self) -> str:
        """Its name, and what was found: how many rows were not as expected, or what was observed."""
        if self.status is Status.ERRORED:
            return f"{self.name} ({self.detail.splitlines()[0] if self.detail else 'unknown error'})"
        if self.unexpected_count is not None and self.row_count is not None:
            return f"{self.name} ({self.unexpected_count:,} of {self.row_count:,} rows)"
        if self.observed is None:
            return self.name
        return f"{self.name} ({measured_text(self.observed) or f'observed {self.observed}'})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedAt:
    """The columns that checks have looked at. Where they are others by now the verdict counts no more."""

    columns: Mapping[str, tuple[int, str] | None] = field(default_factory=dict)
    """Id and type by name; None for a name that no column had."""
    order: tuple[int, ...] | None = None
    """The ids of all columns, if their names were looked at."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verdict:
    """A gate's verdict on a commit, with its evidence."""

    commit_id: UUID
    gate: str
    suite_hash: str
    outcome: Outcome
    base_snapshot_id: int
    """The head that was looked at; 0 for none."""
    engine: str
    """ "spark" or "arrow"."""
    seconds: float
    judged_at: datetime
    checks: tuple[CheckResult, ...] = field(default=())
    amendment: int = 0
    """How often the commit had been amended by then: a verdict on what it was before counts no more."""
    beneath: tuple[UUID, ...] = ()
    """The commits that were taken for published: those that come before it in one transaction."""
    looked_at: LookedAt = field(default_factory=lambda: LookedAt())

    @property
    def passed(self) -> bool:
        """Whether the commit may be published."""
        return self.outcome in (Outcome.ACCEPT, Outcome.WARN)

    def __str__(self) -> str:
        """What was not as expected, a line each, and where all of it is."""
        wrong = [each for each in self.checks if each.status is not Status.PASSED]
        if not wrong:
            return self._headline()
        more = [f"  and {len(wrong) - _MOST_TOLD:,} more"] if len(wrong) > _MOST_TOLD else []
        where = "All is in .checks; StagedCommit.report(path) writes it as a page."
        return "\n".join((self._headline(), *(f"  {_line(each)}" for each in wrong[:_MOST_TOLD]), *more, where))

    def __repr__(self) -> str:
        return f"<Verdict: {self._headline()}>"

    def _headline(self) -> str:
        counts = Counter(each.status for each in self.checks)
        wrong = [f"{counts[status]:,} {status.value}" for status in (Status.FAILED, Status.ERRORED) if counts[status]]
        found = f"{' and '.join(wrong)} of {len(self.checks):,} checks" if wrong else "all checks passed"
        return f"{self.outcome.value} by gate {self.gate} on commit {self.commit_id}: {found}"

    def _repr_html_(self) -> str:
        rows = [
            (each.status.value, each.name, each.severity.value, each.scope.value, each.row_count, each.unexpected_count)
            for each in self.checks
        ]
        names = ("status", "check", "severity", "scope", "rows", "unexpected")
        return html_table(f"{self.outcome.value}: {self.gate} on commit {self.commit_id}", names, rows, len(rows))


def _line(check: CheckResult) -> str:
    text = f"{check.status.value}, {check.severity.value}: {check.told()}"
    return text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 1] + "…"
