"""Pure. The arguments of each expectation, and what may be said for them.

Stricter than Great Expectations, which takes a number in quotes for a number, `yes` in quotes for true, and arguments
under which every row passes. What is taken here it takes, too.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from lakelib.gates.expectations import ON_EFFECT
from lakelib.gates.patterns import why_wrong

Kind = Callable[[Any], str | None]
"""Why a value is none of the kind; None for one that is."""


def _number(value: Any) -> str | None:
    """Python takes true for 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return "it must be a number"
    return "it must be a number, and NaN is comparable with none" if math.isnan(value) else None


def _count(value: Any) -> str | None:
    return _number(value) or (None if value == int(value) else "it must be a whole number")


def _bound(value: Any) -> str | None:
    """A number, a day or a moment; which of them, the column's type says."""
    if isinstance(value, date):
        return None
    if isinstance(value, str):
        return "it must be a number; in quotes it is text" if _is_number(value) else None
    return _number(value)


def _share(value: Any) -> str | None:
    wrong = _number(value)
    if wrong is None and value == 0:
        return "it lets everything pass"
    return wrong or (None if 0 < value <= 1 else "it must be above 0 and at most 1")


def _row_count(value: Any) -> str | None:
    return _count(value) or ("rows are no fewer than 0" if value < 0 else None)


def _part(value: Any) -> str | None:
    return _number(value) or ("a share is no less than 0" if value < 0 else None)


def _part_of_all(value: Any) -> str | None:
    """1 may be meant for a percent."""
    return _part(value) or (
        "it must be below 1, which is all rows that there were: 0.01 is 1 %" if value >= 1 else None
    )


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "it must be true or false"


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "it must be text"


def _names(value: Any) -> str | None:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return "it must be a list of names"
    return None if value else "it is empty"


def _several_names(value: Any) -> str | None:
    return _names(value) or (
        None if len(set(value)) == len(value) > 1 else "it must name two columns or more, each once"
    )


def _members(value: Any) -> str | None:
    if not isinstance(value, list):
        return "it must be a list"
    return None if value else "it is empty"


def _pairs(value: Any) -> str | None:
    if not isinstance(value, list) or not all(isinstance(each, list | tuple) and len(each) == 2 for each in value):
        return "it must be a list of pairs"
    return None if value else "it is empty"


def _pattern(value: Any) -> str | None:
    if not isinstance(value, str):
        return "it must be text"
    if not value:
        return "it is empty: every text holds a match of it"
    wrong = why_wrong(value)
    return None if wrong is None else f"it is no pattern: {wrong}"


def _patterns(value: Any) -> str | None:
    if not isinstance(value, list) or not value:
        return "it must be a list of patterns"
    return next((f"{each!r}: {wrong}" for each in value if (wrong := _pattern(each))), None)


def _schema(value: Any) -> str | None:
    if not isinstance(value, dict):
        return "it must be a JSON schema"
    return None if value else "it is empty"


def _ranges(value: Any) -> str | None:
    if not isinstance(value, dict) or value.keys() != {"quantiles", "value_ranges"}:
        return "it must have quantiles and value_ranges"
    quantiles, ranges = value["quantiles"], value["value_ranges"]
    if (
        not isinstance(quantiles, list)
        or not quantiles
        or any(_number(each) or not 0 <= each <= 1 for each in quantiles)
    ):
        return "quantiles must be numbers from 0 to 1"
    if not isinstance(ranges, list) or len(ranges) != len(quantiles):
        return "value_ranges must have a range for each quantile"
    return next((wrong for each in ranges if (wrong := _range(each))), None)


def _is_share(value: Any) -> bool:
    return _number(value) is None and bool(0 <= value <= 1)


def _range(value: Any) -> str | None:
    if not isinstance(value, list) or len(value) != 2 or any(_number(each) for each in value if each is not None):
        return f"{value!r} is no pair of numbers"
    low, high = value
    if low is None and high is None:
        return f"{value!r} lets everything pass"
    return f"{value!r} holds nothing" if None not in value and low > high else None


def _one_of(*words: Any) -> Kind:
    def check(value: Any) -> str | None:
        right = isinstance(value, str | bool) and value in words
        return None if right else f"it must be one of {', '.join(map(str, words))}"

    return check


def _condition(_: Any) -> None:
    """What a condition may be `lint` tells."""


_IGNORED_OF_PAIRS = _one_of("both_values_are_missing", "either_value_is_missing", "neither")
_IGNORED_OF_LISTS = _one_of("all_values_are_missing", "any_value_is_missing", "never")
_STRICT: Mapping[str, Kind] = {"strict_min": _flag, "strict_max": _flag}
_BOUNDS: Mapping[str, Kind] = {"min_value": _bound, "max_value": _bound, **_STRICT}
_NUMBERS: Mapping[str, Kind] = {"min_value": _number, "max_value": _number, **_STRICT}
_COUNTS: Mapping[str, Kind] = {"min_value": _count, "max_value": _count, **_STRICT}
_ROWS: Mapping[str, Kind] = {"row_condition": _condition}
_COLUMN: Mapping[str, Kind] = {"column": _text, **_ROWS}
_VALUES: Mapping[str, Kind] = {**_COLUMN, "mostly": _share}
_PAIR: Mapping[str, Kind] = {"column_A": _text, "column_B": _text, "mostly": _share, **_ROWS}
_LIST: Mapping[str, Kind] = {
    "column_list": _several_names,
    "mostly": _share,
    "ignore_row_if": _IGNORED_OF_LISTS,
    **_ROWS,
}


def _of_effect(change: str, is_share: bool) -> Mapping[str, Kind]:
    """More rows may come than there were, and no more can go."""
    bound = _row_count if not is_share else _part if change == "inserted" else _part_of_all
    return {"min_value": bound, "max_value": bound, **_STRICT}


_ARGUMENTS: Mapping[str, Mapping[str, Kind]] = {
    "expect_column_distinct_values_to_be_in_set": {**_COLUMN, "value_set": _members},
    "expect_column_distinct_values_to_contain_set": {**_COLUMN, "value_set": _members},
    "expect_column_distinct_values_to_equal_set": {**_COLUMN, "value_set": _members},
    "expect_column_max_to_be_between": {**_COLUMN, **_BOUNDS},
    "expect_column_mean_to_be_between": {**_COLUMN, **_NUMBERS},
    "expect_column_median_to_be_between": {**_COLUMN, **_NUMBERS},
    "expect_column_min_to_be_between": {**_COLUMN, **_BOUNDS},
    "expect_column_most_common_value_to_be_in_set": {**_COLUMN, "value_set": _members, "ties_okay": _flag},
    "expect_column_pair_values_a_to_be_greater_than_b": {
        **_PAIR,
        "or_equal": _flag,
        "ignore_row_if": _IGNORED_OF_PAIRS,
    },
    "expect_column_pair_values_to_be_equal": {**_PAIR, "ignore_row_if": _IGNORED_OF_PAIRS},
    "expect_column_pair_values_to_be_in_set": {
        **_PAIR,
        "value_pairs_set": _pairs,
        "ignore_row_if": _IGNORED_OF_PAIRS,
    },
    "expect_column_proportion_of_non_null_values_to_be_between": {**_COLUMN, **_NUMBERS},
    "expect_column_proportion_of_unique_values_to_be_between": {**_COLUMN, **_NUMBERS},
    "expect_column_quantile_values_to_be_between": {
        **_COLUMN,
        "quantile_ranges": _ranges,
        "allow_relative_error": _one_of(False, "linear", "lower", "higher", "midpoint", "nearest"),
    },
    "expect_column_stdev_to_be_between": {**_COLUMN, **_NUMBERS},
    "expect_column_sum_to_be_between": {**_COLUMN, **_NUMBERS},
    "expect_column_to_exist": {"column": _text, "column_index": _count},
    "expect_column_unique_value_count_to_be_between": {**_COLUMN, **_COUNTS},
    "expect_column_value_lengths_to_be_between": {**_VALUES, **_COUNTS},
    "expect_column_value_lengths_to_equal": {**_VALUES, "value": _count},
    "expect_column_value_z_scores_to_be_less_than": {**_VALUES, "threshold": _number, "double_sided": _flag},
    "expect_column_values_to_be_between": {**_VALUES, **_BOUNDS},
    "expect_column_values_to_be_in_set": {**_VALUES, "value_set": _members},
    "expect_column_values_to_be_json_parseable": _VALUES,
    "expect_column_values_to_be_null": _VALUES,
    "expect_column_values_to_be_unique": _VALUES,
    "expect_column_values_to_match_json_schema": {**_VALUES, "json_schema": _schema},
    "expect_column_values_to_match_regex": {**_VALUES, "regex": _pattern},
    "expect_column_values_to_match_regex_list": {
        **_VALUES,
        "regex_list": _patterns,
        "match_on": _one_of("any", "all"),
    },
    "expect_column_values_to_match_strftime_format": {**_VALUES, "strftime_format": _text},
    "expect_column_values_to_not_be_in_set": {**_VALUES, "value_set": _members},
    "expect_column_values_to_not_be_null": _VALUES,
    "expect_column_values_to_not_match_regex": {**_VALUES, "regex": _pattern},
    "expect_column_values_to_not_match_regex_list": {**_VALUES, "regex_list": _patterns},
    "expect_compound_columns_to_be_unique": _LIST,
    "expect_multicolumn_sum_to_equal": {**_LIST, "sum_total": _number},
    "expect_multicolumn_values_to_be_equal": _LIST,
    "expect_select_column_values_to_be_unique_within_record": _LIST,
    "expect_table_column_count_to_be_between": {"min_value": _count, "max_value": _count},
    "expect_table_column_count_to_equal": {"value": _count},
    "expect_table_columns_to_match_ordered_list": {"column_list": _names},
    "expect_table_columns_to_match_set": {"column_set": _names, "exact_match": _flag},
    "expect_table_row_count_to_be_between": {**_COUNTS, **_ROWS},
    "expect_table_row_count_to_equal": {"value": _count, **_ROWS},
    **{name: _of_effect(*asked) for name, asked in ON_EFFECT.items()},
}

_MAY_BE_LEFT_OUT = frozenset(
    (
        "allow_relative_error",
        "column_index",
        "exact_match",
        "ignore_row_if",
        "match_on",
        "max_value",
        "min_value",
        "mostly",
        "or_equal",
        "row_condition",
        "strict_max",
        "strict_min",
        "ties_okay",
    )
)


def arguments_of(expectation: str) -> tuple[str, ...]:
    return tuple(_ARGUMENTS[expectation])


def missing_arguments(expectation: str, given: Mapping[str, Any]) -> list[str]:
    return [name for name in _ARGUMENTS[expectation] if name not in given and name not in _MAY_BE_LEFT_OUT]


def wrong_arguments(expectation: str, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong with the values of known arguments. NULL is as good as nothing for those that may be left out."""
    for name, value in given.items():
        kind = _ARGUMENTS[expectation].get(name)
        if kind is None or (value is None and name in _MAY_BE_LEFT_OUT):
            continue
        if isinstance(value, dict) and "$PARAMETER" in value:
            yield name, f"{name} is a parameter, and gates have none."
        elif wrong := kind(value):
            yield name, f"{name} is {value!r}: {wrong}."


def wrong_bounds(expectation: str, given: Mapping[str, Any]) -> str | None:
    """What is wrong with a range as a whole, whose ends are right."""
    if "min_value" not in _ARGUMENTS[expectation]:
        return None
    low, high = given.get("min_value"), given.get("max_value")
    if low is None and high is None:
        return "min_value and max_value cannot both be None"
    try:
        if low is not None and high is not None and low > high:
            return f"min_value {low!r} is greater than max_value {high!r}: nothing lies between them"
    except TypeError:  # their types are the column's to tell
        return None
    strict = given.get("strict_min") or given.get("strict_max")
    return "nothing lies between two equal values, strictly" if strict and low == high else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
