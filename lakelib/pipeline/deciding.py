"""Staged commits become visible, all of them or none; or they are rejected.

Tables may have moved on since their commits were judged, and so may what they require. Where that concerns a verdict it
is made again: by the engine of the commit's spec. What the spec says follows a publish is done afterwards.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import lakelib
from lakelib import Lake, LakeError, Snapshot, StagedCommit
from lakelib.dataclass import dataclass
from lakelib.ops.decide import find_commit
from lakelib.ops.ingest import check_not_replayed
from lakelib.ops.judge import Judging
from lakelib.ops.publish import publish as publish_commits
from lakelib.pipeline.arguments import PublishArguments, RejectArguments
from lakelib.pipeline.following import Followed, follow, partition_about, report
from lakelib.pipeline.outcome import Failed, explain_failure
from lakelib.pipeline.sessions import watched_session
from lakelib.specs.table_spec import TableSpec, load_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AIRFLOW, _INGEST = "airflow/", "ingest__"
"""How the keys of Airflow's runs begin, and of those that ingest."""
_APPROVAL = ("approved_by", "approval_reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCommits:
    """Tables and the snapshots that they got, in the order of the commits."""

    published: tuple[tuple[str, Snapshot], ...]
    outcomes: Mapping[UUID, str] = field(default_factory=dict)
    """The verdicts on commits that were judged again."""
    followed: Mapping[UUID, Followed] = field(default_factory=dict)
    """By commit what was done of that which its spec says follows."""
    failed: tuple[tuple[str, Failed], ...] = ()
    """Tables of which that failed: what is published stays so."""
    waiting: tuple[str, ...] = ()
    """Runs of Airflow's that have staged commits, and do not know that they are published."""

    @property
    def exit_code(self) -> int:
        """That of the first failure."""
        return self.failed[0][1].exit_code if self.failed else 0

    def facts(self) -> dict[str, Any]:
        published = [
            {
                "table": table,
                "commit": str(snapshot.commit_id),
                "snapshot": snapshot.id,
                **({"outcome": self.outcomes[snapshot.commit_id]} if snapshot.commit_id in self.outcomes else {}),
                **{name: snapshot.properties[name] for name in _APPROVAL if name in snapshot.properties},
                **_followed_facts(self.followed.get(snapshot.commit_id)),
            }
            for table, snapshot in self.published
        ]
        return {"published": published} | (self.failed[0][1].facts() if self.failed else {})

    def lines(self) -> Iterator[str]:
        for table, snapshot in self.published:
            yield f"published   {table}, snapshot {snapshot.id} (commit {snapshot.commit_id})"
            followed = self.followed.get(snapshot.commit_id)
            if followed is not None and followed.tag is not None:
                yield f"tagged      {followed.tag}"
            yield from (f"done        {path or 'the table'}" for path in (followed.done if followed else ()))
            if followed is not None and followed.report is not None:
                yield f"told        {followed.report.metastore}, of {len(followed.report.told):,} partitions"
        for table, failed in self.failed:
            yield f"failed      {table}: it is published, and what follows was not done"
            yield from failed.lines()
        yield from (f"not told    {run}" for run in self.waiting)


def _followed_facts(followed: Followed | None) -> dict[str, Any]:
    if followed is None:
        return {}
    told = {} if followed.report is None else {"told": list(followed.report.told)}
    return {"tag": followed.tag, "done": list(followed.done), **told}


def publish(job: PublishArguments, given_session: "SparkSession | None" = None) -> PublishedCommits:
    """Raises RejectedError for a commit that its gate does not let through, ConflictError for one that others made
    impossible, NotFoundError for one that is not there, InvalidInputError for one whose key stands for another
    partition."""
    around = job.surroundings
    specs = [load_spec(file, with_gate=False) for file in job.specs] if job.follow else []
    with lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake, ExitStack() as opened:
        commits = _find_commits(lake, job.commits)
        again = _JudgedAgain(job, commits, given_session, opened)
        ids = [commit.id for commit in commits]
        snapshots = publish_commits(lake.runtime, ids, again.judgings_of, by=job.by, reason=job.reason)
        for commit, snapshot in zip(commits, snapshots, strict=True):
            check_not_replayed(lake.runtime, commit.id, snapshot)
        published = tuple((commit.table_name, snapshot) for commit, snapshot in zip(commits, snapshots, strict=True))
        followed, failed = _follow(lake, {spec.table: spec for spec in specs}, published)
        waiting = _runs(lake, followed)
        return PublishedCommits(
            published=published, outcomes=again.outcomes(), followed=followed, failed=failed, waiting=waiting
        )


def _follow(
    lake: Lake, specs: Mapping[str, TableSpec], published: Sequence[tuple[str, Snapshot]]
) -> tuple[dict[UUID, Followed], tuple[tuple[str, Failed], ...]]:
    """What was done for each commit that a run has made, and the tables of which it failed."""
    followed: dict[UUID, Followed] = {}
    failed: list[tuple[str, Failed]] = []
    for table, snapshot in published:
        partition = partition_about(snapshot)
        if table not in specs or partition is None:
            continue
        try:
            followed[snapshot.commit_id] = follow(lake, specs[table], partition, snapshot.id)
            told = report(lake, specs[table], partition, snapshot.id)
            followed[snapshot.commit_id] = replace(followed[snapshot.commit_id], report=told)
        except LakeError as error:
            failed.append((table, explain_failure(error)))
    return followed, tuple(failed)


def _runs(lake: Lake, commits: Iterable[UUID]) -> tuple[str, ...]:
    """Those of ingest DAGs: they would go on with waking the tables that come after theirs."""
    found = [find_commit(lake.runtime, commit).application or "" for commit in commits]
    return tuple(each.removeprefix(_AIRFLOW) for each in found if each.startswith(f"{_AIRFLOW}{_INGEST}"))


def _find_commits(lake: Lake, said: Sequence[UUID | str]) -> list[StagedCommit]:
    """Each once, however often it was named."""
    found = [lake.staged(each) for each in said]
    return list({commit.id: commit for commit in found}.values())


class _JudgedAgain:
    """How commits are judged again. Specs are read, and Spark is started, once one has to be; what was started ends
    with `opened`."""

    def __init__(
        self,
        job: PublishArguments,
        commits: Sequence[StagedCommit],
        given_session: "SparkSession | None",
        opened: ExitStack,
    ) -> None:
        self._job = job
        self._commits = commits
        self._given_session = given_session
        self._opened = opened
        self._judgings: Mapping[UUID, Judging] | None = None

    def judgings_of(self, commit_id: UUID) -> Sequence[Judging]:
        if self._judgings is None:
            self._judgings = self._arrange()
        judging = self._judgings.get(commit_id)
        return () if judging is None else (judging,)

    def outcomes(self) -> dict[UUID, str]:
        """The verdicts on the commits, if one had to be judged again."""
        if not self._judgings:
            return {}
        return {one.id: one.verdict.outcome.value for one in self._commits if one.verdict is not None}

    def _arrange(self) -> dict[UUID, Judging]:
        """Spark is for those commits only that it has to judge."""
        specs = {spec.table: spec for spec in map(load_spec, self._job.specs) if spec.gate is not None}
        judged = {one: specs[one.table_name] for one in self._commits if one.table_name in specs}
        on_spark = {one.id for one, spec in judged.items() if _is_judged_on_spark(one, spec)}
        session = self._open_session() if on_spark else None
        return {
            one.id: Judging(suite=suite, session=session if one.id in on_spark else None)
            for one, spec in judged.items()
            if one.state == "staged" and (suite := spec.suite()) is not None
        }

    def _open_session(self) -> "SparkSession":
        return self._opened.enter_context(watched_session("publish", self._job.surroundings, self._given_session))


def _is_judged_on_spark(commit: StagedCommit, spec: TableSpec) -> bool:
    """Where the spec leaves it open, a commit is judged again by what has judged it."""
    if spec.engine != "auto":
        return spec.engine == "spark"
    verdict = commit.verdict
    return verdict is None or verdict.engine == "spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedCommits:
    rejected: tuple[tuple[str, UUID], ...]
    """Tables and commits."""
    before: frozenset[UUID] = frozenset()
    """Those of them that were rejected already: their reason stays."""
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
        commits = _find_commits(lake, job.commits)
        before = frozenset(commit.id for commit in commits if job.by is None and commit.state == "rejected")
        for commit in commits:
            if job.by is None:
                commit.reject(job.reason)
            else:
                commit.discard(by=job.by, reason=job.reason)
        return RejectedCommits(rejected=tuple((commit.table_name, commit.id) for commit in commits), before=before)
