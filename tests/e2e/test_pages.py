"""What a person on call does in the lake's pages, in a real browser: see what waits and why, decide; in both themes."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest
from playwright.sync_api import Page, expect

from lakelib import StagedCommit, Table
from tests.e2e.browser import PAGE_SECONDS, log_in, open_lake, opened_page, shoot
from tests.e2e.support import Live

DAYS = 75
FIRST = date(2026, 9, 1)
WAITING, DISCARDED, WARNED, STALE = (FIRST + timedelta(days=day) for day in (DAYS, DAYS + 1, 40, 33))
_BACKGROUNDS = {"light": "rgb(245, 246, 248)", "dark": "rgb(17, 21, 27)"}
_SUITE = """name: glance
expectations:
- {type: expect_column_values_to_be_between, kwargs: {column: amount, min_value: 0}, severity: SEVERITY}
- {type: expect_column_values_to_not_be_null, kwargs: {column: id}, severity: warning}
"""


@pytest.fixture(scope="module")
def waiting(live: Live, tmp_path_factory: pytest.TempPathFactory) -> StagedCommit:
    """Two and a half months of a table, and of one that is made from it; the commit that waits for a person."""
    folder = tmp_path_factory.mktemp("suites")
    if "glance" not in live.lake.namespaces():
        live.lake.create_namespace("glance")
    columns = "id BIGINT, dt DATE, amount BIGINT"
    orders, made = (
        live.lake.create_table(f"glance.{name}", columns, primary_key=["id"], partition_by=["dt"])
        for name in ("orders", "revenue")
    )
    for number in range(DAYS):
        day = FIRST + timedelta(days=number)
        warns = day == WARNED
        seen = publish(orders, day, suite(folder, "warning"), amount=-1 if warns else 5)
        publish(made, day, None, reads={"reads.glance.orders": str(seen)})
    publish(orders, FIRST + timedelta(days=DAYS - 1), None, also=STALE)
    discarded = stage(orders, DISCARDED, amount=-1)
    discarded.judge(suite(folder, "critical"))
    discarded.discard("ann", "It is a copy of the day before.")
    found = stage(orders, WAITING, amount=-1)
    found.judge(suite(folder, "critical"))
    return found


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> Literal["light", "dark"]:
    found: Literal["light", "dark"] = request.param
    return found


@pytest.fixture
def page(live: Live, theme: Literal["light", "dark"]) -> Iterator[Page]:
    with opened_page(live, theme) as page:
        yield page


def test_a_person_sees_what_waits_and_why(live: Live, page: Page, waiting: StagedCommit, theme: str) -> None:
    log_in(live, page)
    lake = open_lake(page)
    row = lake.get_by_role("row").filter(has=lake.get_by_role("link", name="glance.orders"))
    expect(row).to_contain_text("1 waiting")
    expect(row).to_contain_text("1 rejected")
    made = lake.get_by_role("row").filter(has=lake.get_by_role("link", name="glance.revenue"))
    expect(made).to_contain_text("2 stale")  # that of the run that corrected another day, too
    expect(lake.locator("body")).to_have_css("background-color", _BACKGROUNDS[theme])
    shoot(page, f"lake-1-tables-{theme}")
    lake.get_by_role("link", name="glance.orders").click()
    expect(lake.locator(".cell.published")).to_have_count(DAYS)  # the legend's is one, the day with warnings none
    shoot(page, f"lake-2-table-{theme}")
    lake.get_by_role("link", name=f"{WAITING} waiting").click()
    expect(lake.get_by_role("heading", name=str(WAITING))).to_be_visible()
    shoot(page, f"lake-3-partition-{theme}")
    lake.get_by_role("link", name=str(waiting.id)).click()
    expect(lake.get_by_role("button", name="Publish")).to_be_visible()
    shoot(page, f"lake-4-commit-{theme}")
    lake.get_by_role("link", name="glance.orders").click()
    lake.get_by_role("link", name="verdicts of its checks").click()
    expect(lake.locator("svg.line")).to_have_count(2)
    shoot(page, f"lake-5-checks-{theme}")
    lake.get_by_role("link", name="Quarantine").click()
    expect(lake.get_by_text("It is a copy of the day before.")).to_be_visible()
    shoot(page, f"lake-6-quarantine-{theme}")


def test_a_link_to_airflow_opens_there(live: Live, waiting: StagedCommit) -> None:
    with opened_page(live) as page:
        log_in(live, page)
        lake = open_lake(page)
        lake.get_by_role("link", name="shop.orders").or_(lake.get_by_role("link", name="glance.orders")).last.click()
        lake.get_by_role("link", name="its DAG").click()
        page.wait_for_url("**/dags/ingest__*", timeout=PAGE_SECONDS * 1000)


def test_a_person_publishes_what_waits(live: Live, waiting: StagedCommit) -> None:
    with opened_page(live) as page:
        log_in(live, page)
        lake = open_lake(page)
        lake.get_by_role("link", name="Quarantine").click()
        row = lake.get_by_role("row").filter(has_text=str(WAITING))
        row.get_by_role("link", name="decide").click()
        lake.get_by_label("Why?").fill("The shop was closed on that day.")
        shoot(page, "lake-7-decide")
        lake.get_by_role("button", name="Publish").click()
        expect(lake.get_by_text("admin: The shop was closed on that day.")).to_be_visible()
        shoot(page, "lake-8-published")
    assert waiting.state == "published"


def suite(folder: Path, severity: str) -> Path:
    path = folder / f"{severity}.yaml"
    path.write_text(_SUITE.replace("SEVERITY", severity))
    return path


def publish(table: Table, day: date, gate: Path | None, **given: object) -> int:
    commit = stage(table, day, **given)  # type: ignore[arg-type]
    if gate is not None:
        commit.judge(gate)
    return commit.publish().id


def stage(
    table: Table, day: date, amount: int = 5, also: date | None = None, reads: dict[str, str] | None = None
) -> StagedCommit:
    days = [day] if also is None else [day, also]
    data = pa.table(
        {
            "id": pa.array([each.toordinal() for each in days], pa.int64()),
            "dt": pa.array(days, pa.date32()),
            "amount": pa.array([amount] * len(days), pa.int64()),
        }
    )
    properties = {"partition": str(day), "partition_by": "day dt", **(reads or {})}
    return table.stage_upsert(data, properties=properties)
