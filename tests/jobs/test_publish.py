"""The jobs that decide about staged commits: publish and discard."""

import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from jobs import discard, publish
from lakelib import Lake
from lakelib.cli import main as cli
from tests.jobs.conftest import RunJob, rows_of
from tests.jobs.ingest_support import DAY, Shop, new_shop, order

ROOT = Path(__file__).resolve().parents[2]
STATUS = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "status"}}
FEW = {"type": "expect_table_row_count_to_be_between", "kwargs": {"max_value": 2}, "scope": "merged"}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return new_shop(tmp_path)


@pytest.fixture
def other_shop(tmp_path: Path) -> Shop:
    (tmp_path / "other").mkdir()
    return new_shop(tmp_path / "other")


def _ingest(run_job: RunJob, shop: Shop, version: int, *rows: dict[str, object]) -> str:
    """The commit."""
    shop.deliver(rows)
    ran = run_job(
        "ingest", "--spec", shop.spec, "--partition", DAY, "--idempotency-key", f"publish {version}:{version}"
    )
    assert ran.code == 0, ran.err
    return str(ran.facts["commit"])


def test_commits_become_visible_and_again_is_a_success(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec()
    commit = _ingest(run_job, shop, 1, order(1))
    first = run_job("publish", "--commit", commit)
    assert first.code == 0
    assert first.facts.pop("seconds") > 0
    assert first.facts == {
        "job": "publish",
        "ok": True,
        "exit_code": 0,
        "published": [{"table": shop.table, "commit": commit, "snapshot": 1}],
    }
    assert f"published   {shop.table}, snapshot 1" in first.out
    assert run_job("publish", "--commit", commit).facts["published"] == first.facts["published"]
    assert [snapshot.id for snapshot in lake.table(shop.table).history()] == [1]


def test_commits_of_several_tables_are_published_in_one_instant_or_not_at_all(
    shop: Shop, other_shop: Shop, run_job: RunJob, lake: Lake
) -> None:
    shop.write_spec()
    other_shop.write_spec()
    first, second = _ingest(run_job, shop, 1, order(1)), _ingest(run_job, other_shop, 1, order(2))
    lake.staged(UUID(second)).reject("no")
    ran = run_job("publish", "--commit", first, "--commit", second)
    assert (ran.code, ran.facts["error"]["kind"]) == (6, "commit_rejected")
    assert lake.table(shop.table).head is None
    third = _ingest(run_job, other_shop, 2, order(2))
    ran = run_job("publish", "--commit", first, "--commit", third)
    assert [each["table"] for each in ran.facts["published"]] == [shop.table, other_shop.table]


def test_a_rejected_commit_is_published_by_a_person_with_a_reason_only(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec(gate=shop.write_gate(STATUS))
    commit = _ingest(run_job, shop, 1, order(1, status=None))
    ran = run_job("publish", "--commit", commit)
    assert (ran.code, ran.facts["error"]["kind"]) == (6, "commit_rejected")
    ran = run_job("publish", "--commit", commit, "--by", "ann", "--reason", "the shop says so")
    assert ran.code == 0
    again = run_job("publish", "--commit", commit)
    for (published,) in (ran.facts["published"], again.facts["published"]):
        assert (published["approved_by"], published["approval_reason"]) == ("ann", "the shop says so")
    assert rows_of(lake.table(shop.table), "order_id", "status") == [(1, None)]
    told = run_job("ingest", "--spec", shop.spec, "--partition", DAY, "--idempotency-key", "publish 1:1").facts
    assert (told["state"], told["outcome"], told["snapshot"]) == ("published", "reject", 1)


def _overtaken(shop: Shop, run_job: RunJob, *others: dict[str, object]) -> str:
    """A commit of one row, judged before others were published in its partition."""
    shop.write_spec(gate=shop.write_gate(STATUS, FEW))
    commit = _ingest(run_job, shop, 1, order(1))
    assert run_job("publish", "--commit", _ingest(run_job, shop, 2, *others)).code == 0
    return commit


def test_a_verdict_that_was_overtaken_is_made_again(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    commit = _overtaken(shop, run_job, order(2))
    ran = run_job("publish", "--commit", commit)
    assert (ran.code, ran.facts["error"]["kind"]) == (5, "verdict_stale")
    ran = run_job("publish", "--commit", commit, "--spec", shop.spec)
    assert ran.code == 0, ran.err
    assert [each["outcome"] for each in ran.facts["published"]] == ["accept"]
    verdict = lake.staged(UUID(commit)).verdict
    assert verdict is not None
    assert verdict.base_snapshot_id == 1
    assert rows_of(lake.table(shop.table), "order_id") == [(1,), (2,)]


def test_what_was_judged_needs_neither_its_spec_nor_its_gate_any_more(shop: Shop, run_job: RunJob) -> None:
    shop.write_spec(gate=shop.write_gate(STATUS))
    commit = _ingest(run_job, shop, 1, order(1))
    (shop.folder / "gate.yaml").unlink()
    for _ in range(2):
        assert run_job("publish", "--commit", commit, "--spec", shop.spec).code == 0
        shop.spec.unlink(missing_ok=True)


def test_a_verdict_that_was_overtaken_is_made_again_by_a_suite_that_looks_at_less(
    shop: Shop, run_job: RunJob, lake: Lake
) -> None:
    commit = _overtaken(shop, run_job, order(2))
    shop.write_gate(STATUS)
    assert run_job("publish", "--commit", commit, "--spec", shop.spec).code == 0
    assert rows_of(lake.table(shop.table), "order_id") == [(1,), (2,)]


def test_a_commit_that_does_not_pass_any_more_is_rejected(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    commit = _overtaken(shop, run_job, order(2), order(3))
    ran = run_job("publish", "--commit", commit, "--spec", shop.spec)
    assert (ran.code, ran.facts["error"]["kind"]) == (6, "gate_rejected")
    assert lake.staged(UUID(commit)).state == "rejected"
    assert rows_of(lake.table(shop.table), "order_id") == [(2,), (3,)]


def test_a_discarded_commit_is_rejected_and_stays_so(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec()
    commit = _ingest(run_job, shop, 1, order(1))
    for _ in range(2):
        ran = run_job("discard", "--commit", commit, "--reason", "wrong day")
        assert (ran.code, ran.facts["discarded"]) == (0, [{"table": shop.table, "commit": commit}])
    assert lake.staged(UUID(commit)).state == "rejected"
    assert run_job("publish", "--commit", commit).code == 6


def test_a_published_commit_cannot_be_discarded(shop: Shop, run_job: RunJob) -> None:
    shop.write_spec()
    commit = _ingest(run_job, shop, 1, order(1))
    assert run_job("publish", "--commit", commit).code == 0
    assert run_job("discard", "--commit", commit, "--reason", "too late").code == 5


def test_what_the_spec_says_follows_a_publish_by_hand(
    shop: Shop, run_without_spark: RunJob, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    days = "{tag: 'dt-{partition}', mark_done: [done_partition]}"
    shop.write_spec(engine="local", publish=days)
    commit = _ingest(run_without_spark, shop, 1, order(1))
    table = lake.table(shop.table)

    def publish_by_hand(*arguments: str) -> tuple[int, str, str]:
        where = ["--warehouse", lake.settings.warehouse, "--catalog", str(lake.settings.catalog)]
        code = cli.main(["publish", commit[:13], *arguments, *where])
        told = capsys.readouterr()
        return code, told.out, told.err

    code, _, said = publish_by_hand()
    assert (code, "--spec FILE makes them" in " ".join(said.split())) == (0, True), said
    assert (list(table.tags()), table.done_partitions()) == ([], [])
    code, out, said = publish_by_hand("--spec", str(shop.spec))
    assert (code, said) == (0, "")
    assert f"{shop.table}: tagged dt-{DAY}" in out
    assert f"{shop.table}: dt={DAY} is marked done" in out
    assert [(tag.name, tag.snapshot_id) for tag in table.tags()] == [(f"dt-{DAY}", 1)]
    assert [each.values for each in table.done_partitions()] == [{"dt": date.fromisoformat(DAY)}]
    code, out, _ = publish_by_hand("--spec", str(shop.spec), "--json")
    (told,) = json.loads(out)["published"]
    assert (told["tag"], told["done"]) == (f"dt-{DAY}", [f"dt={DAY}"])


def test_what_cannot_follow_leaves_the_commit_published_and_says_so(
    shop: Shop, run_without_spark: RunJob, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.write_spec(engine="local", publish="{tag: 'dt-{partition}'}")
    first, second = (_ingest(run_without_spark, shop, version, order(1)) for version in (1, 2))
    where = ["--warehouse", lake.settings.warehouse, "--catalog", str(lake.settings.catalog)]
    assert cli.main(["publish", first, "--spec", str(shop.spec), *where]) == 0
    assert cli.main(["publish", second, "--spec", str(shop.spec), *where]) == 5
    told = capsys.readouterr()
    assert f"commit {second} is snapshot 2" in told.out
    assert f"{shop.table} is published; what its spec says follows was not done" in told.err
    assert run_without_spark("publish", "--commit", second, "--spec", shop.spec).code == 0, "it is published"


def test_a_spec_that_is_not_there_is_told_before_anything_is_published(
    shop: Shop, run_without_spark: RunJob, lake: Lake
) -> None:
    shop.write_spec(engine="local")
    commit = _ingest(run_without_spark, shop, 1, order(1))
    where = ["--warehouse", lake.settings.warehouse, "--catalog", str(lake.settings.catalog)]
    assert cli.main(["publish", commit, "--spec", str(shop.folder / "none.yaml"), *where]) == 4
    assert lake.staged(commit).state == "staged"


@pytest.mark.parametrize("job", ["publish", "discard"])
def test_a_commit_that_is_not_there_ends_with_4(job: str, run_job: RunJob) -> None:
    reason = ["--reason", "none"] if job == "discard" else []
    assert run_job(job, "--commit", uuid4(), *reason).code == 4


@pytest.mark.parametrize(
    ("main", "arguments", "said"),
    [
        (publish.main, [], "--commit"),
        (publish.main, ["--commit", "x"], "'x' is not a commit's id"),
        (publish.main, ["--commit", str(UUID(int=1)), "--by", "ann"], "--by and --reason go together"),
        (discard.main, ["--commit", str(UUID(int=1))], "--reason"),
    ],
)
def test_wrong_arguments_end_with_2(
    main: object, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)  # type: ignore[operator]
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("job", ["publish", "discard"])
def test_the_jobs_load_neither_spark_nor_great_expectations(job: str, shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec()
    commit = _ingest(run_job, shop, 1, order(1))
    settings = lake.settings
    arguments = ["--commit", commit, "--warehouse", settings.warehouse, "--catalog", str(settings.catalog)]
    arguments += ["--reason", "none"] if job == "discard" else ["--spec", str(shop.spec)]
    program = (
        f"import sys; from jobs import {job}; code = {job}.main({arguments!r});"
        " print(code, [name for name in ('pyspark', 'great_expectations') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert ended.stdout.splitlines()[-1] == "0 []"
