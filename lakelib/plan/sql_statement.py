"""Pure. The text of what people ask, in Spark's SQL: one statement; of a query, the tables that it is of. What it is
made of is known node by node; anything else is refused, with its place in the text."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, OnlySparkError
from lakelib.plan.asked import AskedQuery, Reference, TableColumns
from lakelib.plan.local_query import Query, Reach, Source, check_texts
from lakelib.plan.local_select import in_quotes
from lakelib.plan.local_types import VOID
from lakelib.plan.sql_functions import ARGUMENTS, ASKED, parameter_name
from lakelib.plan.sql_references import KEY, reference_of, tables_of
from lakelib.plan.sql_tokens import statement_tokens, tokens_of
from lakelib.plan.sql_values import bound_value, filled, type_of_value
from lakelib.plan.sql_wrong import SAYS_WHAT, no_sql, not_one, place_in, refused, too_deep, unknown_here
from lakelib.plan.sqltext import MAX_TEXT, quoted, shortened
from lakelib.plan.store_assignment import storing

_AS_EXPRESSION = (
    'Give SQL: "amount * 2"; a text in it stands in single quotes, "\'paid\'". Bind values as parameters: "$name".'
)
_TRANSLATED = storing(ASKED)
_STAR = "lake_star"
_EXPLAIN = re.compile(r"\s*EXPLAIN\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """One statement, of whatever kind."""

    text: str
    tree: exp.Expr
    values: Mapping[str, Any]
    """Of parameters, by name."""
    is_explained: bool
    """Whether it asks only how it would be carried out."""
    moves_column: bool = False
    """Whether it is an ALTER COLUMN … FIRST, or AFTER, which is parsed as if that column was added there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A query that is understood as far as that goes without its tables."""

    text: str
    tree: exp.Expr
    references: tuple[Reference, ...]
    """Their keys are in the nodes' own notes."""
    values: Mapping[str, Any]
    """Of parameters, by name."""
    is_explained: bool
    """Whether it asks only how it would be carried out."""


def parse_statement(text: str, values: Mapping[str, Any]) -> Statement:
    """Raises InvalidInputError for what is no SQL, no single query, or names what is no table."""
    return query_of(parse_text(text, values))


def parse_text(text: str, values: Mapping[str, Any]) -> Parsed:
    """Raises InvalidInputError for what is no SQL, or no single statement."""
    _check_text(text)
    dialect = Dialect.get_or_raise("spark")
    explain = _EXPLAIN.match(text)
    if explain is not None:  # places stay what they are
        text = " " * explain.end() + text[explain.end() :]
    try:
        read = statement_tokens(dialect, text)
        _check_texts(read.tokens)
        found = read.trees(dialect, text)
    except SqlglotError as error:
        raise no_sql(text, error) from None
    except RecursionError:
        raise too_deep() from None
    trees = [each for each in found if each is not None and not isinstance(each, exp.Semicolon)]
    if len(trees) != 1:
        raise not_one(len(trees))
    return Parsed(
        text=text,
        tree=_with_elements(trees[0]),
        values=dict(values),
        is_explained=explain is not None,
        moves_column=read.moves_column,
    )


def parse_expression(text: Any, what: str) -> exp.Expr:
    """One expression, as a builder is given it. Raises InvalidInputError, naming `what` it is, for anything else."""
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_TEXT:
        shown = shortened(repr(text))
        raise InvalidInputError(
            f"{what[0].upper()}{what[1:]} is {shown}, which is no SQL.",
            kind="invalid_sql",
            remedy=_AS_EXPRESSION,
        )
    dialect = Dialect.get_or_raise("spark")
    try:
        tokens = tokens_of(dialect, text)
        _check_texts(tokens)
        found = dialect.parser().parse_into(exp.Condition, tokens, text)
    except SqlglotError as error:
        raise no_sql(text, error, _AS_EXPRESSION) from None
    except RecursionError:
        raise too_deep() from None
    if len(found) != 1 or found[0] is None:
        raise InvalidInputError(
            f"{what[0].upper()}{what[1:]} is {shortened(text)!r}, and not one expression.",
            kind="invalid_sql",
            remedy="Give one.",
        )
    return _with_elements(found[0])


def query_of(parsed: Parsed, tree: exp.Expr | None = None) -> Statement:
    """The query that it is, or one that is a part of it. Raises InvalidInputError for one that is none, or names what
    is no table."""
    query = parsed.tree if tree is None else tree
    if not isinstance(query, exp.Query | exp.Values):
        raise refused(query)
    nodes = tables_of(query)
    references = [reference_of(node, number, parsed.values) for number, node in enumerate(nodes)]
    for node, each in zip(nodes, references, strict=True):
        node.meta[KEY] = each.key
    return Statement(
        text=parsed.text,
        tree=query,
        references=tuple(references),
        values=parsed.values,
        is_explained=parsed.is_explained,
    )


def translate_statement(statement: Statement, tables: Mapping[str, TableColumns]) -> AskedQuery:
    """The query for DuckDB, over tables of these columns by reference. Raises InvalidInputError for names that mean
    nothing, or more than one thing, and for what is not known, with its place in the text."""
    conditions: dict[str, list[exp.Expr]] = {}

    def find_table(node: exp.Table) -> Source:
        key = node.meta.get(KEY)
        if key is None:
            raise OnlySparkError(f"the table {quoted(node)}", kind="table_not_found")
        found = tables[key]
        return Source(sql=in_quotes(key), columns=tuple(found.columns), hidden=tuple(found.hidden), view=key)

    def note(key: str, node: exp.Expr) -> None:
        conditions.setdefault(key, []).append(filled(node, statement.values))

    def note_star(node: exp.Expr, columns: Sequence[tuple[str | None, str]]) -> None:
        node.meta[_STAR] = tuple(columns)

    types = {name: type_of_value(name, value) for name, value in statement.values.items()}
    reach = Reach(
        translated=_TRANSLATED,
        is_asked=True,
        find_table=find_table,
        parameters=types,
        arguments=ARGUMENTS,
        note_condition=note,
        note_star=note_star,
        narrow=True,
    )
    query = Query({}, "", reach)
    try:
        made = query.made(statement.tree, is_outermost=True)
        wide = made
        if _sums_products(statement.tree):
            roomy = replace(reach, narrow=False, note_condition=None)
            wide = Query({}, "", roomy).made(statement.tree, is_outermost=True)
    except OnlySparkError as error:
        raise unknown_here(error) from None
    except RecursionError:
        raise too_deep() from None
    columns = tuple((name, "string" if kind == VOID else kind) for name, kind in made.known(True))
    return AskedQuery(
        sql=made.sql,
        wide_sql=wide.sql,
        columns=columns,
        types=tuple(kind for _, kind in made.columns),
        uses=query.uses(),
        conditions={key: tuple(found) for key, found in conditions.items()},
        bound={
            parameter_name(name): bound_value(value)
            for name, value in statement.values.items()
            if f"${parameter_name(name)}" in made.sql
        },
    )


def star_columns(node: exp.Expr) -> Sequence[tuple[str | None, str]] | None:
    """By relation and name, what a star stands for in a statement that was translated; None for what is no star."""
    columns: Sequence[tuple[str | None, str]] | None = node.meta.get(_STAR)
    return columns


def _with_elements(tree: exp.Expr) -> exp.Expr:
    """The tree, in which functions of elements know those in capitals as in small letters. The parser takes a name that
    is written in another way for a column's."""
    for function in list(tree.find_all(exp.Lambda)):
        names = {each.name.casefold() for each in function.expressions}
        for column in list(function.this.find_all(exp.Column)):
            if column.parts[0].name.casefold() in names:
                column.replace(exp.Dot.build(column.parts) if len(column.parts) > 1 else column.this)
    return tree


def _sums_products(tree: exp.Expr) -> bool:
    return any(isinstance(each.find_ancestor(exp.AggFunc, exp.Query), exp.AggFunc) for each in tree.find_all(exp.Mul))


def _check_text(text: Any) -> None:
    if not isinstance(text, str) or not text.strip():
        raise InvalidInputError(f"{text!r} is no SQL.", kind="invalid_sql", remedy=SAYS_WHAT)
    if len(text) > MAX_TEXT:
        raise InvalidInputError(
            f"The text has {len(text):,} characters, and {MAX_TEXT:,} are the most.",
            kind="invalid_sql",
            remedy="Ask in several steps, or bind long lists as rows of a table.",
        )


def _check_texts(tokens: Sequence[Token]) -> None:
    try:
        check_texts(tokens)
    except OnlySparkError as error:
        raise unknown_here(error) from None
    for token in tokens:
        if token.token_type is TokenType.STRING and "\\" in token.text:
            raise InvalidInputError(
                f"There is a backslash in a text{place_in(token.line, token.col)}, which engines read in two ways.",
                kind="invalid_sql",
                remedy="Bind the text as a parameter: lake.sql('… WHERE name = $name', name=…).",
            )
