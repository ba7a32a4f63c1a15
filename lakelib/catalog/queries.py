"""Named SQL. Each query lives in sql/queries/*.sql under a `-- name:` line."""

import re
from functools import cache
from importlib import resources

from psycopg import sql

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_CHANGES = re.compile(r"\b(insert|update|delete|merge|truncate|create|drop|alter|call|do)\b", re.IGNORECASE)
"""What stands in a statement that may change something."""
_CALL = re.compile(r"\b(\w+_v\d+)\s*\(")
"""Of a function of the catalog's: their names have a version, and no others."""
_DEFINITION = re.compile(
    r"^create (?:or replace )?function lake\.(\w+)\(.*?\blanguage\b([^$]*)\$\$", re.MULTILINE | re.DOTALL
)
_ONLY_READS = re.compile(r"\b(stable|immutable)\b")
"""How a function is declared of which PostgreSQL may believe that it changes nothing."""


def query(name: str) -> sql.SQL:
    """The query of that name."""
    return sql.SQL(query_text(name))


def query_text(name: str) -> str:
    """The text of the query of that name, for queries with {pieces} to fill in."""
    return _all_queries()[name]


def name_of(statement: object) -> str | None:
    """The name of a query, if it has one."""
    text = statement.as_string() if isinstance(statement, sql.SQL) else None
    return next((name for name, known in _all_queries().items() if known == text), None)


@cache
def changes_nothing(text: str) -> bool:
    """Whether the statement certainly changes nothing; a row that it locks counts as changed."""
    return _CHANGES.search(text) is None and reading_functions().issuperset(_CALL.findall(text))


@cache
def reading_functions() -> frozenset[str]:
    """Names of the catalog's functions that are declared to change nothing."""
    folder = resources.files("lakelib.catalog") / "sql"
    texts = [file.read_text() for file in (folder / "schema.sql", *(folder / "functions").iterdir())]
    found = [each for text in texts for each in _DEFINITION.findall(text)]
    return frozenset(name for name, declared in found if _ONLY_READS.search(declared))


@cache
def _all_queries() -> dict[str, str]:
    found: dict[str, str] = {}
    folder = resources.files("lakelib.catalog") / "sql" / "queries"
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        found.update(split_queries(file.read_text()))
    return found


def split_queries(text: str) -> dict[str, str]:
    """The queries of one file by name, each without its last semicolon. What is said above a `-- name:` line belongs
    to the query below it."""
    pieces = _NAME.split(text)
    return {name: _without_tail(piece) for name, piece in zip(pieces[1::2], pieces[2::2], strict=True)}


def _without_tail(piece: str) -> str:
    lines = piece.splitlines()
    while lines and (not lines[-1].strip() or lines[-1].startswith("--")):
        lines.pop()
    return "\n".join(lines).strip().removesuffix(";")
