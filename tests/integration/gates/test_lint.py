"""Promises of the lint: a suite that could not be carried out, or lets everything pass, is refused when it is read."""

from pathlib import Path
from typing import Any

import pytest

from lakelib.errors import InvalidInputError
from lakelib.gates.expectations import ON_EFFECT, SUPPORTED
from lakelib.gates.lint import check_suite
from lakelib.model.schema import Column
from lakelib.ops.judge import open_gate
from lakelib.specs.suite import parse_suite

COLUMNS = [
    Column(id=place, name=name, type=kind)
    for place, (name, kind) in enumerate(
        [
            ("id", "bigint"),
            ("amount", "decimal(10,2)"),
            ("price", "double"),
            ("day", "date"),
            ("moment", "timestamp"),
            ("status", "string"),
            ("ok", "boolean"),
            ("raw", "binary"),
            ("size", "struct<x:bigint>"),
            ("a.b", "bigint"),
            ("a`b", "bigint"),
        ]
    )
]
NOT_NULL = "expect_column_values_to_not_be_null"
BETWEEN = "expect_column_values_to_be_between"
IN_SET = "expect_column_values_to_be_in_set"


def problems(*checks: str, columns: list[Column] | None = COLUMNS) -> list[str]:
    """What is wrong with checks, which begin in line 3."""
    text = "name: a\nexpectations:\n" + "".join(f"- {check}\n" for check in checks)
    try:
        check_suite(parse_suite(text, "a.yaml"), columns)
    except InvalidInputError as error:
        return error.message.splitlines()
    return []


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        (
            "{type: expect_column_to_exst, kwargs: {column: id}}",
            "there is no expectation 'expect_column_to_exst'. Do you mean expect_column_to_exist",
        ),
        (
            "{type: expect_column_values_to_be_increasing, kwargs: {column: id}}",
            "a gate cannot take expect_column_values_to_be_increasing: the rows of a table have no order.",
        ),
        (f"{{type: {NOT_NULL}, kwargs: {{colum: id}}}}", f"{NOT_NULL} needs the argument 'column'."),
        (f"{{type: {NOT_NULL}}}", f"{NOT_NULL} needs the argument 'column'."),
        (f"{{type: {NOT_NULL}, kwargs: {{column: 7}}}}", "column is 7: it must be text."),
        (
            f"{{type: {NOT_NULL}, kwargs: {{column: id, mostly: 2}}}}",
            "mostly is 2: it must be above 0 and at most 1.",
        ),
        (
            f"{{type: {BETWEEN}, kwargs: {{column: id, min_value: few}}}}",
            "min_value is 'few', which the column cannot hold.",
        ),
        (
            f"{{type: {BETWEEN}, kwargs: {{column: id}}}}",
            f"{BETWEEN}: min_value and max_value cannot both be None.",
        ),
        (
            f"{{type: {BETWEEN}, kwargs: {{column: id, min_value: {{$PARAMETER: x}}}}}}",
            "min_value is a parameter, and gates have none.",
        ),
        (f"{{type: {NOT_NULL}, kwargs: {{column: ids}}}}", "there is no column 'ids'. Do you mean id?"),
        (f"{{type: {NOT_NULL}, kwargs: {{column: ID}}}}", "there is no column 'ID'."),
        (
            "{type: expect_compound_columns_to_be_unique, kwargs: {column_list: [id, statu]}}",
            "there is no column 'statu'. Do you mean status?",
        ),
        (
            f"{{type: {NOT_NULL}, kwargs: {{column: id, row_condition: 'col(\"stat\") == 1'}}}}",
            "there is no column 'stat'. Do you mean status?",
        ),
        (
            f"{{type: {NOT_NULL}, kwargs: {{column: id, row_condition: 'status == 1'}}}}",
            "row_condition is 'status == 1'; it must be of the form",
        ),
        (
            f"{{type: {NOT_NULL}, kwargs: {{column: id, row_condition: 'col(\"id\") == 1 and 1 == 1'}}}}",
            "row_condition is 'col(\"id\") == 1 and 1 == 1'; it must be of the form",
        ),
        (
            f"{{type: {NOT_NULL}, kwargs: {{column: id, condition_parser: pandas}}}}",
            f"{NOT_NULL} has no argument 'condition_parser'.",
        ),
        (
            "{type: expect_multicolumn_sum_to_equal, kwargs: {column_list: [id, amount], sum_total: 1}}",
            "expect_multicolumn_sum_to_equal needs ignore_row_if: any_value_is_missing;",
        ),
        (
            f"{{type: {BETWEEN}, kwargs: {{column: day, min_value: 7}}}}",
            "min_value is 7, which the column cannot hold.",
        ),
        (
            f"{{type: {BETWEEN}, kwargs: {{column: day, min_value: 2026-11-18 12:00:00}}}}",
            "min_value is datetime.datetime(2026, 11, 18, 12, 0), which the column cannot hold.",
        ),
        (
            "{type: expect_column_values_to_be_in_set, kwargs: {column: moment, value_set: [soon]}}",
            "value_set is ['soon'], which the column cannot hold.",
        ),
        (
            "{type: expect_column_values_to_match_regex, kwargs: {column: status, regex: '(a'}}",
            "regex is '(a': it is no pattern: missing ), unterminated subpattern at position 0.",
        ),
        (
            "{type: expect_column_mean_to_be_between, kwargs: {column: status, min_value: 1}}",
            "column 'status' is of type string; expect_column_mean_to_be_between is about numbers.",
        ),
        (
            "{type: expect_column_pair_values_to_be_equal, kwargs: {column_A: id, column_B: status}}",
            "expect_column_pair_values_to_be_equal compares columns that cannot be equal:",
        ),
        (
            "{type: expect_column_values_to_be_unique, kwargs: {column: size}}",
            "column 'size' is nested (struct<x:bigint>): only NULLs can be looked for in it.",
        ),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(check: str, problem: str) -> None:
    found = problems(check)
    assert any(line.startswith(f"a.yaml, line 3: {problem}") for line in found), found


@pytest.mark.parametrize("column", ["status", "day", "id"])
def test_null_is_no_member_of_a_set(column: str) -> None:
    member = {"status": "NEW", "day": "2026-11-18", "id": "1"}[column]
    found = problems(f"{{type: {IN_SET}, kwargs: {{column: {column}, value_set: [{member}, null]}}}}")
    assert found == ["a.yaml, line 3: value_set holds null: NULL is neither in a set nor outside it."]


@pytest.mark.parametrize(
    ("column", "member"),
    [
        ("id", "'1'"),
        ("id", "true"),
        ("id", "2026-11-18"),
        ("amount", "'1.50'"),
        ("price", ".nan"),
        ("status", "1"),
        ("status", "2026-11-18"),
        ("ok", "'true'"),
        ("ok", "1"),
        ("raw", "'1'"),
    ],
)
def test_members_of_a_set_are_of_the_columns_type(column: str, member: str) -> None:
    (found,) = problems(f"{{type: {IN_SET}, kwargs: {{column: {column}, value_set: [{member}]}}}}")
    assert found.endswith("which the column cannot hold.")


@pytest.mark.parametrize("column", ["id", "price", "amount"])
def test_no_number_is_nan(column: str) -> None:
    (found,) = problems(f"{{type: {BETWEEN}, kwargs: {{column: {column}, max_value: .nan}}}}")
    assert found == "a.yaml, line 3: max_value is nan: it must be a number, and NaN is comparable with none."


@pytest.mark.parametrize(
    "condition",
    [
        'col("status") == 1',
        'col("id") == "1"',
        'col("amount") >= "1"',
        'col("day") == 2',
        'col("day") == "2026-11-18"',
        'col("moment") >= "2026-11-18"',
        'col("ok") == 1',
        'col("raw") == "1"',
        'col("size") == 1',
    ],
)
def test_a_row_condition_that_could_find_no_row_is_refused(condition: str) -> None:
    (found,) = problems(f"{{type: {NOT_NULL}, kwargs: {{column: id, row_condition: '{condition}'}}}}")
    assert "it can compare numbers with numbers and text with text." in found


def test_an_unknown_argument_is_told_with_those_that_are_near() -> None:
    assert problems(f"{{type: {BETWEEN}, kwargs: {{column: id, min_valu: 1, max_value: 2}}}}") == [
        f"a.yaml, line 3: {BETWEEN} has no argument 'min_valu'. Do you mean min_value or max_value?"
    ]


def test_all_is_told_at_once_in_the_order_of_lines() -> None:
    found = problems("{type: expect_a}", f"{{type: {NOT_NULL}, kwargs: {{column: x}}}}", "{type: expect_b}")
    assert [line.partition(":")[0] for line in found] == ["a.yaml, line 3", "a.yaml, line 4", "a.yaml, line 5"]


@pytest.mark.parametrize(
    "check",
    [
        f"{{type: {NOT_NULL}, kwargs: {{column: anything}}}}",
        "{type: expect_column_values_to_be_in_set, kwargs: {column: moment, value_set: [soon]}}",
    ],
)
def test_without_columns_only_the_suite_itself_is_checked(check: str) -> None:
    assert problems(check, columns=None) == []


@pytest.mark.parametrize(
    "check",
    [
        "{type: expect_column_to_exist, kwargs: {column: none}}",
        "{type: expect_table_columns_to_match_set, kwargs: {column_set: [x]}}",
        f"{{type: {BETWEEN}, kwargs: {{column: day, min_value: 2026-11-18, max_value: '2026-11-19'}}}}",
        f"{{type: {BETWEEN}, kwargs: {{column: moment, min_value: '2026-11-18T00:00:00+02:00'}}}}",
        f"{{type: {NOT_NULL}, kwargs: {{column: id, row_condition: \"col('status') != 'x'\"}}}}",
        f"{{type: {NOT_NULL}, kwargs: {{column: size, row_condition: \"col('amount') < 2.5\"}}}}",
        "{type: expect_column_values_to_match_regex, kwargs: {column: a`b, regex: x}}",
        f"{{type: {NOT_NULL}, kwargs: {{column: id, row_condition: 'col(\"a.b\") == 1'}}}}",
        f"{{type: {NOT_NULL}, kwargs: {{column: a.b, row_condition: \"col('day').notNull()\"}}}}",
        f"{{type: {IN_SET}, kwargs: {{column: price, value_set: [1, 2.5]}}}}",
        f"{{type: {IN_SET}, kwargs: {{column: raw, value_set: [!!binary aGk=]}}}}",
    ],
)
def test_what_is_right_passes(check: str) -> None:
    assert problems(check) == []


FEW_GO = "expect_proportion_of_rows_deleted_to_be_between"


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        (f"{{type: {FEW_GO}, kwargs: {{max_value: 0.01}}}}", "it needs scope: merged"),
        (f"{{type: {FEW_GO}, kwargs: {{max_value: 1}}, scope: table}}", "it must be below 1"),
        (f"{{type: {FEW_GO}, kwargs: {{max_value: -0.1}}, scope: table}}", "no less than 0"),
        (f"{{type: {FEW_GO}, kwargs: {{max_value: '0.01'}}, scope: table}}", "must be a number"),
        (f"{{type: {FEW_GO}, scope: table}}", "cannot both be None"),
        (f"{{type: {FEW_GO}, kwargs: {{max_value: 0.1, column: id}}, scope: table}}", "has no argument 'column'"),
        ("{type: expect_rows_deleted_to_be_between, kwargs: {max_value: 0.5}, scope: table}", "a whole number"),
        ("{type: expect_row_deleted_to_be_between, kwargs: {max_value: 5}, scope: table}", "expect_rows_deleted_to_be"),
    ],
)
def test_what_a_commit_may_do_to_rows_is_said_in_full(check: str, problem: str) -> None:
    (found,) = problems(check)
    assert problem in found


def test_a_value_of_any_kind_is_refused_without_a_crash() -> None:
    values: list[Any] = ["[]", "{}", "''", "null", "true", ".nan", "2026-11-18", "!!binary aGk=", "[[1]]", "{a: 1}"]
    for kind in sorted({*SUPPORTED, *ON_EFFECT}):
        problems(*(f"{{type: {kind}, kwargs: {{column: {value}, value_set: {value}}}}}" for value in values))


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        (f"{{type: {BETWEEN}, kwargs: {{column: id, min_value: '5'}}}}", "in quotes it is text."),
        (f"{{type: {BETWEEN}, kwargs: {{column: id, min_value: 1, strict_min: 'yes'}}}}", "it must be true or false."),
        (f"{{type: {BETWEEN}, kwargs: {{column: id, min_value: 1, strict_min: 1}}}}", "it must be true or false."),
        (f"{{type: {NOT_NULL}, kwargs: {{column: id, mostly: '0.9'}}}}", "it must be a number."),
        ("{type: expect_table_row_count_to_equal, kwargs: {value: '6'}}", "it must be a number."),
        ("{type: expect_table_row_count_to_equal, kwargs: {value: true}}", "it must be a number."),
        ("{type: expect_table_row_count_to_equal, kwargs: {value: 6.5}}", "it must be a whole number."),
    ],
)
def test_a_number_or_a_truth_value_in_quotes_is_text(check: str, problem: str) -> None:
    (found,) = problems(check)
    assert found.endswith(problem)


@pytest.mark.parametrize(
    "check",
    [
        f"{{type: {NOT_NULL}, kwargs: {{column: id, mostly: 0}}}}",
        "{type: expect_column_values_to_not_be_in_set, kwargs: {column: id, value_set: []}}",
        "{type: expect_column_distinct_values_to_contain_set, kwargs: {column: id, value_set: []}}",
        "{type: expect_column_max_to_be_between, kwargs: {column: id}}",
        "{type: expect_column_mean_to_be_between, kwargs: {column: id, min_value: null}}",
        "{type: expect_table_row_count_to_be_between}",
        "{type: expect_column_values_to_match_regex, kwargs: {column: status}}",
        "{type: expect_column_values_to_match_regex, kwargs: {column: status, regex: ''}}",
        "{type: expect_column_values_to_match_regex_list, kwargs: {column: status, regex_list: []}}",
        "{type: expect_column_values_to_match_json_schema, kwargs: {column: status, json_schema: {}}}",
        "{type: expect_table_columns_to_match_ordered_list}",
        "{type: expect_table_columns_to_match_set, kwargs: {column_set: [], exact_match: false}}",
        "{type: expect_column_quantile_values_to_be_between, kwargs: {column: id, quantile_ranges:"
        " {quantiles: [0.5], value_ranges: [[null, null]]}}}",
        "{type: expect_column_quantile_values_to_be_between, kwargs: {column: id, quantile_ranges:"
        " {quantiles: [], value_ranges: []}}}",
    ],
)
def test_arguments_that_let_everything_pass_are_refused(check: str) -> None:
    assert problems(check)


@pytest.mark.parametrize(
    "check",
    [
        f"{{type: {BETWEEN}, kwargs: {{column: id, min_value: 2, max_value: 1}}}}",
        f"{{type: {BETWEEN}, kwargs: {{column: id, min_value: 2, max_value: 2, strict_min: true}}}}",
        "{type: expect_column_value_lengths_to_be_between, kwargs: {column: status, min_value: 2, max_value: 1}}",
        "{type: expect_column_quantile_values_to_be_between, kwargs: {column: id, quantile_ranges:"
        " {quantiles: [0.5], value_ranges: [[2, 1]]}}}",
        "{type: expect_column_values_to_match_regex_list, kwargs: {column: status, regex_list: [a, '[']}}",
    ],
)
def test_ranges_and_patterns_are_compared_and_compiled_when_the_suite_is_read(check: str) -> None:
    assert problems(check, columns=None)


def test_what_is_wrong_with_form_and_with_arguments_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        f"nam: a\nexpectations:\n- {{type: {NOT_NULL}, sevrity: info}}\n- {{type: expect_a, scope: all}}\n"
        f"- {{type: {BETWEEN}, kwargs: {{column: id, min_value: '1'}}}}\n"
    )
    with pytest.raises(InvalidInputError) as caught:
        open_gate(path)
    found = [
        line.removeprefix(f"{path}, ").partition(",")[0].split(":")[0] for line in caught.value.message.splitlines()
    ]
    assert found == ["line 1", "line 1", "line 3", "line 3", "line 4", "line 4", "line 5"]
