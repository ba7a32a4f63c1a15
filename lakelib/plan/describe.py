"""Pure. Writes a predicate as SQL text, for people; unless cut short, it parses to a predicate of the same meaning."""

import math
from datetime import date, datetime

from lakelib.model.predicate import (
    And,
    Compare,
    CompareColumns,
    Computed,
    Constant,
    Fixed,
    Function,
    In,
    IsNull,
    Like,
    Matches,
    Not,
    Or,
    Predicate,
    Raw,
    Tested,
)
from lakelib.model.schema import Column
from lakelib.rows.types import quoted_name
from lakelib.rows.values import python_value

_MANY = 20
"""Of more values or parts than this only the first are shown."""

_LONGEST_LINE = 80

_SQL_WORDS = frozenset(
    ("and", "between", "case", "cast", "exists", "false", "if", "in", "interval", "is", "like", "not", "null")
) | frozenset(("or", "select", "true"))
"""Names that stand for something else when they are not quoted."""

_SPANS = (("DAY", 86_400_000_000), ("HOUR", 3_600_000_000), ("MINUTE", 60_000_000), ("SECOND", 1_000_000))
"""In microseconds."""


def one_line(text: str) -> str:
    """The text on one line, cut where that is long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "…"


def describe_predicate(predicate: Predicate) -> str:
    """Readable SQL text of a predicate. Long lists are cut short."""
    match predicate:
        case Constant(value=value):
            return "NULL" if value is None else str(value).upper()
        case Compare(column=column, op=op, value=raw):
            return f"{describe_tested(column)} {op.value} {_literal(column.type, raw)}"
        case CompareColumns(left=left, op=op, right=right):
            return f"{describe_tested(left)} {op.value} {describe_tested(right)}"
        case In(column=column, values=values):
            return f"{describe_tested(column)} IN ({_literals(column.type, values)})"
        case IsNull(column=column):
            return f"{describe_tested(column)} IS NULL"
        case Like(column=column, pattern=pattern):
            return f"{describe_tested(column)} LIKE {_text(pattern)}"
        case Matches(column=column, pattern=pattern):
            return f"{describe_tested(column)} RLIKE {_text(pattern)}"
        case Not(part=IsNull(column=column)):
            return f"{describe_tested(column)} IS NOT NULL"
        case Not(part=part):
            return f"NOT ({describe_predicate(part)})"
        case And(parts=parts):
            return _joined(" AND ", parts) or "TRUE"
        case Or(parts=parts):
            return _joined(" OR ", parts) or "FALSE"


def describe_tested(tested: Tested | Fixed) -> str:
    """Readable SQL text of a column, or of what is computed."""
    match tested:
        case Column(name=name):
            return _name(name)
        case Fixed():
            return _fixed(tested)
        case Computed(function=Function.FIELD, arguments=(parent, Fixed(value=name))):
            return f"{describe_tested(parent)}.{_name(str(name))}"
        case Computed(function=Function.CAST | Function.TRY_CAST as function, arguments=(given,), type=kind):
            return f"{function.value.upper()}({describe_tested(given)} AS {kind.upper()})"
        case Computed(function=Function.NEGATE, arguments=(given,)):
            return f"(- {describe_tested(given)})"
        case Computed(function=Function.LATER | Function.MONTHS_LATER, arguments=(given, count)):
            return f"({describe_tested(given)} + {_span(tested, count)})"
        case Computed(function=function, arguments=(left, right)) if not function.value.isalpha():
            return f"({describe_tested(left)} {function.value} {describe_tested(right)})"
        case Computed(function=function, arguments=arguments):
            return f"{function.value}({', '.join(map(describe_tested, arguments))})"


def _span(later: Computed, count: Tested | Fixed) -> str:
    """How much later, in the largest unit that it is a whole number of."""
    if not isinstance(count, Fixed) or count.type != "bigint" or count.value is None:
        return describe_tested(count)
    number = int(count.value)
    if later.function is Function.MONTHS_LATER:
        return f"INTERVAL '{number}' MONTH"
    if later.type == "date":
        return f"INTERVAL '{number}' DAY"
    unit, length = next((unit, length) for unit, length in _SPANS if number % length == 0)
    return f"INTERVAL '{number // length}' {unit}"


def _fixed(fixed: Fixed) -> str:
    """With its type, where the text alone would be of another one."""
    if fixed.value is None:
        return "NULL"
    text = _literal(fixed.type, fixed.value)
    if fixed.type in ("tinyint", "smallint", "bigint", "float", "double") or fixed.type.startswith("decimal("):
        quotes = "" if text.startswith("CAST") else "'"
        return f"CAST({quotes}{text}{quotes} AS {fixed.type.upper()})"
    return text


def _joined(word: str, parts: tuple[Predicate, ...]) -> str:
    shown = word.join(_part(part) for part in parts[:_MANY])
    return f"{shown}{word}… ({len(parts)} parts)" if len(parts) > _MANY else shown


def _part(predicate: Predicate) -> str:
    text = describe_predicate(predicate)
    return f"({text})" if isinstance(predicate, And | Or) else text


def _name(name: str) -> str:
    return f"`{name}`" if name.lower() in _SQL_WORDS else quoted_name(name)


def _literals(type_text: str, values: tuple[Raw, ...]) -> str:
    shown = ", ".join(_literal(type_text, raw) for raw in values[:_MANY])
    return f"{shown}, … ({len(values)} values)" if len(values) > _MANY else shown


def _literal(type_text: str, raw: Raw) -> str:
    value = python_value(type_text, raw)
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, datetime):
        kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
        return f"{kind} '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return _float(value)
    return str(value)


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _float(value: float) -> str:
    return repr(value) if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
