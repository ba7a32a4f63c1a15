"""Publishing: the one transaction in which commits become snapshots, or nothing changes."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.identity import check_identity
from lakelib.catalog.queries import query
from lakelib.catalog.rows import Row, attempt_from_row, snapshot_from_row
from lakelib.catalog.tables import table_missing
from lakelib.errors import ConflictError, NotFoundError, RejectedError
from lakelib.model.reads_where import reads_where_from_json
from lakelib.model.schema import Column
from lakelib.model.table import (
    Approval,
    Attempt,
    CommitKind,
    CommitState,
    Conflict,
    IdempotencyKey,
    Published,
    Snapshot,
    TableInfo,
)
from lakelib.plan.prune import partition_may_match

STALE = "verdict_stale"
"""The reason of a conflict that judging again resolves."""
_PASSING_VERDICTS = ("accept", "warn")
_WITHOUT_ROWS = (CommitKind.COMPACT.value, CommitKind.EVOLVE.value)
_alone = threading.Lock()
"""Whoever publishes alone keeps one connection of the pool while its work takes others: one at a time, lest all of them
wait for each other."""


class _AbandonedError(Exception):
    """Ends the transaction without a change."""

    def __init__(self, conflict: Conflict) -> None:
        self.conflict = conflict


def publish(
    catalog: Catalog,
    commit_ids: Sequence[UUID],
    *,
    rebase_overwrites: bool = False,
    approval: Approval | None = None,
    epoch: int | None = None,
) -> list[Published] | Conflict:
    """All commits become snapshots in one instant, in the order given, or none does.

    Safe to repeat: a commit that was published already gives the snapshot it became, and so does one whose work another
    attempt has published. Raises ConflictError when a newer attempt took over, RejectedError for a rejected commit and
    for one without the verdict that its table requires, unless a person approves of it. A verdict that rests on rows
    which have changed since is a conflict. With `rebase_overwrites` an overwrite replaces what is in its target at this
    moment; without, what was added there since it was staged is a conflict. `epoch` is that of the lake's identity as
    the caller has seen it: another one is an InvalidInputError; None is not compared.
    """

    def work(db: Connection) -> list[Published]:
        if epoch is not None:
            check_identity(db, epoch)
        return _publish_all(db, list(commit_ids), rebase_overwrites, approval)

    try:
        return catalog.run(work)
    except _AbandonedError as abandoned:
        return abandoned.conflict


def publish_alone(catalog: Catalog, table_id: int, stage: Callable[[], UUID], *, epoch: int) -> Published | Conflict:
    """Stages a commit and publishes it, while whoever else publishes to the table waits: nothing changes in between.

    Ended by a lost connection this is done again from the start, unless it has been published.
    """
    staged: list[UUID] = []

    def work(db: Connection) -> Published:
        check_identity(db, epoch)
        db.execute(query("hold_table"), {"table_id": table_id})
        if not staged or _load_commit(db, staged[-1])["state"] != CommitState.PUBLISHED.value:
            staged.append(stage())
        return _publish_all(db, staged[-1:], rebase_overwrites=False)[0]

    try:
        with _alone:
            return catalog.run(work)
    except _AbandonedError as abandoned:
        return abandoned.conflict


def decide(catalog: Catalog, commit_id: UUID, state: CommitState, reason: str) -> None:
    """Ends a staged commit without publishing it. Raises RejectedError or ConflictError if it was decided otherwise."""

    def work(db: Connection) -> None:
        parameters = {"commit_id": commit_id, "state": state.value, "reason": reason}
        if db.execute(query("decide_commit"), parameters).fetchone() is None:
            commit = _load_commit(db, commit_id)
            if commit["state"] != state.value:
                raise ConflictError(
                    f"Commit {commit_id} of {commit['table_name']} is {commit['state']}; it cannot be {state.value}.",
                    kind="commit_decided",
                    remedy="A commit is decided once; undo a published one with a new commit.",
                )

    catalog.run(work)


def find_published(catalog: Catalog, table: TableInfo, key: IdempotencyKey) -> Snapshot | None:
    """The snapshot that did this work already, if one has."""
    parameters = {"table_id": table.id, "application": key.application, "version": key.version}
    row = catalog.run(lambda db: db.execute(query("find_published"), parameters).fetchone())
    return None if row is None else snapshot_from_row(row)


def find_attempt(catalog: Catalog, table: TableInfo, key: IdempotencyKey) -> Attempt | None:
    """The commit that counts for this work: one that has published it, else the newest that has not expired."""
    parameters = {"table_id": table.id, "application": key.application, "version": key.version}
    row = catalog.run(lambda db: db.execute(query("find_attempt"), parameters).fetchone())
    return None if row is None else attempt_from_row(row)


def find_appended(catalog: Catalog, table: TableInfo, key: IdempotencyKey, partition: str) -> int | None:
    """The snapshot in which an earlier version of this work has appended the rows of the partition."""
    parameters = {"table_id": table.id, "application": key.application, "version": key.version, "partition": partition}
    row = catalog.run(lambda db: db.execute(query("find_appended"), parameters).fetchone())
    return None if row is None else int(row["snapshot_id"])


def overtake_appends(catalog: Catalog, table: TableInfo, key: IdempotencyKey, partition: str) -> None:
    """No earlier version of this work appends rows of the partition from now on; those that have done so have."""
    parameters = {"table_id": table.id, "application": key.application, "version": key.version, "partition": partition}
    catalog.run(lambda db: db.execute(query("overtake_appends"), parameters))


def refresh_overwrite(catalog: Catalog, commit_id: UUID, *, over_changes: bool) -> None:
    """A staged overwrite takes out what is in its target now: files of compactions that have replaced what it was to
    take out; with `over_changes` whatever was added since. Anything else is left for publishing to tell."""

    def work(db: Connection) -> None:
        commit = db.execute(query("lock_commits"), {"commit_ids": [commit_id]}).fetchone()
        if commit is None or commit["state"] != CommitState.STAGED.value or commit["dropped_at"] is not None:
            return
        if commit["kind"] != CommitKind.OVERWRITE.value or commit["base_snapshot_id"] == commit["head_id"]:
            return
        _extend_reads(db, commit)
        checks = db.execute(query("check_commit"), {"commit_id": commit_id}).fetchone()
        assert checks is not None
        if over_changes or (checks["input_gone"] and not checks["rows_added"] and not checks["rows_removed"]):
            _rebase(db, commit)

    catalog.run(work)


def find_claims(catalog: Catalog, table_id: int) -> frozenset[int]:
    """The files that staged commits are to take out of the table. Compactions leave them alone."""
    rows = catalog.run(lambda db: db.execute(query("find_claims"), {"table_id": table_id}).fetchall())
    return frozenset(row["file_id"] for row in rows)


def find_spoilt(catalog: Catalog, commit_id: UUID) -> frozenset[int]:
    """The files of a staged compaction that others have taken out, or are to."""
    rows = catalog.run(lambda db: db.execute(query("find_spoilt"), {"commit_id": commit_id}).fetchall())
    return frozenset(row["file_id"] for row in rows)


def _publish_all(
    db: Connection, commit_ids: list[UUID], rebase_overwrites: bool, approval: Approval | None = None
) -> list[Published]:
    rows = db.execute(query("lock_commits"), {"commit_ids": commit_ids}).fetchall()
    commits = {commit["id"]: commit for commit in rows}
    missing = [commit_id for commit_id in commit_ids if commit_id not in commits]
    if missing:
        raise commit_missing(missing[0])
    published: dict[UUID, Published] = {}
    for commit_id in commit_ids:
        if commit_id not in published:
            published[commit_id] = _publish_one(db, commits[commit_id], rebase_overwrites, approval)
            _check_order(commits, commit_id, published[commit_id].snapshot)
    return [published[commit_id] for commit_id in commit_ids]


def _check_order(commits: Mapping[UUID, Row], commit_id: UUID, snapshot: Snapshot) -> None:
    """A commit whose work another one of the same transaction has made obsolete was meant to be published before it."""
    if snapshot.commit_id == commit_id:
        return
    commit, other = commits[commit_id], commits.get(snapshot.commit_id)
    if other is not None and other["state"] == CommitState.STAGED.value:
        _check_state(commit)
        raise _abandoned(
            commit,
            "version_order",
            f"version {commit['version']} of {commit['application']!r} comes after version {other['version']} in one"
            " transaction; add the commits of an application in rising order",
        )


def _publish_one(db: Connection, commit: Row, rebase_overwrites: bool, approval: Approval | None = None) -> Published:
    if commit["state"] == CommitState.PUBLISHED.value:
        return _published(commit, db.execute(query("find_snapshot_of_commit"), {"commit_id": commit["id"]}).fetchone())
    if commit["dropped_at"] is not None:
        raise table_missing(commit["table_name"])
    if commit["kind"] == CommitKind.COMPACT.value:
        db.execute(query("lock_removals"), {"commit_id": commit["id"]})
    _extend_reads(db, commit)
    checks = db.execute(query("check_commit"), {"commit_id": commit["id"]}).fetchone()
    assert checks is not None
    commit = {**commit, "head_id": checks["head_id"], "head_schema_id": checks["head_schema_id"]}
    if checks["done_version"] is not None and commit["state"] != CommitState.REJECTED.value:
        return _adopt_earlier(db, commit)
    verdicts = checks["verdicts"] or []
    if approval is None:
        _check_state(commit)
        _check_verdicts(commit, verdicts)
    else:
        _check_approvable(commit, checks)
    _check_schema(commit)
    is_overwrite = commit["kind"] == CommitKind.OVERWRITE.value
    if not (is_overwrite and rebase_overwrites):
        _check_conflicts(commit, checks)
    if approval is None:
        _check_staleness(commit, verdicts)
    if is_overwrite and (checks["input_gone"] or rebase_overwrites) and commit["base_snapshot_id"] < commit["head_id"]:
        _rebase(db, commit)
    if approval is not None:
        decision = {"commit_id": commit["id"], "by": approval.by, "reason": approval.reason}
        db.execute(query("approve_commit"), decision)
    published = _published(commit, db.execute(query("publish_commit"), {"commit_id": commit["id"]}).fetchone())
    return _reset_marks(db, published) if checks["has_marks"] else published


def _rebase(db: Connection, commit: Row) -> None:
    """An overwrite takes out what is in its target at this moment."""
    for step in ("forget_removals", "insert_removals_of_target", "rebase_commit"):
        db.execute(query(step), {"commit_id": commit["id"]})


def _reset_marks(db: Connection, published: Published) -> Published:
    """Partitions whose rows have changed are not done any more."""
    parameters = {"commit_id": published.snapshot.commit_id, "table_id": published.table_id}
    reset = db.execute(query("reset_marks"), parameters).fetchone()
    return replace(published, leaves_files=reset is not None and reset["leaves_files"])


def _extend_reads(db: Connection, commit: Row) -> None:
    """A commit that read wherever a predicate may be TRUE has read the partitions, too, that came into being since."""
    if commit["reads_where"] is None:
        return
    predicate = reads_where_from_json(commit["reads_where"])
    unread = db.execute(query("find_unread_partitions"), {"commit_id": commit["id"]}).fetchall()
    partition_by = [Column(id=column_id, name="", type="") for column_id in commit["partition_by"]]
    read = [row["id"] for row in unread if partition_may_match(predicate, partition_by, tuple(row["key"]))]
    if read:
        db.execute(query("insert_reads"), {"commit_id": commit["id"], "partition_ids": read})


def _adopt_earlier(db: Connection, commit: Row) -> Published:
    """The work was done by another attempt: this one ends, its caller gets the other's snapshot."""
    done = {"commit_id": commit["id"], "state": CommitState.EXPIRED.value, "reason": "the work was published already"}
    db.execute(query("decide_commit"), done)
    key = {"table_id": commit["table_id"], "application": commit["application"], "version": commit["version"]}
    return _published(commit, db.execute(query("find_published"), key).fetchone())


def _published(commit: Row, snapshot: Row | None) -> Published:
    assert snapshot is not None
    return Published(snapshot=snapshot_from_row(snapshot), table_id=commit["table_id"])


def _check_state(commit: Row) -> None:
    if commit["state"] == CommitState.STAGED.value:
        return
    if commit["state"] == CommitState.REJECTED.value:
        raise RejectedError(
            f"Commit {commit['id']} of {commit['table_name']} is rejected ({commit['reason']}).",
            kind="commit_rejected",
            remedy="Stage the corrected data as a new commit, or publish this one by name and reason.",
        )
    raise _fenced(commit, f"it is {commit['state']} ({commit['reason']})")


def _check_approvable(commit: Row, checks: Row) -> None:
    """A person overrules verdicts and rejections, and nothing else."""
    if commit["state"] != CommitState.REJECTED.value:
        _check_state(commit)
    elif checks["done_version"] is not None:
        raise _fenced(commit, "another attempt has published the same work")


def _fenced(commit: Row, why: str) -> ConflictError:
    return ConflictError(
        f"Commit {commit['id']} of {commit['table_name']} cannot be published: {why}.",
        kind="fenced",
        remedy="Look for the newer attempt's snapshot, or stage the work again.",
    )


def _check_verdicts(commit: Row, verdicts: Sequence[Row]) -> None:
    """What brings no rows needs no gate. All newest verdicts must have passed, also of gates that nobody requires."""
    gate = commit["required_gate"]
    if gate and commit["kind"] not in _WITHOUT_ROWS and not any(verdict["gate"] == gate for verdict in verdicts):
        raise RejectedError(
            f"Table {commit['table_name']} requires that gate {gate!r} has passed commit {commit['id']}; it has no"
            " verdict.",
            kind="verdict_missing",
            remedy="Judge the commit first.",
        )
    for verdict in verdicts:
        if verdict["outcome"] not in _PASSING_VERDICTS:
            raise RejectedError(
                f"Commit {commit['id']} of {commit['table_name']} has not passed gate {verdict['gate']!r}: its verdict"
                f" is {verdict['outcome']}.",
                kind="verdict_not_passed",
                remedy="Judge the commit again, or publish it by name and reason.",
            )


def _check_staleness(commit: Row, verdicts: Sequence[Row]) -> None:
    for verdict in verdicts:
        if verdict["stale"]:
            detail = (
                f"rows that gate {verdict['gate']!r} has judged with it have changed since snapshot {verdict['base']}"
            )
            raise _abandoned(commit, STALE, detail)


def _check_schema(commit: Row) -> None:
    """A commit that leaves the schema alone fits every later one: readers map its columns by id."""
    if commit["schema_id"] != commit["base_schema_id"] and commit["head_schema_id"] != commit["base_schema_id"]:
        raise _abandoned(commit, "schema_changed", "another commit changed the table's schema")


def _check_conflicts(commit: Row, checks: Row) -> None:
    """An overwrite does without the files that it was to take out, if compactions alone have: their files are found."""
    base = commit["base_snapshot_id"]
    if checks["input_claimed"]:
        raise _abandoned(commit, "input_claimed", "a staged commit is to remove files that it replaces")
    if checks["input_gone"] and (commit["kind"] != CommitKind.OVERWRITE.value or checks["rows_removed"]):
        raise _abandoned(commit, "input_gone", f"files that it replaces were removed since snapshot {base}")
    if checks["rows_added"]:
        raise _abandoned(commit, "rows_added", f"rows were added where it read since snapshot {base}")
    if checks["rows_removed"] and checks["has_sequence"]:
        raise _abandoned(commit, "rows_removed", f"rows were removed where it read since snapshot {base}")


def _abandoned(commit: Row, reason: str, detail: str) -> _AbandonedError:
    detail = f"Commit {commit['id']} of {commit['table_name']} cannot be published: {detail}."
    return _AbandonedError(Conflict(commit_id=commit["id"], head_id=commit["head_id"], reason=reason, detail=detail))


def _load_commit(db: Connection, commit_id: UUID) -> Row:
    row = db.execute(query("load_commit"), {"commit_id": commit_id}).fetchone()
    if row is None:
        raise commit_missing(commit_id)
    return row


def commit_missing(commit_id: UUID) -> NotFoundError:
    return NotFoundError(
        f"There is no commit {commit_id}.", kind="commit_not_found", remedy="Take the id from StagedCommit.id."
    )


def load_commit(catalog: Catalog, commit_id: UUID) -> Row:
    """A commit as it stands. Raises NotFoundError."""
    return catalog.run(lambda db: _load_commit(db, commit_id))


def list_commits(catalog: Catalog, table_id: int | None, states: Sequence[str], limit: int) -> list[Row]:
    """Commits of a table, or of all, in these states, the newest first, with the outcome of their newest verdict."""
    parameters = {"table_id": table_id, "states": list(states), "limit": limit}
    return list(catalog.run(lambda db: db.execute(query("list_commits"), parameters).fetchall()))
