"""A headless Chromium on a live Airflow. Each step leaves a screenshot in .lake/e2e."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from playwright.sync_api import Page, expect, sync_playwright

from infra.airflow.instance import PROJECT
from tests.e2e.support import Live

PAGE_SECONDS = 60
_SHOTS = PROJECT / ".lake" / "e2e"
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


@contextmanager
def opened_page(live: Live, theme: Literal["light", "dark"] = "light") -> Iterator[Page]:
    """A page of a browser with an empty profile, on this Airflow."""
    _SHOTS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_ARGUMENTS)
        context = browser.new_context(
            base_url=live.state.url,
            viewport={"width": 1400, "height": 900},
            locale="en-US",
            timezone_id="UTC",
            color_scheme=theme,
        )
        context.set_default_timeout(PAGE_SECONDS * 1000)
        yield context.new_page()
        browser.close()


def log_in(live: Live, page: Page) -> None:
    page.goto("/")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(live.password)
    shoot(page, "1-log-in")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("link", name="Dags").first).to_be_visible(timeout=PAGE_SECONDS * 1000)


def shoot(page: Page, name: str) -> None:
    page.screenshot(path=_SHOTS / f"{name}.png")
