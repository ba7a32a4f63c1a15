"""The public API: Result. What a query gives, read when it is asked for; or what another statement has done."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lakelib import handoff
from lakelib.errors import InvalidInputError
from lakelib.model.html import html_table
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_change import Told
from lakelib.ops.sql_plan import QueryExplanation, QueryPlan
from lakelib.plan.describe import one_line


class Result:
    """The rows of a query. It is pinned to the snapshots of one moment: reading twice gives the same rows, in the order
    that the query asks for, if it asks for one. A statement that changes something has done so by then: its one row
    tells what."""

    def __init__(self, runtime: Runtime, plan: QueryPlan | Told) -> None:
        self._runtime = runtime
        self._plan = plan

    @property
    def schema(self) -> pa.Schema:
        """Of the rows."""
        return self._plan.schema

    @property
    def text(self) -> str:
        """The query."""
        return self._plan.text

    @property
    def asks_explanation(self) -> bool:
        """Whether the text begins with EXPLAIN: `explain()` answers it."""
        return self._plan.is_explained

    def to_arrow(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self.to_batches(), self.schema)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as a stream. What is read is held from the first batch until the iterator's end, or its close."""
        if isinstance(self._plan, Told):
            return (batch for batch in self._plan.rows.to_batches())
        from lakelib.ops import sql  # it takes long to load

        return sql.stream_batches(self._runtime, self._plan)

    def to_reader(self) -> pa.RecordBatchReader:
        """The same stream as an Arrow reader; see `Scan.to_reader`."""
        return handoff.to_reader(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """What takes Arrow takes a result, too."""
        return handoff.to_capsule(self, requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def head(self, rows: int = 10) -> pa.Table:
        """The first so many rows."""
        if not isinstance(rows, int) or isinstance(rows, bool) or rows < 0:
            raise InvalidInputError(
                f"{rows!r} is no number of rows.", kind="invalid_limit", remedy="Give a whole number from 0."
            )
        found, missing = [], rows
        batches = self.to_batches()
        try:
            while missing > 0 and (batch := next(batches, None)) is not None:
                found.append(batch.slice(0, missing))
                missing -= found[-1].num_rows
        finally:
            batches.close()  # type: ignore[attr-defined]
        return pa.Table.from_batches(found, self.schema)

    def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame (pandas must be installed)."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """All rows as a Polars DataFrame (Polars must be installed)."""
        return handoff.to_polars(self)

    def count(self) -> int:
        """How many rows there are."""
        return sum(batch.num_rows for batch in self.to_batches())

    def explain(self) -> QueryExplanation:
        """What is read of each table, what was pruned and why, and what the engine makes of it; of a statement that
        changes something what it would do, where the text begins with EXPLAIN. Prints as text."""
        if isinstance(self._plan, Told):
            if self._plan.explanation is None:
                raise InvalidInputError(
                    "The statement was carried out.", kind="carried_out", remedy="Ask before: EXPLAIN INSERT INTO …."
                )
            return self._plan.explanation
        from lakelib.ops import sql  # it takes long to load

        return sql.explain_plan(self._runtime, self._plan)

    def _repr_html_(self) -> str:
        """Says what would be read, and reads nothing."""
        columns = [(field.name, str(field.type)) for field in self.schema]
        return html_table(repr(self), ("column", "type"), columns, len(columns))

    def __repr__(self) -> str:
        return f"<Result of {one_line(' '.join(self.text.split()))}: {one_line(', '.join(self.schema.names))}>"
