"""Use cases: append and upsert, and what every write has in common.

What is an upsert's own: align the rows to the schema, write runs, and say that they are for the table. The way to a
snapshot is that of every commit (`ops.commit`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pyarrow as pa

from lakelib.catalog import tables
from lakelib.dataclass import dataclass
from lakelib.errors import EmptySourceError, InvalidInputError
from lakelib.model import sortable
from lakelib.model.effect import NOTHING, UNKNOWN, Effect
from lakelib.model.files import NewFile
from lakelib.model.schema import Column, Op, TableSchema
from lakelib.model.table import NO_READ, CommitKind, KeysLooked, Proposal, ReadScope, Snapshot, TableInfo, TableRef
from lakelib.model.text import choose_from
from lakelib.ops.commit import Work, commit_work, give_up, schema_again, stage_work
from lakelib.ops.merging import moves_target, order_names, refused_deletes, run_target, told_by_deletes
from lakelib.ops.moves import NOTHING_REPLACED, NewRows, Replaced, as_own_files, delete_written, write_moves
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.plan.declare import Declared
from lakelib.plan.evolve import under_id
from lakelib.plan.replaced import replaced_schema
from lakelib.rows.align import merge_source_columns
from lakelib.rows.inside import Inside
from lakelib.rows.types import type_text
from lakelib.work.run_writer import LARGEST_BUFFER_BYTES
from lakelib.work.sources import RowSource
from lakelib.work.write import WriteWork

_SMALL_BYTES = 1 << 20


def write(runtime: Runtime, ref: TableRef, kind: CommitKind, source: RowSource, request: WriteRequest) -> Snapshot:
    """Appends or upserts rows and publishes them. A replayed idempotency key gives the snapshot it gave first."""
    return commit_work(runtime, ref, request, _work(runtime, kind, source, request))


def stage_write(runtime: Runtime, ref: TableRef, kind: CommitKind, source: RowSource, request: WriteRequest) -> UUID:
    """The rows as a staged commit."""
    return stage_work(runtime, ref, request, _work(runtime, kind, source, request))


def _work(runtime: Runtime, kind: CommitKind, source: RowSource, request: WriteRequest) -> Work:
    def prepare(table: TableInfo) -> Proposal:
        if kind is CommitKind.UPSERT:
            check_keyed(table)
        written = write_rows(runtime, table, source, request, file_kind=kind.value)
        beneath = ReadScope(beneath=runtime.staged.get(table.id, ()))
        return propose(table, kind, request, written, read_scope=beneath, effect=_effect(table, written))

    return Work(
        prepare=prepare,
        redo=schema_again if source.rereadable else give_up,
        looks_again=source.rereadable,
        is_small=_is_small(source, request),
        session=source.session,
    )


def _effect(table: TableInfo, written: "WrittenRows") -> Effect:
    """Rows that may take the place of others are not counted without looking."""
    if not written.files:
        return NOTHING
    if table.primary_key_ids:
        return UNKNOWN
    return Effect(inserted=sum(file.row_count for file in written.files), updated=0, deleted=0)


def _is_small(source: RowSource, request: WriteRequest) -> bool:
    """Whether writing the rows twice costs nothing. What asks the catalog before it writes, anyway, is left out."""
    asks = request.judging or request.merge_schema or request.made_from is not None
    return not asks and source.rereadable and 0 < source.size_bytes <= _SMALL_BYTES


def check_keyed(table: TableInfo) -> None:
    """Raises InvalidInputError for a table that takes no upserts."""
    if not table.primary_key_ids:
        raise InvalidInputError(
            f"Table {table.full_name} has no primary key to upsert by.",
            kind="no_primary_key",
            remedy="Use append, or create the table with a primary_key.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRows:
    """Files that are in no commit yet, and the schema that they were written in."""

    files: tuple[NewFile, ...]
    rows_in: int
    new_schema: TableSchema | None = None
    keys: KeysLooked | None = None
    """How far keys were looked for in other partitions."""

    @property
    def row_files(self) -> tuple[NewFile, ...]:
        """The files without those of marks alone by which rows leave."""
        keys = self.keys
        return self.files if keys is None else tuple(file for file in self.files if file.run < keys.marks_run)


def write_rows(
    runtime: Runtime,
    table: TableInfo,
    source: RowSource,
    request: WriteRequest,
    *,
    file_kind: str,
    inside: Inside | None = None,
    replaced: Replaced = NOTHING_REPLACED,
) -> WrittenRows:
    """Aligns the rows and writes them as runs; rows that are in other partitions than these leave, unless they are
    `replaced` anyway. An error leaves no file behind."""
    _check_named_columns(table, source.schema)
    draft = _drafted_schema(table, source, request)
    wanted = draft or table.schema
    auxiliary = _auxiliary_columns(source.schema, wanted, request.aux_order, bool(table.primary_key_ids))

    def work(schema: TableSchema) -> WriteWork:
        return WriteWork(
            storage=runtime.storage,
            target=run_target(
                table,
                schema,
                file_kind=file_kind,
                order_names=_order_names(table, schema, request.aux_order),
                holds_deletes=bool(request.deletes_in),
                one_partition=table.options.cross_partition,
            ),
            wanted=_wanted(schema, request, auxiliary),
            deletes_in=request.deletes_in,
            mark=mark_of(table) if request.deletes_in else Op.DELETE,
            refusal=refused_deletes(table, source.schema.names) if request.deletes_in else None,
            told_by=told_by_deletes(table) if request.deletes_in else (),
            required_ids=frozenset(table.primary_key_ids),
            explicit_cast=request.explicit_cast,
            inside=inside,
            buffer_bytes=_buffer_bytes(table, source),
            single_run=bool(request.aux_order),
        )

    if draft is not None:
        source.check(work(draft))  # before ids are spent
    new_schema = draft and under_own_ids(runtime, table, draft)
    written = source.write(work(new_schema or table.schema), threads=runtime.threads, distribution=request.distribution)
    if request.refuse_empty and not written.rows_in:
        raise EmptySourceError(f"There are no rows for {table.full_name}.", remedy="Give rows, or allow none.")
    rows = WrittenRows(files=written.files, rows_in=written.rows_in, new_schema=new_schema)
    return with_moves(runtime, table, rows, source.session, replaced) if table.options.cross_partition else rows


def with_moves(
    runtime: Runtime,
    table: TableInfo,
    written: WrittenRows,
    session: Any,
    replaced: Replaced = NOTHING_REPLACED,
) -> WrittenRows:
    """The rows, and marks for those that leave other partitions for them. An error leaves no file behind."""
    schema = written.new_schema or table.schema
    new = NewRows(
        schema=schema,
        own=as_own_files(written.files, schema.id),
        writes=moves_target(table, schema),
        replaced=replaced,
    )
    try:
        marks = write_moves(runtime, table, new, session)
    except BaseException:
        delete_written(runtime, table, written.files)
        raise
    keys = KeysLooked(until=table.head_id, marks_run=new.marks_run)
    return replace(written, files=(*written.files, *marks), keys=keys)


def _wanted(schema: TableSchema, request: WriteRequest, auxiliary: tuple[Column, ...]) -> TableSchema:
    """The columns as rows have them: a delete has but some of the table's."""
    if request.deletes_in is None:
        return TableSchema(id=schema.id, columns=schema.columns + auxiliary) if auxiliary else schema
    return TableSchema(
        id=schema.id, columns=tuple(replace(column, nullable=True) for column in schema.columns) + auxiliary
    )


def _check_named_columns(table: TableInfo, source: pa.Schema) -> None:
    """Other columns are NULL where the data lacks them. Without these a row would land in another partition than the
    one that it is to replace, or count as older than every other, and nobody would notice."""
    given = {name.casefold() for name in source.names}
    for role, columns in (("partition", table.partition_by), ("sequence", table.sequence_by)):
        for column in columns:
            if column.name.casefold() not in given:
                raise InvalidInputError(
                    f"The data for {table.full_name} lacks the {role} column {column.name!r}.",
                    kind="missing_column",
                    remedy="Add it to the data; NULL may be its value, but has to be said. "
                    + choose_from("The data has", column.name, source.names),
                )


def propose(
    table: TableInfo,
    kind: CommitKind,
    request: WriteRequest,
    written: WrittenRows,
    *,
    removed_file_ids: tuple[int, ...] = (),
    read_scope: ReadScope = NO_READ,
    effect: Effect = UNKNOWN,
) -> Proposal:
    """What the files are for."""
    return Proposal(
        commit_id=uuid4(),
        table_id=table.id,
        kind=kind,
        base_snapshot_id=table.head_id if request.made_from is None else request.made_from,
        began_at=table.loaded_at,
        schema=table.schema,
        new_schema=written.new_schema,
        files=written.files,
        removed_file_ids=removed_file_ids,
        read_scope=replace(read_scope, rows_from_base=request.made_from is not None),
        partition_column_ids=table.partition_ids,
        keys=written.keys,
        idempotency_key=request.idempotency_key,
        summary={**summarise(written.files, written.rows_in, len(removed_file_ids)), **effect.as_summary()},
        properties=request.properties,
    )


def summarise(files: Sequence[NewFile], rows_in: int, files_removed: int) -> dict[str, int]:
    """What a commit tells of itself."""
    return {
        "rows_in": rows_in,
        "rows_written": sum(file.row_count - file.delete_count for file in files),
        "deletes_written": sum(file.delete_count for file in files),
        "files_added": len(files),
        "files_removed": files_removed,
        "bytes_added": sum(file.size_bytes for file in files),
        "partitions": len({file.partition_key for file in files}),
    }


def _drafted_schema(table: TableInfo, source: RowSource, request: WriteRequest) -> TableSchema | None:
    """What the write makes of the table's schema; None if it stays."""
    if request.becomes is not None:
        return draft_replaced(table, request.becomes, stays_required=True)
    return _merged_schema(table, source, request) if request.merge_schema else None


def draft_replaced(table: TableInfo, wanted: Sequence[Declared], *, stays_required: bool) -> TableSchema | None:
    """The wanted columns, new ones under ids that others may take; None if the table has just these."""
    draft = replaced_schema(
        table.schema,
        wanted,
        1 + max(column.id for column in table.schema.columns),
        fixed_ids=table.primary_key_ids + table.partition_ids,
        kept_ids=table.primary_key_ids + table.partition_ids + table.sequence_ids + _merged_ids(table),
        stays_required=stays_required,
    )
    return None if draft.columns == table.schema.columns else draft


def _merged_ids(table: TableInfo) -> tuple[int, ...]:
    """The columns that the merge engine knows by name."""
    functions = tuple(column.id for column in table.schema.columns if column.function is not None)
    return (*table.merge.group_ids, *functions)


def _merged_schema(table: TableInfo, source: RowSource, request: WriteRequest) -> TableSchema | None:
    """The table's schema with what the source adds, under ids that others may take; None if it adds nothing."""
    return merge_source_columns(
        source.schema,
        table.schema,
        1 + max(column.id for column in table.schema.columns),
        explicit_cast=request.explicit_cast,
        ignore=request.aux_order,
        fixed_ids=frozenset(table.primary_key_ids + table.partition_ids),
    )


def under_own_ids(runtime: Runtime, table: TableInfo, draft: TableSchema) -> TableSchema:
    """The draft under ids that nobody else has. They are spent for good, so this comes after all that may be refused
    without writing: every file's bounds have a place for each id up to the highest."""
    added = [column.id for column in draft.columns if table.schema.by_id(column.id) is None]
    schema_id, first_column_id = tables.reserve_schema(runtime.catalog, table, len(added))
    own = {column_id: first_column_id + at for at, column_id in enumerate(added)}
    columns = tuple(replace(column, id=own.get(column.id, column.id)) for column in draft.columns)
    return under_id(table.schema, TableSchema(id=schema_id, columns=columns), schema_id, named_earlier(runtime, table))


def named_earlier(runtime: Runtime, table: TableInfo) -> tuple[TableSchema, ...] | None:
    """All versions of the schema of a table with a Delta log, which has one name for a column in all files; None where
    new files may have new names."""
    return tables.list_schemas(runtime.catalog, table.id) if table.options.delta else None


def _auxiliary_columns(
    source: pa.Schema, schema: TableSchema, names: tuple[str, ...], has_key: bool
) -> tuple[Column, ...]:
    """Columns of the batch that order its rows and are not stored. Ids lie beyond those of any table."""
    if names and not has_key:
        raise InvalidInputError(
            "aux_order is given, but the table has no primary key: it keeps every row.",
            kind="invalid_columns",
            remedy="Leave aux_order out.",
        )
    columns: list[Column] = []
    if len({name.casefold() for name in names}) < len(names):
        raise InvalidInputError(
            f"aux_order names a column twice: {', '.join(map(repr, names))}.",
            kind="invalid_columns",
            remedy="Name it once.",
        )
    for name in names:
        place = next((place for place, given in enumerate(source.names) if given.casefold() == name.casefold()), None)
        if place is None:
            raise InvalidInputError(
                f"aux_order names the column {name!r}, which the data does not have.",
                kind="unknown_column",
                remedy=choose_from("Its columns", name, source.names),
            )
        if schema.find(name) is None:
            text = type_text(source.field(place).type)
            if not sortable.is_sortable(text):
                raise InvalidInputError(
                    f"aux_order names the column {name!r} of type {text}, which has no order.",
                    kind="invalid_columns",
                    remedy="Use a column that is not nested.",
                )
            columns.append(Column(id=2**30 + len(columns), name=name, type=text))
    return tuple(columns)


def _order_names(table: TableInfo, schema: TableSchema, aux_order: tuple[str, ...]) -> tuple[str, ...]:
    stored = (schema.find(name) for name in aux_order)
    auxiliary = (column.name if column else name for name, column in zip(aux_order, stored, strict=True))
    return (*(order_names(table, schema) if table.sequence_ids else ()), *auxiliary)


def mark_of(table: TableInfo) -> Op:
    """What a delete by key leaves: a delete mark, or values that are taken back, or groups that are empty."""
    return Op.VALUES if table.merge.keeps_marks else Op.DELETE


def _buffer_bytes(table: TableInfo, source: RowSource) -> int:
    """A table that is in memory already is one run; a stream is cut into runs of the table's write buffer."""
    return max(table.options.write_buffer_bytes, min(source.size_bytes * 2, LARGEST_BUFFER_BYTES))
