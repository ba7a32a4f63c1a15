"""Part of all writes: work becomes a commit, and the commit a snapshot.

Step by step: the table as it is now; was this work published already?; write the files and say what they are for (the
operation's own part); stage and publish, in one transaction, or judge in between. If others have changed what the work
depends on, the operation says how to go on: with the same commit, amended, or anew.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Any, TypeVar
from uuid import UUID

from lakelib.catalog import commits, tables
from lakelib.catalog.roles import require_right
from lakelib.dataclass import dataclass
from lakelib.errors import ConflictError, ExpiredError, InvalidInputError, RejectedError
from lakelib.model.commit import (
    About,
    Busy,
    CommitOutcome,
    Conflict,
    Done,
    Fenced,
    FilesReclaimed,
    InputGone,
    NotPublished,
    NotStaged,
    PastExpired,
    PublishOutcome,
    Reason,
    Refusal,
    Rejected,
    Staged,
    Stale,
    TableChanged,
)
from lakelib.model.roles import Right
from lakelib.model.table import CommitKind, CommitState, Proposal, Snapshot, TableInfo, TableRef
from lakelib.ops.decide import GIVEN_UP, end_given_up, end_staged
from lakelib.ops.gates import check_gate, gate_of
from lakelib.ops.judge import Judging, as_required, check_suite, judge, require_passed
from lakelib.ops.moves import Replaced, catch_up
from lakelib.ops.patience import Overtaken, Patience, do_again
from lakelib.ops.publish import settle_done
from lakelib.ops.refusals import error_of
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.ops.tell import after_publish
from lakelib.ops.turn import Turn, while_busy

Outcome = TypeVar("Outcome")

_FREE_TRIES = 3
"""So often work is done again beside other writers; then they wait for it, each time for a bounded while."""
_MOST_TRIES = 30
_STAGE_TRIES = 5
_MADE_AGAIN = {Reason.SCHEMA_CHANGED, Reason.KEYS_ADDED, Reason.KEYS_LOST}


class NothingChangedError(Exception):
    """What was asked for makes no difference to the table as it is, and so was not published."""


class Redo(Enum):
    """How to go on when others have changed what work depends on."""

    NOT = "not"
    SAME = "same"
    """The commit was made to fit: publish it again."""
    ANEW = "anew"
    """The commit ends, and the work is done again."""


def give_up(conflict: Conflict, proposal: Proposal) -> Redo:
    """For work that cannot be done again."""
    return Redo.NOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What an operation does: its files and what they are for, and what to do when it was overtaken."""

    prepare: Callable[[TableInfo], Proposal]
    """Writes files; raises before anything else is changed. Called again to do the work anew."""
    redo: Callable[[Conflict, Proposal], Redo] = give_up
    looks_again: bool = False
    """Whether it is done anew where what it looked at was gone by the time that it was staged."""
    is_small: bool = False
    """Whether it is done in no time, and again: it begins by what is remembered of the table."""
    replaces: bool = False
    """An overwrite that is to replace whatever is in its target by the time that it is published."""
    right: Right = Right.WRITE
    session: Any = None
    """Spark's, if its tasks have the rows."""
    brings_rows: bool = True
    """Whether there is something for a gate to judge."""


def schema_again(conflict: Conflict, proposal: Proposal) -> Redo:
    """For work that depends on nothing but the schema, and where its keys are, and whose rows can be read again: it is
    done anew."""
    return Redo.ANEW if set(conflict.reasons) <= _MADE_AGAIN else Redo.NOT


def stage_work(runtime: Runtime, ref: TableRef, request: WriteRequest, work: Work) -> UUID:
    """The work as a staged commit. It is done again when what it looked at is gone by the time that it is staged."""
    patience = Patience(f"Writing to {ref.full_name}")

    def attempt() -> UUID | Overtaken:
        table = runtime.as_seen(tables.load_table(runtime.catalog, ref))
        _check_may_write(runtime, work.right, request.judging is not None)
        check_gate(table, request)
        _check_fits(table, request, request.judging)
        try:
            proposal = work.prepare(table)
        except ExpiredError as error:
            return Overtaken(error)
        match stage_files(runtime, table, proposal, patience):
            case Staged(commit_id=commit_id):
                return commit_id
            case (InputGone() | PastExpired()) as outcome:
                return Overtaken(error_of(outcome, ref.full_name))
            case outcome:
                raise error_of(outcome, ref.full_name)

    return do_again(attempt, most_tries=_STAGE_TRIES if work.looks_again else 1)


def commit_work(runtime: Runtime, ref: TableRef, request: WriteRequest, work: Work) -> Snapshot:
    """Stages and publishes work, unless it was published before. What a gate does not let through stays inspectable.
    Raises NothingChangedError if nothing would become of it, and that is asked for."""
    with Turn(runtime, Patience(f"Writing to {ref.full_name}"), ref.id) as turn:
        snapshot = do_again(_Course(runtime, ref, request, work, turn).attempt)
    after_publish(runtime, ref.id, snapshot)
    return snapshot


def publish_changed(publish: Callable[[WriteRequest], Snapshot], request: WriteRequest) -> Snapshot | None:
    """The snapshot of work that is published as asked; None where it makes no difference to the table, unless its
    idempotency key is to be kept: who asks again is told the same."""
    try:
        return publish(replace(request, only_if_changed=request.idempotency_key is None))
    except NothingChangedError:
        return None


def check_writable(runtime: Runtime, table: TableInfo, request: WriteRequest) -> None:
    """Raises, before anything is read or written, for a write of rows that could not be published: a user without the
    right, a gate that is not the table's, a suite that does not fit."""
    judging = check_publishable(runtime, table, request)
    _check_may_write(runtime, Right.WRITE, judging is not None)


def check_publishable(runtime: Runtime, table: TableInfo, request: WriteRequest) -> Judging | None:
    """How rows are judged. Raises for a gate that could let none of them through, whatever they are."""
    judging = gate_of(runtime, table, request)
    _check_fits(table, request, judging)
    return judging


def _check_fits(table: TableInfo, request: WriteRequest, judging: Judging | None) -> None:
    """Raises InvalidInputError for a suite that looks at other columns than the rows will have."""
    if judging is not None:  # rows may bring columns
        is_open = request.merge_schema or request.becomes is not None
        check_suite(judging.suite, None if is_open else table.schema.columns)


def _check_may_write(runtime: Runtime, right: Right, is_judged: bool) -> None:
    """Raises InvalidInputError before files are written that the catalog would not take."""
    if is_judged:
        require_right(runtime.catalog, Right.JUDGE)
    require_right(runtime.catalog, right)
    runtime.ownership.confirm()


def find_done(runtime: Runtime, table: TableInfo, request: WriteRequest) -> Snapshot | None:
    """The snapshot that did the requested work already, whoever else has committed since."""
    if request.idempotency_key is None:
        return None
    return commits.find_published(runtime.catalog, table, request.idempotency_key)


class _Course:
    """One call's way to its snapshot."""

    def __init__(self, runtime: Runtime, ref: TableRef, request: WriteRequest, work: Work, turn: Turn) -> None:
        self._runtime = runtime
        self._ref = ref
        self._request = request
        self._work = work
        self._turn = turn
        self._patience = turn.patience
        self._judging: Judging | None = None
        self._proposal: Proposal | None = None
        """What is staged, and to be published once more; None if the work is to be done."""
        self._tries = 0
        self._loads = 0
        self._is_from_memory = False
        """Whether the table was loaded as it was a moment ago: it may be another by now."""

    def attempt(self) -> Snapshot | Overtaken:
        """Does the work, unless it is staged, and publishes it."""
        proposal = self._proposal
        if proposal is not None:
            return self._carry(proposal, lambda: self._publish(proposal))
        table = self._load_table()
        done = None if self._is_from_memory else find_done(self._runtime, table, self._request)  # publishing finds it
        if done is not None:
            return done
        prepared = self._prepare(table)
        if isinstance(prepared, Overtaken):
            return prepared
        if self._request.only_if_changed and _is_nothing(prepared):
            raise NothingChangedError
        return self._carry(prepared, lambda: self._begin(table, prepared))

    def _load_table(self) -> TableInfo:
        """As it is now; at first, for small work, as it was when it was looked at last."""
        self._loads += 1
        remembered = self._runtime.known.recall(self._ref.id) if self._work.is_small and self._loads == 1 else None
        self._is_from_memory = remembered is not None
        if remembered is not None:
            return remembered
        table = tables.load_table(self._runtime.catalog, self._ref)
        self._runtime.known.remember(table)
        return table

    def _prepare(self, table: TableInfo) -> Proposal | Overtaken:
        try:
            self._judging = check_publishable(self._runtime, table, self._request) if self._work.brings_rows else None
            _check_may_write(self._runtime, self._work.right, self._judging is not None)
            return self._work.prepare(table)
        except (InvalidInputError, RejectedError):
            if not self._is_from_memory:
                raise
        except ExpiredError:  # the head that it looked at, while it did
            if not self._work.looks_again:
                raise
            self._make_way(PastExpired())
        return Overtaken()

    def _carry(self, proposal: Proposal, step: Callable[[], CommitOutcome]) -> Snapshot | Overtaken:
        """The snapshot that the proposal becomes by the step; if others were first, what is in their way no more."""
        self._proposal = None
        try:
            match step():
                case Done() as done:
                    return settle_done(self._runtime, done)[0]
                case TableChanged():
                    return Overtaken()
                case outcome:
                    return self._resolve(outcome, proposal)
        except GIVEN_UP as error:
            end_given_up(self._runtime, proposal.commit_id, error)
            raise

    def _resolve(self, outcome: NotPublished | NotStaged, proposal: Proposal) -> Snapshot | Overtaken:
        if isinstance(outcome, Conflict | Stale | InputGone | PastExpired):
            self._make_way(outcome)
        match self._redo(outcome, proposal):
            case Redo.SAME:
                self._proposal = proposal
                return Overtaken()
            case Redo.ANEW if self._is_free(outcome, proposal):
                return Overtaken()
            case Redo.ANEW:
                return self._take_over(proposal)
            case Redo.NOT:
                self._end(outcome, proposal)
                raise error_of(outcome, self._ref.full_name)

    def _take_over(self, proposal: Proposal) -> Snapshot:
        """What became of a commit that others have decided about meanwhile."""
        match self._publish_staged(proposal):
            case Done() as done:
                return settle_done(self._runtime, done)[0]
            case outcome:
                raise error_of(outcome, self._ref.full_name)

    def _begin(self, table: TableInfo, proposal: Proposal) -> CommitOutcome:
        if self._judging is None:
            return self._turn.attempt(lambda epoch: self._commit(table, proposal, epoch))
        match stage_files(self._runtime, table, proposal, self._patience):
            case Staged(ahead=ahead):
                if ahead:  # what is judged before they have published is stale
                    self._turn.take(self._ref.id)
                return self._publish(proposal)
            case outcome:
                return outcome

    def _commit(self, table: TableInfo, proposal: Proposal, epoch: int) -> CommitOutcome:
        if self._is_from_memory:
            proposal = replace(proposal, definition=table.definition)
        outcome = commits.commit(
            self._runtime.catalog, proposal, epoch=epoch, rebase=self._work.replaces, turn=self._turn.id
        )
        return keep_or_delete(self._runtime, table, proposal, outcome)

    def _publish(self, proposal: Proposal) -> PublishOutcome:
        """Of a staged commit: judged first, if there is a gate."""
        if self._judging is not None:
            self._judge(proposal.commit_id, self._judging)
        return self._publish_staged(proposal)

    def _publish_staged(self, proposal: Proposal) -> PublishOutcome:
        rebase = self._work.replaces and self._judging is None
        return self._turn.attempt(
            lambda epoch: commits.publish(
                self._runtime.catalog, [proposal.commit_id], epoch=epoch, rebase=rebase, turn=self._turn.id
            )
        )

    def _judge(self, commit_id: UUID, judging: Judging) -> None:
        """Raises RejectedError for a verdict that rejects: the commit stays inspectable."""
        try:
            if self._work.replaces:
                while_busy(
                    self._patience, lambda: commits.retarget(self._runtime.catalog, commit_id, over_changes=True)
                )
            require_passed(judge(self._runtime, commit_id, judging))
        except (ConflictError, InvalidInputError) as error:
            end_staged(self._runtime, commit_id, error.kind)
            raise

    def _make_way(self, outcome: NotPublished | NotStaged) -> None:
        """Waits before work is done again that others have overtaken: at first for a while, then until they wait. A
        judgement is never made again beside others who judge: of these but one could publish. Raises GaveUpError in the
        end: work that takes longer than a turn may be overtaken time and again."""
        self._tries += 1
        if self._tries > _MOST_TRIES:
            self._patience.give_up()
        if isinstance(outcome, Stale) or self._tries > _FREE_TRIES:
            self._turn.take(self._ref.id)
        else:
            self._patience.pause()

    def _redo(self, outcome: NotPublished | NotStaged, proposal: Proposal) -> Redo:
        match outcome:
            case Conflict(about=about, reasons=(Reason.KEYS_ADDED,)) if self._catches_up(about, proposal):
                return Redo.SAME
            case Conflict():
                return self._work.redo(outcome, proposal)
            case Stale() if self._judging is not None:
                return Redo.SAME
            case Rejected(refusal=Refusal.VERDICT_OF_ANOTHER_SUITE) if self._judging is not None:
                self._judging = as_required(self._runtime, proposal.commit_id, self._judging)
                return Redo.SAME
            case InputGone() | PastExpired() if self._work.looks_again:
                return Redo.ANEW
        return Redo.NOT

    def _catches_up(self, about: About, proposal: Proposal) -> bool:
        replaced = None
        if proposal.kind is CommitKind.OVERWRITE:
            where = proposal.read_scope.where
            replaced = Replaced(where=where, own=where is None)
        return catch_up(self._runtime, about, replaced=replaced, session=self._work.session)

    def _is_free(self, outcome: NotPublished | NotStaged, proposal: Proposal) -> bool:
        """Whether the work may be done again: not if others have decided about its commit meanwhile."""
        if not isinstance(outcome, Conflict):
            return True  # nothing was staged
        self._end(outcome, proposal)
        commit = commits.load_commit(self._runtime.catalog, proposal.commit_id)
        return commit.state is CommitState.EXPIRED and commit.reason == outcome.reasons[0].value

    def _end(self, outcome: NotPublished | NotStaged, proposal: Proposal) -> None:
        """A commit that others have made impossible ends; what a gate has to let through stays."""
        match outcome:
            case Conflict(reasons=reasons):
                end_staged(self._runtime, proposal.commit_id, reasons[0].value)
            case Stale() | Fenced():
                end_staged(self._runtime, proposal.commit_id, "it was overtaken")


def _is_nothing(proposal: Proposal) -> bool:
    return not (proposal.files or proposal.removed_file_ids or proposal.new_schema)


def stage_files(runtime: Runtime, table: TableInfo, proposal: Proposal, patience: Patience) -> Staged | NotStaged:
    """Stages a proposal. It leaves no files if that is impossible."""
    outcome = while_busy(patience, lambda: commits.stage(runtime.catalog, proposal))
    assert not isinstance(outcome, Busy)
    return keep_or_delete(runtime, table, proposal, outcome)


def keep_or_delete(runtime: Runtime, table: TableInfo, proposal: Proposal, outcome: Outcome) -> Outcome:
    """The outcome. It is certain that files of what could not be staged are in no commit: they are deleted. Files stay
    where an error leaves open what became of them."""
    if isinstance(outcome, TableChanged | FilesReclaimed | InputGone | PastExpired):
        runtime.storage.at(table.location).delete_files(file.path for file in proposal.files)
    return outcome
