"""Pure. The text of what people ask, in Spark's SQL: one statement; of a query, the tables that it is of. What it is
made of is known node by node; anything else is refused, with its place in the text."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lakelib.errors import InvalidInputError, OnlySparkError
from lakelib.plan.asked import AskedQuery, Reference, TableColumns
from lakelib.plan.at import CONSUMER_PREFIX, TAG_PREFIX, parse_at
from lakelib.plan.local_query import Query, Reach, Source, check_texts
from lakelib.plan.local_select import in_quotes
from lakelib.plan.local_translator import first_column
from lakelib.plan.local_types import VOID
from lakelib.plan.sql_functions import ARGUMENTS, ASKED, parameter_name
from lakelib.plan.sql_tokens import statement_tokens, tokens_of
from lakelib.plan.sqltext import MAX_TEXT, quoted, shortened
from lakelib.plan.store_assignment import storing

METADATA = ("snapshots", "files", "partitions", "tags", "verdicts", "consumers", "commits")
"""What a table's name may end in, after a dollar sign."""

SAYS_WHAT = "Tables are called namespace.table; docs/sql.md says which statements there are, and what is known in them."
_SAYS_WHAT_IS_KNOWN = (
    "docs/sql.md says what is known here, and what Spark knows besides. What day or time it is has to be said: bind it "
    "as a parameter."
)
_TRANSLATED = storing(ASKED)
_INTEGER_LIMITS = ((2**31, "int"), (2**63, "bigint"), (10**38, "decimal(38,0)"))
_KEY = "lake_table"
GIVEN = "given"
"""The key of rows that are no table's, but were handed in."""
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
        raise _no_sql(text, error) from None
    except RecursionError:
        raise _too_deep() from None
    trees = [each for each in found if each is not None and not isinstance(each, exp.Semicolon)]
    if len(trees) != 1:
        raise _not_one(len(trees))
    return Parsed(
        text=text,
        tree=trees[0],
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
            remedy='Give SQL as text: "amount * 2", "\'paid\'" for a text; bind values as parameters: "$name".',
        )
    dialect = Dialect.get_or_raise("spark")
    try:
        tokens = tokens_of(dialect, text)
        _check_texts(tokens)
        found = dialect.parser().parse_into(exp.Condition, tokens, text)
    except SqlglotError as error:
        raise _no_sql(text, error) from None
    except RecursionError:
        raise _too_deep() from None
    if len(found) != 1 or found[0] is None:
        raise InvalidInputError(
            f"{what[0].upper()}{what[1:]} is {shortened(text)!r}, and not one expression.",
            kind="invalid_sql",
            remedy="Give one.",
        )
    return found[0]


def query_of(parsed: Parsed, tree: exp.Expr | None = None) -> Statement:
    """The query that it is, or one that is a part of it. Raises InvalidInputError for one that is none, or names what
    is no table."""
    query = parsed.tree if tree is None else tree
    if not isinstance(query, exp.Query | exp.Values):
        raise refused(query)
    nodes = _tables(query)
    references = [_reference(node, number, parsed.values) for number, node in enumerate(nodes)]
    for node, each in zip(nodes, references, strict=True):
        node.meta[_KEY] = each.key
    return Statement(
        text=parsed.text,
        tree=query,
        references=tuple(references),
        values=parsed.values,
        is_explained=parsed.is_explained,
    )


def refused(tree: exp.Expr) -> InvalidInputError:
    """What to say of a statement that is of no kind that there is."""
    if isinstance(tree, exp.Condition | exp.Alias):
        word = quoted(tree)
    else:
        word = (str(tree.this) if isinstance(tree, exp.Command) else type(tree).__name__).upper()
    return InvalidInputError(
        f"{word} is no statement that is known here{place_of(tree)}.", kind="sql_refused", remedy=SAYS_WHAT
    )


def given_rows(alias: str) -> exp.Table:
    """What stands behind FROM for rows that were handed in."""
    node = exp.Table(
        this=exp.to_identifier(alias, quoted=True), alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    )
    node.meta[_KEY] = GIVEN
    return node


def key_of(node: exp.Table) -> str:
    """Of a table in a query that was understood."""
    return str(node.meta[_KEY])


def translate_statement(statement: Statement, tables: Mapping[str, TableColumns]) -> AskedQuery:
    """The query for DuckDB, over tables of these columns by reference. Raises InvalidInputError for names that mean
    nothing, or more than one thing, and for what is not known, with its place in the text."""
    conditions: dict[str, list[exp.Expr]] = {}

    def find_table(node: exp.Table) -> Source:
        key = node.meta.get(_KEY)
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
        raise _not_known(error) from None
    except RecursionError:
        raise _too_deep() from None
    columns = tuple((name, "string" if kind == VOID else kind) for name, kind in made.known(True))
    return AskedQuery(
        sql=made.sql,
        wide_sql=wide.sql,
        columns=columns,
        types=tuple(kind for _, kind in made.columns),
        uses=query.uses(),
        conditions={key: tuple(found) for key, found in conditions.items()},
        bound={
            parameter_name(name): _bound(value)
            for name, value in statement.values.items()
            if f"${parameter_name(name)}" in made.sql
        },
    )


def reference_key(node: exp.Expr) -> str | None:
    """The key of the reference that a node of a statement's tree is."""
    key: str | None = node.meta.get(_KEY)
    return key


def star_columns(node: exp.Expr) -> Sequence[tuple[str | None, str]] | None:
    """By relation and name, what a star stands for in a statement that was translated; None for what is no star."""
    columns: Sequence[tuple[str | None, str]] | None = node.meta.get(_STAR)
    return columns


def unknown_sql(node: exp.Expr) -> InvalidInputError:
    """What is said of a part that no engine is given."""
    return InvalidInputError(
        f"{quoted(node)} is not known in SQL on the lake{place_of(node)}.", kind="unknown_sql", remedy=SAYS_WHAT
    )


def _sums_products(tree: exp.Expr) -> bool:
    return any(isinstance(each.find_ancestor(exp.AggFunc, exp.Query), exp.AggFunc) for each in tree.find_all(exp.Mul))


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


def place_of(node: exp.Expr) -> str:
    """Where it stands in the text, as messages say it."""
    places = [each.meta for each in node.walk() if "line" in each.meta]
    first = min(places, key=lambda place: place["start"], default=None)
    return _place(first["line"], first_column(first)) if first else ""


def _place(line: int | None, column: int | None) -> str:
    return "" if line is None else f" (line {line}, column {column})"


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
        raise _not_known(error) from None
    for token in tokens:
        if token.token_type is TokenType.STRING and "\\" in token.text:
            raise InvalidInputError(
                f"There is a backslash in a text{_place(token.line, token.col)}, which engines read in two ways.",
                kind="invalid_sql",
                remedy="Bind the text as a parameter: lake.sql('… WHERE name = $name', name=…).",
            )


def _no_sql(text: str, error: Exception) -> InvalidInputError:
    details: dict[str, Any] = next(iter(getattr(error, "errors", ())), {}) if isinstance(error, ParseError) else {}
    near = f", near {shortened(details['highlight'])!r}" if details.get("highlight") else ""
    place = _place(details.get("line"), details.get("col"))
    what = _in_words(str(details.get("description") or ""))
    return InvalidInputError(
        f"{shortened(text.strip())!r} is not SQL{place}{near}: {what}.", kind="invalid_sql", remedy=SAYS_WHAT
    )


def _in_words(description: str) -> str:
    """What the parser says, without its own classes."""
    if not description:
        return "it cannot be read; perhaps a quote or a comment does not end"
    if description.startswith("Required keyword"):
        return "something is missing there"
    return description.partition(" but got <")[0].rstrip(".")


def _not_one(count: int) -> InvalidInputError:
    if count == 0:
        return InvalidInputError("There is no statement in the text.", kind="invalid_sql", remedy=SAYS_WHAT)
    return InvalidInputError(
        f"There are {count} statements, and one is run.",
        kind="invalid_sql",
        remedy="Run them one after the other. In Python a transaction publishes what several do at once: tx.sql(…).",
    )


_ON_NAMES = ("Name it with its table before it.", "Name one that is there; a text stands in single quotes.")


def _not_known(error: OnlySparkError) -> InvalidInputError:
    """What takes Spark in a transform is not known here: for what is wrong on Spark, too, it is said what that is."""
    place = _place(error.line, error.column)
    if error.kind == OnlySparkError.default_kind:
        return InvalidInputError(
            f"{error.message} is not known in SQL on the lake{place}.",
            kind="unknown_sql",
            remedy=error.remedy or _SAYS_WHAT_IS_KNOWN,
        )
    return InvalidInputError(
        f"The query has {error.message}{place}.",
        kind=error.kind,
        remedy=error.remedy or _ON_NAMES[error.kind == "unknown_column"],
    )


def _too_deep() -> InvalidInputError:
    return InvalidInputError(
        "The query is nested too deeply.", kind="invalid_sql", remedy="Use WITH, or IN for many values."
    )


def _tables(tree: exp.Expr) -> list[exp.Table]:
    """The tables of the lake among the names: those that are no query of a WITH clause."""
    return [
        node
        for node in tree.find_all(exp.Table, bfs=False)
        if node.meta.get(_KEY) != GIVEN
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


def _reference(node: exp.Table, number: int, values: Mapping[str, Any]) -> Reference:
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


def _bound(value: Any) -> Any:
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
