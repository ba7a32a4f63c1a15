"""Pure. The patterns of LIKE, in which a backslash escapes."""

from lakelib.errors import InvalidInputError
from lakelib.plan.sqltext import shortened

_SPECIAL = ("%", "_", "\\")


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
