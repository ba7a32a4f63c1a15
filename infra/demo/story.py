"""What the demo does, in order; each step goes through Airflow as a person or a schedule would."""

import time
from datetime import date, timedelta
from decimal import Decimal
from functools import partial

from rich.console import Console
from rich.table import Table

import lakelib
from infra.airflow.api import Api, log_in, wait_for
from infra.airflow.instance import Home, State, read_passwords
from infra.airflow.postgres import url_of_running
from infra.demo.runs import (
    REVIEW_TASK,
    STAGE_TASK,
    Run,
    Watch,
    answer_review,
    failed_tasks,
    returned,
    task_seconds,
    trigger,
    unpause,
)
from infra.demo.shop import LATE_ORDERS, write_correction, write_customers, write_day
from lakelib.dataclass import dataclass

CUSTOMERS, ORDERS, CHANGES, REVENUE = (
    f"ingest__shop__{name}" for name in ("customers", "orders", "order_changes", "daily_revenue")
)
COMPACT = "compact"
TABLES = ("shop.customers", "shop.orders", "shop.payments", "shop.order_changes", "shop.daily_revenue")
DAGS_SECONDS = 120
REASON = "Twelve known orders of 400; the shop has promised a correction."
_BEGIN = time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    home: Home
    api: Api
    watch: Watch
    lake: lakelib.Lake

    @classmethod
    def on(cls, home: Home, state: State) -> "Story":
        api = log_in(state.url, "admin", read_passwords(home)["admin"])
        lake = lakelib.connect(home.warehouse.as_uri(), url_of_running(home.catalog))
        return cls(home=home, api=api, watch=Watch(api=api, tell=partial(_tell_run, api)), lake=lake)


def tell_story(story: Story) -> None:
    """Raises TimeoutError or DemoError if Airflow does not do what it should."""
    last = _begin(story)
    first, bad = last - timedelta(days=2), last - timedelta(days=1)
    _ingest_day(story, first)
    _ingest_bad_day(story, bad)
    _correct(story, bad)
    _backfill(story, first - timedelta(days=2), first - timedelta(days=1))
    _deliver_last_day(story, last, late=first)
    _compact(story)
    headline("What is made from orders goes on from what has changed in them")
    _follow(story, REVENUE, {first: 2, bad: 2, last: 1})
    _follow(story, CHANGES, {first: 1, last: 1, first - timedelta(days=1): 1, first - timedelta(days=2): 1})
    _show_mended(story.lake, first)
    _show_lake(story.lake)


class DemoError(Exception):
    """A DAG run did not end as the demo needs it."""


def say(text: str) -> None:
    print(f"{time.monotonic() - _BEGIN:4.0f} s  {text}", flush=True)


def headline(text: str) -> None:
    print(f"\n● {text}", flush=True)


def _begin(story: Story) -> date:
    """Switches the DAGs on. Airflow then schedules the newest partition by itself: the demo's last day; and the
    compaction of the hour, which would keep that of the demo waiting later on."""
    write_customers(story.home.landing, date.today())
    headline("The DAGs, made from the specs in dags/tables, are switched on")
    wait_for(lambda: _are_known(story.api), seconds=DAGS_SECONDS, what="the DAGs")
    for dag_id in (CUSTOMERS, REVENUE, ORDERS, COMPACT):
        unpause(story.api, dag_id)
    run = wait_for(lambda: _scheduled(story), seconds=60, what="the first scheduled run")
    say(f"Airflow schedules orders of {run.partition} at once; the run waits for files that have not arrived yet")
    return date.fromisoformat(run.partition or "")


def _are_known(api: Api) -> bool | None:
    known = {dag["dag_id"] for dag in api.get("/api/v2/dags", limit=100)["dags"]}
    return True if {CUSTOMERS, ORDERS, CHANGES, REVENUE, COMPACT} <= known else None


def _scheduled(story: Story) -> Run | None:
    return next((run for run in story.watch.look() if run.dag_id == ORDERS and run.partition), None)


def _ingest_day(story: Story, day: date) -> None:
    headline(f"{day}: orders arrive")
    write_day(story.home.landing, day)
    trigger(story.api, ORDERS, partition=day.isoformat())
    _succeeded(story.watch.wait_for(ORDERS, day.isoformat()))


def _ingest_bad_day(story: Story, day: date) -> None:
    headline(f"{day}: some orders have no customer, some a negative amount")
    write_day(story.home.landing, day, bad=True)
    trigger(story.api, ORDERS, partition=day.isoformat())
    run = story.watch.wait_for(ORDERS, day.isoformat())
    if run.state != REVIEW_TASK:
        raise DemoError(f"{run.run_id} is {run.state}: its gate should have rejected it")
    staged = returned(story.api, run, STAGE_TASK)
    for check in _failed_checks(story.lake, staged["commit"]):
        say(f"  ✗ {check}")
    say(f"  report: {staged['report']}")
    rows = story.lake.table("shop.orders").scan(where=f"dt = '{day}'").count()
    say(f"  Readers see {rows} rows of the day. Airflow asks a person: Required Actions, or here")
    say(f'  simulated decision of admin: publish, because "{REASON}"')
    log = story.home.log_of("scheduler")
    answer_review(story.api, run, choice="publish", reason=REASON, scheduler_log=log)
    _succeeded(story.watch.wait_for_end(run.run_id))


def _correct(story: Story, day: date) -> None:
    headline(f"The correction of {day} arrives late, and the day is run again")
    write_correction(story.home.landing, day)
    trigger(story.api, ORDERS, partition=day.isoformat())
    _succeeded(story.watch.wait_for(ORDERS, day.isoformat(), count=2))


def _backfill(story: Story, first: date, last: date) -> None:
    headline(
        f"Backfill of orders and payments from {first} to {last}: four partitions of two tables, and the revenue of"
        " both days, in one transaction"
    )
    for day in (first, last):
        write_day(story.home.landing, day)
    for dag_id in ("backfill", CHANGES):  # the log's first run reads all that there is
        unpause(story.api, dag_id)
    conf = {"tables": ["shop.orders", "shop.payments"], "from": first.isoformat(), "to": last.isoformat()}
    run_id = trigger(story.api, "backfill", conf={**conf, "atomic": True, "dry_run": False})
    run = story.watch.wait_for_end(run_id)
    _succeeded(run)
    for one in returned(story.api, run, "publish", map_index=0)["published"]:
        say(f"  {one['table']}: snapshot {one['snapshot']}")
    say("  What reads on from the changes of orders is woken, partition by partition")


def _deliver_last_day(story: Story, day: date, *, late: date) -> None:
    headline(f"The files of {day} arrive: the run that Airflow had scheduled goes on by itself")
    say(f"  Among its rows are {LATE_ORDERS} orders of {late}, which were cancelled since")
    write_day(story.home.landing, day, late=late)
    _succeeded(story.watch.wait_for(ORDERS, day.isoformat()))


def _compact(story: Story) -> None:
    orders = story.lake.table("shop.orders")
    before = len(orders.files())
    headline("Compaction of orders")
    run_id = trigger(story.api, COMPACT, conf={"tables": ["shop.orders"], "full": True})
    _succeeded(story.watch.wait_for_end(run_id))
    say(f"  shop.orders had {before} files and has {len(orders.files())}")


def _follow(story: Story, dag_id: str, runs: dict[date, int]) -> None:
    """So many runs of each day have ended. A run makes all days that are touched, so of several that were woken at once
    the later ones have nothing to do."""
    for day, count in runs.items():
        _succeeded(story.watch.wait_for(dag_id, day.isoformat(), count=count))


def _show_mended(lake: lakelib.Lake, day: date) -> None:
    revenue = lake.table("shop.daily_revenue")
    found = [_revenue_of(revenue, day, snapshot.id) for snapshot in reversed(revenue.history())]
    before, *_, now = [each for each in found if each is not None]
    say(f"  The revenue of {day} was {before:,} and is {now:,}: nobody has run that day again")
    consumers = ", ".join(f"{each.name} {each.lag.rows} rows" for each in lake.table("shop.orders").consumers())
    say(f"  Not read of orders yet: {consumers}")


def _revenue_of(revenue: lakelib.Table, day: date, snapshot: int) -> Decimal | None:
    found = revenue.scan(["revenue"], where=f"dt = '{day}'", at=snapshot).to_arrow()["revenue"].to_pylist()
    return found[0] if found else None


def _succeeded(run: Run) -> None:
    if run.state != "success":
        raise DemoError(f"{run.dag_id} {run.run_id} is {run.state}")


def _failed_checks(lake: lakelib.Lake, commit: str) -> list[str]:
    verdict = lake.staged(commit).verdict
    checks = verdict.checks if verdict else ()
    return [
        f"{check.name}: not so for {check.unexpected_count} of {check.row_count} rows"
        for check in checks
        if check.status.value == "failed"
    ]


def _tell_run(api: Api, run: Run, state: str) -> None:
    """One line for a run that has ended, or that waits for a person."""
    what = f"{run.dag_id.removeprefix('ingest__').replace('__', '.'):<19} {run.partition or '':<10}"
    if state == "failed":
        say(f"{what}  FAILED in {', '.join(failed_tasks(api, run)) or 'no task'}")
        return
    if state == REVIEW_TASK:
        say(f"{what}  rejected by its gate; waits for a person")
        return
    staged, published = returned(api, run, STAGE_TASK), returned(api, run, "publish").get("published", [])
    parts = [str(staged.get("outcome", "done"))]
    parts += [f"snapshot {one['snapshot']}" for one in published]
    spark = task_seconds(api, run).get(STAGE_TASK) if staged.get("engine") == "spark" else None
    seconds = f"{run.seconds:.0f} s" + (f", of which Spark {spark:.0f} s" if spark else "")
    how = {"asset_triggered": "woken by orders", "scheduled": "scheduled"}.get(run.run_type, "")
    say(f"{what}  {', '.join(parts):<22} {seconds}{f'; {how}' if how else ''}")


def _show_lake(lake: lakelib.Lake) -> None:
    headline("What is in the lake")
    shown = Table("table", "rows", "partitions", "files", "head", "newest tag", box=None, header_style="bold")
    for name in TABLES:
        table = lake.table(name)
        head = table.head
        newest = max(table.tags(), key=lambda tag: tag.snapshot_id, default=None)
        shown.add_row(
            name,
            f"{table.scan().count():,}",
            str(len(table.partitions())),
            str(len(table.files())),
            f"{head.id} ({head.kind})" if head else "",
            newest.name if newest else "",
        )
    Console().print(shown)
    revenue = lake.table("shop.daily_revenue").scan().to_arrow().sort_by("dt")
    shown = Table("dt", "orders", "customers", "revenue", box=None, header_style="bold")
    for row in revenue.to_pylist():
        shown.add_row(str(row["dt"]), str(row["orders"]), str(row["customers"]), f"{row['revenue']:,}")
    Console().print(shown)
