"""One partition from its source to a judged commit; read this first.

The steps: the table is as its spec says; what has become of this work so far is taken up; else the source, if it has
arrived, is read, transformed and staged; what is staged is judged. Spark is started only for what is left to do.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import lakelib
from jobs.common.ingest_arguments import IngestArguments
from jobs.common.outcome import Outcome
from jobs.common.partition_rows import PinnedRead, opened_partition, pin_reads
from jobs.common.sessions import opened_session, told_progress
from lakelib import ConflictError, InvalidInputError, Lake, Verdict
from lakelib.errors import DecidedError, RetryableError
from lakelib.model import verdict as judged
from lakelib.model.table import Attempt, CommitState, IdempotencyKey, TableInfo
from lakelib.ops.arrival import Arrival, check_arrival, find_arrival
from lakelib.ops.ingest import check_not_appended, check_same_work, find_attempt, is_overtaken, stage_partition
from lakelib.ops.judge import check_suite, require_passed
from lakelib.ops.look import PARTITION_BY, partition_by_text
from lakelib.ops.provide import Provided, provide_table
from lakelib.ops.request import WriteRequest, parse_request
from lakelib.specs.suite import Suite
from lakelib.specs.table_spec import TableSpec, load_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """A commit, and what its gate says of it."""

    table: str
    partition: str
    commit_id: UUID
    state: str
    outcome: str
    """ "accept", "warn" or "reject"."""
    base_snapshot: int
    rows_in: int
    adopted: bool
    """An earlier run of the same work had staged it."""
    snapshot: int | None
    report: Path | None = None
    exit_code: int = 0

    def facts(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "partition": self.partition,
            "commit": str(self.commit_id),
            "state": self.state,
            "outcome": self.outcome,
            "base_snapshot": self.base_snapshot,
            "rows_in": self.rows_in,
            "report": None if self.report is None else str(self.report),
            "adopted": self.adopted,
            "snapshot": self.snapshot,
        }

    def lines(self) -> Iterator[str]:
        yield f"table       {self.table}, partition {self.partition}"
        yield f"commit      {self.commit_id}, {self.state}{' (taken up)' if self.adopted else ''}"
        yield f"outcome     {self.outcome}"
        yield f"rows in     {self.rows_in:,}"
        if self.snapshot is not None:
            yield f"snapshot    {self.snapshot}"
        if self.report is not None:
            yield f"report      {self.report}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToCommit:
    """The source was empty, or the transform gave no rows, and its spec says to skip that."""

    table: str
    partition: str
    why: str
    exit_code: int = 0

    def facts(self) -> dict[str, Any]:
        nothing = dict.fromkeys(("commit", "state", "base_snapshot", "report", "snapshot"))
        about = {"table": self.table, "partition": self.partition, "outcome": "empty"}
        return {**about, **nothing, "rows_in": 0, "adopted": False}

    def lines(self) -> Iterator[str]:
        yield f"table       {self.table}, partition {self.partition}"
        yield f"outcome     empty: {self.why}, and nothing was committed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is to be done, as long as the job runs."""

    job: IngestArguments
    spec: TableSpec
    suite: Suite | None
    table: TableInfo

    @property
    def key(self) -> IdempotencyKey:
        application, version = self.job.key
        return IdempotencyKey(application=application, version=version)


def ingest(job: IngestArguments, given_session: "SparkSession | None" = None) -> Outcome:
    """Raises NotFoundError for a source that has not arrived, InvalidInputError for a wrong spec or wrong rows,
    RetryableError for a gate that errored and for a table that an owner has to make or change first, ConflictError if
    another run of the same work took over."""
    spec = load_spec(job.spec)
    spec.check_key(job.partition)
    around = job.surroundings
    with lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake:
        provided = _provided(lake, spec)
        work = Work(job=job, spec=spec, suite=provided.suite, table=provided.table)
        found = find_attempt(lake.runtime, work.table, work.key)
        if found is not None:
            check_same_work(work.table, spec, job.partition, work.key, found)
            found = None if is_overtaken(lake.runtime, found) else found
        if found is not None and _is_settled(lake, work, found):
            return _told(lake, work, found.commit_id, adopted=True)
        return _carried_out(lake, work, found, given_session)


def _provided(lake: Lake, spec: TableSpec) -> Provided:
    """A new or changed spec may be seen here before an owner has carried it out."""
    try:
        return provide_table(lake.runtime, spec)
    except InvalidInputError as error:
        if error.kind != "catalog_refused":
            raise
        raise RetryableError(
            f"Table {spec.table} is not yet as {spec.path} says, and this job may not make it so. {error.message}",
            kind="table_not_provided",
            remedy=f"Have an owner of the lake run `lake provide {spec.path}`, unless a keeper does so (`make up`), and"
            " repeat.",
        ) from error


def _is_settled(lake: Lake, work: Work, found: Attempt) -> bool:
    """Whether there is nothing left to do but to tell."""
    if found.state is not CommitState.STAGED or work.suite is None:
        return True
    verdict = lake.staged(found.commit_id).verdict
    if verdict is None or verdict.outcome is judged.Outcome.ERRORED:
        return False
    return (verdict.gate, verdict.suite_hash) == (work.suite.name, work.suite.hash)


def _carried_out(lake: Lake, work: Work, found: Attempt | None, given_session: "SparkSession | None") -> Outcome:
    if found is None:
        check_not_appended(lake.runtime, work.table, work.spec, work.job.partition, work.key)
    arrival = _arrived(lake, work) if found is None else None
    if arrival is not None and arrival.is_empty and work.spec.when_empty(is_transformed=False) != "publish":
        return _without_rows(work, is_transformed=False)
    if found is None:
        _check_gate(work)
    reads = pin_reads(lake, work.spec, work.job.at) if found is None else ()
    around = work.job.surroundings
    with (
        opened_session(f"ingest {work.spec.table} {work.job.partition}", around.master, given_session) as session,
        told_progress(session, around.progress),
    ):
        staged = _stage(lake, work, session, arrival, reads) if found is None else found.commit_id
        if isinstance(staged, NothingToCommit):
            return staged
        if work.suite is not None:
            _judge(lake, staged, work.suite, session)
    return _told(lake, work, staged, adopted=found is not None)


def _judge(lake: Lake, commit_id: UUID, suite: Suite, session: "SparkSession") -> None:
    """Another run of the same work may have come further meanwhile: then its word counts."""
    with suppress(DecidedError):
        lake.staged(commit_id).judge(suite, session)


def _check_gate(work: Work) -> None:
    """A wrong suite is said before there is anything to judge, unless rows may bring the columns that it looks at."""
    if work.suite is not None:
        check_suite(work.suite, None if work.spec.write.merge_schema else work.table.schema.columns)


# The rows


def _arrived(lake: Lake, work: Work) -> Arrival | None:
    """None for a table whose rows come from tables only."""
    if work.spec.source is None:
        return None
    arrival = find_arrival(lake.runtime.storage, work.spec, work.job.partition, os.environ)
    check_arrival(work.spec, work.job.partition, arrival)
    return arrival


def _without_rows(work: Work, *, is_transformed: bool) -> NothingToCommit:
    """Raises InvalidInputError where the spec says that there must be rows."""
    spec, key = work.spec, work.job.partition
    if spec.when_empty(is_transformed=is_transformed) == "skip":
        why = "the transform gives no rows" if is_transformed else "the source has no rows"
        return NothingToCommit(table=spec.table, partition=key, why=why)
    if is_transformed:
        raise InvalidInputError(
            f"The transform of {spec.table} gives no rows for partition {key}: {spec.transform_path}.",
            kind="empty_transform",
            remedy="Correct the query or what it reads, or say in the spec what that means: write.when_empty: skip or"
            " publish.",
        )
    raise InvalidInputError(
        f"The source of partition {key} of {spec.table} has no rows: {spec.source_path(key, os.environ)}.",
        kind="empty_source",
        remedy="Deliver the rows, or say in the spec what an empty source means: source.when_empty: skip or publish.",
    )


def _stage(
    lake: Lake, work: Work, session: "SparkSession", arrival: Arrival | None, reads: tuple[PinnedRead, ...]
) -> UUID | NothingToCommit:
    """The staged commit, unless there are no rows and there have to be some."""
    spec, key = work.spec, work.job.partition
    request = _request(work, arrival, reads)
    with opened_partition(session, lake, work.table, spec, key, arrival, reads, request) as opened:
        has_to_have = spec.when_empty(is_transformed=opened.is_transformed) != "publish"
        request = replace(request, refuse_empty=has_to_have)
        try:
            return stage_partition(lake.runtime, work.table, spec, key, opened.rows, request)
        except InvalidInputError as error:
            if error.kind != "empty_source":
                raise
            return _without_rows(work, is_transformed=opened.is_transformed)


def _request(work: Work, arrival: Arrival | None, reads: tuple[PinnedRead, ...]) -> WriteRequest:
    """What comes with the commit says from where and how its rows were made."""
    properties = {
        **work.job.properties,
        "spec_hash": work.spec.hash,
        "partition": work.job.partition,
        PARTITION_BY: partition_by_text(work.spec),
        **({} if arrival is None else {"source": arrival.path}),
        **{f"reads.{read.table}": str(read.snapshot_id) for read in reads},
    }
    request = parse_request(
        idempotency_key=work.job.key,
        properties=properties,
        merge_schema=work.spec.write.merge_schema,
        explicit_cast=work.spec.write.explicit_cast,
    )
    own = [read.snapshot_id for read in reads if read.table_id == work.table.id]
    return replace(request, made_from=min(own, default=None))


# What to tell


def _told(lake: Lake, work: Work, commit_id: UUID, *, adopted: bool) -> Ingested:
    """Raises RetryableError for a verdict that says nothing of the rows."""
    found = find_attempt(lake.runtime, work.table, work.key)
    if found is None or found.commit_id != commit_id:
        raise ConflictError(
            f"Another run of the same work ({work.key.application}, version {work.key.version}) took over from commit"
            f" {commit_id} of {work.spec.table}.",
            kind="fenced",
            remedy="Leave the work to the other run.",
        )
    commit = lake.staged(commit_id)
    verdict = commit.verdict
    report = None if verdict is None or work.job.report is None else commit.report(work.job.report.absolute())
    if verdict is not None and _is_undecided(found, verdict):
        require_passed(verdict)
    return Ingested(
        table=work.spec.table,
        partition=work.job.partition,
        commit_id=commit_id,
        state=found.state.value,
        outcome=_outcome(found, verdict),
        base_snapshot=found.base_snapshot_id,
        rows_in=found.summary.get("rows_in", 0),
        adopted=adopted,
        snapshot=found.snapshot_id,
        report=report,
    )


def _is_undecided(found: Attempt, verdict: Verdict) -> bool:
    return found.state is CommitState.STAGED and verdict.outcome is judged.Outcome.ERRORED


def _outcome(found: Attempt, verdict: Verdict | None) -> str:
    """Without a gate nothing speaks against a commit. One that a person discarded counts as rejected; what a person
    published although its gate could not be asked is flagged."""
    if found.state is CommitState.REJECTED:
        return judged.Outcome.REJECT.value
    if verdict is None:
        return judged.Outcome.ACCEPT.value
    return (judged.Outcome.WARN if verdict.outcome is judged.Outcome.ERRORED else verdict.outcome).value
