"""The rows of a query, as a write takes them."""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any, ClassVar

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.ops import sql
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_frame import frame_of
from lakelib.ops.sql_plan import QueryPlan
from lakelib.work import engines
from lakelib.work.sources import RowSource, open_arrow
from lakelib.work.write import WriteWork, WrittenFiles, write_batches


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySource:
    """They come as a stream, in bounded memory. The query is pinned: who reads it again gets the same rows."""

    runtime: Runtime
    plan: QueryPlan
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)
    rereadable: ClassVar[bool] = True
    session: ClassVar[Any] = None
    size_bytes: ClassVar[int] = 0

    @property
    def schema(self) -> pa.Schema:
        added = [pa.field(name, value.type) for name, value in self.constants.items()]
        return pa.schema([*self.plan.schema, *added])

    def batches(self) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        for batch in sql.stream_batches(self.runtime, self.plan):
            added = [pa.repeat(value, batch.num_rows) for value in self.constants.values()]
            yield pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)

    def check(self, work: WriteWork) -> None:
        work.align(self.schema)

    def write(self, work: WriteWork, *, threads: int, distribution: str) -> WrittenFiles:
        return write_batches(work, work.align(self.schema), self.batches(), threads)

    def with_constants(self, constants: Mapping[str, pa.Scalar]) -> RowSource:
        present = {name.casefold() for name in self.schema.names}
        missing = {name: value for name, value in constants.items() if name.casefold() not in present}
        return replace(self, constants={**self.constants, **missing})


def source_of(runtime: Runtime, plan: QueryPlan) -> RowSource:
    """Rows that stand in the text are taken as they are: what is small is written in one step. What Spark computes is
    written by its tasks."""
    if runtime.session is not None:
        return engines.open_source(frame_of(runtime, plan))
    source = QuerySource(runtime=runtime, plan=plan)
    return source if plan.plans else open_arrow(pa.Table.from_batches(source.batches(), source.schema))
