"""How far a run reads the changes of tables, for a spec that follows them, and which partitions it makes of these.

The first run reads everything, and so does one from scratch; then each goes on from where the one before has stopped.
A backfill makes partitions from all their rows, and moves nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakelib import InvalidInputError, Lake
from lakelib.dataclass import dataclass
from lakelib.model import sortable
from lakelib.model.changes import ChangeView
from lakelib.model.positions import ReadRange, ranges_of
from lakelib.model.schema import Column
from lakelib.model.table import Attempt, TableInfo
from lakelib.ops import changes
from lakelib.ops.consumers import Standing, look_at_position
from lakelib.ops.create import find_table
from lakelib.ops.overwrite import AnyOf
from lakelib.ops.read import ScanRequest, plan_scan, schema_at
from lakelib.pipeline.partitions import Limit, PinnedRead
from lakelib.pipeline.view_rows import plan_changes
from lakelib.plan.made_anew import Mark, check_column, mark_of, rows_with, value_of
from lakelib.rows.values import python_value, raw_values
from lakelib.specs.table_spec import TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What a run reads, and what it makes of it."""

    reads: tuple[PinnedRead, ...] = ()
    replaces: str | AnyOf | None = None
    """What its rows take the place of; None where the spec says it."""
    is_unchanged: bool = False
    """Nothing has happened in what is followed, and there is nothing else to be read."""

    @property
    def ranges(self) -> tuple[ReadRange, ...]:
        return tuple(read.range for read in self.reads if read.range is not None)


# Where the runs stand


def look_at_positions(lake: Lake, spec: TableSpec, own: TableInfo, *, full: bool) -> tuple[Standing, ...]:
    """How far the runs of the spec have come. It is looked at before what has become of this one: then what is
    published in between is found there. A table that is not there is for reading to tell."""
    found = [
        look_at_position(lake.runtime, own, view, read.table, full=full, keep_for=read.keep_for)
        for view, read in spec.reads.items()
        if read.changes is not None
    ]
    return tuple(standing for standing in found if standing is not None)


def may_be_published(standings: Sequence[Standing], found: Attempt) -> bool:
    """Whether nobody has published since what the same changes have made."""
    by_view = {standing.view: standing for standing in standings}
    return all(each.view in by_view and by_view[each.view].reads_on(each) for each in ranges_of(found.properties))


# What is read


def find_reach(
    lake: Lake,
    spec: TableSpec,
    own: TableInfo,
    reads: Sequence[PinnedRead],
    standings: Sequence[Standing],
    *,
    full: bool,
) -> Reach:
    """Raises InvalidInputError where the positions do not tell what has changed, ExpiredError where the history does
    not."""
    is_first = any(standing.last is None for standing in standings)
    if not full:
        for standing in standings:
            standing.check()
        if is_first and spec.write.mode == "append":
            _check_empty(lake, spec, own)
    ranged = _ranged(reads, standings, is_whole=full or is_first)
    if full or is_first:
        return _whole(spec, ranged, full=full)
    if spec.partition.from_changes:
        marks = _touched(lake, spec, ranged)
        return _of_partitions(lake, spec, own, ranged, sorted(marks, key=str)) if marks else _unchanged(ranged)
    return Reach(reads=ranged, is_unchanged=spec.source is None and not any(_moved(lake, read) for read in ranged))


def find_reach_of_backfill(lake: Lake, spec: TableSpec, own: TableInfo, key: str, reads: Sequence[PinnedRead]) -> Reach:
    """All rows of one partition, where the spec makes partitions of changes; else all rows. Raises InvalidInputError
    for a table to which these would be added once more."""
    if spec.write.mode == "append":
        followed = ", ".join(read.table for read in reads if read.asked is not None)
        raise InvalidInputError(
            f"{spec.table} is added to as {followed} changes: what a backfill of partition {key} adds may be there.",
            kind="appended_already",
            remedy="Make the table from scratch: `lake ingest --full`, or the param full of its DAG.",
        )
    if not spec.partition.from_changes:
        return Reach(reads=tuple(reads))
    return _of_partitions(lake, spec, own, tuple(reads), [key])


def _whole(spec: TableSpec, reads: tuple[PinnedRead, ...], *, full: bool) -> Reach:
    """All there is."""
    makes_partitions = spec.partition.from_changes
    if makes_partitions:
        reads = tuple(replace(read, limit=Limit()) if read.asked is not None else read for read in reads)
    is_empty = spec.source is None and not any(read.snapshot_id for read in reads if read.asked is not None)
    return Reach(reads=reads, replaces="all" if full or makes_partitions else None, is_unchanged=is_empty and not full)


def _unchanged(reads: tuple[PinnedRead, ...]) -> Reach:
    return Reach(reads=reads, is_unchanged=True)


def _of_partitions(
    lake: Lake, spec: TableSpec, own: TableInfo, reads: tuple[PinnedRead, ...], marks: Sequence[Mark]
) -> Reach:
    """All rows of some partitions."""
    every, name = spec.partition.every, spec.partition.column or ""
    (column,) = (each for each in own.partition_by if each.name.casefold() == name.casefold())
    values = tuple(value_of(every, mark, column.type) for mark in marks)
    limited = tuple(read if read.asked is None else _limited(lake, spec, read, marks) for read in reads)
    return Reach(reads=limited, replaces=AnyOf(column=column.name, values=values))


def _limited(lake: Lake, spec: TableSpec, read: PinnedRead, marks: Sequence[Mark]) -> PinnedRead:
    column = _telling(lake, spec, read)
    return replace(read, limit=Limit(predicate=rows_with(spec.partition.every, marks, column)))


def _ranged(reads: Sequence[PinnedRead], standings: Sequence[Standing], *, is_whole: bool) -> tuple[PinnedRead, ...]:
    """The reads with the ranges that are followed. All views of a table show it as at the end of its range."""
    by_view = {standing.view: standing for standing in standings}
    ranges = {
        read.view: by_view[read.view].plan_range(read.snapshot_id, whole=is_whole)
        for read in reads
        if read.view in by_view
    }
    ends: Mapping[str, int] = {each.table: each.to_id for each in ranges.values()}
    return tuple(
        replace(read, range=ranges.get(read.view), snapshot_id=ends.get(read.table, read.snapshot_id)) for read in reads
    )


def _check_empty(lake: Lake, spec: TableSpec, own: TableInfo) -> None:
    """Raises InvalidInputError where the first run would add rows that may be there."""
    if plan_scan(lake.runtime, own, ScanRequest()).splits:
        raise InvalidInputError(
            f"{spec.table} has rows that were not made of changes: its first run would add all of them once more.",
            kind="position_lost",
            remedy="Make the table from scratch: --full, or the param full of its DAG.",
        )


# What has changed


def _moved(lake: Lake, read: PinnedRead) -> bool:
    """Whether there may be changes in what is followed."""
    range_ = read.range
    return range_ is not None and range_.to_id > range_.from_id and bool(plan_changes(lake, read).splits)


def _touched(lake: Lake, spec: TableSpec, reads: Sequence[PinnedRead]) -> set[Mark]:
    """The partitions of the table that changes of what it is made from belong to."""
    return {
        mark_of(spec.partition.every, value)
        for read in reads
        if read.range is not None and read.range.to_id > read.range.from_id
        for value in _values(lake, read, _telling(lake, spec, read))
    }


def _telling(lake: Lake, spec: TableSpec, read: PinnedRead) -> Column:
    """The column by which rows that are read belong to partitions of the table."""
    name = spec.partition.column or ""
    info = find_table(lake.runtime, read.table)
    found = schema_at(lake.runtime, info, read.snapshot_id).find(name) if read.snapshot_id else info.schema.find(name)
    return check_column(found, name, read.table, spec.partition.every)


def _values(lake: Lake, read: PinnedRead, column: Column) -> set[Any]:
    """The values of the column in what has changed. Where the table is cut by it the files tell; else the rows do, as
    they were and as they are."""
    info = find_table(lake.runtime, read.table)
    if column.id in info.partition_ids:
        place = info.partition_ids.index(column.id)
        plan = plan_changes(lake, replace(read, asked=ChangeView.LATEST.value))
        raws = {split.partition.key[place] for split in plan.splits}
        return {None if raw is None else python_value(column.type, sortable.decode(column.type, raw)) for raw in raws}
    plan = plan_changes(lake, replace(read, asked=ChangeView.NET.value))
    found: set[Any] = set()
    for batch in changes.stream_batches(lake.runtime, plan):
        values = raw_values(batch.column(column.name).unique())
        found |= {None if raw is None else python_value(column.type, raw) for raw in values}
    return found
