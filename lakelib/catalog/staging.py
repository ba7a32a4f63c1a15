"""Staging: a proposal and its files enter the catalog, visible to nobody but those who ask for it."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.queries import query
from lakelib.catalog.rows import columns_to_json, file_to_row
from lakelib.catalog.tables import table_missing
from lakelib.errors import ConflictError
from lakelib.model.files import PartitionKey
from lakelib.model.reads_where import reads_where_to_json
from lakelib.model.table import CommitKind, Proposal


def stage(catalog: Catalog, proposal: Proposal, table_name: str) -> None:
    """The proposal is staged afterwards. An older attempt at the same work can no longer publish."""
    catalog.run(lambda db: _stage(db, proposal, table_name))


def withdraw(
    catalog: Catalog, commit_id: UUID, *, paths: Sequence[str], file_ids: Sequence[int], summary: Mapping[str, Any]
) -> bool:
    """A staged commit adds some files less, and takes some less out. False if it is not staged any more."""

    def work(db: Connection) -> bool:
        if db.execute(query("lock_staged"), {"commit_id": commit_id}).fetchone() is None:
            return False
        db.execute(query("withdraw_files"), {"commit_id": commit_id, "paths": list(paths)})
        db.execute(query("withdraw_removals"), {"commit_id": commit_id, "file_ids": list(file_ids)})
        db.execute(query("update_summary"), {"commit_id": commit_id, "summary": Jsonb(dict(summary))})
        return True

    return catalog.run(work)


def _stage(db: Connection, proposal: Proposal, table_name: str) -> None:
    _lock_attempts(db, proposal)
    is_reclaimed = _is_reclaimed(db, proposal, table_name)
    if proposal.new_schema is not None:
        columns = columns_to_json(proposal.new_schema)
        db.execute(
            query("insert_schema"),
            {"table_id": proposal.table_id, "id": proposal.new_schema.id, "columns": columns},
        )
    if db.execute(query("insert_commit"), _commit_row(proposal)).fetchone() is None:
        return  # the reply was lost: whatever became of the commit and of its past since, its files are the catalog's
    if is_reclaimed:
        raise _files_reclaimed(proposal, table_name)
    _check_past(db, proposal, table_name)
    _take_over(db, proposal)
    own_partition_ids = _insert_files(db, proposal)
    _insert_dependencies(db, proposal, own_partition_ids)
    if proposal.removed_file_ids and proposal.kind is not CommitKind.COMPACT:
        _claim_files(db, proposal, table_name)


def _lock_attempts(db: Connection, proposal: Proposal) -> None:
    key = proposal.idempotency_key
    if key is not None:
        db.execute(query("lock_attempts"), {"table_id": proposal.table_id, "application": key.application})


def _is_reclaimed(db: Connection, proposal: Proposal, table_name: str) -> bool:
    """Whether a vacuum may have taken files of the proposal for orphans. If not, none will. Raises NotFoundError if the
    table is gone."""
    work = {"table_id": proposal.table_id, "began_at": proposal.began_at}
    if proposal.files:
        db.execute(query("hold_orphans"), work)
    found = db.execute(query("find_reclaimed"), work).fetchone()
    if found is None:
        raise table_missing(table_name)
    return bool(proposal.files) and bool(found["is_reclaimed"])


def _files_reclaimed(proposal: Proposal, table_name: str) -> ConflictError:
    return ConflictError(
        f"A commit to {table_name} cannot be staged: the write began at {proposal.began_at:%Y-%m-%d %H:%M:%S} UTC, and"
        " a vacuum has deleted files since that are older and were in no commit. Its own may be among them.",
        kind="files_reclaimed",
        remedy="Do it again, and give vacuum a grace that is longer than the longest write.",
    )


def _check_past(db: Connection, proposal: Proposal, table_name: str) -> None:
    """What the commit depends on is still there, and stays while it is staged: whoever lets snapshots expire comes
    before this and is seen, or after and sees the commit. Raises ConflictError if its base has expired."""
    scope, base = proposal.read_scope, proposal.base_snapshot_id
    has_read = scope.whole_table or scope.own_partitions or bool(scope.partition_ids) or scope.where is not None
    if not has_read and not proposal.removed_file_ids:
        return
    db.execute(query("hold_past"), {"table_id": proposal.table_id})
    asked = {"table_id": proposal.table_id, "first_id": base, "last_id": None if has_read else base}
    if db.execute(query("find_expired_since"), asked).fetchone() is not None:
        raise ConflictError(
            f"A commit to {table_name} cannot be staged: it was made from snapshot {base}, and what it has to be"
            " compared with has expired.",
            kind="input_gone",
            remedy="Do it again: it is then made from the present head. Keep snapshots for longer than a commit takes.",
        )


def _take_over(db: Connection, proposal: Proposal) -> None:
    key = proposal.idempotency_key
    if key is not None:
        work = {"table_id": proposal.table_id, "application": key.application, "version": key.version}
        db.execute(query("take_over_attempts"), work | {"commit_id": proposal.commit_id})


def _commit_row(proposal: Proposal) -> dict[str, object]:
    key = proposal.idempotency_key
    schema = proposal.new_schema or proposal.schema
    return {
        "id": proposal.commit_id,
        "table_id": proposal.table_id,
        "kind": proposal.kind.value,
        "base_snapshot_id": proposal.base_snapshot_id,
        "base_schema_id": proposal.schema.id,
        "schema_id": schema.id,
        "reads_whole_table": proposal.read_scope.whole_table,
        "reads_where": _reads_where(proposal),
        "application": key.application if key else None,
        "version": key.version if key else None,
        "summary": Jsonb(dict(proposal.summary)),
        "properties": Jsonb(dict(proposal.properties)),
    }


def _reads_where(proposal: Proposal) -> Jsonb | None:
    where = proposal.read_scope.where
    return None if where is None else Jsonb(reads_where_to_json(where, proposal.partition_column_ids))


def _insert_files(db: Connection, proposal: Proposal) -> set[int]:
    """Enters the files; the ids of their partitions."""
    if not proposal.files:
        return set()
    partition_ids = _ensure_partitions(db, proposal)
    schema_id = (proposal.new_schema or proposal.schema).id
    rows = [
        file_to_row(
            file,
            table_id=proposal.table_id,
            partition_id=partition_ids[file.partition_key],
            commit_id=proposal.commit_id,
            schema_id=schema_id,
        )
        for file in proposal.files
    ]
    if len(rows) == 1:
        db.execute(query("insert_file"), rows[0])
    else:
        with db.cursor() as cursor:
            cursor.executemany(query("insert_file"), rows)
    return set(partition_ids.values())


def _ensure_partitions(db: Connection, proposal: Proposal) -> dict[PartitionKey, int]:
    """Ids of the files' partitions. New ones enter in the order of their keys, lest two writers wait for each other."""
    paths = {file.partition_key: file.partition_path for file in proposal.files}
    ids = {}
    for key in sorted(paths, key=lambda key: tuple((part is None, part or b"") for part in key)):
        parameters = {"table_id": proposal.table_id, "key": list(key), "path": paths[key]}
        row = db.execute(query("find_partition"), parameters).fetchone()
        if row is None:
            db.execute(query("insert_partition"), parameters)
            row = db.execute(query("find_partition"), parameters).fetchone()
        assert row is not None
        ids[key] = row["id"]
    return ids


def _claim_files(db: Connection, proposal: Proposal, table_name: str) -> None:
    """From now on no compaction takes the files that the commit is to take out. An overwrite finds those anew that one
    has taken since it looked; whoever has read them has to look again."""
    file_ids = list(proposal.removed_file_ids)
    while any(row["is_gone"] for row in db.execute(query("lock_files"), {"file_ids": file_ids}).fetchall()):
        if proposal.kind is not CommitKind.OVERWRITE:
            raise ConflictError(
                f"Files of {table_name} that the commit replaces were removed while it was made.",
                kind="input_gone",
                remedy="Do the work again.",
            )
        target = {"commit_id": proposal.commit_id}
        db.execute(query("forget_removals"), target)
        file_ids = [row["file_id"] for row in db.execute(query("insert_removals_of_target"), target).fetchall()]


def _insert_dependencies(db: Connection, proposal: Proposal, own_partition_ids: set[int]) -> None:
    scope = proposal.read_scope
    read_ids = set(scope.partition_ids) | (own_partition_ids if scope.own_partitions else set())
    if proposal.removed_file_ids:
        db.execute(
            query("insert_removals"), {"commit_id": proposal.commit_id, "file_ids": list(proposal.removed_file_ids)}
        )
    if read_ids:
        db.execute(query("insert_reads"), {"commit_id": proposal.commit_id, "partition_ids": sorted(read_ids)})
