"""Pure. Spark's types as DuckDB has them, and the casts that mean the same in both.

A value is a piece of DuckDB's SQL with the type that Spark gives it. A `timestamp` is a DuckDB TIMESTAMP in UTC, as the
sessions of jobs have it. What the engines do not do alike is refused; what they do not do alike with some values is an
error of the row that has such a value.
"""

import re
from collections.abc import Iterable, Sequence

from lakelib.dataclass import dataclass
from lakelib.errors import OnlySparkError

VOID = "void"
INTEGERS = ("tinyint", "smallint", "int", "bigint")
UNLIKE = "lakelib, only Spark: "
"""Begins what DuckDB says of a row that Spark would compute something else of."""
WRONG = "lakelib, wrong value: "
"""Begins what DuckDB says of a row that Spark refuses, too."""
INTERRUPTED = "Query interrupted"
"""What DuckDB says, as a RuntimeError, where a person presses Ctrl-C."""

CAST_ONE = "Cast one of the two: CAST(… AS BIGINT), and write a day as DATE '2026-11-18'."
"""What to do about values whose types do not go together."""

_NAMES = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP",
}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""Of the decimals that Spark takes whole numbers for."""
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MOST_DIGITS = 38
_EXACT_DIGITS = 15
"""Decimals of so many digits become the nearest double in one division."""
_MOMENTS = ("timestamp", "timestamp_ntz")

_DAY = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
_TEXTS = {
    **dict.fromkeys(INTEGERS, "[+-]?[0-9]{1,30}"),
    "decimal": r"[+-]?[0-9]{1,38}(\.[0-9]{1,38})?",
    "double": r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?",
    "date": _DAY,
    "timestamp": f"{_DAY}([ T]{_TIME}Z?)?",
    "timestamp_ntz": f"{_DAY}([ T]{_TIME})?",
}
"""How a text has to look to be cast: what both engines read in the same way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    sql: str
    type: str
    """Spark's, as a column has it; "void" is that of NULL."""
    digits: int | None = None
    """Of a whole number that stands in the query."""


def duck_type(kind: str) -> str:
    """Raises OnlySparkError for a type that nothing can be done with but to hand it on."""
    if _DECIMAL.fullmatch(kind):
        return kind.upper()
    if kind not in _NAMES:
        raise OnlySparkError(f"a value of type {kind}")
    return _NAMES[kind]


def decimal_parts(value: Value, *, by_digits: bool = True) -> tuple[int, int] | None:
    """Precision and scale of a decimal, or of the one that Spark takes a whole number for; None for anything else. In
    arithmetic and comparisons a number in the query has just its own digits."""
    found = _DECIMAL.fullmatch(value.type)
    if found:
        return int(found[1]), int(found[2])
    if value.type not in INTEGERS:
        return None
    return (value.digits if by_digits and value.digits else _DIGITS[value.type]), 0


def decimal_type(precision: int, scale: int) -> str:
    """Raises OnlySparkError where Spark would give up digits."""
    if precision > _MOST_DIGITS:
        raise OnlySparkError(f"a decimal of {precision} digits")
    return f"decimal({precision},{scale})"


def is_decimal(kind: str) -> bool:
    return _DECIMAL.fullmatch(kind) is not None


def is_number(kind: str) -> bool:
    return kind in ("float", "double", *INTEGERS) or is_decimal(kind)


def literal(text: str) -> str:
    """A text in DuckDB's SQL."""
    return "'" + text.replace("'", "''") + "'"


def failing(prefix: str, what: str) -> str:
    return f"error({literal(prefix + what)})"


def common_type(values: Sequence[Value], what: str, *, by_digits: bool = False, nearly: bool = False) -> str:
    """The type that Spark brings the values to. Raises OnlySparkError where it would cast texts, or, unless `nearly` is
    enough, lose digits."""
    kinds = {value.type for value in values} - {VOID}
    if len(kinds) < 2:
        return next(iter(kinds), VOID)
    if kinds <= {*INTEGERS}:
        return max(kinds, key=INTEGERS.index)
    parts = [decimal_parts(value, by_digits=by_digits) for value in values if value.type != VOID]
    known = [each for each in parts if each is not None]
    if len(known) == len(parts):
        scale = max(each[1] for each in known)
        precision = max(each[0] - each[1] for each in known) + scale
        return decimal_type(min(precision, _MOST_DIGITS) if nearly else precision, scale)
    if "double" in kinds and all(_becomes_double(kind) for kind in kinds):
        return "double"
    if nearly and kinds & {"float", "double"} and all(is_number(kind) for kind in kinds):
        return "float" if kinds <= {"float", *INTEGERS} else "double"
    if "date" in kinds and len(kinds) == 2 and kinds & {*_MOMENTS}:
        return (kinds - {"date"}).pop()
    raise OnlySparkError(f"{what} of {' and '.join(sorted(kinds))}", remedy=CAST_ONE)


def _becomes_double(kind: str) -> bool:
    found = _DECIMAL.fullmatch(kind)
    return kind in ("float", "double", *INTEGERS) or (found is not None and int(found[1]) <= _EXACT_DIGITS)


def typed(value: Value, kind: str) -> Value:
    """The value in a type that holds it."""
    if value.type == kind:
        return value
    if kind in ("float", "double") and is_number(value.type):
        return Value(sql=f"CAST({value.sql} AS {duck_type(kind)})", type=kind)
    return cast(value, kind)


def all_typed(values: Iterable[Value], kind: str) -> list[str]:
    return [typed(value, kind).sql for value in values]


def cast(value: Value, kind: str) -> Value:
    """As Spark casts. Raises OnlySparkError for casts that DuckDB means otherwise."""
    sql = f"CAST({value.sql} AS {duck_type(kind)})"
    if value.type in (kind, VOID):
        return Value(sql=sql, type=kind)
    if value.type == "string":
        return Value(sql=_of_text(value, kind, sql), type=kind)
    if kind == "string":
        return Value(sql=_as_text(value, sql), type=kind)
    if _is_plain(value.type, kind):
        return Value(sql=sql, type=kind)
    if kind in INTEGERS and (is_decimal(value.type) or value.type == "double"):
        return Value(sql=f"CAST(trunc({value.sql}) AS {duck_type(kind)})", type=kind)
    raise OnlySparkError(f"a cast from {value.type} to {kind}")


def _is_plain(given: str, kind: str) -> bool:
    """Whether DuckDB's cast does what Spark's does: values that do not fit are errors, decimals are rounded half up."""
    if kind == "double":
        return _becomes_double(given)
    if given in INTEGERS:
        return kind in INTEGERS or is_decimal(kind)
    if given in ("date", *_MOMENTS):
        return kind in ("date", *_MOMENTS)
    return (is_decimal(given) and is_decimal(kind)) or (given == "boolean" and kind in INTEGERS)


def _of_text(value: Value, kind: str, sql: str) -> str:
    if kind == "boolean":
        return _boolean_of(value)
    pattern = _TEXTS.get("decimal" if is_decimal(kind) else kind)
    if pattern is None:
        raise OnlySparkError(f"a cast from string to {kind}")
    if kind == "timestamp":
        sql = f"CAST(rtrim({value.sql}, 'Z') AS TIMESTAMP)"
    unlike = failing(UNLIKE, f"a text that is cast to {kind} and is not plain")
    return f"CASE WHEN NOT regexp_full_match({value.sql}, {literal(pattern)}) THEN {unlike} ELSE {sql} END"


def _boolean_of(value: Value) -> str:
    unlike = failing(UNLIKE, "a text that is cast to boolean and is not plain")
    return (
        f"CASE lower({value.sql}) WHEN 'true' THEN true WHEN 'false' THEN false ELSE"
        f" CASE WHEN {value.sql} IS NULL THEN NULL ELSE {unlike} END END"
    )


def _as_text(value: Value, sql: str) -> str:
    if value.type in ("boolean", *INTEGERS):
        return sql
    if value.type != "date":
        raise OnlySparkError(f"a cast from {value.type} to string")
    unlike = failing(UNLIKE, "a day before the year 1 or after 9999 as text")
    outside = f"{value.sql} < DATE '0001-01-01' OR {value.sql} > DATE '9999-12-31'"
    return f"CASE WHEN {outside} THEN {unlike} ELSE {sql} END"
