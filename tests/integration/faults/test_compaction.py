"""Compaction killed at every step, and compaction beside writers of all kinds."""

import signal
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.integration.faults.jobs import (
    compact_often,
    crash_at,
    delete_often,
    delete_staged_often,
    overwrite_staged_often,
    read,
    rows,
    upsert_often,
    upsert_slowly,
)
from tests.integration.faults.ledger import Ledger
from tests.integration.faults.processes import Worker, results, run_process

_MOST_STEPS = 400


def test_a_compaction_killed_at_any_step_changes_no_answer_and_keeps_nobody_from_another(ledger: Ledger) -> None:
    table = ledger.lake.table("shop.a")
    told: list[str] = []
    for number in range(1, _MOST_STEPS):
        table.overwrite(rows({1: ("mon", 0), 2: ("mon", 0)}))
        table.upsert(rows({1: ("mon", number), 3: ("mon", number)}))
        known = ledger.backends()

        ended = run_process(crash_at, *ledger.place, "compact", number, number)

        ledger.wait_until_gone(known)
        where = f"step {number}, {ended.messages}"
        ledger.check_table("shop.a")
        assert read(table) == (after := {1: ("mon", number), 2: ("mon", 0), 3: ("mon", number)}), where
        if ended.exit_code != -signal.SIGKILL:
            assert ended.error == "", where
            assert ended.result == number - 1, "a step was passed without being counted"
            break
        told.extend(ended.messages)
        table.compact(full=True)
        assert [file.level for file in table.files()] == [1], where
        assert read(table) == after, where
    assert len(told) >= 40
    steps = {step.partition(":")[0] for step in told if "lake.stage_v1(" in step}
    assert steps == {"before", "sent", "after"}
    assert told.count("before: commit") == told.count("sent: commit") == told.count("after: commit")


def test_a_rebucket_killed_at_any_step_changes_no_answer_and_is_gone_on_with(ledger: Ledger) -> None:
    table = ledger.lake.table("shop.a")
    table.set_options({"min_bucket_file_bytes": 0})
    told: list[str] = []
    for number in range(1, _MOST_STEPS):
        table.rebucket((8, 1)[number % 2])
        table.overwrite(rows(dict.fromkeys(range(40), ("mon", number))))
        table.upsert(rows({1: ("mon", -number), 99: ("mon", number)}))
        after = dict.fromkeys([*range(40), 99], ("mon", number)) | {1: ("mon", -number)}
        known = ledger.backends()

        ended = run_process(crash_at, *ledger.place, "rebucket", number, number)

        ledger.wait_until_gone(known)
        where = f"step {number}, {ended.messages}"
        ledger.check_table("shop.a")
        assert read(table) == after, where
        if ended.exit_code != -signal.SIGKILL:
            assert ended.error == "", where
            break
        told.extend(ended.messages)
        table.rebucket((1, 8)[number % 2])
        assert {file.depth for file in table.files()} == {(0, 3)[number % 2]}, where
        assert read(table) == after, where
    assert len(told) >= 40
    assert any("replace_buckets" in step or "bucket_mode" in step for step in told), told


def test_writers_that_a_compactor_works_beside_lose_nothing_and_see_no_error(ledger: Ledger) -> None:
    writers = [Worker(upsert_often, (*ledger.place, writer, 25)) for writer in (1, 2, 3)]
    others = [
        Worker(overwrite_staged_often, (*ledger.place, 8)),
        Worker(compact_often, (*ledger.place, "shop.a", 4.0)),
        Worker(compact_often, (*ledger.place, "shop.a", 4.0)),
    ]
    results([worker.outcome(90) for worker in writers])
    *_, first, second = results([worker.outcome(90) for worker in others])

    ledger.check_table("shop.a")
    table = ledger.lake.table("shop.a")
    content = read(table)
    assert content.keys() == {0, -1, -2, *(writer * 1000 + number for writer in (1, 2, 3) for number in range(25))}
    assert all(content[key] == (("mon", "tue")[key % 1000 % 2], key // 1000) for key in content if key > 0)
    assert content[-1] == content[-2] == ("wed", 7)
    assert first + second > 0
    assert ledger.commits("staged") == []
    _check_files(ledger, "shop.a")


def test_deletes_that_race_a_compactor_stay_deleted(ledger: Ledger) -> None:
    writers = [Worker(upsert_slowly, (*ledger.place, writer, 25)) for writer in (1, 2)]
    others = [
        Worker(delete_often, (*ledger.place, "value = 1", 6)),
        Worker(delete_often, (*ledger.place, "day = 'tue'", 6)),
        Worker(compact_often, (*ledger.place, "shop.a", 3.0)),
    ]
    upserted = results([worker.outcome(90) for worker in writers])
    by_value, by_day, units = results([worker.outcome(90) for worker in others])

    expected = {
        (writer + 1) * 1000 + number
        for writer, snapshots in enumerate(upserted)
        for number, snapshot in enumerate(snapshots)
        if not (number % 3 == 1 and snapshot < max(by_value)) and not (number % 2 == 1 and snapshot < max(by_day))
    }
    table = ledger.lake.table("shop.a")
    assert read(table).keys() == expected
    assert units > 0
    table.compact(full=True)
    assert read(table).keys() == expected
    ledger.check_table("shop.a")
    _check_files(ledger, "shop.a")


def test_staged_deletes_of_an_append_table_never_lose_to_a_compactor(ledger: Ledger) -> None:
    table = ledger.lake.table("shop.log")
    for number in range(12):
        table.append(rows({number: ("mon", number)}))
    others = [
        Worker(delete_staged_often, (*ledger.place, "shop.log", 10)),
        Worker(compact_often, (*ledger.place, "shop.log", 2.0)),
    ]
    results([worker.outcome(90) for worker in others])

    assert read(table).keys() == {10, 11}
    ledger.check_table("shop.log")
    _check_files(ledger, "shop.log")


def _check_files(ledger: Ledger, name: str) -> None:
    """Every file of a compaction is one that the table has, or had."""
    table = ledger.lake.table(name)
    known = {path for (path,) in ledger.query("select path from lake.data_file where added_snapshot is not null")}
    folder = Path(unquote(urlsplit(table.location).path))
    made = {str(path.relative_to(folder)) for path in folder.rglob("compact-*.parquet")}
    assert made <= known
