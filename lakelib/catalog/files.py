"""Partitions and files of a snapshot, pruned in SQL."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from psycopg import sql

from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.pruning import YES, Condition, file_condition, partition_condition, prefix_condition
from lakelib.catalog.queries import query, query_text
from lakelib.catalog.records import Row, file_from_row, partition_from_row
from lakelib.dataclass import dataclass
from lakelib.model.files import Contents, DataFile, FileSummary, Partition, PartitionSummary, Touched
from lakelib.model.predicate import Predicate
from lakelib.model.schema import Column
from lakelib.model.table import TableInfo
from lakelib.rows.values import partition_values

_PLAN_COLUMNS = (
    "f.id, f.path, f.partition_id, f.depth, f.prefix, f.run, f.level, f.row_count, f.delete_count, f.size_bytes,"
    " f.schema_id, f.sequence, f.added_snapshot, f.removed_snapshot"
)
_BOUNDS_COLUMNS = _PLAN_COLUMNS + ", f.lower_bounds, f.upper_bounds, f.null_counts"
_SEQUENCE_ON_TOP = (
    "coalesce(f.sequence, %(snapshot_id)s + array_position(%(beneath)s::uuid[], f.commit_id)) as sequence"
)
"""Files of commits that are taken for published count as of the snapshots that these would be."""
_STREAM_ROWS = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileQuery:
    """Which files: those of a snapshot, or of a staged commit, or of the snapshot as the commit would leave it."""

    table_id: int
    snapshot_id: int
    commit_id: UUID | None = None
    staged_only: bool = False
    beneath: tuple[UUID, ...] = ()
    """Other staged commits that are taken for published, in this order."""
    after_sequence: int | None = None
    """Only files with rows of later commits."""
    partition_by: tuple[Column, ...] = ()
    partition_predicate: Predicate | None = None
    """Judged by partition columns alone."""
    file_predicate: Predicate | None = None
    usable_ids: frozenset[int] = frozenset()
    """The columns whose file bounds may rule a file out."""
    hash_prefixes: tuple[int, ...] | None = None
    with_bounds: bool = False
    partition_ids: tuple[int, ...] | None = None
    """None for all."""
    since: int | None = None
    """Not the files of the snapshot alone, but all that were there at it or at one before it, from this one on."""
    moved_only: bool = False
    """Of those only the ones that came or went after the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFiles:
    files: tuple[DataFile, ...]
    partitions: dict[int, Partition]


def load_files(catalog: Catalog, wanted: FileQuery) -> FoundFiles:
    """Files that may hold matching rows, from oldest to newest within a partition, and their partitions."""
    return catalog.run(lambda db: _load_files(db, wanted), only_reads=True)


@contextmanager
def stream_files(catalog: Catalog, table: TableInfo, snapshot_id: int) -> Iterator[Iterator[FileSummary]]:
    """Every file of a snapshot, without holding them all."""
    parameters = {"table_id": table.id, "snapshot_id": snapshot_id}
    with catalog.stream(query("list_files"), parameters, rows_at_once=_STREAM_ROWS) as rows:
        yield (_file_summary(table, row) for row in rows)


def count_files(catalog: Catalog, table_id: int, snapshot_id: int) -> int:
    parameters = {"table_id": table_id, "snapshot_id": snapshot_id}
    row = catalog.one("count_files", parameters)
    return 0 if row is None else int(row["files"])


def sum_files(catalog: Catalog, table_id: int, snapshot_id: int) -> Contents:
    row = catalog.one("sum_files", {"table_id": table_id, "snapshot_id": snapshot_id})
    assert row is not None
    return Contents(**row)


def load_partitions(catalog: Catalog, ids: Sequence[int]) -> dict[int, Partition]:
    return catalog.run(lambda db: _partitions_by_id(db, ids), only_reads=True)


def summarise_partitions(catalog: Catalog, table: TableInfo, snapshot_id: int) -> list[PartitionSummary]:
    """One entry a partition that has files, in the order of their values."""
    rows = catalog.all("summarise_partitions", {"table_id": table.id, "snapshot_id": snapshot_id})
    return [
        PartitionSummary(
            values=partition_values(table.partition_by, row["key"]),
            path=row["path"],
            files=row["files"],
            stored_rows=row["stored_rows"],
            size_bytes=row["size_bytes"],
            newest_snapshot=row["newest_snapshot"],
        )
        for row in rows
    ]


def find_partitions_at(catalog: Catalog, table_id: int, paths: Sequence[str]) -> tuple[int, ...]:
    """The ids of the partitions that have these folders."""
    rows = catalog.all("find_partitions_at", {"table_id": table_id, "paths": list(paths)})
    return tuple(row["id"] for row in rows)


def list_touched(catalog: Catalog, table_id: int, snapshot_id: int) -> list[Touched]:
    """The partitions that a snapshot has added files to or removed files from, in the order of their values."""
    return [
        Touched(
            partition=partition_from_row(row),
            is_replaced=bool(row["is_replaced"]),
            size_bytes=row["size_bytes"],
            previous_snapshot=row["previous_snapshot"],
        )
        for row in catalog.all("list_touched", {"table_id": table_id, "snapshot_id": snapshot_id})
    ]


def find_touched_partitions(catalog: Catalog, commit_id: UUID) -> tuple[int, ...]:
    """The partitions that publishing a commit changes."""
    rows = catalog.all("find_touched_partitions", {"commit_id": commit_id})
    return tuple(sorted(row["partition_id"] for row in rows))


def _file_summary(table: TableInfo, row: Row) -> FileSummary:
    return FileSummary(
        path=row["path"],
        partition=partition_values(table.partition_by, row["key"]),
        row_count=row["row_count"],
        delete_count=row["delete_count"],
        size_bytes=row["size_bytes"],
        depth=row["depth"],
        prefix=row["prefix"],
        level=row["level"],
        added_snapshot=row["added_snapshot"],
    )


def _load_files(db: Connection, wanted: FileQuery) -> FoundFiles:
    partitions: dict[int, Partition] | None = None
    if wanted.partition_predicate is not None:
        partitions = _matching_partitions(db, wanted)
        if not partitions:
            return FoundFiles(files=(), partitions={})
    in_partitions = YES if partitions is None else "f.partition_id = any(%(partition_ids)s::bigint[])"
    if wanted.partition_ids is not None:
        in_partitions += " and f.partition_id = any(%(chosen_partition_ids)s::bigint[])"
    statement, parameters = _statement(wanted, in_partitions, _BOUNDS_COLUMNS if wanted.with_bounds else _PLAN_COLUMNS)
    parameters["partition_ids"] = list(partitions or ())
    parameters["chosen_partition_ids"] = list(wanted.partition_ids or ())
    with db.cursor(binary=True) as cursor:
        files = tuple(map(file_from_row, cursor.execute(statement, parameters).fetchall()))
    if partitions is None:
        partitions = _partitions_by_id(db, sorted({file.partition_id for file in files}))
    return FoundFiles(files=files, partitions=partitions)


def _statement(wanted: FileQuery, in_partitions: str, columns: str) -> tuple[sql.SQL, dict[str, Any]]:
    conditions = (
        Condition(text=in_partitions, parameters={}),
        file_condition(wanted.file_predicate, wanted.usable_ids),
        prefix_condition(wanted.hash_prefixes),
        Condition(text=YES if wanted.after_sequence is None else "f.sequence > %(after_sequence)s", parameters={}),
    )
    if wanted.since is not None:
        name = "load_moved_files" if wanted.moved_only else "load_past_files"
    elif wanted.commit_id is None:
        name = "load_files"
    else:
        name = "load_commit_files" if wanted.staged_only else "load_merged_files"
    condition = " and ".join(f"({part.text})" for part in conditions if part.text != YES) or YES
    if wanted.beneath:
        columns = columns.replace("f.sequence", _SEQUENCE_ON_TOP)
    text = query_text(name).replace("{columns}", columns).replace("{condition}", condition)
    parameters: dict[str, Any] = {
        "table_id": wanted.table_id,
        "snapshot_id": wanted.snapshot_id,
        "commit_id": wanted.commit_id,
        "commit_ids": [*wanted.beneath, wanted.commit_id],
        "beneath": list(wanted.beneath),
        "after_sequence": wanted.after_sequence,
        "since": wanted.since,
    }
    for part in conditions:
        parameters |= part.parameters
    return sql.SQL(text), parameters


def _matching_partitions(db: Connection, wanted: FileQuery) -> dict[int, Partition]:
    condition = partition_condition(wanted.partition_predicate, wanted.partition_by)
    text = query_text("find_partitions").replace("{condition}", condition.text)
    rows = db.execute(sql.SQL(text), condition.parameters | {"table_id": wanted.table_id})
    return {row["id"]: partition_from_row(row) for row in rows}


def _partitions_by_id(db: Connection, ids: Sequence[int]) -> dict[int, Partition]:
    if not ids:
        return {}
    rows = db.execute(query("load_partitions"), {"ids": list(ids)})
    return {row["id"]: partition_from_row(row) for row in rows}
