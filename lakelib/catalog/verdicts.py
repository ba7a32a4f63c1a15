"""Verdicts of gates: kept with the commit, together with what follows from them."""

from datetime import UTC
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from lakelib.catalog.commits import commit_missing
from lakelib.catalog.connect import Catalog
from lakelib.catalog.records import Row
from lakelib.errors import ConflictError, DecidedError
from lakelib.model.commit import CommitInfo
from lakelib.model.gate import CheckResult, LookedAt, Outcome, Scope, Severity, Status, Verdict
from lakelib.model.table import CommitState

_JUDGEABLE = (CommitState.STAGED, CommitState.REJECTED)


def store_verdict(catalog: Catalog, verdict: Verdict, rejection: str) -> None:
    """Keeps a verdict; one that rejects also rejects the commit, with `rejection` as the reason.

    The newest verdict of a gate counts. A commit that was rejected stays so, whatever a later verdict says. Raises
    ConflictError for a commit that is published or expired.
    """
    parameters = {"verdict": Jsonb(_verdict_to_row(verdict)), "rejection": rejection}
    row = catalog.one("judge", parameters)
    assert row is not None
    match row["answer"]["outcome"]:
        case "commit_missing":
            raise commit_missing(verdict.commit_id)
        case "decided":
            raise _decided(verdict.commit_id, row["answer"]["state"])
        case "past_expired":
            raise ConflictError(
                f"Commit {verdict.commit_id} was judged at snapshot {verdict.base_snapshot_id}, which is gone since.",
                kind="verdict_stale",
                remedy="Judge it again.",
            )


def find_verdict(catalog: Catalog, commit_id: UUID) -> Verdict | None:
    """The newest verdict on a commit, by whatever gate."""
    row = catalog.one("find_verdict", {"commit_id": commit_id})
    return None if row is None else verdict_from_row(row)


def list_verdicts(catalog: Catalog, table_id: int) -> list[Verdict]:
    """All on commits of a table, the oldest first."""
    return [verdict_from_row(row) for row in catalog.all("list_verdicts", {"table_id": table_id})]


def check_judgeable(commit: CommitInfo) -> None:
    """Raises ConflictError for a commit that is published or expired."""
    if commit.state not in _JUDGEABLE:
        raise _decided(commit.id, commit.state.value)


def _decided(commit_id: UUID, state: str) -> DecidedError:
    return DecidedError(
        f"Commit {commit_id} is {state}; it cannot be judged.",
        remedy="Judge a commit before it is published; what is published is undone by a new commit.",
    )


def _verdict_to_row(verdict: Verdict) -> dict[str, Any]:
    scopes = {check.scope for check in verdict.checks}
    return {
        "commit_id": str(verdict.commit_id),
        "gate": verdict.gate,
        "outcome": verdict.outcome.value,
        "base_snapshot_id": verdict.base_snapshot_id,
        "evidence": {"checks": [_check_to_json(check) for check in verdict.checks]},
        "judged_at": verdict.judged_at.isoformat(),
        "suite_hash": verdict.suite_hash,
        "engine": verdict.engine,
        "seconds": verdict.seconds,
        "judges_partitions": Scope.MERGED in scopes,
        "judges_table": Scope.TABLE in scopes,
        "amendment": verdict.amendment,
        "beneath": [str(commit_id) for commit_id in verdict.beneath],
        "looked_at": _looked_at_to_json(verdict.looked_at),
    }


def verdict_from_row(row: Row) -> Verdict:
    return Verdict(
        commit_id=row["commit_id"],
        gate=row["gate"],
        suite_hash=row["suite_hash"],
        outcome=Outcome(row["outcome"]),
        base_snapshot_id=row["base_snapshot_id"],
        engine=row["engine"],
        seconds=row["seconds"],
        judged_at=row["judged_at"].astimezone(UTC),
        checks=tuple(_check_from_json(check) for check in row["evidence"].get("checks", ())),
        amendment=row["amendment"],
        beneath=tuple(row["beneath"]),
        looked_at=_looked_at_from_json(row["looked_at"]),
    )


def _looked_at_to_json(looked_at: LookedAt) -> dict[str, Any]:
    columns = {name: seen and {"id": seen[0], "type": seen[1]} for name, seen in looked_at.columns.items()}
    return {"columns": columns, "order": looked_at.order and list(looked_at.order)}


def _looked_at_from_json(found: dict[str, Any]) -> LookedAt:
    """Nothing for verdicts of before."""
    columns = {name: seen and (seen["id"], seen["type"]) for name, seen in found.get("columns", {}).items()}
    order = found.get("order")
    return LookedAt(columns=columns, order=None if order is None else tuple(order))


def _check_to_json(check: CheckResult) -> dict[str, Any]:
    return {
        "name": check.name,
        "expectation": check.expectation,
        "arguments": dict(check.arguments),
        "scope": check.scope.value,
        "severity": check.severity.value,
        "status": check.status.value,
        "observed": check.observed,
        "row_count": check.row_count,
        "unexpected_count": check.unexpected_count,
        "sample": list(check.sample),
        "detail": check.detail,
    }


def _check_from_json(found: dict[str, Any]) -> CheckResult:
    words = {
        "scope": Scope(found["scope"]),
        "severity": Severity(found["severity"]),
        "status": Status(found["status"]),
        "sample": tuple(found["sample"]),
    }
    return CheckResult(**(found | words))
