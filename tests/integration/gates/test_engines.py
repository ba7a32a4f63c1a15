"""Gates say what Great Expectations says, for every check that they take, on rows on which engines are known to differ.

This is the contract with Great Expectations at the version that is installed. To load it takes seconds: it is done by
who runs these tests, and not by who collects them.
"""

import os
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import cycle, islice, pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from lakelib.gates.expectations import REFUSED, SUPPORTED
from lakelib.gates.lint import check_suite
from lakelib.gates.run import Elsewhere, run_elsewhere, run_on_arrow
from lakelib.model.gate import CheckResult
from lakelib.model.schema import Column
from lakelib.rows.types import type_text
from lakelib.specs.suite import Check, Suite
from tests.conftest import EXAMPLES, WHOLE_MATRICES
from tests.integration.gates.hard_rows import (
    AT_ODDS,
    HARD_CHECKS,
    HARD_COLUMNS,
    HARD_VALUES,
    UNLIKE_BOTH,
    hard_rows,
)

DAYS = [date(2026, 11, day) for day in (1, 2, 3, 4)]
MOMENTS = [datetime(2026, 11, day, 23, 2, 3, 45) for day in (1, 2, 3, 4)]
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, None, 6], pa.int64()),
        "small": pa.array([1, 2, 3, 4, 5, 5], pa.int32()),
        "amount": pa.array(
            [Decimal(text) if text else None for text in ("1.50", "2.25", "", "-3.00", "9999999999.99", "0.10")],
            pa.decimal128(18, 2),
        ),
        "price": pa.array([1.5, 2.5, None, -3.0, 1e300, 0.0], pa.float64()),
        "status": pa.array(["NEW", "PAID", None, "", "Größe", "NEW"]),
        "other": pa.array(["NEW", "x", None, "y", None, "NEW"]),
        "day": pa.array([*DAYS, None, date(1969, 1, 1)], pa.date32()),
        "moment": pa.array([*MOMENTS, None, datetime(1969, 1, 1)], pa.timestamp("us", "UTC")),
        "local": pa.array([*MOMENTS, None, datetime(1969, 1, 1)], pa.timestamp("us")),
        "ok": pa.array([True, False, None, True, True, False]),
        "raw": pa.array([b"\xff", b"a", None, b"", b"b", b"a"], pa.binary()),
        "a": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
        "b": pa.array([0, 2, 3, None, 5, 7], pa.int64()),
        "json": pa.array(['{"a": 1}', "x", None, "[]", "1", "{}"]),
        "object": pa.array(['{"a": 1}', "{}", None, "[]", "1", "{}"]),
        "text": pa.array(["2026-11-01", "x", None, "2026-01-31", "2026-02-30", ""]),
    }
)
COLUMNS = [
    Column(id=place, name=field.name, type=type_text(field.type)) for place, field in enumerate(ROWS.schema, start=1)
]
NOON = datetime(2026, 11, 2, 23, 2, 3, 45, tzinfo=UTC)
EVERY = [
    ("expect_column_distinct_values_to_be_in_set", {"column": "status", "value_set": ["NEW", "PAID"]}),
    ("expect_column_distinct_values_to_be_in_set", {"column": "day", "value_set": ["2026-11-01"]}),
    ("expect_column_distinct_values_to_be_in_set", {"column": "moment", "value_set": [NOON]}),
    ("expect_column_distinct_values_to_contain_set", {"column": "status", "value_set": ["NEW", "PAID"]}),
    ("expect_column_distinct_values_to_contain_set", {"column": "amount", "value_set": [0.1, 1.5]}),
    ("expect_column_distinct_values_to_contain_set", {"column": "moment", "value_set": [NOON]}),
    ("expect_column_distinct_values_to_equal_set", {"column": "status", "value_set": ["NEW", "PAID", "", "Größe"]}),
    ("expect_column_max_to_be_between", {"column": "amount", "max_value": 10}),
    ("expect_column_max_to_be_between", {"column": "price", "min_value": 1}),
    ("expect_column_max_to_be_between", {"column": "moment", "max_value": "2026-11-04T23:02:03.000045Z"}),
    ("expect_column_max_to_be_between", {"column": "local", "max_value": datetime(2026, 11, 4, 23, 2, 3, 44)}),
    ("expect_column_mean_to_be_between", {"column": "amount", "min_value": 0}),
    ("expect_column_mean_to_be_between", {"column": "id", "max_value": 3}),
    ("expect_column_median_to_be_between", {"column": "small", "min_value": 3, "max_value": 4}),
    ("expect_column_min_to_be_between", {"column": "amount", "min_value": -3}),
    ("expect_column_min_to_be_between", {"column": "day", "min_value": date(1969, 1, 2)}),
    ("expect_column_min_to_be_between", {"column": "day", "min_value": "1969-01-01"}),
    ("expect_column_most_common_value_to_be_in_set", {"column": "status", "value_set": ["NEW"]}),
    ("expect_column_pair_values_a_to_be_greater_than_b", {"column_A": "a", "column_B": "b"}),
    ("expect_column_pair_values_a_to_be_greater_than_b", {"column_A": "a", "column_B": "b", "or_equal": True}),
    ("expect_column_pair_values_to_be_equal", {"column_A": "a", "column_B": "b"}),
    ("expect_column_pair_values_to_be_equal", {"column_A": "status", "column_B": "other"}),
    (
        "expect_column_pair_values_to_be_in_set",
        {"column_A": "a", "column_B": "b", "value_pairs_set": [[1, 0], [2, 2], [3, 3]]},
    ),
    ("expect_column_proportion_of_non_null_values_to_be_between", {"column": "status", "min_value": 0.8}),
    ("expect_column_proportion_of_unique_values_to_be_between", {"column": "status", "min_value": 0.9}),
    (
        "expect_column_quantile_values_to_be_between",
        {"column": "a", "quantile_ranges": {"quantiles": [0.0, 1.0], "value_ranges": [[1, 1], [6, 6]]}},
    ),
    ("expect_column_stdev_to_be_between", {"column": "id", "min_value": 2}),
    ("expect_column_stdev_to_be_between", {"column": "amount", "min_value": 2}),
    ("expect_column_sum_to_be_between", {"column": "amount", "max_value": 10}),
    ("expect_column_sum_to_be_between", {"column": "small", "min_value": 20, "max_value": 20}),
    ("expect_column_to_exist", {"column": "id", "column_index": 0}),
    ("expect_column_to_exist", {"column": "gone"}),
    ("expect_column_unique_value_count_to_be_between", {"column": "status", "max_value": 3}),
    ("expect_column_value_lengths_to_be_between", {"column": "status", "min_value": 1, "max_value": 4}),
    ("expect_column_value_lengths_to_equal", {"column": "status", "value": 5}),
    ("expect_column_value_z_scores_to_be_less_than", {"column": "a", "threshold": 1, "double_sided": True}),
    ("expect_column_value_z_scores_to_be_less_than", {"column": "a", "threshold": 1, "double_sided": False}),
    ("expect_column_values_to_be_between", {"column": "id", "min_value": 2, "max_value": 4}),
    ("expect_column_values_to_be_between", {"column": "amount", "min_value": 0.1, "max_value": 2.25}),
    ("expect_column_values_to_be_between", {"column": "amount", "min_value": 0.1, "strict_min": True}),
    ("expect_column_values_to_be_between", {"column": "price", "min_value": 0, "max_value": 10, "mostly": 0.5}),
    ("expect_column_values_to_be_between", {"column": "day", "min_value": "2026-11-02"}),
    ("expect_column_values_to_be_between", {"column": "moment", "min_value": NOON}),
    ("expect_column_values_to_be_between", {"column": "moment", "min_value": "2026-11-03T05:02:03.000045+06:00"}),
    ("expect_column_values_to_be_between", {"column": "moment", "max_value": date(2026, 11, 2)}),
    ("expect_column_values_to_be_between", {"column": "local", "min_value": datetime(2026, 11, 2, 23, 2, 3, 46)}),
    ("expect_column_values_to_be_in_set", {"column": "amount", "value_set": [0.1, 2.25]}),
    ("expect_column_values_to_be_in_set", {"column": "day", "value_set": ["2026-11-01", date(2026, 11, 2)]}),
    ("expect_column_values_to_be_in_set", {"column": "moment", "value_set": [NOON]}),
    ("expect_column_values_to_be_in_set", {"column": "local", "value_set": ["2026-11-02 23:02:03.000045"]}),
    ("expect_column_values_to_be_in_set", {"column": "ok", "value_set": [True]}),
    ("expect_column_values_to_be_in_set", {"column": "status", "value_set": ["NEW", "PAID"]}),
    ("expect_column_values_to_be_json_parseable", {"column": "json"}),
    ("expect_column_values_to_be_null", {"column": "id", "mostly": 0.1}),
    ("expect_column_values_to_be_unique", {"column": "raw"}),
    ("expect_column_values_to_be_unique", {"column": "status"}),
    ("expect_column_values_to_match_json_schema", {"column": "object", "json_schema": {"type": "object"}}),
    ("expect_column_values_to_match_json_schema", {"column": "json", "json_schema": {"type": "object"}}),
    ("expect_column_values_to_match_regex", {"column": "status", "regex": "^[A-Z]+$"}),
    ("expect_column_values_to_match_regex_list", {"column": "status", "regex_list": ["A", "N"], "match_on": "any"}),
    ("expect_column_values_to_match_strftime_format", {"column": "text", "strftime_format": "%Y-%m-%d"}),
    ("expect_column_values_to_not_be_in_set", {"column": "status", "value_set": ["NEW", ""]}),
    ("expect_column_values_to_not_be_null", {"column": "id"}),
    ("expect_column_values_to_not_be_null", {"column": "id", "mostly": 0.8}),
    ("expect_column_values_to_not_be_null", {"column": "id", "row_condition": 'col("day").notNull()'}),
    ("expect_column_values_to_not_be_null", {"column": "other", "row_condition": 'col("status") != "NEW"'}),
    ("expect_column_values_to_not_be_null", {"column": "status", "row_condition": 'col("id") != 2'}),
    (
        "expect_column_values_to_not_be_null",
        {"column": "id", "row_condition": "col('amount') >= -3", "mostly": 0.9},
    ),
    ("expect_column_values_to_not_match_regex", {"column": "status", "regex": "A"}),
    ("expect_column_values_to_not_match_regex_list", {"column": "status", "regex_list": ["A", "Z"]}),
    ("expect_compound_columns_to_be_unique", {"column_list": ["status", "other"], "ignore_row_if": "never"}),
    ("expect_multicolumn_sum_to_equal", {"column_list": ["a", "b"], "sum_total": 4}),
    ("expect_multicolumn_values_to_be_equal", {"column_list": ["a", "b"]}),
    ("expect_select_column_values_to_be_unique_within_record", {"column_list": ["a", "b"]}),
    ("expect_table_column_count_to_be_between", {"max_value": 3}),
    ("expect_table_column_count_to_equal", {"value": len(COLUMNS)}),
    ("expect_table_columns_to_match_ordered_list", {"column_list": ROWS.column_names}),
    ("expect_table_columns_to_match_set", {"column_set": ["id", "gone"], "exact_match": False}),
    ("expect_table_row_count_to_be_between", {"min_value": 1, "max_value": 5}),
    ("expect_table_row_count_to_equal", {"value": 2, "row_condition": 'col("status") == "NEW"'}),
    ("expect_table_row_count_to_equal", {"value": 6}),
]


def _check(number: int, expectation: str, arguments: dict[str, Any]) -> Check:
    ignored = {
        "expect_column_pair_values_a_to_be_greater_than_b": "either_value_is_missing",
        "expect_multicolumn_sum_to_equal": "any_value_is_missing",
    }
    more = {"ignore_row_if": ignored[expectation]} if expectation in ignored else {}
    return Check(name=f"{number} {expectation} {arguments}", expectation=expectation, arguments=arguments | more)


CHECKS = [_check(number, *each) for number, each in enumerate(EVERY)]


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[None]:
    """This process is in a zone that is neither UTC nor that of the Spark session."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "America/New_York"
    time.tzset()
    yield
    os.environ.pop("TZ")
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


@pytest.fixture(scope="module")
def judging(spark: SparkSession, elsewhere: None) -> SparkSession:
    from tests.integration.gates import reference

    return reference.utc_session(spark)


def _found(rows: pa.Table, checks: Sequence[Check], columns: Sequence[Column] = COLUMNS) -> list[CheckResult]:
    return run_on_arrow(checks, columns, lambda names: rows.select(names).to_batches(max_chunksize=4))


def _told_by_pandas(rows: pa.Table, checks: Sequence[Check], columns: Sequence[Column] = COLUMNS) -> list[CheckResult]:
    from tests.integration.gates import reference

    return reference.run_on_arrow(checks, columns, lambda names: rows.select(names))


def _told_by_spark(
    session: SparkSession, rows: pa.Table, checks: Sequence[Check], columns: Sequence[Column] = COLUMNS
) -> list[CheckResult]:
    from tests.integration.gates import reference

    frame = session.createDataFrame(rows, from_arrow_schema(rows.schema, prefer_timestamp_ntz=True))
    return reference.run_on_spark(checks, columns, lambda names: frame.select(*names))


def _said(result: CheckResult) -> dict[str, Any]:
    """What engines must agree about: an error's words are each one's own, and rows have no order."""
    return _verdict(result) | {"sample": sorted(result.sample, key=repr)}


def _verdict(result: CheckResult) -> dict[str, Any]:
    """Of many unexpected rows a sample may show any."""
    observed = result.observed
    if isinstance(observed, str) and observed.lstrip("-")[:1].isdigit() and "e" in observed:
        observed = float(observed)  # too large to be a number in JSON
    return {
        "check": result.name,
        "status": result.status,
        "observed": float(f"{observed:.6g}") if isinstance(observed, float) else observed,
        "rows": result.row_count,
        "unexpected": result.unexpected_count,
    }


def test_every_expectation_that_a_gate_takes_is_among_the_checks() -> None:
    assert {check.expectation for check in CHECKS} == SUPPORTED
    check_suite(Suite(name="every", checks=tuple(CHECKS)), COLUMNS)


def test_every_expectation_is_taken_or_refused_for_a_reason() -> None:
    from great_expectations.expectations.registry import list_registered_expectation_implementations

    assert SUPPORTED.isdisjoint(REFUSED)
    assert {*list_registered_expectation_implementations()} == SUPPORTED | set(REFUSED)


def test_what_is_taken_great_expectations_takes_too() -> None:
    """Arguments are checked without it: whatever passes must mean something there."""
    from great_expectations.expectations.registry import get_expectation_impl

    for check in CHECKS:
        get_expectation_impl(check.expectation)(
            **{name: value for name, value in check.arguments.items() if name != "row_condition"}
        )


CONTENTS = {"rows": ROWS, "no rows": ROWS.slice(0, 0), "a row of NULLs": ROWS.slice(2, 1)}


@pytest.mark.parametrize("content", CONTENTS)
def test_a_gate_says_what_great_expectations_says_with_pandas(elsewhere: None, content: str) -> None:
    rows = CONTENTS[content]
    found = [_said(result) for result in _found(rows, CHECKS)]
    assert found == [_said(result) for result in _told_by_pandas(rows, CHECKS)]


@pytest.mark.parametrize("content", CONTENTS if WHOLE_MATRICES else ["rows"])
def test_a_gate_says_what_great_expectations_says_on_spark(judging: SparkSession, content: str) -> None:
    rows = CONTENTS[content]
    found = [_said(result) for result in _found(rows, CHECKS)]
    assert found == [_said(result) for result in _told_by_spark(judging, rows, CHECKS)]


@settings(max_examples=max(3, EXAMPLES // 100), deadline=None)
@given(data=st.data())
def test_on_hard_values_a_gate_says_what_great_expectations_says_with_pandas(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 8))
    rows = hard_rows(
        {
            name: data.draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))
            for name, (_, values) in HARD_VALUES.items()
        }
    )
    assert _differing(rows, _told_by_pandas(rows, HARD_CHECKS, HARD_COLUMNS)) <= AT_ODDS


def test_where_a_gate_differs_from_pandas_great_expectations_differs_from_itself(judging: SparkSession) -> None:
    """Or none of its engines is right: see docs/gates.md."""
    for values in (HARD_VALUES, _without_nan(HARD_VALUES)):
        rows = hard_rows({name: list(islice(cycle(each), 22)) for name, (_, each) in values.items()})
        differing = _differing(rows, _told_by_pandas(rows, HARD_CHECKS, HARD_COLUMNS))
        checks = [check for check in HARD_CHECKS if check.name in differing]
        found = [_verdict(result) for result in _found(rows, checks, HARD_COLUMNS)]
        on_spark = [_verdict(result) for result in _told_by_spark(judging, rows, checks, HARD_COLUMNS)]
        assert {one["check"] for one, other in zip(found, on_spark, strict=True) if one != other} <= UNLIKE_BOTH


def _without_nan(values: dict[str, tuple[pa.DataType, list[Any]]]) -> dict[str, tuple[pa.DataType, list[Any]]]:
    return {name: (kind, [each for each in several if each == each]) for name, (kind, several) in values.items()}


def _differing(rows: pa.Table, told: Sequence[CheckResult]) -> set[str]:
    found = _found(rows, HARD_CHECKS, HARD_COLUMNS)
    return {one.name for one, other in zip(found, told, strict=True) if _verdict(one) != _verdict(other)}


@settings(max_examples=EXAMPLES // 10, deadline=None)
@given(data=st.data())
def test_rows_in_several_places_are_judged_as_in_one(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 30))
    rows = hard_rows(
        {
            name: data.draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))
            for name, (_, values) in HARD_VALUES.items()
        }
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=3)))
    parts = [rows.slice(start, end - start) for start, end in pairwise([0, *cuts, count])]

    def carry(names: Sequence[str], work: Elsewhere) -> Iterator[bytes]:
        heaps: dict[int, list[bytes]] = {}
        for part in parts:
            for number, piece in work.gather(part.select(names).to_batches(max_chunksize=4)):
                heaps.setdefault(number % 3, []).append(piece)
        return (work.combine(pieces) for pieces in heaps.values())

    apart = run_elsewhere(HARD_CHECKS, HARD_COLUMNS, 3, carry)
    together = _found(rows, HARD_CHECKS, HARD_COLUMNS)
    assert [_verdict(result) for result in apart] == [_verdict(result) for result in together]
