"""Use case: overwrite. The rows take the place of all that is in their target: the whole table, the partitions that the
rows are in ("dynamic"; all, where the table has none), the partitions of given values (static), or the rows for which a
predicate is TRUE (`ops.replace`).

Called directly, an overwrite replaces what is there at the moment of publishing. Staged, it conflicts with whatever was
added to its target since: nobody has judged that.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pyarrow as pa

from lakelib.catalog import files
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.commit import Conflict, Reason
from lakelib.model.effect import UNKNOWN, Effect
from lakelib.model.flags import checked_flag
from lakelib.model.predicate import Constant, Predicate, Raw
from lakelib.model.roles import Right
from lakelib.model.schema import Column
from lakelib.model.table import CommitKind, Proposal, ReadScope, Snapshot, TableInfo, TableRef
from lakelib.ops.commit import Redo, Work, commit_work, give_up, schema_again, stage_work
from lakelib.ops.moves import Replaced
from lakelib.ops.replace import replace_work
from lakelib.ops.request import WriteRequest, parse_write
from lakelib.ops.runtime import Runtime
from lakelib.ops.write import WrittenRows, draft_replaced, propose, under_own_ids, write_rows
from lakelib.plan.declare import Declared, declare_field
from lakelib.plan.literals import all_equal, in_any_partition, one_of
from lakelib.plan.scan import count_known_rows
from lakelib.rows.inside import InsideCheck
from lakelib.rows.raw_arrays import arrow_values
from lakelib.rows.values import raw_value
from lakelib.work.sources import RowSource

_KEYS = {Reason.KEYS_ADDED, Reason.KEYS_LOST}
_IN_ITS_TARGET = {Reason.ROWS_ADDED, Reason.ROWS_REMOVED, Reason.INPUT_GONE, Reason.ROLLED_BACK}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    """The partitions that have one of these values in one column; None is NULL."""

    column: str
    values: tuple[Any, ...]


def parse_overwrite(data: Any, overwrite_schema: bool, **options: Any) -> tuple[RowSource, WriteRequest]:
    """The rows, and what is asked of them; raises what `parse_write` does."""
    source, request = parse_write(data, "partitions", "where", "overwrite_schema", **options)
    if not checked_flag("overwrite_schema", overwrite_schema):
        return source, request
    if request.merge_schema:
        raise InvalidInputError(
            "Both merge_schema and overwrite_schema say what becomes of the schema.",
            kind="invalid_option",
            remedy="Give one of them.",
        )
    stored = [field for field in source.schema if field.name.casefold() not in {*map(str.casefold, request.aux_order)}]
    return source, replace(request, becomes=tuple(declare_field(field.with_nullable(True)) for field in stored))


def overwrite(
    runtime: Runtime,
    ref: TableRef,
    source: RowSource,
    partitions: str | Mapping[str, Any],
    request: WriteRequest,
    where: str | Predicate | None = None,
) -> Snapshot:
    """Replaces the target's rows and publishes."""
    return commit_work(runtime, ref, request, _work(runtime, source, partitions, request, where))


def stage_overwrite(
    runtime: Runtime,
    ref: TableRef,
    source: RowSource,
    partitions: str | Mapping[str, Any] | AnyOf,
    request: WriteRequest,
    where: str | Predicate | None = None,
) -> UUID:
    """The replacement as a staged commit."""
    return stage_work(runtime, ref, request, _work(runtime, source, partitions, request, where))


def _work(
    runtime: Runtime,
    source: RowSource,
    partitions: str | Mapping[str, Any] | AnyOf,
    request: WriteRequest,
    where: str | Predicate | None,
) -> Work:
    if request.becomes is not None and (where is not None or partitions != "all"):
        raise InvalidInputError(
            "The schema is replaced only where all rows are.",
            kind="invalid_partitions",
            remedy="Leave partitions and where out, or overwrite_schema.",
        )
    if where is not None:
        if partitions != "all":
            raise InvalidInputError(
                "Both where and partitions say what is overwritten.",
                kind="invalid_partitions",
                remedy="Give one of them: a predicate may ask for partition columns.",
            )
        return replace_work(runtime, source, where, request)

    def prepare(table: TableInfo) -> Proposal:
        if partitions == "dynamic":
            return _prepare_dynamic(runtime, table, source, request)
        target = _parse_choice(table, partitions) if isinstance(partitions, AnyOf) else parse_target(table, partitions)
        return _prepare_static(runtime, table, source, target, request)

    right = Right.WRITE if request.becomes is None else Right.OWN
    if request.made_from is not None:  # nothing else is replaced than what the rows were made from
        return Work(prepare=prepare, right=right)
    return Work(prepare=prepare, redo=_redo(source.rereadable), replaces=True, right=right)


def emptying_work(runtime: Runtime, wanted: tuple[Declared, ...]) -> Work:
    """All rows go, and the table has these columns from then on."""

    def prepare(table: TableInfo) -> Proposal:
        draft = draft_replaced(table, wanted, stays_required=False)
        new_schema = draft and under_own_ids(runtime, table, draft)
        scope = ReadScope(whole_table=True, own_partitions=True)
        written = WrittenRows(files=(), rows_in=0, new_schema=new_schema)
        return _propose(table, WriteRequest(), written, _find_files(runtime, table, None), scope)

    return Work(prepare=prepare, redo=_redo(True), replaces=True, right=Right.OWN)


def _redo(is_repeatable: bool) -> Callable[[Conflict, Proposal], Redo]:
    """Whatever was added to its target since, or is gone, it replaces by what was published last."""
    after_schema = schema_again if is_repeatable else give_up

    def redo(conflict: Conflict, proposal: Proposal) -> Redo:
        if set(conflict.reasons) <= _IN_ITS_TARGET:
            return Redo.SAME
        if is_repeatable and set(conflict.reasons) <= _IN_ITS_TARGET | _KEYS:
            return Redo.ANEW
        return after_schema(conflict, proposal)

    return redo


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticTarget:
    """The partitions that have these values; without values the whole table."""

    values: Mapping[Column, Raw | None]

    @property
    def allowed(self) -> Mapping[Column, tuple[Raw | None, ...]]:
        """What rows in it may have."""
        return {column: (raw,) for column, raw in self.values.items()}

    @property
    def predicate(self) -> Predicate | None:
        return all_equal(self.values) if self.values else None

    @property
    def constants(self) -> dict[str, pa.Scalar]:
        return {column.name: arrow_values(column.type, [raw])[0] for column, raw in self.values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenTarget:
    """The partitions that have one of these values in one column."""

    column: Column
    values: tuple[Raw | None, ...]

    @property
    def allowed(self) -> Mapping[Column, tuple[Raw | None, ...]]:
        return {self.column: self.values}

    @property
    def predicate(self) -> Predicate:
        return one_of(self.column, self.values)

    @property
    def constants(self) -> dict[str, pa.Scalar]:
        """None: which of them a row is of, it has to say."""
        return {}


def _parse_choice(table: TableInfo, choice: AnyOf) -> ChosenTarget:
    raws = [parse_target(table, {choice.column: value}).values for value in choice.values]
    (column,) = {column for each in raws for column in each}
    return ChosenTarget(column=column, values=tuple(raw for each in raws for raw in each.values()))


def parse_target(table: TableInfo, partitions: str | Mapping[str, Any]) -> StaticTarget:
    """Raises InvalidInputError unless `partitions` is "all" or names partition columns with fitting values."""
    if partitions == "all":
        return StaticTarget(values={})
    if not isinstance(partitions, Mapping) or not partitions:
        raise InvalidInputError(
            f"partitions is {partitions!r}.",
            kind="invalid_partitions",
            remedy='Give "all", "dynamic", or values of partition columns: {"dt": "2026-11-18"}.',
        )
    by_name = {column.name.casefold(): column for column in table.partition_by}
    values: dict[Column, Raw | None] = {}
    for name, value in partitions.items():
        column = by_name.get(str(name).casefold())
        if column is None:
            raise InvalidInputError(
                f"{name!r} is no partition column of {table.full_name}.",
                kind="invalid_partitions",
                remedy=f"Its partition columns: {', '.join(column.name for column in table.partition_by) or 'none'}.",
            )
        if column in values:
            raise InvalidInputError(
                f"partitions names the column {column.name!r} twice.", kind="invalid_partitions", remedy="Name it once."
            )
        values[column] = None if value is None else _parse_value(column, value)
    return StaticTarget(values=values)


def _parse_value(column: Column, value: Any) -> Raw:
    try:
        return raw_value(column.type, value)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"partitions: column {column.name!r}: {error.message}", kind="invalid_partitions", remedy=error.remedy
        ) from None


def _prepare_static(
    runtime: Runtime,
    table: TableInfo,
    source: RowSource,
    target: StaticTarget | ChosenTarget,
    request: WriteRequest,
) -> Proposal:
    written = write_rows(
        runtime,
        table,
        source.with_constants(target.constants),
        request,
        file_kind=CommitKind.OVERWRITE.value,
        inside=InsideCheck(partition_by=table.partition_by, values=target.allowed),
        replaced=Replaced(where=target.predicate or Constant(value=True)),
    )
    found = _find_files(runtime, table, target.predicate)
    scope = ReadScope(
        whole_table=not target.allowed,
        partition_ids=tuple(found.partitions),
        where=target.predicate,
        own_partitions=True,
    )
    return _propose(table, request, written, found, scope)


def _prepare_dynamic(runtime: Runtime, table: TableInfo, source: RowSource, request: WriteRequest) -> Proposal:
    written = write_rows(
        runtime, table, source, request, file_kind=CommitKind.OVERWRITE.value, replaced=Replaced(own=True)
    )
    keys = {file.partition_key for file in written.row_files}
    found = _find_files(runtime, table, in_any_partition(table.partition_by, keys))
    kept = {partition.id for partition in found.partitions.values() if partition.key in keys}
    found = files.FoundFiles(
        files=tuple(file for file in found.files if file.partition_id in kept), partitions=found.partitions
    )
    return _propose(table, request, written, found, ReadScope(own_partitions=True))


def _propose(
    table: TableInfo, request: WriteRequest, written: WrittenRows, found: files.FoundFiles, scope: ReadScope
) -> Proposal:
    removed = tuple(file.id for file in found.files)
    effect = UNKNOWN
    if not written.files:
        gone = count_known_rows(found.files, found.partitions, merges=bool(table.primary_key_ids))
        effect = UNKNOWN if gone is None else Effect(inserted=0, updated=0, deleted=gone)
    return propose(
        table, CommitKind.OVERWRITE, request, written, removed_file_ids=removed, read_scope=scope, effect=effect
    )


def _find_files(runtime: Runtime, table: TableInfo, predicate: Predicate | None) -> files.FoundFiles:
    return files.load_files(
        runtime.catalog,
        files.FileQuery(
            table_id=table.id,
            snapshot_id=table.head_id,
            partition_by=table.partition_by,
            partition_predicate=predicate,
        ),
    )
