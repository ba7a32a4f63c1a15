"""Part of all commits: what to raise for an outcome that nobody handles. This is where outcomes become exceptions."""

from lakelib.catalog import commits, consumers, tables
from lakelib.errors import (
    ConflictError,
    ExpiredError,
    IdentityDiffersError,
    InvalidInputError,
    LakeError,
    RejectedError,
)
from lakelib.model.commit import (
    Busy,
    CommitMissing,
    Conflict,
    Fence,
    Fenced,
    FilesReclaimed,
    IdentityDiffers,
    InputGone,
    NotAdvanced,
    NotPublished,
    NotStaged,
    PastExpired,
    Reason,
    Refusal,
    Rejected,
    Stale,
    Standstill,
    TableMissing,
)


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
                remedy="Judge the commit on top of them: judge(on_top_of=…), or `lake publish` with its --spec.",
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
        case NotAdvanced():
            return _standstill_error(outcome)
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
    Reason.ROLLED_BACK: "a rollback has put other rows where it read since snapshot {base}",
    Reason.KEYS_ADDED: "rows have come since it looked for its keys in other partitions",
    Reason.KEYS_LOST: "rows are gone in which it looked for its keys, or a rollback has brought others back",
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


def _standstill_error(outcome: NotAdvanced) -> LakeError:
    of_table, position = f" of {outcome.table_name}" if outcome.table_name else "", outcome.position
    kind = outcome.why.value
    match outcome.why:
        case Standstill.MISSING:
            return consumers.consumer_missing(outcome.consumer, outcome.table_name or "that was dropped")
        case Standstill.MOVED:
            return ConflictError(
                f"Consumer {outcome.consumer!r}{of_table} stands at snapshot {position}, not at {outcome.from_id} any"
                " more, where it was read: somebody else has moved it. Nothing was changed.",
                kind=kind,
                remedy="Read again: it goes on from where it stands now.",
            )
        case Standstill.BEYOND_HEAD:
            return InvalidInputError(
                f"Consumer {outcome.consumer!r}{of_table} cannot move to snapshot {outcome.to_id}: the head is"
                f" {outcome.head_id}.",
                kind=kind,
                remedy="Give a snapshot that was read.",
            )
        case Standstill.BACKWARDS:
            return InvalidInputError(
                f"Consumer {outcome.consumer!r}{of_table} stands at snapshot {position}: {outcome.to_id} is before it.",
                kind=kind,
                remedy="backwards=True moves it there: what comes after is read once more.",
            )
        case Standstill.PAST_EXPIRED:
            return ExpiredError(
                f"Consumer {outcome.consumer!r}{of_table} cannot go back to snapshot {outcome.to_id}, which has"
                " expired.",
                kind=kind,
                remedy="history() lists the snapshots that are left; 0 is before the first, from which all is read.",
            )


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
