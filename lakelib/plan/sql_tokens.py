"""Pure. The tokens of a statement, as the parser needs them where it does not know a thing that Spark does, or takes it
for something else: `orders$files` is one name, CALL has arguments, columns are moved."""

import re
from collections.abc import Sequence
from itertools import zip_longest

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from lakelib.dataclass import dataclass
from lakelib.plan.sqltext import joined_quotes

_NO_ITEM = (TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM, TokenType.SEMICOLON)
_ALONE = ("kind", "hint", "expressions")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementTokens:
    tokens: tuple[Token, ...]
    is_call: bool
    """Whether they are what is behind the word CALL, as a SELECT."""
    moves_column: bool
    """Whether they are an ALTER COLUMN … FIRST, or AFTER, as if that column was added there."""

    def trees(self, dialect: Dialect, text: str) -> list[exp.Expr | None]:
        """What they are parsed into. Raises sqlglot's errors."""
        if self.tokens and self.tokens[0].token_type in dialect.tokenizer_class.COMMANDS:
            return [_command(self.tokens)]
        found = dialect.parser().parse(list(self.tokens), text)
        if self.is_call and len(found) == 1 and found[0] is not None:
            return [exp.Command(this="CALL", expression=_called(found[0]))]
        return list(found)


def tokens_of(dialect: Dialect, text: str) -> list[Token]:
    """The tokens of any piece of SQL. Raises sqlglot's errors, also for a list that lacks an item, which its parser
    passes over."""
    found = list(joined_quotes(_named_whole(dialect.tokenize(text))))
    for token, follows in zip_longest(found, found[1:]):
        if token.token_type is TokenType.COMMA and (follows is None or follows.token_type in _NO_ITEM):
            raise ParseError.new("", description="Nothing stands behind the comma", line=token.line, col=token.col)
    return found


def statement_tokens(dialect: Dialect, text: str) -> StatementTokens:
    """Those of a statement."""
    tokens = _with_word_table(tokens_of(dialect, text))
    moved = _as_added(tokens)
    call = _as_call(dialect, text, tokens)
    return StatementTokens(
        tokens=tuple(moved or call or tokens), is_call=call is not None, moves_column=moved is not None
    )


def _as_added(tokens: list[Token]) -> list[Token] | None:
    """ALTER TABLE … ALTER COLUMN a FIRST, which the parser does not know, as ADD COLUMN a INT FIRST; else None."""
    if len(tokens) < 7 or tokens[0].token_type is not TokenType.ALTER:
        return None
    behind = 1 if tokens[-1].text.upper() == "FIRST" else 2 if tokens[-2].text.upper() == "AFTER" else 0
    place = len(tokens) - behind - 3
    if not behind or place < 4 or tokens[place].text.upper() not in ("ALTER", "CHANGE"):
        return None
    word, column, name = tokens[place : place + 3]
    if column.token_type is not TokenType.COLUMN:
        return None
    add = Token(TokenType.VAR, "ADD", word.line, word.col, word.start, word.end, [])
    kind = Token(TokenType.INT, "INT", name.line, name.col, name.start, name.end, [])
    return [*tokens[:place], add, column, name, kind, *tokens[place + 3 :]]


def _as_call(dialect: Dialect, text: str, tokens: list[Token]) -> list[Token] | None:
    """What is behind the word CALL, which the tokenizer leaves as one text, as an expression that is selected; None
    for other statements."""
    if not tokens or tokens[0].token_type is not TokenType.COMMAND or tokens[0].text.upper() != "CALL":
        return None
    first = tokens[0]
    rest = tokens_of(dialect, " " * (first.end + 1) + text[first.end + 1 :])
    if not rest:
        return None
    name = rest[0]  # which may be a word of SQL
    named = Token(TokenType.VAR, name.text, name.line, name.col, name.start, name.end, [])
    select = Token(TokenType.SELECT, "SELECT", first.line, first.col, first.start, first.end, [])
    return [select, named, *rest[1:]]


def _called(tree: exp.Expr) -> exp.Expr:
    """The one thing that is selected; anything that is said besides is none of it."""
    is_alone = isinstance(tree, exp.Select) and len(tree.expressions) == 1
    return (
        tree.expressions[0]
        if is_alone and not any(tree.args[each] for each in tree.args if each not in _ALONE)
        else tree
    )


def _command(tokens: Sequence[Token]) -> exp.Expr:
    rest = tokens[1].text if len(tokens) > 1 else ""
    command = exp.Command(this=tokens[0].text.upper(), expression=exp.Literal.string(rest))
    first = tokens[0]
    command.meta.update({"line": first.line, "col": first.col, "start": first.start, "end": first.end})
    return command


def _with_word_table(tokens: list[Token]) -> list[Token]:
    """The parser takes a namespace called `local` for a word of INSERT OVERWRITE LOCAL DIRECTORY."""
    for place, token in enumerate(tokens[:-3]):
        word, name, dot = tokens[place + 1 : place + 4]
        is_overwrite = token.token_type is TokenType.INSERT and word.token_type is TokenType.OVERWRITE
        if is_overwrite and name.text.casefold() == "local" and dot.token_type is TokenType.DOT:
            table = Token(TokenType.TABLE, "TABLE", name.line, name.col, name.start, name.end, [])
            return [*tokens[: place + 2], table, *tokens[place + 2 :]]
    return tokens


def _named_whole(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with `orders$files` as the one name that it is."""
    found: list[Token] = []
    rest = list(reversed(tokens))
    while rest:
        token = rest.pop()
        if len(rest) > 1 and _are_one_name(token, rest[-1], rest[-2]):
            rest.pop()
            last = rest.pop()
            name = f"{token.text}${last.text}"
            token = Token(TokenType.IDENTIFIER, name, last.line, last.col, token.start, last.end, token.comments)
        found.append(token)
    return found


def _are_one_name(first: Token, dollar: Token, last: Token) -> bool:
    touches = dollar.start == first.end + 1 and last.start == dollar.end + 1
    return dollar.text == "$" and touches and all(_NAME.fullmatch(each.text) for each in (first, last))
