"""Pure. What pages draw, as plain values for templates: calendars of partitions, lines of what checks have found."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from lakelib.dataclass import dataclass
from lakelib.model.status import TROUBLES, JudgedCheck, JudgedCommit, PartitionStatus, TableStatus
from lakelib.plan.due import is_key

_COMMON = {"day": len("2026-11"), "hour": len("2026-11-18"), "month": len("2026")}
_PLACES = {"day": range(1, 32), "hour": range(24), "month": range(1, 13)}
MOST_LINES = 120
_WIDTH, _HEIGHT, _MARGIN = 180, 28, 4
_GRAVEST = {"failed": 0, "errored": 1, "passed": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarLine:
    """A month of days, a day of hours, or a year of months. None where there is no partition."""

    name: str
    cells: tuple[PartitionStatus | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    heads: tuple[str, ...]
    lines: tuple[CalendarLine, ...]
    """The newest first."""
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: float
    y: float
    share: float
    check: JudgedCheck
    commit: JudgedCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLine:
    """What a check has found over time: the share of rows that were not as expected, from the oldest to the newest."""

    name: str
    severity: str
    points: tuple[Point, ...]
    width: int = _WIDTH
    height: int = _HEIGHT

    @property
    def path(self) -> str:
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)

    @property
    def newest(self) -> Point:
        return self.points[-1]

    @property
    def most(self) -> float:
        return max(point.share for point in self.points)


def totals_of(tables: Iterable[TableStatus]) -> dict[str, int]:
    """How many partitions of all tables somebody should look at, by their standing, the gravest first."""
    counted: Counter[str] = sum((Counter(each.troubles) for each in tables), Counter())
    return {standing.value: counted[standing.value] for standing in TROUBLES if counted[standing.value]}


def calendar_of(every: str | None, partitions: Sequence[PartitionStatus]) -> Calendar | None:
    """None for a table that is not cut by time."""
    if every not in _COMMON:
        return None
    lines = list(_lines(every, [each for each in partitions if is_key(every, each.partition)]))[::-1]
    heads = tuple(f"{place:02}" for place in _PLACES[every])
    return Calendar(heads=heads, lines=tuple(lines[:MOST_LINES]), left_out=max(0, len(lines) - MOST_LINES))


def _lines(every: str, partitions: Iterable[PartitionStatus]) -> Iterator[CalendarLine]:
    common = _COMMON[every]
    for name, group in groupby(partitions, key=lambda each: each.partition[:common]):
        known = {int(each.partition[common + 1 :]): each for each in group}
        yield CalendarLine(name=name, cells=tuple(known.get(place) for place in _PLACES[every]))


def check_lines(judged: Sequence[JudgedCommit]) -> list[CheckLine]:
    """A line for each check that there was, those first whose newest result is the gravest. `judged` are the newest
    first."""
    found: dict[str, list[tuple[JudgedCheck, JudgedCommit]]] = {}
    for commit in reversed(judged):
        for check in commit.checks:
            found.setdefault(check.name, []).append((check, commit))
    lines = [_check_line(name, each) for name, each in found.items()]
    return sorted(lines, key=lambda line: (_GRAVEST.get(line.newest.check.status, 0), line.name))


def _check_line(name: str, results: Sequence[tuple[JudgedCheck, JudgedCommit]]) -> CheckLine:
    shares = [_share(check) for check, _ in results]
    highest = max(shares) or 1.0
    step = (_WIDTH - 2 * _MARGIN) / max(1, len(results) - 1)
    points = tuple(
        Point(
            x=_MARGIN + place * step if len(results) > 1 else _WIDTH / 2,
            y=_HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * share / highest,
            share=share,
            check=check,
            commit=commit,
        )
        for place, (share, (check, commit)) in enumerate(zip(shares, results, strict=True))
    )
    return CheckLine(name=name, severity=results[-1][0].severity, points=points)


def _share(check: JudgedCheck) -> float:
    """Of a check that counts no rows: all or nothing."""
    if check.unexpected_count is not None and check.row_count:
        return min(1.0, check.unexpected_count / check.row_count)
    return 0.0 if check.status == "passed" else 1.0
