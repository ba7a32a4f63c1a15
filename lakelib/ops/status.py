"""Use case: how the tables of a lake are doing.

A look (status_look) is a few statements, whatever the number of tables. From it and from the specs follows how
partitions stand (status_partitions): nothing of it is kept, so it is as true as the catalog.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from os import PathLike
from pathlib import Path
from uuid import UUID

from lakelib.catalog import status, tables
from lakelib.catalog.status import PublishedPartition
from lakelib.errors import NotFoundError
from lakelib.model.status import (
    TROUBLES,
    CommitAbout,
    HeldBack,
    JudgedCommit,
    LakeStatus,
    PartitionStatus,
    Standing,
    TableDetail,
    TableStatus,
    WaitingCommit,
)
from lakelib.model.table import TableInfo
from lakelib.ops.decide import find_staged
from lakelib.ops.expire import DEFAULT_KEEP_LAST, DEFAULT_OLDER_THAN
from lakelib.ops.runtime import Runtime
from lakelib.ops.status_look import Look, Memory, look_around
from lakelib.ops.status_partitions import Stand, stands_of, waits
from lakelib.plan import due
from lakelib.specs.table_spec import SpecFolder, TableSpec, scan_specs

_UNFLAGGED = (None, "accept")


def read_specs(folder: str | PathLike[str]) -> SpecFolder:
    """The specs of a folder, which say what is due, and what is wrong with others. Raises NotFoundError."""
    if not Path(folder).is_dir():
        raise NotFoundError(
            f"There is no folder of specs at {folder}.",
            kind="folder_not_found",
            remedy="Name it with --specs, or by the variable LAKE_TABLES, or specs= in Python; else nothing is due.",
        )
    return scan_specs(folder)


def read_right_specs(folder: str | PathLike[str] | None) -> tuple[TableSpec, ...]:
    """Those of a folder, of which none may be wrong; none without a folder. Raises NotFoundError, InvalidInputError."""
    if folder is None:
        return ()
    found = read_specs(folder)
    for error in found.errors.values():
        raise error
    return found.specs


def look(runtime: Runtime, specs: Iterable[TableSpec] = (), memory: Memory | None = None) -> LakeStatus:
    """All tables of the lake, and those that specs name and that are not there yet, by name."""
    seen = look_around(runtime, specs, memory or Memory())
    held = status.load_held_back(runtime.catalog, _rules(seen))
    return LakeStatus(at=seen.at, tables=tuple(_table_status(seen, name, held) for name in seen.names))


def look_at_table(
    runtime: Runtime, name: str, specs: Iterable[TableSpec] = (), memory: Memory | None = None
) -> TableDetail:
    """A table, partition by partition. Raises NotFoundError for one that neither the lake nor a spec has."""
    seen = look_around(runtime, specs, memory or Memory())
    if name not in seen.names:
        raise tables.table_missing(name, seen.names)
    head, keying = seen.heads.get(name), seen.keyings.get(name)
    held = status.load_held_back(runtime.catalog, _rules(seen, name))
    published = {} if head is None else status.load_published(runtime.catalog, head.info.id)
    return TableDetail(
        at=seen.at,
        status=_table_status(seen, name, held),
        every=None if keying is None else keying.every,
        reads=tuple(sorted({*seen.holdings_of(name).reads, *_read_by(seen, name)})),
        partitions=tuple(_partitions(seen, name, published)),
    )


def list_commits_about(runtime: Runtime, table: TableInfo, partition: str, limit: int = 100) -> list[CommitAbout]:
    """What has become of the commits about a partition, the newest first."""
    return status.list_commits_about(runtime.catalog, table.id, partition, limit)


def load_commit_about(runtime: Runtime, commit_id: UUID | str) -> tuple[str, CommitAbout]:
    """The name of a commit's table, and what has become of the commit. Raises as `find_staged`."""
    table, found = find_staged(runtime, commit_id)
    return table.full_name, status.load_commit_about(runtime.catalog, table.id, found)


def list_judged(runtime: Runtime, table: TableInfo, limit: int = 60) -> list[JudgedCommit]:
    """What gates have found in a table's commits, the newest first."""
    return status.list_judged(runtime.catalog, table.id, limit)


def list_quarantine(runtime: Runtime) -> list[WaitingCommit]:
    """The commits of all tables that may still be published, the newest first; those that a person has decided against
    among them."""
    return status.load_waiting(runtime.catalog)[::-1]


# A table


def _table_status(seen: Look, name: str, held: Mapping[int, tuple[HeldBack, ...]]) -> TableStatus:
    head, holdings = seen.heads.get(name), seen.holdings_of(name)
    counted = Counter(stand.standing for stand in stands_of(seen, name).values())
    keyless = sum(each.partition is None and each.discarded_by is None for each in seen.waiting.get(name, ()))
    if keyless:
        counted[Standing.WAITING] += keyless
    return TableStatus(
        table=name,
        snapshot=None if head is None else head.info.head_id or None,
        committed_at=None if head is None else head.committed_at,
        partitions=holdings.partitions,
        files=holdings.files,
        stored_rows=holdings.stored_rows,
        size_bytes=holdings.size_bytes,
        gate=holdings.gate,
        outcome=holdings.outcome,
        judged_snapshot=holdings.judged_snapshot,
        troubles={standing.value: counted[standing] for standing in TROUBLES if counted[standing]},
        waiting=tuple(each for each in seen.waiting.get(name, ()) if waits(each, holdings)),
        partitions_due=holdings.partitions_due,
        most_runs=holdings.most_runs,
        held_back=() if head is None else held.get(head.info.id, ()),
    )


def _read_by(seen: Look, name: str) -> tuple[str, ...]:
    return seen.specs[name].read_tables if name in seen.specs else ()


def _rules(seen: Look, only: str | None = None) -> dict[int, tuple[int | None, timedelta | None]]:
    """By table which snapshots may expire. Where a spec says that none does, nothing is held back."""
    found: dict[int, tuple[int | None, timedelta | None]] = {}
    for name, head in seen.heads.items():
        spec = seen.specs.get(name)
        if only not in (None, name) or (spec is not None and spec.maintenance.expire is None):
            continue
        expire = None if spec is None else spec.maintenance.expire
        found[head.info.id] = (
            (DEFAULT_KEEP_LAST, DEFAULT_OLDER_THAN) if expire is None else (expire.keep_last, expire.older_than)
        )
    return found


# Partition by partition


def _partitions(seen: Look, name: str, published: Mapping[str, PublishedPartition]) -> Iterator[PartitionStatus]:
    holdings, keying = seen.holdings_of(name), seen.keyings.get(name)
    stands = stands_of(seen, name)
    rows = {} if keying is None else due.keys_changed(keying, holdings.changed, {})
    for key in sorted({*stands, *published, *rows}):
        yield _partition_status(key, stands.get(key), published.get(key), rows.get(key))


def _partition_status(
    key: str, stand: Stand | None, made: PublishedPartition | None, changed_by: int | None
) -> PartitionStatus:
    stand = stand or _published(made)
    newest = stand.newest
    return PartitionStatus(
        partition=key,
        standing=stand.standing,
        why=stand.why,
        snapshot=None if made is None else made.snapshot_id,
        committed_at=None if made is None else made.committed_at,
        changed_by=changed_by,
        commit=newest.id if newest else made.commit_id if made else None,
        gate=newest.gate if newest else made.gate if made else None,
        outcome=newest.outcome if newest else made.outcome if made else None,
        application=newest.application if newest else made.application if made else None,
        rows_in=newest.rows_in if newest else made.summary.get("rows_in") if made else None,
    )


def _published(made: PublishedPartition | None) -> Stand:
    if made is None:
        return Stand(standing=Standing.PUBLISHED, why="it has rows, and no run was about it")
    if made.approved_by is not None:
        why = f"its gate said {made.outcome}; {made.approved_by} published it: {made.approval_reason}"
        return Stand(standing=Standing.WARNED, why=why)
    if made.outcome not in _UNFLAGGED:
        return Stand(standing=Standing.WARNED, why=f"its gate says {made.outcome}")
    return Stand(standing=Standing.PUBLISHED, why="published")
