"""Use case: a statement whose work was published before, under its idempotency key. Its tables are not looked at again,
whatever has become of them since."""

from uuid import UUID

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.model.table import CommitKind, Snapshot, TableInfo
from lakelib.ops import sql, write
from lakelib.ops.commit import find_done
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_change import Told, tell
from lakelib.ops.sql_plan import QueryExplanation
from lakelib.plan.sql_insert import Insert
from lakelib.plan.sql_revise import Revise
from lakelib.rows.types import arrow_type
from lakelib.work.engines import open_source


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneChange:
    """There is nothing left to do."""

    runtime: Runtime
    statement: Insert | Revise
    table: TableInfo
    snapshot: Snapshot
    """That has done it."""

    @property
    def takes_away(self) -> bool:
        return False

    @property
    def word(self) -> str:
        return self.statement.word

    def explain(self) -> QueryExplanation:
        return QueryExplanation(change=f"{self.word} {self.table.full_name}: snapshot {self.snapshot.id} has done it")

    def carry_out(self, request: WriteRequest) -> Told:
        return tell(self.statement.parsed.text, self.word, self.table.full_name, self.snapshot)

    def stage(self, request: WriteRequest) -> UUID:
        """A commit of no rows, which as a part of its transaction becomes the snapshot that has done it."""
        columns = [(column.name, arrow_type(column.type)) for column in self.table.schema.columns]
        rows = open_source(pa.schema(columns).empty_table())
        return write.stage_write(self.runtime, self.table.ref, CommitKind.APPEND, rows, request)


def find_done_change(runtime: Runtime, statement: Insert | Revise, request: WriteRequest) -> DoneChange | None:
    """None if it is to be done. Raises NotFoundError for a table that is not there."""
    if request.idempotency_key is None:
        return None
    table = sql.look_up(runtime, [statement.table])[statement.table.name]
    snapshot = find_done(runtime, table, request)
    if snapshot is None:
        return None
    return DoneChange(runtime=runtime, statement=statement, table=table, snapshot=snapshot)
