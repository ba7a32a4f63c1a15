"""Commits: staged, amended, published, ended. The protocol itself lives in the database (`sql/functions`): each step is
one statement and one transaction, and no client is between its lock and its unlock.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from lakelib.catalog import events
from lakelib.catalog.connect import Catalog
from lakelib.catalog.records import (
    attempt_from_row,
    columns_to_list,
    commit_from_row,
    files_to_json,
    snapshot_from_row,
    summary_from_row,
)
from lakelib.dataclass import dataclass
from lakelib.errors import NotFoundError
from lakelib.model.commit import (
    About,
    Amended,
    Amendment,
    AmendOutcome,
    Busy,
    CommitInfo,
    CommitMissing,
    CommitOutcome,
    CommitSummary,
    Conflict,
    Done,
    Ended,
    Fence,
    Fenced,
    FilesReclaimed,
    IdentityDiffers,
    InputGone,
    MadeOfChanges,
    NotAdvanced,
    PastExpired,
    Published,
    PublishOutcome,
    Reason,
    Refusal,
    Rejected,
    Replayed,
    Staged,
    StageOutcome,
    Stale,
    Standstill,
    TableChanged,
    TableMissing,
)
from lakelib.model.positions import CHANGES, Advance, ranges_of
from lakelib.model.reads_where import reads_where_from_json, reads_where_to_json
from lakelib.model.schema import Column
from lakelib.model.table import (
    Approval,
    Attempt,
    CommitState,
    IdempotencyKey,
    KeysLooked,
    Proposal,
    ReadScope,
    Snapshot,
    TableInfo,
)
from lakelib.plan.prune import partition_may_match

_LOCK_PATIENCE_MS = 1000
"""How long a statement waits for a table that others hold, keeping a connection meanwhile."""
_TURN_MS = 2000
"""How long others wait for a commit whose turn it is, or for one before them that does not ask again."""
_MOST_QUESTIONS = 10
"""So often, beside once a commit, it is told of partitions that came; where ever more do, others have to wait first."""

_Answer = Mapping[str, Any]
_Question = dict[str, Any]

_STANDSTILLS = {
    "consumer_missing": Standstill.MISSING,
    "consumer_moved": Standstill.MOVED,
    "consumer_beyond_head": Standstill.BEYOND_HEAD,
    "consumer_backwards": Standstill.BACKWARDS,
    "consumer_past_expired": Standstill.PAST_EXPIRED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedBefore:
    """A published commit that a gate has judged."""

    id: UUID
    partition: str
    summary: Mapping[str, Any]


_Settled = dict[str, dict[str, list[int]]]


# The steps


def stage(catalog: Catalog, proposal: Proposal) -> StageOutcome:
    """The proposal is staged, and an older attempt at the same work can no longer publish. Safe to repeat."""
    answer = _ask(catalog, "stage", proposal=_proposal_json(proposal), publishing=None)
    match answer["outcome"]:
        case "staged":
            return Staged(commit_id=proposal.commit_id, ahead=answer["ahead"])
        case "table_missing":
            return TableMissing()
    return _not_taken(answer)


def _not_taken(answer: Any) -> Busy | FilesReclaimed | PastExpired | InputGone:
    """Why files are in no commit."""
    match answer["outcome"]:
        case "busy":
            return Busy()
        case "files_reclaimed":
            return FilesReclaimed()
        case "past_expired":
            return PastExpired()
        case "input_gone":
            return InputGone()
    raise AssertionError(answer)


def commit(
    catalog: Catalog, proposal: Proposal, *, epoch: int, rebase: bool = False, turn: UUID | None = None
) -> CommitOutcome:
    """Stages the proposal and publishes it, in one transaction. What cannot be published stays staged. Safe to repeat.
    `turn` is its place in the line of those who wait."""
    publishing = _publishing(epoch=epoch, rebase=rebase, turn=turn)
    answer = _ask(catalog, "stage", proposal=_proposal_json(proposal), publishing=Jsonb(publishing))
    match answer["outcome"]:
        case "table_changed":
            return TableChanged()
        case "files_reclaimed":
            return FilesReclaimed()
        case "past_expired":
            return PastExpired()
        case "unsettled":
            return publish(catalog, [proposal.commit_id], epoch=epoch, rebase=rebase, turn=turn)
    return _told(catalog, answer)


def find_schema_changed(catalog: Catalog, commit_ids: Sequence[UUID]) -> int | None:
    """The schema of the last of commits, in their order, that changes it; None if none does."""
    row = catalog.one("find_schema_changed", {"commit_ids": list(commit_ids)})
    return None if row is None else int(row["schema_id"])


def publish(
    catalog: Catalog,
    commit_ids: Sequence[UUID],
    *,
    epoch: int,
    rebase: bool = False,
    approval: Approval | None = None,
    turn: UUID | None = None,
    advances: Sequence[Advance] = (),
) -> PublishOutcome:
    """All commits become snapshots in one instant, in the order given, and consumers move on, or none of it happens.

    Safe to repeat: a commit that was published already gives the snapshot it became. One whose work another attempt has
    published gives that one's, as replayed. With `rebase` an overwrite replaces what is in its target at this moment;
    without, what was added there since it was staged is a conflict. `turn` is its place in the line of those who wait;
    at `epoch` the lake's identity was seen.
    """
    publishing = _publishing(epoch=epoch, rebase=rebase, approval=approval, turn=turn)
    return _told(catalog, _ask_publish(catalog, commit_ids, publishing, advances))


def publish_or_tell(
    catalog: Catalog,
    commit_ids: Sequence[UUID],
    *,
    epoch: int,
    approval: Approval | None = None,
    turn: UUID | None = None,
    advances: Sequence[Advance] = (),
) -> PublishOutcome | MadeOfChanges:
    """As `publish`, unless commits that are not published were made of changes: nothing was done then, and it is told
    of which."""
    publishing = _publishing(epoch=epoch, rebase=False, approval=approval, turn=turn) | {"asks_changes": True}
    answer = _ask_publish(catalog, commit_ids, publishing, advances)
    if answer["outcome"] != "made_of_changes":
        return _told(catalog, answer)
    told = {commit_id: answer["changes"].get(str(commit_id)) for commit_id in commit_ids}
    return MadeOfChanges(ranges={each: ranges_of({CHANGES: text}) for each, text in told.items() if text is not None})


def _ask_publish(
    catalog: Catalog, commit_ids: Sequence[UUID], publishing: _Question, advances: Sequence[Advance]
) -> _Answer:
    """The answer, once all partitions are settled that it depends on."""
    settled: _Settled = {}
    for _ in range(_MOST_QUESTIONS + len(commit_ids)):
        parameters = {"commit_ids": list(commit_ids), "publishing": Jsonb({**publishing, "settled": settled})}
        if advances:
            moves = Jsonb([_advance_json(each) for each in advances])
            answer = _ask(catalog, "publish_advancing", **parameters, advances=moves)
        else:
            answer = _ask(catalog, "publish", **parameters)
        if answer["outcome"] != "unsettled":
            return answer
        _settle(settled, answer)
    return {"outcome": "busy", "needs_turn": True}


def amend(catalog: Catalog, amendment: Amendment) -> AmendOutcome:
    """The staged commit is what the amendment makes of it. Safe to repeat."""
    change = {
        "id": str(amendment.commit_id),
        "number": amendment.number,
        "patience_ms": str(_LOCK_PATIENCE_MS),
        "began_at": amendment.began_at.isoformat(),
        "base_snapshot_id": amendment.base_snapshot_id,
        "withdrawn_paths": list(amendment.withdrawn_paths),
        "withdrawn_file_ids": list(amendment.withdrawn_file_ids),
        "removed_file_ids": list(amendment.removed_file_ids),
        **_keys_json(amendment.keys),
        "keys_beneath": [str(each) for each in amendment.keys_beneath],
        **_reads_json(amendment.read_scope),
        **files_to_json(amendment.files),
    }
    answer = _ask(catalog, "amend", change=Jsonb(change))
    match answer["outcome"]:
        case "amended":
            return Amended()
        case "ended":
            return Ended()
    return _not_taken(answer)


def take_turn(catalog: Catalog, table_id: int, turn: UUID) -> int:
    """How many are before this one in the line of those who wait to publish to the table. With none it has its turn:
    whoever else publishes waits, for a bounded time unless it is asked for again."""
    row = catalog.one("take_turn", {"table_id": table_id, "turn": turn, "turn_ms": _TURN_MS})
    assert row is not None
    return int(row["ahead"])


def release_turn(catalog: Catalog, turn: UUID) -> None:
    """Nobody waits for it any more. Publishing does so by itself."""
    catalog.do("release_turn", {"turn": turn})


def retarget(catalog: Catalog, commit_id: UUID, *, over_changes: bool) -> Amended | Busy:
    """A staged overwrite takes out what is in its target now: files of compactions that have replaced what it was to
    take out; with `over_changes` whatever was added since. Anything else is left for publishing to tell."""
    settled: _Settled = {}
    for _ in range(_MOST_QUESTIONS):
        publishing = _publishing(rebase=over_changes, settled=settled)
        answer = _ask(catalog, "retarget", commit_id=commit_id, publishing=Jsonb(publishing))
        match answer["outcome"]:
            case "retargeted":
                return Amended()
            case "busy":
                return Busy()
        _settle(settled, answer)
    return Busy()


def end(catalog: Catalog, commit_id: UUID, state: CommitState, reason: str) -> CommitState:
    """Ends a staged commit without publishing it. The state that it has afterwards: another one, if it was decided
    otherwise before. Raises NotFoundError."""
    answer = _ask(catalog, "end", commit_id=commit_id, state=state.value, reason=reason)
    match answer["outcome"]:
        case "ended":
            return state
        case "decided":
            return CommitState(answer["state"])
    raise commit_missing(commit_id)


# What the database is told


def _ask(catalog: Catalog, name: str, **parameters: Any) -> _Answer:
    row = catalog.one(name, parameters)
    assert row is not None
    answer: _Answer = row["answer"]
    return answer


def _proposal_json(proposal: Proposal) -> Jsonb:
    key = proposal.idempotency_key
    schema = proposal.new_schema or proposal.schema
    where = proposal.read_scope.where
    return Jsonb(
        {
            "id": str(proposal.commit_id),
            "table_id": proposal.table_id,
            "kind": proposal.kind.value,
            "base_snapshot_id": proposal.base_snapshot_id,
            "base_schema_id": proposal.schema.id,
            "schema_id": schema.id,
            "new_columns": columns_to_list(proposal.new_schema) if proposal.new_schema else None,
            "reads_whole_table": proposal.read_scope.whole_table,
            "reads_where": None if where is None else reads_where_to_json(where, proposal.partition_column_ids),
            "rows_from_base": proposal.read_scope.rows_from_base,
            "restores": proposal.restores,
            **_keys_json(proposal.keys),
            "application": key.application if key else None,
            "version": key.version if key else None,
            "patience_ms": str(_LOCK_PATIENCE_MS),
            "began_at": proposal.began_at.isoformat(),
            "definition": proposal.definition,
            "removed_file_ids": list(proposal.removed_file_ids),
            "summary": dict(proposal.summary),
            "properties": dict(proposal.properties),
            **_reads_json(proposal.read_scope),
            **files_to_json(proposal.files),
        }
    )


def _keys_json(keys: KeysLooked | None) -> dict[str, Any]:
    return {} if keys is None else {"keys_until": keys.until, "marks_run": keys.marks_run}


def _reads_json(scope: ReadScope) -> dict[str, Any]:
    has_read = scope.whole_table or scope.own_partitions or scope.rows_from_base
    return {
        "has_read": has_read or bool(scope.partition_ids) or scope.where is not None,
        "read_partition_ids": list(scope.partition_ids),
        "reads_own_partitions": scope.own_partitions,
        "reads_beneath": [str(each) for each in scope.beneath],
    }


def _publishing(
    *,
    rebase: bool,
    epoch: int | None = None,
    approval: Approval | None = None,
    settled: _Settled | None = None,
    turn: UUID | None = None,
) -> _Question:
    return {
        "patience_ms": str(_LOCK_PATIENCE_MS),
        "epoch": epoch,
        "rebase": rebase,
        "approved_by": approval.by if approval else None,
        "approval_reason": approval.reason if approval else None,
        "settled": settled or {},
        "turn": str(turn) if turn else None,
        "turn_ms": _TURN_MS,
    }


def _advance_json(advance: Advance) -> dict[str, Any]:
    return {
        "table_id": advance.table_id,
        "name": advance.name,
        "from": advance.from_id,
        "to": advance.to_id,
        "backwards": advance.backwards,
        "move": str(advance.move),
    }


def _settle(settled: _Settled, answer: _Answer) -> None:
    """Notes of which partitions the commit's predicate may be TRUE: of those that came into being since it was made."""
    predicate = reads_where_from_json(answer["reads_where"])
    partition_by = [Column(id=column_id, name="", type="") for column_id in answer["partition_by"]]
    known = settled.setdefault(answer["commit_id"], {"read": [], "unread": []})
    for partition in answer["partitions"]:
        key = tuple(None if part is None else bytes.fromhex(part[2:]) for part in partition["key"])
        is_read = partition_may_match(predicate, partition_by, key)
        known["read" if is_read else "unread"].append(partition["id"])


# What it answers


def _told(catalog: Catalog, answer: _Answer) -> PublishOutcome:
    """What has come of it, once those have been told who listen."""
    outcome = _publish_outcome(answer)
    if isinstance(outcome, Done) and answer.get("is_heard"):
        events.tell(catalog, outcome)
    return outcome


def _publish_outcome(answer: _Answer) -> PublishOutcome:
    match answer["outcome"]:
        case "published":
            return Done(commits=tuple(_became(told) for told in answer["commits"]))
        case "busy":
            return Busy(
                while_staging=answer.get("while_staging", False),
                ahead=answer.get("ahead", 0),
                needs_turn=answer.get("needs_turn", False),
            )
        case "identity_differs":
            return IdentityDiffers(what=answer["differs"])
        case "commit_missing":
            return CommitMissing(commit_id=UUID(answer["commit_id"]))
        case "table_missing":
            return TableMissing(name=answer.get("table_name"))
        case "conflict":
            reasons = tuple(Reason(reason) for reason in answer["reasons"])
            return Conflict(about=_about(answer), reasons=reasons, facts=answer)
        case "verdict_stale":
            return Stale(about=_about(answer), gate=answer["gate"], judged_at=answer["judged_at"])
        case "fenced":
            newer = answer.get("newer")
            return Fenced(about=_about(answer), fence=Fence(answer["why"]), newer_id=UUID(newer) if newer else None)
        case "rejected":
            return Rejected(about=_about(answer), refusal=Refusal.REJECTED)
        case "verdict_missing" | "verdict_not_passed":
            refusal = Refusal(answer["outcome"])
            return Rejected(about=_about(answer), refusal=refusal, gate=answer["gate"], verdict=answer.get("verdict"))
        case "verdict_of_another_suite":
            return Rejected(
                about=_about(answer),
                refusal=Refusal.VERDICT_OF_ANOTHER_SUITE,
                gate=answer["gate"],
                suite=f"version {answer['version']} of gate {answer['gate']!r} (suite {answer['hash']})",
            )
        case outcome if outcome in _STANDSTILLS:
            return _not_advanced(answer)
    raise AssertionError(answer)


def _not_advanced(answer: _Answer) -> NotAdvanced:
    return NotAdvanced(
        why=_STANDSTILLS[answer["outcome"]],
        consumer=answer["consumer"],
        table_name=answer["table_name"],
        position=answer["position"],
        from_id=answer["from"],
        to_id=answer["to"],
        head_id=answer["head"],
    )


def _became(told: Mapping[str, Any]) -> Published | Replayed:
    row = {**told["snapshot"]}
    row["commit_id"] = UUID(row["commit_id"])
    row["committed_at"] = datetime.fromisoformat(row["committed_at"])
    is_own = row["commit_id"] == UUID(told["commit_id"])
    snapshot = snapshot_from_row(row, replayed=not is_own)
    if is_own:
        return Published(snapshot=snapshot, table_id=told["table_id"], leaves_files=told["leaves_files"])
    return Replayed(snapshot=snapshot, table_id=told["table_id"])


def _about(answer: _Answer) -> About:
    return About(
        commit_id=UUID(answer["commit_id"]),
        table_name=answer["table_name"],
        state=CommitState(answer["state"]),
        reason=answer["reason"],
        base_id=answer["base"],
        head_id=answer["head"],
        amendment=answer["amendment"],
    )


# Looking commits up


def find_published(catalog: Catalog, table: TableInfo, key: IdempotencyKey) -> Snapshot | None:
    """The snapshot that did this work already, if one has."""
    row = catalog.one("find_published", _work(table, key))
    return None if row is None else snapshot_from_row(row, replayed=True)


def find_attempt(catalog: Catalog, table: TableInfo, key: IdempotencyKey) -> Attempt | None:
    """The commit that counts for this work: one that has published it, else the newest that has not expired."""
    row = catalog.one("find_attempt", _work(table, key))
    return None if row is None else attempt_from_row(row)


def discard(catalog: Catalog, commit_id: UUID, by: str, reason: str) -> CommitState | None:
    """A person decides against a commit. The state that it has otherwise, if it was decided before; None if it waits
    for nobody any more. Raises NotFoundError."""
    answer = _ask(catalog, "discard", commit_id=commit_id, by=by, reason=reason)
    match answer["outcome"]:
        case "commit_missing":
            raise commit_missing(commit_id)
        case "decided":
            return CommitState(answer["state"])
    return None


def is_overtaken(catalog: Catalog, commit_id: UUID) -> bool:
    """Whether the commit is staged, and was made from rows of its table that others have changed since."""
    row = catalog.one("is_overtaken", {"commit_id": commit_id})
    assert row is not None
    return bool(row["is_overtaken"])


def is_in_the_way(catalog: Catalog, commit_id: UUID, beneath: Sequence[UUID]) -> bool:
    """Whether a staged commit could not be published behind those beneath, for they change what it depends on."""
    row = catalog.one("is_in_the_way", {"commit_id": commit_id, "beneath": list(beneath)})
    assert row is not None
    return bool(row["is_in_the_way"])


def find_appended(catalog: Catalog, table: TableInfo, key: IdempotencyKey, partition: str) -> int | None:
    """The snapshot in which an earlier version of this work has appended the rows of the partition."""
    parameters = _work(table, key) | {"partition": partition}
    row = catalog.one("find_appended", parameters)
    return None if row is None else int(row["snapshot_id"])


def find_newest_copy(catalog: Catalog, table_id: int) -> tuple[int, str] | None:
    """The snapshot and the partition of the newest overwrite that an ingest has published."""
    row = catalog.one("find_newest_copy", {"table_id": table_id})
    return None if row is None else (row["snapshot_id"], row["partition"])


def find_judged_before(catalog: Catalog, table_id: int, partition: str, gate: str) -> JudgedBefore | None:
    """The published commit of the partition before this one that the gate has judged."""
    row = catalog.one("find_judged_before", {"table_id": table_id, "partition": partition, "gate": gate})
    return None if row is None else JudgedBefore(id=row["id"], partition=row["partition"], summary=row["summary"])


def overtake_appends(catalog: Catalog, table: TableInfo, key: IdempotencyKey, partition: str) -> None:
    """No earlier version of this work appends rows of the partition from now on; those that have done so have."""
    parameters = _work(table, key) | {"partition": partition}
    catalog.do("overtake_appends", parameters)


def find_claims(catalog: Catalog, table_id: int) -> frozenset[int]:
    """The files that staged commits are to take out of the table. Compactions leave them alone."""
    rows = catalog.all("find_claims", {"table_id": table_id})
    return frozenset(row["file_id"] for row in rows)


def find_spoilt(catalog: Catalog, commit_id: UUID) -> frozenset[int]:
    """The files of a staged compaction that others have taken out, or are to."""
    rows = catalog.all("find_spoilt", {"commit_id": commit_id})
    return frozenset(row["file_id"] for row in rows)


def load_commit(catalog: Catalog, commit_id: UUID) -> CommitInfo:
    """A commit as it stands. Raises NotFoundError."""
    row = catalog.one("load_commit", {"commit_id": commit_id})
    if row is None:
        raise commit_missing(commit_id)
    return commit_from_row(row)


def find_commits_between(catalog: Catalog, lowest: UUID, highest: UUID, limit: int) -> list[CommitInfo]:
    """Commits whose ids lie in the range, in their order."""
    parameters = {"lowest": lowest, "highest": highest, "limit": limit}
    return [commit_from_row(row) for row in catalog.all("find_commits_between", parameters)]


def list_commits(
    catalog: Catalog, table_id: int | None, states: Sequence[CommitState], limit: int
) -> list[CommitSummary]:
    """Commits of a table, or of all, in these states, the newest first, with the outcome of their newest verdict."""
    parameters = {"table_id": table_id, "states": [state.value for state in states], "limit": limit}
    return [summary_from_row(row) for row in catalog.all("list_commits", parameters)]


def commit_missing(said: UUID | str) -> NotFoundError:
    """Of an id, or of how one begins."""
    what = said if isinstance(said, UUID) else f"whose id begins with {said}"
    return NotFoundError(
        f"There is no commit {what}.", kind="commit_not_found", remedy="Take the id from StagedCommit.id."
    )


def _work(table: TableInfo, key: IdempotencyKey) -> dict[str, Any]:
    return {"table_id": table.id, "application": key.application, "version": key.version}
