"""Pure. What an expression of Polars says of rows, as far as it is a predicate here, too.

Polars asks each row once more, so that what is not understood is left out: all rows for which the expression holds are
among those for which the predicate does.
"""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from lakelib.errors import InvalidInputError
from lakelib.model.predicate import MIRRORED, Comparison, IsNull, Not, Predicate
from lakelib.model.schema import Column, TableSchema
from lakelib.plan.literals import Value, all_of, any_of, compare_value, member_of
from lakelib.rows.values import INTEGER_BITS

_COMPARISONS = {
    "Eq": Comparison.EQ,
    "Lt": Comparison.LT,
    "LtEq": Comparison.LE,
    "Gt": Comparison.GT,
    "GtEq": Comparison.GE,
}
_MOST_VALUES = 10_000


def where_of(expression: Any, schema: TableSchema) -> Predicate | None:
    """What holds of all rows for which a Polars expression does; None: nothing that is known here."""
    try:
        return _predicate(expression, schema)
    except (InvalidInputError, KeyError, TypeError, ValueError):
        return None


def _predicate(expression: Any, schema: TableSchema) -> Predicate | None:
    match json.loads(expression.meta.serialize(format="json")):
        case {"BinaryExpr": {"op": "And" | "LogicalAnd"}}:
            known = [part for each in expression.meta.pop() if (part := where_of(each, schema)) is not None]
            return all_of(known) if known else None
        case {"BinaryExpr": {"op": "Or" | "LogicalOr"}}:
            parts = [where_of(each, schema) for each in expression.meta.pop()]
            known = [part for part in parts if part is not None]
            return any_of(known) if len(known) == len(parts) else None
        case {"BinaryExpr": {"op": str(op), "left": left, "right": right}} if op in _COMPARISONS:
            return _compared(expression, _COMPARISONS[op], left, right, schema)
        case {"Function": {"function": {"Boolean": "IsNull" | "IsNotNull" as kind}, "input": [{"Column": str(name)}]}}:
            column = schema.find(name)
            is_null = None if column is None or column.name != name else IsNull(column=column)
            return is_null if is_null is None or kind == "IsNull" else Not(part=is_null)
        case {
            "Function": {"function": {"Boolean": {"IsIn": {"nulls_equal": False}}}, "input": [{"Column": str(name)}, _]}
        }:
            return _listed(expression, name, schema)
    return None


def _compared(expression: Any, op: Comparison, left: Any, right: Any, schema: TableSchema) -> Predicate | None:
    operands = {json.dumps(json.loads(each.meta.serialize(format="json"))): each for each in expression.meta.pop()}
    if "Column" not in left:
        left, right, op = right, left, MIRRORED[op]
    literal = operands[json.dumps(right)]
    column = _column(left, schema)
    if column is None or not literal.meta.is_literal():
        return None
    values = _values(literal)
    return compare_value(column, op, _fitting(column, values[0])) if len(values) == 1 else None


def _listed(expression: Any, name: str, schema: TableSchema) -> Predicate | None:
    column = _column({"Column": name}, schema)
    literal = next((each for each in expression.meta.pop() if each.meta.is_literal()), None)
    if column is None or literal is None:
        return None
    values = [value for each in _values(literal) for value in (each if isinstance(each, list) else [each])]
    if len(values) > _MOST_VALUES:
        return None
    return member_of(column, [_fitting(column, value) for value in values if value is not None])


def _column(node: Any, schema: TableSchema) -> Column | None:
    """Names have a case in Polars."""
    name = node.get("Column") if isinstance(node, dict) else None
    column = schema.find(name) if isinstance(name, str) else None
    return column if column is not None and column.name == name else None


def _values(literal: Any) -> Sequence[Any]:
    import polars

    found = polars.select(literal).to_series()
    if isinstance(found.dtype, polars.Datetime) and found.dtype.time_unit == "ns":
        raise ValueError("a Python datetime has no nanoseconds")
    return list(found.to_list())


def _fitting(column: Column, value: Any) -> Value:
    """The value, where Polars compares it with the column as it is. Raises ValueError."""
    match value:
        case bool():
            fits = column.type == "boolean"
        case int() | Decimal():
            fits, value = column.type in INTEGER_BITS or column.type.startswith("decimal("), Decimal(value)
        case float():
            fits = column.type == "double"
        case str():
            fits = column.type == "string"
        case bytes():
            fits = column.type == "binary"
        case datetime():
            fits = column.type == "timestamp" and value.tzinfo is not None
            value = value.astimezone(UTC) if fits else value
        case date():
            fits = column.type == "date"
        case _:
            fits = False
    if not fits:
        raise ValueError(f"{value!r} beside {column.type}")
    return value  # type: ignore[no-any-return]
