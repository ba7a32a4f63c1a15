"""Pure. Binds the values of a parsed condition: literals, columns, fields of structs, and what is computed of them."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from lakelib.errors import InvalidInputError
from lakelib.model.predicate import Computed, Fixed, Function, Tested
from lakelib.model.schema import COMMIT_COLUMN, Column, TableSchema
from lakelib.model.text import choose_from
from lakelib.plan.computing import (
    VOID,
    NotComputableError,
    Operand,
    arithmetic,
    cast_to,
    common_type,
    compute,
    fixed,
    of_number,
    type_of_number,
    value_of,
)
from lakelib.plan.intervals import days_later, shifted
from lakelib.plan.literals import Value
from lakelib.plan.sqltext import SUPPORTED, quoted, shortened
from lakelib.rows.calendar_parts import PARTS
from lakelib.rows.types import arrow_type, type_text
from lakelib.rows.values import parse_number, parse_timestamp, python_value, raw_value

COMMIT = Column(id=-1, name=COMMIT_COLUMN, type="bigint")
"""The hidden column `_commit`, as predicates know it. It is NULL in rows that are staged."""

MAX_DEPTH = 100
"""Deepest nesting of a predicate."""


class Expressions:
    """The values of one condition over the columns of one table."""

    def __init__(self, text: str, schema: TableSchema) -> None:
        self._text = text
        self._schema = schema

    def operand(self, node: exp.Expr, depth: int) -> Tested | Value | None:
        """One side of a comparison: a column, what is computed, a literal value, or NULL."""
        if isinstance(node, exp.Paren):
            return self.operand(node.this, depth + 1)
        if _is_literal(node):
            return self._literal(node)
        found = self.typed(node, depth)
        if not isinstance(found, Fixed):
            return found
        try:
            return value_of(found)
        except NotComputableError as error:
            raise self.refused(node, str(error)) from None

    def typed(self, node: exp.Expr, depth: int) -> Operand:
        """A value with its type."""
        if depth > MAX_DEPTH:
            raise self.too_deep()
        if _is_literal(node):
            return self._typed_literal(node)
        bind = _BINDERS.get(type(node))
        if bind is None:
            raise self.refused(node)
        try:
            return bind(self, node, depth + 1)
        except NotComputableError as error:
            raise self.refused(node, str(error)) from None

    def only(self, node: exp.Expr, *allowed: str) -> None:
        """Refuse a node that carries more than the parts that are understood."""
        if any(part for name, part in node.args.items() if name not in allowed):
            raise self.refused(node)

    def refused(self, node: exp.Expr, why: str = "") -> InvalidInputError:
        said = f": {why}" if why else ""
        return InvalidInputError(
            f"{quoted(node)} is not supported in a predicate{said}.", kind="invalid_predicate", remedy=SUPPORTED
        )

    def too_deep(self) -> InvalidInputError:
        return InvalidInputError(
            f"The predicate {shortened(self._text)!r} is nested too deeply.",
            kind="invalid_predicate",
            remedy="Remove parentheses, or use IN for many values.",
        )

    # Columns

    def _column(self, node: exp.Expr, _depth: int) -> Operand:
        """A column, or a field of a struct, by the names from the column on."""
        names = _names(node)
        if names is None:
            raise self.refused(node)
        column = self._named(names[0], node if len(names) > 1 else None)
        found: Tested = column
        for name in names[1:]:
            found = self._field(node, found, name)
        return found

    def _named(self, name: str, whole: exp.Expr | None) -> Column:
        if name.casefold() == COMMIT_COLUMN:
            return COMMIT
        column = self._schema.find(name)
        if column is None:
            also = "" if whole is None else f" in {quoted(whole)}"
            raise InvalidInputError(
                f"The table has no column {name!r}, which the predicate {shortened(self._text)!r} names{also}.",
                kind="unknown_column",
                remedy=choose_from("The columns", name, self._schema.names),
            )
        return column

    def _field(self, node: exp.Expr, parent: Tested, name: str) -> Computed:
        kind = arrow_type(parent.type)
        if not pa.types.is_struct(kind):
            raise self.refused(node, f"{parent.type} has no fields")
        fields = list(kind)
        found = next((field for field in fields if field.name.casefold() == name.casefold()), None)
        if found is None:
            raise InvalidInputError(
                f"{quoted(node)}: there is no field {name!r}.",
                kind="unknown_column",
                remedy=choose_from("The fields", name, [field.name for field in fields]),
            )
        arguments = (parent, Fixed(type="string", value=found.name))
        return Computed(function=Function.FIELD, arguments=arguments, type=type_text(found.type))

    # What is computed

    def _paren(self, node: exp.Expr, depth: int) -> Operand:
        return self.typed(node.this, depth)

    def _arithmetic(self, node: exp.Expr, depth: int) -> Operand:
        self.only(node, "this", "expression", "typed", "safe")
        if isinstance(node.expression, exp.Interval):
            return shifted(self.typed(node.this, depth), node.expression, -1 if isinstance(node, exp.Sub) else 1)
        left, right = self.typed(node.this, depth), self.typed(node.expression, depth)
        if left.type == "date" and isinstance(node, exp.Add | exp.Sub):
            return days_later(left, right if isinstance(node, exp.Add) else of_number(Function.NEGATE, right))
        return arithmetic(_ARITHMETIC[type(node)], left, right)

    def _negated(self, node: exp.Expr, depth: int) -> Operand:
        return of_number(Function.NEGATE, self.typed(node.this, depth))

    def _absolute(self, node: exp.Expr, depth: int) -> Operand:
        return of_number(Function.ABS, self.typed(node.this, depth))

    def _cast(self, node: exp.Expr, depth: int) -> Operand:
        self.only(node, "this", "to", "safe", "_type")
        kind = type_text(arrow_type(node.args["to"].sql(dialect="spark")))
        return cast_to(self.typed(node.this, depth), kind, is_tried=bool(node.args.get("safe")))

    def _as_date(self, node: exp.Expr, depth: int) -> Operand:
        self.only(node, "this", "safe")
        return cast_to(self.typed(node.this, depth), "date")

    def _days_later(self, node: exp.Expr, depth: int) -> Operand:
        """DATE_ADD and DATE_SUB."""
        self.only(node, "this", "expression", "unit")
        return days_later(cast_to(self.typed(node.this, depth), "date"), self.typed(node.expression, depth))

    def _chosen(self, node: exp.Expr, depth: int) -> Operand:
        self.only(node, "this", "expressions")
        arguments = [self.typed(each, depth) for each in (node.this, *node.expressions)]
        kind = common_type(arguments)
        known = [cast_to(each, kind) for each in arguments if each.type != VOID]
        return compute(Function.COALESCE, known, kind) if known else Fixed(type=VOID, value=None)

    def _of_text(self, node: exp.Expr, depth: int) -> Operand:
        self.only(node, "this")
        given = self.typed(node.this, depth)
        if given.type not in ("string", VOID):
            raise NotComputableError(f"it is of {given.type}")
        function = _OF_TEXT[type(node)]
        return compute(function, (given,), "int" if function is Function.LENGTH else "string")

    def _part(self, node: exp.Expr, depth: int) -> Operand:
        inner = node.this
        if isinstance(inner, exp.TsOrDsToDate) and not inner.args.get("safe"):
            inner = inner.this
        return self._part_of(_PARTS[type(node)], inner, depth)

    def _extracted(self, node: exp.Expr, depth: int) -> Operand:
        """EXTRACT(part FROM value). Of its seconds Spark has fractions."""
        self.only(node, "this", "expression")
        function = _EXTRACTED.get(node.this.name.lower())
        if function is None:
            raise NotComputableError(f"the part {node.this.name}")
        return self._part_of(function, node.expression, depth)

    def _part_of(self, function: Function, node: exp.Expr, depth: int) -> Operand:
        given = self.typed(node, depth)
        if given.type not in ("date", "timestamp", "timestamp_ntz", VOID):
            raise NotComputableError(f"it is of {given.type}")
        if given.type == "date" and function in _OF_TIMES:
            given = cast_to(given, "timestamp")
        return compute(function, (given,), "int")

    def _called(self, node: exp.Expr, depth: int) -> Operand:
        """Functions that sqlglot has no name for."""
        name, arguments = str(node.this).lower(), node.expressions
        if name == "weekday" and len(arguments) == 1:
            return self._part_of(Function.WEEK_DAY, arguments[0], depth)
        if name in ("date_part", "datepart") and len(arguments) == 2 and arguments[0].is_string:
            return self._extracted(exp.Extract(this=exp.var(arguments[0].name), expression=arguments[1]), depth)
        raise self.refused(node)

    # Literals

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
                return self._minus(node)
            case exp.HexString():
                return self._bytes(node)
            case exp.Cast():
                return self._cast_literal(node)
        raise self.refused(node)

    def _typed_literal(self, node: exp.Expr) -> Fixed:
        value = self._literal(node)
        match node:
            case exp.Cast():
                kind = type_text(arrow_type(node.args["to"].sql(dialect="spark")))
            case exp.Literal() if not node.is_string:
                kind = type_of_number(str(node.this))
            case exp.Neg() if isinstance(node.this, exp.Literal):
                kind = type_of_number(f"-{node.this.this}")
            case exp.Neg():
                kind = self._typed_literal(node.this).type
            case exp.HexString():
                kind = "binary"
            case exp.Boolean():
                kind = "boolean"
            case _:
                kind = "string"
        return fixed(value, kind)

    def _number(self, node: exp.Expr) -> Decimal:
        number = parse_number(str(node.this))
        if number is None:
            raise self.refused(node)
        return number

    def _minus(self, node: exp.Expr) -> Value | None:
        value = self._literal(node.this)
        if isinstance(value, Decimal):
            return value.copy_negate()
        if value is None or isinstance(value, float):
            return None if value is None else -value
        raise self.refused(node)

    def _bytes(self, node: exp.Expr) -> bytes:
        try:
            return bytes.fromhex(str(node.this))
        except ValueError:
            raise self.refused(node) from None

    def _cast_literal(self, node: exp.Expr) -> Value | None:
        self.only(node, "this", "to", "safe", "_type")
        value = self._literal(node.this)
        if value is None:
            return None
        try:
            return _cast_value(value, type_text(arrow_type(node.args["to"].sql(dialect="spark"))))
        except InvalidInputError as error:
            raise InvalidInputError(
                f"{quoted(node)} in the predicate: {error.message}", kind="invalid_predicate", remedy=error.remedy
            ) from None


def _is_literal(node: exp.Expr) -> bool:
    """A value as it is written, with its sign and type."""
    if isinstance(node, exp.Cast) and not node.args.get("safe"):
        return isinstance(node.this, exp.Literal | exp.Null | exp.HexString | exp.Boolean) or _is_signed(node.this)
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean | exp.HexString) or _is_signed(node)


def _is_signed(node: exp.Expr) -> bool:
    while isinstance(node, exp.Neg | exp.Paren):
        node = node.this
        if isinstance(node, exp.Literal):
            return not node.is_string
        if isinstance(node, exp.Cast):
            return _is_literal(node)
    return False


def _names(node: exp.Expr) -> list[str] | None:
    if isinstance(node, exp.Dot):
        names = _names(node.this)
        return [*names, node.expression.name] if names and isinstance(node.expression, exp.Identifier) else None
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        return None
    return [part.name for part in node.parts]


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


_ARITHMETIC: dict[type[exp.Expr], Function] = {
    exp.Add: Function.ADD,
    exp.Sub: Function.SUBTRACT,
    exp.Mul: Function.MULTIPLY,
    exp.Div: Function.DIVIDE,
    exp.Mod: Function.REMAINDER,
}
_OF_TEXT: dict[type[exp.Expr], Function] = {
    exp.Lower: Function.LOWER,
    exp.Upper: Function.UPPER,
    exp.Length: Function.LENGTH,
    exp.Trim: Function.TRIM,
}
_PARTS: dict[type[exp.Expr], Function] = {
    exp.Year: Function.YEAR,
    exp.Quarter: Function.QUARTER,
    exp.Month: Function.MONTH,
    exp.Day: Function.DAY,
    exp.DayOfMonth: Function.DAY,
    exp.DayOfYear: Function.DAY_OF_YEAR,
    exp.DayOfWeek: Function.DAY_OF_WEEK,
    exp.WeekOfYear: Function.WEEK,
    exp.Hour: Function.HOUR,
    exp.Minute: Function.MINUTE,
    exp.Second: Function.SECOND,
}
_OF_TIMES = (Function.HOUR, Function.MINUTE, Function.SECOND)
_EXTRACTED = {each.value: each for each in PARTS if each not in (Function.SECOND, Function.WEEK_DAY, Function.WEEK)} | {
    "week": Function.WEEK,
    "doy": Function.DAY_OF_YEAR,
    "dow": Function.DAY_OF_WEEK,
}

_BINDERS: dict[type[exp.Expr], Callable[[Expressions, Any, int], Operand]] = {
    exp.Paren: Expressions._paren,
    exp.Column: Expressions._column,
    exp.Dot: Expressions._column,
    exp.Neg: Expressions._negated,
    exp.Abs: Expressions._absolute,
    exp.Cast: Expressions._cast,
    exp.TryCast: Expressions._cast,
    exp.TsOrDsToDate: Expressions._as_date,
    exp.TsOrDsAdd: Expressions._days_later,
    exp.Coalesce: Expressions._chosen,
    exp.Extract: Expressions._extracted,
    exp.Anonymous: Expressions._called,
    **dict.fromkeys(_ARITHMETIC, Expressions._arithmetic),
    **dict.fromkeys(_OF_TEXT, Expressions._of_text),
    **dict.fromkeys(_PARTS, Expressions._part),
}
