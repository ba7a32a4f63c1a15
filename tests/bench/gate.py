"""The measurement of a gate on Spark, local[2]: beside Great Expectations by hand, over the same frame cached alike."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import great_expectations as gx
import pyarrow.parquet as pq
from great_expectations.core.expectation_validation_result import ExpectationSuiteValidationResult

from lakelib.gates.expectations import column_arguments
from lakelib.specs.suite import parse_suite
from lakelib.table import StagedCommit
from tests.bench.data import BUCKETS, make_table, orders_schema
from tests.bench.lab import Lab, interleave
from tests.bench.report import Line, at_most_times
from tests.bench.spark import open_session

_ROWS = 5_000_000
_QUICK_DIVISOR = 10
_ROUNDS = 3
_SUITE = parse_suite(
    """
    name: orders
    expectations:
      - {type: expect_column_values_to_not_be_null, kwargs: {column: order_id}}
      - {type: expect_column_values_to_be_unique, kwargs: {column: order_id}}
      - {type: expect_column_values_to_not_be_null, kwargs: {column: customer}}
      - {type: expect_column_values_to_be_between, kwargs: {column: customer, min_value: 0, max_value: 200000}}
      - {type: expect_column_values_to_not_be_null, kwargs: {column: amount}}
      - {type: expect_column_values_to_be_between, kwargs: {column: amount, min_value: 0, max_value: 100, mostly: 0.5}}
      - {type: expect_column_mean_to_be_between, kwargs: {column: amount, min_value: 10, max_value: 200}}
      - {type: expect_column_values_to_be_between, kwargs: {column: quantity, min_value: 1, max_value: 19}}
      - {type: expect_column_sum_to_be_between, kwargs: {column: quantity, min_value: 1}}
      - type: expect_column_values_to_be_in_set
        kwargs: {column: status, value_set: [NEW, PAID, PACKED, SHIPPED, DELIVERED, RETURNED]}
        severity: warning
      - {type: expect_column_values_to_match_regex, kwargs: {column: status, regex: "^[A-Z]+$"}}
      - {type: expect_table_row_count_to_be_between, kwargs: {min_value: 1}}
    """
)


def measure_gate(lab: Lab) -> Iterator[Line]:
    rows = _ROWS // (_QUICK_DIVISOR if lab.quick else 1)
    with open_session() as session:
        staged = _staged(lab, session, rows)
        ours, peer = interleave(_ROUNDS, [lambda: staged.judge(_SUITE, session), lambda: _by_hand(staged, session)])
    note = f"best of {_ROUNDS}; peer: Great Expectations by hand over the same frame, cached the same way"
    yield at_most_times(f"Spark: {len(_SUITE.checks)} checks on {rows:,} staged rows", min(ours), min(peer), 1.2, note)


def _staged(lab: Lab, session: Any, rows: int) -> StagedCommit:
    path: Path = lab.folder / "gate.parquet"
    pq.write_table(make_table(rows, "int64"), path)
    table = lab.lake.create_table(
        "bench.gate", orders_schema("int64"), primary_key=["order_id"], partition_by=["dt"], buckets=BUCKETS
    )
    return table.stage_upsert(session.read.parquet(str(path)))


def _by_hand(staged: StagedCommit, session: Any) -> ExpectationSuiteValidationResult:
    context: Any = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    columns = sorted({name for check in _SUITE.checks for name in column_arguments(check.arguments)})
    frame = staged.scan(columns=columns, scope="staged").to_spark(session).persist()
    try:
        source = context.data_sources.add_spark("spark", persist=False)
        definition = source.add_dataframe_asset("rows").add_batch_definition_whole_dataframe("all")
        suite = gx.ExpectationSuite(
            name="orders",
            expectations=[{"type": check.expectation, "kwargs": dict(check.arguments)} for check in _SUITE.checks],
        )
        batch = definition.get_batch(batch_parameters={"dataframe": frame})
        found: ExpectationSuiteValidationResult = batch.validate(suite, result_format="SUMMARY")
        return found
    finally:
        frame.unpersist()
