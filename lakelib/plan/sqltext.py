"""Pure. Parses SQL text into sqlglot's tree, quotes pieces of it in messages, and reads the patterns of LIKE, in which
a backslash escapes."""

from collections.abc import Collection, Iterator

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lakelib.errors import InvalidInputError

MAX_TEXT = 1 << 20
"""Longest text that is parsed, in characters."""
_SPECIAL = ("%", "_", "\\")


SUPPORTED = (
    "Supported are comparisons, BETWEEN, IN (values), IS [NOT] NULL, LIKE, ILIKE, RLIKE, isnan, AND, OR, NOT, over "
    "columns, fields of structs, values, and what +, -, *, /, %, CAST, coalesce, lower, upper, trim, length, abs, year "
    "and the like make of them."
)


def parse_condition(text: str, column_names: Collection[str]) -> exp.Expr:
    """The tree of one SQL condition. Raises InvalidInputError on anything else, RecursionError on very deep nesting.

    Double quotes make text, as in Spark. Where they hold the name of a column they are refused: elsewhere in SQL that
    means the column, and a condition on a mere text would select all rows or none.
    """
    if len(text) > MAX_TEXT:
        raise InvalidInputError(
            f"The predicate has {len(text):,} characters, and {MAX_TEXT:,} are the most.",
            kind="invalid_predicate",
            remedy="Select in several steps, or by a range.",
        )
    dialect = Dialect.get_or_raise("spark")
    try:
        tokens = dialect.tokenize(text)
        _check_double_quotes(text, tokens, column_names)
        tokens = list(joined_quotes(tokens))
        found = dialect.parser().parse_into(exp.Condition, tokens, text)
    except SqlglotError as error:
        raise InvalidInputError(
            f"The predicate {shortened(text)!r} is not SQL{_place(error)}.", kind="invalid_predicate", remedy=SUPPORTED
        ) from None
    if len(found) != 1 or found[0] is None:
        raise InvalidInputError("The predicate is empty.", kind="invalid_predicate", remedy=SUPPORTED)
    return found[0]


def parse_columns(text: str) -> list[exp.Expr]:
    """The column definitions of DDL text like `id BIGINT NOT NULL, name STRING`. Raises InvalidInputError."""
    if len(text) > MAX_TEXT:
        raise InvalidInputError(
            f"The schema has {len(text):,} characters, and {MAX_TEXT:,} are the most.",
            kind="invalid_schema",
            remedy="Give a pyarrow.Schema.",
        )
    try:
        found = Dialect.get_or_raise("spark").parse(f"CREATE TABLE t (\n{text}\n)")
    except (SqlglotError, RecursionError) as error:
        place = _place(error) if isinstance(error, SqlglotError) else ""
        raise _not_columns(text, place) from None
    created = found[0] if len(found) == 1 else None
    if not isinstance(created, exp.Create) or not isinstance(created.this, exp.Schema):
        raise _not_columns(text, "")
    if any(part for name, part in created.args.items() if name not in ("this", "kind")):
        raise _not_columns(text, "")
    return list(created.this.expressions)


def _not_columns(text: str, place: str) -> InvalidInputError:
    return InvalidInputError(
        f"The schema {shortened(text)!r} is not a list of columns{place}.",
        kind="invalid_schema",
        remedy="Write it like 'id BIGINT NOT NULL, day DATE, tags ARRAY<STRING>'.",
    )


def joined_quotes(tokens: list[Token]) -> Iterator[Token]:
    """The tokens, with `'it''s'` as the one string that SQL means and not as two."""
    held: Token | None = None
    for token in tokens:
        touches = held is not None and token.token_type is TokenType.STRING and token.start == held.end + 1
        if touches and held is not None:
            held = Token(
                TokenType.STRING, f"{held.text}'{token.text}", held.line, held.col, held.start, token.end, held.comments
            )
            continue
        if held is not None:
            yield held
        held = token if token.token_type is TokenType.STRING else None
        if held is None:
            yield token
    if held is not None:
        yield held


def _check_double_quotes(text: str, tokens: list[Token], column_names: Collection[str]) -> None:
    names = {name.casefold() for name in column_names}
    for token in tokens:
        if token.token_type is TokenType.STRING and text[token.start] == '"' and token.text.casefold() in names:
            raise InvalidInputError(
                f'"{token.text}" in the predicate is a text, and also the name of a column.',
                kind="invalid_predicate",
                remedy=f"Write `{token.text}` for the column, or '{token.text}' for the text.",
            )


def _place(error: SqlglotError) -> str:
    details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    return f" near {details['highlight']!r}" if details.get("highlight") else ""


def quoted(node: exp.Expr) -> str:
    """A piece of SQL as it stands in a message."""
    return repr(shortened(node.sql(dialect="spark", comments=False)))


def shortened(text: str) -> str:
    """At most 80 characters of a text."""
    return text if len(text) <= 80 else text[:80] + "…"


def with_backslashes(pattern: str, escape: str) -> str:
    """The same pattern where that character escapes. It may stand before %, _ and itself, as in Spark."""
    pieces, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in ("%", "_", escape) or not escaped:
                raise InvalidInputError(
                    f"In the LIKE pattern {shortened(pattern)!r} {_named(escape)} escapes nothing.",
                    kind="invalid_predicate",
                    remedy=f"Escape only %, _ and {_named(escape)} itself.",
                )
            pieces.append(literally(escaped))
        else:
            pieces.append("\\\\" if character == "\\" else character)
    return "".join(pieces)


def literally(text: str) -> str:
    """A pattern for just this text."""
    return "".join("\\" + character if character in _SPECIAL else character for character in text)


def _named(escape: str) -> str:
    return "a backslash" if escape == "\\" else repr(escape)
