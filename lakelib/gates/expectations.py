"""Pure. What is known of Great Expectations' expectations: which a gate takes, and what each looks at.

A gate says what Great Expectations says. Expectations about which its own engines, Spark's and pandas', do not agree
are refused, each with the reason.
"""

import re
from collections.abc import Mapping
from typing import Any

from lakelib.dataclass import dataclass

_ON_SCHEMA = (
    "expect_column_to_exist",
    "expect_table_column_count_to_be_between",
    "expect_table_column_count_to_equal",
    "expect_table_columns_to_match_ordered_list",
    "expect_table_columns_to_match_set",
)
_ON_EACH_VALUE = (
    "expect_column_value_lengths_to_be_between",
    "expect_column_value_lengths_to_equal",
    "expect_column_value_z_scores_to_be_less_than",
    "expect_column_values_to_be_between",
    "expect_column_values_to_be_in_set",
    "expect_column_values_to_be_json_parseable",
    "expect_column_values_to_be_null",
    "expect_column_values_to_be_unique",
    "expect_column_values_to_match_json_schema",
    "expect_column_values_to_match_regex",
    "expect_column_values_to_match_regex_list",
    "expect_column_values_to_match_strftime_format",
    "expect_column_values_to_not_be_in_set",
    "expect_column_values_to_not_be_null",
    "expect_column_values_to_not_match_regex",
    "expect_column_values_to_not_match_regex_list",
)
_ON_EACH_ROW = (
    "expect_column_pair_values_a_to_be_greater_than_b",
    "expect_column_pair_values_to_be_equal",
    "expect_column_pair_values_to_be_in_set",
    "expect_compound_columns_to_be_unique",
    "expect_multicolumn_sum_to_equal",
    "expect_multicolumn_values_to_be_equal",
    "expect_select_column_values_to_be_unique_within_record",
)
_ON_ALL_ROWS = (
    "expect_column_distinct_values_to_be_in_set",
    "expect_column_distinct_values_to_contain_set",
    "expect_column_distinct_values_to_equal_set",
    "expect_column_max_to_be_between",
    "expect_column_mean_to_be_between",
    "expect_column_median_to_be_between",
    "expect_column_min_to_be_between",
    "expect_column_most_common_value_to_be_in_set",
    "expect_column_proportion_of_non_null_values_to_be_between",
    "expect_column_proportion_of_unique_values_to_be_between",
    "expect_column_quantile_values_to_be_between",
    "expect_column_stdev_to_be_between",
    "expect_column_sum_to_be_between",
    "expect_column_unique_value_count_to_be_between",
    "expect_table_row_count_to_be_between",
    "expect_table_row_count_to_equal",
)

ON_EFFECT: Mapping[str, tuple[str, bool]] = {
    f"expect_{what}rows_{change}_to_be_between": (change, bool(what))
    for what in ("", "proportion_of_")
    for change in ("inserted", "updated", "deleted")
}
"""lakelib's own: what a commit does to the rows that there were; of how many, and whether as a share of these."""

SUPPORTED = frozenset((*_ON_SCHEMA, *_ON_EACH_VALUE, *_ON_EACH_ROW, *_ON_ALL_ROWS))

_TYPES = "a column has the type that its table says; there is nothing to check"
_ORDER = "the rows of a table have no order"
_SQL = "it needs a database that is asked in SQL"
REFUSED: Mapping[str, str] = {
    "expect_column_kl_divergence_to_be_less_than": "Spark and pandas disagree about its buckets",
    "expect_column_type_to_be": _TYPES,
    "expect_column_values_to_be_dateutil_parseable": "Spark cannot carry it out",
    "expect_column_values_to_be_decreasing": _ORDER,
    "expect_column_values_to_be_in_type_list": _TYPES,
    "expect_column_values_to_be_increasing": _ORDER,
    "expect_column_values_to_be_of_type": _TYPES,
    "expect_column_values_to_match_like_pattern": _SQL,
    "expect_column_values_to_match_like_pattern_list": _SQL,
    "expect_column_values_to_not_be_outliers": "Spark and pandas disagree about its quantiles",
    "expect_column_values_to_not_match_like_pattern": _SQL,
    "expect_column_values_to_not_match_like_pattern_list": _SQL,
    "expect_query_results_to_match_comparison": _SQL,
    "expect_table_row_count_to_equal_other_table": _SQL,
    "unexpected_rows_expectation": _SQL,
}
"""What Great Expectations has and a gate refuses, and why."""

MUST_IGNORE_MISSING: Mapping[str, str] = {
    "expect_column_pair_values_a_to_be_greater_than_b": "either_value_is_missing",
    "expect_multicolumn_sum_to_equal": "any_value_is_missing",
}
"""Where a NULL counts as 0 here and as wrong there: the suite has to leave such rows out."""

VALUE_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "expect_column_max_to_be_between": ("min_value", "max_value"),
    "expect_column_min_to_be_between": ("min_value", "max_value"),
    "expect_column_values_to_be_between": ("min_value", "max_value"),
    **dict.fromkeys(
        (
            name
            for name in SUPPORTED
            if name.startswith("expect_column_") and name.endswith("_set") and "pair" not in name
        ),
        ("value_set",),
    ),
}
"""The arguments that are values of the column."""

NUMBER_TYPES = frozenset(("tinyint", "smallint", "int", "bigint", "float", "double"))
"""The types of columns that hold numbers, besides decimals."""

OF_ANY_TYPE = frozenset(
    (
        "expect_column_proportion_of_non_null_values_to_be_between",
        "expect_column_values_to_be_null",
        "expect_column_values_to_not_be_null",
    )
)
"""What can be said of nested columns."""

_NUMBERS = ("numbers",)
_IN_ORDER = (*_NUMBERS, "days", "moments", "moments without a zone")
_AS_TEXT = ("text", "numbers", "days")

FITTING_TYPES: Mapping[str, tuple[str, ...]] = {
    "expect_column_max_to_be_between": _IN_ORDER,
    "expect_column_mean_to_be_between": _NUMBERS,
    "expect_column_median_to_be_between": _NUMBERS,
    "expect_column_min_to_be_between": _IN_ORDER,
    "expect_column_pair_values_a_to_be_greater_than_b": (*_IN_ORDER, "text"),
    "expect_column_quantile_values_to_be_between": _NUMBERS,
    "expect_column_stdev_to_be_between": _NUMBERS,
    "expect_column_sum_to_be_between": _NUMBERS,
    "expect_column_value_lengths_to_be_between": (*_AS_TEXT, "bytes"),
    "expect_column_value_lengths_to_equal": (*_AS_TEXT, "bytes"),
    "expect_column_value_z_scores_to_be_less_than": _NUMBERS,
    "expect_column_values_to_be_between": _IN_ORDER,
    "expect_column_values_to_be_json_parseable": ("text",),
    "expect_column_values_to_match_json_schema": ("text",),
    "expect_column_values_to_match_regex": _AS_TEXT,
    "expect_column_values_to_match_regex_list": _AS_TEXT,
    "expect_column_values_to_match_strftime_format": ("text",),
    "expect_column_values_to_not_match_regex": _AS_TEXT,
    "expect_column_values_to_not_match_regex_list": _AS_TEXT,
    "expect_multicolumn_sum_to_equal": _NUMBERS,
}
"""The families of types that an expectation is about, where it is not about all."""


def type_family(column_type: str) -> str:
    """Types whose values can be compared with each other."""
    if column_type in NUMBER_TYPES or column_type.startswith("decimal"):
        return "numbers"
    return _FAMILIES.get(column_type, column_type)


_FAMILIES = {
    "string": "text",
    "binary": "bytes",
    "boolean": "truth values",
    "date": "days",
    "timestamp": "moments",
    "timestamp_ntz": "moments without a zone",
}

# Row conditions


_CONDITION = re.compile(
    r"""\s*col\(\s*(?:"(?P<double>[^"]+)"|'(?P<single>[^']+)')\s*\)\s*
        (?:(?P<not_null>\.notNull\(\))
         |(?P<operator>==|!=|<=|>=|<|>)\s*
          (?:(?P<number>-?\d+(?:\.\d+)?)|"(?P<double_text>[^"]*)"|'(?P<single_text>[^']*)'))\s*""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCondition:
    """Which rows a check looks at: those where the column compares so with the value, or is not NULL."""

    column: str
    operator: str
    """ "==", "!=", "<", "<=", ">", ">=", or "not null"."""
    value: int | float | str | None = None


def looks_at_schema(expectation: str) -> bool:
    """Whether it asks for the names of columns only."""
    return expectation in _ON_SCHEMA


def looks_at_effect(expectation: str) -> bool:
    """Whether it asks what the commit does to the rows that there were."""
    return expectation in ON_EFFECT


def column_arguments(arguments: Mapping[str, Any]) -> dict[str, str]:
    """The columns whose values a check looks at, each with the argument that names it."""
    found: dict[str, str] = {}
    for argument in ("column", "column_A", "column_B", "column_list"):
        named = arguments.get(argument, ())
        for column in [named] if isinstance(named, str) else named if isinstance(named, list) else ():
            if isinstance(column, str):
                found.setdefault(column, argument)
    condition = parse_condition(arguments.get("row_condition"))
    if condition is not None:
        found.setdefault(condition.column, "row_condition")
    return found


def condition_fits(condition: RowCondition, column_type: str) -> bool:
    """Whether both engines compare the column with the condition's value alike: numbers with numbers, text with text.
    Elsewhere pandas may find no row, and a check of no rows passes."""
    if condition.operator == "not null":
        return True
    if isinstance(condition.value, str):
        return column_type == "string"
    return column_type in NUMBER_TYPES or column_type.startswith("decimal")


def parse_condition(text: Any) -> RowCondition | None:
    """`col("status") == "NEW"` or `col("day").notNull()`; None for anything else."""
    match = _CONDITION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    column = match["double"] or match["single"]
    if match["not_null"]:
        return RowCondition(column=column, operator="not null")
    number = match["number"]
    if number is not None:
        return RowCondition(
            column=column, operator=match["operator"], value=float(number) if "." in number else int(number)
        )
    value = match["double_text"] if match["double_text"] is not None else match["single_text"]
    return RowCondition(column=column, operator=match["operator"], value=value)
