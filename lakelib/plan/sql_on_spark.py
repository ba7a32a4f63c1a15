"""Pure. What people ask, said for Spark: the same tree, in which frames stand for the tables and parameters for the
values. What it is made of is known node by node here, too; of functions there are more than in process."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

from sqlglot import exp

from lakelib.errors import InvalidInputError
from lakelib.model.schema import COMMIT_COLUMN
from lakelib.plan.asked import AskedQuery, TableColumns
from lakelib.plan.spark_functions import ALONE, ALONE_BY_NAME
from lakelib.plan.sql_functions import parameter_name
from lakelib.plan.sql_references import KEY, key_of
from lakelib.plan.sql_statement import Statement, star_columns, translate_statement
from lakelib.plan.sql_values import type_of_value
from lakelib.plan.sql_wrong import place_of, unknown_sql

_SUBSTITUTED = re.compile(r"\$\{")
"""What Spark's parser would put settings and surroundings in the place of."""
_MICROSECOND = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST_BIGINT = 2**63 - 1
_ALWAYS = exp.GTE(this=exp.Rand(this=exp.Literal.number(0)), expression=exp.Literal.number(0))
"""True of every row, and known to be by nobody."""


def translate_for_spark(statement: Statement, tables: Mapping[str, TableColumns]) -> AskedQuery:
    """The query over frames.

    What is understood in process is pruned and called alike. Of what Spark alone computes only the columns are known
    that it may look at. Raises InvalidInputError as `translate_statement` does, for what is not known here either.
    """
    statement = replace(statement, tree=statement.tree.copy())  # others may have the same one, of other tables
    try:
        asked = translate_statement(statement, tables)
    except InvalidInputError as error:
        if error.kind != "unknown_sql":
            raise
        _check_known(statement.tree)
        uses = _used_by_name(statement, tables)
        asked = AskedQuery(sql="", wide_sql="", columns=(), types=(), uses=uses, conditions={}, bound={})
    said = _Said(statement.values)
    if _asks_commit(asked.uses) or any(each.args.get("using") for each in statement.tree.find_all(exp.Join)):
        _replace_stars(statement.tree)
    sql = said.text(statement.tree)
    return replace(asked, sql=sql, wide_sql=sql, bound=said.bound, on_spark=True)


def _asks_commit(uses: Mapping[str, tuple[str, ...]]) -> bool:
    """A frame has the column then, which no star stands for. Of a join by USING Spark has what is shared first."""
    return any(COMMIT_COLUMN in names for names in uses.values())


# What only Spark computes


def _check_known(tree: exp.Expr) -> None:
    for node in tree.walk():
        is_known = node.name.casefold() in ALONE_BY_NAME if isinstance(node, exp.Anonymous) else type(node) in ALONE
        if not is_known:
            raise unknown_sql(node)


def _used_by_name(statement: Statement, tables: Mapping[str, TableColumns]) -> dict[str, tuple[str, ...]]:
    """The columns whose names the query has anywhere; with a star in it, all."""
    tree = statement.tree
    named = {each.name.casefold() for each in tree.find_all(exp.Identifier)}
    stars = [each for each in tree.find_all(exp.Star) if not isinstance(each.parent, exp.Count)]
    takes_all = bool(stars) or any(each.args.get("method") for each in tree.find_all(exp.Join))
    if stars and COMMIT_COLUMN in named:
        raise InvalidInputError(
            f"There is a * beside {COMMIT_COLUMN} in a query that Spark alone understands{place_of(stars[0])}.",
            kind="unknown_sql",
            remedy="Name the columns.",
        )
    return {
        key: tuple(name for name, _ in table.columns if takes_all or name.casefold() in named)
        + tuple(name for name, _ in table.hidden if name.casefold() in named)
        for key, table in tables.items()
    }


# How it is said


class _Said:
    """Says trees in Spark's words. What it binds is noted."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._mark = f"frame_{uuid4().hex}_"
        self.bound: dict[str, Any] = {}

    def text(self, tree: exp.Expr) -> str:
        sql = tree.transform(self._put).sql(dialect="spark", comments=False)
        if _SUBSTITUTED.search(sql):
            raise InvalidInputError(
                "A name has ${ in it, which Spark takes for a setting.", kind="invalid_sql", remedy="Call it otherwise."
            )
        return re.sub(f"{self._mark}(\\w+)", r"{\1}", sql.replace("{", "{{").replace("}", "}}"))

    def _put(self, node: exp.Expr) -> exp.Expr:
        match node:
            case exp.Table() if KEY in node.meta:
                alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(_own_name(node), quoted=True))
                return exp.Table(this=exp.to_identifier(f"{self._mark}{key_of(node)}"), alias=alias)
            case exp.Parameter() | exp.Placeholder():
                return self._value(node.this.name if isinstance(node.this, exp.Expr) else str(node.this))
            case exp.Literal(is_string=True) if _SUBSTITUTED.search(node.name):
                return self._bind(f"text {node.name}", node.name)
            case exp.Select() if _may_lose_order(node):
                return node.where(_ALWAYS.copy(), copy=False)
        return node

    def _value(self, name: str) -> exp.Expr:
        """A parameter in the type that it has: numbers and texts are bound, of days and moments their numbers, for on
        their way Python's pass through time zones."""
        value = self._values[name]
        kind = type_of_value(name, value)
        match value:
            case None:
                return exp.null()
            case datetime():
                return exp.func("timestamp_micros", self._bind(name, _microseconds(value)))
            case date():
                return exp.func("date_from_unix_date", self._bind(name, (value - _EPOCH.date()).days))
            case bytes():
                return exp.func("unhex", self._bind(name, value.hex()))
            case Decimal():
                return exp.cast(self._bind(name, format(value, "f")), kind, dialect="spark")
            case int() if not isinstance(value, bool) and abs(value) > _LARGEST_BIGINT:
                return exp.cast(self._bind(name, str(value)), kind, dialect="spark")
        return self._bind(name, value)

    def _bind(self, name: str, value: Any) -> exp.Expr:
        own = parameter_name(name)
        self.bound[own] = value
        return exp.Placeholder(this=own)


def _may_lose_order(select: exp.Select) -> bool:
    """Whether a value is looked up for each of the first so many rows. Spark 4.3 has the look-up below LIMIT then, and
    forgets the ORDER BY below both: other rows come. A condition in between, which it cannot see through, keeps it."""
    source = select.args.get("from_")
    if source is None or not any(each.find(exp.Query) for each in select.expressions):
        return False
    named = select.root().find_all(exp.CTE) if isinstance(source.this, exp.Table) else ()
    return any(each.find(exp.Limit) for each in (source, *named))


def _microseconds(value: datetime) -> int:
    passed = value - _EPOCH
    return (passed.days * 86_400 + passed.seconds) * _MICROSECOND + passed.microseconds


def _own_name(node: exp.Table) -> str:
    """What a table is called where the query gives it no other name."""
    return node.name if isinstance(node.this, exp.Identifier) else str(node.this.name)


def _replace_stars(tree: exp.Expr) -> None:
    """By the columns that they stand for, where that is known."""
    for select in tree.find_all(exp.Select):
        chosen: list[exp.Expr] = []
        for each in select.expressions:
            known = star_columns(each)
            chosen += [each] if known is None else [_column(*column) for column in known]
        select.set("expressions", chosen)


def _column(relation: str | None, name: str) -> exp.Expr:
    return exp.column(
        exp.to_identifier(name, quoted=True),
        table=None if relation is None else exp.to_identifier(relation, quoted=True),
    )
