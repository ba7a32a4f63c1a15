"""Pure. Which rows failed a check: as a predicate, and told in a line.

What a verdict keeps of a check is cut and masked. A predicate is made only of what is whole: where it is not, there is
none.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lakelib.gates.evidence import MASK, MOST_VALUES
from lakelib.gates.expectations import column_arguments, parse_condition
from lakelib.model.effect import measured_text
from lakelib.model.gate import Background, CheckResult, FailingRows, Severity, Status, Verdict

_MOST_TOLD = 10
_MOST_KEYS_TOLD = 3
_LONGEST_LINE = 400
_CUT = "…"


def failing_columns(check: CheckResult) -> list[str]:
    """Those that the check looks at."""
    return [name for name, argument in column_arguments(check.arguments).items() if argument != "row_condition"]


def failing_where(check: CheckResult) -> str | None:
    """A SQL predicate that is true of the rows that were not as expected; None where there is none to be had."""
    if check.status is not Status.FAILED:
        return None
    found = _by_arguments(check) or _by_sample(check)
    condition = _condition(check)
    if found is None or condition is None:
        return None
    return f"({found}) AND {condition}" if condition else found


def _by_arguments(check: CheckResult) -> str | None:
    given = check.arguments
    column = given.get("column")
    if not isinstance(column, str):
        return None
    name = _name(column)
    match check.expectation:
        case "expect_column_values_to_not_be_null":
            return f"{name} IS NULL"
        case "expect_column_values_to_be_null":
            return f"{name} IS NOT NULL"
        case "expect_column_values_to_be_between":
            return _outside(name, given)
        case "expect_column_values_to_be_in_set":
            listed = _list(given.get("value_set"))
            return listed and f"{name} NOT IN ({listed})"
        case "expect_column_values_to_not_be_in_set":
            listed = _list(given.get("value_set"))
            return listed and f"{name} IN ({listed})"
    return None


def _outside(name: str, given: Mapping[str, Any]) -> str | None:
    parts = []
    for bound, operator in (("min_value", "<"), ("max_value", ">")):
        if given.get(bound) is None:
            continue
        text = _literal(given[bound])
        if text is None:
            return None
        parts.append(f"{name} {operator}{'=' if given.get(f'strict_{bound[:3]}') else ''} {text}")
    return " OR ".join(parts) or None


def _by_sample(check: CheckResult) -> str | None:
    """The rows that have one of the values that the verdict shows."""
    columns = failing_columns(check)
    if not columns or not check.sample:
        return None
    if len(columns) == 1:
        return _equal_to_any(_name(columns[0]), check.sample)
    rows = [_row(columns, value) for value in check.sample]
    found = [" AND ".join(parts) for parts in rows if parts]
    return None if len(found) < len(rows) else " OR ".join(f"({each})" for each in found)


def _equal_to_any(name: str, values: Sequence[Any]) -> str | None:
    listed = [_literal(value) for value in values if value is not None]
    if None in listed:
        return None
    parts = [f"{name} IN ({', '.join(dict.fromkeys(map(str, listed)))})"] if listed else []
    return " OR ".join([*parts, *([f"{name} IS NULL"] if None in values else [])])


def _row(columns: Sequence[str], value: Any) -> list[str] | None:
    pairs = value.items() if isinstance(value, dict) else zip(columns, value, strict=False) if _is_list(value) else ()
    parts = []
    for column, each in pairs:
        text = "NULL" if each is None else _literal(each)
        if text is None:
            return None
        parts.append(f"{_name(column)} {'IS' if each is None else '='} {text}")
    return parts or None


def _condition(check: CheckResult) -> str | None:
    """Which rows the check looks at; empty for all, None where that cannot be said."""
    text = check.arguments.get("row_condition")
    if text is None:
        return ""
    found = parse_condition(text)
    if found is None:
        return None
    if found.operator == "not null":
        return f"{_name(found.column)} IS NOT NULL"
    return f"{_name(found.column)} {'=' if found.operator == '==' else found.operator} {_literal(found.value)}"


def _list(values: Any) -> str | None:
    """None for one that was cut."""
    if not _is_list(values) or not 0 < len(values) <= MOST_VALUES:
        return None
    texts = [_literal(value) for value in values]
    return None if None in texts else ", ".join(map(str, texts))


def _literal(value: Any) -> str | None:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case str() if MASK not in value and _CUT not in value:
            return "'" + value.replace("'", "''") + "'"
    return None


def _name(column: str) -> str:
    is_plain = column.isascii() and column.isidentifier() and column.islower()
    return column if is_plain else "`" + column.replace("`", "``") + "`"


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


# Told in lines


def tell_failures(verdict: Verdict, background: Background) -> tuple[str, ...]:
    """A line for each check that failed or errored, the most severe first: how many rows, their share, some keys."""
    severities = tuple(Severity)
    wrong = [check for check in verdict.checks if check.status is not Status.PASSED]
    wrong.sort(key=lambda check: severities.index(check.severity))
    lines = tuple(_line(check, background.failing.get(check.name)) for check in wrong[:_MOST_TOLD])
    more = len(wrong) - len(lines)
    return (*lines, f"and {more:,} more checks") if more else lines


def _line(check: CheckResult, rows: FailingRows | None) -> str:
    line = f"{check.name} ({check.severity.value}): {'; '.join(_parts(check, rows))}"
    words = "".join(each if each.isprintable() else " " for each in line)
    return words if len(words) <= _LONGEST_LINE else words[:_LONGEST_LINE] + _CUT


def _parts(check: CheckResult, rows: FailingRows | None) -> Iterator[str]:
    if check.status is Status.ERRORED:
        yield f"could not be carried out: {check.detail.partition(chr(10))[0] or 'nobody knows why'}"
        return
    yield counted(check)
    if rows is not None and rows.keys:
        yield "such as " + ", ".join(key_text(key) for key in rows.keys[:_MOST_KEYS_TOLD])


def counted(check: CheckResult) -> str:
    """How many rows were not as expected, and which share; or what was observed."""
    if check.unexpected_count is not None and check.row_count is not None:
        share = percent(check.unexpected_count / check.row_count if check.row_count else 0.0)
        return f"{check.unexpected_count:,} of {check.row_count:,} rows, {share}"
    if check.unexpected_count is not None:
        return f"{check.unexpected_count:,} values"
    if (measured := measured_text(check.observed)) is not None:
        return measured
    return "failed" if check.observed is None else f"observed {json.dumps(check.observed, ensure_ascii=False)}"


def percent(share: float) -> str:
    """A few rows of many are never shown as none, nor all but a few as all."""
    if 0 < share < 0.0001:
        return "less than 0.01 %"
    if 0.9999 < share < 1:
        return "more than 99.99 %"
    return f"{share * 100:.2f} %"


def key_text(key: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={_shown(value)}" for name, value in key.items())


def _shown(value: Any) -> str:
    return "NULL" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
