"""Work. Rows of a change that a query computes, as a write takes them: each with what becomes of it, and what is wrong
with it. Looked at as they are written, wherever that is."""

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.changes import DELETE, UPSERT
from lakelib.rows.convert import shown_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What can be wrong with a row."""

    kind: str
    what: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Revised:
    """How the rows are told. Plain values: a task gets it by pickle."""

    change: str
    """The column that has what becomes of a row, as a number."""
    delete: int
    """The number of a row that goes."""
    word: str | None
    """The column that a write is told in which rows go; None: none do."""
    wrong: str
    """The column, if there is one, that has the number of what is wrong with a row."""
    troubles: Mapping[int, Trouble]
    """By number."""
    table: str
    key: tuple[str, ...]

    def schema_of(self, source: pa.Schema) -> pa.Schema:
        """What `taken` makes of such rows."""
        own = [field for field in source if field.name not in (self.change, self.wrong)]
        return pa.schema([*own, *([] if self.word is None else [(self.word, pa.string())])])

    def taken(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows as they are written. Raises InvalidInputError for one that cannot be changed so."""
        self.check(batch)
        schema = self.schema_of(batch.schema)
        if self.word is not None:
            is_delete = pc.equal(batch.column(self.change), self.delete)
            batch = batch.append_column(self.word, pc.if_else(is_delete, DELETE, UPSERT))
        return batch.select(schema.names)

    def counts(self, batch: pa.RecordBatch) -> Counter[int]:
        """How many rows there are of each change."""
        counted = pc.value_counts(batch.column(self.change))
        return Counter({each["values"]: each["counts"] for each in counted.to_pylist()})

    def check(self, batch: pa.RecordBatch) -> None:
        """Raises InvalidInputError for a row that cannot be changed so."""
        if self.wrong not in batch.schema.names:
            return
        wrong = batch.filter(pc.is_valid(batch.column(self.wrong)))
        if wrong.num_rows:
            trouble = self.troubles[wrong.column(self.wrong)[0].as_py()]
            raise InvalidInputError(
                f"The row {shown_key(wrong, self.key)} of {self.table} {trouble.what}.",
                kind=trouble.kind,
                remedy=trouble.remedy,
            )
