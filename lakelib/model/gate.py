"""Frozen values of gates: suites as they were registered, which of them a table requires, what one found in a staged
commit, and what people ask beside that: where the rows come from, which failed, how it was before."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingRows:
    """Rows of a commit that were not as a check expects. Values are as JSON can hold them, sensitive ones masked."""

    command: str
    """Shows them, in a shell."""
    keys: tuple[Mapping[str, Any], ...] = ()
    """The columns of key and partition of the first ones."""
    values: tuple[tuple[Any, int], ...] = ()
    """What the check looked at in them, and how often; the most frequent first."""
    rows: int = 0
    """So many rows the values are counted in."""
    has_more: bool = False
    """Whether there are others that were not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The partition before: what its commit brought, and what the gate said of it."""

    partition: str
    rows: int | None
    checks: Mapping[str, CheckResult]
    """By name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What is known of a judged commit besides its verdict."""

    partition: str | None = None
    source: str | None = None
    """The path that its rows were read from."""
    source_files: str | None = None
    run: str | None = None
    """The application that staged it: in Airflow the DAG and its run."""
    engine: str | None = None
    """What made the rows of what was read, and why that."""
    rows: int | None = None
    effect: str = ""
    """How many rows come, are replaced and go, as far as it is known."""
    before: Before | None = None
    failing: Mapping[str, FailingRows] = field(default_factory=dict)
    """By the name of the check."""
