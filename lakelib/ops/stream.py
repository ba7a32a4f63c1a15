"""Use case: a table's history is followed, batch by batch.

Step by step: a stream begins with the rows of the newest snapshot, or after one that is named; a consumer keeps what it
has not read yet; each batch goes on from where the one before ended, up to what a limit allows; where the table's
columns become others it ends.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pyarrow as pa

from lakelib.catalog import snapshots
from lakelib.catalog.roles import require_right
from lakelib.dataclass import dataclass
from lakelib.errors import CatalogRefusedError, InvalidInputError
from lakelib.model.changes import ChangeView
from lakelib.model.files import Split
from lakelib.model.positions import Ahead, StreamPosition
from lakelib.model.roles import Right
from lakelib.model.schema import COMMIT_COLUMN, Column, TableSchema
from lakelib.model.table import TableInfo
from lakelib.ops.changes import Bound, ChangesPlan, ChangesRequest, plan_changes, resolve_bound
from lakelib.ops.consumers import advance, open_consumer, plan_advance
from lakelib.ops.read import ScanPlan, ScanRequest, choose_columns, load_schema, plan_scan
from lakelib.ops.runtime import Runtime
from lakelib.plan.where import asked_columns, bind_where
from lakelib.work.changes import told_schema

_MOST_AHEAD = 100_000
"""A batch has no more snapshots, whatever its limit."""
_NOTHING_KEPT = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """What a stream is to give, and how much at a time."""

    schema_id: int
    """The version of the table's schema whose columns it has."""
    view: ChangeView = ChangeView.ALL
    says_view: bool = True
    """Whether somebody has chosen it."""
    columns: tuple[str, ...] | None = None
    where: str | None = None
    starting_after: Bound = None
    """None: it begins with the rows of the newest snapshot."""
    consumer: str | None = None
    keep_for: timedelta | None = None
    most_snapshots: int | None = None
    most_rows: int | None = None
    follows_columns: bool = False
    """Whether it may go on with other columns than it had when it was stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What is read between two positions: changes, or parts of the first snapshot."""

    plan: ChangesPlan | ScanPlan
    splits: tuple[Split, ...] = ()
    """Of a snapshot those that the batch has."""


def stream_schema(runtime: Runtime, table: TableInfo, request: StreamRequest) -> pa.Schema:
    """Of a stream's rows. Raises InvalidInputError for columns or a predicate that are wrong, and for a view that
    nobody has chosen where versions are merged: what commits gave is then not what rows are."""
    if not request.says_view and not table.merge.is_newest:
        raise InvalidInputError(
            f"{table.full_name} merges the versions of a key ({table.merge.engine.value}), and its stream does not say"
            " whether it tells what each commit gave, or what rows have become by it.",
            kind="invalid_view",
            remedy='Set the option view: "latest" for rows as they are, "all" for a table that merges the same.',
        )
    schema = load_schema(runtime, table, request.schema_id)
    bind_where(request.where, schema)
    return told_schema(choose_columns(schema, request.columns), request.view)


def check_start(runtime: Runtime, table: TableInfo, request: StreamRequest) -> None:
    """Raises a LakeError for a beginning that is not there."""
    if request.starting_after is not None:
        resolve_bound(runtime, table, request.starting_after, "starting_after")


def next_position(
    runtime: Runtime,
    table: TableInfo,
    request: StreamRequest,
    start: StreamPosition | None,
    *,
    until: int | None = None,
    is_limited: bool = True,
) -> StreamPosition | None:
    """Where the next batch ends; `start` itself if there is nothing to read, None before the first batch. `until` is
    the last snapshot that counts. Raises InvalidInputError where the columns become others."""
    head_id = table.head_id if until is None else min(until, table.head_id)
    if start is None:
        return _begin(runtime, table, request, head_id, is_limited=is_limited)
    _check_same(runtime, table, request, start)
    if start.parts is not None:
        return replace(start, parts=_next_part(runtime, table, request, start, is_limited), since=None)
    last_id = _last_of_batch(runtime, table, request, start.snapshot_id, head_id, is_limited)
    return start if last_id == start.snapshot_id else _moved(runtime, table, request, start, last_id)


def plan_batch(
    runtime: Runtime, table: TableInfo, request: StreamRequest, start: StreamPosition | None, end: StreamPosition
) -> Batch:
    """What the batch reads, the same each time. Raises ExpiredError where the past does not tell it any more."""
    _check_same(runtime, table, request, end)
    after_id = end.since if start is None else start.snapshot_id
    if after_id is None or (start is not None and start.parts is not None):
        plan = _plan_first(runtime, table, request, end.snapshot_id)
        begin = 0 if start is None else start.parts
        return Batch(plan=plan, splits=plan.splits[begin : end.parts])
    return Batch(
        plan=plan_changes(
            runtime,
            table,
            ChangesRequest(
                after=after_id,
                until=end.snapshot_id,
                view=request.view.value,
                columns=request.columns,
                where=request.where,
                schema_id=request.schema_id,
            ),
        )
    )


def keep_unread(runtime: Runtime, table: TableInfo, request: StreamRequest, position: StreamPosition) -> None:
    """The consumer is there, and has what comes after the position at the most. It never goes back: what it keeps
    beyond that does no harm."""
    if not _may_keep(runtime, table, request):
        return
    info = open_consumer(runtime, table, position.consumer, request.keep_for, position.snapshot_id)
    if info.position < position.snapshot_id:
        advance(runtime, plan_advance(info, info.position, position.snapshot_id, backwards=False))


# The beginning


def _begin(
    runtime: Runtime, table: TableInfo, request: StreamRequest, head_id: int, *, is_limited: bool
) -> StreamPosition | None:
    """A stream that begins says whom it has chosen to keep its history: the checkpoint knows it from then on."""
    schema = load_schema(runtime, table, request.schema_id)
    position = StreamPosition(
        table_id=table.id,
        snapshot_id=head_id,
        columns=_digest(_shown(schema, request) or ()),
        asked=_asked(request),
        consumer=request.consumer or f"stream-{uuid4().hex[:12]}",
    )
    if request.starting_after is None:
        return _begin_with_rows(runtime, table, request, position, is_limited) if head_id else None
    since = resolve_bound(runtime, table, request.starting_after, "starting_after")
    last_id = _last_of_batch(runtime, table, request, since, head_id, is_limited)
    if last_id <= since:
        return None
    _stand(runtime, table, request, replace(position, snapshot_id=since))
    return replace(position, snapshot_id=last_id, since=since)


def _begin_with_rows(
    runtime: Runtime, table: TableInfo, request: StreamRequest, position: StreamPosition, is_limited: bool
) -> StreamPosition:
    _check_columns(runtime, table, request, _schema_id_at(runtime, table, position.snapshot_id), position.snapshot_id)
    _stand(runtime, table, request, position)
    return replace(
        position, parts=_next_part(runtime, table, request, replace(position, parts=0), is_limited), since=None
    )


def _stand(runtime: Runtime, table: TableInfo, request: StreamRequest, position: StreamPosition) -> None:
    """The consumer keeps what comes after this position, wherever it was before: a stream begins here."""
    if not _may_keep(runtime, table, request):
        return
    info = open_consumer(runtime, table, position.consumer, request.keep_for, position.snapshot_id)
    if info.position != position.snapshot_id:
        advance(runtime, plan_advance(info, info.position, position.snapshot_id, backwards=True))


def _may_keep(runtime: Runtime, table: TableInfo, request: StreamRequest) -> bool:
    """A stream that wants no history kept is for readers, too. Raises CatalogRefusedError, which says so, for one that
    does and may not have it."""
    try:
        require_right(runtime.catalog, Right.WRITE)
    except CatalogRefusedError as error:
        if request.keep_for == _NOTHING_KEPT:
            return False
        raise CatalogRefusedError(
            f"A stream of {table.full_name} has what it has not read yet kept from expiry, by a consumer, and its user"
            f" may not: {error.message}",
            remedy=f'{error.remedy} Or give the option keepFor="0s": no history is kept, and a query that is further'
            " behind than the table's expiry ends with changes_expired.",
        ) from error
    return True


def _plan_first(runtime: Runtime, table: TableInfo, request: StreamRequest, snapshot_id: int) -> ScanPlan:
    """The rows of the snapshot that a stream begins with."""
    schema = load_schema(runtime, table, request.schema_id)
    names = [column.name for column in choose_columns(schema, request.columns) if column.name != COMMIT_COLUMN]
    return plan_scan(
        runtime,
        table,
        ScanRequest(columns=(*names, COMMIT_COLUMN), where=request.where, at=snapshot_id, schema_id=request.schema_id),
    )


def _next_part(
    runtime: Runtime, table: TableInfo, request: StreamRequest, start: StreamPosition, is_limited: bool
) -> int | None:
    """Up to which part of the first snapshot the next batch reads: one at least; None for the rest."""
    if not is_limited or request.most_rows is None:
        return None
    splits = _plan_first(runtime, table, request, start.snapshot_id).splits
    place, rows = start.parts or 0, 0
    while place < len(splits):
        rows += sum(file.row_count for file in splits[place].files)
        if rows > request.most_rows and place > (start.parts or 0):
            return place
        place += 1
    return None


# The changes after it


def _last_of_batch(
    runtime: Runtime, table: TableInfo, request: StreamRequest, after_id: int, head_id: int, is_limited: bool
) -> int:
    """The last snapshot of the batch; `after_id` if no row has changed since. Raises InvalidInputError where the
    columns become others at once."""
    ahead = snapshots.list_ahead(runtime.catalog, table.id, after_id + 1, head_id, _MOST_AHEAD)
    ahead = _before_other_columns(runtime, table, request, ahead)
    if all(one.is_silent for one in ahead):
        return after_id
    return _within_limits(request, ahead) if is_limited else ahead[-1].id


def _within_limits(request: StreamRequest, ahead: Sequence[Ahead]) -> int:
    """The last snapshot that the limits allow: those whose rows did not change cost nothing, and one is read at
    least."""
    taken, rows, last_id = 0, 0, ahead[0].id
    for one in ahead:
        taken += not one.is_silent
        rows += 0 if one.is_silent else max(1, one.row_count)  # what it took away is not known
        is_beyond = (request.most_snapshots is not None and taken > request.most_snapshots) or (
            request.most_rows is not None and rows > request.most_rows
        )
        if is_beyond and taken > 1:
            break
        last_id = one.id
    return last_id


def _moved(
    runtime: Runtime, table: TableInfo, request: StreamRequest, start: StreamPosition, last_id: int
) -> StreamPosition:
    schema = load_schema(runtime, table, request.schema_id)
    columns = _digest(_shown(schema, request) or ())
    return replace(start, snapshot_id=last_id, since=None, columns=columns, consumer=request.consumer or start.consumer)


# Columns that become others


def _before_other_columns(
    runtime: Runtime, table: TableInfo, request: StreamRequest, ahead: Sequence[Ahead]
) -> tuple[Ahead, ...]:
    """The snapshots up to the one that changes the stream's columns. Raises InvalidInputError if that is the first."""
    others = {each for each in {one.schema_id for one in ahead} if _is_other(runtime, table, request, each)}
    for place, one in enumerate(ahead):
        if one.schema_id in others:
            if not place:
                raise _columns_changed(table, one.id)
            return tuple(ahead[:place])
    return tuple(ahead)


def _check_columns(
    runtime: Runtime, table: TableInfo, request: StreamRequest, schema_id: int, snapshot_id: int
) -> None:
    if _is_other(runtime, table, request, schema_id):
        raise _columns_changed(table, snapshot_id)


def _is_other(runtime: Runtime, table: TableInfo, request: StreamRequest, schema_id: int) -> bool:
    """Whether a later version of the schema shows the stream other columns. Older files are read in its own."""
    if schema_id <= request.schema_id:
        return False
    own, other = (load_schema(runtime, table, each) for each in (request.schema_id, schema_id))
    return _shown(own, request) != _shown(other, request)


def _schema_id_at(runtime: Runtime, table: TableInfo, snapshot_id: int) -> int:
    [found] = snapshots.list_ahead(runtime.catalog, table.id, snapshot_id, snapshot_id, 1)
    return found.schema_id


def _shown(schema: TableSchema, request: StreamRequest) -> tuple[tuple[str, str], ...] | None:
    """The columns that a stream has or looks at, as its rows and its predicate see them; None if one is missing."""
    try:
        seen: tuple[Column, ...] = (
            *choose_columns(schema, request.columns),
            *asked_columns(schema, bind_where(request.where, schema)),
        )
    except InvalidInputError:
        return None
    return tuple((column.name, column.type) for column in seen)


def _check_same(runtime: Runtime, table: TableInfo, request: StreamRequest, position: StreamPosition) -> None:
    """Raises InvalidInputError if the checkpoint is of another table, or of a stream that was asked for other rows."""
    if position.table_id != table.id:
        raise InvalidInputError(
            f"The checkpoint is of another table than {table.full_name} is now: it was dropped, and made again.",
            kind="table_differs",
            remedy="Start the query with a new checkpoint.",
        )
    if position.asked != _asked(request):
        raise InvalidInputError(
            f"The stream of {table.full_name} is asked for another view, or other rows, than its checkpoint is of.",
            kind="stream_differs",
            remedy="Give the options that it began with, or a new checkpoint.",
        )
    shown = _digest(_shown(load_schema(runtime, table, request.schema_id), request) or ())
    if position.columns != shown and not request.follows_columns:
        raise InvalidInputError(
            f"The columns of {table.full_name} are others than those that the stream began with.",
            kind="schema_changed",
            remedy='Give the option schemaChanges="follow" to go on with those that the table has now, or name in'
            " columns those that it had.",
        )


def _columns_changed(table: TableInfo, snapshot_id: int) -> InvalidInputError:
    return InvalidInputError(
        f"The columns of {table.full_name} have changed in snapshot {snapshot_id}; what came before it was read.",
        kind="schema_changed",
        remedy='Load the stream again and start the query, with the option schemaChanges="follow" if its checkpoint is'
        " to be gone on with.",
    )


def _asked(request: StreamRequest) -> str:
    return _digest((request.view.value, request.where or ""))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
