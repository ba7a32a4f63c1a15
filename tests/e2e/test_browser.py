"""What a person does in Airflow's pages, in a real browser: log in, trigger with the form, approve, see it green.

Each step leaves a screenshot in .lake/e2e.
"""

from collections.abc import Iterator
from datetime import date
from urllib.parse import unquote

import pytest
from playwright.sync_api import Page, expect

from infra.airflow.api import wait_for
from infra.demo.runs import pending_reviews
from infra.demo.shop import ORDERS_A_DAY, write_day
from tests.e2e.browser import PAGE_SECONDS, log_in, opened_page, shoot
from tests.e2e.support import ORDERS, Live, rows_of

DAY = date(2026, 11, 9)
REASON = "The shop knows of them."
_RUN_SECONDS = 300


@pytest.fixture
def page(live: Live) -> Iterator[Page]:
    with opened_page(live) as page:
        yield page


def test_a_person_triggers_a_run_and_approves_what_its_gate_rejected(live: Live, page: Page) -> None:
    write_day(live.home.landing, DAY, bad=True)
    log_in(live, page)
    trigger_with_form(page)
    approve(live, page)
    see_it_green(live, page)
    assert rows_of(live, DAY.isoformat()) == ORDERS_A_DAY


def trigger_with_form(page: Page) -> None:
    page.goto(f"/dags/{ORDERS}")
    page.get_by_role("button", name="Trigger").first.click()
    form = page.get_by_role("dialog")
    form.locator("[name=element_partition]").fill(DAY.isoformat())
    shoot(page, "2-form")
    form.get_by_role("button", name="Trigger").click()
    expect(form).to_be_hidden(timeout=PAGE_SECONDS * 1000)


def approve(live: Live, page: Page) -> None:
    """Under Required Actions, once the gate has rejected the commit: the page does not look again by itself."""
    wait_for(lambda: pending_reviews(live.api) or None, seconds=_RUN_SECONDS, what="a review")
    page.goto("/required_actions")
    asked = page.get_by_role("link", name=f"The gate of shop.orders rejected partition {DAY}")
    expect(asked).to_be_visible(timeout=PAGE_SECONDS * 1000)
    shoot(page, "3-required-actions")
    asked.click()
    page.locator("[name=element_reason]").fill(REASON)
    shoot(page, "4-review")
    page.get_by_role("button", name="publish", exact=True).click()


def see_it_green(live: Live, page: Page) -> None:
    """On the page of the run, once it has ended."""
    run = page.url.partition("/tasks/")[0]
    live.watch.wait_for_end(unquote(run.rpartition("/")[2]), seconds=_RUN_SECONDS)
    page.goto(run)
    expect(page.get_by_text("Success", exact=True).first).to_be_visible(timeout=PAGE_SECONDS * 1000)
    expect(page.get_by_text("Published although its gate rejected it").first).to_be_visible()
    shoot(page, "5-green")
    for state in ("Running", "Failed", "No Status"):
        expect(page.get_by_text(state, exact=True)).to_have_count(0)
