"""Named SQL. Each query lives in sql/queries/*.sql under a `-- name:` line."""

import re
from functools import cache
from importlib import resources

from psycopg import sql

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def query(name: str) -> sql.SQL:
    """The query of that name."""
    return sql.SQL(query_text(name))


def query_text(name: str) -> str:
    """The text of the query of that name, for queries with {pieces} to fill in."""
    return _all_queries()[name]


@cache
def _all_queries() -> dict[str, str]:
    found: dict[str, str] = {}
    folder = resources.files("lakelib.catalog") / "sql" / "queries"
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        pieces = _NAME.split(file.read_text())
        for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
            found[name] = text[: text.rindex(";")].strip()
    return found
