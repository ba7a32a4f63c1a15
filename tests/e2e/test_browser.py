"""What a person does in Airflow's pages, in a real browser: log in, trigger with the form, approve, see it green.

Each step leaves a screenshot in .lake/e2e.
"""

import os
from collections.abc import Iterator
from datetime import date
from urllib.parse import unquote

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from infra.airflow.api import wait_for
from infra.airflow.instance import PROJECT
from infra.demo.runs import pending_reviews
from infra.demo.shop import ORDERS_A_DAY, write_day
from tests.e2e.support import ORDERS, Live, rows_of

SHOTS = PROJECT / ".lake" / "e2e"
DAY = date(2026, 11, 9)
REASON = "The shop knows of them."
_CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_PAGE_SECONDS = 60
_RUN_SECONDS = 300


@pytest.fixture
def page(live: Live) -> Iterator[Page]:
    """A page of a browser with an empty profile, on this Airflow."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_ARGUMENTS)
        context = browser.new_context(
            base_url=live.state.url, viewport={"width": 1400, "height": 900}, locale="en-US", timezone_id="UTC"
        )
        context.set_default_timeout(_PAGE_SECONDS * 1000)
        yield context.new_page()
        browser.close()


def test_a_person_triggers_a_run_and_approves_what_its_gate_rejected(live: Live, page: Page) -> None:
    write_day(live.home.landing, DAY, bad=True)
    log_in(live, page)
    trigger_with_form(page)
    approve(live, page)
    see_it_green(live, page)
    assert rows_of(live, DAY.isoformat()) == ORDERS_A_DAY


def log_in(live: Live, page: Page) -> None:
    page.goto("/")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(live.password)
    shoot(page, "1-log-in")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("link", name="Dags").first).to_be_visible(timeout=_PAGE_SECONDS * 1000)


def trigger_with_form(page: Page) -> None:
    page.goto(f"/dags/{ORDERS}")
    page.get_by_role("button", name="Trigger").first.click()
    form = page.get_by_role("dialog")
    form.locator("[name=element_partition]").fill(DAY.isoformat())
    shoot(page, "2-form")
    form.get_by_role("button", name="Trigger").click()
    expect(form).to_be_hidden(timeout=_PAGE_SECONDS * 1000)


def approve(live: Live, page: Page) -> None:
    """Under Required Actions, once the gate has rejected the commit: the page does not look again by itself."""
    wait_for(lambda: pending_reviews(live.api) or None, seconds=_RUN_SECONDS, what="a review")
    page.goto("/required_actions")
    asked = page.get_by_role("link", name=f"The gate of shop.orders rejected partition {DAY}")
    expect(asked).to_be_visible(timeout=_PAGE_SECONDS * 1000)
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
    expect(page.get_by_text("Success", exact=True).first).to_be_visible(timeout=_PAGE_SECONDS * 1000)
    expect(page.get_by_text("Published although its gate rejected it").first).to_be_visible()
    shoot(page, "5-green")
    for state in ("Running", "Failed", "No Status"):
        expect(page.get_by_text(state, exact=True)).to_have_count(0)


def shoot(page: Page, name: str) -> None:
    page.screenshot(path=SHOTS / f"{name}.png")
