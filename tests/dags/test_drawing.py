"""What the lake's pages draw, and where their links lead."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from dags.lake_dags.pages.drawing import calendar_of, check_lines
from dags.lake_dags.pages.links import Links, run_name
from lakelib.model.status import JudgedCheck, JudgedCommit, PartitionStatus, Standing


def partition(key: str, standing: Standing = Standing.PUBLISHED) -> PartitionStatus:
    nothing = dict.fromkeys(
        ("snapshot", "committed_at", "changed_by", "commit", "gate", "outcome", "application", "rows_in")
    )
    return PartitionStatus(partition=key, standing=standing, why="", **nothing)  # type: ignore[arg-type]


def judged(number: int, *checks: JudgedCheck) -> JudgedCommit:
    return JudgedCommit(
        commit=UUID(int=number),
        partition=f"2026-11-{number:02}",
        state="published",
        snapshot=number,
        gate="orders",
        outcome="accept",
        judged_at=datetime(2026, 11, number, tzinfo=UTC),
        checks=checks,
    )


def check(name: str, unexpected: int | None, of: int | None = 10, status: str = "") -> JudgedCheck:
    said = status or ("failed" if unexpected else "passed")
    return JudgedCheck(name=name, severity="critical", status=said, row_count=of, unexpected_count=unexpected)


@pytest.mark.parametrize(
    ("every", "key", "line", "place"),
    [
        ("day", "2026-11-01", "2026-11", 0),
        ("day", "2026-11-30", "2026-11", 29),
        ("hour", "2026-11-18T00", "2026-11-18", 0),
        ("hour", "2026-11-18T23", "2026-11-18", 23),
        ("month", "2026-12", "2026", 11),
    ],
)
def test_a_partition_has_its_place_in_the_calendar(every: str, key: str, line: str, place: int) -> None:
    calendar = calendar_of(every, [partition(key)])
    assert calendar is not None
    (found,) = calendar.lines
    assert found.name == line
    assert [number for number, cell in enumerate(found.cells) if cell] == [place]
    assert len(calendar.heads) == len(found.cells)


def test_the_newest_lines_come_first_and_what_is_no_key_has_no_place() -> None:
    days = [partition(key) for key in ("2026-10-31", "2026-11-01", "2026-11-02", "soon")]
    calendar = calendar_of("day", days)
    assert calendar is not None
    assert [line.name for line in calendar.lines] == ["2026-11", "2026-10"]
    assert sum(cell is not None for line in calendar.lines for cell in line.cells) == 3


def test_a_table_that_is_not_cut_by_time_has_no_calendar() -> None:
    assert calendar_of("none", [partition("all")]) is None
    assert calendar_of(None, []) is None


def test_a_check_is_a_line_from_the_oldest_to_the_newest_within_its_picture() -> None:
    (line,) = check_lines([judged(number, check("positive", number - 1)) for number in (3, 2, 1)])
    assert [point.share for point in line.points] == [0.0, 0.1, 0.2]
    assert [point.commit.snapshot for point in line.points] == [1, 2, 3]
    xs, ys = [point.x for point in line.points], [point.y for point in line.points]
    assert xs == sorted(xs)
    assert ys == sorted(ys, reverse=True)
    assert all(0 < point.x < line.width and 0 < point.y < line.height for point in line.points)
    assert (line.newest.share, line.most) == (0.2, 0.2)


def test_checks_that_failed_last_come_first() -> None:
    checks = (check("b passed", 0), check("failed", 3), check("a passed", 0), check("errored", None, status="errored"))
    assert [line.name for line in check_lines([judged(1, *checks)])] == ["failed", "errored", "a passed", "b passed"]


def test_a_check_that_counts_no_rows_is_all_or_nothing() -> None:
    lines = check_lines(
        [judged(1, check("a", None, None, "failed"), check("b", None, None, "passed"), check("c", 2, 0))]
    )
    assert {line.name: line.newest.share for line in lines} == {"a": 1.0, "b": 0.0, "c": 1.0}


def test_a_commits_work_leads_to_its_run() -> None:
    links = Links("/base/lake-status", "/base")
    application = "airflow/ingest__shop__orders/scheduled__2026-11-18T00:00:00+00:00"
    assert links.run(application) == (
        "/base/dags/ingest__shop__orders/runs/scheduled__2026-11-18T00%3A00%3A00%2B00%3A00"
    )
    assert run_name(application) == "scheduled__2026-11-18T00:00:00+00:00"
    assert [links.run(name) for name in (None, "", "loader", "airflow/only")] == [None] * 4
    assert links.partition("shop.a b", "x/y?") == "/base/lake-status/tables/shop.a%20b/partitions/x%2Fy%3F"
