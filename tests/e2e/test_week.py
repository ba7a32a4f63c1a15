"""A week of two feeds through a live Airflow: each day corrects the day before; one day is wrong and published all the
same, one is wrong, discarded and repaired, one is odd; files come late; a third table is made of both.

Orders are carried out without Spark, line items by the Spark Connect server that stays, their revenue without Spark.
After each step the lake has to tell what was done: every table equals one computed from the raw files, every done mark
and asset event is the right one, `lake status` and the pages say how each day stands.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

import pytest

from infra.airflow.api import wait_for
from infra.demo.runs import REVIEW_TASK, Run, answer_review, failed_tasks, returned, trigger, unpause
from tests.e2e.ledger import ENGINES, LINES, ORDERS, REVENUE, TABLES, Ledger
from tests.e2e.support import Live, clear, dag_of, engine_of, green
from tests.e2e.week import deliver_late, deliver_lines, deliver_orders

pytestmark = pytest.mark.timeout(2400)


def test_a_week_of_two_feeds(live_week: Live) -> None:
    week = Week(live_week)
    monday, tuesday, wednesday, thursday, friday, saturday, sunday = week.days
    week.ledger.check()
    for feed in (ORDERS, LINES):
        week.deliver(feed, monday, correcting=False)
        week.ingest(feed, monday)
    week.deliver(ORDERS, tuesday)
    week.ingest(ORDERS, tuesday)
    week.deliver(LINES, tuesday, odd=True)
    week.ingest(LINES, tuesday, outcome="warn")
    week.publish_bad_orders(wednesday)
    week.bring(LINES, wednesday)
    week.bring(ORDERS, thursday)
    week.bring(LINES, thursday)
    week.bring(ORDERS, friday)
    discarded = week.discard_bad_lines(friday)
    week.bring(ORDERS, saturday)
    week.bring(LINES, saturday)
    week.repair(friday, discarded)
    week.let_scheduled_runs_go_on(sunday)
    week.correct_late(wednesday)
    week.backfill_alone(monday)
    week.backfill_with_downstream(wednesday, thursday)
    week.ledger.see("week-4-end")
    assert {table: week.engines_of(table) for table in TABLES} == ENGINES


class Week:
    """What is done in it, each step checked."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.ledger = Ledger(live=live)
        yesterday = datetime.now(UTC).date() - timedelta(days=1)
        self.days = [yesterday - timedelta(days=before) for before in range(6, -1, -1)]
        self.runs: Counter[tuple[str, str]] = Counter()
        """How many there were of a table and a partition."""

    # Steps

    def bring(self, feed: str, day: date) -> None:
        self.deliver(feed, day)
        self.ingest(feed, day)

    def deliver(self, feed: str, day: date, *, correcting: bool = True, **wrong: bool) -> None:
        write = deliver_orders if feed == ORDERS else deliver_lines
        write(self.live.home.landing, day, correcting=correcting, **wrong)

    def ingest(self, feed: str, day: date, *, outcome: str = "accept") -> None:
        self.follow(feed, day, green(self.live, self.start(feed, day)), outcome=outcome)

    def publish_bad_orders(self, day: date) -> None:
        """A person does, against the gate."""
        self.deliver(ORDERS, day, bad=True)
        run = self.start(ORDERS, day)
        assert run.state == REVIEW_TASK
        self.ledger.keep_back(ORDERS, day, "waiting")
        self.ledger.check()
        self.ledger.see("week-1-waiting")
        answer_review(self.live.api, run, choice="publish", reason="The shop sends the customers later.")
        self.follow(ORDERS, day, green(self.live, self.live.watch.wait_for_end(run.run_id)), outcome="reject")

    def discard_bad_lines(self, day: date) -> Run:
        """The run fails, nothing changes, and the revenue of the day before, whose orders have changed, stays stale."""
        self.deliver(LINES, day, bad=True)
        run = self.start(LINES, day)
        assert run.state == REVIEW_TASK
        self.ledger.keep_back(LINES, day, "waiting")
        self.ledger.check()
        answer_review(self.live.api, run, choice="discard", reason="Nobody sells less than nothing.")
        ended = self.live.watch.wait_for_end(run.run_id)
        assert (ended.state, failed_tasks(self.live.api, ended)) == ("failed", ["publish"])
        self.ledger.keep_back(LINES, day, "rejected")
        self.ledger.check()
        self.ledger.see("week-2-rejected")
        return ended

    def repair(self, day: date, discarded: Run) -> None:
        """The source is corrected, and the run cleared, as its page says. What the next day has corrected stays so."""
        self.deliver(LINES, day)
        clear(self.live, discarded, "stage_and_judge")
        self.follow(LINES, day, green(self.live, self.live.watch.wait_for_end(discarded.run_id)))

    def let_scheduled_runs_go_on(self, day: date) -> None:
        """Airflow has started them at the beginning of the week, and they have waited for files ever since."""
        for feed in (ORDERS, LINES):
            self.deliver(feed, day)
            run = green(self.live, self.wait(feed, day))
            assert run.run_type == "scheduled"
            self.follow(feed, day, run)

    def correct_late(self, day: date) -> None:
        """What was wrong is put right in a second file. The revenue of the days is stale, for it comes after the lines;
        a run by hand makes it anew."""
        deliver_late(self.live.home.landing, day, orders=True)
        self.ingest(ORDERS, day)
        self.ledger.see("week-3-stale")
        for stale in (day - timedelta(days=1), day):
            trigger(self.live.api, dag_of(REVENUE), partition=stale.isoformat())
        self.follow_revenue((day - timedelta(days=1), day))
        self.ledger.check()

    def backfill_alone(self, day: date) -> None:
        """Late files of both feeds become visible in one instant, and nothing is made of them: it is stale."""
        _, moments = self.backfill([ORDERS, LINES], day, day, downstream=False)
        assert len(moments) == 1
        self.ledger.check()
        trigger(self.live.api, dag_of(REVENUE), partition=day.isoformat())
        self.follow_revenue((day,))
        self.ledger.check()

    def backfill_with_downstream(self, first: date, last: date) -> None:
        """Neighbouring days of both feeds, each of which corrects the day before it, and the revenue of all days that
        they touch: in one instant. The runs of revenue that they wake have nothing left to do."""
        changed, moments = self.backfill([ORDERS, LINES], first, last, downstream=True)
        assert len(moments) == 1
        assert changed[REVENUE].keys() == changed[LINES].keys() == {first - timedelta(days=1), first, last}
        for table, days in changed.items():
            self.ledger.announce(table, days, max(days.values()))
        for day in changed[LINES]:
            assert returned(self.live.api, green(self.live, self.wait(REVENUE, day)), "publish") == {}
        self.ledger.check()

    def backfill(
        self, tables: list[str], first: date, last: date, *, downstream: bool
    ) -> tuple[dict[str, dict[date, int]], set[datetime]]:
        """By table the days that have changed, by which snapshot; and the moments at which they have."""
        days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
        for day in days:
            deliver_late(self.live.home.landing, day, orders=True, lines=True)
        unpause(self.live.api, "backfill")
        conf = {"tables": tables, "from": first.isoformat(), "to": last.isoformat(), "downstream": downstream}
        run_id = trigger(self.live.api, "backfill", conf={**conf, "atomic": True, "dry_run": False})
        run = green(self.live, self.live.watch.wait_for_end(run_id))
        published = returned(self.live.api, run, "publish", map_index=0)["published"]
        snapshots = {one["commit"]: one["snapshot"] for one in published}
        changed: dict[str, dict[date, int]] = {}
        for one in returned(self.live.api, run, "stage_and_judge", map_index=0)["staged"]:
            table, day, snapshot = one["table"], date.fromisoformat(one["partition"]), snapshots[one["commit"]]
            if table == REVENUE:
                touched = self.ledger.make_revenue(day, snapshot, is_announced=False)
            else:
                touched = self.ledger.publish(table, day, snapshot, is_announced=False)
            changed.setdefault(table, {}).update(dict.fromkeys(touched, snapshot))
        return changed, {self.moment_of(one["table"], one["snapshot"]) for one in published}

    def moment_of(self, table: str, snapshot_id: int) -> datetime:
        (found,) = (each for each in self.live.lake.table(table).history() if each.id == snapshot_id)
        return found.committed_at

    # Runs

    def start(self, feed: str, day: date) -> Run:
        """A run by hand, once it has ended or waits for a person."""
        trigger(self.live.api, dag_of(feed), partition=day.isoformat())
        return self.wait(feed, day)

    def wait(self, table: str, day: date) -> Run:
        self.runs[table, day.isoformat()] += 1
        return self.live.watch.wait_for(dag_of(table), day.isoformat(), count=self.runs[table, day.isoformat()])

    def follow(self, feed: str, day: date, run: Run, *, outcome: str = "accept") -> None:
        """What a published run of a feed has to lead to: lines wake the revenue of each day that they have changed."""
        assert (self.live.api.get(run.path)["note"] is not None) == (outcome != "accept")
        touched = self.ledger.publish(feed, day, self.snapshot_of(run), outcome=outcome)
        if feed == LINES:
            self.follow_revenue(sorted(touched))
        self.ledger.check()

    def follow_revenue(self, days: Iterable[date]) -> None:
        for day in days:
            self.ledger.make_revenue(day, self.snapshot_of(green(self.live, self.wait(REVENUE, day))))
        wait_for(lambda: self.is_quiet() or None, seconds=60, what="the end of all runs")

    def is_quiet(self) -> bool:
        """No run of revenue is on its way that nobody waits for."""
        runs = [run for run in self.live.watch.look() if run.dag_id == dag_of(REVENUE)]
        return len(runs) == sum(count for (table, _), count in self.runs.items() if table == REVENUE)

    def snapshot_of(self, run: Run) -> int:
        (published,) = returned(self.live.api, run, "publish")["published"]
        return int(published["snapshot"])

    def engines_of(self, table: str) -> set[str]:
        return {engine_of(snapshot) for snapshot in self.live.lake.table(table).history()}
