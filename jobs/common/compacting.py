"""The job compact: its arguments, what it does table by table, and what it tells."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import lakelib
from jobs.common.outcome import Failed, explain_failure
from jobs.common.parser import Surroundings, add_surroundings, make_parser, read_surroundings
from jobs.common.selection import Selection, add_selection, find_tables, read_selection
from jobs.common.sessions import opened_session, told_progress
from lakelib import Lake, LakeError
from lakelib.model.upkeep import CompactionResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DESCRIPTION = """\
Makes fewer and larger files of what many writes have left behind, where that is due. No answer changes, and writers and
readers are not disturbed; safe to repeat. Without --master, --remote, SPARK_MASTER and SPARK_REMOTE, and not under
spark-submit, it runs in this process and needs no Spark.

  python -m jobs.compact --all
  python -m jobs.compact shop.orders shop.payments --full --where "dt = '2026-11-18'"
  python -m jobs.compact --namespace shop --master spark://host:7077"""

_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactArguments:
    selection: Selection
    full: bool
    where: str | None
    surroundings: Surroundings


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
        tables = [_facts(result) for result in self.results]
        tables += [{"table": table, **failed.facts()} for table, failed in self.failed]
        return {"tables": tables} | (self.failed[0][1].facts() if self.failed else {})

    def lines(self) -> Iterator[str]:
        for result in self.results:
            yield str(result)
        for table, failed in self.failed:
            yield f"failed      {table}"
            yield from failed.lines()


def parse_compact(arguments: Sequence[str] | None) -> CompactArguments:
    """Ends the process with exit code 2, and says why, if the arguments are wrong."""
    parser = make_parser(DESCRIPTION)
    add_selection(parser)
    group = parser.add_argument_group("work")
    group.add_argument("--full", action="store_true", help="one run of each bucket, whether that is due or not")
    group.add_argument("--where", metavar="SQL", help="only the partitions for whose values this is true")
    add_surroundings(parser, master="Spark's master (SPARK_MASTER); without either it runs in this process")
    given = parser.parse_args(arguments)
    return CompactArguments(
        selection=read_selection(parser, given),
        full=given.full,
        where=given.where,
        surroundings=read_surroundings(parser, given),
    )


def compact(job: CompactArguments, given_session: "SparkSession | None" = None) -> Compacted:
    """Table after table, whatever fails. Raises NotFoundError if there is no such namespace."""
    around = job.surroundings
    with lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake:
        names = find_tables(lake, job.selection)
        with _session(job, given_session) as session:
            return _compact_tables(lake, names, job, session)


@contextmanager
def _session(job: CompactArguments, given: "SparkSession | None") -> Iterator["SparkSession | None"]:
    around = job.surroundings
    if given is None and around.master is None and around.remote is None and _SPARK_SUBMIT not in os.environ:
        yield None
        return
    with opened_session("compact", around, given) as session, told_progress(session, around.progress):
        yield session


def _compact_tables(
    lake: Lake, names: Sequence[str], job: CompactArguments, session: "SparkSession | None"
) -> Compacted:
    results: list[CompactionResult] = []
    failed: list[tuple[str, Failed]] = []
    for name in names:
        try:
            results.append(lake.table(name).compact(full=job.full, where=job.where, session=session))
        except LakeError as error:
            failed.append((name, explain_failure(error)))
    return Compacted(results=tuple(results), failed=tuple(failed))


def _facts(result: CompactionResult) -> dict[str, Any]:
    counts = {field.name: getattr(result, field.name) for field in fields(result) if field.name != "snapshots"}
    snapshot = result.snapshot
    return counts | {
        "seconds": round(result.seconds, 3),
        "snapshot": None if snapshot is None else snapshot.id,
        "snapshots": [each.id for each in result.snapshots],
    }
