"""The public API: Scan. What was asked for is decided when the scan is made; rows are read when they are asked for."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lakelib import handoff
from lakelib.model.changes import ScanView
from lakelib.model.flags import checked_flag
from lakelib.model.html import html_table
from lakelib.model.positions import Lag
from lakelib.model.predicate import Predicate
from lakelib.ops import explain, frame, read
from lakelib.ops.runtime import Runtime
from lakelib.plan.describe import describe_predicate, one_line


class Scan:
    """Rows of one snapshot of a table. The scan is pinned to it: reading twice gives the same rows."""

    def __init__(self, runtime: Runtime, plan: read.ScanPlan) -> None:
        self._runtime = runtime
        self._plan = plan

    @property
    def schema(self) -> pa.Schema:
        """Of the rows that the scan gives."""
        return self._plan.output_schema

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that is read; None for a table without one."""
        return self._plan.snapshot_id or None

    @property
    def view(self) -> str:
        """ "merged", "read_optimized" or "unmerged"."""
        return self._plan.view.value

    @property
    def lag(self) -> Lag:
        """How far the view "read_optimized" is behind the snapshot: by what no compaction has taken in. Other
        views are not behind."""
        return read.find_lag(self._runtime, self._plan)

    def to_arrow(self) -> pa.Table:
        """All rows."""
        return read.read_table(self._runtime, self._plan)

    def head(self, rows: int = 10) -> pa.Table:
        """The first so many rows, without reading much more; the same ones each time."""
        return read.read_some(self._runtime, self._plan, rows)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as a stream, a few batches ahead of the consumer: memory does not grow with the table."""
        return read.stream_batches(self._runtime, self._plan)

    def to_reader(self) -> pa.RecordBatchReader:
        """The same stream as an Arrow reader, to hand on to whatever takes one.

        The snapshot is held from the first batch until the reader is at its end, is closed, or is dropped. An error
        while reading reaches the consumer as Arrow's own, with lakelib's text in it: `to_batches` raises lakelib's.
        """
        return handoff.to_reader(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """What takes Arrow takes a scan, too."""
        return handoff.to_capsule(self, requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame (pandas must be installed)."""
        return self.to_arrow().to_pandas()

    def to_polars(self, *, lazy: bool = False) -> Any:
        """All rows as a Polars DataFrame. With `lazy` a LazyFrame, which reads when it is collected: the columns that
        its query needs, and of the rows those that may match what it asks of them. It reads the same snapshot then."""
        if not checked_flag("lazy", lazy):
            return handoff.to_polars(self)
        return handoff.to_lazy_polars(self, self._plan.schema if self._plan.view is ScanView.MERGED else None)

    def to_duckdb(self, connection: Any = None) -> Any:
        """The rows as a relation of a DuckDB connection, its default one unless told. They are read each time that the
        relation is asked for, as a stream, in the columns that are."""
        return handoff.to_duckdb(self.schema, lambda names: self.narrowed(names, None).to_batches(), connection)

    def narrowed(self, columns: Sequence[str], where: Predicate | None) -> "Scan":
        """The same rows in fewer columns, as far as a predicate holds: for lakelib's own parts."""
        return Scan(self._runtime, read.narrow_scan(self._runtime, self._plan, columns, where))

    def to_spark(self, session: Any) -> Any:
        """The rows as a DataFrame of a Spark session, which may be a remote one (Spark Connect).

        Nothing is read until Spark is told to. The snapshot is held for a day from now on.
        """
        return frame.read_frame(self._runtime, self._plan, session)

    def count(self) -> int:
        """How many rows there are."""
        return read.count_rows(self._runtime, self._plan)

    def explain(self) -> explain.Explanation:
        """What will be read, what was pruned, and why. Prints as text."""
        return explain.explain_scan(self._runtime, self._plan)

    def _repr_html_(self) -> str:
        """Says what would be read, and reads nothing."""
        columns = [(column.name, column.type) for column in self._plan.target.columns]
        return html_table(repr(self), ("column", "type"), columns, len(columns))

    def __repr__(self) -> str:
        columns = one_line(", ".join(column.name for column in self._plan.target.columns))
        predicate = self._plan.predicate
        where = "" if predicate is None else f" where {one_line(describe_predicate(predicate))}"
        view = "" if self._plan.view is ScanView.MERGED else f" ({self.view})"
        return f"<Scan{view} of {self._plan.table.full_name} at snapshot {self.snapshot_id}: {columns}{where}>"
