"""Suites that are registered, the one that a table requires, and the verdicts of gates. What was required and released
stays. Verdicts are kept with the commit, together with what follows from them."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from lakelib.catalog.commits import commit_missing
from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.queries import query
from lakelib.catalog.records import Row
from lakelib.catalog.tables import table_missing
from lakelib.errors import ConflictError, DecidedError
from lakelib.model.commit import CommitInfo
from lakelib.model.gate import (
    CheckResult,
    GateRequirement,
    LookedAt,
    Outcome,
    RegisteredSuite,
    Scope,
    Severity,
    Status,
    Verdict,
)
from lakelib.model.table import CommitState, TableInfo, TableRef

_JUDGEABLE = (CommitState.STAGED, CommitState.REJECTED)


def register_suite(
    catalog: Catalog, *, name: str, suite_hash: str, text: str, critical_checks: int, by: str | None
) -> RegisteredSuite:
    """The suite under the next version of its name, or as it was registered before under this name and hash. Without
    `by` it is the database's user who has registered it."""
    parameters = {"name": name, "hash": suite_hash, "text": text, "critical_checks": critical_checks, "by": by}

    def work(db: Connection) -> RegisteredSuite:
        db.execute(query("lock_suite_name"), {"name": name})
        db.execute(query("register_suite"), parameters)
        row = db.execute(query("find_suite"), {"name": name, "hash": suite_hash}).fetchone()
        assert row is not None
        return _suite_from_row(row)

    return catalog.run(work)


def find_suite(catalog: Catalog, name: str, suite_hash: str | None = None) -> RegisteredSuite | None:
    """The suite of this name and hash; without a hash the newest version."""
    wanted = "find_newest_suite" if suite_hash is None else "find_suite"
    row = catalog.run(lambda db: db.execute(query(wanted), {"name": name, "hash": suite_hash}).fetchone())
    return None if row is None else _suite_from_row(row)


def find_suite_required_of(catalog: Catalog, commit_id: UUID) -> RegisteredSuite | None:
    """The suite that the commit's table requires by hash."""
    row = catalog.one("find_suite_required_of", {"commit_id": commit_id})
    return None if row is None else _suite_from_row(row)


def list_suites(catalog: Catalog) -> list[RegisteredSuite]:
    """By name, the newest version first."""
    return catalog.run(lambda db: [_suite_from_row(row) for row in db.execute(query("list_suites"))])


def require_suite(
    catalog: Catalog, table: TableInfo, suite: RegisteredSuite, *, by: str | None, reason: str | None
) -> GateRequirement | None:
    """The table requires the suite, which has a critical check; None if what it requires has changed since it was
    loaded. The reason is kept with what it has required so far."""
    required = {"table_id": table.id, "name": suite.name, "version": suite.version, "by": by}

    def work(db: Connection) -> GateRequirement | None:
        name, version = _lock_required(db, table.ref)
        if (name, version) != (table.options.required_gate, table.required_suite and table.required_suite.version):
            return None
        if version is not None:
            released = {"table_id": table.id, "by": by, "reason": reason or f"replaced by version {suite.version}"}
            db.execute(query("release_requirement"), released)
        elif name not in ("", suite.name):
            _keep_released_name(db, table.ref, name, by, reason)
        row = db.execute(query("insert_requirement"), required).fetchone()
        assert row is not None, "the suite is registered, and has a critical check"
        db.execute(query("set_required_name"), required)
        return _requirement_from_row(row)

    return catalog.run(work)


def release(catalog: Catalog, table: TableRef, *, by: str, reason: str) -> bool:
    """The table requires no gate afterwards. Whether this was so before, and nobody else's doing."""

    def work(db: Connection) -> bool:
        name, version = _lock_required(db, table)
        if not name:
            return _is_latest(db, table, by, reason)
        if version is None:
            _keep_released_name(db, table, name, by, reason)
        else:
            db.execute(query("release_requirement"), {"table_id": table.id, "by": by, "reason": reason})
        db.execute(query("set_required_name"), {"table_id": table.id, "name": None})
        return True

    return catalog.run(work)


def list_requirements(catalog: Catalog, table: TableRef) -> list[GateRequirement]:
    """What the table requires by hash and what it has required, the newest first."""
    return catalog.run(lambda db: [_requirement_from_row(row) for row in _requirements(db, table)])


def _lock_required(db: Connection, table: TableRef) -> tuple[str, int | None]:
    """What is required by the time that the table is held: looked for after the lock, for a statement sees nothing that
    was committed while it waited."""
    if db.execute(query("lock_gated_table"), {"table_id": table.id}).fetchone() is None:
        raise table_missing(table.full_name)
    row = db.execute(query("find_required_gate"), {"table_id": table.id}).fetchone()
    assert row is not None
    return row["name"], row["version"]


def _keep_released_name(db: Connection, table: TableRef, name: str, by: str | None, reason: str | None) -> None:
    db.execute(query("insert_released_name"), {"table_id": table.id, "name": name, "by": by, "reason": reason})


def _is_latest(db: Connection, table: TableRef, by: str, reason: str) -> bool:
    """Whether the last release was this one: it is repeated after a lost reply."""
    newest = next(iter(_requirements(db, table)), None)
    return newest is not None and (newest["released_by"], newest["release_reason"]) == (by, reason)


def _requirements(db: Connection, table: TableRef) -> list[Row]:
    return list(db.execute(query("list_requirements"), {"table_id": table.id}).fetchall())


def _suite_from_row(row: Row) -> RegisteredSuite:
    return RegisteredSuite(
        name=row["name"],
        version=row["version"],
        hash=row["hash"],
        text=row["text"],
        critical_checks=row["critical_checks"],
        registered_by=row["registered_by"],
        registered_at=row["registered_at"].astimezone(UTC),
    )


def _requirement_from_row(row: Row) -> GateRequirement:
    return GateRequirement(
        name=row["suite_name"],
        version=row["suite_version"],
        hash=row["suite_hash"],
        required_by=row["required_by"],
        required_at=_utc(row["required_at"]),
        released_by=row["released_by"],
        release_reason=row["release_reason"],
        released_at=_utc(row["released_at"]),
    )


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)


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
