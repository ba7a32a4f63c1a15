"""The measurements of gates: beside Great Expectations by hand, on Spark (local[2]) over the same frame, cached, and in
process over the same rows in pandas."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import great_expectations as gx
import pandas as pd
import pyarrow.parquet as pq
from great_expectations.core.expectation_validation_result import ExpectationSuiteValidationResult

from lakelib.gates.expectations import column_arguments
from lakelib.specs.suite import Check, Suite, parse_suite
from lakelib.staged import StagedCommit
from tests.bench.data import BUCKETS, make_table, orders_schema
from tests.bench.lab import Lab, interleave
from tests.bench.report import Line, at_most, at_most_times, show_seconds
from tests.bench.spark import open_session

_ROWS = 5_000_000
_QUICK_DIVISOR = 10
_ROUNDS = 3
_MANY = 339
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
        note = f"best of {_ROUNDS}; peer: Great Expectations by hand over the same frame, cached"
        yield at_most_times(f"Spark: {len(_SUITE.checks)} checks on {rows:,} rows", min(ours), min(peer), 0.5, note)
        ours, peer = interleave(_ROUNDS, [lambda: staged.judge(_SUITE), lambda: _in_pandas(staged)])
        note = f"best of {_ROUNDS}; peer: Great Expectations by hand over the same rows in pandas"
        yield at_most_times(
            f"in process: {len(_SUITE.checks)} checks on {rows:,} rows", min(ours), min(peer), 0.3, note
        )
        yield from _measure_small(lab, session)


def _measure_small(lab: Lab, session: Any) -> Iterator[Line]:
    """Many checks on few rows: what a check costs by itself."""
    table = lab.lake.create_table("bench.small", orders_schema("int64"), primary_key=["order_id"], buckets=1)
    staged = table.stage_upsert(make_table(8, "int64"))
    columns = list(make_table(1, "int64").column_names)
    many = Suite(name="many", checks=tuple(_cheap(number, columns) for number in range(_MANY)))
    one = Suite(name="one", checks=(_cheap(0, columns),))
    on_spark, in_process, single = interleave(
        _ROUNDS, [lambda: staged.judge(many, session), lambda: staged.judge(many), lambda: staged.judge(one)]
    )
    yield at_most(f"Spark: {_MANY} checks on 8 rows", show_seconds(min(on_spark)), min(on_spark), 5, "s")
    yield at_most(f"in process: {_MANY} checks on 8 rows", show_seconds(min(in_process)), min(in_process), 1, "s")
    yield at_most("in process: a check on 8 rows", show_seconds(min(single)), min(single) * 1000, 20, "ms")


def _cheap(number: int, columns: list[str]) -> Check:
    """Each another check, of all kinds."""
    column = columns[number % len(columns)]
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("expect_column_values_to_not_be_null", {"column": column, "mostly": 1 - number / 10_000}),
        ("expect_column_values_to_be_unique", {"column": column, "mostly": 1 - number / 10_000}),
        ("expect_column_values_to_be_between", {"column": "amount", "min_value": number}),
        ("expect_column_values_to_match_regex", {"column": "status", "regex": f"^[A-Z]{{1,{number + 1}}}"}),
        ("expect_column_sum_to_be_between", {"column": "quantity", "min_value": number}),
        ("expect_column_distinct_values_to_be_in_set", {"column": "status", "value_set": ["NEW", str(number)]}),
        ("expect_column_median_to_be_between", {"column": "amount", "min_value": number}),
    ]
    expectation, arguments = kinds[number % len(kinds)]
    return Check(name=f"{number}", expectation=expectation, arguments=arguments)


def _staged(lab: Lab, session: Any, rows: int) -> StagedCommit:
    path: Path = lab.folder / "gate.parquet"
    pq.write_table(make_table(rows, "int64"), path)
    table = lab.lake.create_table(
        "bench.gate", orders_schema("int64"), primary_key=["order_id"], partition_by=["dt"], buckets=BUCKETS
    )
    return table.stage_upsert(session.read.parquet(str(path)))


def _by_hand(staged: StagedCommit, session: Any) -> ExpectationSuiteValidationResult:
    frame = staged.scan(columns=_columns(), scope="staged").to_spark(session).persist()
    try:
        return _validate(lambda context: context.data_sources.add_spark("spark", persist=False), frame)
    finally:
        frame.unpersist()


def _in_pandas(staged: StagedCommit) -> ExpectationSuiteValidationResult:
    rows = staged.scan(columns=_columns(), scope="staged").to_arrow()
    frame = rows.to_pandas(types_mapper=pd.ArrowDtype)
    return _validate(lambda context: context.data_sources.add_pandas("pandas"), frame)


def _columns() -> list[str]:
    return sorted({name for check in _SUITE.checks for name in column_arguments(check.arguments)})


def _validate(add: Callable[[Any], Any], frame: Any) -> ExpectationSuiteValidationResult:
    context: Any = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    definition = add(context).add_dataframe_asset("rows").add_batch_definition_whole_dataframe("all")
    suite = gx.ExpectationSuite(
        name="orders",
        expectations=[{"type": check.expectation, "kwargs": dict(check.arguments)} for check in _SUITE.checks],
    )
    batch = definition.get_batch(batch_parameters={"dataframe": frame})
    found: ExpectationSuiteValidationResult = batch.validate(suite, result_format="SUMMARY")
    return found
