"""Part of writes, of tables in which a key is in one partition: a staged commit looks for its keys in what has come
since it did so last, and takes marks in for the rows that leave.

Only those files are read that others have added: beside steady writers, too, it ends.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from lakelib.catalog import commits, files, tables
from lakelib.model.commit import About, Amended, Amendment, CommitInfo, Ended
from lakelib.model.files import DataFile, Partition
from lakelib.model.table import NO_READ, CommitKind, CommitState, KeysLooked, TableInfo
from lakelib.ops.merging import moves_target
from lakelib.ops.moves import NOTHING_REPLACED, NewRows, Replaced, delete_written, write_moves
from lakelib.ops.patience import Patience
from lakelib.ops.read import load_schema
from lakelib.ops.runtime import Runtime
from lakelib.ops.turn import while_busy


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
