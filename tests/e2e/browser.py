"""A headless Chromium on a live Airflow. Each step leaves a screenshot in .lake/e2e."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import FrameLocator, Page, expect, sync_playwright

from infra.airflow.instance import PROJECT
from tests.e2e.support import Live

PAGE_SECONDS = 60
PICTURES = "LAKE_PICTURES"
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
def opened_page(
    live: Live, theme: Literal["light", "dark"] = "light", size: tuple[int, int] = (1400, 900)
) -> Iterator[Page]:
    """A page of a browser with an empty profile, on this Airflow."""
    _SHOTS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_ARGUMENTS)
        context = browser.new_context(
            base_url=live.state.url,
            viewport={"width": size[0], "height": size[1]},
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


def open_lake(page: Page) -> FrameLocator:
    """By Airflow's navigation."""
    page.get_by_role("link", name="Lake", exact=True).or_(
        page.get_by_role("button", name="Lake", exact=True)
    ).first.click()
    page.wait_for_url("**/plugin/lake**", timeout=PAGE_SECONDS * 1000)
    lake = page.frame_locator("iframe[title=Lake]")
    expect(lake.get_by_role("heading", name="Tables")).to_be_visible(timeout=PAGE_SECONDS * 1000)
    return lake


def shoot(page: Page, name: str) -> None:
    page.screenshot(path=_SHOTS / f"{name}.png")


def take_picture(page: Page, name: str) -> None:
    """For the documentation, in the folder that LAKE_PICTURES names."""
    shoot(page, name)
    if folder := os.environ.get(PICTURES):
        shutil.copyfile(_SHOTS / f"{name}.png", Path(folder) / f"{name}.png")
