"""Use cases: updates and merges as Python builds them, of pieces of SQL."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any
from uuid import UUID

import pyarrow as pa

from lakelib.catalog.tables import load_table
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.table import Snapshot, TableRef
from lakelib.ops.commit import publish_changed
from lakelib.ops.request import WriteRequest, parse_request
from lakelib.ops.revise import explain_revision, revise, stage_revision
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_plan import Given, Known, KnownFrame, QueryExplanation
from lakelib.plan.revise import Action, Beside, Clause, Match, Revision, identity_ids
from lakelib.plan.sql_revise import (
    Condition,
    assigned_texts,
    check_names,
    condition_of,
    equal_columns,
    rows_beside,
    table_beside,
)
from lakelib.work.engines import kept, open_source, task_count

_TARGET, _SOURCE = "target", "source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """A merge, as far as it was said."""

    runtime: Runtime
    ref: TableRef
    alias: str
    beside: Beside
    given: Given | None
    parameters: Mapping[str, Any]
    clauses: tuple[Clause, ...] = ()

    def clause(self, match: str, action: str, values: Mapping[str, str] | None, condition: str | None) -> Clause:
        assigned = () if action == "delete" else None if values is None else assigned_texts(values, self.alias)
        return Clause(
            match=Match(f"WHEN {match.upper()}"),
            action=Action[action.upper()],
            condition=None if condition is None else condition_of(condition, f"the condition of when {match}"),
            values=assigned,
        )

    def execute(self, options: Mapping[str, Any]) -> Snapshot | None:
        request = parse_request(**options)
        with self._kept():
            return _published(self.runtime, self.ref, self._revision, self.given, request)

    def stage(self, options: Mapping[str, Any]) -> tuple[UUID, WriteRequest]:
        request = parse_request(**options)
        with self._kept():
            return stage_revision(self.runtime, self.ref, self._revision, self.given, request), request

    def explain(self) -> QueryExplanation:
        return explain_revision(self.runtime, self.ref, self._revision, self.given)

    def _kept(self) -> AbstractContextManager[None]:
        """Rows that are handed in are looked at more than once, and have to be the same each time."""
        return kept(self.given.frame) if isinstance(self.given, KnownFrame) else nullcontext()

    @property
    def _revision(self) -> Revision:
        return Revision(
            text=f"MERGE INTO {self.ref.full_name}",
            alias=self.alias,
            clauses=self.clauses,
            beside=self.beside,
            parameters=self.parameters,
        )


def open_merge(
    runtime: Runtime,
    ref: TableRef,
    source: Any,
    on: str | Sequence[str] | None,
    target_alias: str,
    source_alias: str,
    parameters: Mapping[str, Any] | None,
    session: Any,
) -> Merging:
    """`source` is a table's name, or rows; those of a Spark data frame are merged by its session. Raises
    InvalidInputError for what is no source, and no condition."""
    for alias in (target_alias, source_alias):
        if not isinstance(alias, str) or not alias.isidentifier():
            raise InvalidInputError(f"{alias!r} is no name.", kind="invalid_name", remedy="Give a word.")
    check_names(target_alias, source_alias)
    condition = _condition(runtime, ref, on, target_alias, source_alias)
    if isinstance(source, TableRef):
        beside, given = table_beside(source.full_name, source_alias, condition), None
    else:
        beside, given = rows_beside(source_alias, condition), _rows(source)
    if isinstance(given, KnownFrame):
        session = given.frame.sparkSession
    return Merging(
        runtime=on_session(runtime, session),
        ref=ref,
        alias=target_alias,
        beside=beside,
        given=given,
        parameters=parse_parameters(parameters),
    )


def update(
    runtime: Runtime,
    ref: TableRef,
    set: Mapping[str, str],
    where: str | None,
    parameters: Mapping[str, Any] | None,
    session: Any,
    request: WriteRequest,
) -> Snapshot | None:
    """Carries it out and publishes; None where no row changes."""
    revision = parse_update(ref, set, where, parameters)
    return _published(on_session(runtime, session), ref, revision, None, request)


def _published(
    runtime: Runtime, ref: TableRef, revision: Revision, given: Given | None, request: WriteRequest
) -> Snapshot | None:
    return publish_changed(lambda asked: revise(runtime, ref, revision, given, asked), request)


def parse_update(
    ref: TableRef, set: Mapping[str, str], where: str | None, parameters: Mapping[str, Any] | None
) -> Revision:
    """Raises InvalidInputError for what is no SQL."""
    alias = ref.full_name.rpartition(".")[2]
    clause = Clause(
        match=Match.TABLE,
        action=Action.UPDATE,
        condition=None if where is None else condition_of(where, "where"),
        values=assigned_texts(set, alias),
    )
    return Revision(
        text=f"UPDATE {ref.full_name}", alias=alias, clauses=(clause,), parameters=parse_parameters(parameters)
    )


def parse_parameters(given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if given is not None and not (isinstance(given, Mapping) and all(isinstance(name, str) for name in given)):
        raise InvalidInputError(
            f"parameters is {given!r}.", kind="invalid_parameter", remedy='Give values by name: {"day": day}.'
        )
    return dict(given or {})


def _condition(runtime: Runtime, ref: TableRef, on: str | Sequence[str] | None, target: str, source: str) -> Condition:
    table = load_table(runtime.catalog, ref)
    if on is None and not table.primary_key_ids:
        raise InvalidInputError(
            f"{table.full_name} has no primary key to merge by.",
            kind="no_primary_key",
            remedy="Create it with a primary_key; rows are appended, and overwritten by a condition.",
        )
    if isinstance(on, str) and table.schema.find(on) is None:
        return condition_of(on, "on")
    names = [column.name for column in table.schema.select(identity_ids(table))] if on is None else on
    never_null = {column.name.casefold() for column in table.primary_key}
    return equal_columns([names] if isinstance(names, str) else names, never_null, target, source)


def on_session(runtime: Runtime, session: Any) -> Runtime:
    """By whose tasks queries are carried out; None is this process. Raises InvalidInputError for what is no session."""
    if session is not None:
        task_count(session)
    return replace(runtime, session=session)


def _rows(source: Any) -> Given:
    """All of them: they are looked at more than once. Spark's stay where they are."""
    opened = open_source(source)
    if opened.session is None:
        return Known(rows=pa.Table.from_batches(opened.batches(), opened.schema))
    return KnownFrame(frame=source, schema=opened.schema)
