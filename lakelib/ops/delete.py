"""Use cases: rows are deleted, by predicate or by key.

Where rows are merged by key, a delete writes delete marks: rows of `_op` 1 that supersede what they name. Where they
are not, the files that hold matching rows are replaced by files without them. A predicate over partition columns alone
takes out whole partitions and reads nothing. What is added while a delete is under way is looked at as well
(`ops.amend`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from lakelib.catalog import files
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.commit import Conflict, Reason
from lakelib.model.effect import UNKNOWN, Effect
from lakelib.model.files import PartitionKey
from lakelib.model.merge import OnDelete
from lakelib.model.predicate import And, In, Predicate, columns_of
from lakelib.model.schema import Column
from lakelib.model.table import (
    MAX_DEPTH,
    NO_READ,
    WHOLE_TABLE,
    CommitKind,
    Proposal,
    ReadScope,
    Snapshot,
    TableInfo,
    TableRef,
)
from lakelib.ops.amend import amend_delete
from lakelib.ops.commit import Redo, Work, commit_work, stage_work
from lakelib.ops.delete_files import delete_columns, delete_target, rewrite_without, write_deletes
from lakelib.ops.merging import check_values_given, deletes_refused, told_groups
from lakelib.ops.read import ScanPlan, ScanRequest, plan_scan, stream_batches, view_after
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.ops.write import WrittenRows, mark_of, propose, with_moves
from lakelib.plan.literals import in_any_partition
from lakelib.plan.prune import partition_may_match
from lakelib.plan.scan import count_known_rows
from lakelib.plan.where import bind_where
from lakelib.rows.align import places_by_name
from lakelib.rows.arrange import arrange_rows, partition_keys
from lakelib.rows.filter import matching_partitions
from lakelib.rows.hash import hash_prefixes, key_hashes
from lakelib.rows.values import raw_values
from lakelib.work.sources import RowSource
from lakelib.work.write import WriteWork

_KEYS_AT_ONCE = 10_000
"""So many keys are looked for together: one plan for all of them, and a file is opened once."""
OVERTAKEN = {
    Reason.ROWS_ADDED,
    Reason.ROWS_REMOVED,
    Reason.INPUT_GONE,
    Reason.ROLLED_BACK,
    Reason.KEYS_ADDED,
    Reason.KEYS_LOST,
}
"""What makes whoever has looked for rows look again."""


def delete_where(runtime: Runtime, ref: TableRef, where: str | Predicate, request: WriteRequest) -> Snapshot:
    """Deletes the rows for which the predicate is TRUE, and publishes: those too that were added meanwhile."""
    return commit_work(runtime, ref, request, _work_where(runtime, ref, where, request))


def stage_delete_where(runtime: Runtime, ref: TableRef, where: str | Predicate, request: WriteRequest) -> UUID:
    """The delete as a staged commit. It conflicts with what happens, from now on, to the partitions it looked at."""
    return stage_work(runtime, ref, request, _work_where(runtime, ref, where, request))


def delete_keys(runtime: Runtime, ref: TableRef, source: RowSource, request: WriteRequest) -> Snapshot:
    """Deletes the rows of the given keys, and publishes. Looks again when rows changed meanwhile, if it can."""
    return commit_work(runtime, ref, request, _work_keys(runtime, source, request))


def stage_delete_keys(runtime: Runtime, ref: TableRef, source: RowSource, request: WriteRequest) -> UUID:
    """The delete as a staged commit."""
    return stage_work(runtime, ref, request, _work_keys(runtime, source, request))


def _work_where(runtime: Runtime, ref: TableRef, where: str | Predicate, request: WriteRequest) -> Work:
    def prepare(table: TableInfo) -> Proposal:
        return _propose_where(runtime, table, where, request)

    def redo(conflict: Conflict, proposal: Proposal) -> Redo:
        if conflict.reasons == (Reason.ROWS_ADDED,) and amend_delete(runtime, ref, where, proposal, conflict.about):
            return Redo.SAME
        return Redo.ANEW if set(conflict.reasons) <= OVERTAKEN else Redo.NOT

    return Work(prepare=prepare, redo=redo, looks_again=True)


def _work_keys(runtime: Runtime, source: RowSource, request: WriteRequest) -> Work:
    def prepare(table: TableInfo) -> Proposal:
        return _propose_keys(runtime, table, source, request)

    def redo(conflict: Conflict, proposal: Proposal) -> Redo:
        return Redo.ANEW if source.rereadable and set(conflict.reasons) <= OVERTAKEN else Redo.NOT

    return Work(prepare=prepare, redo=redo, looks_again=source.rereadable)


def _propose_where(runtime: Runtime, table: TableInfo, where: str | Predicate, request: WriteRequest) -> Proposal:
    predicate = bind_where(where, table.schema)
    if predicate is None:
        raise InvalidInputError(
            "The delete has no predicate.", kind="invalid_predicate", remedy='To empty the table, delete "true".'
        )
    if table.merge.on_delete is OnDelete.REFUSE:
        raise deletes_refused()
    empties = table.merge.on_delete is OnDelete.GROUPS
    doomed = _mark(runtime, table, predicate) if empties else find_doomed(runtime, table, predicate)
    return propose(
        table,
        CommitKind.DELETE,
        request,
        doomed.written,
        removed_file_ids=doomed.removed_file_ids,
        read_scope=doomed.scope,
        effect=UNKNOWN if empties else _deleted(doomed.rows),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Doomed:
    """What takes the rows away for which a predicate is TRUE."""

    written: WrittenRows
    """Delete marks; or files without the rows, in place of those that are removed."""
    scope: ReadScope
    rows: int | None
    """How many they are, where that is known."""
    removed_file_ids: tuple[int, ...] = ()


def find_doomed(runtime: Runtime, table: TableInfo, predicate: Predicate) -> Doomed:
    """Looks for the rows at the table's head, and writes what takes them away."""
    if columns_of(predicate) <= set(table.partition_ids):
        return _drop(runtime, table, predicate)
    if table.primary_key_ids:
        return _mark(runtime, table, predicate)
    return _rewrite(runtime, table, predicate)


def _drop(runtime: Runtime, table: TableInfo, predicate: Predicate) -> Doomed:
    """Takes out all files of the partitions that match."""
    query = files.FileQuery(
        table_id=table.id, snapshot_id=table.head_id, partition_by=table.partition_by, partition_predicate=predicate
    )
    found = files.load_files(runtime.catalog, query)
    matching = matching_partitions(predicate, table.partition_by, found.partitions)
    removed = [file for file in found.files if file.partition_id in matching]
    return Doomed(
        written=WrittenRows(files=(), rows_in=0),
        removed_file_ids=tuple(file.id for file in removed),
        scope=_scope(runtime, table, predicate, matching),
        rows=count_known_rows(removed, found.partitions, merges=bool(table.primary_key_ids)),
    )


def _deleted(rows: int | None) -> Effect:
    return UNKNOWN if rows is None else Effect(inserted=0, updated=0, deleted=rows)


def _mark(runtime: Runtime, table: TableInfo, predicate: Predicate) -> Doomed:
    """Writes a delete mark for each row that matches, with the row's own sequence: a newer version stays newer."""
    names = tuple(column.name for column in delete_columns(table))
    plan = plan_scan(runtime, table, ScanRequest(columns=names, where=predicate))
    written = write_deletes(runtime, table, stream_batches(runtime, plan))
    scope = _scope(runtime, table, predicate, plan.partition_ids)
    return Doomed(written=written, scope=scope, rows=written.rows_in)


def _rewrite(runtime: Runtime, table: TableInfo, predicate: Predicate) -> Doomed:
    plan = plan_scan(runtime, table, ScanRequest(where=predicate, with_commits=True))
    written, removed = rewrite_without(runtime, plan, predicate)
    return Doomed(
        written=written,
        removed_file_ids=removed,
        scope=_scope(runtime, table, predicate, plan.partition_ids),
        rows=_count_rows(plan, removed) - written.rows_in,
    )


def _count_rows(plan: ScanPlan, file_ids: Collection[int]) -> int:
    """Of files that hold nothing but rows that count."""
    counts = {file.id: file.row_count for split in plan.splits for file in split.files}
    return sum(counts[file_id] for file_id in set(file_ids))


def _propose_keys(runtime: Runtime, table: TableInfo, source: RowSource, request: WriteRequest) -> Proposal:
    if not table.primary_key_ids:
        raise InvalidInputError(
            f"Table {table.full_name} has no primary key to delete by.",
            kind="no_primary_key",
            remedy="Delete by a predicate.",
        )
    if table.merge.on_delete is OnDelete.REFUSE:
        raise deletes_refused()
    places = places_by_name(source.schema)
    wanted, knows_sequence = _told_of_keys(table, places)
    work = WriteWork(
        storage=runtime.storage,
        target=delete_target(table),
        wanted=table.schema,
        required_ids=frozenset(table.primary_key_ids),
        explicit_cast=request.explicit_cast,
        only_ids=frozenset(column.id for column in wanted),
        as_deletes=True,
        mark=mark_of(table),
        buffer_bytes=table.options.write_buffer_bytes,
    )
    source.check(work)
    knows_partition = _knows_partition(table, places)
    if knows_sequence and knows_partition:
        done = source.write(work, threads=runtime.threads, distribution=request.distribution)
        written = WrittenRows(files=done.files, rows_in=done.rows_in)
        if table.options.cross_partition:
            written = with_moves(runtime, table, written, source.session)
        return propose(table, CommitKind.DELETE, request, written)
    alignment = work.align(source.schema)
    keys = (alignment.apply(batch) for batch in source.batches())
    if table.options.cross_partition:
        told = table.sequence_by if knows_sequence else ()
        written = write_deletes(runtime, table, _rows_anywhere(runtime, table, keys, told))
        scope = WHOLE_TABLE
    else:
        looked_at: set[PartitionKey] = set()
        written = write_deletes(runtime, table, _rows_of_keys(runtime, table, keys, looked_at))
        scope = _scope_of_partitions(runtime, table, looked_at)
    return propose(
        table,
        CommitKind.DELETE,
        request,
        written,
        read_scope=scope,
        effect=UNKNOWN if table.merge.keeps_marks else _deleted(written.rows_in),
    )


def _told_of_keys(table: TableInfo, places: Mapping[str, int]) -> tuple[tuple[Column, ...], bool]:
    """What is taken from the keys that are given, and whether that is all that a mark has to say: where versions have a
    sequence, and the keys do not, the table's rows are asked for theirs."""

    def is_given(column: Column) -> bool:
        return column.name.casefold() in places

    columns = delete_columns(table)
    if table.merge.retract:
        check_values_given(table, places)
        return tuple(filter(is_given, table.schema.columns)), True
    if table.merge.is_newest:
        asked = set(table.sequence_ids)
        knows = all(map(is_given, table.sequence_by))
    else:
        asked = set(table.sequence_ids) | table.merge.group_ids
        knows = table.merge.on_delete is not OnDelete.GROUPS or any(told_groups(table, places))
    if table.options.cross_partition and not any(map(is_given, table.partition_by)):
        asked |= set(table.partition_ids)
    told = tuple(column for column in columns if column.id not in asked or (knows and is_given(column)))
    return told, knows


def _knows_partition(table: TableInfo, places: dict[str, int]) -> bool:
    """Whether the keys come with their partition. Where a key is unique within its partition only it names nothing
    without: raises InvalidInputError."""
    lacking = [column for column in table.partition_by if column.name.casefold() not in places]
    if lacking and not (table.options.cross_partition and len(lacking) == len(table.partition_by)):
        raise InvalidInputError(
            f"The keys to delete from {table.full_name} lack the partition column {lacking[0].name!r}.",
            kind="missing_column",
            remedy="Add it, or delete by a predicate.",
        )
    return not lacking


def _scope_of_partitions(runtime: Runtime, table: TableInfo, keys: Collection[PartitionKey]) -> ReadScope:
    """Just these partitions, whether they are there yet or not."""
    if not keys:
        return NO_READ
    where = in_any_partition(table.partition_by, keys) if table.partition_by else None
    if where is None:
        return WHOLE_TABLE
    query = files.FileQuery(
        table_id=table.id, snapshot_id=table.head_id, partition_by=table.partition_by, partition_predicate=where
    )
    return _scope(runtime, table, where, files.load_files(runtime.catalog, query).partitions)


def rows_with_keys(runtime: Runtime, table: TableInfo, keys: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows that the table has of these keys, in their partitions; in any, where a key is in one partition."""
    if table.options.cross_partition:
        return _rows_anywhere(runtime, table, keys, ())
    return _rows_of_keys(runtime, table, keys, set())


def _rows_of_keys(
    runtime: Runtime, table: TableInfo, keys: Iterable[pa.RecordBatch], looked_at: set[PartitionKey]
) -> Iterator[pa.RecordBatch]:
    """The rows that the table has of these keys, with their sequence. Tells the partitions that it looked at."""
    names = tuple(column.name for column in delete_columns(table))
    for batch in _gather_keys(keys):
        looked_at.update(partition_keys(batch, table.partition_by))
        yield from _find_rows(runtime, table, batch, names)


def _rows_anywhere(
    runtime: Runtime, table: TableInfo, keys: Iterable[pa.RecordBatch], told: Sequence[Column]
) -> Iterator[pa.RecordBatch]:
    """The rows that the table has of these keys, in whichever partition, with their sequence or what is told."""
    names = [column.name for column in delete_columns(table)]
    key_names = [column.name for column in table.primary_key]
    told_names = [column.name for column in told if column not in table.primary_key]
    found_names = [name for name in names if name not in told_names]
    for batch in _gather_keys(keys):
        wanted = pa.Table.from_batches([batch]).select([*key_names, *told_names])
        request = _request_keys(runtime, table, batch, found_names, None)
        for rows in stream_batches(runtime, plan_scan(runtime, table, request)):
            found = pa.Table.from_batches([rows]).join(wanted, keys=key_names, join_type="inner")
            yield from found.select(names).to_batches()


def _scope(runtime: Runtime, table: TableInfo, predicate: Predicate, partition_ids: Collection[int]) -> ReadScope:
    """The partitions that the predicate lets one look at, those to come included."""
    if not columns_of(predicate) & set(table.partition_ids):
        return WHOLE_TABLE if partition_may_match(predicate, (), ()) else NO_READ
    partitions = files.load_partitions(runtime.catalog, list(partition_ids))
    looked_at = tuple(
        partition.id
        for partition in partitions.values()
        if partition_may_match(predicate, table.partition_by, partition.key)
    )
    return ReadScope(partition_ids=looked_at, where=predicate, own_partitions=True)


def _gather_keys(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same keys, in batches that are worth a search."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        for start in range(0, batch.num_rows, _KEYS_AT_ONCE):
            part = batch.slice(start, _KEYS_AT_ONCE)
            if sum(one.num_rows for one in waiting) + part.num_rows > _KEYS_AT_ONCE:
                yield pa.concat_batches(waiting)
                waiting = []
            waiting.append(part)
    if waiting:
        yield pa.concat_batches(waiting)


def _find_rows(
    runtime: Runtime, table: TableInfo, keys: pa.RecordBatch, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The rows at the table's head that have one of the keys, each in its own partition, with the columns named.

    `keys` have the columns of the primary key and of the partition, and these are among the columns named.
    """
    asked = dict(_by_partition(table, keys))
    request = _request_keys(runtime, table, keys, names, list(asked))
    key_names = [column.name for column in table.primary_key]
    for batch in stream_batches(runtime, plan_scan(runtime, table, request)):
        for partition_key, found in _by_partition(table, batch):
            if partition_key in asked:
                wanted = asked[partition_key].select(key_names)
                rows = found.join(wanted, keys=key_names, join_type="left semi")
                yield from rows.select(list(names)).to_batches()


def _request_keys(
    runtime: Runtime,
    table: TableInfo,
    keys: pa.RecordBatch,
    names: Sequence[str],
    partition_keys: Sequence[PartitionKey] | None,
) -> ScanRequest:
    hashes = key_hashes([keys.column(column.name) for column in table.primary_key])
    return ScanRequest(
        columns=tuple(names),
        where=_superset(table, keys, partition_keys),
        hash_prefixes=tuple(sorted(set(hash_prefixes(hashes, MAX_DEPTH).tolist()))),
        staged=view_after(runtime.staged.get(table.id, ())),
    )


def _by_partition(table: TableInfo, rows: pa.RecordBatch) -> Iterator[tuple[PartitionKey, pa.Table]]:
    for part in arrange_rows(rows, table.partition_by, table.primary_key, 0):
        yield part.partition_key, pa.Table.from_batches([part.rows])


def _superset(table: TableInfo, keys: pa.RecordBatch, partition_keys: Sequence[PartitionKey] | None) -> Predicate:
    """Rows that have in each key column one of the values that occur there, in the partitions of the keys; in all for
    None."""
    columns = (keys.column(column.name) for column in table.primary_key)
    parts: list[Predicate] = [
        In(column=column, values=tuple(raw for raw in raw_values(pc.unique(values)) if raw is not None))
        for column, values in zip(table.primary_key, columns, strict=True)
    ]
    is_asked = table.partition_by and partition_keys is not None
    here = in_any_partition(table.partition_by, partition_keys or ()) if is_asked else None
    return And(parts=(*parts, here) if here is not None else tuple(parts))
