"""Staged commits become visible, all of them or none; or they are rejected.

Tables may have moved on since their commits were judged, and so may what they require. Where that concerns a verdict it
is made again: by the engine of the commit's spec.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

import lakelib
from lakelib import ConflictError, Lake, RejectedError, Snapshot, StagedCommit
from lakelib.ops.ingest import check_not_replayed
from lakelib.ops.judge import Judging
from lakelib.ops.publish import publish as publish_commits
from lakelib.pipeline.arguments import PublishArguments, RejectArguments
from lakelib.pipeline.sessions import watched_session
from lakelib.specs.table_spec import TableSpec, load_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_APPROVAL = ("approved_by", "approval_reason")
_JUDGED_AGAIN = ("verdict_stale", "verdict_of_another_suite")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCommits:
    """Tables and the snapshots that they got, in the order of the commits."""

    published: tuple[tuple[str, Snapshot], ...]
    outcomes: Mapping[UUID, str] = field(default_factory=dict)
    """The verdicts on commits that were judged again."""
    exit_code: int = 0

    def facts(self) -> dict[str, Any]:
        return {
            "published": [
                {
                    "table": table,
                    "commit": str(snapshot.commit_id),
                    "snapshot": snapshot.id,
                    **({"outcome": self.outcomes[snapshot.commit_id]} if snapshot.commit_id in self.outcomes else {}),
                    **{name: snapshot.properties[name] for name in _APPROVAL if name in snapshot.properties},
                }
                for table, snapshot in self.published
            ]
        }

    def lines(self) -> Iterator[str]:
        for table, snapshot in self.published:
            yield f"published   {table}, snapshot {snapshot.id} (commit {snapshot.commit_id})"


def publish(job: PublishArguments, given_session: "SparkSession | None" = None) -> PublishedCommits:
    """Raises RejectedError for a commit that its gate does not let through, ConflictError for one that others made
    impossible, NotFoundError for one that is not there, InvalidInputError for one whose key stands for another
    partition."""
    around = job.surroundings
    with lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake:
        commits = [lake.staged(commit_id) for commit_id in job.commits]
        outcomes: dict[UUID, str] = {}
        try:
            snapshots = publish_commits(lake.runtime, job.commits, by=job.by, reason=job.reason)
        except (ConflictError, RejectedError) as error:
            if error.kind not in _JUDGED_AGAIN:
                raise
            specs = {spec.table: spec for spec in map(load_spec, job.specs) if spec.gate is not None}
            if not any(commit.table_name in specs for commit in commits):
                raise
            snapshots = _publish_judged(lake, job, commits, specs, given_session)
            outcomes = {one.id: one.verdict.outcome.value for one in commits if one.verdict is not None}
        for commit, snapshot in zip(commits, snapshots, strict=True):
            check_not_replayed(lake.runtime, commit.id, snapshot)
        names = [commit.table_name for commit in commits]
        return PublishedCommits(published=tuple(zip(names, snapshots, strict=True)), outcomes=outcomes)


def _publish_judged(
    lake: Lake,
    job: PublishArguments,
    commits: Sequence[StagedCommit],
    specs: Mapping[str, TableSpec],
    given_session: "SparkSession | None",
) -> list[Snapshot]:
    """Spark is started for those commits only that it has to judge."""
    on_spark = {commit.id for commit in commits if commit.table_name in specs and _is_judged_on_spark(commit, specs)}
    opened = watched_session("publish", job.surroundings, given_session) if on_spark else nullcontext()
    with opened as session:
        judgings = {
            commit.id: (Judging(suite=suite, session=session if commit.id in on_spark else None),)
            for commit in commits
            if commit.table_name in specs and commit.state == "staged"
            if (suite := specs[commit.table_name].suite()) is not None
        }
        return publish_commits(lake.runtime, job.commits, judgings, by=job.by, reason=job.reason)


def _is_judged_on_spark(commit: StagedCommit, specs: Mapping[str, TableSpec]) -> bool:
    """Where the spec leaves it open, a commit is judged again by what has judged it."""
    engine = specs[commit.table_name].engine
    if engine != "auto":
        return engine == "spark"
    verdict = commit.verdict
    return verdict is None or verdict.engine == "spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedCommits:
    rejected: tuple[tuple[str, UUID], ...]
    """Tables and commits."""
    exit_code: int = 0

    def facts(self) -> dict[str, Any]:
        return {"discarded": [{"table": table, "commit": str(commit)} for table, commit in self.rejected]}

    def lines(self) -> Iterator[str]:
        for table, commit in self.rejected:
            yield f"discarded   commit {commit} of {table}"


def reject(job: RejectArguments) -> RejectedCommits:
    """Raises ConflictError for a commit that was published or has expired."""
    around = job.surroundings
    with lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake:
        commits = [lake.staged(commit_id) for commit_id in job.commits]
        for commit in commits:
            commit.reject(job.reason)
        return RejectedCommits(rejected=tuple((commit.table_name, commit.id) for commit in commits))
