"""Pure. Where statements end in a text: at semicolons, unless one stands in quotes or in a comment."""

import re
from collections.abc import Iterator

_PIECES = re.compile(
    r"""
    \b[rR](?:'[^']*(?:'|\Z)|"[^"]*(?:"|\Z))    # in which a backslash is one
    | '(?:[^'\\]|\\.)*(?:'|\Z) | "(?:[^"\\]|\\.)*(?:"|\Z) | `[^`]*(?:`|\Z)
    | --[^\n]* | /\* | \S
    """,
    re.DOTALL | re.VERBOSE,
)
"""Texts and names in quotes, comments, of those between asterisks how they begin, and single letters of all else."""
_ENDS = re.compile(r"/\*|\*/")
_NOT_LINES = re.compile(r"[^\n]")


def split_statements(text: str) -> tuple[str, ...]:
    """Each by itself, behind as many blanks and lines as stand before it: so places in it are places in the text."""
    found: list[str] = []
    start, says_something = 0, False
    for piece in _pieces(text):
        if piece[0] == ";":
            if says_something:
                found.append(_in_place(text, start, piece.start()))
            start, says_something = piece.end(), False
        else:
            says_something = True
    if says_something:
        found.append(_in_place(text, start, len(text)))
    return tuple(found)


def is_ended(text: str) -> bool:
    """Whether the last of it is a semicolon."""
    pieces = [each[0] for each in _pieces(text)]
    return pieces[-1:] == [";"]


def _pieces(text: str) -> Iterator[re.Match[str]]:
    """All but the comments."""
    place = 0
    while (piece := _PIECES.search(text, place)) is not None:
        place = piece.end()
        if piece[0] == "/*":
            place = _end_of_comment(text, place)
        elif not piece[0].startswith("--"):
            yield piece


def _end_of_comment(text: str, place: int) -> int:
    """Of one that has begun: others may stand within it."""
    depth = 1
    for each in _ENDS.finditer(text, place):
        depth += 1 if each[0] == "/*" else -1
        if not depth:
            return each.end()
    return len(text)


def _in_place(text: str, start: int, end: int) -> str:
    return _NOT_LINES.sub(" ", text[:start]) + text[start:end]
