"""What an atomic backfill of days that correct each other does to the tables that are made from them: real DAG files,
tasks and jobs, a real lake and real gates, without Spark."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakelib import Lake
from lakelib.ops.status import look

from .conftest import Lab, Place

_TABLES = Path(__file__).with_name("chain") / "tables"
SUMS = "ingest__c__sums"


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A feed, a sum for each day of it, and their total."""

    lab: Lab
    place: Place
    lake: Lake

    def deliver(self, day: str, *rows: tuple[int, str, int | None]) -> None:
        """Ids, days and amounts; a later feed's row is newer."""
        folder = self.place.landing / "feed" / day
        folder.mkdir(parents=True, exist_ok=True)
        at = int(day.replace("-", ""))
        lines = (json.dumps({"id": number, "dt": dt, "amount": amount, "at": at}) + "\n" for number, dt, amount in rows)
        (folder / "part-0.json").write_text("".join(lines))

    def backfill(self, first: str, last: str, **params: Any) -> dict[str, Any]:
        conf = {"tables": ["c.feed"], "from": first, "to": last, "dry_run": False}
        return self.lab.run("backfill", conf={**conf, **params})

    def again(self, ran: dict[str, Any], *tasks: str) -> dict[str, Any]:
        self.lab("clear", dag_id="backfill", run_id=ran["run_id"], task_ids=list(tasks) or None)
        return {"run_id": ran["run_id"], **self.lab("go", dag_id="backfill", run_id=ran["run_id"])}

    def sums(self, *days: str) -> list[int | None]:
        rows = self.lake.table("c.sums").scan().to_arrow().to_pylist()
        found = {str(row["dt"]): row["amount"] for row in rows}
        return [found.get(day) for day in days]

    def right(self) -> bool:
        """Whether each table is what would be made of the one before it now."""
        feed = self.lake.table("c.feed").scan().to_arrow().to_pylist()
        wanted: dict[str, int] = {}
        for row in feed:
            wanted[str(row["dt"])] = wanted.get(str(row["dt"]), 0) + row["amount"]
        (total,) = self.lake.table("c.total").scan().to_arrow().to_pylist()
        sums = self.sums(*wanted)
        return sums == list(wanted.values()) and (total["amount"], total["days"]) == (sum(wanted.values()), len(wanted))

    def heads(self) -> dict[str, int]:
        heads = {f"c.{name}": self.lake.table(f"c.{name}").head for name in self.lake.tables("c")}
        return {name: head.id for name, head in heads.items() if head is not None}

    def troubles(self) -> dict[str, Any]:
        return {table.table: table.troubles for table in look(self.lake.runtime).tables if table.troubles}


@pytest.fixture(scope="module")
def chain(open_lab: Callable[..., Lab], place: Place, lake: Lake) -> Chain:
    lab = open_lab(LAKE_TABLES=str(_TABLES))
    assert lab("parse")["errors"] == {}
    return Chain(lab=lab, place=place, lake=lake)


def test_neighbouring_days_and_all_that_is_made_from_them_become_visible_in_one_instant(chain: Chain) -> None:
    """The feed of the 2nd takes an order of the 1st to two, and corrects it."""
    one, two = "2026-09-01", "2026-09-02"
    chain.deliver(one, (1, one, 10), (2, one, 20))
    chain.deliver(two, (1, one, 15), (3, two, 30), (4, two, 40))
    ran = chain.backfill(one, two)
    assert (ran["state"], chain.sums(one, two), chain.right()) == ("success", [35, 70], True)
    assert {snapshot.committed_at for name in chain.heads() for snapshot in chain.lake.table(name).history()} == {
        chain.lake.table("c.total").history()[0].committed_at
    }
    assert all(chain.lake.table(name).is_done({"dt": day}) for name in ("c.feed", "c.sums") for day in (one, two))
    assert chain.troubles() == {}
    told = {each["partition_key"]: each for each in chain.lab("events", asset="c.feed")}
    assert set(told) == {one, two}
    assert told[one]["made"] == ["c.sums", "c.total"]
    heads = chain.heads()
    for dag_id, run_id, _ in chain.lab("wake"):
        woken = chain.lab("go", dag_id=dag_id, run_id=run_id)
        assert (woken["state"], set(woken["tasks"].values())) == ("success", {"skipped"})
    assert chain.heads() == heads
    again = chain.again(ran, "publish")
    assert (again["state"], chain.heads()) == ("success", heads)
    again = chain.again(ran)
    assert (again["state"], chain.right(), chain.heads()["c.feed"]) == ("success", True, heads["c.feed"] + 2)


def test_a_late_correction_makes_days_outside_of_the_range_anew(chain: Chain) -> None:
    one, three = "2026-09-11", "2026-09-13"
    chain.deliver(one, (11, one, 1), (12, one, 1))
    assert chain.backfill(one, one)["state"] == "success"
    chain.deliver(three, (11, one, 5), (13, three, 1), (14, three, 1))
    assert chain.backfill(three, three)["state"] == "success"
    assert (chain.sums(one, three), chain.right(), chain.troubles()) == ([6, 2], True, {})


def test_a_day_that_is_rejected_in_the_middle_is_named_and_all_is_published_once_it_is_corrected(chain: Chain) -> None:
    days = one, two, three = "2026-09-21", "2026-09-22", "2026-09-23"
    heads = chain.heads()
    chain.deliver(one, (21, one, 1), (22, one, 1))
    chain.deliver(two, (23, two, None), (24, two, 1))
    chain.deliver(three, (25, three, 1), (26, three, 1))
    ran = chain.backfill(one, three)
    assert (ran["state"], ran["tasks"]["decide"], chain.heads()) == ("failed", "failed", heads)
    log = chain.lab.log()
    for said in (
        f"c.feed {two} was rejected by its gate",
        "amounts are there",
        "c.sums was not made",
        "Correct the source",
    ):
        assert said in log
    chain.deliver(two, (23, two, 1), (24, two, 1))
    ran = chain.again(ran, "stage_and_judge")
    assert (ran["state"], chain.sums(*days), chain.right()) == ("success", [2, 2, 2], True)


def test_without_downstream_what_is_made_from_the_days_is_stale_and_nobody_is_woken(chain: Chain) -> None:
    day = "2026-09-28"
    chain.deliver(day, (28, day, 1), (29, day, 1))
    assert chain.backfill(day, day)["state"] == "success"
    chain.lab("wake")
    chain.deliver(day, (28, day, 7), (29, day, 7))
    ran = chain.backfill(day, day, downstream=False)
    assert (ran["state"], chain.sums(day), chain.lab("wake")) == ("success", [2], [])
    assert chain.troubles() == {"c.sums": {"stale": 1}}
    ran = chain.backfill(day, day, atomic=False)
    assert (ran["state"], chain.sums(day)) == ("success", [2])
    for _ in range(2):
        for dag_id, run_id, _key in chain.lab("wake"):
            assert chain.lab("go", dag_id=dag_id, run_id=run_id)["state"] == "success"
    assert (chain.sums(day), chain.right(), chain.troubles()) == ([14], True, {})
