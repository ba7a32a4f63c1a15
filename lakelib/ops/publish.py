"""Use case: staged commits become snapshots, all of them in one instant or none.

Step by step: publish; where rows have changed that a verdict rests on, or another suite is required by now, judge
again, if it is known how, and publish once more. It is safe to repeat.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from lakelib.catalog import commits, tables
from lakelib.catalog.roles import require_right
from lakelib.errors import ConflictError, DecidedError, InvalidInputError, LakeError
from lakelib.model.commit import (
    About,
    Conflict,
    Done,
    MadeOfChanges,
    NotAdvanced,
    Published,
    PublishOutcome,
    Reason,
    Refusal,
    Rejected,
    Stale,
    Standstill,
)
from lakelib.model.positions import Advance, ReadRange
from lakelib.model.roles import Right
from lakelib.model.table import Approval, CommitState, Snapshot
from lakelib.model.text import is_said
from lakelib.ops.done_files import after_reset
from lakelib.ops.judge import Judging, as_required, judge, may_be_stale, require_passed
from lakelib.ops.moves import catch_up
from lakelib.ops.patience import Overtaken, Patience, do_again
from lakelib.ops.refusals import error_of
from lakelib.ops.runtime import Runtime
from lakelib.ops.tell import after_publish
from lakelib.ops.turn import Turn

_INGEST_AGAIN = (
    "Ingest again, and publish what that stages: it reads what is left. Under the same key this commit ends."
)
JudgingsOf = Callable[[UUID], Sequence[Judging]]
"""How a commit is judged, once for each gate; nothing where that is not known."""


def not_known(commit_id: UUID) -> Sequence[Judging]:
    """Commits that are not judged again."""
    return ()


def publish(
    runtime: Runtime,
    commit_ids: Sequence[UUID],
    judgings_of: JudgingsOf = not_known,
    *,
    by: str | None = None,
    reason: str | None = None,
    advances: Sequence[Advance] = (),
) -> list[Snapshot]:
    """All commits become snapshots in one instant, and consumers move on, or none of it happens: those of `advances`,
    and those whose changes runs have made commits of, from where they were read. Raises ConflictError naming what stood
    in the way, RejectedError for a commit that only a person may publish: `by` says who, `reason` why.

    Where rows have changed that a verdict rests on, or the table requires another suite of the gate by now, the commits
    are judged again, each on top of those before it, if it is known how they are judged; else the stale verdict is a
    ConflictError, and the other suite's a RejectedError. Raises as `require_passed` does for a verdict that has turned.
    """
    approval = parse_approval(by, reason)
    if approval is not None:
        require_right(runtime.catalog, Right.JUDGE)
    moves = _Moves(runtime, advances)
    names = [*map(str, commit_ids), *(f"consumer {each.name!r}" for each in advances)]
    with Turn(runtime, Patience(f"Publishing {', '.join(names)}")) as turn:

        def attempt() -> Done | Overtaken:
            match _try(runtime, commit_ids, turn, approval, moves):
                case Done() as done:
                    return done
                case MadeOfChanges(ranges=read):
                    moves.add(read)
                    return Overtaken()
                case Conflict(about=about, reasons=(Reason.KEYS_ADDED,)) if _catches_up(runtime, about, commit_ids):
                    turn.take(commits.load_commit(runtime.catalog, about.commit_id).table.id)
                    turn.patience.pause()
                    return Overtaken()
                case Stale(about=about) | Rejected(about=about, refusal=Refusal.VERDICT_OF_ANOTHER_SUITE) if (
                    judgings_of(about.commit_id)
                ):
                    turn.take(commits.load_commit(runtime.catalog, about.commit_id).table.id)
                    _judge_again(runtime, commit_ids, judgings_of)
                    turn.patience.pause()
                    return Overtaken()
                case NotAdvanced() as outcome:
                    raise _not_advanced(outcome, moves.read)
                case outcome:
                    raise error_of(outcome)

        done = do_again(attempt)
        published = settle_done(runtime, done)
    for each in done.commits:
        after_publish(runtime, each.table_id, each.snapshot)
    return published


class _Moves:
    """How consumers move with a publish: as its caller says, and as is known of its commits once that was asked."""

    def __init__(self, runtime: Runtime, advances: Sequence[Advance]) -> None:
        self._runtime = runtime
        self.advances: tuple[Advance, ...] = ()
        self.read: Mapping[UUID, Sequence[ReadRange]] = {}
        self.are_known = False
        """Whether it was told what the commits were made of."""
        self._take(advances)

    def add(self, read: Mapping[UUID, Sequence[ReadRange]]) -> None:
        self.read, self.are_known = read, True
        self._take(_plan_advances(read))

    def _take(self, advances: Sequence[Advance]) -> None:
        if advances:
            require_right(self._runtime.catalog, Right.WRITE)
        self.advances = (*self.advances, *advances)


def _plan_advances(read: Mapping[UUID, Sequence[ReadRange]]) -> tuple[Advance, ...]:
    """How consumers move with commits that runs have made of what these had read. Raises ConflictError for commits that
    were made of the same changes."""
    moved: dict[tuple[int, str], UUID] = {}
    for commit_id, ranges in read.items():
        for each in ranges:
            other = moved.setdefault((each.table_id, each.consumer), commit_id)
            if other != commit_id:
                raise ConflictError(
                    f"Commits {other} and {commit_id} were both made of the changes of {each.table} after snapshot"
                    f" {each.from_id}: published together these would count twice.",
                    kind=Standstill.MOVED.value,
                    remedy=_INGEST_AGAIN,
                )
    return tuple(each.advance(commit_id) for commit_id, ranges in read.items() for each in ranges)


def _not_advanced(outcome: NotAdvanced, read: Mapping[UUID, Sequence[ReadRange]]) -> LakeError:
    """What to say where a run has made what cannot be published."""
    for commit_id, ranges in read.items():
        for each in ranges:
            if (each.consumer, outcome.why) == (outcome.consumer, Standstill.MOVED):
                return ConflictError(
                    f"Commit {commit_id} was made of the changes of {each.table} after snapshot {each.from_id} until"
                    f" {each.to_id}. Another run has published since what they make: the consumer {each.consumer!r}"
                    f" stands at {outcome.position}. Nothing was changed.",
                    kind=outcome.why.value,
                    remedy=_INGEST_AGAIN,
                )
    return error_of(outcome)


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


def settle_done(runtime: Runtime, done: Done) -> list[Snapshot]:
    """The snapshots, once what follows from them is done."""
    reset = {each.table_id for each in done.commits if isinstance(each, Published) and each.leaves_files}
    if reset:
        after_reset(runtime, reset)
    return [each.snapshot for each in done.commits]


def _try(
    runtime: Runtime,
    commit_ids: Sequence[UUID],
    turn: Turn,
    approval: Approval | None,
    moves: _Moves,
) -> PublishOutcome | MadeOfChanges:
    """What comes of it, once the tables are not busy."""
    act = commits.publish if moves.are_known else commits.publish_or_tell
    outcome = turn.attempt(
        lambda epoch: act(
            runtime.catalog, commit_ids, epoch=epoch, approval=approval, turn=turn.id, advances=moves.advances
        )
    )
    if isinstance(outcome, Conflict | Stale) and len(commit_ids) > 1:
        return replace(outcome, about=_as_all_see_it(runtime, outcome.about))
    return outcome


def _catches_up(runtime: Runtime, about: About, commit_ids: Sequence[UUID]) -> bool:
    """Whether the commit has looked for its keys in what others, and those before it, have brought."""
    own = commits.load_commit(runtime.catalog, about.commit_id)
    before = [commits.load_commit(runtime.catalog, each) for each in commit_ids[: commit_ids.index(own.id)]]
    beneath = [each.id for each in before if each.table == own.table and each.state is CommitState.STAGED]
    return catch_up(runtime, about, beneath=beneath)


def _as_all_see_it(runtime: Runtime, about: About) -> About:
    """The heads that a transaction gives its tables are gone with it."""
    commit = commits.load_commit(runtime.catalog, about.commit_id)
    head_id = tables.load_table(runtime.catalog, commit.table).head_id
    return replace(about, head_id=min(head_id, about.head_id), follows_others=about.head_id > head_id)


def _judge_again(runtime: Runtime, commit_ids: Sequence[UUID], judgings_of: JudgingsOf) -> None:
    """What has been decided of a commit meanwhile is for publishing to tell: someone else may have published it."""
    found = {commit_id: commits.load_commit(runtime.catalog, commit_id) for commit_id in commit_ids}
    for place, commit_id in enumerate(commit_ids):
        if found[commit_id].state is not CommitState.STAGED:
            continue
        before = [
            other
            for other in commit_ids[:place]
            if found[other].table == found[commit_id].table and found[other].state is CommitState.STAGED
        ]
        for judging in judgings_of(commit_id):
            now = as_required(runtime, commit_id, judging)
            if may_be_stale(runtime, commit_id, now.suite):
                with suppress(DecidedError):
                    require_passed(judge(runtime, commit_id, now, before))
