"""Part of writes, of tables in which a key is in one partition: rows whose keys have come to another one leave theirs
in the same commit.

Step by step: which files that were there may have the keys of the new ones, by hash, key range and Bloom filter; the
delete marks by which the rows leave, behind all that is new. Until which snapshot was looked goes with the commit:
publishing tells it of rows that have come since. Then it looks for its keys in what has come, and takes marks in for
the rows that leave. Only those files are read that others have added: beside steady writers, too, it ends.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

import pyarrow.compute as pc

from lakelib.catalog import commits, files, tables
from lakelib.dataclass import dataclass
from lakelib.errors import LakeError
from lakelib.model.commit import About, Amended, Amendment, CommitInfo, Ended
from lakelib.model.files import DataFile, NewFile, Partition, Split
from lakelib.model.predicate import And, Compare, Comparison, In, Predicate, Raw
from lakelib.model.schema import Column, TableSchema
from lakelib.model.sortable import decode
from lakelib.model.table import MAX_DEPTH, NO_READ, CommitKind, CommitState, KeysLooked, TableInfo
from lakelib.ops.hold import Held
from lakelib.ops.merging import moves_target
from lakelib.ops.patience import Patience
from lakelib.ops.read import ScanRequest, file_query, load_schema, target_of
from lakelib.ops.runtime import Runtime
from lakelib.ops.turn import while_busy
from lakelib.plan.moves import arrange_moves
from lakelib.plan.where import COMMIT
from lakelib.rows.filter import matching_partitions
from lakelib.rows.hash import hash_prefixes, key_hashes
from lakelib.rows.values import raw_values
from lakelib.work import engines
from lakelib.work.moves import MoveWork, read_own_keys
from lakelib.work.read import ReadTarget
from lakelib.work.run_writer import RunTarget

_FEW_ROWS = 100
"""Of so few new rows the keys are looked up: files that cannot have them are not even opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """The partitions whose rows go anyway."""

    where: Predicate | None = None
    """By their columns."""
    own: bool = False
    """Those that the new rows are in."""


NOTHING_REPLACED = Replaced()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRows:
    """Files that are in no snapshot yet, and what stands in their way."""

    schema: TableSchema
    """That they are written in."""
    own: files.FoundFiles
    writes: RunTarget
    """How marks are written."""
    replaced: Replaced = NOTHING_REPLACED
    after_sequence: int | None = None
    """Only of later commits is it not known yet whether they have the keys."""
    beneath: tuple[DataFile, ...] = ()
    """Files that will be there, of commits that are published together with this one."""
    beneath_partitions: Mapping[int, Partition] | None = None
    first_run: int | None = None
    """Of the marks that are to be written; None: the first there may be."""

    @property
    def marks_run(self) -> int:
        """From which run on files hold nothing but marks of rows that leave."""
        return 1 + max((file.run for file in self.own.files), default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pin:
    table: TableInfo
    snapshot_id: int
    splits: Sequence[Split]


def write_moves(runtime: Runtime, table: TableInfo, new: NewRows, session: Any = None) -> tuple[NewFile, ...]:
    """Files of marks for the rows that leave, at the table's head; `session` is Spark's, if its tasks are to look."""
    if not new.own.files:
        return ()
    own_rows = sum(file.row_count for file in new.own.files)
    if own_rows <= _FEW_ROWS:
        session = None
    predicate, prefixes = _like_own(runtime, table, new, own_rows)
    found = _find_there(runtime, table, new, predicate, prefixes)
    there = (*found.files, *new.beneath)
    works = [
        MoveWork(
            storage=runtime.storage,
            target=_target(runtime, table, new, there),
            writes=new.writes,
            sought=sought,
            buffer_bytes=table.options.write_buffer_bytes,
        )
        for sought in arrange_moves(
            new.own.files,
            new.own.partitions,
            there,
            {**found.partitions, **(new.beneath_partitions or {})},
            has_order=bool(table.sequence_ids),
            task_count=1 if session is None else engines.task_count(session),
        )
    ]
    if not works:
        return ()
    pinned = tuple(split for work in works for split in work.sought.there)
    with Held(runtime, _Pin(table=table, snapshot_id=table.head_id, splits=pinned)):
        written = engines.write_leaving(works, session=session, threads=runtime.threads)
    first_run = new.marks_run if new.first_run is None else new.first_run
    return tuple(replace(file, run=first_run + file.run) for file in written)


def as_own_files(written: Iterable[NewFile], schema_id: int) -> files.FoundFiles:
    """Files that no catalog knows, as if one did."""
    written = tuple(written)
    numbers = {key: -1 - place for place, key in enumerate(dict.fromkeys(file.partition_key for file in written))}
    paths = {file.partition_key: file.partition_path for file in written}
    found = tuple(
        DataFile(
            id=-1 - place,
            path=file.path,
            partition_id=numbers[file.partition_key],
            depth=file.depth,
            prefix=file.prefix,
            run=file.run,
            level=file.level,
            row_count=file.row_count,
            delete_count=file.delete_count,
            size_bytes=file.size_bytes,
            schema_id=schema_id,
            sequence=None,
            added_snapshot=None,
            removed_snapshot=None,
            bounds=file.bounds,
        )
        for place, file in enumerate(written)
    )
    partitions = {number: Partition(id=number, key=key, path=paths[key]) for key, number in numbers.items()}
    return files.FoundFiles(files=found, partitions=partitions)


def delete_written(runtime: Runtime, table: TableInfo, written: Iterable[NewFile]) -> None:
    """Files that no commit names."""
    with suppress(LakeError):  # what cannot be deleted now is an orphan
        runtime.storage.at(table.location).delete_files(file.path for file in written)


def _target(runtime: Runtime, table: TableInfo, new: NewRows, there: Sequence[DataFile]) -> ReadTarget:
    sequence = new.schema.select(table.sequence_ids)
    columns = dict.fromkeys((*new.schema.select(table.primary_key_ids), *sequence))
    told = (*columns, COMMIT) if sequence else tuple(columns)
    return target_of(runtime, table, new.schema, told, None, (*there, *new.own.files))


def _find_there(
    runtime: Runtime, table: TableInfo, new: NewRows, predicate: Predicate | None, prefixes: tuple[int, ...] | None
) -> files.FoundFiles:
    """What may have the keys, but for partitions whose rows go anyway."""
    request = ScanRequest(hash_prefixes=prefixes, after_sequence=new.after_sequence)
    found = files.load_files(runtime.catalog, file_query(table, table.schema, table.head_id, predicate, request))
    gone = set[int]()
    if new.replaced.where is not None:
        gone |= matching_partitions(new.replaced.where, table.partition_by, found.partitions)
    if new.replaced.own:
        own_keys = {partition.key for partition in new.own.partitions.values()}
        gone |= {each.id for each in found.partitions.values() if each.key in own_keys}
    if not gone:
        return found
    return replace(found, files=tuple(file for file in found.files if file.partition_id not in gone))


def _like_own(
    runtime: Runtime, table: TableInfo, new: NewRows, own_rows: int
) -> tuple[Predicate | None, tuple[int, ...] | None]:
    """What the keys of the new rows are like: those of a few are looked up."""
    if own_rows > _FEW_ROWS:
        first = table.primary_key[0]
        return _within_bounds(first, new.own.files), None
    splits = [
        Split(partition=new.own.partitions[file.partition_id], depth=0, prefix=0, files=(file,))
        for file in new.own.files
    ]
    keys = read_own_keys(runtime.storage, _target(runtime, table, new, ()), splits)
    columns = [keys.column(column.name) for column in table.primary_key]
    parts = tuple(
        In(column=column, values=tuple(raw for raw in raw_values(pc.unique(values)) if raw is not None))
        for column, values in zip(table.primary_key, columns, strict=True)
    )
    prefixes = sorted(set(hash_prefixes(key_hashes(columns), MAX_DEPTH).tolist()))
    return And(parts=parts), tuple(prefixes)


def _within_bounds(column: Column, own: Sequence[DataFile]) -> Predicate | None:
    bounds = [_bounds(file, column) for file in own]
    if column.type in ("string", "binary"):  # these may be cut
        return None
    if any(low is None or high is None for low, high in bounds):
        return None
    lowest, highest = min(low for low, _ in bounds if low), max(high for _, high in bounds if high)
    ends: tuple[tuple[Comparison, Raw], ...] = (
        (Comparison.GE, decode(column.type, lowest)),
        (Comparison.LE, decode(column.type, highest)),
    )
    return And(parts=tuple(Compare(column=column, op=op, value=value) for op, value in ends))


def _bounds(file: DataFile, column: Column) -> tuple[bytes | None, bytes | None]:
    place = column.id - 1
    if place >= len(file.bounds.lower) or place >= len(file.bounds.upper):
        return None, None
    return file.bounds.lower[place], file.bounds.upper[place]


def catch_up(
    runtime: Runtime,
    about: About,
    *,
    replaced: Replaced | None = None,
    beneath: Sequence[UUID] = (),
    session: Any = None,
) -> bool:
    """Whether the staged commit has looked for its keys up to now, or was decided meanwhile, which publishing tells. If
    not, it has to be done anew. Those `beneath` are staged, too, and published together with it, before it."""
    return _catch_up(runtime, commits.load_commit(runtime.catalog, about.commit_id), replaced, beneath, session)


def look_beneath(runtime: Runtime, table: TableInfo, commit_id: UUID) -> None:
    """A commit of a transaction looks for its keys in what others of it have staged before: statements behind it see
    each key once."""
    beneath = runtime.staged.get(table.id, ())
    if not beneath or not table.options.cross_partition:
        return
    commit = commits.load_commit(runtime.catalog, commit_id)
    if commit.keys is not None:
        _catch_up(runtime, commit, None, beneath, None)


def _catch_up(
    runtime: Runtime, commit: CommitInfo, replaced: Replaced | None, beneath: Sequence[UUID], session: Any
) -> bool:
    if commit.state is not CommitState.STAGED:
        return True
    if commit.kind in (CommitKind.OVERWRITE, CommitKind.REPLACE) and replaced is None:
        return False  # what it replaces is not looked at, and that is known to who has staged it
    table = tables.load_table(runtime.catalog, commit.table)
    new = _new_rows(runtime, table, commit, replaced or NOTHING_REPLACED, beneath)
    marks = write_moves(runtime, table, new, session)
    amendment = Amendment(
        commit_id=commit.id,
        number=commit.amendment + 1,
        began_at=table.loaded_at,
        files=marks,
        read_scope=NO_READ,
        keys=KeysLooked(until=table.head_id, marks_run=new.marks_run),
        keys_beneath=tuple(beneath),
    )
    outcome = while_busy(Patience(f"Amending commit {commit.id}"), lambda: commits.amend(runtime.catalog, amendment))
    if not isinstance(outcome, Amended):
        delete_written(runtime, table, marks)
    return isinstance(outcome, Amended | Ended)


def _new_rows(
    runtime: Runtime, table: TableInfo, commit: CommitInfo, replaced: Replaced, beneath: Sequence[UUID]
) -> NewRows:
    schema = load_schema(runtime, table, commit.schema_id)
    found = _load_files(runtime, table, commit.id)
    looked = commit.keys
    own = tuple(file for file in found.files if looked is None or file.run < looked.marks_run)
    others: list[DataFile] = []
    partitions: dict[int, Partition] = {}
    for commit_id in beneath:
        other = _load_files(runtime, table, commit_id)
        others += other.files
        partitions |= other.partitions
    return NewRows(
        schema=schema,
        own=files.FoundFiles(files=own, partitions=found.partitions),
        writes=moves_target(table, schema),
        replaced=replaced,
        after_sequence=None if looked is None else looked.until,
        beneath=tuple(others),
        beneath_partitions=partitions,
        first_run=1 + max((file.run for file in found.files), default=-1),
    )


def _load_files(runtime: Runtime, table: TableInfo, commit_id: UUID) -> files.FoundFiles:
    query = files.FileQuery(
        table_id=table.id, snapshot_id=table.head_id, commit_id=commit_id, staged_only=True, with_bounds=True
    )
    return files.load_files(runtime.catalog, query)
