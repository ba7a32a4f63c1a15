"""Use case: what has changed in a table is read.

Step by step: which commits are meant; the files that came or went by them; whether what is left of the past tells all
that is asked for; splits; then, while the snapshots are held that have their files, the changes.
"""

import operator
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, SupportsIndex

import pyarrow as pa

from lakelib.catalog import files, snapshots
from lakelib.catalog.leases import Lease
from lakelib.dataclass import dataclass
from lakelib.errors import ExpiredError, InvalidInputError, NotFoundError
from lakelib.model.changes import ChangeSplit, ChangeView, view_of
from lakelib.model.files import DataFile
from lakelib.model.predicate import Predicate
from lakelib.model.schema import TableSchema
from lakelib.model.table import TableInfo
from lakelib.ops import consumers
from lakelib.ops.hold import FRAME_HOLD, Held, take
from lakelib.ops.read import (
    choose_columns,
    file_query,
    load_schema,
    schema_at,
    tagged,
    target_of,
)
from lakelib.ops.runtime import Runtime
from lakelib.plan.changes import Range, Touched, arrange_changes, can_be_told, find_touched, first_told, needs_states
from lakelib.plan.evolve import widen_to
from lakelib.plan.meant import CONSUMER_PREFIX, TAG_PREFIX, parse_at, wrong_at
from lakelib.plan.prune import key_part
from lakelib.plan.where import bind_where
from lakelib.work import engines
from lakelib.work.changes import ChangeTarget, change_target, read_changes
from lakelib.work.parallel import collect_in_order, stream_as_ready

Bound = None | SupportsIndex | str | datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesRequest:
    after: Bound = None
    until: Bound = None
    view: str = ChangeView.LATEST.value
    columns: tuple[str, ...] | None = None
    where: str | Predicate | None = None
    both_ways: bool = False
    """Whether the bounds may come in either order."""
    schema_id: int | None = None
    """In the columns of this version of the schema; None: in those of the last snapshot's time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesPlan:
    """What will be read. Pinned: running it twice gives the same changes."""

    table: TableInfo
    range: Range
    predicate: Predicate | None
    query: files.FileQuery
    target: ChangeTarget
    splits: tuple[ChangeSplit, ...]
    holds: tuple[tuple[int | None, int], ...]
    """The snapshots that have the files: each alone, or all from one to another."""

    @property
    def bounds(self) -> tuple[int, int]:
        """As they were given: backwards the first is the later one."""
        first, last = self.range.after_id, self.range.until_id
        return (last, first) if self.target.backwards else (first, last)


def plan_changes(runtime: Runtime, table: TableInfo, request: ChangesRequest) -> ChangesPlan:
    """Decides what to read. Raises InvalidInputError for bounds, a view, columns or a predicate that are wrong,
    NotFoundError for a snapshot that is not there, ExpiredError where the past does not tell it any more."""
    view = view_of(ChangeView, request.view)
    first_id, last_id = _bounds(runtime, table, request)
    after_id, until_id = sorted((first_id, last_id))
    if request.schema_id is None:
        schema = schema_at(runtime, table, last_id or until_id or table.head_id)
        if first_id > last_id:
            schema = widen_to(schema, table.schema)
    else:
        schema = load_schema(runtime, table, request.schema_id)
    columns = choose_columns(schema, request.columns)
    predicate = bind_where(request.where, schema)
    range_ = Range(
        after_id=after_id,
        until_id=until_id,
        view=view,
        steps=snapshots.list_steps(runtime.catalog, table.id, after_id, until_id),
        has_key=bool(table.primary_key_ids),
        asks_after=bool(table.sequence_ids) or not table.merge.is_newest,
        moves_keys=table.options.cross_partition,
    )
    query = _query(table, schema, range_, predicate)
    splits = _splits(runtime, table, range_, query)
    base = target_of(runtime, table, schema, columns, predicate, [file for split in splits for file in split.files])
    return ChangesPlan(
        table=table,
        range=range_,
        predicate=predicate,
        query=query,
        target=replace(
            change_target(base, schema, view=view, after_id=after_id),
            backwards=first_id > last_id,
            moves_keys=table.options.cross_partition,
        ),
        splits=tuple(splits),
        holds=_holds(range_, splits),
    )


def read_table(runtime: Runtime, plan: ChangesPlan) -> pa.Table:
    """All changes, in the order of the splits."""
    with held(runtime, plan):
        parts = collect_in_order(plan.splits, _reading(runtime, plan), runtime.read_threads)
    return pa.concat_tables([pa.Table.from_batches([], plan.target.output_schema), *parts])


def stream_batches(runtime: Runtime, plan: ChangesPlan) -> Iterator[pa.RecordBatch]:
    """The changes in batches. Closing the iterator ends the read."""
    threads = 1 if plan.range.view is ChangeView.ALL else runtime.read_threads
    with held(runtime, plan):
        for part in stream_as_ready(plan.splits, _reading(runtime, plan), threads):
            yield from part.to_batches(max_chunksize=plan.table.options.read_batch_rows)


def read_frame(runtime: Runtime, plan: ChangesPlan, session: Any) -> Any:
    """The changes as a Spark data frame, read when Spark is told to: the snapshots stay held for a day."""
    engines.require_spark()
    hold_changes_for_spark(runtime, plan)
    return engines.read_change_frame(session, runtime.storage, plan.target, plan.splits)


def hold_changes_for_spark(runtime: Runtime, plan: ChangesPlan) -> list[Lease]:
    """Holds the plan's snapshots for a day, as `read.hold_for_spark` does."""
    return [take(runtime, plan.table, first_id, last_id, FRAME_HOLD) for first_id, last_id in plan.holds]


def count_rows(runtime: Runtime, plan: ChangesPlan) -> int:
    """How many changes there are."""
    return sum(count_by_kind(runtime, plan).values())


def count_by_kind(runtime: Runtime, plan: ChangesPlan) -> dict[str, int]:
    """How many changes there are of each kind."""
    with held(runtime, plan):
        return engines.count_changes(None, runtime.storage, plan.target.narrow, plan.splits, runtime.read_threads)


def _reading(runtime: Runtime, plan: ChangesPlan) -> Any:
    return lambda split: read_changes(runtime.storage, plan.target, split)


# What is meant


def _bounds(runtime: Runtime, table: TableInfo, request: ChangesRequest) -> tuple[int, int]:
    """Neither given is the newest commit that has changed rows; the last alone is that one commit."""
    after, until = request.after, request.until
    until_id = table.head_id if until is None else resolve_bound(runtime, table, until, "until")
    if after is None and until is None:
        until_id = snapshots.find_loud_id(runtime.catalog, table.id, until_id) or until_id
    after_id = max(0, until_id - 1) if after is None else resolve_bound(runtime, table, after, "after")
    if after_id > until_id and not request.both_ways:
        raise InvalidInputError(
            f"after is {after!r}, snapshot {after_id} of {table.full_name}, and until is snapshot {until_id}.",
            kind="invalid_range",
            remedy="Give bounds in the order of the table's history; diff(a, b) takes both orders.",
        )
    return after_id, until_id


def resolve_bound(runtime: Runtime, table: TableInfo, bound: Bound, what: str) -> int:
    """The number of the snapshot that is meant, which may have expired; 0 is before the first."""
    if isinstance(bound, str) and bound.startswith(CONSUMER_PREFIX):
        return consumers.find_consumer(runtime, table.ref, bound.removeprefix(CONSUMER_PREFIX)).position
    match parse_at(bound, what) if isinstance(bound, str) else bound:
        case str() as tag:
            return tagged(runtime, table, tag.removeprefix(TAG_PREFIX)).id
        case datetime() as moment if moment.tzinfo is not None:
            found = snapshots.find_id_at(runtime.catalog, table.id, moment)
            if found is None:
                raise snapshots.missing_moment(runtime.catalog, table, moment)
            return found
        case other:
            return _numbered(table, other, what)


def _numbered(table: TableInfo, bound: object, what: str) -> int:
    if isinstance(bound, bool):
        raise wrong_at(bound, what)
    try:
        number = operator.index(bound)  # type: ignore[arg-type]
    except TypeError:
        raise wrong_at(bound, what) from None
    if number < 0:
        raise wrong_at(bound, what)
    if number > table.head_id:
        raise NotFoundError(
            f"{what} is snapshot {number}, and the newest of {table.full_name} is {table.head_id}.",
            kind="snapshot_not_found",
            remedy="history() lists the snapshots.",
        )
    return number


# Where it is found


def _query(table: TableInfo, schema: TableSchema, range_: Range, predicate: Predicate | None) -> files.FileQuery:
    """By what all versions of a row share."""
    fixed = key_part(predicate, table.primary_key_ids + table.partition_ids) if range_.has_key else predicate
    query = file_query(table, schema, range_.until_id, fixed)
    return replace(query, since=range_.after_id, moved_only=True)


def _splits(runtime: Runtime, table: TableInfo, range_: Range, query: files.FileQuery) -> list[ChangeSplit]:
    if range_.after_id == range_.until_id:
        return []
    moved = files.load_files(runtime.catalog, query)
    touched = find_touched(range_, moved.files)
    if not can_be_told(range_, touched):
        raise _expired(table, range_, touched)
    if range_.is_known and not touched.partition_ids:
        return []
    found, partitions = moved.files, moved.partitions
    if needs_states(range_, touched):
        ids = touched.partition_ids if range_.is_known else frozenset(partitions)
        past = files.load_files(runtime.catalog, replace(query, moved_only=False, partition_ids=tuple(sorted(ids))))
        found, partitions = past.files, past.partitions
    return arrange_changes(range_, touched, found, partitions)


def _expired(table: TableInfo, range_: Range, touched: Touched) -> ExpiredError:
    first = first_told(range_, touched)
    left = next((step.id for step in range_.steps if step.is_kept and first is not None and step.id >= first), None)
    remedy = "A consumer, or a tag, keeps history from expiring."
    since = "" if first is None else f"; it can be told from snapshot {first} on"
    return ExpiredError(
        f"What has changed in {table.full_name} after snapshot {range_.after_id} and until snapshot {range_.until_id}"
        f" cannot be told any more: snapshots have expired{since}.",
        kind="changes_expired",
        remedy=remedy if left is None else f"Read the table at snapshot {left}, and the changes after it. {remedy}",
    )


def _holds(range_: Range, splits: Sequence[ChangeSplit]) -> tuple[tuple[int | None, int], ...]:
    """The last snapshot and the first have most of the files; others are held only where it takes them."""
    kept = [step.id for step in range_.steps if step.is_kept]
    ends = [snapshot_id for snapshot_id in (range_.until_id, range_.after_id) if snapshot_id in kept]
    order = [*ends, *kept]

    def pin_of(file: DataFile) -> int:
        added, removed = file.added_snapshot or 0, file.removed_snapshot
        return next(one for one in order if added <= one and (removed is None or one < removed))

    pins = sorted({pin_of(file) for split in splits for file in split.files})
    if len(pins) > len(ends) and all(step.is_kept for step in range_.steps if pins[0] <= step.id <= pins[-1]):
        return ((pins[0], pins[-1]),)
    return tuple((None, pin) for pin in pins)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pin:
    table: TableInfo
    snapshot_id: int
    splits: Sequence[Any]


@contextmanager
def held(runtime: Runtime, plan: ChangesPlan) -> Iterator[None]:
    """The snapshots that have the files stay for as long as they are being read."""
    with ExitStack() as stack:
        for first_id, last_id in plan.holds or ((None, plan.range.until_id),):
            pin = _Pin(table=plan.table, snapshot_id=last_id, splits=plan.splits)
            stack.enter_context(Held(runtime, pin, first_id))
        yield
