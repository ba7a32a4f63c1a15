"""The ingest job: from a partition of a source to a staged commit, as a spec says."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from jobs import ingest
from lakelib import ConflictError, Lake
from lakelib.pipeline.ingesting import ingest as ingest_partition
from lakelib.pipeline.outcome import Outcome
from lakelib.specs.table_spec import load_spec
from tests.jobs.conftest import Ran, RunJob, rows_of
from tests.jobs.ingest_support import DAY, FIELDS, Shop, new_shop, order
from tests.understood import understood


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return new_shop(tmp_path)


def _ingest(run_job: RunJob, shop: Shop, version: int, *more: object, key: str = DAY) -> Ran:
    return run_job("ingest", "--spec", shop.spec, "--partition", key, "--idempotency-key", f"test:{version}", *more)


def _publish(lake: Lake, shop: Shop, ran: Ran) -> int:
    assert ran.code == 0, ran.err
    return lake.staged(UUID(ran.facts["commit"])).publish().id


# The way through


def test_the_rows_of_a_partition_are_staged_and_nobody_sees_them(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec()
    shop.deliver([order(1), order(2, dt="2026-11-17", amount=3.25)])
    ran = _ingest(run_job, shop, 1, "--property", "dag=shop")
    assert ran.code == 0
    commit = UUID(ran.facts.pop("commit"))
    assert ran.facts.pop("seconds") > 0
    assert ran.facts == {
        "job": "ingest",
        "ok": True,
        "exit_code": 0,
        "table": shop.table,
        "partition": DAY,
        "state": "staged",
        "outcome": "accept",
        "base_snapshot": 0,
        "rows_in": 2,
        "report": None,
        "failures": [],
        "adopted": False,
        "snapshot": None,
        "engine": "spark",
        "engine_why": "the spec says so",
    }
    table = lake.table(shop.table)
    assert table.head is None
    snapshot = lake.staged(commit).publish()
    assert rows_of(table, "order_id", "dt", "amount") == [
        (1, date(2026, 11, 18), Decimal("9.50")),
        (2, date(2026, 11, 17), Decimal("3.25")),
    ]
    assert snapshot.properties == {
        "dag": "shop",
        "engine": "spark: the spec says so",
        "partition": DAY,
        "partition_by": "day dt",
        "source": f"{shop.landing}/{DAY}/*.json",
        "source_files": "part-0.json",
        "spec_hash": load_spec(shop.spec).hash,
    }


def test_the_table_is_made_as_the_spec_says(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec(options="{target_file_bytes: 1000000}")
    shop.deliver([order(1)])
    assert _ingest(run_job, shop, 1).code == 0
    table = lake.table(shop.table)
    assert (table.primary_key, table.partition_by, table.options) == (
        ["order_id"],
        ["dt"],
        {"target_file_bytes": 1_000_000},
    )


def test_rows_that_lack_the_keys_column_get_the_partition(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec()
    row = order(1)
    del row["dt"]
    shop.deliver([row])
    _publish(lake, shop, _ingest(run_job, shop, 1))
    assert rows_of(lake.table(shop.table), "order_id", "dt") == [(1, date(2026, 11, 18))]


def test_a_transform_cannot_name_the_environment(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    text = "${env:HOME} ${system:java.io.tmpdir} ${spark.app.id}"
    (shop.folder / "new.sql").write_text(f"SELECT order_id, dt, '{text}' AS status, amount, updated_at FROM source")
    shop.write_spec(transform="new.sql")
    shop.deliver([order(1)])
    _publish(lake, shop, _ingest(run_job, shop, 1))
    assert rows_of(lake.table(shop.table), "status") == [(text,)]


def test_a_transform_sees_source_tables_and_the_partition(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec()
    shop.deliver([order(1)], "2026-11-17")
    shop.deliver([order(1), order(2)])
    _publish(lake, shop, _ingest(run_job, shop, 1, key="2026-11-17"))
    (shop.folder / "new.sql").write_text(
        "-- only new ones\n"
        "SELECT order_id, DATE(:partition) AS dt, upper(status) AS status, amount, updated_at FROM source\n"
        "WHERE order_id NOT IN (SELECT order_id FROM known);\n"
    )
    shop.write_spec(transform="new.sql", reads=f"{{known: {shop.table}}}")
    ran = _ingest(run_job, shop, 2)
    _publish(lake, shop, ran)
    assert rows_of(lake.table(shop.table), "order_id", "status") == [(1, "open"), (2, "OPEN")]
    head = lake.table(shop.table).head
    assert head is not None
    assert head.properties[f"reads.{shop.table}"] == "1"


def _write_running_total(shop: Shop, mode: str = "upsert") -> None:
    """A table of balances: what a day brings is added to the highest that is there."""
    (shop.folder / "add.sql").write_text(
        "SELECT s.name, DATE(:partition) AS dt, s.total + coalesce(t.total, 0) AS total FROM source s\n"
        "LEFT JOIN (SELECT name, max(total) AS total FROM totals GROUP BY name) t ON s.name = t.name\n"
    )
    shop.write_spec(
        columns="name STRING, dt DATE, total BIGINT",
        primary_key="[name, dt]",
        sequence_by=None,
        transform="add.sql",
        reads=f"{{totals: {shop.table}}}",
        write=f"{{mode: {mode}}}",
    )


@pytest.mark.parametrize("mode", ["upsert", "append", "overwrite"])
def test_what_a_transform_read_of_its_own_table_is_what_its_commit_depends_on(
    mode: str, shop: Shop, run_job: RunJob, lake: Lake
) -> None:
    _write_running_total(shop, mode)
    for day in ("2026-11-17", DAY):
        shop.deliver([{"name": "all", "total": 10}], day)
    first = _ingest(run_job, shop, 1, key="2026-11-17")
    assert first.code == 0, first.err
    second = _ingest(run_job, shop, 2)
    assert (first.facts["base_snapshot"], second.facts["base_snapshot"]) == (0, 0)
    assert _publish(lake, shop, first) == 1
    refused = run_job("publish", "--commit", second.facts["commit"])
    assert (refused.code, refused.facts["error"]["kind"]) == (5, "rows_added")
    assert "since snapshot 0" in refused.err
    anew = _ingest(run_job, shop, 2)
    assert (anew.facts["adopted"], anew.facts["base_snapshot"]) == (False, 1)
    assert lake.staged(UUID(second.facts["commit"])).state == "expired"
    assert _publish(lake, shop, anew) == 2
    assert rows_of(lake.table(shop.table), "total") == [(10,), (20,)]
    again = _ingest(run_job, shop, 2)
    assert (again.facts["adopted"], again.facts["state"], again.facts["snapshot"]) == (True, "published", 2)
    assert _publish(lake, shop, again) == 2
    assert len(lake.table(shop.table).history()) == 2


def test_a_commit_depends_on_the_snapshot_that_its_transform_read(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    """And not on the head that it was staged at."""
    _write_running_total(shop)
    shop.deliver([{"name": "all", "total": 10}])
    for version in (1, 2):
        _publish(lake, shop, _ingest(run_job, shop, version))
    late = _ingest(run_job, shop, 3, "--at", f"{shop.table}=1")
    assert late.facts["base_snapshot"] == 1
    with pytest.raises(ConflictError) as refused:
        _publish(lake, shop, late)
    assert refused.value.kind == "rows_added"


def test_rows_that_went_concern_a_transform_that_read_them(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    """Wherever they were: its overwrite replaces its own partition, and no other."""
    _write_running_total(shop, "overwrite")
    for day in ("2026-11-17", DAY):
        shop.deliver([{"name": "all", "total": 10}], day)
    _publish(lake, shop, _ingest(run_job, shop, 1, key="2026-11-17"))
    late = _ingest(run_job, shop, 2)
    table = lake.table(shop.table)
    table.overwrite(table.scan().to_arrow().slice(0, 0), partitions={"dt": "2026-11-17"})
    with pytest.raises(ConflictError) as refused:
        _publish(lake, shop, late)
    assert refused.value.kind == "rows_removed"
    _publish(lake, shop, _ingest(run_job, shop, 2))
    assert rows_of(table, "dt", "total") == [(date(2026, 11, 18), 10)]


def test_a_compaction_does_not_concern_a_transform_that_read_the_table(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    _write_running_total(shop)
    shop.deliver([{"name": "all", "total": 10}])
    _publish(lake, shop, _ingest(run_job, shop, 1))
    _publish(lake, shop, _ingest(run_job, shop, 2))
    staged = _ingest(run_job, shop, 3)
    assert lake.table(shop.table).compact(full=True) is not None
    adopted = _ingest(run_job, shop, 3)
    assert adopted.facts["commit"] == staged.facts["commit"]
    _publish(lake, shop, adopted)
    assert rows_of(lake.table(shop.table), "total") == [(30,)]


def test_a_table_that_is_read_is_pinned_to_the_snapshot_given(
    shop: Shop, run_job: RunJob, lake: Lake, tmp_path: Path
) -> None:
    shop.write_spec()
    for version, amount in ((1, "1.00"), (2, "2.00")):
        shop.deliver([order(1, amount=amount, updated_at=f"{DAY}T1{version}:00:00Z")])
        _publish(lake, shop, _ingest(run_job, shop, version))
    (tmp_path / "b").mkdir()
    sums = new_shop(tmp_path / "b")
    (sums.folder / "sums.sql").write_text(
        "SELECT dt, sum(amount) AS amount FROM o WHERE dt = DATE(:partition) GROUP BY 1"
    )
    sums.write_spec(
        columns="dt DATE, amount DECIMAL(12, 2)",
        primary_key=None,
        buckets=None,
        sequence_by=None,
        source=None,
        transform="sums.sql",
        reads=f"{{o: {shop.table}}}",
        write="{mode: overwrite}",
    )
    ran = _ingest(run_job, sums, 1, "--at", f"{shop.table}=1")
    snapshot = lake.staged(UUID(ran.facts["commit"])).publish()
    assert snapshot.properties[f"reads.{shop.table}"] == "1"
    assert rows_of(lake.table(sums.table), "amount") == [(Decimal("1.00"),)]
    _publish(lake, sums, _ingest(run_job, sums, 2))
    assert rows_of(lake.table(sums.table), "amount") == [(Decimal("2.00"),)]
    assert _ingest(run_job, sums, 3, "--at", f"{shop.table}=9").code == 4
    assert _ingest(run_job, sums, 3, "--at", "shop.other=1").facts["error"]["kind"] == "unread_table"


@pytest.mark.parametrize(
    ("partitions", "left"),
    [
        ("key", [(1, date(2026, 11, 17)), (3, date(2026, 11, 18))]),
        ("dynamic", [(1, date(2026, 11, 17)), (3, date(2026, 11, 18))]),
        ("all", [(3, date(2026, 11, 18))]),
    ],
)
def test_an_overwrite_replaces_what_the_spec_says(
    partitions: str, left: list[object], shop: Shop, run_job: RunJob, lake: Lake
) -> None:
    shop.write_spec()
    shop.deliver([order(1, dt="2026-11-17"), order(2)])
    _publish(lake, shop, _ingest(run_job, shop, 1))
    shop.write_spec(write=f"{{mode: overwrite, partitions: {partitions}}}")
    shop.deliver([order(3)])
    _publish(lake, shop, _ingest(run_job, shop, 2))
    assert rows_of(lake.table(shop.table), "order_id", "dt") == left


@pytest.mark.parametrize(
    "fields",
    [{"write": "{mode: overwrite}"}, {"partition": "{column: dt, every: day, strict: true}"}],
    ids=["overwrite", "strict"],
)
def test_a_row_of_another_partition_is_refused_before_anything_is_staged(
    fields: dict[str, str], shop: Shop, run_job: RunJob, lake: Lake
) -> None:
    shop.write_spec(**fields)
    file = shop.deliver([order(1), order(2, dt="2026-11-17")])
    ran = _ingest(run_job, shop, 1)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "row_outside_partition")
    assert str(file) in ran.facts["error"]["message"]
    assert "dt = 2026-11-17" in ran.facts["error"]["message"]
    file.write_text(file.read_text().replace("2026-11-17", DAY))
    assert _ingest(run_job, shop, 1).facts["adopted"] is False


# A source that is not there, is empty, or has changed


@pytest.mark.parametrize("arrival", ["{marker: _READY}", "{marker: null}"])
def test_a_source_that_has_not_arrived_ends_with_4_and_starts_nothing(
    arrival: str, shop: Shop, run_job: RunJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANDING", str(shop.landing))
    shop.write_spec(source=f"{{format: json, path: '${{LANDING}}/{{partition}}/*.json', arrival: {arrival}}}")
    if "READY" in arrival:
        shop.deliver([order(1)], marker=False)
    ran = _ingest(run_job, shop, 1)
    assert (ran.code, ran.facts["error"]["kind"]) == (4, "missing_source")
    waited_for = "_READY" if "READY" in arrival else "*.json"
    assert f"there is no file at {shop.landing}/{DAY}/{waited_for}." in ran.facts["error"]["message"]


@pytest.mark.parametrize("empty", ["no files", "files of no length", "a header only"])
@pytest.mark.parametrize(
    ("when_empty", "code", "outcome"), [("fail", 3, None), ("skip", 0, "empty"), ("publish", 0, "accept")]
)
def test_an_empty_source_is_what_the_spec_says(
    empty: str, when_empty: str, code: int, outcome: str | None, shop: Shop, run_job: RunJob, lake: Lake
) -> None:
    files = f"format: csv, path: '{shop.landing}/{{partition}}/*.csv', options: {{header: true}}"
    shop.write_spec(source=f"{{{files}, when_empty: {when_empty}}}", write="{mode: overwrite}")
    shop.deliver([]).unlink()
    if empty != "no files":
        header = "order_id,dt,status,amount,updated_at\n" if empty == "a header only" else ""
        (shop.landing / DAY / "part.csv").write_text(header)
    ran = _ingest(run_job, shop, 1)
    assert (ran.code, ran.facts.get("outcome")) == (code, outcome)
    if code:
        assert ran.facts["error"]["kind"] == "empty_source"
        assert f"{shop.landing}/{DAY}/*.csv" in ran.facts["error"]["message"]
    elif outcome == "empty":
        assert ran.facts["commit"] is None
    else:
        _publish(lake, shop, ran)
        assert lake.table(shop.table).scan().count() == 0


@pytest.mark.parametrize("files", ["json", "orc"])
@pytest.mark.parametrize(
    ("source_empty", "write_empty", "delivered", "found"),
    [
        ("skip", None, 1, "empty_transform"),
        ("publish", "fail", 1, "empty_transform"),
        ("fail", "skip", 1, "empty"),
        ("fail", "publish", 1, "accept"),
        ("fail", "publish", 0, "empty_source"),
        ("skip", "publish", 0, "empty"),
    ],
)
def test_a_transform_that_gives_no_rows_is_told_from_an_empty_source(
    files: str,
    source_empty: str,
    write_empty: str | None,
    delivered: int,
    found: str,
    shop: Shop,
    run_job: RunJob,
    spark: SparkSession,
) -> None:
    (shop.folder / "none.sql").write_text("SELECT * FROM source WHERE amount < 0")
    shop.write_spec(
        source=f"{{format: {files}, path: '{shop.landing}/{{partition}}/*.{files}', when_empty: {source_empty}}}",
        transform="none.sql",
        write="{mode: overwrite}" if write_empty is None else f"{{mode: overwrite, when_empty: {write_empty}}}",
    )
    file = shop.deliver([order(1)])
    if files == "orc":
        rows = spark.read.schema(FIELDS["columns"]).json(str(file))
        rows.limit(delivered).coalesce(1).write.mode("append").orc(str(file.parent))
    elif not delivered:
        file.write_text("")
    ran = _ingest(run_job, shop, 1)
    assert (ran.facts["error"]["kind"] if ran.code else ran.facts["outcome"]) == found, ran.err
    if found == "empty_source":
        assert "The source of partition" in ran.err
    elif found == "empty_transform":
        assert f"The transform of {shop.table} gives no rows for partition {DAY}" in ran.err
    elif found == "empty":
        assert ("the source has no rows" if not delivered else "the transform gives no rows") in ran.out


@pytest.mark.parametrize(("write_empty", "found"), [("null", "accept"), ("skip", "empty"), ("fail", "empty_transform")])
def test_a_table_made_from_others_may_have_no_rows_unless_its_spec_says_otherwise(
    write_empty: str, found: str, shop: Shop, run_job: RunJob, lake: Lake
) -> None:
    lake.create_table(f"{shop.table}_in", FIELDS["columns"])
    (shop.folder / "copy.sql").write_text("SELECT * FROM o")
    shop.write_spec(
        source=None,
        transform="copy.sql",
        reads=f"{{o: {shop.table}_in}}",
        write=f"{{mode: overwrite, when_empty: {write_empty}}}",
    )
    ran = _ingest(run_job, shop, 1)
    assert (ran.facts["error"]["kind"] if ran.code else ran.facts["outcome"]) == found, ran.err


def test_a_new_column_in_the_source_is_an_error_or_extends_the_table(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec()
    shop.deliver([order(1, channel="web")])
    ran = _ingest(run_job, shop, 1)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "unknown_column")
    assert "'channel'" in ran.facts["error"]["message"]
    shop.write_spec(write="{mode: upsert, merge_schema: true}")
    _publish(lake, shop, _ingest(run_job, shop, 1))
    assert rows_of(lake.table(shop.table), "channel") == [("web",)]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"order_id": None}, "order_id"),
        ({"amount": "a lot"}, "amount"),
    ],
)
def test_rows_that_do_not_fit_are_told_with_file_and_column(
    change: dict[str, object], named: str, shop: Shop, run_job: RunJob
) -> None:
    shop.write_spec()
    file = shop.deliver([order(1), order(2, **change)])
    ran = _ingest(run_job, shop, 1)
    assert ran.code == 3
    assert str(file) in ran.facts["error"]["message"]
    assert named in ran.facts["error"]["message"]


def test_options_of_the_table_follow_the_spec(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec(options="{row_group_rows: 10}")
    shop.deliver([order(1)])
    assert _ingest(run_job, shop, 1).code == 0
    shop.write_spec(options="{read_batch_rows: 20}")
    assert _ingest(run_job, shop, 1).code == 0
    assert lake.table(shop.table).options == {"row_group_rows": 10, "read_batch_rows": 20}


def test_a_column_that_the_table_needs_and_the_source_lost_is_named(shop: Shop, run_job: RunJob) -> None:
    shop.write_spec()
    row = order(1)
    del row["updated_at"]
    shop.deliver([row])
    ran = _ingest(run_job, shop, 1)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "missing_column")
    assert "'updated_at'" in ran.facts["error"]["message"]


# A spec that has changed since the table was made


def test_nullable_columns_and_wider_types_of_the_spec_reach_the_table_if_that_is_allowed(
    shop: Shop, run_job: RunJob, lake: Lake
) -> None:
    shop.write_spec()
    shop.deliver([order(1)])
    assert _ingest(run_job, shop, 1).code == 0
    columns = "order_id BIGINT, dt DATE, status STRING, amount DECIMAL(12, 2), updated_at TIMESTAMP, note STRING"
    shop.write_spec(columns=columns)
    ran = _ingest(run_job, shop, 2)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "table_differs")
    assert "column 'note' (string) is declared, and the table lacks it" in ran.facts["error"]["message"]
    assert "column 'amount' is declared as decimal(12,2), which is wider" in ran.facts["error"]["message"]
    shop.write_spec(columns=columns, write="{mode: upsert, merge_schema: true}")
    shop.deliver([order(1, amount="9999999999.50", note="big")])
    _publish(lake, shop, _ingest(run_job, shop, 2))
    assert rows_of(lake.table(shop.table), "amount", "note") == [(Decimal("9999999999.50"), "big")]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"columns": "order_id BIGINT, dt DATE, status STRING, amount DOUBLE, updated_at TIMESTAMP"},
            "declared as double",
        ),
        (
            {"columns": "order_id BIGINT, dt DATE, status STRING, updated_at TIMESTAMP"},
            "the table has the column 'amount'",
        ),
        ({"buckets": "4"}, "buckets are declared as 4, and the table's are 2"),
        ({"buckets": "dynamic"}, "buckets are declared as dynamic, and the table's are 2"),
        (
            {"primary_key": "[order_id, status]"},
            "primary_key is declared as (order_id, status), and the table's is (orde",
        ),
        ({"partition_by": "[dt, status]"}, "partition_by is declared as (dt, status), and the table's is (dt)"),
        ({"sequence_by": None}, "sequence_by is declared as (), and the table's is (updated_at)"),
    ],
)
def test_any_other_change_is_refused_and_told_exactly(
    fields: dict[str, str | None], said: str, shop: Shop, run_job: RunJob
) -> None:
    shop.write_spec()
    shop.deliver([order(1)])
    assert _ingest(run_job, shop, 1).code == 0
    shop.write_spec(**fields)
    ran = _ingest(run_job, shop, 2)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "table_differs")
    assert said in ran.facts["error"]["message"]
    assert str(shop.spec) in ran.facts["error"]["message"]


# Done again


def test_the_same_work_again_takes_up_the_staged_commit(shop: Shop, run_job: RunJob) -> None:
    shop.write_spec()
    shop.deliver([order(1)])
    first = _ingest(run_job, shop, 1)
    shop.deliver([order(2), order(3)])
    again = _ingest(run_job, shop, 1)
    assert (again.facts["commit"], again.facts["adopted"]) == (first.facts["commit"], True)
    other = _ingest(run_job, shop, 2)
    assert other.facts["commit"] != first.facts["commit"]
    assert other.facts["rows_in"] == 2


def test_work_that_was_published_is_told_with_its_snapshot(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec()
    shop.deliver([order(1)])
    first = _ingest(run_job, shop, 1)
    snapshot = _publish(lake, shop, first)
    again = _ingest(run_job, shop, 1)
    assert (again.facts["state"], again.facts["snapshot"], again.facts["adopted"]) == ("published", snapshot, True)


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_what_a_spec_adds_up_is_added_once(shop: Shop, run_job: RunJob, lake: Lake, engine: str) -> None:
    merge = "{engine: aggregate, functions: {amount: sum, status: listagg}}"
    shop.write_spec(merge=merge, sequence_by=None, engine=engine)
    shop.deliver([order(1), order(1, amount=1.25, status="paid"), order(2)])
    first = _ingest(run_job, shop, 1)
    snapshot = _publish(lake, shop, first)
    assert _ingest(run_job, shop, 1).facts["snapshot"] == snapshot
    columns = ("order_id", "amount", "status")
    assert rows_of(lake.table(shop.table), *columns) == [
        (1, Decimal("10.75"), "open,paid"),
        (2, Decimal("9.50"), "open"),
    ]
    shop.deliver([order(2, amount=1)])
    _publish(lake, shop, _ingest(run_job, shop, 2))
    assert rows_of(lake.table(shop.table), *columns)[1] == (2, Decimal("10.50"), "open,open")


def test_work_that_later_work_made_obsolete_is_told_as_published(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec()
    shop.deliver([order(1)])
    snapshot = _publish(lake, shop, _ingest(run_job, shop, 5))
    late = _ingest(run_job, shop, 4)
    assert (late.facts["state"], late.facts["snapshot"]) == ("published", snapshot)


NEXT_DAY = "2026-11-19"


@pytest.mark.parametrize("is_published", [False, True])
def test_a_key_that_stands_for_another_partition_is_no_key_for_this_one(
    shop: Shop, run_job: RunJob, lake: Lake, is_published: bool
) -> None:
    shop.write_spec()
    shop.deliver([order(1)])
    shop.deliver([order(2, dt=NEXT_DAY)], key=NEXT_DAY)
    first = _ingest(run_job, shop, 1)
    if is_published:
        _publish(lake, shop, first)
    refused = _ingest(run_job, shop, 1, key=NEXT_DAY)
    assert (refused.code, refused.facts["error"]["kind"]) == (3, "key_reused")
    assert f"stands for partition {DAY}, not for {NEXT_DAY}" in refused.facts["error"]["message"]
    _publish(lake, shop, _ingest(run_job, shop, 2, key=NEXT_DAY))


def test_a_key_of_an_older_version_that_another_partition_made_obsolete_is_refused(
    shop: Shop, run_job: RunJob, lake: Lake
) -> None:
    shop.write_spec()
    shop.deliver([order(1)])
    shop.deliver([order(2, dt=NEXT_DAY)], key=NEXT_DAY)
    _publish(lake, shop, _ingest(run_job, shop, 5))
    refused = _ingest(run_job, shop, 4, key=NEXT_DAY)
    assert (refused.code, refused.facts["error"]["kind"]) == (3, "key_reused")
    assert "version 5 of 'test' stands for partition" in refused.facts["error"]["message"]


def test_a_commit_that_another_partition_made_obsolete_is_not_told_as_published(
    shop: Shop, run_job: RunJob, lake: Lake
) -> None:
    shop.write_spec()
    shop.deliver([order(1)])
    shop.deliver([order(2, dt=NEXT_DAY)], key=NEXT_DAY)
    early, late = _ingest(run_job, shop, 1), _ingest(run_job, shop, 2, key=NEXT_DAY)
    _publish(lake, shop, late)
    refused = run_job("publish", "--commit", early.facts["commit"])
    assert (refused.code, refused.facts["error"]["kind"]) == (3, "key_reused")
    assert lake.table(shop.table).scan().count() == 1


def test_a_key_stands_for_the_rows_as_the_spec_had_them_made(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec()
    shop.deliver([order(1)])
    first = _ingest(run_job, shop, 1)
    shop.write_spec(retries="{count: 5}", description="One row an order.")
    assert _ingest(run_job, shop, 1).facts["commit"] == first.facts["commit"]
    (shop.folder / "open.sql").write_text("SELECT * FROM source WHERE status = 'open'")
    shop.write_spec(transform="open.sql")
    refused = _ingest(run_job, shop, 1)
    assert (refused.code, refused.facts["error"]["kind"]) == (3, "key_reused")
    assert "as the spec had it made before it was changed" in refused.facts["error"]["message"]


def test_a_key_of_another_write_is_no_key_of_an_ingest(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec()
    shop.deliver([order(1)])
    _publish(lake, shop, _ingest(run_job, shop, 1))
    rows = lake.table(shop.table).scan().to_arrow()
    lake.table(shop.table).upsert(rows, idempotency_key=("test", 2))
    refused = _ingest(run_job, shop, 2)
    assert (refused.code, refused.facts["error"]["kind"]) == (3, "key_reused")
    assert "a write that is no ingest" in refused.facts["error"]["message"]


def test_a_commit_that_was_discarded_stays_so_for_its_key(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec()
    shop.deliver([order(1)])
    first = _ingest(run_job, shop, 1)
    lake.staged(UUID(first.facts["commit"])).reject("wrong day")
    again = _ingest(run_job, shop, 1)
    assert (again.code, again.facts["state"], again.facts["outcome"]) == (0, "rejected", "reject")
    assert again.facts["commit"] == first.facts["commit"]
    assert _ingest(run_job, shop, 2).facts["state"] == "staged"


def test_a_run_that_is_cleared_does_not_append_its_rows_twice(shop: Shop, run_job: RunJob, lake: Lake) -> None:
    shop.write_spec(write="{mode: append}")
    shop.deliver([order(1)])
    discarded = _ingest(run_job, shop, 1)
    lake.staged(UUID(discarded.facts["commit"])).reject("wrong day")
    snapshot = _publish(lake, shop, _ingest(run_job, shop, 2))
    refused = _ingest(run_job, shop, 3)
    assert (refused.code, refused.facts["error"]["kind"]) == (3, "appended_already")
    assert f"in snapshot {snapshot}" in refused.err
    assert lake.table(shop.table).scan().count() == 1
    other_day = "2026-11-19"
    shop.deliver([order(2, dt=other_day)], key=other_day)
    _publish(lake, shop, _ingest(run_job, shop, 3, key=other_day))
    assert lake.table(shop.table).scan().count() == 2


def test_a_commit_that_still_waits_is_given_up_for_that_of_the_cleared_run(
    shop: Shop, run_job: RunJob, lake: Lake
) -> None:
    source = f"{{format: json, path: '{shop.landing}/{{partition}}/*.json', when_empty: publish}}"
    shop.write_spec(write="{mode: append}", source=source)
    shop.deliver([])
    _publish(lake, shop, _ingest(run_job, shop, 1))
    shop.deliver([order(1)])
    waiting = lake.staged(UUID(_ingest(run_job, shop, 2).facts["commit"]))
    rejected = lake.staged(UUID(_ingest(run_job, shop, 3).facts["commit"]))
    assert waiting.state == "expired"
    rejected.reject("looks wrong")
    cleared = _ingest(run_job, shop, 4)
    with pytest.raises(ConflictError, match="expired"):
        rejected.publish(by="ann", reason="It was right.")
    _publish(lake, shop, cleared)
    assert lake.table(shop.table).scan().count() == 1


def test_of_two_runs_of_the_same_work_at_once_one_is_published(shop: Shop, lake: Lake, spark: SparkSession) -> None:
    """The later takes over; or it takes up what the other has staged. Either may be told so."""
    shop.write_spec()
    shop.deliver([order(1), order(2)])
    arguments = ["--spec", str(shop.spec), "--partition", DAY, "--idempotency-key", "twice:1"]
    arguments += ["--warehouse", lake.settings.warehouse, "--catalog", str(lake.settings.catalog)]

    def attempt(_: int) -> Outcome | None:
        try:
            return ingest_partition(understood("ingest", arguments), spark)
        except ConflictError as conflict:
            if conflict.kind != "fenced":
                raise
            return None

    with ThreadPoolExecutor(4) as pool:
        attempts = [told for told in pool.map(attempt, range(4)) if told is not None]
    assert attempts
    published = set()
    for commit in {told.facts()["commit"] for told in attempts}:
        with suppress(ConflictError):
            published.add(lake.staged(commit).publish().id)
    assert published == {1}
    assert len(lake.table(shop.table).history()) == 1
    assert rows_of(lake.table(shop.table), "order_id") == [(1,), (2,)]


# Wrong arguments, wrong specs


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--partition", DAY, "--idempotency-key", "a:1"], "--spec"),
        (["--spec", "s", "--partition", DAY], "--idempotency-key"),
        (["--spec", "s", "--partition", DAY, "--idempotency-key", "a"], "APP:VERSION"),
        (["--spec", "s", "--partition", DAY, "--idempotency-key", "a:1", "--at", "t"], "NAME=VALUE"),
        (["--spec", "s", "--partition", DAY, "--idempotency-key", "a:1", "--report", "/no/such/r"], "does not exist"),
    ],
)
def test_wrong_arguments_end_with_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        ingest.main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_wrong_spec_or_key_ends_with_3(shop: Shop, run_job: RunJob) -> None:
    shop.write_spec(buckets="3")
    ran = _ingest(run_job, shop, 1)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "invalid_spec")
    shop.write_spec()
    ran = _ingest(run_job, shop, 1, key="2026-11")
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "invalid_partition_key")


def test_a_format_that_nobody_reads_is_named_without_a_trace(shop: Shop, run_job: RunJob) -> None:
    shop.write_spec(source=f"{{format: jsn, path: '{shop.landing}/{{partition}}/*.json'}}")
    shop.deliver([order(1)])
    ran = _ingest(run_job, shop, 1)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "spark_data_source_not_found")
    assert "jsn" in ran.facts["error"]["message"]
    assert len(ran.err.splitlines()) < 6


def test_a_variable_that_is_not_set_is_named(shop: Shop, run_job: RunJob) -> None:
    shop.write_spec(source="{path: '${LAKE_VAR_NOWHERE}/{partition}/'}")
    ran = _ingest(run_job, shop, 1)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "variable_not_set")
    assert "LAKE_VAR_NOWHERE" in ran.facts["error"]["message"]


# Dated full copies


def test_each_day_puts_its_full_copy_in_place_of_the_last_and_an_older_one_is_refused(
    shop: Shop, run_job: RunJob, lake: Lake
) -> None:
    shop.write_spec(
        partition_by=None, partition="{every: day, column: null}", write="{mode: overwrite, partitions: all}"
    )
    for day, numbers in (("2026-11-17", (1, 2)), (DAY, (2, 3))):
        shop.deliver([order(number) for number in numbers], key=day)

    def found() -> list[int]:
        return [row[0] for row in rows_of(lake.table(shop.table), "order_id")]

    for version, (day, expected) in enumerate([("2026-11-17", [1, 2]), (DAY, [2, 3]), (DAY, [2, 3])], start=1):
        _publish(lake, shop, _ingest(run_job, shop, version, key=day))
        assert found() == expected
    refused = _ingest(run_job, shop, 4, key="2026-11-17")
    assert (refused.code, refused.facts["error"]["kind"], found()) == (3, "older_copy", [2, 3])


def test_of_two_full_copies_at_once_the_older_does_not_take_the_place_of_the_newer(
    shop: Shop, run_job: RunJob, lake: Lake
) -> None:
    shop.write_spec(
        partition_by=None, partition="{every: day, column: null}", write="{mode: overwrite, partitions: all}"
    )
    shop.deliver([order(1)], key="2026-11-17")
    shop.deliver([order(2)])
    older = _ingest(run_job, shop, 1, key="2026-11-17")
    newer = run_job("ingest", "--spec", shop.spec, "--partition", DAY, "--idempotency-key", "other:1")
    _publish(lake, shop, newer)
    with pytest.raises(ConflictError):
        _publish(lake, shop, older)
    assert rows_of(lake.table(shop.table), "order_id") == [(2,)]
