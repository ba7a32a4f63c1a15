"""Suites that are registered, and the one that a table requires. What was required and released stays."""

from datetime import UTC, datetime
from uuid import UUID

from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.queries import query
from lakelib.catalog.records import Row
from lakelib.catalog.tables import table_missing
from lakelib.model.gate import GateRequirement, RegisteredSuite
from lakelib.model.table import TableInfo, TableRef


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
