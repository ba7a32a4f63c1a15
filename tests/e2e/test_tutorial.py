"""The tutorial, as somebody does it who copies its commands: on a live Airflow, in a copy of this project.

Each shell block of docs/tutorial.md is carried out, in order, and what it shows has to come. What is done in pages is
done here over the REST API, and looked at in a browser; LAKE_PICTURES names a folder for the page's pictures.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect

import lakelib
from infra.airflow.api import log_in as log_in_to
from infra.airflow.api import wait_for
from infra.airflow.instance import PROJECT, Home, read_passwords, read_state
from infra.airflow.lifecycle import down
from infra.airflow.postgres import url_of_running
from infra.demo.runs import REVIEW_TASK, Run, Watch, answer_review
from tests.e2e.browser import PAGE_SECONDS, log_in, open_lake, opened_page, take_picture
from tests.e2e.support import Live, clear, dag_of, green

pytestmark = pytest.mark.timeout(1200)

TABLE = "bakery.sales"
_PAGE = PROJECT / "docs" / "tutorial.md"
_BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_END = "tutorial-block-ends"
_PICTURE, _TALLER = (1100, 620), (1100, 860)


class Reader:
    """Goes through the page from top to bottom, in one shell."""

    def __init__(self, folder: Path) -> None:
        self.blocks = iter(_BLOCK.findall(_PAGE.read_text()))
        self.told = ""
        self.shell = subprocess.Popen(
            ["bash"], cwd=folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._carry_out('set -e; unset ${!LAKE_*} LANDING; make() { command make -o setup "$@"; }')

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        with self.shell:
            self.shell.kill()

    def read_until(self, last: str) -> None:
        """Carries out what stands there, up to the block with this command, and looks for what it is to show."""
        for kind, text in self.blocks:
            if kind == "sh":
                self._carry_out(text)
            else:
                shown = [" ".join(line.split()) for line in self.told.splitlines()]
                assert [line for line in text.splitlines() if line not in shown] == [], self.told
            if last in text:
                return
        raise AssertionError(f"The page has no block with {last}, or not in this order.")

    def _carry_out(self, text: str) -> None:
        assert self.shell.stdin is not None
        assert self.shell.stdout is not None
        self.shell.stdin.write(f"{text}\necho {_END}\n")
        self.shell.stdin.flush()
        lines = []
        for line in self.shell.stdout:
            if line.strip() == _END:
                self.told = "".join(lines)
                return
            lines.append(line)
        raise AssertionError(f"This block has failed:\n{text}\n{''.join(lines)}")


@pytest.fixture
def project(short_folder: Path) -> Iterator[Path]:
    """This project in a folder of its own, with the packages of this one."""
    folder = short_folder / "lakelib"
    listed = subprocess.run(["git", "ls-files"], cwd=PROJECT, check=True, capture_output=True, text=True).stdout
    for name in listed.splitlines():
        if not name.startswith(("tests/", "docs/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(PROJECT / name, folder / name)
    (folder / ".venv").symlink_to(PROJECT / ".venv")
    try:
        yield folder
    finally:
        down(Home(folder / ".lake"))


def test_each_command_of_the_tutorial_does_what_it_says(project: Path) -> None:
    with Reader(project) as reader:
        reader.read_until("make up")
        with live_in(project) as live:
            follow(reader, live)


def follow(reader: Reader, live: Live) -> None:
    wait_for(lambda: knows_dag(live), seconds=180, what="the DAG of the new table")
    reader.read_until("airflow dags trigger")
    green(live, wait_for_run(live, 1))
    reader.read_until("1 rye 2")
    look(live, "tutorial-1-first-day", published=1)
    reader.read_until("airflow dags trigger")
    run = wait_for_run(live, 2)
    assert run.state == REVIEW_TASK
    look_at_review(live)
    answer_review(live.api, run, choice="discard", reason="A sale cannot be less than nothing.")
    assert live.watch.wait_for_end(run.run_id).state == "failed"
    reader.read_until("lake status bakery.sales")
    assert "rejected" in reader.told
    look(live, "tutorial-3-rejected", published=1, rejected=1)
    reader.read_until("sed -i")
    clear(live, run, "stage_and_judge")
    green(live, live.watch.wait_for_end(run.run_id))
    reader.read_until("5 roll 8")
    reader.read_until("airflow dags trigger")
    green(live, wait_for_run(live, 3))
    reader.read_until("lake status")
    with opened_page(live, size=_PICTURE) as page:
        log_in(live, page)
        lake = open_lake(page)
        expect(lake.get_by_role("link", name=TABLE)).to_be_visible()
        take_picture(page, "tutorial-4-tables")
    reader.read_until("make down")
    assert "Ended: " in reader.told
    assert list(reader.blocks) == []


@contextmanager
def live_in(project: Path) -> Iterator[Live]:
    """What `make up` has started there."""
    home = Home(project / ".lake")
    state = read_state(home)
    assert state is not None
    users = {user: log_in_to(state.url, user, password) for user, password in read_passwords(home).items()}
    with lakelib.connect(home.warehouse.as_uri(), url_of_running(home.catalog)) as lake:
        yield Live(
            home=home,
            environment={},
            state=state,
            api=users["admin"],
            viewer=users["viewer"],
            watch=Watch(api=users["admin"], tell=lambda run, state: print(f"{run.dag_id}: {state}")),
            lake=lake,
        )


def knows_dag(live: Live) -> bool | None:
    return True if dag_of(TABLE) in {dag["dag_id"] for dag in live.api.get("/api/v2/dags", limit=100)["dags"]} else None


def wait_for_run(live: Live, number: int) -> Run:
    """The first, second, … run, once it has ended or waits for a person."""

    def find() -> Run | None:
        runs = [run for run in live.watch.look() if run.dag_id == dag_of(TABLE)][number - 1 :]
        return runs[0] if runs and runs[0].state in ("success", "failed", REVIEW_TASK) else None

    found: Run = wait_for(find, seconds=300, what=f"run {number}")
    return found


def look(live: Live, name: str, **days: int) -> None:
    """At the table's page: so many of its days stand so."""
    with opened_page(live, size=_PICTURE) as page:
        log_in(live, page)
        lake = open_lake(page)
        lake.get_by_role("link", name=TABLE).click()
        for standing, count in days.items():
            expect(lake.locator(f".calendar .cell.{standing}")).to_have_count(count)
        take_picture(page, name)


def look_at_review(live: Live) -> None:
    """As Required Actions leads to it."""
    with opened_page(live, size=_TALLER) as page:
        log_in(live, page)
        page.goto("/required_actions")
        page.get_by_role("link", name=f"The gate of {TABLE} rejected partition 2026-11-17").click()
        expect(page.get_by_text("something was sold").first).to_be_visible(timeout=PAGE_SECONDS * 1000)
        take_picture(page, "tutorial-2-review")
