"""Pure. Turns SQL text into a predicate bound to a table's columns. Nothing of the text is ever evaluated as code."""

import math
import operator
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from lakelib.errors import InvalidInputError
from lakelib.model.predicate import (
    MIRRORED,
    And,
    Compare,
    CompareColumns,
    Comparison,
    Constant,
    IsNull,
    Like,
    Matches,
    Not,
    Or,
    Predicate,
    Tested,
    columns_of,
)
from lakelib.model.schema import Column, TableSchema
from lakelib.plan.computing import NotComputableError, are_alike, cast_tested, common_type, lowered, order_of
from lakelib.plan.describe import describe_predicate
from lakelib.plan.expressions import COMMIT, MAX_DEPTH, Expressions
from lakelib.plan.literals import Value, all_of, any_of, compare_value, described, member_of
from lakelib.plan.ranges import by_range
from lakelib.plan.sqltext import literally, parse_condition, with_backslashes
from lakelib.rows.regex import re2_of

__all__ = ["COMMIT", "asked_columns", "bind_where", "describe_predicate", "parse_where"]

_COMPARISONS: dict[type[exp.Expr], Comparison] = {
    exp.EQ: Comparison.EQ,
    exp.NEQ: Comparison.NE,
    exp.LT: Comparison.LT,
    exp.LTE: Comparison.LE,
    exp.GT: Comparison.GT,
    exp.GTE: Comparison.GE,
}

_HOLDS: dict[Comparison, Callable[[int, int], bool]] = {
    Comparison.EQ: operator.eq,
    Comparison.NE: operator.ne,
    Comparison.LT: operator.lt,
    Comparison.LE: operator.le,
    Comparison.GT: operator.gt,
    Comparison.GE: operator.ge,
}

Operand = Tested | Value | None
"""One side of a comparison: a column, what is computed of some, a literal value, or NULL."""

NESTED = ("array<", "map<", "struct<")


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
        return _Binder(node.sql(dialect="spark"), schema).predicate(node, 0)
    except RecursionError:
        raise InvalidInputError("The condition is nested too deeply.", kind="invalid_predicate") from None


class _Binder:
    def __init__(self, text: str, schema: TableSchema) -> None:
        self._text = text
        self._schema = schema
        self._values = Expressions(text, schema)
        self._refused = self._values.refused
        self._only = self._values.only

    def bind(self) -> Predicate:
        try:
            return self.predicate(parse_condition(self._text, self._schema.names), 0)
        except RecursionError:
            raise self._values.too_deep() from None

    def predicate(self, node: exp.Expr, depth: int) -> Predicate:
        if depth > MAX_DEPTH:
            raise self._values.too_deep()
        bind = _BINDERS.get(type(node))
        return self._is_true(node, True) if bind is None else bind(self, node, depth)

    def _paren(self, node: exp.Expr, depth: int) -> Predicate:
        return self.predicate(node.this, depth + 1)

    def _not(self, node: exp.Expr, depth: int) -> Predicate:
        return Not(part=self.predicate(node.this, depth + 1))

    def _junction(self, node: exp.Expr, depth: int) -> Predicate:
        parts = tuple(self.predicate(part, depth + 1) for part in _chain(node))
        return all_of(parts) if isinstance(node, exp.And) else any_of(parts)

    def _constant(self, node: exp.Expr, _depth: int) -> Predicate:
        return Constant(value=None if isinstance(node, exp.Null) else bool(node.this))

    def _is_true(self, node: exp.Expr, value: bool) -> Predicate:
        tested = self._operand(node)
        if tested is None or isinstance(tested, bool):
            return Constant(value=None if tested is None else tested is value)
        if not isinstance(tested, Tested) or tested.type != "boolean":
            raise self._refused(node)
        return Compare(column=tested, op=Comparison.EQ, value=value)

    def _comparison(self, node: exp.Expr, _depth: int) -> Predicate:
        self._only(node, "this", "expression")
        op = _COMPARISONS[type(node)]
        return self._compare(node, self._operand(node.this), op, self._operand(node.expression))

    def _compare(self, node: exp.Expr, left: Operand, op: Comparison, right: Operand) -> Predicate:
        if not isinstance(left, Tested):
            left, op, right = right, MIRRORED[op], left
        if not isinstance(left, Tested):
            return self._compare_values(node, right, MIRRORED[op], left)
        if not isinstance(right, Tested):
            return by_range(compare_value(left, op, right))
        return self._compare_tested(left, op, right)

    def _compare_tested(self, left: Tested, op: Comparison, right: Tested) -> Predicate:
        given = (left, right)
        try:
            if left.type.startswith(NESTED) or right.type.startswith(NESTED):
                raise NotComputableError("nested")
            if not are_alike(left.type, right.type):
                kind = common_type((left, right))
                left, right = cast_tested(left, kind), cast_tested(right, kind)
        except NotComputableError:
            raise InvalidInputError(
                f"{described(given[0])} and {described(given[1])} cannot be compared.",
                kind="invalid_predicate",
                remedy="Compare columns of one kind that is not nested: numbers, texts, days; or CAST one of them.",
            ) from None
        return CompareColumns(left=left, op=op, right=right)

    def _compare_values(self, node: exp.Expr, left: Operand, op: Comparison, right: Operand) -> Predicate:
        """Such as `1 = 1`."""
        if left is None or right is None:
            return Constant(value=None)
        if isinstance(left, Tested) or isinstance(right, Tested) or (order := order_of(left, right)) is None:
            raise self._refused(node)
        return Constant(value=_HOLDS[op](order, 0))

    def _null_safe(self, node: exp.Expr, _depth: int) -> Predicate:
        self._only(node, "this", "expression")
        left, right = self._operand(node.this), self._operand(node.expression)
        if not isinstance(left, Tested):
            left, right = right, left
        if not isinstance(left, Tested):
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
        if not values:
            raise self._refused(node)
        literals = [value for value in values if not isinstance(value, Tested)]
        if not isinstance(column, Tested) or len(literals) < len(values):
            return any_of([self._compare(node, column, Comparison.EQ, value) for value in values])
        return by_range(member_of(column, literals))

    def _is(self, node: exp.Expr, _depth: int) -> Predicate:
        self._only(node, "this", "expression")
        tested = self._operand(node.this)
        if isinstance(node.expression, exp.Null):
            return IsNull(column=tested) if isinstance(tested, Tested) else Constant(value=tested is None)
        if not isinstance(node.expression, exp.Boolean) or not isinstance(tested, Tested):
            raise self._refused(node)
        wanted = self._is_true(node.this, bool(node.expression.this))
        return And(parts=(Not(part=IsNull(column=tested)), wanted))

    def _is_nan(self, node: exp.Expr, _depth: int) -> Predicate:
        """Of NULL it is FALSE."""
        tested = self._operand(node.this)
        if not isinstance(tested, Tested) or tested.type not in ("float", "double"):
            raise self._refused(node, "only a FLOAT or a DOUBLE may be NaN")
        return And(parts=(Not(part=IsNull(column=tested)), compare_value(tested, Comparison.EQ, math.nan)))

    def _like(self, node: exp.Expr, _depth: int, escape: str = "\\") -> Predicate:
        self._only(node, "this", "expression", "negate")
        tested, pattern = self._text_and_pattern(node)
        if pattern is None:
            return Constant(value=None)
        plain = with_backslashes(pattern, escape)
        if isinstance(node, exp.ILike):
            if escape.isalpha():
                raise self._refused(node, "a letter escapes")
            tested, plain = lowered(tested), plain.lower()
        like = Like(column=tested, pattern=plain)
        return Not(part=like) if node.args.get("negate") else like

    def _escaped(self, node: exp.Expr, depth: int) -> Predicate:
        """LIKE … ESCAPE one character."""
        escape = node.expression.name if isinstance(node.expression, exp.Literal) else ""
        if type(node.this) not in (exp.Like, exp.ILike) or len(escape) != 1 or escape in "%_":
            raise self._refused(node)
        return self._like(node.this, depth, escape)

    def _rlike(self, node: exp.Expr, _depth: int) -> Predicate:
        self._only(node, "this", "expression")
        tested, pattern = self._text_and_pattern(node)
        if pattern is None:
            return Constant(value=None)
        re2_of(pattern)
        return Matches(column=tested, pattern=pattern)

    def _text_and_pattern(self, node: exp.Expr) -> tuple[Tested, str | None]:
        tested, pattern = self._operand(node.this), self._operand(node.expression)
        if not isinstance(tested, Tested) or tested.type != "string" or not isinstance(pattern, str | None):
            raise self._refused(node)
        return tested, pattern

    def _piece(self, node: exp.Expr, _depth: int) -> Predicate:
        """STARTSWITH, ENDSWITH and CONTAINS."""
        self._only(node, "this", "expression")
        tested, text = self._operand(node.this), self._operand(node.expression)
        if not isinstance(tested, Tested) or tested.type != "string" or not isinstance(text, str):
            raise self._refused(node)
        before, after = _PIECES[type(node)]
        return Like(column=tested, pattern=f"{before}{literally(text)}{after}")

    def _called(self, node: exp.Expr, depth: int) -> Predicate:
        """Functions that sqlglot has no name for."""
        name, arguments = str(node.this).lower(), node.expressions
        if name in ("isnull", "isnotnull") and len(arguments) == 1:
            is_null = self._is(exp.Is(this=arguments[0], expression=exp.Null()), depth)
            return is_null if name == "isnull" else Not(part=is_null)
        if name == "regexp" and len(arguments) == 2:
            return self._rlike(exp.RegexpLike(this=arguments[0], expression=arguments[1]), depth)
        return self._is_true(node, True)

    def _operand(self, node: exp.Expr) -> Operand:
        return self._values.operand(node, 0)


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


def _null_safe_equal(left: Tested, right: Operand, equal: Predicate) -> Predicate:
    if right is None:
        return IsNull(column=left)
    both_known: list[Predicate] = [Not(part=IsNull(column=left))]
    if not isinstance(right, Tested):
        return And(parts=(*both_known, equal))
    both_known.append(Not(part=IsNull(column=right)))
    both_null = And(parts=(IsNull(column=left), IsNull(column=right)))
    return Or(parts=(both_null, And(parts=(*both_known, equal))))


_PIECES: dict[type[exp.Expr], tuple[str, str]] = {
    exp.StartsWith: ("", "%"),
    exp.EndsWith: ("%", ""),
    exp.Contains: ("%", "%"),
}

_BINDERS: dict[type[exp.Expr], Callable[[_Binder, Any, int], Predicate]] = {
    exp.Paren: _Binder._paren,
    exp.Not: _Binder._not,
    exp.And: _Binder._junction,
    exp.Or: _Binder._junction,
    exp.Boolean: _Binder._constant,
    exp.Null: _Binder._constant,
    exp.NullSafeEQ: _Binder._null_safe,
    exp.NullSafeNEQ: _Binder._null_safe,
    exp.Between: _Binder._between,
    exp.In: _Binder._in,
    exp.Is: _Binder._is,
    exp.IsNan: _Binder._is_nan,
    exp.Like: _Binder._like,
    exp.ILike: _Binder._like,
    exp.Escape: _Binder._escaped,
    exp.RegexpLike: _Binder._rlike,
    exp.Anonymous: _Binder._called,
    **dict.fromkeys(_PIECES, _Binder._piece),
    **dict.fromkeys(_COMPARISONS, _Binder._comparison),
}
