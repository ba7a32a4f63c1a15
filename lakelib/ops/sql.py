"""Use case: a query over tables of the lake, in SQL.

Step by step: the text is understood; its tables are looked up, all at the heads of one moment; the query is said anew
for the engine; of each table it is decided what is read, by what the query says of its rows; then, while all of them
are held, the rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, NotFoundError
from lakelib.local.engine import Relation, explain_query, run_query
from lakelib.model.predicate import Predicate
from lakelib.model.schema import COMMIT_COLUMN, TableSchema
from lakelib.model.table import TableInfo
from lakelib.ops import changes, read
from lakelib.ops.create import find_tables
from lakelib.ops.explain import explain_scan
from lakelib.ops.hold import HeldTogether
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_files import OwnFiles, choose_files, engine_folder
from lakelib.ops.sql_frame import explain_frame, frame_of, known_query
from lakelib.ops.sql_metadata import read_metadata
from lakelib.ops.sql_plan import Given, Known, KnownFrame, Plan, QueryExplanation, QueryPlan, Within
from lakelib.ops.sql_understood import say_anew
from lakelib.plan.asked import AskedQuery, Reference, TableColumns, TableName
from lakelib.plan.literals import all_of
from lakelib.plan.own_files import FLOATS
from lakelib.plan.prune import may_fail
from lakelib.plan.sql_on_spark import translate_for_spark
from lakelib.plan.sql_statement import Statement
from lakelib.plan.where import bind_condition
from lakelib.rows.types import type_text
from lakelib.work import engines

_NOTHING_GIVEN: Mapping[str, Given] = {}
_NO_LIMITS: Mapping[str, Within] = {}
_HIDDEN = ((COMMIT_COLUMN, "bigint"),)


def plan_statement(
    runtime: Runtime,
    statement: Statement,
    found: Mapping[str, TableInfo],
    shape: Callable[[AskedQuery], AskedQuery] | None = None,
    *,
    given: Mapping[str, Given] = _NOTHING_GIVEN,
    within: Mapping[str, Within] = _NO_LIMITS,
) -> QueryPlan:
    """Decides what a query reads of tables that were looked up; `shape` makes of its rows what is wanted of them.
    `given` are rows that were handed in, and `within` says more of tables' rows, each by key."""
    bases: dict[str, _Base] = {**given, **_bases(runtime, statement, found)}
    translate = say_anew if runtime.session is None else translate_for_spark
    query = translate(statement, {key: _columns(base) for key, base in bases.items()})
    plan = QueryPlan(
        text=statement.text,
        query=query,
        plans={key: _narrowed(runtime, base, query, key, within.get(key)) for key, base in bases.items()},
        names={**dict.fromkeys(given, "the rows given"), **{each.key: _said(each) for each in statement.references}},
        is_explained=statement.is_explained,
        exact=frozenset(key for key, each in within.items() if each.is_exact),
    )
    if shape is None:
        return plan
    return replace(plan, query=shape(known_query(runtime, plan)))


def columns_of(
    runtime: Runtime, statement: Statement, found: Mapping[str, TableInfo], given: Mapping[str, Given] = _NOTHING_GIVEN
) -> tuple[tuple[str, str], ...]:
    """Names and types of what a query gives."""
    if runtime.session is not None:
        return known_query(runtime, plan_statement(runtime, statement, found, given=given)).columns
    bases = {**given, **_bases(runtime, statement, found)}
    return say_anew(statement, {key: _columns(base) for key, base in bases.items()}).columns


def stream_batches(runtime: Runtime, plan: QueryPlan) -> Iterator[pa.RecordBatch]:
    """The rows in batches. Closing the iterator ends the query. Those that Spark computes are collected."""
    if runtime.session is not None:
        yield from engines.collected(frame_of(runtime, plan), plan.schema)
        return
    with _held(runtime, plan):
        yield from run_query(
            (plan.query.sql, plan.query.wide_sql),
            plan.query.columns,
            _relations(runtime, plan, may_find=True),
            plan.query.bound,
            folder=engine_folder(runtime),
            threads=runtime.threads,
        )


def explain_plan(runtime: Runtime, plan: QueryPlan, change: str = "") -> QueryExplanation:
    """What is read of each table, and what the engine makes of the query; and what is done with its rows, if they
    change something."""
    scans = tuple(explain_scan(runtime, each) for each in plan.plans.values() if isinstance(each, read.ScanPlan))
    others = tuple(
        f"scan of {plan.names[key]}" for key, each in plan.plans.items() if not isinstance(each, read.ScanPlan)
    )
    engine = explain_frame(runtime, plan) if runtime.session is not None else _explained_here(runtime, plan)
    return QueryExplanation(change=change, scans=scans, others=others, plan=engine)


def _explained_here(runtime: Runtime, plan: QueryPlan) -> str:
    return explain_query(
        plan.query.sql,
        _relations(runtime, plan, may_find=False),
        plan.query.bound,
        folder=engine_folder(runtime),
        threads=runtime.threads,
    )


# What is meant


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scanned:
    """A table as of a snapshot, before it is known what of it is read."""

    table: TableInfo
    schema: TableSchema
    request: read.ScanRequest


_Base = _Scanned | changes.ChangesPlan | Given


def _bases(runtime: Runtime, statement: Statement, found: Mapping[str, TableInfo]) -> dict[str, _Base]:
    return {each.key: _base(runtime, found[each.name], each) for each in statement.references}


def look_up(runtime: Runtime, named: Sequence[Reference | TableName]) -> dict[str, TableInfo]:
    """The tables by name, all at the heads of one moment; in a transaction those that it has seen are as they were
    then. Raises NotFoundError, with the place in the text."""
    try:
        found = find_tables(runtime, dict.fromkeys(each.name for each in named))
    except NotFoundError as error:
        place = next((each.place for each in named if f" {each.name}." in error.message), "")
        raise NotFoundError(f"{error.message.rstrip('.')}{place}.", kind=error.kind, remedy=error.remedy) from None
    return {name: runtime.as_seen(table) for name, table in found.items()}


def _base(runtime: Runtime, table: TableInfo, reference: Reference) -> _Base:
    if reference.changes is not None:
        return changes.plan_changes(runtime, table, changes.ChangesRequest(**reference.changes))
    if reference.metadata is not None:
        return Known(rows=read_metadata(runtime, table, reference.metadata, reference.at))
    staged = None if reference.at is not None else read.view_after(runtime.staged.get(table.id, ()))
    request = read.ScanRequest(at=reference.at, staged=staged)
    snapshot_id, schema = read.resolve_request(runtime, table, request)
    at = None if reference.at is None else snapshot_id
    return _Scanned(table=table, schema=schema, request=replace(request, at=at))


def _columns(base: _Base) -> TableColumns:
    match base:
        case _Scanned(schema=schema):
            return TableColumns(columns=[(column.name, column.type) for column in schema.columns], hidden=_HIDDEN)
        case changes.ChangesPlan():
            return TableColumns(columns=_typed(base.target.output_schema))
        case Known(rows=rows):
            return TableColumns(columns=_typed(rows.schema))
        case KnownFrame(schema=given):
            return TableColumns(columns=_typed(given))


def _typed(schema: pa.Schema) -> list[tuple[str, str]]:
    return [(field.name, type_text(field.type)) for field in schema]


def _said(reference: Reference) -> str:
    if reference.changes is not None:
        return f"changes of {reference.name}"
    return f"{reference.name}${reference.metadata}" if reference.metadata else reference.name


# What is read of it


def _narrowed(runtime: Runtime, base: _Base, query: AskedQuery, key: str, within: Within | None) -> Plan:
    """One column at least: rows have to be counted. In the table's order, which a star on Spark has."""
    if not isinstance(base, _Scanned):
        return base
    uses = query.uses.get(key, ()) or base.schema.names[:1]
    columns = [name for name, _ in (*_columns(base).columns, *_HIDDEN) if name in uses]
    where = _where(query, key, base.schema)
    looks_at_floats = any(column.name in columns and column.type in FLOATS for column in base.schema.columns)
    request = replace(base.request, columns=tuple(columns), where=where, with_bounds=looks_at_floats)
    if within is not None:
        known = [each for each in (within.predicate, where) if each is not None]
        both = all_of(known) if known else None
        request = replace(request, where=both, hash_prefixes=within.hash_prefixes, among=within.among)
        return read.plan_scan(runtime, base.table, request)
    plan = read.plan_scan(runtime, base.table, request)
    return replace(plan, target=replace(plan.target, is_asked_again=True))


def _where(query: AskedQuery, key: str, schema: TableSchema) -> Predicate | None:
    """What is understood of what holds of the rows. The engine asks all of it again."""
    known = []
    for node in query.conditions.get(key, ()):
        try:
            bound = bind_condition(node, schema)
        except InvalidInputError:
            continue
        if not may_fail(bound):  # of which rows it is asked, the engine knows
            known.append(bound)
    return all_of(known) if known else None


# How it is read


def _relations(runtime: Runtime, plan: QueryPlan, *, may_find: bool) -> dict[str, Relation]:
    return {key: _relation(runtime, each, may_find, key in plan.exact) for key, each in plan.plans.items()}


def _relation(runtime: Runtime, plan: Plan, may_find: bool, is_exact: bool) -> Relation:
    match plan:
        case read.ScanPlan():
            own = OwnFiles(rest=plan.splits) if is_exact else choose_files(runtime, plan, may_find=may_find)
            return _scanned(runtime, plan, own)
        case changes.ChangesPlan():
            columns = tuple(_typed(plan.target.output_schema))
            return Relation(
                columns=columns,
                read=lambda names: (each.select(list(names)) for each in changes.stream_batches(runtime, plan)),
            )
        case Known(rows=rows):
            return Relation(
                columns=tuple(_typed(rows.schema)), read=lambda names: iter(rows.select(list(names)).to_batches())
            )
        case KnownFrame():
            raise AssertionError("rows of Spark's are read by Spark")


def _scanned(runtime: Runtime, plan: read.ScanPlan, own: OwnFiles) -> Relation:
    columns = tuple((column.name, column.type) for column in plan.target.columns)
    rest = replace(plan, splits=tuple(own.rest))

    def rows(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        chosen = tuple(column for column in plan.target.columns if column.name in names)
        narrow = replace(rest, target=replace(rest.target, columns=chosen))
        return (batch.select(list(names)) for batch in read.stream_held(runtime, narrow))

    streams = own.rest or not (own.paths or own.masked)
    return Relation(columns=columns, paths=own.paths, masked=own.masked, read=rows if streams else None)


def _held(runtime: Runtime, plan: QueryPlan) -> HeldTogether:
    return HeldTogether(runtime, [each for each in plan.plans.values() if isinstance(each, read.ScanPlan)])
