"""Use case: a Hive metastore learns what a table has: where it is, its partitions, how much they hold, which are done.

Step by step: what the metastore is to know of each partition, from the catalog; what it knows; the difference is told,
partition by partition. The metastore is the record of what it was told, so a report that failed, or was killed, is made
up for by the next one.
"""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from lakelib.catalog import files, snapshots
from lakelib.catalog.identity import load_identity
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, RetryableError
from lakelib.interop.hive.metastore import Address, Metastore
from lakelib.interop.hive.registration import (
    OWN,
    check_registrable,
    describe_partition,
    describe_table,
    is_told,
    partition_values,
)
from lakelib.model.exports import FailedPartition, HivePartition, HiveResult, HiveTable
from lakelib.model.files import PartitionSummary, Split
from lakelib.model.table import Snapshot, TableInfo
from lakelib.ops.mark_done import DonePartition, list_done, parse_partition
from lakelib.ops.read import ScanRequest, plan_scan
from lakelib.ops.runtime import Runtime
from lakelib.storage.paths import partition_path

_FEW = 32
"""The folders of so many partitions are listed one by one; of more, the table's as a whole."""
_MOST_FAILURES = 3
"""So many partitions in a row that the service cannot be told of: then it is away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HiveRequest:
    address: Address
    database: str | None = None
    """None: the table's namespace."""
    partitions: tuple[Mapping[str, Any], ...] | None = None
    """Only these; None: all, and those that are gone are taken out."""
    idle: timedelta | None = None
    """Only those to which no rows have come for so long."""
    dry_run: bool = False


def report(runtime: Runtime, table: TableInfo, request: HiveRequest) -> HiveResult:
    """Tells the metastore what it does not know. Raises RetryableError if it is out of reach, and InvalidInputError for
    a table of that name there that is another one. One partition that cannot be told keeps no other back."""
    start = time.monotonic()
    with Metastore(request.address) as metastore:
        told = _Report(runtime, table, request, metastore).run()
    return replace(told, seconds=time.monotonic() - start)


class _Report:
    def __init__(self, runtime: Runtime, table: TableInfo, request: HiveRequest, metastore: Metastore) -> None:
        self._runtime = runtime
        self._table = table
        self._request = request
        self._metastore = metastore
        self._database = (request.database or table.namespace).lower()
        self._name = table.name.lower()
        self._snapshots: dict[int, Snapshot | None] = {}
        self._failed: list[FailedPartition] = []

    def run(self) -> HiveResult:
        there = self._metastore.find_table(self._database, self._name)
        if there is None:  # all of it is new
            self._request = replace(self._request, partitions=None)
        wanted, at_work = self._wanted_partitions()
        table = self._describe(wanted)
        check_registrable(table)
        is_new = self._tell_table(table, there)
        known = {} if is_new else self._known(wanted)
        behind = [each for each in wanted if self._is_behind(table, each, known)] if table.partition_by else []
        told = [each for each in behind if self._request.dry_run or self._tell(table, each, known)]
        return HiveResult(
            table=self._table.full_name,
            metastore=str(self._request.address),
            database=self._database,
            name=self._name,
            dry_run=self._request.dry_run,
            is_new=is_new,
            partitions=len(wanted) if table.partition_by else 0,
            told=tuple(each.path for each in told),
            dropped=tuple(self._drop_gone(table, known)) if self._request.partitions is None else (),
            at_work=at_work,
            failed=tuple(self._failed),
            seconds=0.0,
        )

    # What it is to know

    def _wanted_partitions(self) -> tuple[list[HivePartition], int]:
        """And how many were left out, for rows have come to them a short while ago."""
        found = files.summarise_partitions(self._runtime.catalog, self._table, self._table.head_id)
        if self._request.partitions is not None:
            paths = {self._path(values) for values in self._request.partitions}
            found = [each for each in found if each.path in paths]
        rested = [each for each in found if self._is_at_rest(each)]
        marks = {mark.path: mark for mark in list_done(self._runtime, self._table, with_reset=False)}
        exact = self._read_plainly([each.path for each in rested])
        wanted = [self._partition(each, marks.get(each.path), each.path in exact) for each in rested]
        return wanted, len(found) - len(rested)

    def _path(self, values: Mapping[str, Any]) -> str:
        return partition_path(self._table.partition_by, parse_partition(self._table, values))

    def _is_at_rest(self, partition: PartitionSummary) -> bool:
        idle = self._request.idle
        newest = None if idle is None else self._snapshot(partition.newest_snapshot)
        return idle is None or newest is None or newest.committed_at <= self._table.loaded_at - idle

    def _snapshot(self, number: int) -> Snapshot | None:
        if number not in self._snapshots:
            self._snapshots[number] = snapshots.find_ever(self._runtime.catalog, self._table.id, number)
        return self._snapshots[number]

    def _partition(self, found: PartitionSummary, mark: DonePartition | None, is_exact: bool) -> HivePartition:
        newest = self._snapshot(found.newest_snapshot)
        told = {
            "snapshot": str(found.newest_snapshot),
            "rows_at_most": str(found.stored_rows),
            "bytes": str(found.size_bytes),
            "files": str(found.files),
            "plain_reads": "exact" if is_exact else "inexact",
            "schema": str(self._table.schema.id),
        }
        if newest is not None:
            told |= {"last_commit": str(newest.commit_id), "last_commit_at": newest.committed_at.isoformat()}
        if mark is not None:
            told |= {"done_snapshot": str(mark.snapshot_id), "done_at": mark.modified_at.isoformat()}
        statistics = {
            "numRows": str(found.stored_rows) if is_exact else "-1",
            "totalSize": str(found.size_bytes),
            "numFiles": str(found.files),
            "STATS_GENERATED_VIA_STATS_TASK": "true",
        }
        texts = [_text(found.values[column.name]) for column in self._table.partition_by]
        own = {f"{OWN}{name}": value for name, value in told.items()}
        return HivePartition(path=found.path, values=partition_values(texts), parameters=own | statistics)

    def _read_plainly(self, paths: Sequence[str]) -> set[str]:
        """The partitions whose folders have just the files that count, with each row in them once, under the names that
        columns have now: whoever reads all Parquet files there reads it right."""
        if not paths:
            return set()
        ids = files.find_partitions_at(self._runtime.catalog, self._table.id, paths)
        splits: dict[str, list[Split]] = defaultdict(list)
        for split in plan_scan(self._runtime, self._table, ScanRequest(partition_ids=ids)).splits:
            splits[split.partition.path].append(split)
        candidates = [path for path in paths if all(map(self._is_plain, splits[path]))]
        stored = self._stored(candidates)
        return {
            path for path in candidates if stored[path] == {file.path for each in splits[path] for file in each.files}
        }

    def _is_plain(self, split: Split) -> bool:
        runs = {(file.sequence, file.run) for file in split.files}
        is_one_run = not self._table.primary_key_ids or len(runs) == 1
        has_own_names = self._table.schema.in_files is self._table.schema
        return (
            is_one_run
            and has_own_names
            and all(
                not file.delete_count and file.schema_id == self._table.schema.id and file.depth == split.depth
                for file in split.files
            )
        )

    def _stored(self, paths: Sequence[str]) -> Mapping[str, set[str]]:
        """What readers of folders see in each."""
        root = self._runtime.storage.at(self._table.location)
        stored: dict[str, set[str]] = {path: set() for path in paths}
        for folder in paths if len(paths) <= _FEW else [""]:
            for entry in root.list_files(folder):
                path, _, name = entry.path.rpartition("/")
                if path in stored and not name.startswith(("_", ".")):
                    stored[path].add(entry.path)
        return stored

    def _describe(self, partitions: Sequence[HivePartition]) -> HiveTable:
        table = self._table
        head = snapshots.find_head(self._runtime.catalog, table) if table.head_id else None
        whole = partitions[0] if partitions and not table.partition_by else None
        parameters = {
            f"{OWN}lake": str(load_identity(self._runtime.catalog).id),
            f"{OWN}table": table.full_name,
            f"{OWN}table_id": str(table.id),
            f"{OWN}schema": str(table.schema.id),
            f"{OWN}plain_reads": "by partition",
        }
        if whole is not None:
            parameters |= whole.parameters
        elif head is not None and self._request.partitions is None:
            parameters |= {
                f"{OWN}snapshot": str(head.id),
                f"{OWN}last_commit": str(head.commit_id),
                f"{OWN}last_commit_at": head.committed_at.isoformat(),
            }
        ids = set(table.partition_ids)
        return HiveTable(
            name=table.full_name,
            location=_place(self._runtime.storage.place_of(table.location)),
            columns=tuple(column for column in table.schema.columns if column.id not in ids),
            partition_by=table.partition_by,
            parameters=parameters,
        )

    # What it knows, and is told

    def _tell_table(self, table: HiveTable, found: Any) -> bool:
        """Whether it was not there. Raises InvalidInputError for one that is somebody else's."""
        types = self._metastore.types
        wanted = describe_table(types, table, self._database, self._name)
        if found is not None:
            self._check_own(found, table)
        is_other = found is not None and (found.parameters or {}).get(f"{OWN}table_id") != str(self._table.id)
        is_new = found is None or is_other
        if self._request.dry_run:
            return is_new
        if is_other:  # the table was dropped, and one of its name was made since
            self._metastore.drop_table(self._database, self._name)
        if is_new:
            self._metastore.create_database(self._database, self._database_place(table))
            self._metastore.create_table(wanted)
        elif not self._is_table_told(found, wanted):
            wanted.parameters = _kept(found.parameters) | wanted.parameters
            wanted.createTime = found.createTime
            self._metastore.alter_table(wanted)
        return is_new

    def _is_table_told(self, found: Any, wanted: Any) -> bool:
        """A report of some partitions says nothing of the table's head."""
        said = {name: value for name, value in wanted.parameters.items() if name.startswith(OWN)}
        known = found.parameters or {}
        is_known = all(known.get(name) == value for name, value in said.items())
        return is_known and [(each.name, each.type) for each in found.sd.cols] == [
            (each.name, each.type) for each in wanted.sd.cols
        ]

    def _database_place(self, table: HiveTable) -> str:
        return table.location.rpartition("/")[0]

    def _check_own(self, found: Any, table: HiveTable) -> None:
        names = (f"{OWN}lake", f"{OWN}table")
        told = found.parameters or {}
        if any(told.get(name) != table.parameters[name] for name in names):
            raise InvalidInputError(
                f"The Hive metastore has a table {self._database}.{self._name} that is not {table.name} of this lake.",
                kind="hive_table_taken",
                remedy="Name another database, or take that table out of the metastore.",
            )

    def _known(self, wanted: Sequence[HivePartition]) -> dict[tuple[str, ...], Any]:
        if not self._table.partition_by:
            return {}
        if self._request.partitions is None:
            listed = self._metastore.list_partitions(self._database, self._name)
            return {tuple(each.values): each for each in listed}
        found = (self._metastore.find_partition(self._database, self._name, each.values) for each in wanted)
        return {tuple(each.values): each for each in found if each is not None}

    def _is_behind(self, table: HiveTable, partition: HivePartition, known: Mapping[tuple[str, ...], Any]) -> bool:
        found = known.get(partition.values)
        wanted = describe_partition(self._metastore.types, table, partition, self._database, self._name)
        return found is None or not is_told(found, wanted)

    def _tell(self, table: HiveTable, partition: HivePartition, known: Mapping[tuple[str, ...], Any]) -> bool:
        """Raises RetryableError once it is plain that the service is away."""
        if "" in partition.values:
            why = "Hive takes an empty text in a partition for NULL"
            self._failed.append(FailedPartition(path=partition.path, why=why))
            return False
        wanted = describe_partition(self._metastore.types, table, partition, self._database, self._name)
        try:
            if partition.values in known:
                found = known[partition.values]
                wanted.createTime = found.createTime
                wanted.parameters = _kept(found.parameters) | wanted.parameters
                self._metastore.alter_partition(wanted)
            else:
                self._metastore.add_partition(wanted)
        except RetryableError as error:
            self._failed.append(FailedPartition(path=partition.path, why=error.message))
            if len(self._failed) >= _MOST_FAILURES:
                raise
            return False
        return True

    def _drop_gone(self, table: HiveTable, known: Mapping[tuple[str, ...], Any]) -> Iterator[str]:
        """Partitions that have no rows any more."""
        summaries = files.summarise_partitions(self._runtime.catalog, self._table, self._table.head_id)
        there = {
            partition_values([_text(each.values[column.name]) for column in table.partition_by]) for each in summaries
        }
        for values in known.keys() - there:
            if not self._request.dry_run:
                self._metastore.drop_partition(self._database, self._name, values)
            yield "/".join(values)


def _kept(parameters: Mapping[str, str] | None) -> dict[str, str]:
    """What others have noted there stays."""
    return {name: value for name, value in (parameters or {}).items() if not name.startswith(OWN)}


def _place(uri: str) -> str:
    """As Hadoop calls it."""
    return f"s3a://{uri.removeprefix('s3://')}" if uri.startswith("s3://") else uri


def _text(value: Any) -> str | None:
    """As Hive writes values of partitions; None is NULL."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case datetime():
            whole = value.replace(tzinfo=None).strftime("%Y-%m-%d %H:%M:%S")
            return f"{whole}.{value.microsecond:06}".rstrip("0") if value.microsecond else whole
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
    return str(value)
