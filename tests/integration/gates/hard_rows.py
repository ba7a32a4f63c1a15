"""Rows and checks on which engines are known to differ."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakelib.model.schema import Column
from lakelib.rows.types import type_text
from lakelib.specs.suite import Check

NAN, INFINITY = float("nan"), float("inf")

HARD_VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "price": (pa.float64(), [None, NAN, 0.0, -0.0, 0.1, 1.5, -1e300, 1e300, INFINITY, -INFINITY, 5e-324]),
    "rate": (pa.float32(), [None, 0.0, -0.0, 0.5, 1.5, -2.25]),
    "number": (pa.int64(), [None, 0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "small": (pa.int8(), [None, 0, 1, -128, 127]),
    "amount": (
        pa.decimal128(20, 2),
        [None, Decimal("0.00"), Decimal("0.10"), Decimal("-3.00"), Decimal("1.50"), Decimal("999999999999999999.99")],
    ),
    "text": (
        pa.string(),
        [
            None,
            "",
            "a",
            "A",
            "é",
            "e\u0301",
            "😀",
            "ß",
            "\u0000",
            "a\n",
            "a\r\n",
            "\n",
            "١٢",
            "12",
            " ",
            "\u00a0",
            "null",
            "None",
        ],
    ),
    "day": (
        pa.date32(),
        [
            None,
            date(1582, 10, 4),
            date(1582, 10, 15),
            date(1582, 10, 10),
            date(1, 1, 1),
            date(9999, 12, 31),
            date(1970, 1, 1),
        ],
    ),
    "moment": (
        pa.timestamp("us", "UTC"),
        [
            None,
            datetime(1582, 10, 4, 12),
            datetime(1969, 12, 31, 23, 59, 59, 999999),
            datetime(2026, 11, 18, 1, 2, 3, 4),
        ],
    ),
    "ok": (pa.bool_(), [None, True, False]),
    "raw": (pa.binary(), [None, b"", b"\xff", b"\x00", b"a"]),
}
HARD_COLUMNS = [
    Column(id=place, name=name, type=type_text(kind)) for place, (name, (kind, _)) in enumerate(HARD_VALUES.items(), 1)
]


def hard_rows(values: dict[str, list[Any]]) -> pa.Table:
    return pa.table({name: pa.array(values[name], kind) for name, (kind, _) in HARD_VALUES.items()})


def _checks() -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    for name in HARD_VALUES:
        found += [
            ("expect_column_values_to_not_be_null", {"column": name, "mostly": 0.5}),
            ("expect_column_values_to_be_null", {"column": name}),
            ("expect_column_values_to_be_unique", {"column": name}),
            ("expect_column_unique_value_count_to_be_between", {"column": name, "max_value": 2}),
            ("expect_column_proportion_of_unique_values_to_be_between", {"column": name, "min_value": 0.5}),
            ("expect_column_proportion_of_non_null_values_to_be_between", {"column": name, "min_value": 0.5}),
        ]
    bounds: dict[str, list[Any]] = {
        "price": [0, 0.1],
        "rate": [0, 0.5],
        "number": [0, 2.5],
        "small": [-1.5, 300],
        "amount": [0.1, Decimal("1.505")],
        "day": [date(1582, 10, 10), date(1970, 1, 1)],
        "moment": [datetime(1582, 10, 10), datetime(1970, 1, 1)],
    }
    for name, (low, high) in bounds.items():
        for given in (
            {"min_value": low},
            {"max_value": high},
            {"min_value": low, "max_value": high, "strict_min": True},
        ):
            found.append(("expect_column_values_to_be_between", {"column": name, **given}))
            found.append(("expect_column_max_to_be_between", {"column": name, **given}))
            found.append(("expect_column_min_to_be_between", {"column": name, **given}))
    for name in ("price", "rate", "number", "small", "amount"):
        for what in ("mean", "sum", "stdev", "median"):
            found.append((f"expect_column_{what}_to_be_between", {"column": name, "min_value": 0, "max_value": 10}))
    sets: dict[str, list[Any]] = {
        "price": [0, 1.5],
        "rate": [0, 0.5],
        "number": [0, 2**53 + 1],
        "small": [1, 2, 1000],
        "amount": [0.1, 1.5, 3, Decimal("0.123")],
        "text": ["a", "é", "😀", ""],
        "day": [date(1582, 10, 4), date(1582, 10, 10)],
        "moment": [datetime(1582, 10, 4, 12)],
        "ok": [True],
        "raw": [b"\xff", b""],
    }
    for name, members in sets.items():
        for what in (
            "values_to_be_in_set",
            "values_to_not_be_in_set",
            "distinct_values_to_be_in_set",
            "distinct_values_to_contain_set",
            "distinct_values_to_equal_set",
            "most_common_value_to_be_in_set",
        ):
            found.append((f"expect_column_{what}", {"column": name, "value_set": members}))
    for pattern in (
        "a",
        "^a$",
        "^.$",
        r"^\d+$",
        r"\s",
        r"^\w$",
        "[^a]",
        "",
        "^(a|é)+$",
        "a{0}",
        "^[a-z\\d]*$",
        "(?i)a",
        r"a\b",
        "é",
    ):
        if pattern:
            found.append(("expect_column_values_to_match_regex", {"column": "text", "regex": pattern}))
    found.append(("expect_column_values_to_not_match_regex_list", {"column": "text", "regex_list": ["^a", "é"]}))
    for name in ("text", "number", "day", "amount", "small"):
        found.append(("expect_column_value_lengths_to_be_between", {"column": name, "min_value": 1, "max_value": 4}))
        found.append(("expect_column_value_lengths_to_equal", {"column": name, "value": 1}))
    found += [
        ("expect_column_values_to_match_regex", {"column": "number", "regex": "^-?[01]$"}),
        ("expect_column_values_to_match_regex", {"column": "amount", "regex": "50$"}),
        ("expect_column_values_to_match_regex", {"column": "day", "regex": "^1582-10"}),
        ("expect_column_values_to_not_be_null", {"column": "text", "row_condition": 'col("price") > 0'}),
        ("expect_column_values_to_not_be_null", {"column": "text", "row_condition": 'col("number") >= 1'}),
        ("expect_column_values_to_not_be_null", {"column": "number", "row_condition": 'col("text") != "a"'}),
        ("expect_table_row_count_to_equal", {"value": 3, "row_condition": 'col("amount") >= 0.1'}),
        ("expect_compound_columns_to_be_unique", {"column_list": ["text", "ok"]}),
        (
            "expect_compound_columns_to_be_unique",
            {"column_list": ["price", "day"], "ignore_row_if": "any_value_is_missing"},
        ),
        ("expect_select_column_values_to_be_unique_within_record", {"column_list": ["number", "small"]}),
        ("expect_multicolumn_values_to_be_equal", {"column_list": ["number", "small"]}),
        (
            "expect_column_quantile_values_to_be_between",
            {"column": "rate", "quantile_ranges": {"quantiles": [0.0, 1.0], "value_ranges": [[-1, 0], [None, 1]]}},
        ),
    ]
    return found


HARD_CHECKS = [
    Check(name=f"{number} {expectation} {arguments}", expectation=expectation, arguments=arguments)
    for number, (expectation, arguments) in enumerate(_checks())
]


def _names(*chosen: tuple[str, str]) -> frozenset[str]:
    """Of the checks of an expectation whose arguments, as text, hold this."""
    return frozenset(
        check.name
        for check in HARD_CHECKS
        for expectation, held in chosen
        if expectation in check.expectation and held in str(check.arguments)
    )


UNLIKE_BOTH = _names(
    ("match_regex", "'text'"),  # Java's patterns, and NUL, which pandas cuts off
    ("stdev", ""),  # of numbers so large that both are a little wrong
    ("median", "'number'"),
    ("median", "'price'"),  # of the least floats
    ("mean", "'number'"),
    ("sum", "'number'"),
    ("between", "'number'"),
)
"""Where neither of Great Expectations' engines is exact, or their patterns differ."""

AT_ODDS = UNLIKE_BOTH | _names(
    ("unique_value", "'price'"),  # -0.0 is 0.0 to Spark, and another value to pandas
    ("unique_value", "'rate'"),
    ("values_to_be_unique", "'price'"),
    ("values_to_be_unique", "'rate'"),
    ("in_set", "'price'"),
    ("in_set", "'rate'"),
    ("_set", "'price'"),
    ("_set", "'rate'"),
    ("_set", "'amount'"),  # members of mixed scale
    ("compound", "'price'"),
    ("compound", "'text'"),  # to pandas a text of NUL is one of nothing
    ("max_to_be_between", "'price'"),  # NaN is the greatest to Spark, and nothing to pandas
    ("regex", "'text'"),
    ("lengths", "'text'"),
    ("_set", "'text'"),
)
"""Where Great Expectations' engines differ from each other."""
