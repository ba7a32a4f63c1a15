"""Namespaces, tables and their schema versions."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from psycopg.types.json import Jsonb

from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.queries import query
from lakelib.catalog.records import columns_to_json, schema_from_json, table_from_row
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, NotFoundError
from lakelib.model.gate import RequiredSuite
from lakelib.model.merge import Merge
from lakelib.model.options import TableOptions
from lakelib.model.schema import TableSchema
from lakelib.model.table import Buckets, TableInfo, TableRef
from lakelib.model.text import meant

_MERGE_ENGINES = 19
"""The migration that came with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """A table to be created. Columns are named by id."""

    namespace: str
    name: str
    location: str
    schema: TableSchema
    primary_key_ids: tuple[int, ...]
    partition_ids: tuple[int, ...]
    sequence_ids: tuple[int, ...]
    buckets: Buckets
    merge: Merge
    options: TableOptions
    required_suite: RequiredSuite | None = None
    required_by: str | None = None
    """Who requires it; None for the database's user."""


def create_namespace(catalog: Catalog, name: str) -> bool:
    """The namespace exists afterwards; says whether it is new."""

    def work(db: Connection) -> bool:
        if db.execute(query("find_namespace"), {"name": name}).fetchone() is not None:
            return False  # whoever may not make one may find it there
        return db.execute(query("create_namespace"), {"name": name}).fetchone() is not None

    return catalog.run(work)


def list_namespaces(catalog: Catalog) -> list[str]:
    return [row["name"] for row in catalog.all("list_namespaces")]


def list_tables(catalog: Catalog, namespace: str) -> list[str]:
    """Names of the namespace's tables. Raises NotFoundError if there is no such namespace."""

    def work(db: Connection) -> list[str]:
        _check_namespace(db, namespace)
        return [row["name"] for row in db.execute(query("list_tables"), {"namespace": namespace})]

    return catalog.run(work, only_reads=True)


def list_table_heads(catalog: Catalog, namespace: str | None) -> list[tuple[TableInfo, datetime | None]]:
    """The tables of a namespace, or of all, and when their heads were committed. Raises NotFoundError if there is no
    such namespace."""

    def work(db: Connection) -> list[tuple[TableInfo, datetime | None]]:
        if namespace is not None:
            _check_namespace(db, namespace)
        rows = db.execute(query("list_table_heads"), {"namespace": namespace})
        return [(table_from_row(row), row["head_committed_at"]) for row in rows]

    return catalog.run(work, only_reads=True)


def create_table(catalog: Catalog, table: NewTable) -> None:
    """There is a table of that name afterwards: this one, unless the name was taken. Its location, which no other table
    has, tells. Raises NotFoundError if there is no such namespace."""

    def work(db: Connection) -> None:
        _check_namespace(db, table.namespace)
        if not table.merge.is_newest:
            _check_closed(db, table)
        row = db.execute(query("insert_table"), _table_row(table)).fetchone()
        if row is not None:
            _insert_schema(db, row["id"], table.schema)
            if table.required_suite is not None:
                suite = {"name": table.required_suite.name, "version": table.required_suite.version}
                db.execute(query("insert_requirement"), {"table_id": row["id"], "by": table.required_by, **suite})

    catalog.run(work)


def find_table(catalog: Catalog, namespace: str, name: str) -> TableInfo | None:
    row = catalog.one("load_table_by_name", {"namespace": namespace, "name": name})
    return None if row is None else table_from_row(row)


def find_tables(catalog: Catalog, names: Sequence[tuple[str, str]]) -> dict[str, TableInfo]:
    """Those that are there, by namespace and name, at the heads of one moment."""
    asked = {"namespaces": [namespace for namespace, _ in names], "names": [name for _, name in names]}
    found = (table_from_row(row) for row in catalog.all("load_tables_by_name", asked))
    return {table.full_name: table for table in found}


def load_table(catalog: Catalog, ref: TableRef) -> TableInfo:
    """The table at its head. Raises NotFoundError once it was dropped."""
    row = catalog.one("load_table_by_id", {"table_id": ref.id})
    if row is None:
        raise table_missing(ref.full_name)
    return table_from_row(row)


def load_schemas(catalog: Catalog, table_id: int, ids: set[int]) -> dict[int, TableSchema]:
    """Schema versions of a table by id."""
    rows = catalog.all("load_schemas", {"table_id": table_id, "ids": sorted(ids)})
    return {row["id"]: schema_from_json(row["id"], row["columns"]) for row in rows}


def list_schemas(catalog: Catalog, table_id: int) -> tuple[TableSchema, ...]:
    """All versions of a table's schema, those that are proposed or never counted included."""
    rows = catalog.all("list_schemas", {"table_id": table_id})
    return tuple(schema_from_json(row["id"], row["columns"]) for row in rows)


def drop_table(catalog: Catalog, namespace: str, name: str) -> bool:
    """The name is free afterwards; says whether there was such a table."""
    found = find_table(catalog, namespace, name)
    if found is None:
        return False
    catalog.do("drop_table", {"table_id": found.id})
    return True


def reserve_schema(catalog: Catalog, table: TableInfo, column_count: int) -> tuple[int, int]:
    """A schema id and the first of `column_count` column ids, given to nobody else."""
    row = catalog.one("reserve_schema", {"table_id": table.id, "column_count": column_count})
    if row is None:
        raise table_missing(table.full_name)
    return row["schema_id"], row["first_column_id"]


def replace_options(catalog: Catalog, table: TableInfo, options: TableOptions, looked_at: int | None = None) -> bool:
    """Whether the table has the options afterwards, but for the required gate, which stays as it is; not so if somebody
    else has changed them since it was loaded, or committed since the snapshot at which rows were looked at for them."""
    parameters = {
        "table_id": table.id,
        "read": Jsonb(table.options.as_mapping()),
        "options": Jsonb(options.as_mapping()),
        "looked_at": looked_at,
    }
    return catalog.one("replace_options", parameters) is not None


def replace_buckets(catalog: Catalog, table: TableInfo, buckets: Buckets) -> bool:
    """Whether the table has the buckets afterwards; not so if somebody else has changed them since it was loaded."""
    parameters = {
        "table_id": table.id,
        "mode": buckets.mode,
        "depth": buckets.fixed_depth,
        "read_mode": table.buckets.mode,
        "read_depth": table.buckets.fixed_depth,
    }
    return catalog.one("replace_buckets", parameters) is not None


def table_missing(name: str, known: Iterable[str] = ()) -> NotFoundError:
    """`known` are tables one of which may be meant."""
    listed = "lake.tables() or `lake tables` lists the tables; a dropped and re-created table needs a new handle."
    remedy = f"{meant(name, known)} {listed}".lstrip()
    return NotFoundError(f"There is no table {name}.", kind="table_not_found", remedy=remedy)


def _check_namespace(db: Connection, name: str) -> None:
    if db.execute(query("find_namespace"), {"name": name}).fetchone() is None:
        raise NotFoundError(
            f"There is no namespace {name!r}.",
            kind="namespace_not_found",
            remedy=f"Create it with lake.create_namespace({name!r}), or CREATE NAMESPACE {name} in SQL.",
        )


def _check_closed(db: Connection, table: NewTable) -> None:
    """Clients that know nothing of merge engines would read other rows, and in silence."""
    found = db.execute(query("is_closed"), {"version": _MERGE_ENGINES}).fetchone()
    if found is None or not found["is_closed"]:
        raise InvalidInputError(
            f"Clients of a version of lakelib may still work here that would take {table.namespace}.{table.name} for a"
            " table that deduplicates.",
            kind="older_clients",
            remedy="Once none is left, shut them out: `lake migrate --post`.",
        )


def _insert_schema(db: Connection, table_id: int, schema: TableSchema) -> None:
    db.execute(query("insert_schema"), {"table_id": table_id, "id": schema.id, "columns": columns_to_json(schema)})


def _table_row(table: NewTable) -> dict[str, object]:
    return {
        "namespace": table.namespace,
        "name": table.name,
        "location": table.location,
        "last_column_id": max(column.id for column in table.schema.columns),
        "primary_key": list(table.primary_key_ids),
        "partition_by": list(table.partition_ids),
        "sequence_by": list(table.sequence_ids),
        "bucket_mode": table.buckets.mode,
        "bucket_depth": table.buckets.fixed_depth,
        "merge": table.merge.as_text(),
        "options": Jsonb(table.options.as_mapping()),
    }
