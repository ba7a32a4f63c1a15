"""The job that makes partitions of several tables for one transaction, each on top of those before it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from lakelib import Lake
from lakelib.ops.status import look_at_table
from tests.jobs.conftest import Ran, RunJob, rows_of
from tests.jobs.ingest_support import Shop, new_shop, order

ROOT = Path(__file__).resolve().parents[2]
D13, D14, D15, D16 = (f"2026-11-{day}" for day in (13, 14, 15, 16))
ONCE = {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "order_id"}, "scope": "merged"}
FEW = {"type": "expect_table_row_count_to_be_between", "kwargs": {"max_value": 2}, "scope": "merged"}
TWO = {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 2}, "scope": "merged"}
STATUS = {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "status", "value_set": ["open", "paid"]}}
LATER = "2026-11-20T00:00:00Z"
DAILY = "SELECT dt, count(*) AS n, sum(amount) AS amount FROM orders WHERE dt = DATE(:partition) GROUP BY dt"
DAILY_OF_ALL = "SELECT dt, count(*) AS n, sum(amount) AS amount FROM orders GROUP BY dt"
FEEDS: Mapping[str, Sequence[dict[str, Any]]] = {
    D13: [order(1, dt=D13), order(2, dt=D13)],
    D14: [order(1, dt=D13, amount=20, updated_at=LATER), order(3, dt=D14), order(4, dt=D14)],
    D15: [order(3, dt=D14, amount=30, updated_at=LATER), order(5, dt=D15), order(6, dt=D15)],
}


@dataclass
class Chain:
    """Orders, the days made from them, and the months made from those."""

    shop: Shop
    run_job: RunJob
    lake: Lake
    specs: list[Path] = field(default_factory=list)

    @property
    def days(self) -> str:
        return f"{self.shop.table}_days"

    @property
    def months(self) -> str:
        return f"{self.shop.table}_months"

    def follow(self, **fields: Any) -> None:
        """The days follow what has changed in the orders, and make theirs anew."""
        path = self.shop.folder / "days.yaml"
        spec = json.loads(path.read_text())
        spec["reads"] = {"orders": {"table": self.shop.table, "changes": "latest"}}
        spec["partition"]["from_changes"] = True
        path.write_text(json.dumps(spec | fields))
        (self.shop.folder / "days.sql").write_text(DAILY_OF_ALL)

    def go_on(self, *days: str) -> Ran:
        """The run of the days that orders wake, published where there is something to publish."""
        (spec,) = (each for each in self.specs if each.name == "days.yaml")
        ran = self.run_job("ingest", f"--spec={spec}", f"--partition={days[0]}", f"--idempotency-key=woken{days}:1")
        assert ran.code == 0, ran.err
        if ran.facts["commit"] is not None:
            published = self.run_job("publish", f"--commit={ran.facts['commit']}", f"--spec={spec}")
            assert published.code == 0, published.err
        return ran

    def write(
        self, engine: str, *checks: Mapping[str, Any], of_days: Sequence[Mapping[str, Any]] = (), **more: str
    ) -> None:
        self.shop.write_spec(gate=self.shop.write_gate(*(checks or (ONCE,))), engine=engine, **more)
        self.specs = [self.shop.spec]
        self._write(
            "days",
            self.days,
            engine,
            "dt DATE, n BIGINT, amount DECIMAL(20, 2)",
            "dt",
            "day",
            DAILY,
            {"orders": self.shop.table},
            of_days,
        )
        self._write(
            "months",
            self.months,
            engine,
            "m DATE, n BIGINT",
            "m",
            "month",
            "SELECT DATE(concat(:partition, '-01')) AS m, sum(n) AS n FROM days"
            " WHERE dt >= DATE(concat(:partition, '-01')) AND substr(CAST(dt AS STRING), 1, 7) = :partition",
            {"days": self.days},
            (),
        )

    def _write(
        self,
        name: str,
        table: str,
        engine: str,
        columns: str,
        column: str,
        every: str,
        query: str,
        reads: Mapping[str, str],
        checks: Sequence[Mapping[str, Any]],
    ) -> None:
        folder = self.shop.folder
        (folder / f"{name}.sql").write_text(query)
        spec: dict[str, Any] = {
            "table": table,
            "columns": columns,
            "partition_by": [column],
            "transform": f"{name}.sql",
            "reads": dict(reads),
            "write": {"mode": "overwrite"},
            "partition": {"column": column, "every": every},
            "schedule": {"after": list(reads.values())},
            "engine": engine,
        }
        if checks:
            (folder / f"{name}_gate.yaml").write_text(json.dumps({"name": name, "expectations": list(checks)}))
            spec["gate"] = f"{name}_gate.yaml"
        (folder / f"{name}.yaml").write_text(json.dumps(spec))
        self.specs.append(folder / f"{name}.yaml")

    def deliver(self, **feeds: Sequence[dict[str, Any]]) -> None:
        for key, rows in {**FEEDS, **feeds}.items():
            self.shop.deliver(rows, key)

    def arguments(self, *keys: str, version: int = 1, downstream: bool = True) -> list[str]:
        return [
            *(f"--spec={spec}" for spec in self.specs),
            *(f"--make={self.shop.table}={key}" for key in keys),
            f"--idempotency-key=again:{version}",
            *(["--downstream"] if downstream else []),
        ]

    def make(self, *keys: str, **how: Any) -> Ran:
        return self.run_job("backfill", *self.arguments(*keys, **how))

    def publish(self, ran: Ran) -> Ran:
        commits = [each["commit"] for each in ran.facts["staged"]]
        return self.run_job(
            "publish", *(f"--commit={commit}" for commit in commits), *(f"--spec={s}" for s in self.specs)
        )

    def troubles(self, table: str) -> Mapping[str, int]:
        return look_at_table(self.lake.runtime, table).status.troubles

    def totals(self) -> list[tuple[str, int, str]]:
        return [(str(dt), n, str(amount)) for dt, n, amount in rows_of(self.lake.table(self.days), "dt", "n", "amount")]


@pytest.fixture
def engine() -> str:
    return "local"


@pytest.fixture
def chain(tmp_path: Path, request: pytest.FixtureRequest, engine: str, lake: Lake) -> Chain:
    """Jobs have a Spark only where the engine is spark."""
    run: RunJob = request.getfixturevalue("run_job" if engine == "spark" else "run_without_spark")
    return Chain(shop=new_shop(tmp_path), run_job=run, lake=lake)


engines = pytest.mark.parametrize("engine", ["local", "spark"])


def made(ran: Ran) -> list[tuple[str, str, str]]:
    return [
        (re.sub(r"shop\.orders\d+", "", each["table"]), each["partition"], each["outcome"])
        for each in ran.facts["staged"]
    ]


@engines
def test_days_that_correct_each_other_and_what_is_made_from_them_become_visible_at_once(
    chain: Chain, engine: str
) -> None:
    chain.write(engine, ONCE, TWO, of_days=[{**FEW, "kwargs": {"max_value": 1}}])
    chain.deliver()
    ran = chain.make(D13, D14, D15)
    assert ran.code == 0, ran.err
    assert made(ran) == [
        *(("", key, "accept") for key in (D13, D14, D15)),
        *(("_days", key, "accept") for key in (D13, D14, D15)),
        ("_months", "2026-11", "accept"),
    ]
    assert chain.lake.table(chain.shop.table).head is None
    published = chain.publish(ran)
    assert published.code == 0, published.err
    assert not any("outcome" in each for each in published.facts["published"])  # each was judged once
    assert chain.totals() == [(D13, 2, "29.50"), (D14, 2, "39.50"), (D15, 2, "19.00")]
    assert rows_of(chain.lake.table(chain.months), "n") == [(6,)]
    assert (
        len(
            {
                snapshot.committed_at
                for table in (chain.shop.table, chain.days, chain.months)
                for snapshot in chain.lake.table(table).history()
            }
        )
        == 1
    )
    assert chain.troubles(chain.days) == chain.troubles(chain.months) == {}


@engines
def test_days_that_follow_changes_are_made_with_what_they_follow_and_nothing_is_made_twice(
    chain: Chain, engine: str
) -> None:
    chain.write(engine)
    chain.follow()
    chain.deliver()
    ran = chain.make(D13, D14)
    assert ran.code == 0, ran.err
    assert made(ran) == [
        ("", D13, "accept"),
        ("", D14, "accept"),
        ("_days", D13, "accept"),
        ("_days", D14, "accept"),
        ("_months", "2026-11", "accept"),
    ]
    published = chain.publish(ran)
    assert published.code == 0, published.err
    assert chain.totals() == [(D13, 2, "29.50"), (D14, 2, "19.00")]
    assert chain.troubles(chain.days) == {}
    # The run that the backfill wakes makes the same days of the same rows, and from there on a correction's day alone.
    chain.go_on(D13)
    assert chain.totals() == [(D13, 2, "29.50"), (D14, 2, "19.00")]
    before = chain.lake.table(chain.days).head
    assert chain.publish(chain.make(D15, version=2)).code == 0
    assert chain.totals() == [(D13, 2, "29.50"), (D14, 2, "39.50"), (D15, 2, "19.00")]
    chain.go_on(D15)
    assert chain.totals() == [(D13, 2, "29.50"), (D14, 2, "39.50"), (D15, 2, "19.00")]
    assert before is not None


def test_a_late_correction_makes_its_own_day_anew_downstream(chain: Chain) -> None:
    chain.write("local")
    chain.deliver()
    assert chain.publish(chain.make(D13)).code == 0
    ran = chain.make(D14, version=2)
    assert [each[:2] for each in made(ran)] == [("", D14), ("_days", D13), ("_days", D14), ("_months", "2026-11")]
    assert chain.publish(ran).code == 0
    assert chain.totals() == [(D13, 2, "29.50"), (D14, 2, "19.00")]


def test_without_downstream_only_what_was_named_is_made(chain: Chain) -> None:
    chain.write("local")
    chain.deliver()
    assert made(chain.make(D13, downstream=False)) == [("", D13, "accept")]


@engines
def test_a_day_that_is_rejected_in_the_middle_is_told_and_nothing_is_made_from_it(chain: Chain, engine: str) -> None:
    chain.write(engine, ONCE, STATUS)
    chain.deliver(**{D14: [order(3, dt=D14, status="odd")]})
    ran = chain.make(D13, D14, D15)
    assert (ran.code, made(ran)) == (0, [("", D13, "accept"), ("", D14, "reject"), ("", D15, "accept")])
    assert ran.facts["left_out"] == [chain.days, chain.months]
    assert "status" in ran.facts["staged"][1]["failures"][0]
    assert (chain.publish(ran).facts["error"]["kind"], chain.lake.table(chain.shop.table).head) == (
        "commit_rejected",
        None,
    )
    chain.deliver()
    again = chain.make(D13, D14, D15, version=2)
    assert chain.publish(again).code == 0
    assert len(chain.totals()) == 3


def test_the_report_lists_what_became_of_each_partition(chain: Chain, tmp_path: Path) -> None:
    chain.write("local", ONCE, STATUS)
    chain.deliver(**{D14: [order(3, dt=D14, status="<b>odd</b>")]})
    report = tmp_path / "report.html"
    assert chain.run_job("backfill", *chain.arguments(D13, D14), f"--report={report}").code == 0
    page = report.read_text()
    for said in (D13, D14, "1 rejected", "reject<br>", "Not made", chain.months):
        assert said in page
    assert "<b>" not in page


def test_what_days_break_together_is_found_before_anything_is_published(chain: Chain) -> None:
    chain.write("local", FEW)
    chain.deliver(**{D14: [order(7, dt=D13)]})
    assert made(chain.make(D13, D14, downstream=False)) == [("", D13, "accept"), ("", D14, "reject")]


def test_a_table_that_is_rejected_downstream_keeps_all_from_being_published(chain: Chain) -> None:
    chain.write(
        "local", of_days=[{"type": "expect_column_max_to_be_between", "kwargs": {"column": "n", "max_value": 1}}]
    )
    chain.deliver()
    ran = chain.make(D13)
    assert (made(ran), ran.facts["left_out"]) == ([("", D13, "accept"), ("_days", D13, "reject")], [chain.months])
    assert chain.publish(ran).code == 6
    assert chain.lake.table(chain.shop.table).head is None


def test_again_with_the_same_key_takes_up_what_is_there(chain: Chain) -> None:
    chain.write("local")
    chain.deliver()
    first = chain.make(D13, D14)
    again = chain.make(D13, D14)
    told = [[each["commit"] for each in ran.facts["staged"]] for ran in (first, again)]
    assert told[0] == told[1]
    assert all(each["adopted"] for each in again.facts["staged"])
    assert chain.publish(again).code == 0
    after = chain.make(D13, D14)
    assert [each["state"] for each in after.facts["staged"]] == ["published"] * 5
    assert chain.publish(after).facts["published"] == chain.publish(first).facts["published"]


def test_what_was_made_from_commits_that_others_took_the_place_of_is_made_anew(chain: Chain) -> None:
    chain.write("local")
    chain.deliver()
    first = chain.make(D13)
    chain.run_job("discard", f"--commit={first.facts['staged'][0]['commit']}", "--reason=wrong")
    commit = UUID(first.facts["staged"][0]["commit"])
    chain.lake.runtime.catalog.run(
        lambda db: db.execute("update lake.commit set state = 'expired' where id = %s", (commit,))
    )
    chain.deliver(**{D13: [order(9, dt=D13, amount=1)]})
    again = chain.make(D13)
    assert not any(each["adopted"] for each in again.facts["staged"])
    assert chain.publish(again).code == 0
    assert chain.totals() == [(D13, 1, "1.00")]


def test_others_who_publish_meanwhile_are_judged_with_and_what_was_made_without_them_is_stale(chain: Chain) -> None:
    chain.write("local")
    chain.deliver()
    ran = chain.make(D13, D14)
    chain.shop.deliver([order(8, dt=D13)], D16)
    other = chain.run_job("ingest", f"--spec={chain.shop.spec}", f"--partition={D16}", "--idempotency-key=other:1")
    assert chain.run_job("publish", f"--commit={other.facts['commit']}").code == 0
    published = chain.publish(ran)
    assert published.code == 0, published.err
    assert [each.get("outcome") for each in published.facts["published"][:2]] == ["accept"] * 2
    assert chain.troubles(chain.days) == {"stale": 2}  # also the day whose later rows are the transaction's own


def test_more_than_a_transaction_takes_is_refused_before_anything_is_staged(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.write("local")
    chain.deliver()
    monkeypatch.setattr("lakelib.specs.folder.MOST_TOGETHER", 2)
    ran = chain.make(D13, D14, D15)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "too_many_partitions")
    assert chain.shop.table not in chain.lake.tables("shop")
    ran = chain.make(D13, D14)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "too_many_partitions")


def test_an_error_says_which_partition_it_was(chain: Chain) -> None:
    chain.write("local")
    chain.deliver()
    ran = chain.make(D13, D16)
    assert (ran.code, ran.facts["error"]["kind"]) == (4, "missing_source")
    assert f"Partition {D16} of {chain.shop.table}" in ran.facts["error"]["message"]


def test_a_table_that_reads_itself_takes_one_partition_at_a_time(chain: Chain) -> None:
    (chain.shop.folder / "own.sql").write_text(
        "SELECT s.* FROM source s LEFT ANTI JOIN own o ON o.order_id = s.order_id"
    )
    chain.shop.write_spec(transform="own.sql", reads=f"{{own: {chain.shop.table}}}")
    chain.specs = [chain.shop.spec]
    chain.deliver()
    ran = chain.make(D13, D14)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "reads_itself")


def test_overwrites_of_each_others_rows_are_refused(chain: Chain) -> None:
    chain.write("local", write="{mode: overwrite, partitions: dynamic}")
    chain.deliver()
    ran = chain.make(D13, D14, downstream=False)
    assert (ran.code, ran.facts["error"]["kind"]) == (5, "overwrites_own")


def test_killed_at_any_moment_the_next_try_finishes_the_work(chain: Chain, tmp_path: Path) -> None:
    chain.write("local")
    chain.deliver()
    settings = chain.lake.settings
    lake = [f"--warehouse={settings.warehouse}", f"--catalog={settings.catalog}"]
    command = [sys.executable, "-m", "jobs.backfill", *chain.arguments(D13, D14, D15), *lake]
    for wait_for in (f"{chain.shop.table} {D14}", f"{chain.days} {D14}"):
        log = tmp_path / "log"
        with log.open("w") as file:
            process = subprocess.Popen(command, cwd=ROOT, stderr=file, stdout=file, env={**os.environ})
        end = time.monotonic() + 120
        while wait_for not in log.read_text() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, log.read_text()
    ran = chain.make(D13, D14, D15)
    assert ran.code == 0, ran.err
    assert chain.publish(ran).code == 0
    assert chain.totals() == [(D13, 2, "29.50"), (D14, 2, "39.50"), (D15, 2, "19.00")]
