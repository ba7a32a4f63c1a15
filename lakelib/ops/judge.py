"""Use case: a gate judges a staged commit.

Judging step by step: the suite fits the table; the table at its head, once for all scopes; for each scope the rows,
through the ordinary scan, and its checks; the outcome; the verdict, kept with the commit in one transaction.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from os import PathLike
from typing import Any
from uuid import UUID

from lakelib.catalog import commits, files, gates, tables
from lakelib.catalog.roles import require_right
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, RejectedError, RetryableError
from lakelib.model.commit import CommitInfo
from lakelib.model.effect import Effect
from lakelib.model.gate import CheckResult, LookedAt, Outcome, RegisteredSuite, Scope, Verdict
from lakelib.model.options import sensitive_names
from lakelib.model.roles import Right
from lakelib.model.schema import Column
from lakelib.model.table import CommitKind, TableInfo
from lakelib.ops.effect import count_rows_before, known_effect, measure_effect
from lakelib.ops.hold import Held
from lakelib.ops.patience import Patience
from lakelib.ops.read import ScanPlan, ScanRequest, plan_scan, schema_of_staged, staged_view, stream_batches
from lakelib.ops.runtime import Runtime
from lakelib.ops.turn import while_busy
from lakelib.plan.judging import decide_outcome, describe_failures
from lakelib.specs.suite import Check, Suite, load_suite, parse_suite
from lakelib.work import engines


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
        from lakelib.gates.lint import check_problems  # not everybody judges

        return load_suite(gate, check_problems)
    raise InvalidInputError(
        f"gate is {gate!r}.", kind="invalid_gate", remedy="Give the path of a suite, or a suite that was loaded."
    )


def open_registered(suite: RegisteredSuite) -> Suite:
    """What was registered, to judge with."""
    return parse_suite(suite.text, f"gate {suite.name}, version {suite.version}")


def judge(runtime: Runtime, commit_id: UUID, judging: Judging, beneath: Sequence[UUID] = ()) -> Verdict:
    """The verdict, which is kept with the commit; one that rejects also rejects the commit. Commits `beneath` are taken
    for published, in this order: it is judged on top of them.

    Raises InvalidInputError that names all that is wrong in the suite, ConflictError for a commit that is published or
    expired. A check that cannot be carried out is part of the verdict.
    """
    require_right(runtime.catalog, Right.JUDGE)
    started, judged_at = time.monotonic(), datetime.now(UTC)
    commit = commits.load_commit(runtime.catalog, commit_id)
    gates.check_judgeable(commit)
    if commit.kind is CommitKind.OVERWRITE:
        patience = Patience(f"Judging commit {commit_id}")
        while_busy(patience, lambda: commits.retarget(runtime.catalog, commit_id, over_changes=False))
    table = tables.load_table(runtime.catalog, commit.table)
    columns = schema_of_staged(runtime, table, commit, beneath).columns
    check_suite(judging.suite, columns)
    checks = _run_checks(runtime, table, commit, columns, judging, tuple(beneath))
    verdict = Verdict(
        commit_id=commit_id,
        gate=judging.suite.name,
        suite_hash=judging.suite.hash,
        outcome=decide_outcome(checks),
        base_snapshot_id=table.head_id,
        engine=engines.engine_name(judging.session),
        seconds=time.monotonic() - started,
        judged_at=judged_at,
        checks=checks,
        amendment=commit.amendment,
        beneath=tuple(beneath),
        looked_at=_looked_at(judging.suite, columns),
    )
    gates.store_verdict(runtime.catalog, verdict, f"gate {verdict.gate}: {describe_failures(verdict)}")
    return verdict


def check_suite(suite: Suite, columns: Sequence[Column] | None = None) -> None:
    """Raises InvalidInputError that names all that is wrong, with file and line."""
    from lakelib.gates import lint  # not everybody judges

    lint.check_suite(suite, columns)


def find_verdict(runtime: Runtime, commit_id: UUID) -> Verdict | None:
    """The newest verdict on a commit."""
    return gates.find_verdict(runtime.catalog, commit_id)


def find_effect(runtime: Runtime, verdict: Verdict) -> Effect:
    """What the judged commit does to rows, as far as it is known."""
    return known_effect(commits.load_commit(runtime.catalog, verdict.commit_id), verdict)


def describe(runtime: Runtime, commit_id: UUID) -> str:
    """ "rejected, gate orders: reject"."""
    state = commits.load_commit(runtime.catalog, commit_id).state.value
    verdict = find_verdict(runtime, commit_id)
    return f"{state}, gate {verdict.gate}: {verdict.outcome.value}" if verdict else f"{state}, not judged"


def _run_checks(
    runtime: Runtime,
    table: TableInfo,
    commit: CommitInfo,
    columns: Sequence[Column],
    judging: Judging,
    beneath: tuple[UUID, ...],
) -> tuple[CheckResult, ...]:
    """The results in the order of the suite."""
    from lakelib.gates.evidence import mask_result

    found = _judge_effect(runtime, table, commit, judging, beneath)
    for scope in judging.suite.scopes:
        left = {place: check for place, check in enumerate(judging.suite.checks) if place not in found}
        chosen = {place: check for place, check in left.items() if check.scope is scope}
        if not chosen:
            continue
        request = _scope_request(runtime, commit, scope, beneath)
        results = _run_scope(runtime, table, request, list(chosen.values()), columns, judging.session)
        found |= dict(zip(chosen, results, strict=True))
    sensitive = sensitive_names(table.options)
    return tuple(mask_result(found[place], sensitive) for place in range(len(judging.suite.checks)))


def _judge_effect(
    runtime: Runtime, table: TableInfo, commit: CommitInfo, judging: Judging, beneath: tuple[UUID, ...]
) -> dict[int, CheckResult]:
    """The results of checks of what the commit does to rows, by their place in the suite: measured once for all."""
    from lakelib.gates import judgement  # not everybody judges
    from lakelib.gates.expectations import looks_at_effect

    checks = {place: each for place, each in enumerate(judging.suite.checks) if looks_at_effect(each.expectation)}
    if not checks:
        return {}
    with_updates = judgement.asks_for_updates(checks.values())
    session = judging.session
    effect = measure_effect(runtime, table, commit, beneath, with_updates=with_updates, session=session)
    before: dict[Scope, int] = {}
    for scope in {each.scope for each in checks.values() if judgement.asks_for_share([each])}:
        touched = files.find_touched_partitions(runtime.catalog, commit.id) if scope is Scope.MERGED else None
        before[scope] = count_rows_before(runtime, table, beneath, touched, session)
    return {place: judgement.judge_effect(each, effect, before.get(each.scope)) for place, each in checks.items()}


def _looked_at(suite: Suite, columns: Sequence[Column]) -> LookedAt:
    from lakelib.gates.expectations import column_arguments, looks_at_effect, looks_at_schema

    seen = {column.name: (column.id, column.type) for column in columns}
    named = {name for check in suite.checks for name in column_arguments(check.arguments)}
    if any(looks_at_schema(check.expectation) for check in suite.checks):
        return LookedAt(
            columns={name: seen.get(name) for name in {*named, *seen}}, order=tuple(column.id for column in columns)
        )
    if any(looks_at_effect(check.expectation) for check in suite.checks):
        named |= seen.keys()
    return LookedAt(columns={name: seen.get(name) for name in named})


def _scope_request(runtime: Runtime, commit: CommitInfo, scope: Scope, beneath: tuple[UUID, ...]) -> ScanRequest:
    if scope is Scope.STAGED:
        return ScanRequest(staged=staged_view(commit.id, "staged", commit=commit))
    touched = files.find_touched_partitions(runtime.catalog, commit.id) if scope is Scope.MERGED else None
    return ScanRequest(staged=staged_view(commit.id, "merged", beneath, commit), partition_ids=touched)


def _run_scope(
    runtime: Runtime,
    table: TableInfo,
    request: ScanRequest,
    checks: Sequence[Check],
    columns: Sequence[Column],
    session: Any,
) -> list[CheckResult]:
    from lakelib.gates import run  # not everybody judges

    def plan(names: Sequence[str]) -> ScanPlan:
        return plan_scan(runtime, table, replace(request, columns=tuple(names)))

    if session is None:
        return run.run_on_arrow(checks, columns, lambda names: stream_batches(runtime, plan(names)))
    heap_count = engines.task_count(session)

    def carry(names: Sequence[str], work: run.Elsewhere) -> list[bytes]:
        planned = plan(names)
        with Held(runtime, planned):
            return engines.gather_findings(
                session,
                runtime.storage,
                planned.target,
                planned.splits,
                work.gather,
                work.combine,
                heap_count=heap_count,
            )

    return run.run_elsewhere(checks, columns, heap_count, carry)


# Judging again


def as_required(runtime: Runtime, commit_id: UUID, judging: Judging) -> Judging:
    """With the suite that the table requires by now, where that is one of the same gate."""
    required = gates.find_suite_required_of(runtime.catalog, commit_id)
    if required is None or required.name != judging.suite.name or required.hash == judging.suite.hash:
        return judging
    return replace(judging, suite=open_registered(required))


def may_be_stale(runtime: Runtime, commit_id: UUID, suite: Suite) -> bool:
    """Whether the verdict may rest on rows of others, or on columns that are others by now: also one of the suite as it
    was before it was changed."""
    verdict = find_verdict(runtime, commit_id)
    if suite.scopes != (Scope.STAGED,) or verdict is None or verdict.suite_hash != suite.hash:
        return True
    commit = commits.load_commit(runtime.catalog, commit_id)
    table = tables.load_table(runtime.catalog, commit.table)
    return verdict.looked_at != _looked_at(suite, schema_of_staged(runtime, table, commit).columns)


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
