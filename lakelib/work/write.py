"""Work. One writer's whole work on one commit: a caller's batches in, finished files out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from functools import reduce
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, WrongValuesError
from lakelib.model.changes import DELETE, UPSERT
from lakelib.model.files import NewFile
from lakelib.model.schema import OP_COLUMN, Op, TableSchema
from lakelib.rows.align import Alignment, plan_alignment
from lakelib.rows.buffers import near_batches
from lakelib.rows.inside import Inside
from lakelib.rows.types import arrow_type
from lakelib.storage.filesystem import Storage
from lakelib.work.revised import Revised
from lakelib.work.run_writer import RunTarget, write_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteWork:
    """What is to be done with the rows. Plain values: a task gets it by pickle."""

    storage: Storage
    target: RunTarget
    wanted: TableSchema
    """The table's columns, and auxiliary ones that order the rows and are not stored."""
    required_ids: frozenset[int]
    explicit_cast: bool = False
    only_ids: frozenset[int] | None = None
    """Just these columns are taken from the rows; None is all."""
    inside: Inside | None = None
    as_deletes: bool = False
    """Each row becomes a mark."""
    mark: Op = Op.DELETE
    """What a delete is: a delete mark, or values that count in the row."""
    refusal: InvalidInputError | None = None
    """Why deletes among the rows are refused; None takes them."""
    told_by: tuple[str, ...] = ()
    """Columns of which a delete among the rows has to have one, else it would do nothing."""
    deletes_in: str | None = None
    """A column that says "delete" of rows that become delete marks, and "upsert" of others; None: there is none."""
    revised: Revised | None = None
    """The rows are those of a change, told so."""
    buffer_bytes: int
    single_run: bool = False

    def align(self, source: pa.Schema) -> Alignment:
        """Raises InvalidInputError if rows of this schema cannot be written."""
        return plan_alignment(
            source if self.revised is None else self.revised.schema_of(source),
            self.wanted,
            required_ids=self.required_ids,
            explicit_cast=self.explicit_cast,
            only_ids=self.only_ids,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFiles:
    files: tuple[NewFile, ...]
    rows_in: int
    changes: Counter[int] = field(default_factory=Counter)
    """Of rows of a change how many there are of each."""


def write_batches(
    work: WriteWork, alignment: Alignment, batches: Iterable[pa.RecordBatch], threads: int
) -> WrittenFiles:
    """Writes rows that are aligned so as runs. An error leaves no file behind."""
    rows_in = 0
    changes: Counter[int] = Counter()

    def rows() -> Iterator[pa.RecordBatch]:
        nonlocal rows_in
        for batch in chain.from_iterable(map(near_batches, batches)):
            if work.revised is not None:
                changes.update(work.revised.counts(batch))
                batch = work.revised.taken(batch)
            aligned = alignment.apply(batch, rows_in)
            if work.inside is not None:
                work.inside.check(aligned)
            rows_in += aligned.num_rows
            yield _marked(work, aligned)

    files = write_runs(
        work.storage,
        work.target,
        rows(),
        buffer_bytes=work.buffer_bytes,
        threads=threads,
        single_run=work.single_run,
    )
    return WrittenFiles(files=files, rows_in=rows_in, changes=changes)


def _marked(work: WriteWork, rows: pa.RecordBatch) -> pa.RecordBatch:
    """With delete marks where there are to be some."""
    if work.as_deletes:
        return as_deletes(rows, work.target.schema, work.mark)
    if work.deletes_in is None:
        return rows
    deletes = _deletes_among(rows.column(work.deletes_in))
    _check_complete(rows, deletes, work)
    if work.refusal is not None and pc.any(deletes).as_py():
        raise work.refusal
    _check_told(rows.filter(deletes), work.told_by)
    marks = pc.multiply(deletes.cast(pa.int8()), pa.scalar(int(work.mark), pa.int8()))
    return rows.append_column(OP_COLUMN, marks)


def _deletes_among(words: pa.Array) -> pa.Array:
    """Raises WrongValuesError for other words than those two."""
    unknown = pc.invert(pc.is_in(words, pa.array([UPSERT, DELETE], words.type)))
    if pc.any(unknown).as_py():
        found = words.filter(unknown)
        raise WrongValuesError(
            f"{OP_COLUMN} is {found[0].as_py()!r} in {len(found):,} rows.",
            kind="invalid_value",
            remedy=f"Give {UPSERT} or {DELETE}.",
        )
    return pc.equal(words, DELETE)


def _check_complete(rows: pa.RecordBatch, deletes: pa.Array, work: WriteWork) -> None:
    """Only a delete may leave out what is never NULL. Raises WrongValuesError."""
    kept = rows.filter(pc.invert(deletes))
    for column in work.target.schema.columns:
        if not column.nullable and (count := kept.column(column.name).null_count):
            raise WrongValuesError(
                f"Column {column.name!r} is never NULL, and it is in {count:,} rows.",
                kind="null_value",
                remedy="Give a value.",
            )


def _check_told(deletes: pa.RecordBatch, names: Sequence[str]) -> None:
    """Raises WrongValuesError where a delete says nothing."""
    if not names or not deletes.num_rows:
        return
    silent = reduce(pc.and_, (pc.is_null(deletes.column(name)) for name in names))
    if count := pc.sum(silent).as_py():
        raise WrongValuesError(
            f"{count:,} deletes have NULL in all of {', '.join(names)}: they would do nothing.",
            kind="null_value",
            remedy="Changes tell of a delete its key alone. Delete by key, with what is to be taken back or emptied.",
        )


def as_deletes(rows: pa.RecordBatch, schema: TableSchema, mark: Op = Op.DELETE) -> pa.RecordBatch:
    """A mark for each row: of the table's columns those that the rows have, the others NULL."""
    present = set(rows.schema.names)
    columns = {
        column.name: rows.column(column.name)
        if column.name in present
        else pa.nulls(rows.num_rows, arrow_type(column.type))
        for column in schema.columns
    }
    return pa.record_batch(columns | {OP_COLUMN: pa.repeat(pa.scalar(int(mark), pa.int8()), rows.num_rows)})
