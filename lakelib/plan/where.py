"""Pure. Turns SQL text into a predicate bound to a table's columns. Nothing of the text is ever evaluated as code."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
from sqlglot import exp

from lakelib.errors import InvalidInputError
from lakelib.model.predicate import (
    And,
    Compare,
    CompareColumns,
    Comparison,
    Constant,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    columns_of,
)
from lakelib.model.schema import COMMIT_COLUMN, Column, TableSchema
from lakelib.model.text import choose_from
from lakelib.plan.describe import describe_predicate
from lakelib.plan.literals import Value, all_of, any_of, compare_value, member_of
from lakelib.plan.sqltext import SUPPORTED, parse_condition, quoted, shortened
from lakelib.rows.types import arrow_type, type_text
from lakelib.rows.values import parse_number, parse_timestamp, python_value, raw_value

__all__ = ["COMMIT", "asked_columns", "bind_where", "describe_predicate", "parse_where"]

COMMIT = Column(id=-1, name=COMMIT_COLUMN, type="bigint")
"""The hidden column `_commit`, as predicates know it. It is NULL in rows that are staged."""

MAX_DEPTH = 100
"""Deepest nesting of a predicate."""

_COMPARISONS: dict[type[exp.Expr], Comparison] = {
    exp.EQ: Comparison.EQ,
    exp.NEQ: Comparison.NE,
    exp.LT: Comparison.LT,
    exp.LTE: Comparison.LE,
    exp.GT: Comparison.GT,
    exp.GTE: Comparison.GE,
}

_MIRRORED = {
    Comparison.EQ: Comparison.EQ,
    Comparison.NE: Comparison.NE,
    Comparison.LT: Comparison.GT,
    Comparison.LE: Comparison.GE,
    Comparison.GT: Comparison.LT,
    Comparison.GE: Comparison.LE,
}

Operand = Column | Value | None
"""One side of a comparison: a column, a literal value, or NULL."""


def bind_where(where: str | Predicate | None, schema: TableSchema) -> Predicate | None:
    """The predicate that a caller means: SQL text is parsed, a predicate checked, None stays None.

    Raises InvalidInputError if the text is not a supported predicate or names a column that the schema lacks.
    """
    if where is None:
        return None
    if isinstance(where, str):
        return parse_where(where, schema)
    if not isinstance(where, Predicate):
        raise InvalidInputError(
            f"A predicate is SQL text, not {type(where).__name__}.",
            kind="invalid_predicate",
            remedy="Give text or None.",
        )
    known = {column.id for column in schema.columns} | {COMMIT.id}
    strange = columns_of(where) - known
    if strange:
        raise InvalidInputError(
            f"The predicate {describe_predicate(where)} looks at columns that the table does not have.",
            kind="unknown_column",
            remedy=f"The columns are {', '.join(schema.names)}.",
        )
    return where


def asked_columns(schema: TableSchema, predicate: Predicate | None) -> tuple[Column, ...]:
    """The columns that a predicate looks at."""
    ids = frozenset() if predicate is None else columns_of(predicate)
    return tuple(column for column in (*schema.columns, COMMIT) if column.id in ids)


def parse_where(text: str, schema: TableSchema) -> Predicate:
    """The predicate that SQL text (Spark's dialect) means for a table.

    Names match without regard to case; literals become exact raw values of their column's type. Raises
    InvalidInputError that quotes the piece which is not supported, unknown, or no value of its column.
    """
    return _Binder(text, schema).bind()


def bind_condition(node: exp.Expr, schema: TableSchema) -> Predicate:
    """The predicate that a parsed condition means, its columns under their own names. Raises as `parse_where` does."""
    try:
        return _Binder(node.sql(dialect="spark"), schema)._predicate(node, 0)
    except RecursionError:
        raise InvalidInputError("The condition is nested too deeply.", kind="invalid_predicate") from None


class _Binder:
    def __init__(self, text: str, schema: TableSchema) -> None:
        self._text = text
        self._schema = schema

    def bind(self) -> Predicate:
        try:
            return self._predicate(parse_condition(self._text, self._schema.names), 0)
        except RecursionError:
            raise self._too_deep() from None

    def _too_deep(self) -> InvalidInputError:
        return InvalidInputError(
            f"The predicate {shortened(self._text)!r} is nested too deeply.",
            kind="invalid_predicate",
            remedy="Remove parentheses, or use IN for many values.",
        )

    def _predicate(self, node: exp.Expr, depth: int) -> Predicate:
        if depth > MAX_DEPTH:
            raise self._too_deep()
        bind = _BINDERS.get(type(node))
        if bind is None:
            raise self._refused(node)
        return bind(self, node, depth)

    def _paren(self, node: exp.Expr, depth: int) -> Predicate:
        return self._predicate(node.this, depth + 1)

    def _not(self, node: exp.Expr, depth: int) -> Predicate:
        return Not(part=self._predicate(node.this, depth + 1))

    def _junction(self, node: exp.Expr, depth: int) -> Predicate:
        parts = tuple(self._predicate(part, depth + 1) for part in _chain(node))
        return all_of(parts) if isinstance(node, exp.And) else any_of(parts)

    def _constant(self, node: exp.Expr, _depth: int) -> Predicate:
        return Constant(value=None if isinstance(node, exp.Null) else bool(node.this))

    def _boolean_column(self, node: exp.Expr, _depth: int) -> Predicate:
        return self._is_true(node, True)

    def _is_true(self, node: exp.Expr, value: bool) -> Predicate:
        column = self._operand(node)
        if not isinstance(column, Column) or column.type != "boolean":
            raise self._refused(node)
        return Compare(column=column, op=Comparison.EQ, value=value)

    def _comparison(self, node: exp.Expr, _depth: int) -> Predicate:
        self._only(node, "this", "expression")
        op = _COMPARISONS[type(node)]
        return self._compare(node, self._operand(node.this), op, self._operand(node.expression))

    def _compare(self, node: exp.Expr, left: Operand, op: Comparison, right: Operand) -> Predicate:
        if not isinstance(left, Column):
            left, op, right = right, _MIRRORED[op], left
        if not isinstance(left, Column):
            return self._compare_literals(node, right, _MIRRORED[op], left)
        if not isinstance(right, Column):
            return compare_value(left, op, right)
        if left.type != right.type or left.type.startswith(("array<", "map<", "struct<")):
            raise InvalidInputError(
                f"Columns {left.name!r} ({left.type}) and {right.name!r} ({right.type}) cannot be compared.",
                kind="invalid_predicate",
                remedy="Compare columns of the same type that is not nested.",
            )
        return CompareColumns(left=left, op=op, right=right)

    def _compare_literals(self, node: exp.Expr, left: Operand, op: Comparison, right: Operand) -> Predicate:
        """Such as `1 = 1`: only = and <> of values of one class."""
        if left is None or right is None:
            return Constant(value=None)
        if type(left) is not type(right) or op not in (Comparison.EQ, Comparison.NE):
            raise self._refused(node)
        return Constant(value=(left == right) == (op is Comparison.EQ))

    def _null_safe(self, node: exp.Expr, _depth: int) -> Predicate:
        self._only(node, "this", "expression")
        left, right = self._operand(node.this), self._operand(node.expression)
        if not isinstance(left, Column):
            left, right = right, left
        if not isinstance(left, Column):
            raise self._refused(node)
        same = _null_safe_equal(left, right, self._compare(node, left, Comparison.EQ, right))
        return Not(part=same) if isinstance(node, exp.NullSafeNEQ) else same

    def _between(self, node: exp.Expr, _depth: int) -> Predicate:
        self._only(node, "this", "low", "high")
        value = self._operand(node.this)
        low = self._compare(node, value, Comparison.GE, self._operand(node.args["low"]))
        high = self._compare(node, value, Comparison.LE, self._operand(node.args["high"]))
        return And(parts=(low, high))

    def _in(self, node: exp.Expr, _depth: int) -> Predicate:
        self._only(node, "this", "expressions")
        column = self._operand(node.this)
        values = [self._operand(item) for item in node.expressions]
        if not isinstance(column, Column) or not values:
            raise self._refused(node)
        literals: list[Value | None] = []
        for value in values:
            if isinstance(value, Column):
                raise self._refused(node)
            literals.append(value)
        return member_of(column, literals)

    def _is(self, node: exp.Expr, _depth: int) -> Predicate:
        self._only(node, "this", "expression")
        column = self._operand(node.this)
        if not isinstance(column, Column):
            raise self._refused(node)
        if isinstance(node.expression, exp.Null):
            return IsNull(column=column)
        if not isinstance(node.expression, exp.Boolean):
            raise self._refused(node)
        wanted = self._is_true(node.this, bool(node.expression.this))
        return And(parts=(Not(part=IsNull(column=column)), wanted))

    def _like(self, node: exp.Expr, _depth: int) -> Predicate:
        self._only(node, "this", "expression", "negate")
        column, pattern = self._operand(node.this), self._operand(node.expression)
        if not isinstance(column, Column) or column.type != "string":
            raise self._refused(node)
        if pattern is None:
            return Constant(value=None)
        if not isinstance(pattern, str):
            raise self._refused(node)
        _check_pattern(pattern)
        like = Like(column=column, pattern=pattern)
        return Not(part=like) if node.args.get("negate") else like

    def _operand(self, node: exp.Expr) -> Operand:
        if isinstance(node, exp.Paren):
            return self._operand(node.this)
        if isinstance(node, exp.Column):
            return self._column(node)
        return self._literal(node)

    def _column(self, node: exp.Column) -> Column:
        self._only(node, "this")
        name = node.name
        if name.casefold() == COMMIT_COLUMN:
            return COMMIT
        column = self._schema.find(name)
        if column is None:
            raise InvalidInputError(
                f"The table has no column {name!r}, which the predicate {shortened(self._text)!r} names.",
                kind="unknown_column",
                remedy=choose_from("The columns", name, self._schema.names),
            )
        return column

    def _literal(self, node: exp.Expr) -> Value | None:
        match node:
            case exp.Null():
                return None
            case exp.Boolean():
                return bool(node.this)
            case exp.Literal() if node.is_string:
                return str(node.this)
            case exp.Literal():
                return self._number(node)
            case exp.Neg():
                return self._negated(node)
            case exp.HexString():
                return self._bytes(node)
            case exp.Cast():
                return self._cast(node)
        raise self._refused(node)

    def _number(self, node: exp.Expr) -> Decimal:
        number = parse_number(str(node.this))
        if number is None:
            raise self._refused(node)
        return number

    def _negated(self, node: exp.Expr) -> Value | None:
        value = self._operand(node.this)
        if isinstance(value, Decimal):
            return value.copy_negate()
        if value is None or isinstance(value, float):
            return None if value is None else -value
        raise self._refused(node)

    def _bytes(self, node: exp.Expr) -> bytes:
        try:
            return bytes.fromhex(str(node.this))
        except ValueError:
            raise self._refused(node) from None

    def _cast(self, node: exp.Expr) -> Value | None:
        self._only(node, "this", "to", "safe", "_type")
        value = self._operand(node.this)
        if value is None:
            return None
        if isinstance(value, Column):
            raise self._refused(node)
        try:
            return _cast_value(value, type_text(arrow_type(node.args["to"].sql(dialect="spark"))))
        except InvalidInputError as error:
            raise InvalidInputError(
                f"{quoted(node)} in the predicate: {error.message}", kind="invalid_predicate", remedy=error.remedy
            ) from None

    def _only(self, node: exp.Expr, *allowed: str) -> None:
        """Refuse a node that carries more than the parts that are understood."""
        if any(part for name, part in node.args.items() if name not in allowed):
            raise self._refused(node)

    def _refused(self, node: exp.Expr) -> InvalidInputError:
        return InvalidInputError(
            f"{quoted(node)} is not supported in a predicate.", kind="invalid_predicate", remedy=SUPPORTED
        )


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a chain of AND, or of OR, in order; the chain may be long."""
    parts: list[exp.Expr] = []
    pending = [node]
    while pending:
        part = pending.pop()
        if type(part) is type(node):
            pending += [part.expression, part.this]
        else:
            parts.append(part)
    return parts


def _null_safe_equal(left: Column, right: Operand, equal: Predicate) -> Predicate:
    if right is None:
        return IsNull(column=left)
    both_known = [Not(part=IsNull(column=left))]
    if not isinstance(right, Column):
        return And(parts=(*both_known, equal))
    both_known.append(Not(part=IsNull(column=right)))
    both_null = And(parts=(IsNull(column=left), IsNull(column=right)))
    return Or(parts=(both_null, And(parts=(*both_known, equal))))


def _check_pattern(pattern: str) -> None:
    """Refuse a backslash that escapes nothing, as Spark does."""
    rest = pattern.replace("\\\\", "").replace("\\%", "").replace("\\_", "")
    if "\\" in rest:
        raise InvalidInputError(
            f"In the LIKE pattern {shortened(pattern)!r} a backslash escapes nothing.",
            kind="invalid_predicate",
            remedy="Escape only %, _ and the backslash itself.",
        )


def _cast_value(value: Value, wanted: str) -> Value:
    """A literal as a value of another type, exactly."""
    if wanted == "timestamp" and isinstance(value, str):
        moment = parse_timestamp(value)
        if moment is not None:
            return moment
    raw = raw_value(wanted, _integral(value))
    if wanted == "float":
        with np.errstate(over="ignore"):
            return float(np.float32(raw))
    if wanted == "double":
        return float(raw)
    result = python_value(wanted, raw)
    converted: Value = Decimal(result) if isinstance(result, int) and not isinstance(result, bool) else result
    return converted


def _integral(value: Value) -> Value | int:
    """A whole number as an int, which integer types take."""
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value


_BINDERS: dict[type[exp.Expr], Callable[[_Binder, Any, int], Predicate]] = {
    exp.Paren: _Binder._paren,
    exp.Not: _Binder._not,
    exp.And: _Binder._junction,
    exp.Or: _Binder._junction,
    exp.Boolean: _Binder._constant,
    exp.Null: _Binder._constant,
    exp.Column: _Binder._boolean_column,
    exp.NullSafeEQ: _Binder._null_safe,
    exp.NullSafeNEQ: _Binder._null_safe,
    exp.Between: _Binder._between,
    exp.In: _Binder._in,
    exp.Is: _Binder._is,
    exp.Like: _Binder._like,
    **dict.fromkeys(_COMPARISONS, _Binder._comparison),
}
