"""Use cases: SHOW and DESCRIBE."""

import pyarrow as pa

from lakelib.catalog import tables
from lakelib.ops import create, inspect, sql
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_change import Told
from lakelib.plan import sql_kinds
from lakelib.plan.sql_show import Describe, ShowNamespaces, ShowTables

_TEXT = pa.string()
_TABLES = pa.schema([("namespace", _TEXT), ("table", _TEXT)])
_COLUMNS = pa.schema(
    [("column", _TEXT), ("type", _TEXT), ("nullable", pa.bool_()), ("role", _TEXT), ("comment", _TEXT)]
)


def show(runtime: Runtime, asked: sql_kinds.Show) -> Told:
    """Raises NotFoundError for a namespace or a table that is not there."""
    match asked:
        case ShowNamespaces():
            rows = pa.table({"namespace": pa.array(tables.list_namespaces(runtime.catalog), _TEXT)})
        case ShowTables(namespace=None):
            names = [each.table.full_name.split(".") for each in inspect.list_tables(runtime, None)]
            rows = pa.Table.from_pylist([dict(zip(_TABLES.names, each, strict=True)) for each in names], schema=_TABLES)
        case ShowTables(namespace=str(namespace)):
            found = create.list_tables(runtime, namespace)
            rows = pa.Table.from_pylist([{"namespace": namespace, "table": each} for each in found], schema=_TABLES)
        case Describe():
            rows = _columns(runtime, asked)
    return Told(text=asked.parsed.text, rows=rows)


def _columns(runtime: Runtime, asked: Describe) -> pa.Table:
    table = sql.look_up(runtime, [asked.table])[asked.table.name]
    roles = (
        ("primary key", table.primary_key_ids),
        ("partition", table.partition_ids),
        ("sequence", table.sequence_ids),
    )
    rows = [
        {
            "column": column.name,
            "type": column.type,
            "nullable": column.nullable,
            "role": ", ".join(role for role, ids in roles if column.id in ids),
            "comment": column.comment,
        }
        for column in table.schema.columns
    ]
    return pa.Table.from_pylist(rows, schema=_COLUMNS)
