"""Pure. Checks suites: what each expectation takes, and whether it fits the table's columns.

Everything that is wrong is told at once, with file and line.
"""

from collections.abc import Iterator, Sequence

from lakelib.errors import InvalidInputError
from lakelib.gates.arguments import fit_arguments
from lakelib.gates.expectations import (
    FITTING_TYPES,
    MUST_IGNORE_MISSING,
    OF_ANY_TYPE,
    ON_EFFECT,
    REFUSED,
    SUPPORTED,
    column_arguments,
    condition_fits,
    looks_at_effect,
    looks_at_schema,
    parse_condition,
    type_family,
)
from lakelib.gates.signatures import arguments_of, missing_arguments, wrong_arguments, wrong_bounds
from lakelib.model.gate import Scope
from lakelib.model.schema import Column
from lakelib.specs.suite import Check, Suite, did_you_mean, suite_error


def check_suite(suite: Suite, columns: Sequence[Column] | None = None) -> None:
    """Raises InvalidInputError that tells all that is wrong in a suite; with `columns` also what does not fit them."""
    problems = [
        (check.line if argument is None else check.argument_lines.get(argument, check.line), argument, check, text)
        for check in suite.checks
        for argument, text in check_problems(check, columns)
    ]
    if problems:
        problems.sort(key=lambda problem: problem[0])
        raise suite_error([f"{suite.where(check, argument)}: {text}" for _, argument, check, text in problems])


def check_problems(check: Check, columns: Sequence[Column] | None = None) -> Iterator[tuple[str | None, str]]:
    """What is wrong with a check, each with the argument that it is about."""
    if check.expectation in REFUSED:
        yield None, f"a gate cannot take {check.expectation}: {REFUSED[check.expectation]}."
        return
    known = {*SUPPORTED, *ON_EFFECT}
    if check.expectation not in known:
        yield None, f"there is no expectation {check.expectation!r}{did_you_mean(check.expectation, sorted(known))}"
        return
    found = [*_argument_problems(check), *_rule_problems(check)]
    yield from found
    if columns is not None and not looks_at_schema(check.expectation) and not looks_at_effect(check.expectation):
        misfits = list(_column_problems(check, columns))
        yield from misfits
        if not found and not misfits:
            yield from _value_problems(check, columns)


def _argument_problems(check: Check) -> Iterator[tuple[str | None, str]]:
    known = arguments_of(check.expectation)
    for name in check.arguments:
        if name not in known:
            yield name, f"{check.expectation} has no argument {name!r}{did_you_mean(name, known)}"
    for name in missing_arguments(check.expectation, check.arguments):
        yield None, f"{check.expectation} needs the argument {name!r}."
    wrong = list(wrong_arguments(check.expectation, check.arguments))
    yield from wrong
    bounds = None if wrong else wrong_bounds(check.expectation, check.arguments)
    if bounds is not None:
        yield None, f"{check.expectation}: {bounds}."


def _rule_problems(check: Check) -> Iterator[tuple[str | None, str]]:
    if looks_at_effect(check.expectation) and check.scope is Scope.STAGED:
        yield (
            None,
            f"{check.expectation} is about the rows that there were: it needs scope: merged (those of the partitions"
            " that the commit touches) or scope: table.",
        )
    condition = check.arguments.get("row_condition")
    if condition is not None and parse_condition(condition) is None:
        yield (
            "row_condition",
            f'row_condition is {condition!r}; it must be of the form col("x") == 1 or col("x").notNull().',
        )
    ignored = MUST_IGNORE_MISSING.get(check.expectation)
    if ignored is not None and check.arguments.get("ignore_row_if") != ignored:
        yield None, f"{check.expectation} needs ignore_row_if: {ignored}; nothing can be said of NULL in it."


def _column_problems(check: Check, columns: Sequence[Column]) -> Iterator[tuple[str | None, str]]:
    types = {column.name: column.type for column in columns}
    families: dict[str, str] = {}
    for name, argument in column_arguments(check.arguments).items():
        if name not in types:
            yield argument, f"there is no column {name!r}{did_you_mean(name, list(types))}"
        elif argument != "row_condition" and "<" in types[name] and check.expectation not in OF_ANY_TYPE:
            yield argument, f"column {name!r} is nested ({types[name]}): only NULLs can be looked for in it."
        elif argument != "row_condition":
            family = type_family(types[name])
            fitting = FITTING_TYPES.get(check.expectation)
            if fitting is not None and family not in fitting:
                wanted = " or ".join(fitting)
                yield argument, f"column {name!r} is of type {types[name]}; {check.expectation} is about {wanted}."
            families.setdefault(family, name)
    if len(families) > 1 and check.expectation != "expect_compound_columns_to_be_unique":
        told = ", ".join(f"{name!r} of type {types[name]}" for name in families.values())
        yield None, f"{check.expectation} compares columns that cannot be equal: {told}."
    condition = parse_condition(check.arguments.get("row_condition"))
    if condition is not None and condition.column in types and not condition_fits(condition, types[condition.column]):
        yield (
            "row_condition",
            f"row_condition compares column {condition.column!r} of type {types[condition.column]} with"
            f" {condition.value!r}; it can compare numbers with numbers and text with text.",
        )


def _value_problems(check: Check, columns: Sequence[Column]) -> Iterator[tuple[str | None, str]]:
    try:
        fit_arguments(check, columns)
    except InvalidInputError as error:
        yield error.kind, error.message
