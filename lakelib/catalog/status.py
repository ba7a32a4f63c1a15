"""How tables are doing, in a few statements whatever their number."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.queries import query
from lakelib.catalog.records import Row, table_from_row
from lakelib.dataclass import dataclass
from lakelib.model.status import CommitAbout, HeldBack, JudgedCheck, JudgedCommit, WaitingCommit
from lakelib.model.table import TableInfo

_NEVER = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHead:
    """A table at its head, and what was last said of it."""

    info: TableInfo
    committed_at: datetime | None
    run_properties: Mapping[str, str] | None
    """Of the newest snapshot that a run about a partition has made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """What a table holds at its head, and what runs about partitions have done to it."""

    head_id: int
    place: int = 0
    """At which place of its partitions' keys the time was looked for."""
    files: int = 0
    stored_rows: int = 0
    size_bytes: int = 0
    partitions: int = 0
    partitions_due: int = 0
    most_runs: int = 0
    changed: Mapping[bytes | None, int] = field(default_factory=dict)
    """The last snapshot that changed rows, by the part of the partition's key that is cut by time."""
    runs: Mapping[str, int] = field(default_factory=dict)
    """The newest snapshot that a run about a partition has published, by the partition's key."""
    moments: Mapping[int, datetime] = field(default_factory=dict)
    """When snapshots of such runs were committed."""
    reads: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """By table that runs have read: by the snapshot that came of it the one that was read."""
    followed: Mapping[str, int] = field(default_factory=dict)
    """By table whose changes runs follow: the snapshot up to which they have come. Each makes all that was touched."""
    gate: str | None = None
    outcome: str | None = None
    """Of the newest verdict on what was published."""
    judged_snapshot: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A table whose holdings are to be looked up, and at which place of its partitions' keys the time is."""

    info: TableInfo
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPartition:
    """The newest commit that a run about a partition has published."""

    partition: str
    snapshot_id: int
    commit_id: UUID
    committed_at: datetime
    application: str | None
    approved_by: str | None
    approval_reason: str | None
    gate: str | None
    outcome: str | None
    summary: Mapping[str, Any]


def load_heads(catalog: Catalog) -> list[TableHead]:
    """All tables by name."""
    return [
        TableHead(
            info=table_from_row(row),
            committed_at=_utc(row["head_committed_at"]),
            run_properties=row["run_properties"],
        )
        for row in catalog.all("list_status_tables")
    ]


def load_holdings(catalog: Catalog, asked: Sequence[Asked]) -> dict[int, Holdings]:
    """By table. What changed is looked up before what runs have made of it: what is made anew meanwhile does not look
    staler than it is."""

    def work(db: Connection) -> dict[int, Holdings]:
        parameters = _asked(asked)
        with db.cursor(binary=True) as cursor:
            sums = {row["table_id"]: row for row in cursor.execute(query("sum_tables"), parameters)}
            runs = {row["table_id"]: row for row in cursor.execute(query("list_runs_of_tables"), parameters)}
            verdicts = {row["table_id"]: row for row in cursor.execute(query("list_last_verdicts"), parameters)}
            reads: dict[int, dict[str, dict[int, int]]] = defaultdict(dict)
            followed: dict[int, dict[str, int]] = defaultdict(dict)
            for row in cursor.execute(query("list_reads_of_tables"), parameters):
                reads[row["table_id"]][row["input"]] = dict(zip(row["snapshots"], row["seen"], strict=True))
                if row["followed"] is not None:
                    followed[row["table_id"]][row["input"]] = row["followed"]
        found = {}
        for each in asked:
            by_table = (sums.get(each.info.id), runs.get(each.info.id), verdicts.get(each.info.id))
            holdings = _holdings(each, *by_table, reads[each.info.id])
            found[each.info.id] = replace(holdings, followed=followed[each.info.id])
        return found

    return catalog.run(work, only_reads=True) if asked else {}


def load_waiting(catalog: Catalog) -> list[WaitingCommit]:
    """The commits of all tables that may still be published, the oldest first."""
    return [_waiting(row) for row in catalog.all("list_waiting")]


def load_held_back(
    catalog: Catalog, rules: Mapping[int, tuple[int | None, timedelta | None]]
) -> dict[int, tuple[HeldBack, ...]]:
    """What keeps snapshots from expiring that rules let go: so many stay, and those that are not older."""
    found: dict[int, list[HeldBack]] = defaultdict(list)
    parameters = {
        "table_ids": list(rules),
        "keep_last": [max(1, keep_last or 0) for keep_last, _ in rules.values()],
        "older_than": [older_than or timedelta(0) for _, older_than in rules.values()],
    }
    for row in catalog.all("list_held_back", parameters) if rules else ():
        found[row["table_id"]].append(HeldBack(**{name: row[name] for name in HeldBack.__slots__}))
    return {table_id: tuple(held) for table_id, held in found.items()}


def load_published(catalog: Catalog, table_id: int) -> dict[str, PublishedPartition]:
    """By partition's key."""
    rows = catalog.all("list_published_partitions", {"table_id": table_id})
    names = PublishedPartition.__slots__
    return {
        row["partition"]: PublishedPartition(
            **{name: row[name] for name in names if name != "committed_at"}, committed_at=_utc(row["committed_at"])
        )
        for row in rows
    }


def list_judged(catalog: Catalog, table_id: int, limit: int) -> list[JudgedCommit]:
    """The newest verdicts on a table's commits, the newest first."""
    return [
        JudgedCommit(
            commit=row["commit_id"],
            partition=row["partition"],
            state=row["state"],
            snapshot=row["snapshot_id"],
            gate=row["gate"],
            outcome=row["outcome"],
            judged_at=_utc(row["judged_at"]),
            checks=tuple(JudgedCheck(**check) for check in row["checks"] or ()),
        )
        for row in catalog.all("list_check_history", {"table_id": table_id, "limit": limit})
    ]


def list_commits_about(catalog: Catalog, table_id: int, partition: str, limit: int) -> list[CommitAbout]:
    """The commits about a partition, the newest first."""
    parameters = {"table_id": table_id, "partition": partition, "commit_id": None, "limit": limit}
    return [_commit_about(row) for row in catalog.all("list_commits_about", parameters)]


def load_commit_about(catalog: Catalog, table_id: int, commit_id: UUID) -> CommitAbout:
    """A commit that is there: commits stay."""
    parameters = {"table_id": table_id, "partition": None, "commit_id": commit_id, "limit": 1}
    (row,) = catalog.all("list_commits_about", parameters)
    return _commit_about(row)


def _asked(asked: Sequence[Asked]) -> dict[str, list[int]]:
    merges = [bool(each.info.primary_key_ids) for each in asked]
    return {
        "table_ids": [each.info.id for each in asked],
        "places": [each.place for each in asked],
        "runs": [each.info.options.compact_runs for each in asked],
        "percents": [
            each.info.options.compact_delta_percent if merge else _NEVER
            for each, merge in zip(asked, merges, strict=True)
        ],
    }


def _holdings(
    asked: Asked,
    sums: Row | None,
    runs: Row | None,
    verdict: Row | None,
    reads: Mapping[str, Mapping[int, int]],
) -> Holdings:
    numbers = ("files", "stored_rows", "size_bytes", "partitions", "partitions_due", "most_runs")
    changed: dict[bytes | None, int] = {}
    for part, snapshot_id in zip(sums["parts"], sums["changed"], strict=True) if sums else ():
        changed[part] = max(snapshot_id, changed.get(part, 0))
    return Holdings(
        head_id=asked.info.head_id,
        place=asked.place,
        **({name: sums[name] for name in numbers} if sums else {}),
        changed=changed,
        runs=dict(zip(runs["keys"], runs["snapshots"], strict=True)) if runs else {},
        moments=dict(zip(runs["snapshots"], runs["moments"], strict=True)) if runs else {},
        reads=reads,
        gate=verdict["gate"] if verdict else None,
        outcome=verdict["outcome"] if verdict else None,
        judged_snapshot=verdict["snapshot_id"] if verdict else None,
    )


def _waiting(row: Row) -> WaitingCommit:
    return WaitingCommit(
        id=row["id"],
        table=row["table_name"],
        kind=row["kind"],
        state=row["state"],
        partition=row["partition"],
        staged_at=_utc(row["staged_at"]),
        reason=row["reason"],
        gate=row["gate"],
        outcome=row["outcome"],
        rows_in=row["summary"].get("rows_in", 0),
        application=row["application"],
        version=row["version"],
        discarded_by=row["discarded_by"],
        discard_reason=row["discard_reason"],
        discarded_at=_utc(row["discarded_at"]),
    )


def _commit_about(row: Row) -> CommitAbout:
    moments = ("staged_at", "decided_at", "discarded_at")
    plain = {name: row[name] for name in CommitAbout.__slots__ if name not in (*moments, "snapshot")}
    return CommitAbout(snapshot=row["snapshot_id"], **plain, **{name: _utc(row[name]) for name in moments})


def _utc(moment: Any) -> Any:
    return None if moment is None else moment.astimezone(UTC)
