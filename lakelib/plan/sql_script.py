"""Pure. Where statements end in a text: at semicolons, unless one stands in quotes or in a comment."""

import re

_PIECES = re.compile(r"""'[^']*(?:'|\Z)|"[^"]*(?:"|\Z)|`[^`]*(?:`|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)|\S""", re.DOTALL)
"""Texts and names in quotes, comments, and single letters of all else."""
_COMMENTS = ("--", "/*")
_NOT_LINES = re.compile(r"[^\n]")


def split_statements(text: str) -> tuple[str, ...]:
    """Each by itself, behind as many blanks and lines as stand before it: so places in it are places in the text."""
    found: list[str] = []
    start, says_something = 0, False
    for piece in _PIECES.finditer(text):
        if piece[0] == ";":
            if says_something:
                found.append(_in_place(text, start, piece.start()))
            start, says_something = piece.end(), False
        elif not piece[0].startswith(_COMMENTS):
            says_something = True
    if says_something:
        found.append(_in_place(text, start, len(text)))
    return tuple(found)


def is_ended(text: str) -> bool:
    """Whether the last of it is a semicolon."""
    pieces = [each for each in _PIECES.findall(text) if not each.startswith(_COMMENTS)]
    return pieces[-1:] == [";"]


def _in_place(text: str, start: int, end: int) -> str:
    return _NOT_LINES.sub(" ", text[:start]) + text[start:end]
