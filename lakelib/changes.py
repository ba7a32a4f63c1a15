"""The public API: Changes. What has happened in a table between two snapshots, read when it is asked for."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lakelib import handoff
from lakelib.model.html import html_table
from lakelib.ops import changes, explain
from lakelib.ops.runtime import Runtime
from lakelib.plan.describe import describe_predicate, one_line


class Changes:
    """Changes of a table after one snapshot and until another: its columns, the commit of each row (`_commit`), and
    what has become of it (`_op`, in the view "net" `_change`). Pinned to both: reading twice gives the same."""

    def __init__(self, runtime: Runtime, plan: changes.ChangesPlan) -> None:
        self._runtime = runtime
        self._plan = plan

    @property
    def schema(self) -> pa.Schema:
        """Of the changes."""
        return self._plan.target.output_schema

    @property
    def table_name(self) -> str:
        return self._plan.table.full_name

    @property
    def after_id(self) -> int:
        """The snapshot after which changes count; 0 is before the first."""
        return self._plan.bounds[0]

    @property
    def until_id(self) -> int:
        """The last snapshot whose changes count."""
        return self._plan.bounds[1]

    @property
    def view(self) -> str:
        """ "latest", "all" or "net"."""
        return self._plan.range.view.value

    def to_arrow(self) -> pa.Table:
        """All changes; in the view "all" in the order of the commits."""
        return changes.read_table(self._runtime, self._plan)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The changes as a stream: memory does not grow with them."""
        return changes.stream_batches(self._runtime, self._plan)

    def to_reader(self) -> pa.RecordBatchReader:
        """The same stream as an Arrow reader; see `Scan.to_reader`."""
        return handoff.to_reader(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """What takes Arrow takes the changes, too."""
        return handoff.to_capsule(self, requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def to_pandas(self) -> Any:
        """All changes as a pandas DataFrame (pandas must be installed)."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """All changes as a Polars DataFrame (Polars must be installed)."""
        return handoff.to_polars(self)

    def to_duckdb(self, connection: Any = None) -> Any:
        """The changes as a relation of a DuckDB connection; see `Scan.to_duckdb`."""
        return handoff.to_duckdb(
            self.schema, lambda names: (batch.select(names) for batch in self.to_batches()), connection
        )

    def to_spark(self, session: Any) -> Any:
        """The changes as a DataFrame of a Spark session, in no order. The snapshots are held for a day from now on."""
        return changes.read_frame(self._runtime, self._plan, session)

    def count(self) -> int:
        """How many changes there are."""
        return changes.count_rows(self._runtime, self._plan)

    def explain(self) -> explain.ChangesExplanation:
        """What will be read, in which way, and what was left out. Prints as text."""
        return explain.explain_changes(self._runtime, self._plan)

    def _repr_html_(self) -> str:
        """Says what would be read, and reads nothing."""
        columns = [(field.name, str(field.type)) for field in self.schema]
        return html_table(repr(self), ("column", "type"), columns, len(columns))

    def __repr__(self) -> str:
        predicate = self._plan.predicate
        where = "" if predicate is None else f" where {one_line(describe_predicate(predicate))}"
        return (
            f"<Changes ({self.view}) of {self._plan.table.full_name}"
            f" after snapshot {self.after_id} until {self.until_id}{where}>"
        )
