"""Use case: a table is created. Everything that can be wrong with a definition is said before anything is made."""

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakelib.catalog import tables
from lakelib.errors import InvalidInputError
from lakelib.model import sortable
from lakelib.model.flags import checked_flag
from lakelib.model.gate import RegisteredSuite
from lakelib.model.merge import Merge
from lakelib.model.options import TableOptions, parse_options
from lakelib.model.schema import Column, TableSchema
from lakelib.model.table import MAX_DEPTH, Buckets, TableInfo
from lakelib.model.text import choose_from
from lakelib.ops.gates import check_requirable, find_registered
from lakelib.ops.judge import open_registered
from lakelib.ops.runtime import Runtime
from lakelib.plan.declare import declare_schema
from lakelib.plan.declare_merge import Roles, check_definition, declare_merge

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")


def create_namespace(runtime: Runtime, name: str) -> None:
    """The namespace exists afterwards."""
    check_part(name, "namespace")
    tables.create_namespace(runtime.catalog, name)


def list_tables(runtime: Runtime, namespace: str) -> list[str]:
    """Names of the namespace's tables. Raises NotFoundError if there is no such namespace."""
    check_part(namespace, "namespace")
    return tables.list_tables(runtime.catalog, namespace)


def create_table(
    runtime: Runtime,
    full_name: str,
    schema: Any,
    *,
    primary_key: Sequence[str],
    partition_by: Sequence[str],
    buckets: int | str | None,
    sequence_by: Sequence[str],
    merge: str | Mapping[str, Any],
    options: Mapping[str, Any],
    if_not_exists: bool,
    gate: RegisteredSuite | None = None,
    by: str | None = None,
) -> TableInfo:
    """The new table, or with `if_not_exists` the one of that name. A new one requires the `gate`, and says that it was
    `by` whom; else the newest version of the gate that its options name. Raises InvalidInputError for a wrong
    definition, NotFoundError for a gate that is not registered."""
    namespace, name = split_name(full_name)
    take_existing = checked_flag("if_not_exists", if_not_exists)
    new = define_table(
        runtime, namespace, name, schema, primary_key, partition_by, buckets, sequence_by, merge, parse_options(options)
    )
    if take_existing:
        there = tables.find_table(runtime.catalog, namespace, name)
        if there is not None:
            return there
    found = create_defined(runtime, gated(runtime, new, gate, by))
    if found.location != new.location and not take_existing:
        raise table_exists(full_name)
    return found


def table_exists(full_name: str) -> InvalidInputError:
    return InvalidInputError(
        f"There is a table {full_name} already.",
        kind="table_exists",
        remedy="Give another name, or if_not_exists=True to take the table as it is.",
    )


def create_defined(runtime: Runtime, new: tables.NewTable) -> TableInfo:
    """The table of that name, which is at another location where somebody has made it before."""
    runtime.ownership.confirm()
    tables.create_table(runtime.catalog, new)
    return find_table(runtime, f"{new.namespace}.{new.name}")


def gated(
    runtime: Runtime, new: tables.NewTable, gate: RegisteredSuite | None = None, by: str | None = None
) -> tables.NewTable:
    """The table with its gate, if it is to have one. A gate that is given fits it."""
    if gate is None and new.options.required_gate:
        gate = find_registered(runtime, new.options.required_gate)
        check_requirable(open_registered(gate), new.schema.columns)
    if gate is None:
        return new
    options = replace(new.options, required_gate=gate.name)
    return replace(new, options=options, required_suite=gate.required, required_by=by)


def find_table(runtime: Runtime, full_name: str) -> TableInfo:
    """The table at its head. Raises NotFoundError."""
    namespace, name = split_name(full_name)
    found = tables.find_table(runtime.catalog, namespace, name)
    if found is None:
        raise tables.table_missing(full_name, _names_near(runtime, namespace, name))
    return found


def find_tables(runtime: Runtime, full_names: Iterable[str]) -> dict[str, TableInfo]:
    """The tables by name, all at the heads of one moment. Raises NotFoundError for one that is not there."""
    asked = {full_name: split_name(full_name) for full_name in full_names}
    found = tables.find_tables(runtime.catalog, list(asked.values())) if asked else {}
    for full_name, parts in asked.items():
        if full_name not in found:
            raise tables.table_missing(full_name, _names_near(runtime, *parts))
    return found


def drop_table(runtime: Runtime, full_name: str) -> None:
    """The name is free afterwards; the files stay until they are reclaimed. Raises NotFoundError."""
    namespace, name = split_name(full_name)
    if not tables.drop_table(runtime.catalog, namespace, name):
        raise tables.table_missing(full_name, _names_near(runtime, namespace, name))


def _names_near(runtime: Runtime, namespace: str, name: str) -> list[str]:
    """Of tables one of which may be meant."""
    namespaces = tables.list_namespaces(runtime.catalog)
    if namespace not in namespaces:
        return [f"{each}.{name}" for each in namespaces]
    return [f"{namespace}.{each}" for each in tables.list_tables(runtime.catalog, namespace)]


def split_name(full_name: str) -> tuple[str, str]:
    """Namespace and name of "shop.orders"."""
    parts = full_name.split(".") if isinstance(full_name, str) else []
    if len(parts) != 2:
        raise InvalidInputError(
            f"{full_name!r} is not a table's name.",
            kind="invalid_name",
            remedy='Give namespace and name: "shop.orders".',
        )
    check_part(parts[0], "namespace")
    check_part(parts[1], "table")
    return parts[0], parts[1]


def check_part(part: str, what: str) -> None:
    """Raises InvalidInputError unless a namespace or a table (`what`) can have that name."""
    if not isinstance(part, str) or not _PART.fullmatch(part):
        raise InvalidInputError(
            f"{part!r} is not a name for a {what}.",
            kind="invalid_name",
            remedy="Use up to 128 letters, digits, _ and -, not beginning with -.",
        )


def define_table(
    runtime: Runtime,
    namespace: str,
    name: str,
    schema: Any,
    primary_key: Sequence[str],
    partition_by: Sequence[str],
    buckets: int | str | None,
    sequence_by: Sequence[str],
    merge: str | Mapping[str, Any],
    options: TableOptions,
) -> tables.NewTable:
    """The table as it would be created. Raises InvalidInputError for a wrong definition."""
    declared = TableSchema(id=1, columns=declare_schema(schema))
    keys = _named(declared, primary_key, "primary_key")
    for column in keys:
        _check_exact(column, "primary_key")
    partitions = _named(declared, partition_by, "partition_by")
    for column in partitions:
        _check_exact(column, "partition_by")
    sequence = _named(declared, sequence_by, "sequence_by")
    _check_sequence(keys, sequence)
    key_ids = tuple(column.id for column in keys)
    roles = Roles(
        key_ids=key_ids,
        partition_ids=tuple(column.id for column in partitions),
        sequence_ids=tuple(column.id for column in sequence),
    )
    engine, declared = declare_merge(merge, declared, roles)
    check_delta_mode(engine, options)
    if options.cross_partition:
        check_definition(declared, key_ids, roles.partition_ids, roles.sequence_ids, engine)
    return tables.NewTable(
        namespace=namespace,
        name=name,
        location=runtime.storage.location_of(f"{namespace}/{name}-{secrets.token_hex(4)}"),
        schema=TableSchema(id=1, columns=tuple(_required(column, key_ids) for column in declared.columns)),
        primary_key_ids=key_ids,
        partition_ids=roles.partition_ids,
        sequence_ids=roles.sequence_ids,
        buckets=parse_buckets(buckets, has_key=bool(keys)),
        merge=engine,
        options=options,
    )


def check_delta_mode(merge: Merge, options: TableOptions) -> None:
    for name, mode in (("delta", options.delta), ("ducklake", options.ducklake)):
        if mode == "head" and not merge.is_newest:
            raise InvalidInputError(
                f"The option {name} is head, and the merge engine {merge.engine.value}: no version is a row by itself.",
                kind="invalid_merge",
                remedy='Set the option delta to "compacted".',
            )


def parse_buckets(given: int | str | None, *, has_key: bool) -> Buckets:
    """Raises InvalidInputError unless `given` is a power of two, "dynamic" or "postpone", and the table has a key."""
    if not has_key:
        if given is not None:
            raise InvalidInputError(
                f"buckets is {given!r}, but the table has no primary key to spread over buckets.",
                kind="invalid_buckets",
                remedy="Leave buckets out, or name a primary_key.",
            )
        return Buckets(mode="none")
    if given is None or given == "dynamic":
        return Buckets(mode="dynamic")
    if given == "postpone":
        return Buckets(mode="postpone")
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        depth = given.bit_length() - 1
        if given == 1 << depth and depth <= MAX_DEPTH:
            return Buckets(mode="fixed", fixed_depth=depth)
    raise InvalidInputError(
        f"buckets is {given!r}.",
        kind="invalid_buckets",
        remedy=f'Give a power of two up to {1 << MAX_DEPTH}, "dynamic" or "postpone".',
    )


def _named(schema: TableSchema, names: Sequence[str], argument: str) -> tuple[Column, ...]:
    if isinstance(names, str):
        raise InvalidInputError(
            f"{argument} is the text {names!r}.", kind="invalid_columns", remedy=f"Give a list: {argument}=[{names!r}]."
        )
    columns = []
    for name in names:
        column = schema.find(name)
        if column is None:
            raise InvalidInputError(
                f"{argument} names the column {name!r}, which the schema does not have.",
                kind="unknown_column",
                remedy=choose_from("Its columns", name, schema.names),
            )
        if column in columns:
            raise InvalidInputError(
                f"{argument} names the column {column.name!r} twice.", kind="invalid_columns", remedy="Name it once."
            )
        columns.append(column)
    return tuple(columns)


def _check_exact(column: Column, argument: str) -> None:
    """Keys are compared by hash and by bytes: a type must have one encoding a value."""
    if column.type in ("float", "double") or not sortable.is_sortable(column.type):
        raise InvalidInputError(
            f"{argument} names the column {column.name!r} of type {column.type}.",
            kind="invalid_key_type",
            remedy="Use an integer, decimal, string, binary, boolean, date or timestamp column.",
        )


def _check_sequence(keys: Sequence[Column], sequence: Sequence[Column]) -> None:
    if sequence and not keys:
        raise InvalidInputError(
            "sequence_by is given, but the table has no primary key.",
            kind="invalid_columns",
            remedy="Name a primary_key, or leave sequence_by out.",
        )
    for column in sequence:
        if not sortable.is_sortable(column.type):
            raise InvalidInputError(
                f"sequence_by names the column {column.name!r} of type {column.type}, which has no order.",
                kind="invalid_columns",
                remedy="Use a column that is not nested.",
            )


def _required(column: Column, key_ids: tuple[int, ...]) -> Column:
    if column.id not in key_ids:
        return column
    return replace(column, nullable=False)
