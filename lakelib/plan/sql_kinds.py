"""Pure. What kind of statement a text is: an allow-list of what texts are parsed into."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from lakelib.plan.sql_alter import AlterTable, DropTable, Truncate, read_alter, read_drop, read_truncate
from lakelib.plan.sql_call import Call, read_call
from lakelib.plan.sql_create import CreateNamespace, CreateTable, read_create
from lakelib.plan.sql_insert import Insert, read_insert
from lakelib.plan.sql_revise import Revise, read_delete, read_merge, read_update
from lakelib.plan.sql_show import Describe, ShowNamespaces, ShowTables, read_describe, read_show
from lakelib.plan.sql_statement import Parsed, Statement, parse_text, query_of
from lakelib.plan.sql_wrong import refused

Change = Insert | Revise | CreateTable | CreateNamespace | AlterTable | DropTable | Truncate | Call
"""A statement that changes something."""
Show = ShowTables | ShowNamespaces | Describe
"""One that tells what there is."""

_READ: Mapping[type[exp.Expr], Callable[[Parsed], Change | Show]] = {
    exp.Insert: read_insert,
    exp.Create: read_create,
    exp.Alter: read_alter,
    exp.Drop: read_drop,
    exp.TruncateTable: read_truncate,
    exp.Describe: read_describe,
    exp.Update: read_update,
    exp.Delete: read_delete,
    exp.Merge: read_merge,
}
_COMMANDS: Mapping[str, Callable[[Parsed], Change | Show]] = {"CALL": read_call, "SHOW": read_show}
"""What the parser knows by its first word alone."""


def understand(text: str, values: Mapping[str, Any]) -> Statement | Change | Show:
    """A query, or another statement, as far as it is understood without its tables. Raises InvalidInputError, with the
    place in the text, for anything else."""
    parsed = parse_text(text, values)
    read = _READ.get(type(parsed.tree))
    if isinstance(parsed.tree, exp.Command):
        read = _COMMANDS.get(str(parsed.tree.this).upper())
    if read is not None:
        return read(parsed)
    if isinstance(parsed.tree, exp.Query | exp.Values):
        return query_of(parsed)
    raise refused(parsed.tree)
