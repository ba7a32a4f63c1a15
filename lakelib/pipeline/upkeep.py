"""Upkeep of many tables: compaction, expiry, and the vacuum of their lake. What fails at one keeps nobody from the
others."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import lakelib
from lakelib import Lake, LakeError, Table
from lakelib.dataclass import dataclass
from lakelib.errors import RetryableError
from lakelib.model.exports import DeltaExport, DuckLakeShow
from lakelib.model.upkeep import CompactionResult, ExpireResult, VacuumResult, describe_holdings
from lakelib.pipeline.arguments import CompactArguments, MaintainArguments, Selection
from lakelib.pipeline.outcome import Failed, explain_failure
from lakelib.pipeline.sessions import session_if_named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[int, int | None], None]
"""Told how much is done, and of how much if that is known."""


def find_tables(lake: Lake, selection: Selection) -> list[str]:
    """Their names. Raises NotFoundError if there is no such namespace; whether named tables are there shows later."""
    if selection.tables:
        return list(selection.tables)
    namespaces = lake.namespaces() if selection.namespace is None else [selection.namespace]
    return [f"{namespace}.{name}" for namespace in namespaces for name in lake.tables(namespace)]


# Compaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What was done; where something failed, the other tables were compacted all the same."""

    results: tuple[CompactionResult, ...]
    failed: tuple[tuple[str, Failed], ...]
    """Tables with what went wrong."""

    @property
    def exit_code(self) -> int:
        """That of the first failure."""
        return self.failed[0][1].exit_code if self.failed else 0

    def facts(self) -> dict[str, Any]:
        tables = [_compacted_facts(result) for result in self.results]
        tables += [{"table": table, **failed.facts()} for table, failed in self.failed]
        return {"tables": tables} | (self.failed[0][1].facts() if self.failed else {})

    def lines(self) -> Iterator[str]:
        for result in self.results:
            yield str(result)
        for table, failed in self.failed:
            yield f"failed      {table}"
            yield from failed.lines()


def compact(job: CompactArguments, given_session: "SparkSession | None" = None, tell: Tell | None = None) -> Compacted:
    """Table after table, whatever fails; in this process, unless a master or a server is named. Raises NotFoundError if
    there is no such namespace."""
    around = job.surroundings
    with lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake:
        names = find_tables(lake, job.selection)
        with session_if_named("compact", around, given_session) as session:
            return _compact_tables(lake, names, job, session, tell)


def _compact_tables(
    lake: Lake, names: Sequence[str], job: CompactArguments, session: "SparkSession | None", tell: Tell | None
) -> Compacted:
    results: list[CompactionResult] = []
    failed: list[tuple[str, Failed]] = []
    for name in names:
        try:
            results.append(_compact_table(lake.table(name), job, session, tell))
        except LakeError as error:
            failed.append((name, explain_failure(error)))
    return Compacted(results=tuple(results), failed=tuple(failed))


def _compact_table(
    table: Table, job: CompactArguments, session: "SparkSession | None", tell: Tell | None
) -> CompactionResult:
    if job.buckets is None:
        return table.compact(full=job.full, where=job.where, session=session, tell=tell)
    return table.rebucket(job.buckets, rewrite=job.rewrite, where=job.where, session=session, tell=tell)


def _compacted_facts(result: CompactionResult) -> dict[str, Any]:
    counts = {field.name: getattr(result, field.name) for field in fields(result) if field.name != "snapshots"}
    snapshot = result.snapshot
    return counts | {
        "seconds": round(result.seconds, 3),
        "snapshot": None if snapshot is None else snapshot.id,
        "snapshots": [each.id for each in result.snapshots],
    }


# Expiry and vacuum


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintained:
    """What was done; where something failed, the rest was done all the same."""

    dry_run: bool
    expired: tuple[ExpireResult, ...]
    failed: tuple[tuple[str, Failed], ...]
    """Tables with what went wrong."""
    vacuum: VacuumResult | None
    exported: tuple[DeltaExport, ...] = ()
    """Of tables that have a Delta log."""
    shown: tuple[DuckLakeShow, ...] = ()
    """Of tables with a key that DuckDB sees."""
    vacuum_failed: Failed | None = None

    @property
    def exit_code(self) -> int:
        """That of the first failure."""
        return 0 if self.failure is None else self.failure.exit_code

    def facts(self) -> dict[str, Any]:
        tables = [_expired_facts(result) for result in self.expired]
        tables += [{"table": table, **failed.facts()} for table, failed in self.failed]
        facts: dict[str, Any] = {"dry_run": self.dry_run, "tables": tables}
        if self.exported:
            facts["delta"] = [delta_facts(each) for each in self.exported]
        if self.shown:
            facts["ducklake"] = [asdict(each) for each in self.shown]
        if self.vacuum is not None:
            facts["vacuum"] = _vacuum_facts(self.vacuum)
        first = self.failure
        return facts if first is None else facts | first.facts()

    def lines(self) -> Iterator[str]:
        for result in self.expired:
            yield from repr(result).strip("<>").split("\n  ")
        yield from map(str, self.exported)
        yield from map(str, self.shown)
        if self.vacuum is not None:
            yield from repr(self.vacuum).strip("<>").split("\n  ")
        for table, failed in self.failed:
            yield f"failed      {table}"
            yield from failed.lines()
        if self.vacuum_failed is not None:
            yield from self.vacuum_failed.lines()

    @property
    def failure(self) -> Failed | None:
        return self.failed[0][1] if self.failed else self.vacuum_failed


def maintain(job: MaintainArguments, name_file: Callable[[str], None] | None = None) -> Maintained:
    """Table after table, whatever fails; then the vacuum. In a dry run `name_file` is told each file that would go."""
    around = job.surroundings
    with lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake:
        expired: list[ExpireResult] = []
        exported: list[DeltaExport] = []
        shown: list[DuckLakeShow] = []
        failed: list[tuple[str, Failed]] = []
        for name in find_tables(lake, job.selection) if job.expire is not None else ():
            _tell_progress(around.progress, f"expire {name}")
            try:
                if not job.dry_run:
                    exported += export_delta(lake, name)
                    shown += show_in_ducklake(lake, name)
                expired.append(lake.table(name).expire(**job.expire or {}, dry_run=job.dry_run))
            except LakeError as error:
                failed.append((name, explain_failure(error)))
        vacuum, vacuum_failed = _vacuum(lake, job, name_file)
        return Maintained(
            dry_run=job.dry_run,
            expired=tuple(expired),
            exported=tuple(exported),
            shown=tuple(shown),
            failed=tuple(failed),
            vacuum=vacuum,
            vacuum_failed=vacuum_failed,
        )


def export_delta(lake: Lake, name: str) -> list[DeltaExport]:
    """What the table's Delta log has got; nothing for a table without one."""
    table = lake.table(name)
    return [table.export_delta()] if table.options.get("delta") else []


def show_in_ducklake(lake: Lake, name: str) -> list[DuckLakeShow]:
    """What DuckDB sees of the table since; nothing for a table that needs nothing for it."""
    table = lake.table(name)
    return [table.show_in_ducklake()] if table.primary_key and table.options.get("ducklake") else []


def delta_facts(export: DeltaExport) -> dict[str, Any]:
    return {field.name: getattr(export, field.name) for field in fields(export)}


def _vacuum(
    lake: Lake, job: MaintainArguments, name_file: Callable[[str], None] | None
) -> tuple[VacuumResult | None, Failed | None]:
    if job.vacuum is None:
        return None, None
    _tell_progress(job.surroundings.progress, "vacuum")
    try:
        result = lake.vacuum(dry_run=job.dry_run, tell=name_file if job.dry_run else None, **job.vacuum)
    except LakeError as error:
        return None, explain_failure(error)
    left = files_left(result)
    return result, None if left is None else explain_failure(left)


def files_left(result: VacuumResult) -> RetryableError | None:
    """What a vacuum that could not delete some file ends in."""
    if not result.failed:
        return None
    count, first = len(result.failed), result.failed[0]
    said = "a file" if count == 1 else f"{count:,} files"
    return RetryableError(
        f"The vacuum could not delete {said}, the first of them {first.uri}: {first.reason}.",
        kind="files_not_deleted",
        remedy="The next vacuum tries again. Where the reason stays, see that this user may delete files there.",
    )


def _tell_progress(wanted: bool | None, what: str) -> None:
    if sys.stderr.isatty() if wanted is None else wanted:
        print(what, file=sys.stderr, flush=True)


def _expired_facts(result: ExpireResult) -> dict[str, Any]:
    return {
        "table": result.table,
        "snapshots": len(result.snapshots),
        "kept_back": {str(each.hold): len(each.snapshots) for each in result.holdings},
        "held": list(describe_holdings(result.holdings)),
        "commits": result.commits,
        "tags": len(result.tags),
        "leases": result.leases,
        "files": result.files,
        "bytes": result.size_bytes,
        "oldest": result.oldest_id,
    }


def _vacuum_facts(result: VacuumResult) -> dict[str, Any]:
    return {
        "files": result.files,
        "bytes": result.size_bytes,
        "orphans": result.orphans,
        "orphan_bytes": result.orphan_bytes,
        "uploads": result.uploads,
        "dropped_tables": list(result.dropped_tables),
        "waiting": result.waiting,
        "failed": [{"file": each.uri, "reason": each.reason} for each in result.failed[:100]],
        "passed_over": list(result.passed_over),
    }
