"""Pure. SHOW and DESCRIBE: what there is."""

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.plan.asked import TableName
from lakelib.plan.sql_parts import check_parts, table_name
from lakelib.plan.sql_statement import Parsed
from lakelib.plan.sql_wrong import refused
from lakelib.plan.sqltext import shortened

_NAMESPACES = ("NAMESPACES", "SCHEMAS", "DATABASES")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTables:
    """Those of a namespace, or of all."""

    parsed: Parsed
    namespace: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowNamespaces:
    parsed: Parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe:
    """The columns of a table."""

    parsed: Parsed
    table: TableName


def read_show(parsed: Parsed) -> ShowTables | ShowNamespaces:
    """Raises InvalidInputError for anything else that there is nothing to show of."""
    tree = parsed.tree
    try:
        words = Dialect.get_or_raise("spark").tokenize(tree.expression.name)
    except SqlglotError:
        raise refused(tree) from None
    match [each.text for each in words]:
        case [word] if word.upper() in _NAMESPACES:
            return ShowNamespaces(parsed=parsed)
        case [word] if word.upper() == "TABLES":
            return ShowTables(parsed=parsed, namespace=None)
        case [word, within, name] if word.upper() == "TABLES" and within.upper() in ("IN", "FROM"):
            return ShowTables(parsed=parsed, namespace=name)
    raise InvalidInputError(
        f"SHOW {shortened(tree.expression.name.strip())} is no statement that is known here.",
        kind="sql_refused",
        remedy="There are SHOW NAMESPACES, SHOW TABLES [IN shop] and DESCRIBE shop.orders, and as tables "
        "shop.orders$partitions, $snapshots, $files and others: docs/sql.md names them.",
    )


def read_describe(parsed: Parsed) -> Describe:
    """Raises InvalidInputError for what is no table."""
    tree = parsed.tree
    check_parts(tree, "this", *(("kind",) if str(tree.args.get("kind")).upper() == "TABLE" else ()))
    if not isinstance(tree.this, exp.Table):
        raise refused(tree)
    return Describe(parsed=parsed, table=table_name(tree.this))
