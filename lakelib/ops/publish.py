"""Use case: a staged commit becomes a snapshot, or ends.

Publishing is retried while the catalog is out of reach, and is safe to repeat. Files of a commit are never deleted
here: while a commit's outcome is unknown they may be live.
"""

from collections.abc import Callable, Sequence
from uuid import UUID

from lakelib.catalog import publishing
from lakelib.errors import ConflictError, InvalidInputError
from lakelib.model.table import CommitState, Conflict, Snapshot
from lakelib.model.text import is_storable
from lakelib.ops.runtime import Runtime


def publish_staged(runtime: Runtime, commit_ids: Sequence[UUID], *, rebase_overwrites: bool = False) -> list[Snapshot]:
    """All commits become snapshots in one instant, or none does. Raises ConflictError naming what stood in the way."""
    match publishing.publish(runtime.catalog, commit_ids, rebase_overwrites=rebase_overwrites):
        case Conflict() as conflict:
            raise conflict_error(conflict)
        case published:
            return [each.snapshot for each in published]


def publish_alone(runtime: Runtime, table_id: int, stage: Callable[[], UUID]) -> Snapshot:
    """Stages a commit and publishes it while other publishes to the table wait: what it looks at stays as it is."""
    match publishing.publish_alone(runtime.catalog, table_id, stage):
        case Conflict() as conflict:
            abandon(runtime, conflict.commit_id, conflict.reason)
            raise conflict_error(conflict)
        case published:
            return published.snapshot


def reject_staged(runtime: Runtime, commit_id: UUID, reason: str) -> None:
    """The commit is rejected and can never be published; it stays inspectable. Raises InvalidInputError for a reason
    that is no text, or blank."""
    if not isinstance(reason, str) or not reason.strip() or not is_storable(reason):
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
    return ConflictError(
        conflict.detail,
        kind=conflict.reason,
        remedy=f"The table's head is snapshot {conflict.head_id}; look at it and stage the work again.",
    )
