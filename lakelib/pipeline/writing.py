"""One job that writes, from its arguments to its exit code; read this first. An import is one.

What can be wrong without Spark is said before Spark is started, and work that was published before starts none.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import lakelib
from lakelib import Lake, Snapshot, Table
from lakelib.dataclass import dataclass
from lakelib.model.imports import ImportResult
from lakelib.model.table import TableInfo
from lakelib.model.upkeep import readable_bytes
from lakelib.ops.commit import check_writable, find_done
from lakelib.ops.create import find_table, split_name
from lakelib.ops.overwrite import parse_target
from lakelib.ops.replace import parse_replaced
from lakelib.ops.request import WriteRequest, parse_request
from lakelib.ops.write import check_keyed
from lakelib.pipeline.arguments import ImportArguments, WriteArguments
from lakelib.pipeline.sessions import opened_session, session_if_named, told_progress
from lakelib.pipeline.sources import opened_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COUNTS = (
    "rows_in",
    "rows_written",
    "deletes_written",
    "files_added",
    "files_removed",
    "bytes_added",
    "partitions",
)
Tell = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One commit that was published."""

    snapshot: Snapshot
    exit_code: int = 0

    def facts(self) -> dict[str, Any]:
        snapshot, summary = self.snapshot, self.snapshot.summary
        return {
            "snapshot": snapshot.id,
            "kind": snapshot.kind,
            "commit": str(snapshot.commit_id),
            "committed_at": snapshot.committed_at.isoformat(),
            "replayed": snapshot.replayed,
            **{name: summary.get(name, 0) for name in _COUNTS},
        }

    def lines(self) -> Iterator[str]:
        facts = self.facts()
        again = " (published before: nothing was written now)" if self.snapshot.replayed else ""
        yield f"snapshot    {facts['snapshot']}, {facts['kind']}{again}"
        yield f"rows in     {facts['rows_in']:,}"
        yield f"written     {facts['rows_written']:,} rows, {facts['deletes_written']:,} deletes"
        yield f"files       {facts['files_added']:,} added, {facts['files_removed']:,} removed"
        yield f"bytes       {readable_bytes(facts['bytes_added'])} added"
        yield f"partitions  {facts['partitions']:,}"


def write(job: WriteArguments, given_session: "SparkSession | None" = None) -> Written:
    """One commit, published. A session that is given is used, and left running."""
    around = job.surroundings
    with lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake:
        info = find_table(lake.runtime, job.table)
        request = parse_request(**job.write)
        done = find_done(lake.runtime, info, request)
        if done is not None:
            return Written(snapshot=done)
        _check_can_succeed(lake, info, job, request)
        with (
            opened_session(f"{job.mode} {job.table}", around, given_session) as session,
            told_progress(session, around.progress),
            opened_rows(session, lake, info, job.source, request) as rows,
        ):
            return Written(snapshot=_write(lake.table(job.table), rows, job))


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """An overwrite that is not carried out yet."""

    table: str
    partitions: str | Mapping[str, str | None]
    where: str | None
    exit_code: int = 0

    def facts(self) -> dict[str, Any]:
        return {"dry_run": True, "replaces": self.partitions if self.where is None else {"where": self.where}}

    def lines(self) -> Iterator[str]:
        yield f"replaces    {_described(self.partitions) if self.where is None else f'the rows where {self.where}'}"
        yield "dry run     nothing was changed; --yes does it"


def _described(partitions: str | Mapping[str, str | None]) -> str:
    if isinstance(partitions, str):
        return "all that is in the table" if partitions == "all" else "the partitions that the rows are in"
    return f"the partition {', '.join(f'{name}={value}' for name, value in partitions.items())}"


def plan(job: WriteArguments) -> Planned:
    """What an overwrite would replace. Raises as `write` does before one row is read."""
    around = job.surroundings
    with lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake:
        _check_can_succeed(lake, find_table(lake.runtime, job.table), job, parse_request(**job.write))
        return Planned(table=job.table, partitions=job.partitions, where=job.where)


def _check_can_succeed(lake: Lake, table: TableInfo, job: WriteArguments, write: WriteRequest) -> None:
    """Raises before one row is read, where no rows whatever could be published."""
    check_writable(lake.runtime, table, write)
    if job.mode == "upsert":
        check_keyed(table)
    if job.where is not None:
        parse_replaced(table, job.where, write)
    elif job.mode == "overwrite" and job.partitions != "dynamic":
        parse_target(table, job.partitions)


def _write(table: Table, rows: Any, job: WriteArguments) -> Snapshot:
    match job.mode:
        case "append":
            return table.append(rows, **job.write)
        case "upsert":
            return table.upsert(rows, **job.write)
        case _:
            return table.overwrite(rows, job.partitions, where=job.where, **job.write)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import has brought, or would bring."""

    result: ImportResult
    exit_code: int = 0

    def facts(self) -> dict[str, Any]:
        return asdict(self.result)

    def lines(self) -> Iterator[str]:
        result = self.result
        version = "" if result.version is None else f", version {result.version:,}"
        yield f"source      {result.source} ({result.kind}{version})"
        yield f"files       {result.files:,}, {readable_bytes(result.size_bytes)}"
        before = f", {result.batches_before:,} of them before" if result.batches_before else ""
        yield f"batches     {result.batches:,}{before}"
        if result.dry_run:
            yield "dry run     nothing was copied; without --dry-run it is"
            return
        yield f"rows        {result.rows or 0:,}"
        if result.snapshot is not None:
            yield f"snapshot    {result.snapshot:,}"


def carry_over(job: ImportArguments, given_session: "SparkSession | None" = None, tell: Tell | None = None) -> Imported:
    """Copies the rows; the table's namespace is made if there is none."""
    around = job.surroundings
    with lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake:
        if not job.how["dry_run"]:
            lake.create_namespace(split_name(job.table)[0])
        bring = lake.import_delta if job.kind == "delta" else lake.import_parquet
        with session_if_named(f"import {job.table}", around, given_session) as session:
            return Imported(result=bring(job.source, job.table, session=session, tell=tell, **job.how))
