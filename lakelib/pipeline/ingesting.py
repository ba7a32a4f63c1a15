"""One partition from its source to a judged commit; read this first.

The steps: the table is as its spec says; what has become of this work so far is taken up; else the source, if it has
arrived, is read, transformed and staged; what is staged is judged. Spark is started only for what is left to do, and
where it is this process that does the work, not at all.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import lakelib
from lakelib import ConflictError, InvalidInputError, Lake, Verdict
from lakelib.dataclass import dataclass
from lakelib.errors import CatalogRefusedError, DecidedError, EmptySourceError, OnlySparkError, RetryableError
from lakelib.gates.failing import tell_failures
from lakelib.model import gate as judged
from lakelib.model.positions import CHANGES, ranges_as_text
from lakelib.model.table import Attempt, CommitState, IdempotencyKey, TableInfo
from lakelib.ops.arrival import Arrival, check_arrival, find_arrival
from lakelib.ops.consumers import Standing, move_over
from lakelib.ops.decide import end_staged
from lakelib.ops.engine import Engine, choose_engine, engine_instead
from lakelib.ops.ingest import (
    FULL,
    check_not_appended,
    check_not_older,
    check_same_work,
    find_attempt,
    is_overtaken,
    stage_partition,
)
from lakelib.ops.judge import Judging, check_suite, judge, require_passed
from lakelib.ops.provide import Provided, provide_table
from lakelib.ops.report import find_out, write_report
from lakelib.ops.request import WriteRequest, parse_request
from lakelib.ops.status_look import PARTITION_BY, partition_by_text
from lakelib.pipeline.arguments import IngestArguments, Surroundings
from lakelib.pipeline.incremental import (
    Reach,
    find_reach,
    find_reach_of_backfill,
    look_at_positions,
    may_be_published,
)
from lakelib.pipeline.local_rows import opened_locally
from lakelib.pipeline.outcome import Outcome, note
from lakelib.pipeline.partitions import Making, PartitionRows, Transaction, pin_reads
from lakelib.pipeline.sessions import watched_session
from lakelib.specs.suite import Suite
from lakelib.specs.table_spec import TableSpec, load_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


OpenSpark = Callable[[], AbstractContextManager["SparkSession"]]
READS_STAGED = "reads_staged."
"""Begins the property that says from which commits of its own transaction a commit was made, by table."""
_MOST_FILES_NAMED = 10
_UNCHANGED = "nothing has changed since the run before"


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
    engine: Engine | None
    """What did the work; None if nothing was left to do."""
    report: Path | None = None
    failures: tuple[str, ...] = ()
    """What its gate has against it, a line a check."""
    exit_code: int = 0

    def facts(self) -> dict[str, Any]:
        return {
            **_engine_facts(self.engine),
            "table": self.table,
            "partition": self.partition,
            "commit": str(self.commit_id),
            "state": self.state,
            "outcome": self.outcome,
            "base_snapshot": self.base_snapshot,
            "rows_in": self.rows_in,
            "report": None if self.report is None else str(self.report),
            "failures": list(self.failures),
            "adopted": self.adopted,
            "snapshot": self.snapshot,
        }

    def lines(self) -> Iterator[str]:
        yield f"table       {self.table}, partition {self.partition}"
        by = ", staged by an earlier run of this work" if self.adopted else ""
        yield f"commit      {self.commit_id}, {self.state}{by}"
        if self.adopted and self.outcome == "reject":
            yield "again       once the source is corrected, under a higher version of the idempotency key: as new work"
        yield f"outcome     {self.outcome}"
        yield from (f"failed      {line}" for line in self.failures)
        yield f"rows in     {self.rows_in:,}"
        if self.snapshot is not None:
            yield f"snapshot    {self.snapshot}"
        if self.report is not None:
            yield f"report      {self.report}"
        if self.engine is not None:
            yield f"engine      {self.engine.name}: {self.engine.why}"


def _engine_facts(engine: Engine | None) -> dict[str, str | None]:
    if engine is None:
        return {"engine": None, "engine_why": None}
    return {"engine": engine.name, "engine_why": engine.why}


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToCommit:
    """The source was empty, or the transform gave no rows, and its spec says to skip that."""

    table: str
    partition: str
    why: str
    engine: Engine | None
    exit_code: int = 0

    def facts(self) -> dict[str, Any]:
        nothing = dict.fromkeys(("commit", "state", "base_snapshot", "report", "snapshot"))
        about = {"table": self.table, "partition": self.partition, "outcome": "empty"}
        return {**_engine_facts(self.engine), **about, **nothing, "failures": [], "rows_in": 0, "adopted": False}

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
    transaction: Transaction | None = None
    """What is published together with the commit, if anything is."""
    standings: tuple[Standing, ...] = ()
    """From where changes are followed."""

    @property
    def beneath(self) -> tuple[UUID, ...]:
        """The commits that the commit is judged on top of."""
        return () if self.transaction is None else self.transaction.of(self.spec.table)

    @property
    def key(self) -> IdempotencyKey:
        application, version = self.job.key
        return IdempotencyKey(application=application, version=version)


def ingest(job: IngestArguments, given_session: "SparkSession | None" = None) -> Outcome:
    """Raises NotFoundError for a source that has not arrived, InvalidInputError for a wrong spec or wrong rows,
    RetryableError for a gate that errored and for a table that an owner has to make or change first, ConflictError if
    another run of the same work took over."""
    spec = load_spec(job.spec)
    around = job.surroundings
    spark = partial(watched_session, f"ingest {spec.table} {job.partition}", around, given_session)
    spec.check_key(job.partition)
    warn(around, spec)
    with lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake:
        return ingest_partition(lake, job, spec, spark)


def warn(around: Surroundings, spec: TableSpec) -> None:
    for warning in spec.warnings:
        note(around, f"warning: {warning}")


def ingest_partition(
    lake: Lake, job: IngestArguments, spec: TableSpec, spark: OpenSpark, transaction: Transaction | None = None
) -> "Ingested | NothingToCommit":
    """As `ingest`, with the spec of the job, and a Spark that is opened if it is needed; as a part of a transaction."""
    if job.full:
        _check_rebuilt(spec)
    provided = _provided(lake, spec)
    standings = look_at_positions(lake, spec, provided.table, full=job.full) if transaction is None else ()
    work = Work(
        job=job,
        spec=spec,
        suite=provided.suite,
        table=provided.table,
        transaction=transaction,
        standings=standings,
    )
    found = _found(lake, work)
    if found is not None and _is_left_behind(work, found):
        end_staged(lake.runtime, found.commit_id, "others have published what the same changes have made")
        found = _found(lake, work)
    if found is not None and _is_settled(lake, work, found):
        return _told(lake, work, found.commit_id, adopted=True, engine=None)
    return _carried_out(lake, work, found, spark)


def _check_rebuilt(spec: TableSpec) -> None:
    if not spec.follows_changes:
        raise InvalidInputError(
            f"{spec.path}: {spec.table} follows no changes: each of its runs reads all there is.",
            kind="not_incremental",
            remedy="Leave --full out.",
        )


def _found(lake: Lake, work: Work) -> Attempt | None:
    """What has become of the work so far, if that is still of use."""
    found = find_attempt(lake.runtime, work.table, work.key)
    if found is None:
        return None
    check_same_work(work.table, work.spec, work.job.partition, work.key, found, full=work.job.full)
    return None if is_overtaken(lake.runtime, found) or _is_made_from_others(lake, work, found) else found


def _is_left_behind(work: Work, found: Attempt) -> bool:
    """Whether what was staged waits in vain: others have published what the changes have made that it was made of."""
    return found.state is CommitState.STAGED and not may_be_published(work.standings, found)


def _is_made_from_others(lake: Lake, work: Work, found: Attempt) -> bool:
    """Whether what was staged was made from commits that others of the transaction have taken the place of since."""
    if work.transaction is None or found.state is not CommitState.STAGED:
        return False
    reads = pin_reads(lake, work.spec, work.job.at, work.transaction)
    return any(found.properties.get(f"{READS_STAGED}{read.table}") != read.staged_text for read in reads if read.staged)


def _provided(lake: Lake, spec: TableSpec) -> Provided:
    """A new or changed spec may be seen here before an owner has carried it out."""
    try:
        return provide_table(lake.runtime, spec)
    except CatalogRefusedError as error:
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
    return (verdict.gate, verdict.suite_hash, verdict.beneath) == (work.suite.name, work.suite.hash, work.beneath)


def _carried_out(lake: Lake, work: Work, found: Attempt | None, spark: OpenSpark) -> "Ingested | NothingToCommit":
    if found is None:
        check_not_appended(lake.runtime, work.table, work.spec, work.job.partition, work.key)
        check_not_older(lake.runtime, work.table, work.spec, work.job.partition)
    arrival = _arrived(lake, work) if found is None else None
    if arrival is not None and arrival.is_empty and work.spec.when_empty(is_transformed=False) != "publish":
        return _without_rows(work, None, is_transformed=False)
    if found is None:
        _check_gate(work)
    reach = _reach(lake, work) if found is None else Reach()
    if reach.is_unchanged:
        move_over(lake.runtime, reach.ranges)
        return NothingToCommit(table=work.spec.table, partition=work.job.partition, why=_UNCHANGED, engine=None)
    engine = choose_engine(work.spec, _size_bytes(found, arrival), makes_rows=found is None)
    if engine.is_local:
        _say(work, engine)
        try:
            return _done_by(lake, work, Doing(engine=engine, found=found, arrival=arrival, reach=reach))
        except OnlySparkError as reason:
            engine = engine_instead(work.spec, reason)
    _say(work, engine)
    with spark() as session:
        return _done_by(lake, work, Doing(engine=engine, found=found, arrival=arrival, reach=reach, session=session))


def _reach(lake: Lake, work: Work) -> Reach:
    """What is read."""
    reads = pin_reads(lake, work.spec, work.job.at, work.transaction)
    if not work.spec.follows_changes:
        return Reach(reads=reads)
    if work.transaction is not None:
        return find_reach_of_backfill(lake, work.spec, work.table, work.job.partition, reads)
    return find_reach(lake, work.spec, work.table, reads, work.standings, full=work.job.full)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """What is left to do, and by which engine."""

    engine: Engine
    found: Attempt | None
    arrival: Arrival | None
    reach: Reach
    session: "SparkSession | None" = None
    """None for this process."""


def _size_bytes(found: Attempt | None, arrival: Arrival | None) -> int:
    """Of what is to be read: the source, or the files that are there already, and only to be judged."""
    if found is not None:
        return int(found.summary.get("bytes_added", 0))
    return 0 if arrival is None else sum(file.size_bytes for file in arrival.files)


def _say(work: Work, engine: Engine) -> None:
    note(work.job.surroundings, f"engine {engine.name}: {engine.why}")


def _done_by(lake: Lake, work: Work, doing: Doing) -> "Ingested | NothingToCommit":
    staged = _stage(lake, work, doing) if doing.found is None else doing.found.commit_id
    if isinstance(staged, NothingToCommit):
        return staged
    if work.suite is not None:
        _judge(lake, work, staged, doing.session)
    return _told(lake, work, staged, adopted=doing.found is not None, engine=doing.engine)


def _judge(lake: Lake, work: Work, commit_id: UUID, session: "SparkSession | None") -> None:
    """Another run of the same work may have come further meanwhile: then its word counts."""
    assert work.suite is not None
    with suppress(DecidedError):
        judge(lake.runtime, commit_id, Judging(suite=work.suite, session=session), work.beneath)


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


def _without_rows(work: Work, engine: Engine | None, *, is_transformed: bool) -> NothingToCommit:
    """Raises InvalidInputError where the spec says that there must be rows."""
    spec, key = work.spec, work.job.partition
    if spec.when_empty(is_transformed=is_transformed) == "skip":
        why = "the transform gives no rows" if is_transformed else "the source has no rows"
        return NothingToCommit(table=spec.table, partition=key, why=why, engine=engine)
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


def _stage(lake: Lake, work: Work, doing: Doing) -> UUID | NothingToCommit:
    """The staged commit, unless there are no rows and there have to be some."""
    spec, key = work.spec, work.job.partition
    request = _request(work, doing)
    with _opened(lake, work, doing, request) as opened:
        has_to_have = spec.when_empty(is_transformed=opened.is_transformed) != "publish"
        request = replace(request, refuse_empty=has_to_have)
        try:
            replaced = doing.reach.replaces
            return stage_partition(lake.runtime, work.table.ref, spec, key, opened.rows, request, replaced)
        except EmptySourceError:
            nothing = _without_rows(work, doing.engine, is_transformed=opened.is_transformed)
            move_over(lake.runtime, doing.reach.ranges)
            return nothing


def _opened(lake: Lake, work: Work, doing: Doing, request: WriteRequest) -> AbstractContextManager[PartitionRows]:
    making = Making(
        lake=lake,
        table=work.table,
        spec=work.spec,
        key=work.job.partition,
        arrival=doing.arrival,
        reads=doing.reach.reads,
        write=request,
    )
    if making.has_no_rows:
        return nullcontext(making.no_rows())
    if doing.session is None:
        return opened_locally(making)
    from lakelib.pipeline.partition_rows import opened_partition  # Spark takes a while to load

    return opened_partition(doing.session, making)


def _request(work: Work, doing: Doing) -> WriteRequest:
    """What comes with the commit says from where and how its rows were made."""
    properties = {
        **work.job.properties,
        "spec_hash": work.spec.hash,
        "partition": work.job.partition,
        PARTITION_BY: partition_by_text(work.spec),
        "engine": f"{doing.engine.name}: {doing.engine.why}",
        **({} if doing.arrival is None else {"source": doing.arrival.path, "source_files": _named(doing.arrival)}),
        **{f"reads.{read.table}": str(read.snapshot_id) for read in doing.reach.reads},
        **{f"{READS_STAGED}{read.table}": read.staged_text for read in doing.reach.reads if read.staged},
        **({CHANGES: ranges_as_text(doing.reach.ranges)} if doing.reach.ranges else {}),
        **({FULL: "true"} if work.job.full else {}),
    }
    request = parse_request(
        idempotency_key=work.job.key,
        properties=properties,
        merge_schema=work.spec.write.merge_schema,
        explicit_cast=work.spec.write.explicit_cast,
    )
    own = [read.snapshot_id for read in doing.reach.reads if read.table_id == work.table.id]
    return replace(request, made_from=min(own, default=None))


def _named(arrival: Arrival) -> str:
    """The files that there were, by name: some of many."""
    names = [file.uri.rpartition("/")[2].encode("utf-8", "backslashreplace").decode() for file in arrival.files]
    more = f" and {len(names) - _MOST_FILES_NAMED:,} more" if len(names) > _MOST_FILES_NAMED else ""
    return ", ".join(names[:_MOST_FILES_NAMED]) + more


# What to tell


def _told(lake: Lake, work: Work, commit_id: UUID, *, adopted: bool, engine: Engine | None) -> Ingested:
    """Raises RetryableError for a verdict that says nothing of the rows."""
    found = find_attempt(lake.runtime, work.table, work.key)
    if found is None or found.commit_id != commit_id:
        raise ConflictError(
            f"Another run of the same work ({work.key.application}, version {work.key.version}) took over from commit"
            f" {commit_id} of {work.spec.table}.",
            kind="fenced",
            remedy="Leave the work to the other run.",
        )
    verdict = lake.staged(commit_id).verdict
    background = None if verdict is None else find_out(lake.runtime, verdict)
    report = None
    if verdict is not None and work.job.report is not None:
        report = write_report(lake.runtime, commit_id, work.job.report.absolute(), background)
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
        engine=engine,
        report=report,
        failures=() if verdict is None or background is None else tell_failures(verdict, background),
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
    return judged.Outcome.WARN.value if verdict.outcome is judged.Outcome.ERRORED else verdict.outcome.value
