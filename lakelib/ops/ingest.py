"""Use case: the rows of one partition become a staged commit, once for each idempotency key.

An attempt step by step: what has become of this work so far?; write the rows; stage them. Publishing is for later, when
the commit was judged.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from lakelib.catalog import commits, tables
from lakelib.errors import InvalidInputError
from lakelib.model.table import Attempt, CommitKind, IdempotencyKey, Proposal, Snapshot, TableInfo, TableRef
from lakelib.ops.commit import Work, stage_work
from lakelib.ops.overwrite import AnyOf, StaticTarget, parse_target, stage_overwrite
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.ops.write import propose, write_rows
from lakelib.rows.inside import InsideCheck
from lakelib.specs.table_spec import TableSpec
from lakelib.work.engines import open_source

FULL = "made_from_scratch"
"""The property of a commit that was made from scratch, where others are made of changes."""


def find_attempt(runtime: Runtime, table: TableInfo, key: IdempotencyKey) -> Attempt | None:
    """What has become of this work so far: a published commit, or the newest of those that are not; None for nothing
    that counts, which is nothing but commits that have expired."""
    return commits.find_attempt(runtime.catalog, table, key)


def is_overtaken(runtime: Runtime, found: Attempt) -> bool:
    """Whether what was found waits in vain: its rows were made from those of its own table, and others have changed
    them since. The work is to be done anew; to stage it ends what was found."""
    return commits.is_overtaken(runtime.catalog, found.commit_id)


def check_same_work(
    table: TableInfo, spec: TableSpec, partition: str, key: IdempotencyKey, found: Attempt, *, full: bool = False
) -> None:
    """Raises InvalidInputError unless what was found under the key is this work: of the same partition and, in the same
    version, made in the same way. Nothing would be loaded, and nobody would know."""
    stands_for = found.properties.get("partition")
    if stands_for != partition:
        what = "a write that is no ingest" if stands_for is None else f"partition {stands_for}, not for {partition}"
    elif found.version == key.version and found.properties.get("spec_hash") != spec.hash:
        what = f"partition {partition} as the spec had it made before it was changed ({spec.path})"
    elif found.version == key.version and (FULL in found.properties) is not full:
        what = f"partition {partition} as it was made {'of changes' if full else 'from scratch'}"
    else:
        return
    raise _key_reused(table, key.application, found.version, found.commit_id, what)


def check_not_replayed(runtime: Runtime, commit_id: UUID, snapshot: Snapshot) -> None:
    """Raises InvalidInputError if publishing the commit gave another partition's snapshot, which the same key has
    published: the commit's own rows are not in it."""
    if snapshot.commit_id == commit_id:
        return
    commit, other = (commits.load_commit(runtime.catalog, each) for each in (commit_id, snapshot.commit_id))
    partition, stands_for = (each.properties.get("partition") for each in (commit, other))
    if partition != stands_for:
        table = tables.load_table(runtime.catalog, commit.table)
        what = f"partition {stands_for}, not for {partition}, whose commit {commit_id} was not published"
        assert commit.application is not None, "one key has published both"
        assert other.version is not None
        raise _key_reused(table, commit.application, other.version, snapshot.commit_id, what)


def _key_reused(table: TableInfo, application: str, version: int, commit_id: UUID, what: str) -> InvalidInputError:
    return InvalidInputError(
        f"In {table.full_name} version {version} of {application!r} stands for {what}: commit {commit_id}.",
        kind="key_reused",
        remedy="Ingest it under another key; in Airflow, clear the run, or trigger a new one.",
    )


def check_not_appended(
    runtime: Runtime, table: TableInfo, spec: TableSpec, partition: str, key: IdempotencyKey
) -> None:
    """Raises InvalidInputError where an earlier version of the work has appended the partition's rows already: they
    would be there twice."""
    if spec.write.mode != "append" or spec.follows_changes:  # what was read of changes is not read again
        return
    snapshot_id = commits.find_appended(runtime.catalog, table, key, partition)
    if snapshot_id is not None:
        raise InvalidInputError(
            f"The rows of partition {partition} are in {table.full_name} already: an earlier version of"
            f" {key.application!r} has appended them in snapshot {snapshot_id}.",
            kind="appended_already",
            remedy="Delete them first, and ingest the partition under another key (in Airflow: by a new run). Or let"
            " the spec say write.mode: overwrite, which replaces them.",
        )


def check_not_older(runtime: Runtime, table: TableInfo, spec: TableSpec, partition: str) -> None:
    """Raises InvalidInputError for a full copy that is older than the one in the table: it would take its place."""
    newest = commits.find_newest_copy(runtime.catalog, table.id) if spec.is_dated_copy else None
    if newest is None or not spec.has_key(newest[1]) or partition >= newest[1]:
        return
    snapshot_id, key = newest
    raise InvalidInputError(
        f"{table.full_name} holds the full copy of {key}, snapshot {snapshot_id}; that of {partition} is older.",
        kind="older_copy",
        remedy=f"Leave it out. If the table is to hold its rows all the same, ingest {key} again from such files.",
    )


def stage_partition(
    runtime: Runtime,
    ref: TableRef,
    spec: TableSpec,
    key: str,
    rows: Any,
    request: WriteRequest,
    replaced: str | Mapping[str, Any] | AnyOf | None = None,
) -> UUID:
    """The rows of the partition as a staged commit, in the way that the spec says; with what is `replaced` as an
    overwrite of that, whatever it says.

    Rows that lack the key's column get the partition's value. Raises InvalidInputError for a row of another partition
    where the spec or an overwrite of the partition refuses it, before anything is staged.
    """
    table = tables.load_table(runtime.catalog, ref)
    check_not_older(runtime, table, spec, key)
    if replaced is not None:
        return stage_overwrite(runtime, ref, open_source(rows), replaced, request)
    target = _target(table, spec.partition_value(key))
    if spec.write.mode == "append" and spec.follows_changes and request.idempotency_key is not None:
        commits.overtake_appends(runtime.catalog, table, request.idempotency_key, key)
    elif spec.write.mode == "append" and request.idempotency_key is not None:
        commits.overtake_appends(runtime.catalog, table, request.idempotency_key, key)
        check_not_appended(runtime, table, spec, key, request.idempotency_key)
    source = open_source(rows).with_constants(target.constants)
    if spec.write.mode == "overwrite":
        return stage_overwrite(runtime, ref, source, _replaced(spec, key), request)
    kind = CommitKind.UPSERT if spec.write.mode == "upsert" else CommitKind.APPEND
    inside = InsideCheck(partition_by=table.partition_by, values=target.allowed) if spec.partition.strict else None

    def prepare(now: TableInfo) -> Proposal:
        written = write_rows(runtime, now, source, request, file_kind=kind.value, inside=inside)
        return propose(now, kind, request, written)

    return stage_work(runtime, ref, request, Work(prepare=prepare))


def _target(table: TableInfo, values: Mapping[str, str]) -> StaticTarget:
    return parse_target(table, values) if values else StaticTarget(values={})


def _replaced(spec: TableSpec, key: str) -> str | Mapping[str, Any]:
    """What an overwrite replaces."""
    if spec.write.partitions == "key":
        return spec.partition_value(key) or "all"
    return spec.write.partitions
