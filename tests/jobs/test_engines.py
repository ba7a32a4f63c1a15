"""The same specs on both engines: the same rows, commits, verdicts and refusals."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lakelib import Lake
from lakelib.model.gate import Verdict
from tests.jobs.conftest import Ran, RunJob, rows_of
from tests.jobs.ingest_support import DAY, Shop, new_shop, order

STATUS = {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "status", "value_set": ["open", "paid"]}}
ONCE = {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "order_id"}, "scope": "merged"}
TIDY = "SELECT order_id, dt, lower(trim(status)) AS status, amount, updated_at FROM source"
DAILY = {
    "columns": "dt DATE, n BIGINT, amount DECIMAL(20, 2), top STRING",
    "primary_key": None,
    "buckets": None,
    "sequence_by": None,
    "write": "{mode: overwrite}",
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A spec, and the days that are delivered one after the other; each day is published if it can be."""

    days: Sequence[Sequence[Mapping[str, Any]]]
    fields: Mapping[str, str | None] = field(default_factory=dict)
    transform: str | None = None
    checks: Sequence[Mapping[str, Any]] = ()
    deliver: Callable[[Shop, Sequence[Mapping[str, Any]], str], object] = lambda shop, rows, key: shop.deliver(
        rows, key
    )


def _as_csv(shop: Shop, rows: Sequence[Mapping[str, Any]], key: str) -> None:
    shop.deliver([], key).unlink()
    lines = [",".join("" if value is None else str(value) for value in row.values()) for row in rows]
    text = "\n".join([",".join(rows[0]) if rows else "order_id", *lines]) + "\n"
    (shop.landing / key / "part.json").write_text(text)


def _as_parquet(shop: Shop, rows: Sequence[Mapping[str, Any]], key: str) -> None:
    """Two files: the later one is newer."""
    shop.deliver([], key).unlink()
    half = len(rows) // 2
    for number, part in enumerate((rows[:half], rows[half:])):
        pq.write_table(pa.Table.from_pylist(list(part)), shop.landing / key / f"part-{number}.json")


CSV = {"source": "{format: csv, path: '$LANDING/{partition}/*.json', options: {header: true}}"}
SPARKS = "{format: json, path: '$LANDING/{partition}/*.json', options: {multiLine: true}}"
PARQUET = {"source": "{format: parquet, path: '$LANDING/{partition}/*.json'}"}

CASES = {
    "files as they are": Case(days=[[order(1), order(2, dt="2026-11-17")], [order(2, status="paid", amount=3)]]),
    "of two rows of a key the later": Case(
        days=[[order(1, status=f"s{n}") for n in range(5)]], fields={"sequence_by": None}
    ),
    "a transform keeps the order": Case(
        days=[[order(1, status=f"S{n}") for n in range(5)]], fields={"sequence_by": None}, transform=TIDY
    ),
    "a join keeps the order": Case(
        days=[[order(1, status=f"S{n}") for n in range(5)]],
        fields={"sequence_by": None},
        transform="SELECT s.order_id, s.dt, s.status, s.amount, s.updated_at FROM source s"
        " LEFT JOIN (SELECT status, count(*) AS n FROM source GROUP BY status) c ON c.status = s.status",
    ),
    "the higher sequence": Case(days=[[order(1, updated_at=f"{DAY}T1{n}:00:00Z", amount=n) for n in (3, 5, 4)]]),
    "csv": Case(days=[[order(1), order(2, status="ä, ö".replace(",", ""))]], fields=CSV, deliver=_as_csv),
    "csv with a transform": Case(days=[[order(1, status=None), order(2)]], fields=CSV, deliver=_as_csv, transform=TIDY),
    "parquet": Case(days=[[order(1), order(1, amount=3.5), order(2)]], fields=PARQUET, deliver=_as_parquet),
    "parquet with a transform": Case(
        days=[[order(1), order(1, amount=3.5), order(2)]], fields=PARQUET, deliver=_as_parquet, transform=TIDY
    ),
    "accepted": Case(days=[[order(1), order(2, status=" PAID ")]], transform=TIDY, checks=[STATUS, ONCE]),
    "warned": Case(days=[[order(1, status="odd")]], checks=[{**STATUS, "severity": "warning"}, ONCE]),
    "rejected": Case(days=[[order(1), order(2, status="odd"), order(3, status=None)]], checks=[STATUS, ONCE]),
    "judged on top": Case(days=[[order(1)], [order(1, amount=2), order(2)]], checks=[ONCE]),
    "append": Case(
        days=[[order(1)], [order(1)]],
        fields={"primary_key": None, "buckets": None, "sequence_by": None, "write": "{mode: append}"},
    ),
    "overwrite by key": Case(days=[[order(1), order(2)], [order(3)]], fields={"write": "{mode: overwrite}"}),
    "aggregated": Case(
        days=[[order(1), order(2, amount=1.25), order(3, status=None)]],
        fields=DAILY,
        transform="SELECT DATE(:partition) AS dt, count(*) AS n, sum(CAST(amount AS DECIMAL(10, 2))) AS amount,"
        " max(status) AS top FROM source WHERE dt = :partition",
    ),
    "new columns": Case(
        days=[[order(1)], [order(2, colour="red")]],
        fields={"write": "{merge_schema: true}"},
    ),
    "new columns by a transform": Case(
        days=[[order(1)]],
        fields={"write": "{merge_schema: true}"},
        transform="SELECT *, order_id + 1 AS next FROM source",
    ),
    "the key's value where the column lacks": Case(days=[[{"order_id": 1, "updated_at": f"{DAY}T10:00:00Z"}]]),
    # Refusals
    "a row of another partition": Case(
        days=[[order(1), order(2, dt="2026-11-17")]], fields={"partition": "{column: dt, every: day, strict: true}"}
    ),
    "a row of another partition, made": Case(
        days=[[order(1)]],
        fields={"partition": "{column: dt, every: day, strict: true}"},
        transform="SELECT order_id, date_sub(dt, 1) AS dt, status, amount, updated_at FROM source",
    ),
    "a column that a file lacks": Case(days=[[{"order_id": 1, "dt": DAY}]]),
    "a column that a query lacks": Case(days=[[order(1)]], transform="SELECT order_id, dt, status, amount FROM source"),
    "a column that nobody knows": Case(days=[[order(1)]], transform=TIDY.replace("amount", "amount, 1 AS more")),
    "a value that does not fit": Case(days=[[order(1, amount="much")]]),
    "a value that is made and does not fit": Case(
        days=[[order(1)]], transform=TIDY.replace("amount", "order_id * 100000000000 AS amount")
    ),
    "a division by zero": Case(
        days=[[order(1)]], transform=TIDY.replace("amount", "CAST(10 / (order_id - 1) AS INT) AS amount")
    ),
    "an overflow": Case(
        days=[[order(1)]], transform=TIDY.replace("order_id", "order_id + 9223372036854775807 AS order_id")
    ),
    "a day that there is not": Case(days=[[order(1)]], transform=TIDY.replace("dt", "DATE('2026-02-30') AS dt")),
    "a key that is NULL": Case(
        days=[[order(1)]], transform=TIDY.replace("order_id", "nullif(order_id, 1) AS order_id")
    ),
    "no rows": Case(days=[[]]),
    "no rows left": Case(days=[[order(1)]], transform=f"{TIDY} WHERE order_id > 5"),
    "no rows left, skipped": Case(
        days=[[order(1)]], fields={"write": "{when_empty: skip}"}, transform=f"{TIDY} WHERE order_id > 5"
    ),
    "no rows left, published": Case(
        days=[[order(1)]], fields={"write": "{when_empty: publish}"}, transform=f"{TIDY} WHERE order_id > 5"
    ),
    "a wrong gate": Case(days=[[order(1)]], checks=[{**STATUS, "kwargs": {"column": "none", "value_set": [1]}}]),
}


@pytest.fixture(autouse=True)
def _utc(spark: SparkSession) -> Iterator[None]:
    """As the sessions of jobs are."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


def _shop(folder: Path, case: Case, engine: str) -> Shop:
    folder.mkdir()
    shop = new_shop(folder)
    fields = {name: value and value.replace("$LANDING", str(shop.landing)) for name, value in case.fields.items()}
    if case.transform is not None:
        (shop.folder / "new.sql").write_text(case.transform)
        fields["transform"] = "new.sql"
    if case.checks:
        fields["gate"] = shop.write_gate(*case.checks)
    shop.write_spec(**fields, engine=engine)
    return shop


def _ingest(run_job: RunJob, shop: Shop, version: int, *more: object, key: str = DAY) -> Ran:
    return run_job("ingest", "--spec", shop.spec, "--partition", key, "--idempotency-key", f"e:{version}", *more)


def _told(ran: Ran, lake: Lake) -> dict[str, Any]:
    """What came of a run, but for names, numbers and times of its own."""
    wanted = ("exit_code", "outcome", "state", "base_snapshot", "rows_in", "adopted", "snapshot")
    kind = ran.facts.get("error", {}).get("kind", "")
    told = {name: ran.facts.get(name) for name in wanted}
    told["error"] = "transform_failed" if kind.startswith("spark_") else kind
    if ran.facts.get("commit"):
        verdict = lake.staged(UUID(ran.facts["commit"])).verdict
        told["verdict"] = verdict and _said(verdict)
    return told


def _said(verdict: Verdict) -> object:
    checks = [replace(check, name="") for check in verdict.checks]
    return verdict.outcome, verdict.base_snapshot_id, checks


def _carried_out(case: Case, engine: str, folder: Path, run_job: RunJob, lake: Lake) -> list[Any]:
    shop = _shop(folder / engine, case, engine)
    told: list[Any] = []
    for version, rows in enumerate(case.days):
        case.deliver(shop, rows, DAY)
        ran = _ingest(run_job, shop, version)
        if ran.code == 0:
            assert ran.facts["engine"] == engine
        told.append(_told(ran, lake))
        if ran.facts.get("state") == "staged":
            snapshot = lake.staged(UUID(ran.facts["commit"])).publish()
            counted = ("rows_in", "deletes_written", "partitions", "files_removed")
            told.append((snapshot.kind, {name: snapshot.summary[name] for name in counted}, [*snapshot.properties]))
            table = lake.table(shop.table)
            told += [str(table.schema), rows_of(table)]
    return told


@pytest.mark.parametrize("name", CASES)
def test_both_engines_do_the_same(name: str, run_job: RunJob, lake: Lake, tmp_path: Path) -> None:
    on_spark = _carried_out(CASES[name], "spark", tmp_path, run_job, lake)
    assert _carried_out(CASES[name], "local", tmp_path, run_job, lake) == on_spark


@pytest.mark.parametrize("engine", ["spark", "local"])
def test_a_running_total_reads_its_own_table(engine: str, run_job: RunJob, lake: Lake, tmp_path: Path) -> None:
    case = Case(
        days=(),
        fields={"columns": "name STRING, dt DATE, total BIGINT", "primary_key": "[name, dt]", "sequence_by": None},
        transform="SELECT s.name, DATE(:partition) AS dt, s.total + coalesce(t.total, 0) AS total FROM source s"
        " LEFT JOIN (SELECT name, max(total) AS total FROM totals GROUP BY name) t ON s.name = t.name",
    )
    shop = _shop(tmp_path / engine, case, engine)
    with shop.spec.open("a") as spec:
        spec.write(f"reads: {{totals: {shop.table}}}\n")
    for version, day in enumerate(("2026-11-17", DAY)):
        shop.deliver([{"name": "all", "total": 10}], day)
        ran = _ingest(run_job, shop, version, key=day)
        assert ran.code == 0, ran.err
        snapshot = lake.staged(UUID(ran.facts["commit"])).publish()
        assert snapshot.properties[f"reads.{shop.table}"] == str(version)
    assert rows_of(lake.table(shop.table), "total") == [(10,), (20,)]
    late = _ingest(run_job, shop, 5, "--at", f"{shop.table}=1")
    assert run_job("publish", "--commit", late.facts["commit"]).facts["error"]["kind"] == "rows_added"


def test_of_a_table_that_is_read_only_the_rows_that_count_are(run_job: RunJob, lake: Lake, tmp_path: Path) -> None:
    shop = _shop(tmp_path / "orders", Case(days=()), "local")
    for version, day in enumerate(("2026-11-16", "2026-11-17", DAY)):
        shop.deliver([order(version, dt=day)], day)
        lake.staged(UUID(_ingest(run_job, shop, version, key=day).facts["commit"])).publish()
    text = (
        "SELECT dt, count(*) AS n, sum(amount) AS amount, max(status) AS top FROM o WHERE dt = DATE(:partition)"
        " GROUP BY dt"
    )
    sums = _shop(tmp_path / "sums", Case(days=(), fields={**DAILY, "source": None}, transform=text), "auto")
    whole = sum(file.size_bytes for file in lake.table(shop.table).files())
    with sums.spec.open("a") as spec:
        spec.write(f"reads: {{o: {shop.table}}}\nlocal: {{most_source_bytes: {whole // 2}}}\n")
    ran = _ingest(run_job, sums, 1)
    assert (ran.code, ran.facts.get("engine")) == (0, "local"), ran.err
    lake.staged(UUID(ran.facts["commit"])).publish()
    assert [row[1] for row in rows_of(lake.table(sums.table))] == [1]
    (sums.folder / "new.sql").write_text(text.replace("WHERE dt", "WHERE dt IS NULL OR dt"))
    ran = _ingest(run_job, sums, 2)
    assert (ran.code, ran.facts.get("engine")) == (0, "spark"), ran.err
    assert "to read, more than" in ran.facts["engine_why"]


# Which engine, and why


@pytest.mark.parametrize(
    ("fields", "transform", "why"),
    [
        ({}, None, "to read, and up to 134.2 MB"),
        ({}, TIDY, "to read, and up to 134.2 MB"),
        ({"local": "{most_source_bytes: 50}"}, None, "more than 50 bytes (local.most_source_bytes)"),
        ({}, TIDY.replace("lower(", "initcap("), "it takes Spark for 'INITCAP(TRIM(status))'"),
        ({"spark": "{conf: {spark.sql.ansi.enabled: false}}"}, TIDY, "under the setting spark.sql.ansi.enabled"),
        ({"source": SPARKS}, None, "multiLine=true"),
        ({}, TIDY.replace("amount", "amount + CAST(status AS INT) AS amount"), "is not plain"),
        ({}, TIDY.replace("status", "nothing"), "'nothing'"),
    ],
)  # fmt: skip
def test_auto_says_what_it_chose_and_why(
    fields: dict[str, str], transform: str | None, why: str, run_job: RunJob, lake: Lake, tmp_path: Path
) -> None:
    case = Case(days=(), fields=fields, transform=transform, checks=[ONCE])
    shop = _shop(tmp_path / "auto", case, "auto")
    shop.deliver([order(1)])
    report = tmp_path / "report.html"
    ran = _ingest(run_job, shop, 1, "--report", report)
    is_local = "up to" in why
    assert f"engine {'local' if is_local else 'spark'}: " in ran.err
    assert why in ran.err
    if ran.code == 0:
        assert (ran.facts["engine"], why in ran.facts["engine_why"]) == ("local" if is_local else "spark", True)
        verdict = lake.staged(UUID(ran.facts["commit"])).verdict
        assert verdict is not None
        assert verdict.engine == ("arrow" if is_local else "spark")
        assert "Rows made by" in report.read_text()
        assert f"{ran.facts['engine']}: " in report.read_text()


@pytest.mark.parametrize(
    ("fields", "transform"),
    [
        ({}, TIDY.replace("lower(", "initcap(")),
        ({"spark": "{conf: {spark.sql.ansi.enabled: false}}"}, TIDY),
        ({"source": "{format: orc, path: '$LANDING/{partition}/*.json'}"}, None),
    ],
)
def test_local_refuses_what_takes_spark_before_anything_is_made(
    fields: dict[str, str], transform: str | None, run_job: RunJob, lake: Lake, tmp_path: Path
) -> None:
    shop = _shop(tmp_path / "local", Case(days=(), fields=fields, transform=transform), "local")
    shop.deliver([order(1)])
    ran = _ingest(run_job, shop, 1)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "only_spark")
    assert str(shop.spec) in ran.facts["error"]["message"]
    assert shop.table.partition(".")[2] not in lake.tables("shop")


def test_local_refuses_a_row_that_takes_spark_and_leaves_nothing(run_job: RunJob, lake: Lake, tmp_path: Path) -> None:
    shop = _shop(tmp_path / "local", Case(days=(), transform=TIDY), "local")
    shop.deliver([order(1), order(2, status="İstanbul")])
    ran = _ingest(run_job, shop, 1)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "only_spark")
    assert "lower of letters" in ran.facts["error"]["message"]
    assert list((Path(lake.warehouse.removeprefix("file://")) / "shop").rglob(f"*{shop.table[5:]}*/**/*.parquet")) == []


def test_a_query_that_binds_to_nothing_is_said_with_the_spec(run_job: RunJob, tmp_path: Path) -> None:
    """Where all columns are declared, before the source is waited for."""
    source = "{format: json, path: '$LANDING/{partition}/*.json', columns: 'order_id BIGINT, dt DATE'}"
    shop = _shop(tmp_path / "local", Case(days=(), fields={"source": source}, transform=TIDY), "local")
    ran = _ingest(run_job, shop, 1)
    assert (ran.code, ran.facts["error"]["kind"]) == (3, "only_spark")
    assert "'status'" in ran.facts["error"]["message"]


def test_another_engine_is_no_other_work(run_job: RunJob, tmp_path: Path) -> None:
    shop = _shop(tmp_path / "both", Case(days=(), transform=TIDY), "local")
    shop.deliver([order(1)])
    first = _ingest(run_job, shop, 1)
    shop.spec.write_text(shop.spec.read_text().replace("engine: local", "engine: spark"))
    again = _ingest(run_job, shop, 1)
    assert (again.facts["adopted"], again.facts["commit"]) == (True, first.facts["commit"])
    assert again.facts["engine"] is None


def test_a_stale_verdict_is_made_again_by_the_same_engine(run_job: RunJob, lake: Lake, tmp_path: Path) -> None:
    shop = _shop(tmp_path / "auto", Case(days=(), checks=[ONCE]), "auto")
    commits = []
    for number in (1, 2):
        shop.deliver([order(number)])
        key = f"of {number}:1"
        ran = run_job("ingest", "--spec", shop.spec, "--partition", DAY, "--idempotency-key", key)
        commits.append(ran.facts["commit"])
    for commit in commits:
        ran = run_job("publish", "--commit", commit, "--spec", shop.spec)
        assert ran.code == 0, ran.err
    verdict = lake.staged(UUID(commits[1])).verdict
    assert verdict is not None
    assert (verdict.engine, verdict.base_snapshot_id) == ("arrow", 1)
