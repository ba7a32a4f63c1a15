"""Pure. Filters that Spark pushes down to a data source, as lakelib's predicates."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import datasource as spark

from lakelib.errors import InvalidInputError
from lakelib.model.predicate import And, Compare, Comparison, In, IsNull, Like, Not, Predicate
from lakelib.model.schema import Column, TableSchema
from lakelib.rows.values import raw_value

_COMPARISONS: dict[type, Comparison] = {
    spark.EqualTo: Comparison.EQ,
    spark.GreaterThan: Comparison.GT,
    spark.GreaterThanOrEqual: Comparison.GE,
    spark.LessThan: Comparison.LT,
    spark.LessThanOrEqual: Comparison.LE,
}


def predicate_of(given: spark.Filter, schema: TableSchema) -> Predicate | None:
    """The predicate that is TRUE for the same rows; None if lakelib has none."""
    if isinstance(given, spark.Not):
        part = predicate_of(given.child, schema)
        return None if part is None else Not(part=part)
    column = _column(given, schema)
    values = _values(given)
    if column is None or any(value is None or _is_vague(column, value) for value in values):
        return None
    try:
        return _bound(given, column)
    except InvalidInputError:  # a value that is none of the column's type: Spark knows what it means
        return None


def _column(given: Any, schema: TableSchema) -> Column | None:
    """Of the hidden columns, and of fields inside a column, Spark judges itself."""
    path: Sequence[str] = getattr(given, "attribute", ())
    return schema.find(path[0]) if len(path) == 1 else None


def _values(given: Any) -> tuple[Any, ...]:
    value = getattr(given, "value", ())
    return tuple(value) if isinstance(given, spark.In) else (value,) if hasattr(given, "value") else ()


def _is_vague(column: Column, value: Any) -> bool:
    """A moment without a zone is one of the session's zone, which is not known here."""
    return column.type == "timestamp" and getattr(value, "tzinfo", None) is None


def _bound(given: Any, column: Column) -> Predicate | None:
    match given:
        case spark.IsNull():
            return IsNull(column=column)
        case spark.IsNotNull():
            return Not(part=IsNull(column=column))
        case spark.In():
            return In(column=column, values=tuple(raw_value(column.type, value) for value in given.value))
        case spark.EqualNullSafe():
            equal = Compare(column=column, op=Comparison.EQ, value=raw_value(column.type, given.value))
            return And(parts=(Not(part=IsNull(column=column)), equal))
        case spark.StringStartsWith() if column.type == "string":
            return Like(column=column, pattern=_escaped(given.value) + "%")
        case spark.StringEndsWith() if column.type == "string":
            return Like(column=column, pattern="%" + _escaped(given.value))
        case spark.StringContains() if column.type == "string":
            return Like(column=column, pattern="%" + _escaped(given.value) + "%")
    op = _COMPARISONS.get(type(given))
    return None if op is None else Compare(column=column, op=op, value=raw_value(column.type, given.value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
