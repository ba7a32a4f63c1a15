"""Pure. CALL: what tables ask for besides rows, by name, and its arguments."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlglot import exp

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.text import choose_from
from lakelib.plan.asked import TableName
from lakelib.plan.sql_statement import Parsed
from lakelib.plan.sql_values import constant_of
from lakelib.plan.sql_wrong import place_of, refused

PROCEDURES: Mapping[str, tuple[str, ...]] = {
    "compact": ("table", "full", "where"),
    "rebucket": ("table", "buckets", "rewrite"),
    "tag": ("table", "name", "at", "keep", "keep_last", "family"),
    "delete_tag": ("table", "name"),
    "rollback": ("table", "to"),
    "expire": ("table", "keep_last", "older_than", "staged_older_than", "dry_run"),
    "export_delta": ("table",),
    "settle_keys": ("table",),
}
"""Names, and those of their arguments in their order; the first ones may be given by their places."""
_REQUIRED = {"rebucket": ("buckets",), "tag": ("name",), "delete_tag": ("name",), "rollback": ("to",)}
_TAKES_AWAY = ("delete_tag", "rollback", "expire", "settle_keys")
_UNITS = {"WEEK": "weeks", "DAY": "days", "HOUR": "hours", "MINUTE": "minutes", "SECOND": "seconds"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    parsed: Parsed
    procedure: str
    table: TableName
    arguments: Mapping[str, Any]

    @property
    def may_take_away(self) -> bool:
        """Whether rows, columns, tables or snapshots may be gone afterwards."""
        return self.procedure in _TAKES_AWAY and not self.arguments.get("dry_run")


def read_call(parsed: Parsed) -> Call:
    """Raises InvalidInputError for what there is no such thing of."""
    node = parsed.tree.expression
    place = place_of(node)
    if not isinstance(node, exp.Anonymous):
        raise refused(parsed.tree)
    name = str(node.this).casefold()
    if name not in PROCEDURES:
        raise InvalidInputError(
            f"There is no procedure {name!r}{place}.",
            kind="unknown_procedure",
            remedy=choose_from("There are", name, sorted(PROCEDURES)),
        )
    arguments = _arguments(name, node, parsed.values, place)
    table = arguments.pop("table", None)
    if not isinstance(table, str) or table.count(".") != 1:
        raise InvalidInputError(
            f"CALL {name} lacks the name of a table{place}.",
            kind="invalid_argument",
            remedy=f"Write CALL {name}(table => 'shop.orders', …).",
        )
    for each in _REQUIRED.get(name, ()):
        if each not in arguments:
            raise InvalidInputError(
                f"CALL {name} lacks {each}{place}.",
                kind="invalid_argument",
                remedy=f"Write CALL {name}('{table}', {each} => …).",
            )
    return Call(parsed=parsed, procedure=name, table=TableName(name=table, place=place), arguments=arguments)


def _arguments(name: str, node: exp.Expr, values: Mapping[str, Any], place: str) -> dict[str, Any]:
    known = PROCEDURES[name]
    places = iter(known)
    found: dict[str, Any] = {}
    for each in node.expressions:
        is_named = isinstance(each, exp.Kwarg)
        argument = each.this.name.casefold() if is_named else next(places, "")
        if argument not in known or argument in found:
            what = f"has no argument {argument!r}" if argument and argument not in found else "has too many arguments"
            raise InvalidInputError(
                f"CALL {name} {what}{place_of(each) or place}.",
                kind="invalid_argument",
                remedy=choose_from("Its arguments", argument, known),
            )
        found[argument] = _value(each.expression if is_named else each, values)
    return found


def _value(node: exp.Expr, values: Mapping[str, Any]) -> Any:
    match node:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.Neg(this=exp.Literal(is_string=False) as number) if str(number.this).isdecimal():
            return -int(number.this)
        case exp.Interval(this=exp.Literal() as count, unit=exp.Expr() as unit):
            word = unit.name.upper().removesuffix("S")
            if word in _UNITS and str(count.this).isdecimal():
                try:
                    return timedelta(**{_UNITS[word]: int(count.this)})
                except OverflowError:
                    pass
            raise InvalidInputError(
                f"{node.sql(dialect='spark')} is no length of time{place_of(node)}.",
                kind="invalid_argument",
                remedy="Write INTERVAL '7' DAY, or '7d'.",
            )
    return constant_of(node, values)
