"""Pure. What kind of statement a text is: an allow-list of what texts are parsed into."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from lakelib.plan.sql_insert import Insert, read_insert
from lakelib.plan.sql_revise import Revise, read_delete, read_merge, read_update
from lakelib.plan.sql_statement import Parsed, Statement, parse_text, query_of, refused

Change = Insert | Revise
"""A statement that changes something."""

_CHANGES: Mapping[type[exp.Expr], Callable[[Parsed], Change]] = {
    exp.Insert: read_insert,
    exp.Update: read_update,
    exp.Delete: read_delete,
    exp.Merge: read_merge,
}


def understand(text: str, values: Mapping[str, Any]) -> Statement | Change:
    """A query, or a statement that changes something, as far as it is understood without its tables. Raises
    InvalidInputError, with the place in the text, for anything else."""
    parsed = parse_text(text, values)
    read = _CHANGES.get(type(parsed.tree))
    if read is not None:
        return read(parsed)
    if isinstance(parsed.tree, exp.Query | exp.Values):
        return query_of(parsed)
    raise refused(parsed.tree)
