"""Checks suites: Great Expectations must know each expectation and its arguments, the table each column.

Everything that is wrong is told at once, with file and line.
"""

from collections.abc import Iterator, Sequence
from typing import Any

try:
    from great_expectations.expectations.registry import get_expectation_impl
except ImportError as error:
    raise ImportError(
        'Gates need Great Expectations, and it is not installed. Run: pip install "lakelib[gates]"',
        name="great_expectations",
    ) from error

from lakelib.errors import InvalidInputError
from lakelib.gates.arguments import fit_arguments
from lakelib.gates.expectations import (
    MUST_IGNORE_MISSING,
    OF_ANY_TYPE,
    REFUSED,
    SUPPORTED,
    column_arguments,
    condition_fits,
    looks_at_schema,
    parse_condition,
)
from lakelib.model.schema import Column
from lakelib.specs.suite import Check, Suite, did_you_mean, suite_error

_NOT_ARGUMENTS = frozenset(
    (
        "batch_id",
        "catch_exceptions",
        "condition_parser",
        "description",
        "expectation_context",
        "id",
        "library_metadata",
        "meta",
        "notes",
        "rendered_content",
        "result_format",
        "severity",
        "windows",
    )
)
"""Fields of Great Expectations' classes that are no part of what is checked, or that the gate decides."""

_PARAMETER_ONLY = "value is not a valid dict"
"""An argument may also be a reference to a parameter of the run, which gates have not."""

_RULE_OF_SEVERAL = "__root__"


def check_suite(suite: Suite, columns: Sequence[Column] | None = None) -> None:
    """Raises InvalidInputError that tells all that is wrong in a suite; with `columns` also what does not fit them."""
    problems = [
        (check.line if argument is None else check.argument_lines.get(argument, check.line), argument, check, text)
        for check in suite.checks
        for argument, text in _problems(check, columns)
    ]
    if problems:
        problems.sort(key=lambda problem: problem[0])
        raise suite_error([f"{suite.where(check, argument)}: {text}" for _, argument, check, text in problems])


def _problems(check: Check, columns: Sequence[Column] | None) -> Iterator[tuple[str | None, str]]:
    """What is wrong with a check, each with the argument that it is about."""
    if check.expectation in REFUSED:
        yield None, f"a gate cannot take {check.expectation}: {REFUSED[check.expectation]}."
        return
    if check.expectation not in SUPPORTED:
        yield None, f"there is no expectation {check.expectation!r}{did_you_mean(check.expectation, sorted(SUPPORTED))}"
        return
    found = [*_argument_problems(check), *_rule_problems(check)]
    yield from found
    if columns is not None and not looks_at_schema(check.expectation):
        yield from _column_problems(check, columns)
        if not found:
            yield from _value_problems(check, columns)


def _argument_problems(check: Check) -> Iterator[tuple[str | None, str]]:
    kind = get_expectation_impl(check.expectation)
    known = [name for name in kind.__fields__ if name not in _NOT_ARGUMENTS]
    for name in check.arguments:
        if name not in known:
            yield name, f"{check.expectation} has no argument {name!r}{did_you_mean(name, known)}"
    missing = [name for name in known if kind.__fields__[name].required and name not in check.arguments]
    for name in missing:
        yield None, f"{check.expectation} needs the argument {name!r}."
    given = {name: value for name, value in check.arguments.items() if name in known and name != "row_condition"}
    wrong = _refusals(kind, given)
    for name, texts in wrong.items():
        if name != _RULE_OF_SEVERAL and name not in missing:
            yield name, f"{name} is {check.arguments.get(name)!r}: {', '.join(texts)}."
    if wrong.keys() == {_RULE_OF_SEVERAL}:
        yield None, f"{check.expectation}: {', '.join(wrong[_RULE_OF_SEVERAL])}."


def _refusals(kind: Any, arguments: dict[str, Any]) -> dict[str, list[str]]:
    """What Great Expectations says against arguments, by argument. It keeps a pydantic of its own, whose errors are
    known by what they have."""
    found: dict[str, list[str]] = {}
    try:
        kind(**arguments)
    except ValueError as error:
        told: Any = error
        details: list[dict[str, Any]] = (
            told.errors() if hasattr(error, "errors") else [{"loc": (_RULE_OF_SEVERAL,), "msg": str(error)}]
        )
        for each in details:
            texts = found.setdefault(str(each["loc"][0]), [])
            if each["msg"] not in (*texts, _PARAMETER_ONLY):
                texts.append(each["msg"])
    return found


def _rule_problems(check: Check) -> Iterator[tuple[str | None, str]]:
    """What a gate asks for beyond Great Expectations, for the same answers on Spark and in process."""
    for name, value in check.arguments.items():
        if isinstance(value, dict) and "$PARAMETER" in value:
            yield name, f"{name} is a parameter, and gates have none."
    condition = check.arguments.get("row_condition")
    if condition is not None and parse_condition(condition) is None:
        yield (
            "row_condition",
            f'row_condition is {condition!r}; it must be of the form col("x") == 1 or col("x").notNull().',
        )
    ignored = MUST_IGNORE_MISSING.get(check.expectation)
    if ignored is not None and check.arguments.get("ignore_row_if") != ignored:
        yield None, f"{check.expectation} needs ignore_row_if: {ignored}; Spark and pandas disagree about NULL in it."


def _column_problems(check: Check, columns: Sequence[Column]) -> Iterator[tuple[str | None, str]]:
    types = {column.name: column.type for column in columns}
    for name, argument in column_arguments(check.arguments).items():
        if name not in types:
            yield argument, f"there is no column {name!r}{did_you_mean(name, list(types))}"
        elif argument != "row_condition" and "<" in types[name] and check.expectation not in OF_ANY_TYPE:
            yield argument, f"column {name!r} is nested ({types[name]}): only NULLs can be looked for in it."
        elif "`" in name or ("." in name and argument == "row_condition"):
            yield argument, f"Great Expectations does not find the column {name!r} on Spark."
    condition = parse_condition(check.arguments.get("row_condition"))
    if condition is not None and condition.column in types and not condition_fits(condition, types[condition.column]):
        yield (
            "row_condition",
            f"row_condition compares column {condition.column!r} of type {types[condition.column]} with"
            f" {condition.value!r}; Spark and pandas agree about numbers and text only.",
        )


def _value_problems(check: Check, columns: Sequence[Column]) -> Iterator[tuple[str | None, str]]:
    try:
        fit_arguments(check, columns, on_spark=False)
    except InvalidInputError as error:
        yield error.kind, error.message
