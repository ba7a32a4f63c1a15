"""Use case: a table is there as its spec says, with the columns that the spec has got since, and requires its gate.

The suite of the spec's gate is registered, and required by its hash: where its file has changed, the requirement moves
to the new version. What a spec and its table disagree on otherwise is said, and left to people: nothing that readers
rely on is changed because a file was edited.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lakelib.catalog import gates, tables
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, LakeError, RetryableError
from lakelib.model.gate import RegisteredSuite
from lakelib.model.table import TableInfo
from lakelib.ops.create import create_namespace, create_table, find_table, parse_buckets
from lakelib.ops.engine import check_engine
from lakelib.ops.evolve import evolve, set_options
from lakelib.ops.gates import check_requirable, gate_changed, register
from lakelib.ops.patience import MOST_CHANGES, Overtaken, do_again
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.plan.compare import Differences, Wanted, compare_table
from lakelib.plan.declare import Declared, declare_schema
from lakelib.plan.evolve import SchemaChange
from lakelib.specs.suite import Suite
from lakelib.specs.table_spec import TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Provided:
    table: TableInfo
    suite: Suite | None
    """That of the spec's gate, which the table requires; None if the spec has none."""


def provide_tables(runtime: Runtime, specs: Sequence[TableSpec]) -> tuple[tuple[TableInfo, ...], dict[Path, LakeError]]:
    """The tables, and by spec what keeps others from being as it says. Raises RetryableError for what ails them all."""
    made: list[TableInfo] = []
    errors: dict[Path, LakeError] = {}
    for spec in specs:
        try:
            made.append(provide_table(runtime, spec).table)
        except RetryableError:
            raise
        except LakeError as error:
            errors[spec.path] = error
    return tuple(made), errors


def provide_table(runtime: Runtime, spec: TableSpec) -> Provided:
    """The table, made if it is not there, and its gate.

    With the spec's `write.merge_schema` nullable columns are added, types widened, NOT NULL taken back and comments
    said anew; any other difference is an InvalidInputError that names them all, and so is an engine that cannot do the
    spec's work. Of runs at once that read different versions of the gate's file, the one that has read it last decides:
    what is required is looked at before the file, and replaced only if it is still that.
    """
    check_engine(runtime, spec)

    def attempt() -> Provided | Overtaken:
        seen = tables.find_table(runtime.catalog, spec.namespace, spec.name)
        suite = spec.suite()
        create_namespace(runtime, spec.namespace)
        gate = None if suite is None else _registered(runtime, spec, suite, seen)
        table = _as_declared(runtime, spec, gate)
        if gate is None or table.required_suite == gate.required or _requires(runtime, seen, table, gate, spec):
            return Provided(table=set_options(runtime, table.ref, spec.options), suite=suite)
        return Overtaken(gate_changed(table.ref))

    return do_again(attempt, most_tries=MOST_CHANGES)


def _registered(runtime: Runtime, spec: TableSpec, suite: Suite, seen: TableInfo | None) -> RegisteredSuite:
    """The suite; one that the table does not require yet is checked first. Rows may bring the columns that it looks at,
    where the spec lets them."""
    required = None if seen is None else seen.required_suite
    if required is None or (required.name, required.hash) != (suite.name, suite.hash):
        check_requirable(suite, None if spec.write.merge_schema else declare_schema(spec.columns))
    return register(runtime, suite, _who(spec))


def _requires(
    runtime: Runtime, seen: TableInfo | None, table: TableInfo, gate: RegisteredSuite, spec: TableSpec
) -> bool:
    """Whether the table requires the gate from now on; not so if somebody has changed what it requires, or made it,
    since it was looked at."""
    if seen is None or seen.id != table.id:
        return False
    return gates.require_suite(runtime.catalog, seen, gate, by=_who(spec), reason=None) is not None


def _who(spec: TableSpec) -> str:
    return f"spec {spec.path}"


def _as_declared(runtime: Runtime, spec: TableSpec, gate: RegisteredSuite | None) -> TableInfo:
    table = create_table(
        runtime,
        spec.table,
        spec.columns,
        primary_key=spec.primary_key,
        partition_by=spec.partition_by,
        buckets=spec.buckets,
        sequence_by=spec.sequence_by,
        merge=spec.merge.said,
        options=spec.options,
        if_not_exists=True,
        gate=gate,
        by=_who(spec),
    )
    _check_same_gate(table, spec, gate)
    found = _differences(table, spec)
    if found.other or (found.may_follow and not spec.write.merge_schema):
        raise _differs(spec, found)
    if found.may_follow or (found.comment and spec.write.merge_schema):
        table = _evolved(runtime, table, spec, found)
    return table


def _differences(table: TableInfo, spec: TableSpec) -> Differences:
    keys = {name.casefold() for name in spec.primary_key}
    columns = declare_schema(spec.columns)
    wanted = Wanted(
        columns=tuple(replace(each, nullable=each.nullable and each.name.casefold() not in keys) for each in columns),
        primary_key=spec.primary_key,
        partition_by=spec.partition_by,
        sequence_by=spec.sequence_by,
        buckets=parse_buckets(spec.buckets, has_key=bool(spec.primary_key)),
        merge=spec.merge.said,
    )
    return compare_table(table, wanted, may_have_more=spec.write.merge_schema)


def _differs(spec: TableSpec, found: Differences) -> InvalidInputError:
    hint = "" if found.other else " With write.merge_schema: true the table follows."
    return InvalidInputError(
        f"Table {spec.table} is not as {spec.path} says: {'; '.join(found.in_words())}.",
        kind="table_differs",
        remedy=f"Correct the spec, or bring the table in line with Table.evolve, Table.rebucket or a new table.{hint}",
    )


def _evolved(runtime: Runtime, table: TableInfo, spec: TableSpec, found: Differences) -> TableInfo:
    """Whoever else does the same at this moment may be first: what counts is that it is done."""
    try:
        change = SchemaChange(
            add=[Declared(name=each.name, type=each.type, nullable=True, comment=each.comment) for each in found.add],
            widen=dict(found.widen),
            nullable=found.nullable,
            comment=dict(found.comment),
            functions=found.functions,
        )
        evolve(runtime, table.ref, change, WriteRequest())
    except LakeError:
        table = find_table(runtime, spec.table)
        rest = _differences(table, spec)
        if rest.may_follow or rest.other:
            raise
    return find_table(runtime, spec.table)


def _check_same_gate(table: TableInfo, spec: TableSpec, gate: RegisteredSuite | None) -> None:
    """A gate is required where there was none. To change to another one, or to do without, takes a person."""
    declared = "" if gate is None else gate.name
    if table.options.required_gate in ("", declared):
        return
    what = f"its spec's gate is {declared!r}" if declared else "its spec has no gate"
    raise InvalidInputError(
        f"Table {spec.table} requires the gate {table.options.required_gate!r}, and {what} ({spec.path}).",
        kind="table_differs",
        remedy="If that is meant, release the table from its gate, by name and reason: table.release_gate(by=…,"
        " reason=…), or `lake gate release`.",
    )
