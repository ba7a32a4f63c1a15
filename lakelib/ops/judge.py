"""Use case: a gate judges a staged commit, and what has passed is published.

Judging step by step: the suite fits the table; the table at its head, once for all scopes; for each scope the rows,
through the ordinary scan, and its checks; the outcome; the verdict, kept with the commit in one transaction.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from os import PathLike
from typing import Any
from uuid import UUID

from lakelib.catalog import files, gates, publishing, tables, verdicts
from lakelib.catalog.rows import Row
from lakelib.errors import ConflictError, InvalidInputError, RejectedError, RetryableError
from lakelib.model.gate import RegisteredSuite
from lakelib.model.schema import Column
from lakelib.model.table import CommitKind, Snapshot, TableInfo
from lakelib.model.verdict import CheckResult, Outcome, Scope, Verdict
from lakelib.ops.publish import publish_staged
from lakelib.ops.read import Held, ScanPlan, ScanRequest, plan_scan, read_table, schema_of_staged, staged_view
from lakelib.ops.runtime import Runtime
from lakelib.plan.outcome import decide_outcome, describe_failures
from lakelib.specs.suite import Check, Suite, load_suite, parse_suite

_MOST_TRIES = 5
_JUDGED_AGAIN = (publishing.STALE, publishing.OTHER_SUITE)
_OVERTAKEN = (publishing.STALE, "rows_added", "rows_removed", "input_gone")
"""The conflicts of an overwrite that is to replace whatever is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """How a commit is judged: with which checks, and on Spark or in process."""

    suite: Suite
    session: Any = None
    """A Spark session; None for in process."""


def open_gate(gate: str | PathLike[str] | Suite) -> Suite:
    """Raises InvalidInputError for what is neither a suite nor the path of one, or is a wrong one."""
    if isinstance(gate, Suite):
        return gate
    if isinstance(gate, str | PathLike):
        return load_suite(gate)
    raise InvalidInputError(
        f"gate is {gate!r}.", kind="invalid_gate", remedy="Give the path of a suite, or a suite that was loaded."
    )


def open_registered(suite: RegisteredSuite) -> Suite:
    """What was registered, to judge with."""
    return parse_suite(suite.text, f"gate {suite.name}, version {suite.version}")


def judge(runtime: Runtime, commit_id: UUID, judging: Judging) -> Verdict:
    """The verdict, which is kept with the commit; one that rejects also rejects the commit.

    Raises InvalidInputError that names all that is wrong in the suite, ConflictError for a commit that is published or
    expired. A check that cannot be carried out is part of the verdict.
    """
    started, judged_at = time.monotonic(), datetime.now(UTC)
    commit = publishing.load_commit(runtime.catalog, commit_id)
    verdicts.check_judgeable(commit)
    if commit["kind"] == CommitKind.OVERWRITE.value:
        publishing.refresh_overwrite(runtime.catalog, commit_id, over_changes=False)
    table = tables.load_table(runtime.catalog, commit["table_id"], commit["table_name"])
    columns = schema_of_staged(runtime, table, commit).columns
    check_suite(judging.suite, columns)
    checks = _run_checks(runtime, table, commit, columns, judging)
    verdict = Verdict(
        commit_id=commit_id,
        gate=judging.suite.name,
        suite_hash=judging.suite.hash,
        outcome=decide_outcome(checks),
        base_snapshot_id=table.head_id,
        engine="arrow" if judging.session is None else "spark",
        seconds=time.monotonic() - started,
        judged_at=judged_at,
        checks=checks,
    )
    verdicts.store_verdict(runtime.catalog, verdict, f"gate {verdict.gate}: {describe_failures(verdict)}")
    return verdict


def check_suite(suite: Suite, columns: Sequence[Column] | None = None) -> None:
    """Raises InvalidInputError that names all that is wrong, with file and line."""
    from lakelib.gates import lint  # takes seconds to import

    lint.check_suite(suite, columns)


def find_verdict(runtime: Runtime, commit_id: UUID) -> Verdict | None:
    """The newest verdict on a commit."""
    return verdicts.find_verdict(runtime.catalog, commit_id)


def describe(runtime: Runtime, commit_id: UUID) -> str:
    """ "rejected, gate orders: reject"."""
    state = publishing.load_commit(runtime.catalog, commit_id)["state"]
    verdict = find_verdict(runtime, commit_id)
    return f"{state}, gate {verdict.gate}: {verdict.outcome.value}" if verdict else f"{state}, not judged"


def _run_checks(
    runtime: Runtime, table: TableInfo, commit: Row, columns: Sequence[Column], judging: Judging
) -> tuple[CheckResult, ...]:
    """The results in the order of the suite."""
    found: dict[int, CheckResult] = {}
    for scope in judging.suite.scopes:
        chosen = {place: check for place, check in enumerate(judging.suite.checks) if check.scope is scope}
        request = _scope_request(runtime, commit, scope)
        results = _run_scope(runtime, table, request, list(chosen.values()), columns, judging.session)
        found |= dict(zip(chosen, results, strict=True))
    return tuple(found[place] for place in range(len(judging.suite.checks)))


def _scope_request(runtime: Runtime, commit: Row, scope: Scope) -> ScanRequest:
    if scope is Scope.STAGED:
        return ScanRequest(staged=staged_view(commit["id"], "staged"))
    touched = files.find_touched_partitions(runtime.catalog, commit["id"]) if scope is Scope.MERGED else None
    return ScanRequest(staged=staged_view(commit["id"], "merged"), partition_ids=touched)


def _run_scope(
    runtime: Runtime,
    table: TableInfo,
    request: ScanRequest,
    checks: Sequence[Check],
    columns: Sequence[Column],
    session: Any,
) -> list[CheckResult]:
    from lakelib.gates import run  # takes seconds to import

    def plan(names: Sequence[str]) -> ScanPlan:
        return plan_scan(runtime, table, replace(request, columns=tuple(names)))

    if session is None:
        return run.run_on_arrow(checks, columns, lambda names: read_table(runtime, plan(names)))
    with ExitStack() as held:
        return run.run_on_spark(checks, columns, lambda names: _open_frame(runtime, plan(names), session, held))


def _open_frame(runtime: Runtime, plan: ScanPlan, session: Any, held: ExitStack) -> Any:
    """A data frame whose snapshot is held as long as the checks take."""
    from lakelib.distribute import reader, sessions  # not everybody has Spark

    held.enter_context(Held(runtime, plan))
    return reader.read_frame(sessions.utc_session(session), runtime.storage, plan.target, plan.splits)


# Publishing what was judged


def publish_judged(
    runtime: Runtime,
    commit_ids: Sequence[UUID],
    judgings: Mapping[UUID, Sequence[Judging]],
    *,
    by: str | None = None,
    reason: str | None = None,
) -> list[Snapshot]:
    """As `publish_staged`. Where rows have changed that a verdict rests on, or the table requires another suite of the
    gate by now, the commit is judged again, if it is known how it is judged; else the stale verdict is a ConflictError,
    and the other suite's a RejectedError. Raises as `require_passed` does for a verdict that has turned.
    """
    for _ in range(_MOST_TRIES - 1):
        try:
            return publish_staged(runtime, commit_ids, by=by, reason=reason)
        except (ConflictError, RejectedError) as error:
            if error.kind not in _JUDGED_AGAIN:
                raise
            again = _to_judge_again(runtime, commit_ids, judgings)
            if not again:
                raise
        for commit_id, judging in again:
            _judge_again(runtime, commit_id, judging)
    return publish_staged(runtime, commit_ids, by=by, reason=reason)


def _to_judge_again(
    runtime: Runtime, commit_ids: Sequence[UUID], judgings: Mapping[UUID, Sequence[Judging]]
) -> list[tuple[UUID, Judging]]:
    known = (
        (commit_id, _as_required(runtime, commit_id, judging))
        for commit_id in commit_ids
        for judging in judgings.get(commit_id, ())
    )
    return [(commit_id, judging) for commit_id, judging in known if _may_be_stale(runtime, commit_id, judging.suite)]


def _as_required(runtime: Runtime, commit_id: UUID, judging: Judging) -> Judging:
    """With the suite that the table requires by now, where that is one of the same gate."""
    required = gates.find_suite_required_of(runtime.catalog, commit_id)
    if required is None or required.name != judging.suite.name or required.hash == judging.suite.hash:
        return judging
    return replace(judging, suite=open_registered(required))


def _may_be_stale(runtime: Runtime, commit_id: UUID, suite: Suite) -> bool:
    """Whether the verdict may rest on rows of others: also one of the suite as it was before it was changed."""
    verdict = find_verdict(runtime, commit_id)
    return suite.scopes != (Scope.STAGED,) or verdict is None or verdict.suite_hash != suite.hash


def _judge_again(runtime: Runtime, commit_id: UUID, judging: Judging) -> None:
    """What has been decided of the commit meanwhile is for publishing to tell: someone else may have published it."""
    try:
        require_passed(judge(runtime, commit_id, judging))
    except ConflictError as conflict:
        if conflict.kind != "commit_decided":
            raise


def publish_gated(runtime: Runtime, commit_id: UUID, judging: Judging, *, rebase_overwrites: bool = False) -> Snapshot:
    """Judges a commit and publishes it if it has passed. With `rebase_overwrites` an overwrite replaces what is in its
    target at this moment, and is judged so. Raises as `require_passed` does."""
    if not rebase_overwrites:
        require_passed(judge(runtime, commit_id, judging))
        return publish_judged(runtime, [commit_id], {commit_id: [judging]})[0]
    for tries_left in reversed(range(_MOST_TRIES)):
        publishing.refresh_overwrite(runtime.catalog, commit_id, over_changes=True)
        require_passed(judge(runtime, commit_id, judging))
        try:
            return publish_staged(runtime, [commit_id])[0]
        except ConflictError as conflict:
            if conflict.kind not in _OVERTAKEN or not tries_left:
                raise
        except RejectedError as rejected:
            if rejected.kind != publishing.OTHER_SUITE or not tries_left:
                raise
            judging = _as_required(runtime, commit_id, judging)
    raise AssertionError("the last try returns or raises")


def require_passed(verdict: Verdict) -> None:
    """Raises RejectedError for a verdict that rejects, RetryableError for one that says nothing of the data."""
    if verdict.passed:
        return
    failures = describe_failures(verdict)
    if verdict.outcome is Outcome.ERRORED:
        raise RetryableError(
            f"Gate {verdict.gate!r} could not judge commit {verdict.commit_id}: {failures}.",
            kind="gate_errored",
            remedy="The commit is staged: judge it again, or correct the suite.",
        )
    raise RejectedError(
        f"Gate {verdict.gate!r} rejected commit {verdict.commit_id}: {failures}.",
        kind="gate_rejected",
        remedy="Look at it with lake.staged(commit_id), stage the corrected rows, or publish it by name and reason.",
    )
