"""What a doctor asks the catalog: whether it agrees with itself, and what it says of files.

Each check is one statement, which sees the catalog at one moment: what commits meanwhile is no finding.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from lakelib.catalog.connect import Catalog
from lakelib.catalog.failures import user_of
from lakelib.catalog.queries import query
from lakelib.catalog.records import Row, file_from_row
from lakelib.dataclass import dataclass
from lakelib.model.doctor import Finding, Harm, Repair
from lakelib.model.files import DataFile, PartitionKey
from lakelib.model.roles import Right

_SPENT_FOR = timedelta(days=1)
_HELD_FOR = timedelta(days=1, hours=1)
"""Longer than a data frame's hold."""
_WAITED_FOR = timedelta(days=1)
_CLOCK_TOLERANCE = timedelta(seconds=1)
_MOST_FINDINGS = 1000
_PAGE = 500

_BY_HAND = (
    "The catalog was changed by hand, or restored in parts: restore it from a backup (`lake restore`), beside this one,"
    " and compare."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedTable:
    id: int
    name: str
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSpan:
    """The ids of a table's files at a moment. What is staged later has a higher one."""

    first_id: int
    last_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFile:
    id: int | None
    """None for one that waits to be deleted."""
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedFile:
    file: DataFile
    partition_key: PartitionKey


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    query: str
    severity: Harm
    kind: str
    remedy: str


_CHECKS = (
    _Check(query="check_heads", severity=Harm.DAMAGED, kind="wrong_head", remedy=_BY_HAND),
    _Check(query="check_gaps", severity=Harm.DAMAGED, kind="missing_snapshot", remedy=_BY_HAND),
    _Check(query="check_file_snapshots", severity=Harm.DAMAGED, kind="wrong_file_snapshot", remedy=_BY_HAND),
    _Check(query="check_unstamped_files", severity=Harm.DAMAGED, kind="unpublished_file", remedy=_BY_HAND),
    _Check(query="check_commits", severity=Harm.DAMAGED, kind="wrong_commit_state", remedy=_BY_HAND),
    _Check(
        query="check_progress",
        severity=Harm.DAMAGED,
        kind="wrong_progress",
        remedy="An application's work counts once a version: compare what the two commits wrote, and take one back.",
    ),
    _Check(
        query="check_queue",
        severity=Harm.AT_RISK,
        kind="queued_live_file",
        remedy="Run no vacuum before `lake doctor --repair queue --yes` has taken it out of the deletion queue.",
    ),
    _Check(
        query="check_indexes",
        severity=Harm.AT_RISK,
        kind="invalid_index",
        remedy="REINDEX it in PostgreSQL, then look for what it did not prevent: run the doctor again.",
    ),
    _Check(
        query="check_future",
        severity=Harm.NOTABLE,
        kind="future_snapshot",
        remedy="The catalog's clock was ahead when it was committed. Keep the server's clock in step (NTP); what reads"
        " `at` a moment before it does not see the snapshot.",
    ),
)


def list_tables(catalog: Catalog) -> list[ExaminedTable]:
    """Those that were not dropped."""
    return [ExaminedTable(**row) for row in _rows(catalog, "list_examined_tables", {})]


def check_catalog(catalog: Catalog, table_ids: Sequence[int]) -> list[Finding]:
    """Where the catalog does not agree with itself; at most a thousand findings of a kind."""
    parameters = {"table_ids": list(table_ids), "limit": _MOST_FINDINGS, "tolerance": _CLOCK_TOLERANCE}
    return [
        Finding(
            severity=check.severity,
            kind=check.kind,
            table=row["table_name"],
            place=row["place"],
            detail=row["detail"],
            remedy=check.remedy,
        )
        for check in _CHECKS
        for row in _rows(catalog, check.query, parameters)
    ]


def check_holds(catalog: Catalog, table_ids: Sequence[int]) -> list[Finding]:
    """Leases and commits that keep snapshots from expiring, or should have gone."""
    parameters = {
        "table_ids": list(table_ids),
        "spent_for": _SPENT_FOR,
        "held_for": _HELD_FOR,
        "waited_for": _WAITED_FOR,
        "limit": _MOST_FINDINGS,
    }
    leases = [_lease_finding(row) for row in _rows(catalog, "list_doubtful_leases", parameters)]
    return leases + [_commit_finding(row) for row in _rows(catalog, "list_waiting_commits", parameters)]


def _lease_finding(row: Row) -> Finding:
    span = f"{row['first_id']} to {row['last_id']}" if row["last_id"] > row["first_id"] else str(row["first_id"])
    spent = row["expires_at"] < row["now"]
    return Finding(
        severity=Harm.NOTABLE,
        kind="spent_lease" if spent else "long_lease",
        table=row["table_name"],
        place=f"lease of {row['holder']}",
        detail=f"it {'ran out' if spent else 'holds snapshots until'} {_moment(row['expires_at'])}: snapshot {span}",
        remedy="Nothing expires this table's snapshots: run `lake expire`, or `lake doctor --repair leases --yes`."
        if spent
        else "Nothing, if it is a backup or a long read; else delete it from lake.lease.",
    )


def _commit_finding(row: Row) -> Finding:
    return Finding(
        severity=Harm.NOTABLE,
        kind="waiting_commit",
        table=row["table_name"],
        place=f"commit {row['id']}",
        detail=f"it is {row['state']} since {_moment(row['since'])} and holds the snapshots from"
        f" {row['base_snapshot_id']} on",
        remedy="Publish it (`lake publish`) or reject it (`lake reject`); expiry gives it up after seven days.",
    )


def check_rights(catalog: Catalog) -> list[Finding]:
    """What the connected user may not do."""
    row = catalog.one("load_rights")
    assert row is not None
    lacking = [right for right in Right if right.value not in row["rights"]]
    if not lacking:
        return []
    return [
        Finding(
            severity=Harm.NOTABLE,
            kind="limited_rights",
            table=None,
            place=f"user {user_of(catalog.url) or 'of the catalog'}",
            detail=f"it may not {'; nor '.join(right.words for right in lacking)}",
            remedy="Nothing, if that is meant; else have an owner grant it a role: `lake grant`.",
        )
    ]


def measure_clock(catalog: Catalog) -> tuple[timedelta, timedelta]:
    """How far the catalog's clock is ahead of this host's, and how far that may be wrong: half of a round trip."""

    def ask(db: Any) -> tuple[datetime, float, datetime]:
        began, host = time.monotonic(), datetime.now(UTC)
        row = db.execute("select clock_timestamp() as now").fetchone()
        return row["now"].astimezone(UTC), time.monotonic() - began, host

    now, seconds, host = catalog.run(ask)
    half = timedelta(seconds=seconds / 2)
    return now - (host + half), half


def find_span(catalog: Catalog, table_id: int) -> FileSpan | None:
    """None for a table without files."""
    row = _rows(catalog, "find_file_span", {"table_id": table_id})[0]
    return None if row["first_id"] is None else FileSpan(**row)


def find_known(catalog: Catalog, table_id: int, paths: Sequence[str]) -> dict[str, KnownFile]:
    """Those of the paths that a commit names or that wait to be deleted. Where it is both, the commit counts."""
    rows = _rows(catalog, "find_known_files", {"table_id": table_id, "paths": list(paths)})
    waiting_first = sorted(rows, key=lambda row: row["id"] is not None)
    return {row["path"]: KnownFile(id=row["id"], size_bytes=row["size_bytes"]) for row in waiting_first}


def find_named(catalog: Catalog, ids: Sequence[int]) -> set[int]:
    """Those of the files that a commit still names."""
    return {row["id"] for row in _rows(catalog, "find_named_files", {"ids": list(ids)})}


def load_page(catalog: Catalog, table_id: int, span: FileSpan, after: str) -> list[ExaminedFile]:
    """The next files of the span, by path; none at its end."""
    parameters = {"table_id": table_id, "last_id": span.last_id, "after": after, "limit": _PAGE}
    return [
        ExaminedFile(file=file_from_row(row), partition_key=tuple(row["key"]))
        for row in _rows(catalog, "list_examined_files", parameters)
    ]


def load_mask_page(catalog: Catalog, table_id: int, after: str) -> dict[str, str]:
    """The next masks that are files, by path, with the paths of the files that they mask; none at the end."""
    parameters = {"table_id": table_id, "after": after, "limit": _PAGE}
    return {row["path"]: row["masked_path"] for row in _rows(catalog, "list_examined_masks", parameters)}


def find_masks(catalog: Catalog, table_id: int, paths: Sequence[str]) -> set[str]:
    """Those of the paths that a mask still has."""
    parameters = {"table_id": table_id, "paths": list(paths)}
    return {row["path"] for row in _rows(catalog, "find_masks_still_there", parameters)}


def unqueue(catalog: Catalog, table_ids: Sequence[int], *, dry_run: bool) -> list[Repair]:
    """Files that a commit names leave the deletion queue."""
    name = "check_queue" if dry_run else "unqueue_named_files"
    parameters = {"table_ids": list(table_ids), "limit": _MOST_FINDINGS}
    return [_repair("queue", row) for row in _rows(catalog, name, parameters)]


def drop_leases(catalog: Catalog, table_ids: Sequence[int], *, dry_run: bool) -> list[Repair]:
    """Leases that ran out long ago go."""
    if dry_run:
        found = check_holds(catalog, table_ids)
        return [Repair(kind="leases", table=one.table, place=one.place) for one in found if one.kind == "spent_lease"]
    parameters = {"table_ids": list(table_ids), "spent_for": _SPENT_FOR}
    return [_repair("leases", row) for row in _rows(catalog, "drop_long_spent_leases", parameters)]


def _repair(kind: str, row: Row) -> Repair:
    return Repair(kind=kind, table=row["table_name"], place=row["place"])


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(sep=" ", timespec="seconds")


def _rows(catalog: Catalog, name: str, parameters: dict[str, Any]) -> list[Row]:
    return list(catalog.run(lambda db: db.execute(query(name), parameters).fetchall()))
