"""Use cases: a staged commit is looked up, and decided against: rejected, discarded, or given up by its own writer.

Files of a commit are never deleted here: while a commit's outcome is unknown they may be live.
"""

from collections.abc import Iterable
from contextlib import suppress
from uuid import UUID

from lakelib.catalog import commits, tables
from lakelib.catalog.failures import CatalogBusyError
from lakelib.catalog.roles import require_right
from lakelib.errors import DecidedError, InvalidInputError, LakeError
from lakelib.model.commit import CommitInfo
from lakelib.model.roles import Right
from lakelib.model.table import CommitState, TableInfo
from lakelib.model.text import is_said
from lakelib.ops.patience import GaveUpError
from lakelib.ops.runtime import Runtime
from lakelib.plan.meant import ids_beginning, parse_commit_id

_MOST_NAMED = 10

GIVEN_UP = (GaveUpError, CatalogBusyError)
"""By its own writer: it waited for too long."""


def find_staged(runtime: Runtime, commit_id: UUID | str) -> tuple[TableInfo, UUID]:
    """A commit, in whatever state, by its id or how that begins; and its table. Raises NotFoundError, and
    InvalidInputError for what is no id, or begins several."""
    commit = find_commit(runtime, commit_id)
    return tables.load_table(runtime.catalog, commit.table), commit.id


def find_commit(runtime: Runtime, commit_id: UUID | str) -> CommitInfo:
    """Raises as `find_staged`."""
    said = parse_commit_id(commit_id)
    if said is None:
        raise InvalidInputError(
            f"{commit_id!r} is no id of a commit, and none begins so.",
            kind="invalid_commit_id",
            remedy="Take it from StagedCommit.id; its first four digits or more will do.",
        )
    if isinstance(said, UUID):
        return commits.load_commit(runtime.catalog, said)
    found = commits.find_commits_between(runtime.catalog, *ids_beginning(said), limit=_MOST_NAMED + 1)
    if not found:
        raise commits.commit_missing(said)
    if len(found) > 1:
        named = ", ".join(f"{each.id} ({each.table.full_name}, {each.state.value})" for each in found[:_MOST_NAMED])
        raise InvalidInputError(
            f"The ids of several commits begin with {said}: {named}{', …' if len(found) > _MOST_NAMED else ''}.",
            kind="ambiguous_commit_id",
            remedy="Give more of the id that is meant.",
        )
    return found[0]


def reject_staged(runtime: Runtime, commit_id: UUID, reason: str) -> None:
    """The commit is rejected and stays inspectable: nobody publishes it but a person by name and reason. Raises
    InvalidInputError for a reason that is no text, or blank, ConflictError if it was decided otherwise."""
    if not is_said(reason):
        raise InvalidInputError(
            f"The reason to reject commit {commit_id} is {reason!r}.",
            kind="invalid_reason",
            remedy="Say why in text, without NUL characters and lone surrogates.",
        )
    require_right(runtime.catalog, Right.JUDGE)
    state = commits.end(runtime.catalog, commit_id, CommitState.REJECTED, reason)
    if state is not CommitState.REJECTED:
        raise DecidedError(
            f"Commit {commit_id} is {state.value}; it cannot be rejected.",
            remedy="A commit is decided once; undo a published one with a new commit.",
        )


def discard_staged(runtime: Runtime, commit_id: UUID, by: str, reason: str) -> None:
    """A person decides against a commit that is staged or was rejected: it is rejected and inspectable, and waits for
    nobody any more. Raises InvalidInputError for a name or a reason that is no text, or blank, ConflictError if it was
    decided otherwise, NotFoundError."""
    if not is_said(by) or not is_said(reason):
        raise InvalidInputError(
            f"by is {by!r} and reason is {reason!r}.",
            kind="invalid_reason",
            remedy="Say who decides against it and why, both in text, without NUL characters and lone surrogates.",
        )
    require_right(runtime.catalog, Right.JUDGE)
    decided = commits.discard(runtime.catalog, commit_id, by, reason)
    if decided is not None:
        raise DecidedError(
            f"Commit {commit_id} is {decided.value}; nobody can decide against it any more.",
            remedy="A commit is decided once; undo a published one with a new commit.",
        )


def end_staged(runtime: Runtime, commit_id: UUID, reason: str) -> bool:
    """The commit counts no more. Whether its files are free to be reclaimed: not if it was decided otherwise before."""
    return commits.end(runtime.catalog, commit_id, CommitState.EXPIRED, reason) is CommitState.EXPIRED


def end_given_up(runtime: Runtime, commit_id: UUID, error: LakeError) -> None:
    """A commit that its own writer gives up is left to nobody: it holds no past, and is not published later."""
    with suppress(LakeError):
        end_staged(runtime, commit_id, error.kind)


def end_all(runtime: Runtime, commit_ids: Iterable[UUID], reason: str) -> None:
    """Those that nobody has decided about count no more."""
    for commit_id in commit_ids:
        with suppress(LakeError):
            end_staged(runtime, commit_id, reason)


def find_state(runtime: Runtime, commit_id: UUID) -> str:
    """ "staged", "published", "rejected" or "expired"."""
    return commits.load_commit(runtime.catalog, commit_id).state.value
