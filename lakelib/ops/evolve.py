"""Use cases: a table's columns and its options change. Files stay as they are: readers map columns by id."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lakelib.catalog import tables
from lakelib.errors import InvalidInputError, RetryableError
from lakelib.model.effect import NOTHING
from lakelib.model.options import TableOptions, parse_options, sensitive_names
from lakelib.model.roles import Right
from lakelib.model.schema import TableSchema
from lakelib.model.table import CommitKind, Proposal, Snapshot, TableInfo, TableRef
from lakelib.ops import delta
from lakelib.ops.commit import Work, commit_work, schema_again
from lakelib.ops.cross_partition import check_each_once
from lakelib.ops.gates import require_by_option
from lakelib.ops.merging import require_newest
from lakelib.ops.patience import MOST_CHANGES, Overtaken, do_again
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.ops.write import WrittenRows, named_earlier, propose
from lakelib.plan.declare_merge import Roles, check_added, check_definition, with_functions
from lakelib.plan.evolve import SchemaChange, describe_change, evolve_schema, under_id


def evolve(runtime: Runtime, ref: TableRef, change: SchemaChange, request: WriteRequest) -> Snapshot:
    """Publishes the changed schema as a snapshot. If another change came first, it is made again from that."""
    if request.judging is not None:
        raise InvalidInputError(
            "A change of the schema brings no rows to judge.", kind="invalid_gate", remedy="Leave the gate out."
        )

    def prepare(table: TableInfo) -> Proposal:
        changed = _change(runtime, table, change)
        written = WrittenRows(files=(), rows_in=0, new_schema=changed)
        proposal = propose(table, CommitKind.EVOLVE, request, written, effect=NOTHING)
        return replace(proposal, summary={**proposal.summary, "columns": describe_change(table.schema, changed)})

    work = Work(prepare=prepare, redo=schema_again, right=Right.OWN, brings_rows=False)
    return commit_work(runtime, ref, request, work)


def preview_change(table: TableInfo, change: SchemaChange) -> str:
    """What would become of the columns, in words. Raises InvalidInputError for a change that is not possible."""
    draft = _changed(table, change, _first_free(table))
    _check_sensitive(table, draft)
    return describe_change(table.schema, draft)


def _first_free(table: TableInfo) -> int:
    return 1 + max(column.id for column in table.schema.columns)


def _changed(table: TableInfo, change: SchemaChange, next_id: int) -> TableSchema:
    known = {column.id for column in table.schema.columns}
    roles = Roles(key_ids=table.primary_key_ids, partition_ids=table.partition_ids, sequence_ids=table.sequence_ids)
    evolved = evolve_schema(
        table.schema,
        next_id,
        change,
        key_ids=frozenset(table.primary_key_ids),
        fixed_ids=frozenset(table.primary_key_ids + table.partition_ids),
        kept_ids=frozenset(table.primary_key_ids + table.partition_ids + table.sequence_ids),
        grouped_ids=table.merge.group_ids,
    )
    functions = change.functions or {}
    check_added(evolved, known, functions)
    return with_functions(evolved, functions, table.merge, roles)


def _change(runtime: Runtime, table: TableInfo, change: SchemaChange) -> TableSchema:
    """The changed schema under ids that nobody else gets, which are reserved once it is known to be possible."""
    known = {column.id for column in table.schema.columns}
    draft = _changed(table, change, _first_free(table))
    _check_sensitive(table, draft)
    added = sum(column.id not in known for column in draft.columns)
    schema_id, first_column_id = tables.reserve_schema(runtime.catalog, table, added)
    return under_id(table.schema, _changed(table, change, first_column_id), schema_id, named_earlier(runtime, table))


def _check_sensitive(table: TableInfo, draft: TableSchema) -> None:
    """Raises InvalidInputError for a sensitive column that would be none under its new name."""
    sensitive = sensitive_names(table.options)
    renamed = ((column.name, draft.by_id(column.id)) for column in table.schema.columns if column.name in sensitive)
    for name, column in renamed:
        if column is not None and column.name not in sensitive:
            raise InvalidInputError(
                f"{name!r} is a sensitive column of {table.full_name}: as {column.name!r} it would be none.",
                kind="sensitive_column",
                remedy="Add its new name to the option sensitive_columns first, and take the old one out afterwards.",
            )


def set_options(runtime: Runtime, ref: TableRef, given: Mapping[str, Any]) -> TableInfo:
    """The table with these options, for whoever opens it from then on; those that are not named stay. To name a gate
    is to require it. Raises InvalidInputError for an unknown name or a bad value, and for what would take away the gate
    that is required."""

    def attempt() -> TableInfo | Overtaken:
        table = tables.load_table(runtime.catalog, ref)
        wanted = parse_options({**table.options.as_mapping(), **given})
        if wanted.delta and wanted.delta != table.options.delta:
            delta.check_delta(runtime, table, wanted.delta)
        if wanted.ducklake:
            require_newest(table, "DuckLake")
        if wanted.required_gate != table.options.required_gate:
            require_by_option(runtime, table, wanted.required_gate)
            return Overtaken(_options_changed(ref))
        looked_at = _looked_at(runtime, table, wanted)
        if wanted == table.options or tables.replace_options(runtime.catalog, table, wanted, looked_at):
            runtime.known.forget(table.id)
            return replace(table, options=wanted)
        return Overtaken(_options_changed(ref) if looked_at is None else _rows_changed(ref))

    return do_again(attempt, most_tries=MOST_CHANGES)


def _looked_at(runtime: Runtime, table: TableInfo, wanted: TableOptions) -> int | None:
    """The snapshot at which the table was found to be what the options say of it; None where nothing was looked at.
    Raises InvalidInputError if it is not."""
    if not wanted.cross_partition or table.options.cross_partition:
        return None
    check_definition(table.schema, table.primary_key_ids, table.partition_ids, table.sequence_ids, table.merge)
    check_each_once(runtime, table, table.head_id)
    return table.head_id


def _rows_changed(ref: TableRef) -> RetryableError:
    return RetryableError(
        f"Others commit to {ref.full_name} all the time: whenever its keys were looked at, rows had come.",
        kind="options_changed",
        remedy="Try again when it is written less; it takes as long as reading all keys.",
    )


def _options_changed(ref: TableRef) -> RetryableError:
    return RetryableError(
        f"The options of {ref.full_name} are being changed by others all the time.",
        kind="options_changed",
        remedy="Try again.",
    )
