"""Use case: a staged commit becomes a snapshot, or ends.

Publishing is retried while the catalog is out of reach or the table busy, and is safe to repeat. Files of a commit are
never deleted here: while a commit's outcome is unknown they may be live. This is where outcomes become exceptions.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from uuid import UUID

from lakelib.catalog import commits, tables
from lakelib.catalog.failures import CatalogBusyError
from lakelib.catalog.roles import require_right
from lakelib.errors import (
    ConflictError,
    DecidedError,
    IdentityDiffersError,
    InvalidInputError,
    LakeError,
    RejectedError,
)
from lakelib.model.commit import (
    About,
    Busy,
    CommitMissing,
    Conflict,
    Done,
    Fence,
    Fenced,
    FilesReclaimed,
    IdentityDiffers,
    InputGone,
    NotPublished,
    NotStaged,
    PastExpired,
    Published,
    PublishOutcome,
    Reason,
    Refusal,
    Rejected,
    Stale,
    TableMissing,
)
from lakelib.model.roles import Right
from lakelib.model.table import Approval, CommitState, Snapshot, TableInfo
from lakelib.model.text import is_said
from lakelib.ops.done_files import after_reset
from lakelib.ops.patience import GaveUpError, Patience
from lakelib.ops.runtime import Runtime
from lakelib.ops.turn import Turn


def publish_staged(
    runtime: Runtime, commit_ids: Sequence[UUID], *, by: str | None = None, reason: str | None = None
) -> list[Snapshot]:
    """All commits become snapshots in one instant, or none does. Raises ConflictError naming what stood in the way,
    RejectedError for a commit that only a person may publish: `by` says who, `reason` why."""
    with Turn(runtime, patience_to_publish(commit_ids)) as turn:
        match try_publish(runtime, commit_ids, turn, parse_approval(by, reason)):
            case Done() as done:
                return settle_done(runtime, done)
            case outcome:
                raise error_of(outcome)


def try_publish(
    runtime: Runtime, commit_ids: Sequence[UUID], turn: Turn, approval: Approval | None = None
) -> PublishOutcome:
    """What comes of it, once the tables are not busy."""
    if approval is not None:
        require_right(runtime.catalog, Right.JUDGE)
    outcome = turn.attempt(
        lambda epoch: commits.publish(runtime.catalog, commit_ids, epoch=epoch, approval=approval, turn=turn.id)
    )
    if isinstance(outcome, Conflict | Stale) and len(commit_ids) > 1:
        return replace(outcome, about=_as_all_see_it(runtime, outcome.about))
    return outcome


def _as_all_see_it(runtime: Runtime, about: About) -> About:
    """The heads that a transaction gives its tables are gone with it."""
    commit = commits.load_commit(runtime.catalog, about.commit_id)
    head_id = tables.load_table(runtime.catalog, commit.table).head_id
    return replace(about, head_id=min(head_id, about.head_id), follows_others=about.head_id > head_id)


def patience_to_publish(commit_ids: Sequence[UUID]) -> Patience:
    return Patience(f"Publishing {', '.join(map(str, commit_ids))}")


def settle_done(runtime: Runtime, done: Done) -> list[Snapshot]:
    """The snapshots, once what follows from them is done."""
    after_reset(runtime, {each.table_id for each in done.commits if isinstance(each, Published) and each.leaves_files})
    return [each.snapshot for each in done.commits]


def parse_approval(by: str | None, reason: str | None) -> Approval | None:
    """None if nobody approves. Raises InvalidInputError for a name without a reason, and the other way round."""
    if by is None and reason is None:
        return None
    if not is_said(by) or not is_said(reason):
        raise InvalidInputError(
            f"by is {by!r} and reason is {reason!r}.",
            kind="invalid_approval",
            remedy="Say who publishes the commit and why, both in text, without NUL characters and lone surrogates.",
        )
    return Approval(by=str(by), reason=str(reason))


def find_staged(runtime: Runtime, commit_id: UUID | str) -> tuple[TableInfo, UUID]:
    """A commit, in whatever state, and its table. Raises NotFoundError."""
    try:
        wanted = commit_id if isinstance(commit_id, UUID) else UUID(commit_id)
    except (AttributeError, TypeError, ValueError):
        raise InvalidInputError(
            f"{commit_id!r} is no id of a commit.", kind="invalid_commit_id", remedy="Take it from StagedCommit.id."
        ) from None
    commit = commits.load_commit(runtime.catalog, wanted)
    return tables.load_table(runtime.catalog, commit.table), wanted


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


def abandon(runtime: Runtime, commit_id: UUID, reason: str) -> bool:
    """Whether the commit's files are free to be reclaimed: not if it was decided otherwise before."""
    return commits.end(runtime.catalog, commit_id, CommitState.EXPIRED, reason) is CommitState.EXPIRED


@contextmanager
def ending_if_given_up(runtime: Runtime, commit_id: UUID) -> Iterator[None]:
    """A commit that its own writer gives up is left to nobody: it holds no past, and is not published later."""
    try:
        yield
    except (GaveUpError, CatalogBusyError) as error:
        with suppress(LakeError):
            abandon(runtime, commit_id, error.kind)
        raise


def find_state(runtime: Runtime, commit_id: UUID) -> str:
    """ "staged", "published", "rejected" or "expired"."""
    return commits.load_commit(runtime.catalog, commit_id).state.value


# Outcomes as exceptions


def error_of(outcome: NotPublished | NotStaged, table_name: str = "") -> LakeError:
    """What to raise for an outcome that nobody handles; `table_name` is for messages."""
    match outcome:
        case Conflict():
            return _conflict_error(outcome)
        case Stale(about=about, gate=gate, judged_at=judged_at) if about.follows_others and about.head_id <= judged_at:
            return ConflictError(
                f"Commit {about.commit_id} of {about.table_name} cannot be published: commits before it in the same"
                f" transaction change rows that gate {gate!r} has judged with it, not on top of them.",
                kind="verdict_stale",
                remedy="Judge the commit on top of them: judge(on_top_of=…), jobs/publish.py with its --spec.",
            )
        case Stale(about=about, gate=gate, judged_at=judged_at):
            return ConflictError(
                f"Commit {about.commit_id} of {about.table_name} cannot be published: rows that gate {gate!r} has"
                f" judged with it have changed since snapshot {judged_at}.",
                kind="verdict_stale",
                remedy=f"The table's head is snapshot {about.head_id}; judge the commit again.",
            )
        case Rejected():
            return _rejected_error(outcome)
        case Fenced():
            return _fenced_error(outcome)
        case IdentityDiffers(what=what):
            return IdentityDiffersError(
                f"The catalog is not what it was when this process looked at it: {what} differs.",
                remedy="Connect again; the catalog may have been adopted, or be a copy.",
            )
        case CommitMissing(commit_id=commit_id):
            return commits.commit_missing(commit_id)
        case TableMissing(name=name):
            return tables.table_missing(name or table_name)
        case FilesReclaimed():
            return ConflictError(
                f"A commit to {table_name} cannot be staged: a vacuum has deleted files, since the write began, that"
                " are older than it and were in no commit. Its own may be among them.",
                kind="files_reclaimed",
                remedy="Do it again, and give vacuum a grace that is longer than the longest write.",
            )
        case PastExpired():
            return ConflictError(
                f"A commit to {table_name} cannot be staged: what it has to be compared with has expired since it was"
                " begun.",
                kind="input_gone",
                remedy="Do it again: it is then made from the present head. Keep snapshots for longer than a commit"
                " takes.",
            )
        case InputGone():
            return ConflictError(
                f"Files of {table_name} that the commit replaces were removed while it was made.",
                kind="input_gone",
                remedy="Do the work again.",
            )
        case Busy():
            raise AssertionError("whoever publishes waits while a table is busy")


_WHY = {
    Reason.SCHEMA_CHANGED: "another commit changed the table's schema",
    Reason.INPUT_CLAIMED: "a staged commit is to remove files that it replaces",
    Reason.INPUT_GONE: "files that it replaces were removed since snapshot {base}",
    Reason.ROWS_ADDED: "rows were added where it read since snapshot {base}",
    Reason.ROWS_REMOVED: "rows were removed where it read since snapshot {base}",
    Reason.VERSION_ORDER: "version {version} of {application!r} comes after version {other_version} in one"
    " transaction; add the commits of an application in rising order",
}


def _conflict_error(conflict: Conflict) -> ConflictError:
    about = conflict.about
    is_by_others = about.follows_others and about.head_id <= about.base_id
    if is_by_others and Reason.VERSION_ORDER not in conflict.reasons:  # which says itself what is wrong with the order
        return ConflictError(
            f"Commit {about.commit_id} of {about.table_name} cannot be published: commits that come before it in the"
            " same transaction change what it was made from, or replaces.",
            kind=conflict.reasons[0].value,
            remedy="Publish those before it, and stage it again; or have one commit do the work of both.",
        )
    why = "; ".join(_WHY[reason].format(**conflict.facts) for reason in conflict.reasons)
    return ConflictError(
        f"Commit {about.commit_id} of {about.table_name} cannot be published: {why}.",
        kind=conflict.reasons[0].value,
        remedy=f"The table's head is snapshot {about.head_id}; look at it and stage the work again.",
    )


def _rejected_error(rejected: Rejected) -> RejectedError:
    about, gate = rejected.about, rejected.gate
    match rejected.refusal:
        case Refusal.REJECTED:
            what = f"Commit {about.commit_id} of {about.table_name} is rejected ({about.reason})."
            remedy = "Stage the corrected data as a new commit, or publish this one by name and reason."
        case Refusal.VERDICT_MISSING:
            what = (
                f"Table {about.table_name} requires that gate {gate!r} has passed commit {about.commit_id}; it has no"
                " verdict."
            )
            remedy = "Judge the commit first."
        case Refusal.VERDICT_OF_ANOTHER_SUITE:
            what = (
                f"Table {about.table_name} requires {rejected.suite}, and commit {about.commit_id} was judged by"
                " another suite of that name."
            )
            remedy = "Judge the commit with the suite that is required: staged.judge() takes it from the catalog."
        case Refusal.VERDICT_NOT_PASSED:
            what = (
                f"Commit {about.commit_id} of {about.table_name} has not passed gate {gate!r}: its verdict is"
                f" {rejected.verdict}."
            )
            remedy = "Judge the commit again, or publish it by name and reason."
    return RejectedError(what, kind=rejected.refusal.value, remedy=remedy)


def _fenced_error(fenced: Fenced) -> ConflictError:
    about = fenced.about
    match fenced.fence:
        case Fence.ENDED:
            why = f"it is {about.state.value} ({about.reason})"
        case Fence.PUBLISHED:
            why = "another attempt has published the same work"
        case Fence.NEWER:
            why = f"a newer attempt at the same work stands, commit {fenced.newer_id}"
    return ConflictError(
        f"Commit {about.commit_id} of {about.table_name} cannot be published: {why}.",
        kind="fenced",
        remedy="Look for the newer attempt's snapshot, or stage the work again.",
    )
