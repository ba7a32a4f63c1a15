"""Pure. The columns that a text of DDL names, found without a SQL parser: enough to check what refers to them.

Whether a type is one that a table can have is said by who creates the table.
"""

import re

from lakelib.dataclass import dataclass

_TOKEN = re.compile(r"--[^\n]*|/\*.*?\*/|`(?:[^`]|``)*`|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|.", re.DOTALL)
_COLUMN = re.compile(r"(`(?:[^`]|``)+`|[^\W\d]\w*)\s+(.+)", re.DOTALL)
_NOT_NULL = re.compile(r"\s+NOT\s+NULL\b.*|\s+COMMENT\s.*", re.DOTALL | re.IGNORECASE)
_DEPTHS = {"(": 1, "<": 1, ")": -1, ">": -1}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedColumn:
    name: str
    type: str
    """As it is written, in lower case, without what follows it."""


def parse_columns(text: str) -> tuple[NamedColumn, ...]:
    """Raises ValueError that says what is expected instead."""
    columns = tuple(_column(part) for part in _parts(text))
    seen: set[str] = set()
    for column in columns:
        if column.name.casefold() in seen:
            raise ValueError(f"each column once; {column.name!r} comes twice")
        seen.add(column.name.casefold())
    return columns


def _parts(text: str) -> list[str]:
    """What stands between the commas that are in no brackets, without comments."""
    parts, depth = [""], 0
    for token in _TOKEN.findall(text):
        depth += _DEPTHS.get(token, 0)
        if depth < 0:
            raise ValueError(f"brackets that match; one is closed that was never opened, after {parts[-1].strip()!r}")
        if token == "," and depth == 0:
            parts.append("")
        elif token.startswith(("--", "/*")) and len(token) > 1:
            parts[-1] += " "
        else:
            parts[-1] += token
    if depth:
        raise ValueError("brackets that match; one is never closed")
    return [part.strip() for part in parts]


def _column(part: str) -> NamedColumn:
    matched = _COLUMN.fullmatch(part)
    if matched is None:
        found = f"not {part!r}" if part else "with nothing between two commas, or after the last"
        raise ValueError(f"columns as a name and a type with commas between, such as `id BIGINT, dt DATE`; {found}")
    name = matched[1]
    if name.startswith("`"):
        name = name[1:-1].replace("``", "`")
    return NamedColumn(name=name, type=_NOT_NULL.sub("", matched[2]).strip().lower())
