"""Use cases: CREATE TABLE, with the rows of a query or without, and CREATE NAMESPACE."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from lakelib.catalog import tables
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, RejectedError
from lakelib.model.options import parse_options
from lakelib.model.table import CommitKind, Snapshot, TableInfo
from lakelib.ops import create, evolve, overwrite, read, rebucket, sql, write
from lakelib.ops.replace_table import check_same, create_or_replace
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_change import Told, refuse_options, tell
from lakelib.ops.sql_plan import QueryExplanation, QueryPlan
from lakelib.ops.sql_source import QuerySource, source_of
from lakelib.plan.declare import Declared
from lakelib.plan.sql_create import CreateNamespace, CreateTable, columns_of_query
from lakelib.work.sources import RowSource


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceChange:
    """CREATE NAMESPACE."""

    runtime: Runtime
    create: CreateNamespace
    takes_away: bool = False

    def explain(self) -> QueryExplanation:
        is_there = self.create.name in tables.list_namespaces(self.runtime.catalog)
        return QueryExplanation(
            change=f"CREATE NAMESPACE {self.create.name}: it {'is there already' if is_there else 'is created'}"
        )

    def carry_out(self, request: WriteRequest) -> Told:
        refuse_options(request, "CREATE NAMESPACE")
        create.check_part(self.create.name, "namespace")
        if not self.create.if_not_exists and self.create.name in tables.list_namespaces(self.runtime.catalog):
            raise InvalidInputError(
                f"There is a namespace {self.create.name} already.",
                kind="namespace_exists",
                remedy="Write CREATE NAMESPACE IF NOT EXISTS.",
            )
        create.create_namespace(self.runtime, self.create.name)
        return tell(self.create.parsed.text, "CREATE NAMESPACE", self.create.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a table is to be, as `create_table` takes it."""

    primary_key: Sequence[str] = ()
    partition_by: Sequence[str] = ()
    buckets: int | str | None = None
    sequence_by: Sequence[str] = ()
    merge: str | Mapping[str, Any] = "deduplicate"
    options: Mapping[str, Any] = field(default_factory=dict)

    def as_arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Definition.__dataclass_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """CREATE TABLE, CREATE OR REPLACE TABLE. The definition is right, as far as that shows without making it."""

    runtime: Runtime
    create: CreateTable
    columns: tuple[Declared, ...]
    definition: Definition
    plan: QueryPlan | None
    there: TableInfo | None
    """The table that has the name already."""

    @property
    def takes_away(self) -> bool:
        return self.create.may_take_away and self.there is not None

    def explain(self) -> QueryExplanation:
        if self.there is not None and self.create.if_not_exists:
            means = "it is there already, and stays as it is"
        elif self.there is not None and not self.create.or_replace:
            means = "there is one of that name already"
        else:
            does = "takes the place of the rows and columns that are there" if self.takes_away else "is created"
            listed = ", ".join(f"{column.name} {column.type}" for column in self.columns)
            means = f"it {does}: {listed}"
        said = f"{self._word} {self._name}: {means}"
        return QueryExplanation(change=said) if self.plan is None else sql.explain_plan(self.runtime, self.plan, said)

    def carry_out(self, request: WriteRequest) -> Told:
        if self.plan is None:
            refuse_options(request, self._word)
        if self.there is not None and self.create.if_not_exists:
            return tell(self._text, self._word, self._name)
        if self.create.or_replace and self.there is not None:
            return tell(self._text, self._word, self._name, self._replaced(self.there, request))
        return tell(self._text, self._word, self._name, self._filled(self._created(), request))

    @property
    def _text(self) -> str:
        return self.create.parsed.text

    @property
    def _name(self) -> str:
        return self.create.table.name

    @property
    def _word(self) -> str:
        return "CREATE OR REPLACE TABLE" if self.create.or_replace else "CREATE TABLE"

    def _created(self) -> TableInfo:
        try:
            return create.create_table(
                self.runtime, self._name, self.columns, **self.definition.as_arguments(), if_not_exists=False
            )
        except InvalidInputError as error:
            if error.kind != "table_exists":
                raise
            remedy = "Write CREATE TABLE IF NOT EXISTS to take the table as it is, or CREATE OR REPLACE TABLE."
            raise InvalidInputError(error.message, kind=error.kind, remedy=remedy) from None

    def _filled(self, table: TableInfo, request: WriteRequest) -> Snapshot | None:
        """The query's rows in the new table. Where that fails there is none, but for rows that a gate has rejected,
        which stay to be looked at."""
        if self.plan is None:
            return None
        kind = CommitKind.UPSERT if table.primary_key_ids else CommitKind.APPEND
        try:
            return write.write(self.runtime, table.ref, kind, self._source(self.plan), request)
        except RejectedError:
            raise
        except BaseException:
            found = tables.find_table(self.runtime.catalog, *create.split_name(self._name))
            if found is not None and found.id == table.id and not found.head_id:  # nobody has written to it
                create.drop_table(self.runtime, self._name)
            raise

    def _replaced(self, there: TableInfo, request: WriteRequest) -> Snapshot | None:
        """With a query its rows and columns take the place of the table's in one commit."""
        arguments = self.definition.as_arguments()
        if self.plan is None or self.create.source is None:
            create_or_replace(self.runtime, self._name, self.columns, **arguments)
            return read.resolve_snapshot(self.runtime, create.find_table(self.runtime, self._name), None)
        becomes = tuple(
            Declared(name=each.name, type=each.type, nullable=each.nullable, comment=each.comment)
            for each in _defined(self.runtime, self.create, self.columns, self.definition).schema.columns
        )
        reads_itself = any(each.name == there.full_name for each in self.create.source.references)
        request = replace(request, becomes=becomes, made_from=there.head_id if reads_itself else None)
        snapshot = overwrite.overwrite(self.runtime, there.ref, self._source(self.plan), "all", request)
        if self.definition.options:
            evolve.set_options(self.runtime, there.ref, self.definition.options)
        if self.definition.buckets is not None:
            rebucket.rebucket(self.runtime, there.ref, self.definition.buckets, rewrite=False)
        return snapshot

    def _source(self, plan: QueryPlan) -> RowSource:
        if self.runtime.session is not None:
            return source_of(self.runtime, plan)
        return QuerySource(runtime=self.runtime, plan=plan)


def plan_create(runtime: Runtime, wanted: CreateTable) -> TableChange:
    """Raises InvalidInputError for a wrong definition, NotFoundError for tables that the query names."""
    plan, columns = None, wanted.columns or ()
    if wanted.source is not None:
        found = sql.look_up(runtime, wanted.source.references)
        plan = sql.plan_statement(runtime, wanted.source, found, lambda query: query)
        columns = columns_of_query(plan.query)
    definition = Definition(**wanted.definition)
    new = _defined(runtime, wanted, columns, definition)
    there = tables.find_table(runtime.catalog, new.namespace, new.name)
    if there is not None and wanted.or_replace:
        check_same(there, new)
    return TableChange(runtime=runtime, create=wanted, columns=columns, definition=definition, plan=plan, there=there)


def _defined(
    runtime: Runtime, wanted: CreateTable, columns: tuple[Declared, ...], definition: Definition
) -> tables.NewTable:
    namespace, name = create.split_name(wanted.table.name)
    given = definition
    return create.define_table(
        runtime,
        namespace,
        name,
        columns,
        given.primary_key,
        given.partition_by,
        given.buckets,
        given.sequence_by,
        given.merge,
        parse_options(given.options),
    )
