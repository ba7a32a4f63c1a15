"""Pure. Predicates, with the values in them, as Spark columns: the same rows, decided by the JVM."""

import operator
from collections.abc import Callable, Iterator
from functools import reduce
from itertools import islice
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as sf

from lakelib.model.predicate import (
    And,
    Compare,
    CompareColumns,
    Comparison,
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
    computed_in,
)
from lakelib.model.schema import Column
from lakelib.rows.values import python_value

_OPERATORS: dict[Comparison, Callable[[Any, Any], Any]] = {
    Comparison.EQ: operator.eq,
    Comparison.NE: operator.ne,
    Comparison.LT: operator.lt,
    Comparison.LE: operator.le,
    Comparison.GT: operator.gt,
    Comparison.GE: operator.ge,
}
_MOST_LITERALS = 500
"""Of more literals than these the JVM makes more work than it saves."""


_NO_DAYS = range(-141_437, -141_427)
"""October 5th to 14th of 1582: Spark's Parquet filters speak a calendar that leaves them out."""
_DAY_MICROSECONDS = 86_400_000_000


def fits_the_jvm(predicate: Predicate) -> bool:
    """Whether Spark can be asked: the predicate is not huge, Spark's Parquet reader knows all its literals, and what it
    has computed are fields of structs. All else would mean what the session's settings say, or could take for ever."""
    if any(each.function is not Function.FIELD for each in computed_in(predicate)) or _has_patterns(predicate):
        return False
    literals = list(islice(_literals(predicate), _MOST_LITERALS + 1))
    return len(literals) <= _MOST_LITERALS and all(_is_known(column, raw) for column, raw in literals)


def condition(predicate: Predicate) -> SparkColumn:
    """The predicate over columns of the same names. Spark's comparisons are lakelib's: NaN is equal to itself and the
    greatest, -0.0 is 0.0, text is compared by bytes."""
    match predicate:
        case Constant(value=value):
            return sf.lit(value).cast("boolean")
        case Compare(column=column, op=op, value=raw):
            return _compared(op, _comparable(column), _literal(column, raw))
        case CompareColumns(left=left, op=op, right=right):
            return _compared(op, _shown(left), _shown(right))
        case In(column=column, values=values):
            return _comparable(column).isin([_literal(column, raw) for raw in values])
        case IsNull(column=column):
            return _shown(column).isNull()
        case Like(column=column, pattern=pattern):
            return _shown(column).like(pattern)
        case Matches():
            raise ValueError(f"{predicate} does not fit the JVM")
        case Not(part=part):
            return ~condition(part)
        case And(parts=parts):
            return reduce(operator.and_, map(condition, parts), sf.lit(True))
        case Or(parts=parts):
            return reduce(operator.or_, map(condition, parts), sf.lit(False))


def _shown(tested: Tested) -> SparkColumn:
    match tested:
        case Column(name=name):
            return named(name)
        case Computed(function=Function.FIELD, arguments=(Column() | Computed() as parent, Fixed(value=name))):
            return _shown(parent).getField(name)
    raise ValueError(f"{tested} does not fit the JVM")


def named(name: str) -> SparkColumn:
    """The column of exactly this name, whatever characters it has."""
    return sf.col("`" + name.replace("`", "``") + "`")


def _compared(op: Comparison, left: SparkColumn, right: SparkColumn) -> SparkColumn:
    found: SparkColumn = _OPERATORS[op](left, right)
    return found


def _comparable(column: Tested) -> SparkColumn:
    """A float is compared with numbers that need not be floats."""
    return _shown(column).cast("double") if column.type == "float" else _shown(column)


def _literal(column: Tested, raw: Raw) -> SparkColumn:
    """A float is compared with numbers that need not be floats."""
    return constant("double" if column.type == "float" else column.type, raw)


def _has_patterns(predicate: Predicate) -> bool:
    match predicate:
        case And(parts=parts) | Or(parts=parts):
            return any(map(_has_patterns, parts))
        case Not(part=part):
            return _has_patterns(part)
    return isinstance(predicate, Matches)


def _is_known(column: Tested, raw: Raw) -> bool:
    match column.type:
        case "date":
            return raw not in _NO_DAYS
        case "timestamp":  # a day more or less, for the session's zone
            return not _NO_DAYS.start - 1 <= int(raw) // _DAY_MICROSECONDS <= _NO_DAYS.stop
        case _:
            return True


def _literals(predicate: Predicate) -> Iterator[tuple[Tested, Raw]]:
    match predicate:
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from _literals(part)
        case Not(part=part):
            yield from _literals(part)
        case In(column=column, values=values):
            yield from ((column, raw) for raw in values)
        case Compare(column=column, value=raw):
            yield column, raw
        case Like(column=column, pattern=pattern):
            yield column, pattern


def constant(type_text: str, raw: Raw | None) -> SparkColumn:
    """The raw value (see `model.sortable`), NULL for None, as a Spark column of that type, which is not nested.

    Python's dates and times are never handed over: on their way they pass through time zones and old calendars.
    """
    if raw is None:
        return sf.lit(None).cast(type_text)
    match type_text:
        case "timestamp":
            return sf.timestamp_micros(sf.lit(raw))
        case "timestamp_ntz":
            return sf.timestamp_add("MICROSECOND", sf.lit(raw), sf.lit("1970-01-01 00:00:00").cast("timestamp_ntz"))
        case "date":
            return sf.date_from_unix_date(sf.lit(raw))
        case _:
            return sf.lit(python_value(type_text, raw)).cast(type_text)
