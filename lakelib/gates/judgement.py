"""Pure. What checks say of what was found, and of what a commit does to the rows that there were."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from lakelib.gates.arguments import fit_arguments
from lakelib.gates.evidence import as_json, as_measure, as_sample
from lakelib.gates.expectations import ON_EFFECT, looks_at_effect, looks_at_schema
from lakelib.gates.plan import Asked, Counted, GatePlan, Need, Summarised, Tested, limits_of
from lakelib.gates.questions import Answer
from lakelib.gates.row_tests import Limits
from lakelib.gates.tally import Found
from lakelib.model.effect import ROWS_BEFORE, Effect
from lakelib.model.gate import CheckResult, Status
from lakelib.model.schema import Column
from lakelib.rows.values import python_value, raw_value
from lakelib.specs.suite import Check


def judge_checks(checks: Sequence[Check], columns: Sequence[Column], plan: GatePlan, found: Found) -> list[CheckResult]:
    """The results in the order of the checks."""
    return [
        judge_names(check, columns)
        if looks_at_schema(check.expectation)
        else _judge(check, columns, plan.needs[place], found, place)
        for place, check in enumerate(checks)
    ]


def _judge(check: Check, columns: Sequence[Column], need: Need, found: Found, place: int) -> CheckResult:
    shared = need.gathered if isinstance(need, Asked) else need if isinstance(need, Summarised) else place
    for key in (place, shared):
        if key in found.errors:
            return result_of(check, Status.ERRORED, detail=str(as_json(found.errors[key])))
    given = fit_arguments(check, columns)
    rows, considered = found.counts[need.base], found.counts[need.domain]
    match need:
        case Tested():
            unexpected = found.tests[place]
            return _of_rows(check, rows, considered, unexpected.count, unexpected.sample)
        case Counted():
            if check.expectation == "expect_column_proportion_of_non_null_values_to_be_between":
                return _measured(check, given, considered / rows if rows else 0)
            return _of_row_count(check, given, rows)
        case Summarised():
            return _of_summary(check, given, columns, found, need)
        case Asked():
            answer = found.answers.get((need.gathered, need.question), Answer())
            return _of_answer(check, given, answer, rows, considered)


def _of_rows(check: Check, rows: int, considered: int, unexpected: int, sample: Sequence[Any]) -> CheckResult:
    passed = not considered or (considered - unexpected) / considered >= check.arguments.get("mostly", 1)
    names = check.arguments.get("column_list")
    shown = [dict(zip(names, values, strict=True)) for values in sample] if names else sample
    return result_of(
        check,
        Status.PASSED if passed else Status.FAILED,
        row_count=rows,
        unexpected_count=unexpected,
        sample=as_sample(shown),
    )


def _of_row_count(check: Check, given: Mapping[str, Any], rows: int) -> CheckResult:
    if check.expectation == "expect_table_row_count_to_equal":
        return _said(check, rows == given["value"], rows)
    return _measured(check, given, rows)


def _of_summary(
    check: Check, given: Mapping[str, Any], columns: Sequence[Column], found: Found, need: Summarised
) -> CheckResult:
    summary = found.summaries[need]
    kind = next(column.type for column in columns if column.name == need.column)
    match check.expectation:
        case "expect_column_max_to_be_between" if summary.nan_count:
            return _said(check, False, None)
        case "expect_column_max_to_be_between":
            return _measured_end(check, given, kind, summary.greatest)
        case "expect_column_min_to_be_between":
            return _measured_end(check, given, kind, summary.least)
        case "expect_column_sum_to_be_between":
            return _measured(check, given, summary.total if summary.count else None)
        case "expect_column_mean_to_be_between":
            return _measured(check, given, summary.average)
        case _:
            return _measured(check, given, summary.deviation)


def _measured_end(check: Check, given: Mapping[str, Any], kind: str, end: Any) -> CheckResult:
    """Days and moments are compared as they are stored: there are some that Python has not."""
    if end is None or kind not in ("date", "timestamp", "timestamp_ntz"):
        return _measured(check, given, end)
    bounds = {name: given[name] for name in ("min_value", "max_value") if given.get(name) is not None}
    limits = limits_of({**given, **{name: raw_value(kind, bound) for name, bound in bounds.items()}})
    return _said(check, limits.holds(end), python_value(kind, end))


def _measured(check: Check, given: Mapping[str, Any], value: Any) -> CheckResult:
    """NULL and NaN are in no range."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return _said(check, False, None)
    limits = limits_of(given)
    exact = isinstance(value, Decimal)
    if exact:
        limits = limits_of({**given, **{name: _exact(given.get(name)) for name in ("min_value", "max_value")}})
    return _said(check, limits.holds(value), value)


def _exact(bound: Any) -> Any:
    return Decimal(repr(bound)) if isinstance(bound, float) else bound


def _of_answer(check: Check, given: Mapping[str, Any], answer: Answer, rows: int, considered: int) -> CheckResult:
    members = len(set(given.get("value_set", ())))
    match check.expectation:
        case "expect_column_unique_value_count_to_be_between":
            return _measured(check, given, answer.distinct)
        case "expect_column_proportion_of_unique_values_to_be_between":
            return _measured(check, given, answer.distinct / considered if considered else 0)
        case "expect_column_distinct_values_to_be_in_set":
            return _of_set(check, not answer.unexpected, answer)
        case "expect_column_distinct_values_to_contain_set":
            return _said(check, answer.distinct == members, None)
        case "expect_column_distinct_values_to_equal_set":
            return _of_set(check, not answer.unexpected and answer.distinct == members, answer)
        case "expect_column_most_common_value_to_be_in_set":
            passed = answer.distinct > 0 if given.get("ties_okay") else answer.ties == 1 and answer.distinct == 1
            return _said(check, passed, list(answer.sample))
        case "expect_column_median_to_be_between":
            return _measured(check, given, answer.numbers[0] if answer.numbers else None)
        case "expect_column_quantile_values_to_be_between":
            return _of_quantiles(check, given["quantile_ranges"], answer)
        case _:
            return _of_rows(check, rows, considered, answer.unexpected, answer.sample)


def _of_set(check: Check, passed: bool, answer: Answer) -> CheckResult:
    return result_of(
        check,
        Status.PASSED if passed else Status.FAILED,
        unexpected_count=answer.unexpected,
        sample=as_sample(answer.sample),
    )


def _of_quantiles(check: Check, ranges: Mapping[str, Any], answer: Answer) -> CheckResult:
    values = answer.numbers or (None,) * len(ranges["quantiles"])
    passed = all(
        value is not None and Limits(low=low, high=high).holds(value)
        for value, (low, high) in zip(values, ranges["value_ranges"], strict=True)
    )
    return _said(check, passed, {"quantiles": list(ranges["quantiles"]), "values": list(values)})


def judge_names(check: Check, columns: Sequence[Column]) -> CheckResult:
    """Of what asks for names of columns only, which needs no row."""
    names = [column.name for column in columns]
    passed, observed = _OF_NAMES[check.expectation](names, check.arguments)
    return _said(check, passed, observed)


def _exists(names: Sequence[str], given: Mapping[str, Any]) -> tuple[bool, Any]:
    index = given.get("column_index")
    if not index:
        return given["column"] in names, None
    return -len(names) <= index < len(names) and names[index] == given["column"], None


def _fits_set(names: Sequence[str], given: Mapping[str, Any]) -> tuple[bool, Any]:
    wanted = set(given.get("column_set") or ())
    missing, more = wanted - set(names), set(names) - wanted
    return not missing and (not more or not given.get("exact_match", True)), sorted(names)


_OF_NAMES: Mapping[str, Callable[[Sequence[str], Mapping[str, Any]], tuple[bool, Any]]] = {
    "expect_column_to_exist": _exists,
    "expect_table_column_count_to_be_between": lambda names, given: (limits_of(given).holds(len(names)), len(names)),
    "expect_table_column_count_to_equal": lambda names, given: (len(names) == given["value"], len(names)),
    "expect_table_columns_to_match_ordered_list": lambda names, given: (
        list(names) == list(given.get("column_list") or names),
        list(names),
    ),
    "expect_table_columns_to_match_set": _fits_set,
}


def _said(check: Check, passed: bool, observed: Any) -> CheckResult:
    return result_of(check, Status.PASSED if passed else Status.FAILED, observed=as_measure(observed))


def result_of(check: Check, status: Status, **found: Any) -> CheckResult:
    return CheckResult(
        name=check.name,
        expectation=check.expectation,
        arguments={name: as_json(value) for name, value in check.arguments.items()},
        scope=check.scope,
        severity=check.severity,
        status=status,
        **found,
    )


def asks_for_updates(checks: Iterable[Check]) -> bool:
    """Whether values are to be compared: which rows come and which go, keys tell."""
    return any(ON_EFFECT[check.expectation][0] == "updated" for check in checks if looks_at_effect(check.expectation))


def asks_for_share(checks: Iterable[Check]) -> bool:
    """Whether it is to be known how many rows there were."""
    return any(ON_EFFECT[check.expectation][1] for check in checks if looks_at_effect(check.expectation))


def judge_effect(check: Check, effect: Effect, rows_before: int | None) -> CheckResult:
    """Where there were no rows a share is 0."""
    change, is_share = ON_EFFECT[check.expectation]
    count = getattr(effect, change)
    observed: dict[str, Any] = {f"rows_{change}": count}
    measured = count
    if is_share:
        measured = count / rows_before if rows_before else 0
        observed |= {ROWS_BEFORE: rows_before, "proportion": measured}
    passed = limits_of(check.arguments).holds(measured)
    return result_of(check, Status.PASSED if passed else Status.FAILED, observed=as_measure(observed))
