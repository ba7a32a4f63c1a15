"""What jobs tell when they end: exit codes by error family, the result file, the summary, progress."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakelib
from jobs import append, overwrite, sql, upsert
from lakelib import LakeError, Table
from lakelib.cli.job import summary
from lakelib.errors import EXIT_CODES, OTHER_EXIT_CODE
from lakelib.model.upkeep import readable_bytes
from lakelib.pipeline.ingesting import Ingested
from lakelib.pipeline.outcome import explain_failure
from lakelib.pipeline.sessions import told_progress
from lakelib.specs.suite import parse_suite
from tests.jobs.conftest import NewTable, RunJob, rows_of


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": [1, 2, 2], "dt": pa.nulls(3, pa.date32()), "name": ["a", "b", "c"]}), path)
    return path


def test_the_result_says_what_was_done(rows: Path, new_table: NewTable, run_job: RunJob) -> None:
    table = new_table()
    ran = run_job("upsert", table.name, "--path", rows, "--property", "source=test", "--property", "run=a=b")
    head = table.head
    assert head is not None
    assert ran.facts.pop("seconds") > 0
    assert ran.facts.pop("bytes_added") == head.summary["bytes_added"] > 0
    assert ran.facts == {
        "job": "upsert",
        "table": table.name,
        "ok": True,
        "exit_code": 0,
        "snapshot": 1,
        "kind": "upsert",
        "commit": str(head.commit_id),
        "committed_at": head.committed_at.isoformat(),
        "replayed": False,
        "rows_in": 3,
        "rows_written": 2,
        "deletes_written": 0,
        "files_added": 1,
        "files_removed": 0,
        "partitions": 1,
    }
    assert head.properties == {"source": "test", "run": "a=b"}


def test_the_summary_is_one_screen_on_stdout(rows: Path, new_table: NewTable, run_job: RunJob) -> None:
    table = new_table()
    ran = run_job("upsert", table.name, "--path", rows)
    lines = ran.out.splitlines()
    assert len(lines) < 20
    assert lines[0] == f"upsert {table.name}"
    assert "  rows in     3" in lines
    assert "  written     2 rows, 0 deletes" in lines


def test_the_same_work_again_is_recognised_and_starts_nothing(rows: Path, new_table: NewTable, run_job: RunJob) -> None:
    table = new_table()
    arguments = ("upsert", table.name, "--path", rows, "--idempotency-key", "a:b:7")
    first = run_job(*arguments)
    table.append(pa.table({"id": [5], "dt": pa.nulls(1, pa.date32())}))
    rows.unlink()
    again = run_job(*arguments)
    assert (first.facts["replayed"], again.facts["replayed"]) == (False, True)
    assert (again.code, again.facts["snapshot"]) == (0, first.facts["snapshot"])
    assert rows_of(table, "id") == [(1,), (2,), (5,)]


@pytest.mark.parametrize(
    ("main", "arguments", "said"),
    [
        (upsert.main, ["shop.x"], "give one of --path, --sql or --sql-file"),
        (upsert.main, ["shop.x", "--path", "a", "--sql", "SELECT 1"], "give one of"),
        (upsert.main, ["shop.x", "--path", "a", "--idempotency-key", "a"], "APP:VERSION"),
        (upsert.main, ["shop.x", "--path", "a", "--option", "header"], "NAME=VALUE"),
        (upsert.main, ["shop.x", "--path", "a", "--partitions", "all"], "unknown arguments: --partitions"),
        (append.main, ["shop.x", "--sql", "SELECT 1", "--where", "a"], "--where is for --path"),
        (append.main, ["shop.x", "--sql-file", "/nowhere.sql"], "cannot be read"),
        (append.main, ["shop.x", "--path", "a", "--result", "/no/such/folder/r.json"], "does not exist"),
        (overwrite.main, ["shop.x", "--path", "a", "--partitions", "dt"], "NAME=VALUE"),
        (sql.main, ["--into", "shop.x", "--path", "a"], "unknown arguments: --path"),
        (sql.main, ["--into", "shop.x", "--sql", "SELECT 1", "--partitions", "all"], "is for an overwrite"),
        (sql.main, ["--into", "shop.x", "--sql", "SELECT 1", "--view", "a=b"], "NAME=FORMAT:PATH"),
        (sql.main, ["--into", "shop.x", "--sql", "SELECT 1", "--lake-view", "a=b@"], "NAME=TABLE@AT"),
        (sql.main, ["--into", "shop.x", "--sql", "SELECT 1", "--lake-view", "a=b@now"], "at is 'now'"),
    ],
)
def test_wrong_arguments_end_with_2_and_say_why(
    main: Any, arguments: Sequence[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_wrong_input_ends_with_3(rows: Path, new_table: NewTable, run_job: RunJob) -> None:
    table = new_table("id BIGINT, dt DATE", buckets=None)
    ran = run_job("append", table.name, "--path", rows)
    assert ran.code == ran.facts["exit_code"] == 3
    assert ran.facts["ok"] is False
    assert ran.facts["error"]["kind"] == "unknown_column"
    assert "'name'" in ran.facts["error"]["message"]
    assert "merge_schema" in ran.facts["error"]["remedy"]
    assert "'name'" in ran.err
    assert ran.out == ""


def test_a_wrong_query_ends_with_3(new_table: NewTable, run_job: RunJob) -> None:
    ran = run_job("sql", "--into", new_table().name, "--sql", "SELEC 1")
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "spark_parse_syntax_error")


@pytest.mark.parametrize("what", ["table", "path", "view"])
def test_what_is_not_there_ends_with_4(what: str, tmp_path: Path, new_table: NewTable, run_job: RunJob) -> None:
    if what == "table":
        ran = run_job("append", "shop.nothing", "--path", tmp_path)
    elif what == "path":
        ran = run_job("append", new_table().name, "--path", tmp_path / "nothing-*")
    else:
        ran = run_job("append", new_table().name, "--sql", "SELECT * FROM nothing")
    assert (ran.code, ran.facts["error"]["family"]) == (4, "NotFoundError")


def test_a_conflict_ends_with_5(
    rows: Path, new_table: NewTable, run_job: RunJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(*_: object, **__: object) -> None:
        raise lakelib.ConflictError("Overtaken.", kind="fenced", remedy="Nothing.")

    monkeypatch.setattr(Table, "upsert", overtaken)
    ran = run_job("upsert", new_table().name, "--path", rows)
    assert (ran.code, ran.facts["error"]["kind"]) == (5, "fenced")


def test_a_rejected_commit_ends_with_6(rows: Path, new_table: NewTable, run_job: RunJob) -> None:
    table = new_table("id BIGINT, dt DATE, name STRING", primary_key=["id"])
    table.require_gate(
        parse_suite("name: few\nexpectations: [{type: expect_table_row_count_to_equal, kwargs: {value: 1}}]")
    )
    ran = run_job("upsert", table.name, "--path", rows)
    assert (ran.code, ran.facts["error"]["family"]) == (6, "RejectedError")
    assert table.head is None


def test_a_catalog_out_of_reach_ends_with_7(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/lake?connect_timeout=1"
    code = upsert.main(["shop.x", "--path", str(rows), "--warehouse", str(rows.parent / "w"), "--catalog", nowhere])
    assert code == 7
    assert "RetryableError" in capsys.readouterr().err


def test_a_damaged_table_ends_with_8(rows: Path, new_table: NewTable, run_job: RunJob) -> None:
    damaged = new_table()
    for _ in range(2):
        run_job("upsert", damaged.name, "--path", rows)
    for path in Path(damaged.location.removeprefix("file://")).rglob("*.parquet"):
        path.unlink()
    ran = run_job("append", new_table().name, "--lake-view", f"t={damaged.name}", "--sql", "SELECT * FROM t")
    assert (ran.code, ran.facts["error"]["family"]) == (8, "CorruptionError")
    assert damaged.location in ran.facts["error"]["message"]


@pytest.mark.parametrize("family", [*EXIT_CODES, LakeError])
def test_each_family_has_a_code_of_its_own(family: type[LakeError]) -> None:
    failed = explain_failure(family("What.", kind="some_kind", remedy="Do."))
    assert failed.exit_code == EXIT_CODES.get(family, OTHER_EXIT_CODE)
    assert (failed.kind, failed.message, failed.remedy) == ("some_kind", "What.", "Do.")
    assert len(set(EXIT_CODES.values()) | {0, 2, OTHER_EXIT_CODE}) == len(EXIT_CODES) + 3


def test_an_error_that_nobody_expects_ends_with_1_and_its_trace(
    rows: Path, new_table: NewTable, run_job: RunJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Table, "upsert", lambda *_, **__: 1 / 0)
    ran = run_job("upsert", new_table().name, "--path", rows)
    assert (ran.code, ran.facts["error"]["family"]) == (1, "ZeroDivisionError")
    assert "Traceback" in ran.err


class _Tracker:
    """A status tracker of a session with two stages, one of which is gone meanwhile."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def getActiveStageIds(self) -> list[int]:  # noqa: N802 - Spark's name
        self.asked.set()
        return [3, 4]

    def getStageInfo(self, number: int) -> Any:  # noqa: N802 - Spark's name
        found = SimpleNamespace(stageId=3, numCompletedTasks=5, numTasks=16, numActiveTasks=2)
        return found if number == 3 else None


@pytest.mark.parametrize("wanted", [True, False])
def test_progress_tells_the_active_stages_if_it_is_wanted(wanted: bool, capsys: pytest.CaptureFixture[str]) -> None:
    tracker = _Tracker()
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
    with told_progress(session, wanted):
        assert tracker.asked.wait(10 if wanted else 0) is wanted
    assert ("stage 3: 5 of 16 tasks, 2 running\n" in capsys.readouterr().err) is wanted
    assert all(thread.name != "job-progress" for thread in threading.enumerate())


def test_bytes_are_shown_in_the_unit_that_fits() -> None:
    assert [readable_bytes(count) for count in (0, 999, 1000, 158_038_024, 2.5e15)] == [
        "0 bytes",
        "999 bytes",
        "1.0 kB",
        "158.0 MB",
        "2,500.0 TB",
    ]


def test_what_others_have_written_begins_no_line_of_a_log() -> None:
    failed = explain_failure(lakelib.RejectedError("It is rejected (no\nmaintain\n  exit code 0 \x1b[2J)."))
    assert failed.exit_code == EXIT_CODES[lakelib.RejectedError]
    lines = summary("publish", None, failed, 1.0).splitlines()
    assert [line[:1] for line in lines] == ["p", *" " * (len(lines) - 1)]
    assert "\x1b" not in "".join(lines)
    assert lines[3].startswith("              maintain")


def test_a_rejection_that_an_earlier_run_has_staged_says_how_the_work_begins_anew() -> None:
    told = Ingested(
        table="shop.orders",
        partition="2026-11-18",
        commit_id=uuid4(),
        state="rejected",
        outcome="reject",
        base_snapshot=0,
        rows_in=1,
        adopted=True,
        snapshot=None,
        engine=None,
    )
    lines = list(told.lines())
    assert lines[1].endswith("rejected, staged by an earlier run of this work")
    assert "higher version of the idempotency key" in lines[2]
    assert not any("higher version" in line for line in replace(told, adopted=False).lines())
