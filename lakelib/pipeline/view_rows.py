"""What the transform sees of a table, whichever engine it runs on: its rows as they are, or what has changed in it.

Where changes are followed, and all is read, each row is seen as one that came.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from lakelib import Lake
from lakelib.dataclass import dataclass
from lakelib.errors import ExpiredError
from lakelib.model.changes import INSERT, UPSERT, ChangeView
from lakelib.model.schema import COMMIT_COLUMN, Column
from lakelib.ops import changes
from lakelib.ops.changes import ChangesPlan, ChangesRequest
from lakelib.ops.create import find_table
from lakelib.ops.frame import read_frame
from lakelib.ops.read import ScanPlan, ScanRequest, plan_scan, schema_at, stream_batches, view_after
from lakelib.pipeline.partitions import PinnedRead
from lakelib.plan.changes import told_columns
from lakelib.plan.literals import all_of
from lakelib.plan.where import bind_where


@dataclass(frozen=True)  # without slots: a plan is made once
class ViewRows:
    """A view of a transform. With columns it has just these, in their order."""

    lake: Lake
    read: PinnedRead
    chosen: tuple[str, ...] | None = None
    where: str | None = None
    """What holds of all rows that can make a difference, where they are read as they are."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """All that the view can have."""
        if isinstance(self.plan, ChangesPlan):
            schema = schema_at(self.lake.runtime, self.plan.table, self.plan.range.until_id)
            return (*schema.columns, *self._added)
        return (*self.plan.schema.columns, *self._added)

    @property
    def size_bytes(self) -> int:
        return sum({file.id: file.size_bytes for split in self.plan.splits for file in split.files}.values())

    def narrowed(self, columns: Sequence[Column], where: str | None) -> "ViewRows":
        """Of which just these columns are looked at."""
        return replace(self, chosen=tuple(column.name for column in columns), where=where)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """In process."""
        runtime = self.lake.runtime
        if isinstance(self.plan, ChangesPlan):
            found = changes.stream_batches(runtime, self.plan)
        else:
            found = (self._told(batch) for batch in stream_batches(runtime, self.plan))
        return (batch if self.chosen is None else batch.select(list(self.chosen)) for batch in found)

    def frame(self, session: Any) -> Any:
        """As a data frame of Spark's."""
        if isinstance(self.plan, ChangesPlan):
            return changes.read_frame(self.lake.runtime, self.plan, session)
        frame = read_frame(self.lake.runtime, self.plan, session)
        return frame.selectExpr("*", f"'{self._said}' AS {self._added[1].name}") if self._added else frame

    @cached_property
    def plan(self) -> ScanPlan | ChangesPlan:
        read = self.read
        if read.asked is None or read.limit is not None:
            return self._plan_scan(self.chosen, self.where)
        if read.range is None or read.range.is_whole:
            return self._plan_scan((*self._own(self.chosen or self._names()), COMMIT_COLUMN), None)
        # What differs is told by all columns.
        own = None if self.chosen is None or read.asked == ChangeView.NET.value else self._own(self.chosen)
        return plan_changes(self.lake, read, own)

    @property
    def _added(self) -> tuple[Column, ...]:
        """What is told of each row."""
        return told_columns(None if self.read.limit is not None else self.read.asked)

    @property
    def _said(self) -> str:
        """What is said of a row of a table that is read as a whole."""
        return INSERT if self.read.asked == ChangeView.NET.value else UPSERT

    def _told(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._added:
            return batch
        said = pa.repeat(pa.scalar(self._said), batch.num_rows)
        return batch.append_column(self._added[1].name, said)

    def _names(self) -> tuple[str, ...]:
        return find_table(self.lake.runtime, self.read.table).schema.names

    def _own(self, names: Sequence[str]) -> tuple[str, ...]:
        """The table's columns among them: one at least, for rows have to be counted."""
        told = {column.name for column in self._added}
        return tuple(name for name in names if name not in told) or self._names()[:1]

    def _plan_scan(self, columns: tuple[str, ...] | None, where: str | None) -> ScanPlan:
        read, runtime = self.read, self.lake.runtime
        info = find_table(runtime, read.table)
        limit = None if read.limit is None else read.limit.predicate
        bound = where if limit is None else _both(limit, bind_where(where, info.schema))
        request = ScanRequest(columns=columns, where=bound)
        if read.staged:
            pinned = replace(info, head_id=read.snapshot_id)
            return plan_scan(runtime, pinned, replace(request, staged=view_after(read.staged)))
        return plan_scan(runtime, info, replace(request, at=read.snapshot_id or None))


def _both(limit: Any, other: Any) -> Any:
    return limit if other is None else all_of([limit, other])


def plan_changes(lake: Lake, read: PinnedRead, columns: tuple[str, ...] | None = None) -> ChangesPlan:
    """The changes that are followed. Raises ExpiredError, which says what is to be done about it."""
    assert read.range is not None, "changes are read from a position"
    request = ChangesRequest(
        after=read.range.from_id, until=read.range.to_id, view=read.asked or "latest", columns=columns
    )
    try:
        return changes.plan_changes(lake.runtime, find_table(lake.runtime, read.table), request)
    except ExpiredError as error:
        raise ExpiredError(
            f"{error.message} The consumer {read.range.consumer!r} was not moved for longer than it keeps history.",
            kind="changes_expired",
            remedy="Make the table from scratch: --full, or the param full of its DAG. It is kept for longer if the"
            " spec says so: reads: {VIEW: {table, changes, keep_for: 14d}}.",
        ) from error
