"""Pure. A predicate as a Spark column: the same rows, decided by the JVM."""

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as sf

from lakelib.model.predicate import (
    And,
    Compare,
    CompareColumns,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Raw,
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


def fits_the_jvm(predicate: Predicate) -> bool:
    """Whether Spark can be asked: the predicate is not huge, and Python can write down its literals."""
    return _count_literals(predicate) <= _MOST_LITERALS


def condition(predicate: Predicate) -> SparkColumn:
    """The predicate over columns of the same names. Spark's comparisons are lakelib's: NaN is equal to itself and the
    greatest, -0.0 is 0.0, text is compared by bytes."""
    match predicate:
        case Constant(value=value):
            return sf.lit(value).cast("boolean")
        case Compare(column=column, op=op, value=raw):
            return _compared(op, named(column.name), _literal(column, raw))
        case CompareColumns(left=left, op=op, right=right):
            return _compared(op, named(left.name), named(right.name))
        case In(column=column, values=values):
            return named(column.name).isin([_literal(column, raw) for raw in values])
        case IsNull(column=column):
            return named(column.name).isNull()
        case Like(column=column, pattern=pattern):
            return named(column.name).like(pattern)
        case Not(part=part):
            return ~condition(part)
        case And(parts=parts):
            return reduce(operator.and_, map(condition, parts), sf.lit(True))
        case Or(parts=parts):
            return reduce(operator.or_, map(condition, parts), sf.lit(False))


def named(name: str) -> SparkColumn:
    """The column of exactly this name, whatever characters it has."""
    return sf.col("`" + name.replace("`", "``") + "`")


def _compared(op: Comparison, left: SparkColumn, right: SparkColumn) -> SparkColumn:
    found: SparkColumn = _OPERATORS[op](left, right)
    return found


def _literal(column: Column, raw: Raw) -> SparkColumn:
    match column.type:
        case "timestamp":
            return sf.timestamp_micros(sf.lit(raw))
        case "date":
            return sf.date_from_unix_date(sf.lit(raw))
        case _:
            return sf.lit(python_value(column.type, raw)).cast(column.type)


def _count_literals(predicate: Predicate) -> int:
    match predicate:
        case And(parts=parts) | Or(parts=parts):
            return sum(map(_count_literals, parts))
        case Not(part=part):
            return _count_literals(part)
        case In(values=values):
            return len(values)
        case _:
            return 1
