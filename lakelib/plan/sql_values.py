"""Pure. Values in a text of SQL, and those that are bound to its parameters."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp

from lakelib.errors import InvalidInputError
from lakelib.plan.local_types import VOID
from lakelib.plan.sql_wrong import place_of
from lakelib.plan.sqltext import quoted, shortened

_INTEGER_LIMITS = ((2**31, "int"), (2**63, "bigint"), (10**38, "decimal(38,0)"))


def type_of_value(name: str, value: Any) -> str:
    """The type that Spark gives a Python value. Raises InvalidInputError for one that is none of SQL's."""
    match value:
        case None:
            return VOID
        case bool():
            return "boolean"
        case int():
            kind = next((kind for limit, kind in _INTEGER_LIMITS if -limit <= value < limit), None)
        case float():
            kind = "double"
        case str():
            kind = "string"
        case bytes():
            kind = "binary"
        case Decimal() if value.is_finite():
            kind = _decimal_type(value)
        case datetime():
            kind = "timestamp" if value.tzinfo is not None else None
        case date():
            kind = "date"
        case _:
            kind = None
    if kind is None:
        raise InvalidInputError(
            f"The parameter {name} is {shortened(repr(value))}, a {type(value).__name__}.",
            kind="invalid_parameter",
            remedy="Give text, a number, a boolean, bytes, a date, a datetime with a time zone, or None.",
        )
    return kind


def constant_of(node: exp.Expr, values: Mapping[str, Any]) -> Any:
    """A literal, a day or moment, or what a parameter is bound to."""
    match node:
        case exp.Literal(is_string=True):
            return str(node.this)
        case exp.Literal() if str(node.this).isdecimal():
            return int(node.this)
        case exp.Cast(this=exp.Literal(is_string=True) as text):
            return str(text.this)
        case exp.Column() if node.table:
            return f"{node.table}.{node.name}"
        case exp.Parameter() | exp.Placeholder():
            name = node.this.name if isinstance(node.this, exp.Expr) else str(node.this)
            if name in values:
                return values[name]
    raise InvalidInputError(
        f"{quoted(node)} is no constant{place_of(node)}.", kind="invalid_sql", remedy="Write a literal, or bind one."
    )


def filled(node: exp.Expr, values: Mapping[str, Any]) -> exp.Expr:
    """With literals in place of parameters."""

    def put(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Parameter | exp.Placeholder):
            return part
        name = part.this.name if isinstance(part.this, exp.Expr) else str(part.this)
        return _literal(values[name]) if name in values else part

    return node.transform(put)


def _literal(value: Any) -> exp.Expr:
    match value:
        case None:
            return exp.null()
        case bool():
            return exp.Boolean(this=value)
        case float():
            return exp.cast(exp.Literal.string(repr(value)), "double")
        case int() | Decimal():
            number = exp.Literal.number(format(abs(value), "f") if isinstance(value, Decimal) else str(abs(value)))
            return exp.Neg(this=number) if value < 0 else number
        case bytes():
            return exp.HexString(this=value.hex())
        case datetime():
            return exp.cast(exp.Literal.string(value.astimezone(UTC).isoformat()), "timestamptz")
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), "date")
    return exp.Literal.string(str(value))


def bound_value(value: Any) -> Any:
    """A moment has no zone in the engine: it is that of UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def _decimal_type(value: Decimal) -> str | None:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    return f"decimal({precision},{scale})" if precision <= 38 else None
