"""What runs do by what their jobs answer: real DAG files and tasks, with jobs that only say what they were told."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from .conftest import Lab, Place

_STAND_INS = Path(__file__).with_name("stand_ins")
DAYS, AFTER, WHOLE, KEPT = "ingest__a__days", "ingest__a__after", "ingest__a__whole", "ingest__a__kept"
FOLLOWS = "ingest__a__follows"
SERVER = {
    "conn_type": "spark",
    "host": "sc://server",
    "port": 15002,
    "password": "secret",
    "extra": {"conf": {"a": "b"}},
}
PUBLISH = {"option": "publish", "reason": "known and harmless", "user": "anna"}
DISCARD = {"option": "discard", "reason": "", "user": "anna"}


@dataclass
class Shop:
    """A lab with three tables, whose jobs answer as they are told."""

    lab: Lab
    place: Place

    def answer(self, **outcomes: list[str]) -> None:
        """Outcomes by partition ("d01" is 2026-11-01), one for each call; and no calls so far."""
        told = {_key(name): outcome for name, outcome in outcomes.items()}
        (self.place.folder / "answers.json").write_text(json.dumps(told))
        (self.place.folder / "calls").unlink(missing_ok=True)
        for name in outcomes:
            ready = self.place.landing / "days" / _key(name) / "_READY"
            ready.parent.mkdir(parents=True, exist_ok=True)
            ready.touch()

    def calls(self, job: str) -> list[dict[str, Any]]:
        calls = self.place.folder / "calls"
        found = [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []
        return [call for call in found if call["job"] == job]


def _key(name: str) -> str:
    return name if name == "all" else f"2026-11-{name[1:]}"


@pytest.fixture(scope="module")
def shop(open_lab: Callable[..., Lab], place: Place) -> Shop:
    settings = {
        "LAKE_TABLES": _STAND_INS / "tables",
        "LAKE_JOBS": _STAND_INS,
        "STAND_INS": place.folder,
        "SPARK_HOME": _STAND_INS,
        "AIRFLOW_CONN_KEPT": json.dumps(SERVER),
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": "of another server",
    }
    lab = open_lab(**{name: str(value) for name, value in settings.items()})
    assert lab("parse")["errors"] == {}
    return Shop(lab=lab, place=place)


def _succeeded(ran: dict[str, Any]) -> set[str]:
    return {task for task, state in ran["tasks"].items() if state == "success"}


def test_an_accepted_commit_is_published_and_announced(shop: Shop) -> None:
    shop.answer(d01=["accept"])
    ran = shop.lab.run(DAYS, partition_key="2026-11-01")
    (staged,), (published,) = shop.calls("ingest"), shop.calls("publish")
    assert ran["state"] == "success"
    assert _succeeded(ran) == {"wait_for_source", "stage_and_judge", "publish", "announce"}
    assert (ran["tasks"]["review"], ran["note"]) == ("skipped", None)
    assert staged["key"] == [f"airflow/{DAYS}/{ran['run_id']}", 1]
    assert published["commits"] == [ran["xcom"]["stage_and_judge"]["commit"]]
    assert (published["by"], published["reason"]) == (None, None)


def test_a_job_that_may_need_no_spark_is_not_started_by_it(shop: Shop) -> None:
    shop.answer(d08=["accept"])
    (shop.place.landing / "whole").mkdir(exist_ok=True)
    (shop.place.landing / "whole" / "a.parquet").touch()
    assert shop.lab.run(DAYS, partition_key="2026-11-08")["state"] == "success"
    assert shop.lab.run(WHOLE)["state"] == "success"
    days, whole = shop.calls("ingest")
    assert (days["started_by"], whole["started_by"]) == ("spark-submit", "python")
    assert "--master=local[1]" in whole["arguments"]


def test_the_asset_event_says_table_snapshot_commit_outcome_and_how_many_partitions(shop: Shop) -> None:
    shop.answer(d02=["accept"])
    ran = shop.lab.run(DAYS, partition_key="2026-11-02")
    commit = ran["xcom"]["stage_and_judge"]["commit"]
    assert shop.lab("events", asset="a.days")[-1] == {
        "partition_key": "2026-11-02",
        "partitions": 1,
        "table": "a.days",
        "snapshot": ran["xcom"]["publish"]["published"][0]["snapshot"],
        "commit": commit,
        "outcome": "accept",
    }


def test_a_commit_with_warnings_is_published_and_its_run_has_a_note(shop: Shop) -> None:
    shop.answer(d01=["warn"])
    ran = shop.lab.run(DAYS, conf={"partition": "2026-11-01"})
    assert ran["state"] == "success"
    assert {"publish", "announce"} <= _succeeded(ran)
    assert ran["note"].startswith("Lake: Published with warnings of its gate")
    assert shop.lab("events", asset="a.days")[-1]["outcome"] == "warn"


def test_a_rejected_commit_waits_for_a_person(shop: Shop) -> None:
    shop.answer(d01=["reject"])
    run_id = shop.lab("start", dag_id=DAYS, partition_key="2026-11-01")
    ran = shop.lab("go", dag_id=DAYS, run_id=run_id)
    assert (ran["state"], ran["tasks"]["review"]) == ("running", "awaiting_input")
    assert shop.calls("publish") == []
    said = shop.lab("question", dag_id=DAYS, run_id=run_id)
    assert ran["xcom"]["stage_and_judge"]["commit"] in said
    assert "\n\n    amount is there (critical): 3 of 400 rows; such as id=17 `{{ x }}` [y](z)\n" in said
    assert "](/lake/reports/" in said


def test_a_commit_is_discarded_without_a_word(shop: Shop) -> None:
    shop.answer(d01=["reject"])
    ran = shop.lab.run(DAYS, partition_key="2026-11-01", answer={**DISCARD, "reason": None})
    assert (ran["tasks"]["review"], ran["tasks"]["publish"], shop.calls("publish")) == ("success", "failed", [])
    assert "(no reason given)" in shop.lab.log()


def test_a_person_publishes_a_rejected_commit_with_name_and_reason(shop: Shop) -> None:
    shop.answer(d01=["reject"])
    ran = shop.lab.run(DAYS, partition_key="2026-11-01", answer=PUBLISH)
    (published,) = shop.calls("publish")
    assert ran["state"] == "success"
    assert {"review", "publish", "announce"} <= _succeeded(ran)
    assert (published["by"], published["reason"]) == ("anna", "known and harmless")


def test_a_run_whose_commit_a_person_discards_fails_and_says_why(shop: Shop) -> None:
    shop.answer(d01=["reject"])
    ran = shop.lab.run(DAYS, partition_key="2026-11-01", answer=DISCARD)
    commit = ran["xcom"]["stage_and_judge"]["commit"]
    assert (ran["state"], ran["tasks"]["publish"], ran["tries"]["publish"]) == ("failed", "failed", 1)
    assert (ran["tasks"]["announce"], shop.calls("publish")) == ("upstream_failed", [])
    assert f"Partition 2026-11-01 of a.days was not published: anna discarded commit {commit}" in shop.lab.log()


def test_a_person_who_has_discarded_a_commit_may_be_asked_again(shop: Shop) -> None:
    shop.answer(d01=["reject"])
    run_id = shop.lab.run(DAYS, partition_key="2026-11-01", answer=DISCARD)["run_id"]
    shop.lab("clear", dag_id=DAYS, run_id=run_id, task_ids=["review"])
    ran = shop.lab("go", dag_id=DAYS, run_id=run_id, answer=PUBLISH)
    assert (ran["state"], len(shop.calls("ingest")), len(shop.calls("publish"))) == ("success", 1, 1)


def test_publishing_without_a_reason_is_refused(shop: Shop) -> None:
    shop.answer(d01=["reject"])
    ran = shop.lab.run(DAYS, partition_key="2026-11-01", answer={**PUBLISH, "reason": " "})
    assert (ran["state"], ran["tasks"]["review"], shop.calls("publish")) == ("failed", "failed", [])


def test_a_commit_that_nobody_decides_about_stays_in_quarantine_and_its_run_fails(shop: Shop) -> None:
    shop.answer(d01=["reject"], d02=["accept"])
    run_id = shop.lab("start", dag_id=DAYS, partition_key="2026-11-01")
    shop.lab("go", dag_id=DAYS, run_id=run_id)
    assert shop.lab.run(DAYS, partition_key="2026-11-02")["state"] == "success"
    shop.lab("give_up_waiting")
    ran = shop.lab("go", dag_id=DAYS, run_id=run_id)
    assert (ran["state"], ran["tasks"]["review"], len(shop.calls("publish"))) == ("failed", "failed", 1)


def test_a_gate_that_errored_is_asked_again_with_the_same_key(shop: Shop) -> None:
    shop.answer(d01=["7", "accept"])
    ran = shop.lab.run(DAYS, partition_key="2026-11-01")
    first, second = shop.calls("ingest")
    assert ran["state"] == "success"
    assert first["key"] == second["key"]


def test_an_empty_source_that_may_be_skipped_ends_the_run_without_a_commit(shop: Shop) -> None:
    shop.answer(d01=["empty"])
    ran = shop.lab.run(DAYS, partition_key="2026-11-01")
    assert ran["state"] == "success"
    assert _succeeded(ran) == {"wait_for_source", "stage_and_judge"}
    assert ran["tasks"]["publish"] == "skipped"


def test_a_source_that_does_not_arrive_fails_the_run_and_names_what_is_missing(shop: Shop) -> None:
    shop.answer()
    ran = shop.lab.run(DAYS, partition_key="2026-11-28")
    assert (ran["state"], ran["tasks"]["wait_for_source"], shop.calls("ingest")) == ("failed", "failed", [])
    assert f"{shop.place.landing}/days/2026-11-28/_READY did not come" in shop.lab.log()


def test_wrong_rows_fail_the_run_at_once(shop: Shop) -> None:
    shop.answer(d01=["3"])
    ran = shop.lab.run(DAYS, partition_key="2026-11-01")
    assert (ran["state"], len(shop.calls("ingest"))) == ("failed", 1)


_TWO_DAYS = {"partition_key": "2026-11-01", "conf": {"partition": "2026-11-02"}}


@pytest.mark.parametrize("start", [{}, {"partition_key": "2026-11-31"}, {"partition_key": "2026-11"}, _TWO_DAYS])
def test_a_run_without_one_partition_of_the_table_fails_at_once(shop: Shop, start: dict[str, Any]) -> None:
    shop.answer(d01=["accept"], d02=["accept"])
    ran = shop.lab.run(DAYS, **start)
    assert (ran["state"], ran["tries"]["wait_for_source"], shop.calls("ingest")) == ("failed", 1, [])


def test_clearing_a_run_makes_a_new_commit(shop: Shop) -> None:
    shop.answer(d01=["accept"])
    run_id = shop.lab.run(DAYS, partition_key="2026-11-01")["run_id"]
    shop.lab("clear", dag_id=DAYS, run_id=run_id)
    shop.lab("go", dag_id=DAYS, run_id=run_id)
    assert [call["key"][1] for call in shop.calls("ingest")] == [1, 2]
    assert len({call["commits"][0] for call in shop.calls("publish")}) == 2


def test_clearing_what_follows_the_commit_leaves_the_commit_alone(shop: Shop) -> None:
    shop.answer(d01=["accept"])
    run_id = shop.lab.run(DAYS, partition_key="2026-11-01")["run_id"]
    shop.lab("clear", dag_id=DAYS, run_id=run_id, task_ids=["publish"])
    assert shop.lab("go", dag_id=DAYS, run_id=run_id)["state"] == "success"
    first, again = shop.calls("publish")
    assert len(shop.calls("ingest")) == 1
    assert first["commits"] == again["commits"]


def test_a_commit_that_nobody_would_publish_is_not_made(shop: Shop) -> None:
    shop.answer(d01=["accept"])
    run_id = shop.lab.run(DAYS, partition_key="2026-11-01")["run_id"]
    shop.lab("clear", dag_id=DAYS, run_id=run_id, task_ids=["stage_and_judge"], alone=True)
    ran = shop.lab("go", dag_id=DAYS, run_id=run_id)
    assert (ran["tasks"]["stage_and_judge"], len(shop.calls("ingest"))) == ("failed", 1)
    shop.lab("clear", dag_id=DAYS, run_id=run_id, task_ids=["stage_and_judge"])
    ran = shop.lab("go", dag_id=DAYS, run_id=run_id)
    assert (ran["tasks"]["stage_and_judge"], len(shop.calls("publish"))) == ("success", 2)


def test_the_answer_about_one_commit_does_not_count_for_the_next(shop: Shop) -> None:
    shop.answer(d01=["reject", "accept"])
    run_id = shop.lab.run(DAYS, partition_key="2026-11-01", answer=PUBLISH)["run_id"]
    shop.lab("clear", dag_id=DAYS, run_id=run_id)
    assert shop.lab("go", dag_id=DAYS, run_id=run_id)["state"] == "success"
    assert [call["by"] for call in shop.calls("publish")] == ["anna", None]


def test_a_table_that_comes_after_another_reads_the_snapshot_that_woke_it(shop: Shop) -> None:
    shop.lab("wake")
    shop.answer(d03=["accept"])
    ran = shop.lab.run(DAYS, conf={"partition": "2026-11-03"})
    woken = {dag_id: (run_id, key) for dag_id, run_id, key in shop.lab("wake")}
    assert {dag_id: key for dag_id, (_, key) in woken.items()} == {AFTER: "2026-11-03", WHOLE: "all"}
    shop.answer()
    assert shop.lab("go", dag_id=AFTER, run_id=woken[AFTER][0])["state"] == "success"
    (call,) = shop.calls("ingest")
    snapshot = ran["xcom"]["publish"]["published"][0]["snapshot"]
    assert (call["partition"], call["at"]) == ("2026-11-03", {"a.days": str(snapshot)})


def test_of_two_snapshots_of_a_partition_the_newer_one_is_read(shop: Shop) -> None:
    shop.lab("wake")
    shop.answer(d04=["accept"])
    ran = [shop.lab.run(DAYS, partition_key="2026-11-04") for _ in range(2)]
    (run_id,) = [run_id for dag_id, run_id, _ in shop.lab("wake") if dag_id == AFTER]
    shop.answer()
    shop.lab("go", dag_id=AFTER, run_id=run_id)
    newest = max(one["xcom"]["publish"]["published"][0]["snapshot"] for one in ran)
    assert shop.calls("ingest")[0]["at"] == {"a.days": str(newest)}


def test_airflows_own_backfill_makes_a_run_for_each_partition(shop: Shop) -> None:
    made = shop.lab("backfill", dag_id=DAYS, first="2026-11-05T00:00:00", last="2026-11-07T00:00:00")
    assert [key for _, key in made] == ["2026-11-05", "2026-11-06", "2026-11-07"]
    shop.answer(d05=["accept"])
    assert shop.lab("go", dag_id=DAYS, run_id=made[0][0])["state"] == "success"
    assert shop.calls("ingest")[0]["partition"] == "2026-11-05"


# The backfill DAG


def _backfill(shop: Shop, **params: Any) -> dict[str, Any]:
    given = {"tables": ["a.days", "a.after"], "from": "2026-11-10", "to": "2026-11-11", "dry_run": False}
    return shop.lab.run("backfill", conf={**given, **params})


def test_a_backfill_does_nothing_unless_it_is_told_to(shop: Shop) -> None:
    shop.answer()
    ran = shop.lab.run("backfill", conf={"tables": ["a.days"], "from": "2026-11-10", "to": "2026-11-11"})
    assert (ran["state"], _succeeded(ran), shop.calls("ingest")) == ("success", {"plan"}, [])
    assert "a.days 2026-11-10" in shop.lab.log()
    [page] = (shop.place.folder / "airflow" / "lake_runs" / "backfill").glob("*/plan/clear_0/attempt-*/report.html")
    assert "2 partitions to be staged, judged and published" in page.read_text()


def test_an_atomic_backfill_publishes_all_partitions_of_all_tables_at_once(shop: Shop) -> None:
    shop.answer(d10=["accept"], d11=["warn"])
    ran = _backfill(shop, atomic=True)
    (published,) = shop.calls("publish")
    staged = shop.calls("ingest")
    assert ran["state"] == "success"
    assert {tuple(call["key"]) for call in staged} == {
        (f"airflow/backfill/{ran['run_id']}/{day}", 1) for day in ("2026-11-10", "2026-11-11")
    }
    assert len({UUID(commit) for commit in published["commits"]}) == 4
    assert _succeeded(ran) == {
        *("plan", "stage_and_judge[0]", "decide", "publish[0]", "follow_up", "announce", "conclude")
    }


def test_a_backfill_wakes_what_was_not_made_in_its_transaction(shop: Shop) -> None:
    shop.answer(d10=["accept"])
    (shop.place.landing / "whole").mkdir(exist_ok=True)
    (shop.place.landing / "whole" / "a.parquet").touch()
    shop.lab("wake")
    ran = _backfill(shop, to="2026-11-10", tables=["a.days", "a.after"])
    assert ran["state"] == "success"
    woken = {dag_id: run_id for dag_id, run_id, key in shop.lab("wake")}
    event = shop.lab("events", asset="a.days")[-1]
    assert (event["partition_key"], event["made"]) == ("2026-11-10", ["a.after"])
    assert set(woken) == {AFTER, WHOLE}
    shop.answer(d10=["accept"], all=["accept"])
    after = shop.lab("go", dag_id=AFTER, run_id=woken[AFTER])
    assert (after["state"], set(after["tasks"].values())) == ("success", {"skipped"})
    assert shop.calls("ingest") == []
    assert shop.lab("go", dag_id=WHOLE, run_id=woken[WHOLE])["state"] == "success"
    shop.lab("clear", dag_id=AFTER, run_id=woken[AFTER])
    assert "publish" in _succeeded(shop.lab("go", dag_id=AFTER, run_id=woken[AFTER]))


def test_a_backfill_without_downstream_wakes_nobody(shop: Shop) -> None:
    shop.answer(d10=["accept"])
    shop.lab("wake")
    ran = _backfill(shop, to="2026-11-10", tables=["a.days"], downstream=False)
    assert (ran["state"], ran["tasks"]["announce"]) == ("success", "skipped")
    assert shop.calls("ingest")[0]["downstream"] is False
    assert shop.lab("wake") == []


def test_an_atomic_backfill_publishes_nothing_if_one_commit_is_rejected(shop: Shop) -> None:
    shop.answer(d10=["accept"], d11=["reject"])
    ran = _backfill(shop, atomic=True, tables=["a.days"])
    assert (ran["state"], ran["tasks"]["decide"], shop.calls("publish")) == ("failed", "failed", [])


@pytest.mark.parametrize("said", ["--result=/any/file", "--", "-h", "--warehouse /any\n--catalog=x \x1b[2J\x00"])
def test_what_a_reviewer_says_is_no_option(shop: Shop, said: str) -> None:
    shop.answer(d01=["reject"])
    answer = {"option": "publish", "reason": said, "user": said}
    ran = shop.lab.run(DAYS, partition_key="2026-11-01", answer=answer)
    (published,) = shop.calls("publish")
    told = " ".join("".join(sign if sign.isprintable() else " " for sign in said).split())
    assert (ran["state"], published["by"], published["reason"]) == ("success", told, told)


def test_a_backfill_one_by_one_publishes_what_it_can_and_says_what_it_cannot(shop: Shop) -> None:
    shop.answer(d10=["reject"], d11=["accept"], d12=["3"])
    ran = _backfill(shop, atomic=False, tables=["a.days"], to="2026-11-12")
    (published,) = shop.calls("publish")
    assert (ran["state"], len(published["commits"])) == ("failed", 1)
    assert "Not published: a.days 2026-11-10 was rejected" in shop.lab.log()
    assert "amount is there (critical): 3 of 400 rows" in shop.lab.log()
    assert "a.days 2026-11-12 was not staged" in shop.lab.log()


@pytest.mark.parametrize(
    "params",
    [
        {"tables": []},
        {"tables": ["a.nothing"]},
        {"from": "2026-11-12"},
        {"from": None, "to": None},
        {"from": None, "to": None, "from_key": "2026-11"},
        {"from_key": "2026-11-10"},
    ],
)
def test_a_backfill_of_nothing_that_can_be_meant_fails_at_once(shop: Shop, params: dict[str, Any]) -> None:
    shop.answer()
    ran = _backfill(shop, **params)
    assert (ran["state"], ran["tasks"]["plan"], shop.calls("ingest")) == ("failed", "failed", [])


@pytest.mark.parametrize("cleared", [["stage_and_judge"], None], ids=["the task", "the run"])
def test_after_a_discard_what_is_corrected_is_published(shop: Shop, cleared: list[str] | None) -> None:
    shop.answer(d01=["reject", "accept"])
    run_id = shop.lab.run(DAYS, partition_key="2026-11-01", answer=DISCARD)["run_id"]
    shop.lab("clear", dag_id=DAYS, run_id=run_id, task_ids=cleared)
    ran = shop.lab("go", dag_id=DAYS, run_id=run_id)
    assert (ran["state"], len(shop.calls("publish"))) == ("success", 1)
    assert {"publish", "announce"} <= _succeeded(ran)


def test_where_a_server_does_the_work_jobs_are_clients_and_only_they_know_its_token(shop: Shop) -> None:
    shop.answer(all=["accept"])
    (shop.place.landing / "kept").mkdir(parents=True)
    (shop.place.landing / "kept" / "rows.parquet").touch()
    ran = shop.lab.run(KEPT)
    assert ran["state"] == "success"
    conf = {"a": "b", "spark.sql.shuffle.partitions": "3"}
    for call in (*shop.calls("ingest"), *shop.calls("publish")):
        assert (call["started_by"], call["server"]) == (
            "python",
            {"remote": "sc://server:15002", "token": "secret", "conf": conf},
        )
        assert "secret" not in " ".join(call["arguments"])
    shop.answer(d20=["accept"])
    assert shop.lab.run(DAYS, partition_key="2026-11-20")["state"] == "success"
    (submitted,) = shop.calls("ingest")
    assert (submitted["started_by"], submitted["server"]["remote"]) == ("spark-submit", None)


def test_a_table_that_follows_changes_is_made_from_scratch_where_its_form_says_so(shop: Shop) -> None:
    assert shop.lab("form", dag_id=FOLLOWS)["full"]["type"] == "boolean"
    assert "full" not in shop.lab("form", dag_id=DAYS)
    shop.answer()
    assert shop.lab.run(FOLLOWS)["state"] == "success"
    assert shop.lab.run(FOLLOWS, conf={"full": True})["state"] == "success"
    assert ["--full" in call["arguments"] for call in shop.calls("ingest")] == [False, True]


def test_a_run_for_which_nothing_has_changed_publishes_nothing_and_tells_nobody(shop: Shop) -> None:
    shop.answer(all=["empty"])
    ran = shop.lab.run(FOLLOWS)
    assert (ran["state"], ran["tasks"]["publish"], ran["tasks"]["announce"]) == ("success", "skipped", "skipped")
