"""Use case: a table is there as its spec says, and the columns that the spec has got since are added.

What a spec and its table disagree on otherwise is said, and left to people: nothing that readers rely on is changed
because a file was edited.
"""

from lakelib.errors import InvalidInputError, LakeError
from lakelib.model.schema import Column
from lakelib.model.table import TableInfo
from lakelib.ops.alter import set_options
from lakelib.ops.create import create_namespace, create_table, find_table, parse_buckets
from lakelib.ops.evolve import evolve
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.plan.compare import Differences, Wanted, compare_table
from lakelib.plan.declare import declare_schema
from lakelib.specs.table_spec import TableSpec


def provide_table(runtime: Runtime, spec: TableSpec, required_gate: str) -> TableInfo:
    """The table, made if it is not there. Its gate is the one given, '' for none.

    With the spec's `write.merge_schema` nullable columns are added and types widened; any other difference is an
    InvalidInputError that names them all.
    """
    create_namespace(runtime, spec.namespace)
    table = create_table(
        runtime,
        spec.table,
        spec.columns,
        primary_key=spec.primary_key,
        partition_by=spec.partition_by,
        buckets=spec.buckets,
        sequence_by=spec.sequence_by,
        merge="deduplicate",
        options={**spec.options, "required_gate": required_gate},
        if_not_exists=True,
    )
    found = _differences(table, spec)
    if found.other or ((found.add or found.widen) and not spec.write.merge_schema):
        raise _differs(spec, found)
    if found.add or found.widen:
        table = _evolved(runtime, table, spec, found)
    return _with_options(runtime, table, spec, required_gate)


def _differences(table: TableInfo, spec: TableSpec) -> Differences:
    keys = {name.casefold() for name in spec.primary_key}
    columns = declare_schema(spec.columns)
    wanted = Wanted(
        columns=tuple(
            Column(
                id=each.id, name=each.name, type=each.type, nullable=each.nullable and each.name.casefold() not in keys
            )
            for each in columns
        ),
        primary_key=spec.primary_key,
        partition_by=spec.partition_by,
        sequence_by=spec.sequence_by,
        buckets=parse_buckets(spec.buckets, has_key=bool(spec.primary_key)),
    )
    return compare_table(table, wanted, may_have_more=spec.write.merge_schema)


def _differs(spec: TableSpec, found: Differences) -> InvalidInputError:
    hint = "" if found.other else " With write.merge_schema: true the table follows."
    return InvalidInputError(
        f"Table {spec.table} is not as {spec.path} says: {'; '.join(found.in_words())}.",
        kind="table_differs",
        remedy=f"Correct the spec, or bring the table in line with Table.evolve or a new table.{hint}",
    )


def _evolved(runtime: Runtime, table: TableInfo, spec: TableSpec, found: Differences) -> TableInfo:
    """Whoever else does the same at this moment may be first: what counts is that it is done."""
    try:
        evolve(runtime, table, add=found.add, drop=(), rename={}, widen=dict(found.widen), request=WriteRequest())
    except LakeError:
        table = find_table(runtime, spec.table)
        rest = _differences(table, spec)
        if rest.add or rest.widen or rest.other:
            raise
    return find_table(runtime, spec.table)


def _with_options(runtime: Runtime, table: TableInfo, spec: TableSpec, required_gate: str) -> TableInfo:
    """A gate is set where there was none. To change one, or to do without, takes a person, who may do so meanwhile."""
    if table.options.required_gate not in ("", required_gate):
        declared = f"its spec's gate is {required_gate!r}" if required_gate else "its spec has no gate"
        raise InvalidInputError(
            f"Table {spec.table} requires the gate {table.options.required_gate!r}, and {declared} ({spec.path}).",
            kind="table_differs",
            remedy=f'If that is meant: Table.set_options({{"required_gate": "{required_gate}"}}).',
        )
    gate = {} if table.options.required_gate == required_gate else {"required_gate": required_gate}
    return set_options(runtime, table, {**spec.options, **gate})
