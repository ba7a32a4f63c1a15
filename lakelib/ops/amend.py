"""Part of deletes: a staged delete takes in what was added since it looked: beside steady writers, too, it ends.

Only the files added since its base are looked at. Where rows are merged by key, its delete marks and the added rows
are merged: a delete whose key was written again is taken back, unless the row that came matches too; then that goes.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakelib.catalog import commits, files, tables
from lakelib.dataclass import dataclass
from lakelib.errors import LakeError
from lakelib.model.commit import About, Amended, Amendment, Ended
from lakelib.model.files import DataFile, NewFile, Split
from lakelib.model.predicate import Predicate, columns_of
from lakelib.model.schema import OP_COLUMN
from lakelib.model.table import Proposal, ReadScope, TableInfo, TableRef
from lakelib.ops.delete_files import delete_columns, rewrite_without, write_deletes
from lakelib.ops.hold import Held
from lakelib.ops.patience import Patience
from lakelib.ops.read import ScanPlan, ScanRequest, plan_scan
from lakelib.ops.runtime import Runtime
from lakelib.ops.turn import while_busy
from lakelib.plan.scan import arrange_splits
from lakelib.plan.where import COMMIT, bind_where
from lakelib.rows.filter import matching_partitions, matching_rows
from lakelib.work.read import ReadTarget, read_newest

_OWN_PARTITIONS = ReadScope(own_partitions=True)
"""What it has deletes in it depends on, though it may not have been there when the delete looked first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changes:
    """What the delete does beside what it did."""

    files: tuple[NewFile, ...] = ()
    removed_file_ids: tuple[int, ...] = ()
    withdrawn: tuple[DataFile, ...] = ()


def amend_delete(runtime: Runtime, ref: TableRef, where: str | Predicate, proposal: Proposal, about: About) -> bool:
    """Whether the staged delete takes in what was added up to now, or was decided meanwhile, which publishing tells. If
    not, it has to be done anew."""
    table = tables.load_table(runtime.catalog, ref)
    predicate = bind_where(where, table.schema)
    if predicate is None or table.schema.id != proposal.schema.id:
        return False
    if columns_of(predicate) <= set(table.partition_ids):
        changes = _drop_added(runtime, table, predicate, about)
    elif table.primary_key_ids and not table.merge.is_newest:
        return False  # what was added tells only a part of its rows
    elif table.primary_key_ids:
        changes = _mark_added(runtime, table, predicate, about)
    else:
        plan = plan_scan(runtime, table, ScanRequest(where=predicate, with_commits=True, after_sequence=about.base_id))
        written, removed = rewrite_without(runtime, plan, predicate)
        changes = _Changes(files=written.files, removed_file_ids=removed)
    return _amend(runtime, table, about, changes)


def _drop_added(runtime: Runtime, table: TableInfo, predicate: Predicate, about: About) -> _Changes:
    query = files.FileQuery(
        table_id=table.id,
        snapshot_id=table.head_id,
        partition_by=table.partition_by,
        partition_predicate=predicate,
        after_sequence=about.base_id,
    )
    found = files.load_files(runtime.catalog, query)
    matching = matching_partitions(predicate, table.partition_by, found.partitions)
    return _Changes(removed_file_ids=tuple(file.id for file in found.files if file.partition_id in matching))


def _mark_added(runtime: Runtime, table: TableInfo, predicate: Predicate, about: About) -> _Changes:
    """The delete marks of the partitions that rows were added to, made anew."""
    added = _plan_added(runtime, table, predicate, about)
    partitions = {split.partition.id: split.partition for split in added.splits}
    own = _load_own_deletes(runtime, table, about, tuple(partitions))
    # The deletes come first: what was added is newer.
    older = [replace(file, sequence=about.base_id) for file in own]
    newer = sorted({file for split in added.splits for file in split.files}, key=_age)
    splits = arrange_splits([*older, *newer], partitions, merges=True)
    with Held(runtime, added):
        written = write_deletes(runtime, table, _doomed(runtime, added.target, splits, predicate, table))
    return _Changes(files=written.files, withdrawn=own)


def _age(file: DataFile) -> tuple[int, int, int]:
    """Of published files: what is greater supersedes what is less."""
    assert file.sequence is not None
    return file.sequence, file.run, file.id


def _plan_added(runtime: Runtime, table: TableInfo, predicate: Predicate, about: About) -> ScanPlan:
    """All rows added where matching ones may be: those that match no more take deletes back."""
    asked = tuple(column for column in (*table.schema.columns, COMMIT) if column.id in columns_of(predicate))
    names = tuple(dict.fromkeys(column.name for column in (*delete_columns(table), *asked)))
    where = plan_scan(runtime, table, ScanRequest(where=predicate, after_sequence=about.base_id))
    return plan_scan(
        runtime,
        table,
        ScanRequest(columns=names, partition_ids=where.partition_ids, after_sequence=about.base_id),
    )


def _load_own_deletes(
    runtime: Runtime, table: TableInfo, about: About, partition_ids: tuple[int, ...]
) -> tuple[DataFile, ...]:
    query = files.FileQuery(
        table_id=table.id,
        snapshot_id=table.head_id,
        commit_id=about.commit_id,
        staged_only=True,
        partition_ids=partition_ids,
    )
    return files.load_files(runtime.catalog, query).files


def _doomed(
    runtime: Runtime, target: ReadTarget, splits: Sequence[Split], predicate: Predicate, table: TableInfo
) -> Iterator[pa.RecordBatch]:
    """The newest row of each key, if it is a delete mark or matches."""
    names = [column.name for column in delete_columns(table)]
    for split in splits:
        for rows in read_newest(runtime.storage, target, split):
            mask = matching_rows(predicate, rows)
            if OP_COLUMN in rows.column_names:
                mask = pc.or_(mask, pc.equal(rows.column(OP_COLUMN), 1))
            yield from rows.filter(mask).select(names).to_batches()


def _amend(runtime: Runtime, table: TableInfo, about: About, changes: _Changes) -> bool:
    amendment = Amendment(
        commit_id=about.commit_id,
        number=about.amendment + 1,
        began_at=table.loaded_at,
        base_snapshot_id=table.head_id,
        files=changes.files,
        removed_file_ids=changes.removed_file_ids,
        withdrawn_paths=tuple(file.path for file in changes.withdrawn),
        read_scope=_OWN_PARTITIONS,
    )
    patience = Patience(f"Amending commit {about.commit_id}")
    outcome = while_busy(patience, lambda: commits.amend(runtime.catalog, amendment))
    gone = changes.withdrawn if isinstance(outcome, Amended) else changes.files
    with suppress(LakeError):  # what cannot be deleted now is an orphan
        runtime.storage.at(table.location).delete_files(file.path for file in gone)
    return isinstance(outcome, Amended | Ended)
