"""Pure. What the statements that change something are made of: names of tables and columns, constants, partitions. What
is not known of a part is refused, with its place in the text."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column, TableSchema
from lakelib.model.text import choose_from
from lakelib.plan.asked import TableName
from lakelib.plan.sql_values import constant_of
from lakelib.plan.sql_wrong import place_of, unknown_sql


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnName:
    """A column that a statement names."""

    name: str
    place: str
    """Where it stands in the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPartition:
    """PARTITION (dt = '2026-11-18', hour): columns with their values, and those whose values the rows have."""

    values: Mapping[str, Any]
    dynamic: tuple[ColumnName, ...]
    place: str


def check_parts(node: exp.Expr, *known: str) -> None:
    """Raises InvalidInputError for anything that is said about a node and is not one of these."""
    for name, given in node.args.items():
        if given and name not in known:
            part = next((each for each in (given if isinstance(given, list) else [given])), node)
            raise unknown_sql(part if isinstance(part, exp.Expr) else node)


def table_name(node: exp.Expr | None, *known: str) -> TableName:
    """The table that a node names; `known` is what else may be said there."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise unknown_sql(node if node is not None else exp.Table())
    check_parts(node, "this", "db", *known)
    place = place_of(node)
    if not node.db:
        raise InvalidInputError(
            f"{node.name!r} is no table{place}.",
            kind="table_not_found",
            remedy="Name a table with its namespace: shop.orders.",
        )
    return TableName(name=f"{node.db}.{node.name}", place=place)


def column_name(node: exp.Expr) -> ColumnName:
    """A column's name, alone."""
    if isinstance(node, exp.Column):
        check_parts(node, "this")
        node = node.this
    if not isinstance(node, exp.Identifier):
        raise unknown_sql(node)
    return ColumnName(name=node.name, place=place_of(node))


def column_names(nodes: Sequence[exp.Expr]) -> tuple[ColumnName, ...]:
    found = tuple(column_name(each) for each in nodes)
    seen: set[str] = set()
    for each in found:
        if each.name.casefold() in seen:
            raise InvalidInputError(
                f"The column {each.name!r} is named twice{each.place}.",
                kind="duplicate_column",
                remedy="Name it once.",
            )
        seen.add(each.name.casefold())
    return found


def named_partition(node: exp.Expr | None, values: Mapping[str, Any]) -> NamedPartition | None:
    """What a PARTITION clause says; `values` are those of parameters."""
    if node is None:
        return None
    check_parts(node, "expressions")
    given = [(each.this, each.expression) if isinstance(each, exp.EQ) else (each, None) for each in node.expressions]
    names = column_names([name for name, _ in given])
    constants: dict[str, Any] = {}
    for name, (_, value) in zip(names, given, strict=True):
        if value is not None:
            constants[name.name] = None if isinstance(value, exp.Null) else constant_of(value, values)
    dynamic = tuple(name for name, (_, value) in zip(names, given, strict=True) if value is None)
    return NamedPartition(values=constants, dynamic=dynamic, place=place_of(node))


def find_column(schema: TableSchema, named: ColumnName, full_name: str) -> Column:
    """The column of that name. Raises InvalidInputError, with names that may be meant."""
    found = schema.find(named.name)
    if found is None:
        raise InvalidInputError(
            f"{full_name} has no column {named.name!r}{named.place}.",
            kind="unknown_column",
            remedy=choose_from("Its columns", named.name, schema.names),
        )
    return found


def properties_of(nodes: Sequence[exp.Expr]) -> dict[str, Any]:
    """What TBLPROPERTIES or OPTIONS say, by name."""
    found: dict[str, Any] = {}
    for each in nodes:
        if not isinstance(each, exp.Property) or isinstance(each.this, exp.Dot):
            raise unknown_sql(each)
        name = str(each.this.name if isinstance(each.this, exp.Literal | exp.Identifier) else each.this)
        if name in found:
            raise InvalidInputError(
                f"The property {name!r} is given twice{place_of(each)}.", kind="invalid_option", remedy="Give it once."
            )
        found[name] = _property_value(each.args["value"])
    return found


def _property_value(node: exp.Expr) -> Any:
    match node:
        case exp.Boolean():
            return bool(node.this)
        case exp.Var() | exp.Identifier() | exp.Column():
            return node.name
        case _:
            return constant_of(node, {})
