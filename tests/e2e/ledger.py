"""What the week's lake has to tell after each step, kept by hand from what was done and what the raw files hold; and
whether it does: rows, done marks, asset events, `lake status` and its pages."""

import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from infra.airflow.postgres import url_of_running
from lakelib.cli.main import main
from lakelib.errors import NotFoundError
from lakelib.interop.success_file import FILE_NAME
from lakelib.model.status import TROUBLES, Standing
from tests.e2e.browser import log_in, open_lake, opened_page, shoot
from tests.e2e.support import Live
from tests.e2e.week import Rows, days_delivered, lines_of, orders_of, revenue_of

ORDERS, LINES, REVENUE = TABLES = ("sales.orders", "sales.line_items", "sales.daily_revenue")
ENGINES = {ORDERS: {"local"}, LINES: {"spark"}, REVENUE: {"local"}}
_READ = {ORDERS: orders_of, LINES: lines_of}
_PATIENCE = timedelta(hours=8)
"""What a spec that says nothing gives a run: six hours to wait, two to work."""
_MOST_EVENTS = 100


@dataclass(kw_only=True)
class Account:
    """Of one table."""

    head: int | None = None
    outcome: str | None = None
    """Of the newest verdict on what was published."""
    days_in: set[date] = field(default_factory=set)
    """About which runs were published."""
    rows: Rows = field(default_factory=dict)
    standing: dict[date, str] = field(default_factory=dict)
    events: list[tuple[str, int]] = field(default_factory=list)
    done: dict[date, int] = field(default_factory=dict)
    """By which snapshot."""
    done_since: dict[date, datetime] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Ledger:
    live: Live
    accounts: Mapping[str, Account] = field(default_factory=lambda: {table: Account() for table in TABLES})
    quarantine: dict[tuple[str, str], str] = field(default_factory=dict)

    # What was done

    def publish(
        self, table: str, day: date, snapshot: int, *, outcome: str = "accept", is_announced: bool = True
    ) -> set[date]:
        """A run of a feed was published. Which days it has changed."""
        account = self.accounts[table]
        landing = self.live.home.landing
        touched = days_delivered(landing, table.partition(".")[2], day) | {day}
        self._note(account, day, snapshot, touched, outcome, is_announced)
        if self.quarantine.get((table, day.isoformat())) == "waiting":
            del self.quarantine[table, day.isoformat()]
        account.rows = _READ[table](landing, account.days_in)
        made = self.accounts[REVENUE]
        made.standing |= dict.fromkeys(touched & made.days_in, "stale")
        return touched

    def make_revenue(self, day: date, snapshot: int, *, is_announced: bool = True) -> set[date]:
        """The day's revenue was made of what is there."""
        account = self.accounts[REVENUE]
        self._note(account, day, snapshot, {day}, "accept", is_announced)
        account.rows[day] = revenue_of(self.accounts[ORDERS].rows, self.accounts[LINES].rows, day)
        return {day}

    def announce(self, table: str, days: Iterable[date], snapshot: int) -> None:
        """What has not been announced day by day."""
        self.accounts[table].events += [(day.isoformat(), snapshot) for day in days]

    def keep_back(self, table: str, day: date, standing: str) -> None:
        """The commit about a day is "waiting", or was "rejected": then it stays in quarantine, whatever comes later."""
        self.accounts[table].standing[day] = standing
        self.quarantine[table, day.isoformat()] = standing

    def _note(
        self, account: Account, day: date, snapshot: int, touched: set[date], outcome: str, is_announced: bool
    ) -> None:
        account.head, account.outcome = max(account.head or 0, snapshot), outcome
        account.days_in.add(day)
        account.standing[day] = "published" if outcome == "accept" else "warned"
        account.done |= dict.fromkeys({day, *(touched & account.done.keys())}, snapshot)
        account.events += [(each.isoformat(), snapshot) for each in sorted(touched) if is_announced]

    # Whether the lake tells it

    def check(self) -> None:
        for table, account in self.accounts.items():
            self._check_rows(table, account)
            self._check_done(table, account)
            self._check_events(table, account)
        self._check_status()
        self._check_quarantine()

    def see(self, moment: str) -> None:
        """In a browser, in both themes, with a screenshot of each page."""
        for theme in ("light", "dark"):
            with opened_page(self.live, theme) as page:
                log_in(self.live, page)
                lake = open_lake(page)
                standings = self._standings(datetime.now(UTC))
                for table in TABLES:
                    row = lake.get_by_role("row").filter(has=lake.get_by_role("link", name=table))
                    for word, count in _troubles(standings[table].values()).items():
                        expect(row).to_contain_text(f"{count} {word}")
                shoot(page, f"{moment}-tables-{theme}")
                for table in TABLES:
                    lake.get_by_role("link", name=table).first.click()
                    expect(lake.get_by_role("heading", name=table)).to_be_visible()
                    for word, count in Counter(standings[table].values()).items():
                        expect(lake.locator(f".calendar .cell.{word}")).to_have_count(count)
                    shoot(page, f"{moment}-{table.partition('.')[2]}-{theme}")
                    lake.get_by_role("link", name="Tables").first.click()
                lake.get_by_role("link", name="Quarantine").click()
                expect(lake.get_by_role("link", name="decide")).to_have_count(len(self.quarantine))
                shoot(page, f"{moment}-quarantine-{theme}")

    def _check_rows(self, table: str, account: Account) -> None:
        if account.head is None:
            return
        found = self.live.lake.table(table).scan().to_arrow().to_pylist()
        assert sorted(tuple(row.values()) for row in found) == sorted(account.rows.values()), table

    def _check_done(self, table: str, account: Account) -> None:
        """The catalog's marks and the files tell the same; a mark that was taken back is as old as it was."""
        try:
            found = self.live.lake.table(table)
        except NotFoundError:
            assert not account.done
            return
        marks = {mark.values["dt"]: mark for mark in found.done_partitions()}
        assert marks.keys() == account.done.keys(), table
        folder = Path(found.location.removeprefix("file://"))
        files = {date.fromisoformat(path.parent.name.partition("=")[2]): path for path in folder.glob(f"*/{FILE_NAME}")}
        assert files.keys() == account.done.keys(), table
        for day, mark in marks.items():
            assert account.done[day] <= mark.snapshot_id <= (account.head or 0), (table, day)
            assert account.done_since.setdefault(day, mark.created_at) == mark.created_at
            told = json.loads(files[day].read_text())
            moments = {"creationTime": mark.created_at, "modificationTime": mark.modified_at}
            assert told == {name: round(moment.timestamp() * 1000) for name, moment in moments.items()}

    def _check_events(self, table: str, account: Account) -> None:
        found = self.live.api.get("/api/v2/assets/events", name_pattern=table, limit=_MOST_EVENTS)["asset_events"]
        told = [(each["partition_key"], each["extra"]["snapshot"]) for each in found if each["name"] == table]
        assert sorted(told) == sorted(account.events), table

    def _check_status(self) -> None:
        """`lake status`, for all tables and for each; and the JSON of the pages tells the same."""
        seen, page = self._lake("status"), self.live.api.get("/lake-status/json")
        assert _timeless(page) == _timeless(seen)
        standings = self._standings(datetime.fromisoformat(seen["at"]))
        told = {each["table"]: each for each in seen["tables"]}
        assert told.keys() == self.accounts.keys()
        for table, account in self.accounts.items():
            assert (told[table]["snapshot"], told[table]["outcome"]) == (account.head, account.outcome), table
            assert told[table]["troubles"] == _troubles(standings[table].values()), table
            detail = self._lake("status", table)
            assert {each["partition"]: each["standing"] for each in detail["partitions"]} == standings[table], table
            assert _timeless(self.live.api.get(f"/lake-status/json/tables/{table}")) == _timeless(
                {name: value for name, value in detail.items() if name != "wrong_specs"}
            )

    def _check_quarantine(self) -> None:
        found = self.live.api.get("/lake-status/json/quarantine")["commits"]
        told = [(each["table"], each["partition"], "rejected" if each["discarded_by"] else "waiting") for each in found]
        assert sorted(told) == sorted((*which, standing) for which, standing in self.quarantine.items())

    def _standings(self, at: datetime) -> dict[str, dict[str, str]]:
        """Of feeds also of the days that are due and have not come, from the first that was ever there."""
        found = {}
        for table, account in self.accounts.items():
            not_there = {} if table == REVENUE else _not_there(account, at)
            found[table] = {day.isoformat(): standing for day, standing in (not_there | account.standing).items()}
        return found

    def _lake(self, *words: str) -> Any:
        home = self.live.home
        lake = [f"--catalog={url_of_running(home.catalog)}", f"--warehouse={home.warehouse.as_uri()}"]
        out = io.StringIO()
        with redirect_stdout(out):
            assert main([*words, "--json", f"--specs={self.live.environment['LAKE_TABLES']}", *lake]) == 0
        return json.loads(out.getvalue())


def _not_there(account: Account, at: datetime) -> dict[date, str]:
    newest = at.date() - timedelta(days=1)
    first = min(account.days_in, default=newest)
    days = (first + timedelta(days=number) for number in range((newest - first).days + 1))
    return {day: _lateness(day, at) for day in days}


def _lateness(day: date, at: datetime) -> str:
    is_late = at < datetime.combine(day + timedelta(days=1), time(), UTC) + _PATIENCE
    return "late" if is_late else "missing"


def _troubles(standings: Iterable[str]) -> dict[str, int]:
    counted = Counter(map(Standing, standings))
    return {standing.value: counted[standing] for standing in TROUBLES if counted[standing]}


def _timeless(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name != "at"}
