"""Pure. The tables of the lake that a query names: as they are now or were then, their changes, and what is known of
them."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from difflib import get_close_matches
from typing import Any, NoReturn

from sqlglot import exp

from lakelib.errors import InvalidInputError
from lakelib.plan.asked import Reference
from lakelib.plan.meant import CONSUMER_PREFIX, TAG_PREFIX, parse_at
from lakelib.plan.sql_generators import GENERATORS
from lakelib.plan.sql_values import constant_of
from lakelib.plan.sql_wrong import place_of, unknown_sql
from lakelib.plan.sqltext import quoted, shortened

METADATA = ("snapshots", "files", "partitions", "tags", "verdicts", "consumers", "commits")
"""What a table's name may end in, after a dollar sign."""
KEY = "lake_table"
"""Under which a node of a tree notes which table it names."""
GIVEN = "given"
"""The key of rows that are no table's, but were handed in."""


def given_rows(alias: str) -> exp.Table:
    """What stands behind FROM for rows that were handed in."""
    node = exp.Table(
        this=exp.to_identifier(alias, quoted=True), alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    )
    node.meta[KEY] = GIVEN
    return node


def key_of(node: exp.Table) -> str:
    """Of a table in a query that was understood."""
    return str(node.meta[KEY])


def tables_of(tree: exp.Expr) -> list[exp.Table]:
    """The tables of the lake among the names: those that are no query of a WITH clause."""
    return [
        node
        for node in tree.find_all(exp.Table, bfs=False)
        if node.meta.get(KEY) != GIVEN
        and not isinstance(node.this, GENERATORS)
        and (node.args.get("db") or not isinstance(node.this, exp.Identifier) or not _is_named(node))
        and node.find_ancestor(exp.Hint) is None
    ]


def _is_named(node: exp.Table) -> bool:
    """Whether a query around it has a WITH clause that names it."""
    around = node.parent
    while around is not None:
        clause = around.args.get("with_")
        if clause is not None and any(each.alias.casefold() == node.name.casefold() for each in clause.expressions):
            return True
        around = around.parent
    return False


def reference_of(node: exp.Table, number: int, values: Mapping[str, Any]) -> Reference:
    key = f"t{number}"
    if not isinstance(node.this, exp.Identifier):
        return _changes(node, key, values)
    for part, given in node.args.items():
        if given and part not in ("this", "db", "alias", "version"):
            raise unknown_sql(node)
    if not node.db:
        raise InvalidInputError(
            f"{node.name!r} is no table{place_of(node)}.",
            kind="table_not_found",
            remedy="Name a table with its namespace: SELECT … FROM shop.orders.",
        )
    name, dollar, metadata = node.name.partition("$")
    if dollar and metadata not in METADATA:
        near = get_close_matches(metadata, METADATA, n=1)
        raise InvalidInputError(
            f"There is no {node.db}.{node.name}{place_of(node)}.",
            kind="table_not_found",
            remedy=(f"{near[0]!r} may be meant. " if near else "") + f"After the $ may stand {', '.join(METADATA)}.",
        )
    version = node.args.get("version")
    return Reference(
        key=key,
        name=f"{node.db}.{name}",
        metadata=metadata or None,
        at=None if version is None else _at(version, values),
        place=place_of(node),
    )


def _at(node: exp.Expr, values: Mapping[str, Any]) -> int | str | datetime:
    value = constant_of(node.expression, values)
    if str(node.args.get("kind")).upper() != "AS OF":
        raise InvalidInputError(
            f"{quoted(node)} is not known.", kind="invalid_at", remedy="Write FOR VERSION AS OF 42."
        )
    match value:
        case datetime() if value.tzinfo is not None and str(node.this).upper() == "TIMESTAMP":
            return value
        case date() if not isinstance(value, datetime) and str(node.this).upper() == "TIMESTAMP":
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        case str() if str(node.this).upper() == "TIMESTAMP":
            moment = parse_at(value)
            if isinstance(moment, datetime):
                return moment
        case int() if not isinstance(value, bool) and str(node.this).upper() == "VERSION":
            return value
        case str() if str(node.this).upper() == "VERSION":
            return int(value) if value.isascii() and value.isdecimal() else TAG_PREFIX + value.removeprefix(TAG_PREFIX)
    raise InvalidInputError(
        f"{quoted(node.expression)} means no snapshot{place_of(node)}.",
        kind="invalid_at",
        remedy="Write FOR VERSION AS OF 42, FOR VERSION AS OF 'a tag', or FOR TIMESTAMP AS OF '2026-11-18T10:30'.",
    )


_OF_CHANGES = ("after", "until", "view")


def _changes(node: exp.Table, key: str, values: Mapping[str, Any]) -> Reference:
    """`changes('shop.orders', after => 3, until => 7, view => 'net')`."""
    call = node.this
    if not isinstance(call, exp.Anonymous) or call.name.casefold() != "changes":
        word = call.sql(dialect="spark")
        raise InvalidInputError(
            f"{shortened(word)!r} is no table{place_of(node)}.",
            kind="sql_refused",
            remedy="A query is over tables of the lake; of functions there is changes('shop.orders', after => 3).",
        )
    given: dict[str, Any] = {}
    places = iter(("table", *_OF_CHANGES))
    for each in call.expressions:
        name = each.this.name.casefold() if isinstance(each, exp.Kwarg) else next(places, "")
        if name not in ("table", *_OF_CHANGES) or name in given:
            _wrong_changes(node)
        given[name] = constant_of(each.expression if isinstance(each, exp.Kwarg) else each, values)
    table = given.pop("table", None)
    if not isinstance(table, str) or table.count(".") != 1:
        _wrong_changes(node)
    for bound in ("after", "until"):
        value = given.get(bound)
        if isinstance(value, str) and not value.startswith((TAG_PREFIX, CONSUMER_PREFIX)):
            given[bound] = parse_at(value, bound)
    return Reference(key=key, name=table, changes=given, place=place_of(node))


def _wrong_changes(node: exp.Table) -> NoReturn:
    raise InvalidInputError(
        f"{quoted(node)}: these are no changes{place_of(node)}.",
        kind="invalid_changes",
        remedy="Write changes('shop.orders', after => 3, until => 7, view => 'latest'), of which all but the first may"
        " be left out.",
    )
