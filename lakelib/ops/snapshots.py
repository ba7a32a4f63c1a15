"""Use cases: a table has the content of an older snapshot again, as a new one; a name pins a snapshot, and lets go of
it. Nothing is destroyed.

A rollback step by step: which snapshot is meant; is each file that has to come back still stored; the commit, in which
the catalog names those files again and takes out what came since. No row is read or written. Others who commit
meanwhile are undone as well: it is made again from their snapshot.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from lakelib.catalog import files, snapshots, tables
from lakelib.errors import ExpiredError, InvalidInputError, LostFileError, NotFoundError
from lakelib.model.commit import Conflict, Reason
from lakelib.model.effect import UNKNOWN
from lakelib.model.rollback import MovedFile, RollbackPlan
from lakelib.model.table import WHOLE_TABLE, CommitKind, Proposal, Snapshot, TableInfo, TableRef
from lakelib.model.text import is_storable
from lakelib.model.upkeep import Tag, TagEnd
from lakelib.ops.commit import Redo, Work, commit_work, stage_work
from lakelib.ops.cross_partition import check_each_once
from lakelib.ops.expire import check_count, check_length
from lakelib.ops.read import At, resolve_snapshot
from lakelib.ops.request import LONGEST_NAME, WriteRequest, check_label
from lakelib.ops.runtime import Runtime
from lakelib.plan.meant import TAG_PREFIX, wrong_at
from lakelib.rows.values import partition_values

To = int | str | datetime

_UNDONE = {Reason.SCHEMA_CHANGED, Reason.ROWS_ADDED, Reason.ROWS_REMOVED, Reason.ROLLED_BACK, Reason.INPUT_GONE}
_CHECKED_AT_ONCE = 32


def rollback(runtime: Runtime, ref: TableRef, to: To, request: WriteRequest) -> Snapshot:
    """Publishes the content of the snapshot, whatever others commit meanwhile."""
    return commit_work(runtime, ref, request, _work(runtime, ref, to, request))


def stage_rollback(runtime: Runtime, ref: TableRef, to: To, request: WriteRequest) -> UUID:
    """The rollback as a staged commit. It conflicts with whatever is committed from now on, compactions aside."""
    return stage_work(runtime, ref, request, _work(runtime, ref, to, request))


def preview_rollback(runtime: Runtime, ref: TableRef, to: To) -> RollbackPlan:
    """What it would change now. Changes nothing; raises what the rollback would."""
    table = tables.load_table(runtime.catalog, ref)
    target = _resolve(runtime, table, to)
    moved = snapshots.find_moved(runtime.catalog, table.id, target)
    _check_stored(runtime, table, target, moved)
    partitions = files.load_partitions(runtime.catalog, sorted({file.partition_id for file in moved}))
    restored = [file for file in moved if file.is_restored]
    removed = [file for file in moved if not file.is_restored]
    return RollbackPlan(
        table=table.full_name,
        to=target,
        head=table.head_id,
        files_restored=len(restored),
        files_removed=len(removed),
        rows_restored=_count_rows(restored),
        rows_removed=_count_rows(removed),
        partitions=tuple(
            partition_values(table.partition_by, each.key)
            for each in sorted(partitions.values(), key=lambda each: [(part is None, part or b"") for part in each.key])
        ),
    )


def _work(runtime: Runtime, ref: TableRef, to: To, request: WriteRequest) -> Work:
    _check_request(request)
    target: int | None = None  # a moment or a tag is looked up once

    def prepare(table: TableInfo) -> Proposal:
        nonlocal target
        try:
            target = _resolve(runtime, table, to if target is None else target)
            _check_stored(runtime, table, target, snapshots.find_moved(runtime.catalog, table.id, target))
            if table.options.cross_partition:
                check_each_once(runtime, table, target)
        except ExpiredError as error:  # not the head, for which one may look again
            raise NotFoundError(error.message, kind=error.kind, remedy=error.remedy) from None
        return _propose(table, target, request)

    return Work(prepare=prepare, redo=_redo, looks_again=True)


def _redo(conflict: Conflict, proposal: Proposal) -> Redo:
    return Redo.ANEW if set(conflict.reasons) <= _UNDONE else Redo.NOT


def _check_request(request: WriteRequest) -> None:
    """Raises InvalidInputError for what is said about rows: there are none."""
    given = {
        "merge_schema": request.merge_schema,
        "explicit_cast": request.explicit_cast,
        "aux_order": request.aux_order,
        "distribution": request.distribution != "auto",
    }
    named = next((name for name, is_given in given.items() if is_given), None)
    if named is not None:
        raise InvalidInputError(
            f"{named} is about rows that are written, and a rollback writes none.",
            kind="invalid_rollback",
            remedy="Leave it out.",
        )


def _resolve(runtime: Runtime, table: TableInfo, to: To) -> int:
    """Raises NotFoundError for a snapshot that is not there, ExpiredError for one that is there no more."""
    found = None if to is None else resolve_snapshot(runtime, table, to)
    if found is None:
        raise wrong_at(to)
    return found.id


def _check_stored(runtime: Runtime, table: TableInfo, target: int, moved: list[MovedFile]) -> None:
    """Raises LostFileError if a file is gone that has to come back; NotFoundError if the snapshot has expired while
    that was looked up."""
    storage = runtime.storage.at(table.location)
    wanted = [file for file in moved if file.is_restored]
    with ThreadPoolExecutor(_CHECKED_AT_ONCE, thread_name_prefix="lakelib-rollback") as pool:
        there = list(pool.map(lambda file: storage.exists(file.path), wanted))
    snapshots.check_kept(runtime.catalog, table, target)
    lost = [file for file, exists in zip(wanted, there, strict=True) if not exists]
    if lost:
        raise LostFileError(
            f"{table.full_name} cannot be brought back to snapshot {target}: {len(lost):,} of the files that it needs"
            f" are gone from the storage, {storage.uri_of(lost[0].path)} among them.",
            remedy="Restore them from a bucket version or a backup (`lake doctor` names them), or choose another"
            " snapshot.",
        )


def _propose(table: TableInfo, target: int, request: WriteRequest) -> Proposal:
    return Proposal(
        commit_id=uuid4(),
        table_id=table.id,
        kind=CommitKind.ROLLBACK,
        base_snapshot_id=table.head_id,
        began_at=table.loaded_at,
        schema=table.schema,
        read_scope=WHOLE_TABLE,
        partition_column_ids=table.partition_ids,
        restores=target,
        idempotency_key=request.idempotency_key,
        summary={"rows_in": 0, "restores": target, **UNKNOWN.as_summary()},
        properties=request.properties,
    )


def _count_rows(moved: list[MovedFile]) -> int:
    return sum(file.row_count - file.delete_count for file in moved)


def parse_end(keep: timedelta | None, keep_last: int | None, family: str) -> TagEnd:
    """Raises InvalidInputError for an end that cannot be."""
    check_length("keep", keep)
    check_count("keep_last", keep_last)
    if not isinstance(family, str) or len(family) > LONGEST_NAME or not is_storable(family):
        raise InvalidInputError(
            f"family is {family!r}.",
            kind="invalid_tag",
            remedy=f"Give up to {LONGEST_NAME} characters, without NUL characters and lone surrogates.",
        )
    return TagEnd(keep=keep, keep_last=keep_last, family=family)


def set_tag(runtime: Runtime, table: TableInfo, name: str, at: At, end: TagEnd) -> Tag:
    """The name pins the snapshot that `at` means; None is the head. Safe to repeat: then the tag stays for as long as
    any of those who have set it have said, without an end if one of them has said none. Raises InvalidInputError for a
    wrong name, NotFoundError if there is no such snapshot, ConflictError if the name pins another one."""
    check_label(name, "tag", TAG_PREFIX)
    snapshot = resolve_snapshot(runtime, table, at)
    if snapshot is None:
        raise NotFoundError(
            f"Table {table.full_name} has no snapshot to tag yet.",
            kind="snapshot_not_found",
            remedy="Write to it first; a commit of nothing makes a snapshot too.",
        )
    return snapshots.set_tag(runtime.catalog, table, name, snapshot.id, end)


def list_tags(runtime: Runtime, table: TableInfo) -> list[Tag]:
    """Those of the newest snapshots first."""
    return snapshots.list_tags(runtime.catalog, table.id)


def delete_tag(runtime: Runtime, table: TableInfo, name: str) -> None:
    """The name is free, and its snapshot may expire. Raises NotFoundError if there is no such tag."""
    check_label(name, "tag", TAG_PREFIX)
    if not snapshots.delete_tag(runtime.catalog, table.id, name):
        raise NotFoundError(
            f"Table {table.full_name} has no tag {name!r}.", kind="tag_not_found", remedy="tags() lists them."
        )
