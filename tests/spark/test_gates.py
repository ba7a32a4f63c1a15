"""Promises of gates on Spark: what they see is what is in process, and the session is left as it was."""

from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelib import ConflictError, InvalidInputError, Lake, RejectedError
from lakelib.model.gate import Outcome, Verdict
from lakelib.specs.suite import parse_suite
from tests.spark.conftest import NewTable

SCHEMA = "id BIGINT, dt DATE, at TIMESTAMP, amount DECIMAL(10, 2)"
SUITE = parse_suite(
    """
    name: orders
    expectations:
      - {type: expect_column_values_to_not_be_null, kwargs: {column: amount}}
      - {type: expect_column_values_to_be_between, kwargs: {column: at, min_value: "2026-11-18T00:00:00Z"}}
      - {type: expect_column_max_to_be_between, kwargs: {column: at, max_value: "2026-11-18T23:59:59Z"}}
      - {type: expect_column_values_to_be_unique, kwargs: {column: amount}, scope: merged, severity: warning}
      - {type: expect_table_row_count_to_be_between, kwargs: {min_value: 1}, scope: table}
      - {type: expect_table_column_count_to_equal, kwargs: {value: 4}}
    """
)


def frame(spark: SparkSession, *rows: tuple[int, str, str, str | None]) -> Any:
    """Rows; their moments are UTC."""
    text = spark.createDataFrame(list(rows), "id BIGINT, dt STRING, at STRING, amount STRING")
    return text.selectExpr(
        "id", "cast(dt as date) dt", "cast(at as timestamp) at", "cast(amount as decimal(10, 2)) amount"
    )


def told(verdict: Verdict) -> list[Any]:
    """What does not depend on where the checks were carried out."""
    return [
        (check.name, check.status, check.observed, check.unexpected_count, check.sample) for check in verdict.checks
    ]


def test_spark_and_this_process_judge_alike(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.upsert(
        frame(spark, (1, "2026-11-17", "2026-11-17 12:00:00Z", "1"), (2, "2026-11-18", "2026-11-18 12:00:00Z", "2"))
    )
    rows = [(3, "2026-11-18", "2026-11-18 00:00:00Z", "2"), (4, "2026-11-18", "2026-11-17 23:59:59Z", None)]
    staged = table.stage_upsert(frame(spark, *rows))
    on_spark, in_process = staged.judge(SUITE, spark), staged.judge(SUITE)
    assert (on_spark.engine, in_process.engine) == ("spark", "arrow")
    assert told(on_spark) == told(in_process)
    assert [check.status.value for check in on_spark.checks] == [
        "failed",
        "failed",
        "passed",
        "failed",
        "passed",
        "passed",
    ]
    assert on_spark.checks[1].sample == ("2026-11-17 23:59:59",)


def test_a_frame_is_judged_where_it_is(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.require_gate(SUITE)
    good = frame(spark, (1, "2026-11-18", "2026-11-18 12:00:00Z", "1"))
    for snapshot in (table.upsert(good, gate=SUITE), table.upsert(good)):
        verdict = lake.staged(snapshot.commit_id).verdict
        assert verdict is not None
        assert (verdict.engine, verdict.outcome) == ("spark", Outcome.ACCEPT)
    with pytest.raises(RejectedError) as caught:
        table.append(frame(spark, (2, "2026-11-18", "2026-11-18 12:00:00Z", None)), gate=SUITE)
    assert caught.value.kind == "gate_rejected"


def test_the_format_is_gated_too(spark: SparkSession, lake: Lake, new_table: NewTable, tmp_path: Any) -> None:
    table = new_table(SCHEMA, primary_key=["id"])
    table.require_gate(SUITE)
    suite = tmp_path / "orders.yaml"
    suite.write_text("name: orders\nexpectations: [{type: expect_column_to_exist, kwargs: {column: id}}]")
    rows = frame(spark, (1, "2026-11-18", "2026-11-18 12:00:00Z", None))
    with pytest.raises(RejectedError) as rejected:
        rows.write.format("lake").mode("append").save(table.name)
    assert rejected.value.kind == "gate_rejected"
    with pytest.raises(InvalidInputError) as refused:
        rows.write.format("lake").mode("append").option("gate", str(suite)).save(table.name)
    assert refused.value.kind == "gate_differs"
    table.release_gate(by="ada", reason="a test")
    rows.write.format("lake").mode("append").option("gate", str(suite)).save(table.name)
    assert table.scan().count() == 1


@pytest.mark.parametrize(
    "changes",
    [
        [{"drop": ["amount"]}, {"add": "amount DECIMAL(10, 2)"}],
        [{"rename": {"amount": "spare"}}, {"rename": {"fee": "amount"}}, {"rename": {"spare": "fee"}}],
        [{"widen": {"amount": "DECIMAL(12, 2)"}}],
    ],
    ids=["dropped and added again", "two are swapped", "another type"],
)
def test_a_verdict_of_spark_is_on_columns_and_not_on_their_names(
    spark: SparkSession, lake: Lake, new_table: NewTable, changes: list[dict[str, Any]]
) -> None:
    table = new_table("id BIGINT, amount DECIMAL(10, 2), fee DECIMAL(10, 2)", primary_key=["id"])
    has_amount = parse_suite(
        "{name: s, expectations: [{type: expect_column_values_to_not_be_null, kwargs: {column: amount}}]}"
    )
    rows = spark.range(3).selectExpr("id", "cast(1 as decimal(10, 2)) amount", "cast(null as decimal(10, 2)) fee")
    staged = table.stage_upsert(rows)
    assert staged.judge(has_amount, spark).outcome is Outcome.ACCEPT

    for change in changes:
        table.evolve(**change)

    with pytest.raises(ConflictError) as stale:
        lake.staged(staged.id).publish()
    assert stale.value.kind == "verdict_stale"
    widened = "widen" in changes[0]
    again = lake.staged(staged.id).judge(has_amount, spark)
    assert again.outcome is (Outcome.ACCEPT if widened else Outcome.REJECT)
    assert table.scan().count() == 0


def test_judging_leaves_no_lease_no_cache_and_no_setting(
    spark: SparkSession, new_table: NewTable, module_catalog_url: str
) -> None:
    table = new_table(SCHEMA)
    table.append(frame(spark, (1, "2026-11-18", "2026-11-18 12:00:00Z", "1")))
    before = dict(spark.conf.getAll)
    table.stage_append(frame(spark, (2, "2026-11-18", "2026-11-18 12:00:00Z", "2"))).judge(SUITE, spark)
    assert dict(spark.conf.getAll) == before
    assert spark.sparkContext._jsc.sc().getPersistentRDDs().isEmpty()
    with psycopg.connect(module_catalog_url) as db:
        assert db.execute("select count(*) from lake.lease").fetchone() == (0,)


def test_rows_that_cannot_be_read_are_an_error_and_no_reject(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(SCHEMA)
    staged = table.stage_append(pa.table({"id": [1], "dt": [None], "at": [None], "amount": [None]}))
    for path in Path(table.location.removeprefix("file://")).rglob("*.parquet"):
        path.write_bytes(b"not Parquet")
    verdict = staged.judge(SUITE, spark)
    assert (verdict.outcome, staged.state) == (Outcome.ERRORED, "staged")
    assert all(check.detail for check in verdict.checks[:3])


def test_what_is_no_classic_session_is_refused(new_table: NewTable) -> None:
    table = new_table(SCHEMA)
    staged = table.stage_append(pa.table({"id": [1]}))
    with pytest.raises(InvalidInputError, match="is no Spark session"):
        staged.judge(SUITE, session="local[2]")
