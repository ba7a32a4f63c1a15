"""What must come of a run in each state when somebody clears the task that the DAG's page names, clears the run, or
starts another one: real DAG files and tasks, a real lake and a real gate, and the jobs in process, without Spark.

`make test` walks the core of the table, `LAKE_RECOVERIES=all`, as `make e2e` says it, all of it.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelib import Lake
from lakelib.ops.provide import provide_table
from lakelib.specs.table_spec import load_spec

from .conftest import Lab, Place

FEED, COPY, AFTER = "ingest__b__feed", "ingest__b__copy", "ingest__b__after"
PUBLISH = {"option": "publish", "reason": "known and harmless", "user": "anna"}
DISCARD = {"option": "discard", "reason": "a delivery of the wrong day", "user": "anna"}
GOOD, WARNED, REJECTED = 1, 1000, None
"""Amounts, and what the gate makes of them."""
_LIGHT = Path(__file__).with_name("light")
_DAYS: Iterator[date] = (date(2026, 9, 1) + timedelta(days=each) for each in range(200))


@dataclass(frozen=True, kw_only=True)
class Feed:
    """A lab with a table that a feed fills, one that a full copy fills, and one made from the feed."""

    lab: Lab
    place: Place
    lake: Lake

    def deliver(self, day: str, *rows: dict[str, Any], table: str = "feed") -> None:
        """The day's files anew, and complete. A row is of this day unless it says another."""
        folder = self.place.landing / table / day
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        lines = (json.dumps({"dt": day, **row}) + "\n" for row in rows)
        (folder / "part-0.json").write_text("".join(lines))
        (folder / "_READY").touch()

    def run(self, day: str, dag_id: str = FEED, answer: dict[str, str] | None = None) -> dict[str, Any]:
        return self.lab.run(dag_id, partition_key=day, answer=answer)

    def amounts(self, day: str) -> dict[int, int | None]:
        """What readers see of a day, by id."""
        rows = self.lake.table("b.feed").scan(where=f"dt = '{day}'").to_arrow().to_pylist()
        return {row["id"]: row["amount"] for row in rows}

    def is_done(self, day: str) -> bool:
        return self.lake.table("b.feed").is_done({"dt": day})

    def head(self) -> int:
        head = self.lake.table("b.feed").head
        assert head is not None
        return head.id

    def told(self, table: str = "b.feed") -> list[str]:
        """The partitions of all asset events so far, in their order."""
        return [event["partition_key"] for event in self.lab("events", asset=table)]


@pytest.fixture(scope="module")
def feed(open_lab: Callable[..., Lab], place: Place, lake: Lake) -> Feed:
    lab = open_lab(
        LAKE_TABLES=str(_LIGHT / "tables"), LAKE_JOBS=str(_LIGHT), SPARK_HOME=str(_LIGHT.with_name("stand_ins"))
    )
    assert lab("parse")["errors"] == {}
    provide_table(lake.runtime, load_spec(_LIGHT / "tables" / "feed.yaml"))
    lake.table("b.feed").upsert(pa.table({"id": [0], "dt": pa.nulls(1, pa.date32()), "amount": [GOOD]}))
    return Feed(lab=lab, place=place, lake=lake)


# The table


@dataclass(frozen=True, kw_only=True)
class State:
    """How a run gets into a state, and out of it again."""

    amount: int | None = GOOD
    answer: dict[str, str] | None = None
    trouble: str = ""
    ends: str = "success"
    failed: str = ""
    """The task that fails."""
    is_published: bool = True
    note: str = ""
    task: str
    """What is cleared."""
    is_corrected: bool = False
    """Whether the source has to be, for clearing the task to help."""
    second_answer: dict[str, str] | None = None


STATES = {
    "accepted": State(task="publish"),
    "warned": State(amount=WARNED, note="with warnings", task="publish"),
    "rejected, published": State(amount=REJECTED, answer=PUBLISH, note="although its gate rejected it", task="publish"),
    "rejected, discarded": State(
        amount=REJECTED,
        answer=DISCARD,
        ends="failed",
        failed="publish",
        is_published=False,
        task="stage_and_judge",
        is_corrected=True,
    ),
    "rejected, nobody answered": State(
        amount=REJECTED,
        trouble="nobody answers",
        ends="failed",
        failed="review",
        is_published=False,
        task="review",
        second_answer=PUBLISH,
    ),
    "errored": State(
        trouble="the gate cannot be asked",
        ends="failed",
        failed="stage_and_judge",
        is_published=False,
        task="stage_and_judge",
    ),
    "empty": State(trouble="no rows", is_published=False, task="stage_and_judge", is_corrected=True),
    "follow-up failed": State(trouble="the tag is taken", ends="failed", failed="tag", task="tag"),
}
TASK, RUN, AGAIN = "clear the task", "clear the run", "run again"


@dataclass(frozen=True, kw_only=True)
class After:
    """What must have come of it: all recoveries end green, with the day seen, done and announced once more."""

    snapshots: int = 1
    """How many the recovery has made."""
    note: str = ""


TABLE: dict[tuple[str, str], After] = {
    ("accepted", TASK): After(snapshots=0),
    ("accepted", RUN): After(),
    ("accepted", AGAIN): After(),
    ("warned", TASK): After(snapshots=0, note="with warnings"),
    ("warned", RUN): After(),
    ("warned", AGAIN): After(),
    ("rejected, published", TASK): After(snapshots=0, note="although its gate rejected it"),
    ("rejected, published", RUN): After(),
    ("rejected, published", AGAIN): After(),
    ("rejected, discarded", TASK): After(),
    ("rejected, discarded", RUN): After(),
    ("rejected, discarded", AGAIN): After(),
    ("rejected, nobody answered", TASK): After(note="although its gate rejected it"),
    ("rejected, nobody answered", RUN): After(),
    ("rejected, nobody answered", AGAIN): After(),
    ("errored", TASK): After(),
    ("errored", RUN): After(),
    ("errored", AGAIN): After(),
    ("empty", TASK): After(),
    ("empty", RUN): After(),
    ("empty", AGAIN): After(),
    ("follow-up failed", TASK): After(snapshots=0),
    ("follow-up failed", RUN): After(),
    ("follow-up failed", AGAIN): After(),
}
"""Who clears a run or starts another one has corrected the source before."""
CORE = [
    ("warned", TASK),
    ("rejected, published", RUN),
    ("rejected, discarded", TASK),
    ("rejected, nobody answered", TASK),
    ("empty", TASK),
    ("follow-up failed", TASK),
]
_WALKED = list(TABLE) if os.environ.get("LAKE_RECOVERIES") == "all" else CORE


def test_the_table_has_each_state_with_each_recovery() -> None:
    assert set(TABLE) == {(state, how) for state in STATES for how in (TASK, RUN, AGAIN)}


@pytest.mark.parametrize(("name", "how"), _WALKED, ids=[": ".join(pair) for pair in _WALKED])
def test_every_state_is_recovered_from(feed: Feed, name: str, how: str) -> None:
    state, day = STATES[name], next(_DAYS).isoformat()
    run_id = get_into(feed, state, day)
    head, told = feed.head(), feed.told()
    amount, ran = recover(feed, state, day, how, run_id)
    after = TABLE[name, how]
    assert (ran["state"], ran["tasks"]["publish"], ran["tasks"]["announce"]) == ("success", "success", "success")
    assert feed.head() - head == after.snapshots
    assert feed.amounts(day) == {id_of(day): amount}
    assert feed.is_done(day)
    assert feed.told() == [*told, day]
    assert after.note in (ran["note"] or "")
    assert bool(ran["note"]) == bool(after.note)


def get_into(feed: Feed, state: State, day: str) -> str:
    """A run of the day that has come into the state, as it shows."""
    head, told = feed.head(), feed.told()
    feed.deliver(day, *([] if state.trouble == "no rows" else [{"id": id_of(day), "amount": state.amount}]))
    if state.trouble == "the gate cannot be asked":
        (feed.place.landing / "feed" / day / "_ERRORED").touch()
    if state.trouble == "the tag is taken":
        feed.lake.table("b.feed").tag(f"dt-{day}-{head + 1}", at=head)
    ran = feed.run(day, answer=state.answer)
    if state.trouble == "nobody answers":
        assert (ran["state"], ran["tasks"]["review"]) == ("running", "awaiting_input")
        feed.lab("give_up_waiting")
        ran = {**ran, **feed.lab("go", dag_id=FEED, run_id=ran["run_id"])}
    assert (ran["state"], {task for task, said in ran["tasks"].items() if said == "failed"}) == (
        state.ends,
        {state.failed} - {""},
    )
    assert feed.head() - head == state.is_published
    assert feed.amounts(day) == ({id_of(day): state.amount} if state.is_published else {})
    assert feed.told() == [*told, *([day] if state.is_published and state.ends == "success" else [])]
    assert state.note in (ran["note"] or "")
    assert bool(ran["note"]) == bool(state.note)
    return str(ran["run_id"])


def recover(feed: Feed, state: State, day: str, how: str, run_id: str) -> tuple[int | None, dict[str, Any]]:
    """What the day's amount is to be afterwards, and the run that has made it so."""
    if state.trouble == "the tag is taken":
        feed.lake.table("b.feed").delete_tag(f"dt-{day}-{feed.head()}")
    amount = state.amount
    if how != TASK or state.is_corrected or state.trouble == "the gate cannot be asked":
        amount = GOOD
        feed.deliver(day, {"id": id_of(day), "amount": amount})
    if how == AGAIN:
        return amount, feed.run(day)
    feed.lab("clear", dag_id=FEED, run_id=run_id, task_ids=[state.task] if how == TASK else None)
    return amount, feed.lab("go", dag_id=FEED, run_id=run_id, answer=state.second_answer if how == TASK else None)


def id_of(day: str) -> int:
    return int(day.replace("-", ""))


def test_what_was_published_by_other_means_is_not_asked_about_again(feed: Feed) -> None:
    day = next(_DAYS).isoformat()
    feed.deliver(day, {"id": id_of(day), "amount": REJECTED})
    ran = feed.run(day, answer=DISCARD)
    feed.lake.staged(ran["xcom"]["stage_and_judge"]["commit"]).publish(by="bert", reason="they are right")
    feed.lab("clear", dag_id=FEED, run_id=ran["run_id"], task_ids=["review"])
    ran = feed.lab("go", dag_id=FEED, run_id=ran["run_id"])
    assert (ran["state"], ran["tasks"]["review"], ran["tasks"]["announce"]) == ("success", "skipped", "success")
    assert "by bert (they are right)" in ran["note"]
    assert feed.is_done(day)


# What a run has changed besides its own partition


def test_a_correction_of_yesterday_is_announced_and_leaves_yesterday_done(feed: Feed) -> None:
    first, second, third = (next(_DAYS).isoformat() for _ in range(3))
    for day in (first, second):
        feed.deliver(day, {"id": id_of(day), "amount": 1})
        feed.run(day)
    table = feed.lake.table("b.feed")
    created = {one.values["dt"].isoformat(): one.created_at for one in table.done_partitions()}
    file = Path(table.location.removeprefix("file://"), f"dt={second}", "_SUCCESS")
    created_in_file = json.loads(file.read_text())["creationTime"]
    feed.lab("wake")
    told = feed.told()

    feed.deliver(third, {"id": id_of(third), "amount": 1}, {"id": id_of(second), "dt": second, "amount": 7})
    ran = feed.run(third)

    snapshot = ran["xcom"]["publish"]["published"][0]["snapshot"]
    assert sorted(feed.told()[len(told) :]) == [second, third]
    assert {(dag_id, key) for dag_id, _, key in feed.lab("wake")} == {(AFTER, second), (AFTER, third)}
    done = {one.values["dt"].isoformat(): one for one in table.done_partitions()}
    assert {day: done[day].snapshot_id == snapshot for day in (first, second, third)} == {
        first: False,
        second: True,
        third: True,
    }
    assert done[second].created_at == created[second]
    assert json.loads(file.read_text())["creationTime"] == created_in_file


def test_what_somebody_else_took_back_a_run_does_not_promise(feed: Feed) -> None:
    first, second = (next(_DAYS).isoformat() for _ in range(2))
    feed.deliver(first, {"id": id_of(first), "amount": 1})
    feed.run(first)
    feed.lake.table("b.feed").delete(f"id = {id_of(first)}")
    feed.deliver(second, {"id": id_of(second), "amount": 1}, {"id": id_of(first), "dt": first, "amount": 7})
    feed.run(second)
    assert (feed.is_done(first), feed.is_done(second)) == (False, True)


def test_of_a_full_copy_the_days_that_have_changed_are_announced(feed: Feed) -> None:
    one, two, three = (next(_DAYS).isoformat() for _ in range(3))
    copies = [{"id": 1, "dt": one, "amount": 1}, {"id": 2, "dt": two, "amount": 1}]
    feed.deliver(two, *copies, table="copy")
    feed.run(two, COPY)
    assert sorted(feed.told("b.copy")) == [one, two]
    feed.deliver(three, copies[0], {**copies[1], "amount": 7}, {"id": 3, "dt": three, "amount": 1}, table="copy")
    feed.run(three, COPY)
    assert sorted(feed.told("b.copy")[2:]) == [two, three]
    assert all(feed.lake.table("b.copy").is_done({"dt": day}) for day in (two, three))


def test_rows_that_nobody_has_heard_of_are_announced_by_the_next_full_copy(feed: Feed) -> None:
    """They came by other means, and the copy changes nothing of them."""
    one, two, three = (next(_DAYS).isoformat() for _ in range(3))
    copies = [{"id": 4, "dt": one, "amount": 1}, {"id": 5, "dt": two, "amount": 1}]
    feed.deliver(two, *copies, table="copy")
    feed.run(two, COPY)
    table = feed.lake.table("b.copy")
    table.upsert(pa.table({"id": [5], "dt": [date.fromisoformat(two)], "amount": [8]}))
    told = feed.told("b.copy")
    feed.deliver(three, copies[0], {**copies[1], "amount": 8}, {"id": 6, "dt": three, "amount": 1}, table="copy")
    feed.run(three, COPY)
    assert sorted(feed.told("b.copy")[len(told) :]) == [two, three]


def test_more_partitions_than_can_be_told_one_by_one_are_summed_up(feed: Feed) -> None:
    days = [next(_DAYS).isoformat() for _ in range(4)]
    feed.deliver(days[3], *({"id": id_of(day), "dt": day, "amount": 1} for day in days))
    feed.lab("put", module="lake_dags.events", name="MOST_EVENTS", value=3)
    told = feed.told()
    ran = feed.run(days[3])
    feed.lab("put", module="lake_dags.events", name="MOST_EVENTS", value=400)
    assert feed.told() == [*told, days[3]]
    event = feed.lab("events", asset="b.feed")[-1]
    assert {name: event[name] for name in ("partitions", "first", "last")} == {
        "partitions": 4,
        "first": days[0],
        "last": days[3],
    }
    assert f"4 partitions have changed, from {days[0]} to {days[3]}" in ran["note"]
