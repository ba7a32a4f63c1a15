"""Use case: a staged commit becomes a snapshot, or ends.

Publishing is retried while the catalog is out of reach, and is safe to repeat. Files of a commit are never deleted
here: while a commit's outcome is unknown they may be live.
"""

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from lakelib.catalog import publishing, tables
from lakelib.errors import ConflictError, InvalidInputError
from lakelib.model.table import Approval, CommitState, Conflict, Snapshot, TableInfo
from lakelib.model.text import is_storable
from lakelib.ops.done_files import after_reset
from lakelib.ops.runtime import Runtime


def publish_staged(
    runtime: Runtime,
    commit_ids: Sequence[UUID],
    *,
    rebase_overwrites: bool = False,
    by: str | None = None,
    reason: str | None = None,
) -> list[Snapshot]:
    """All commits become snapshots in one instant, or none does. Raises ConflictError naming what stood in the way,
    RejectedError for a commit that only a person may publish: `by` says who, `reason` why."""
    approval = _parse_approval(by, reason)
    outcome = runtime.ownership.with_epoch(
        partial(
            publishing.publish,
            runtime.catalog,
            commit_ids,
            rebase_overwrites=rebase_overwrites,
            approval=approval,
        )
    )
    match outcome:
        case Conflict() as conflict:
            raise conflict_error(conflict)
        case published:
            after_reset(runtime, {each.table_id for each in published if each.leaves_files})
            return [each.snapshot for each in published]


def publish_alone(runtime: Runtime, table_id: int, stage: Callable[[], UUID]) -> Snapshot:
    """Stages a commit and publishes it while other publishes to the table wait: what it looks at stays as it is."""
    match runtime.ownership.with_epoch(partial(publishing.publish_alone, runtime.catalog, table_id, stage)):
        case Conflict() as conflict:
            abandon(runtime, conflict.commit_id, conflict.reason)
            raise conflict_error(conflict)
        case published:
            after_reset(runtime, {published.table_id} if published.leaves_files else ())
            return published.snapshot


def _parse_approval(by: str | None, reason: str | None) -> Approval | None:
    """None if nobody approves. Raises InvalidInputError for a name without a reason, and the other way round."""
    if by is None and reason is None:
        return None
    if not _is_said(by) or not _is_said(reason):
        raise InvalidInputError(
            f"by is {by!r} and reason is {reason!r}.",
            kind="invalid_approval",
            remedy="Say who publishes the commit and why, both in text, without NUL characters and lone surrogates.",
        )
    return Approval(by=str(by), reason=str(reason))


def _is_said(text: object) -> bool:
    return isinstance(text, str) and bool(text.strip()) and is_storable(text)


def find_staged(runtime: Runtime, commit_id: UUID | str) -> tuple[TableInfo, UUID]:
    """A commit, in whatever state, and its table. Raises NotFoundError."""
    try:
        wanted = commit_id if isinstance(commit_id, UUID) else UUID(commit_id)
    except (AttributeError, TypeError, ValueError):
        raise InvalidInputError(
            f"{commit_id!r} is no id of a commit.", kind="invalid_commit_id", remedy="Take it from StagedCommit.id."
        ) from None
    commit = publishing.load_commit(runtime.catalog, wanted)
    return tables.load_table(runtime.catalog, commit["table_id"], commit["table_name"]), wanted


def reject_staged(runtime: Runtime, commit_id: UUID, reason: str) -> None:
    """The commit is rejected and stays inspectable: nobody publishes it but a person by name and reason. Raises
    InvalidInputError for a reason that is no text, or blank."""
    if not _is_said(reason):
        raise InvalidInputError(
            f"The reason to reject commit {commit_id} is {reason!r}.",
            kind="invalid_reason",
            remedy="Say why in text, without NUL characters and lone surrogates.",
        )
    publishing.decide(runtime.catalog, commit_id, CommitState.REJECTED, reason)


def abandon(runtime: Runtime, commit_id: UUID, reason: str) -> None:
    """The commit's files are free to be reclaimed."""
    publishing.decide(runtime.catalog, commit_id, CommitState.EXPIRED, reason)


def find_state(runtime: Runtime, commit_id: UUID) -> str:
    """ "staged", "published", "rejected" or "expired"."""
    return str(publishing.load_commit(runtime.catalog, commit_id)["state"])


def conflict_error(conflict: Conflict) -> ConflictError:
    again = "judge the commit again" if conflict.reason == publishing.STALE else "look at it and stage the work again"
    return ConflictError(
        conflict.detail, kind=conflict.reason, remedy=f"The table's head is snapshot {conflict.head_id}; {again}."
    )
