"""Commands about commits that wait for a decision: commits, publish, reject, gate show."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli import gates
from lakelib.cli.arguments import CommitId, CommitIds, MoreCommitIds, read_choice, read_commit_id, read_commit_ids
from lakelib.cli.command import Session, command, wrong_usage
from lakelib.cli.job import Job, job_command
from lakelib.cli.show import GAP, Answer, Column, Failure, Fields, Listing, Note, Part, Sentence, Title, working
from lakelib.cli.values import escaped, json_text, readable_age, readable_count, readable_seconds, readable_time
from lakelib.errors import EXIT_CODES, NotFoundError, RejectedError, RetryableError
from lakelib.model.effect import measured_text
from lakelib.pipeline.arguments import PublishArguments, RejectArguments, Surroundings

if TYPE_CHECKING:
    from lakelib.model.commit import CommitSummary
    from lakelib.model.gate import CheckResult, Verdict
    from lakelib.model.table import Snapshot
    from lakelib.pipeline.deciding import PublishedCommits, RejectedCommits
    from lakelib.pipeline.outcome import Outcome
    from lakelib.staged import StagedCommit

_PANEL = "Decide"
_REJECTED = {
    False: "is rejected",
    True: "was rejected before, and its reason stays; with --by a person decides, and it waits for nobody any more",
}
"""By whether it was so already."""
_STATES = ("staged", "rejected", "published", "expired")
_WAITING = ("staged", "rejected")
_MOST_COMMITS = 50
_LONGEST_SAMPLE = 10
_EXIT_CODES = {"reject": EXIT_CODES[RejectedError], "errored": EXIT_CODES[RetryableError]}


def add_to(app: typer.Typer) -> None:
    command(app, "commits", panel=_PANEL)(commits)
    job_command(app, "publish", panel=_PANEL)(publish)
    job_command(app, "reject", panel=_PANEL)(reject)
    group = typer.Typer(no_args_is_help=True, help="What gates have found in commits, and which gates tables require.")
    command(group, "show")(gate_show)
    command(group, "judge")(gate_judge)
    command(group, "report")(gate_report)
    gates.add_to(group)
    app.add_typer(group, name="gate", rich_help_panel=_PANEL)


def commits(
    session: Session,
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="Only its commits.", show_default=False)
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", "-s", help=f"{', '.join(_STATES)}; may be repeated. (staged, rejected)"),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = _MOST_COMMITS,
) -> Answer:
    """Lists the commits that wait for a decision.

    They are staged or were rejected: nobody reads them yet."""
    states = [read_choice(each, _STATES, "--state") for each in state or _WAITING]
    told_of = session.lake if table is None else session.table(table)
    found = told_of.commits(states, limit)
    now = datetime.now(UTC)
    columns = (
        Column("commit"),
        Column("table", fold=True),
        Column("state"),
        Column("verdict", optional=1),
        Column("age", right=True, optional=2),
        Column("rows", right=True, optional=3),
        Column("kind", optional=6),
        Column("by", optional=5),
        Column("reason", optional=4, fold=True),
    )
    rows = [
        (
            str(each.id),
            each.table,
            each.state,
            each.outcome or "",
            readable_age(now - each.staged_at),
            readable_count(each.summary.get("rows_in", 0)),
            each.kind,
            "" if each.application is None else f"{escaped(each.application)}:{each.version}",
            escaped(_why(each)),
        )
        for each in found
    ]
    empty = f"No commit is {' or '.join(states)}."
    return Answer([_facts(each) for each in found], Listing(columns, rows, empty))


def _why(commit: "CommitSummary") -> str:
    """What the gate or a person has said, and who published it all the same."""
    if commit.approved_by is None:
        return commit.reason or ""
    return f"published by {commit.approved_by}: {commit.approval_reason}"


def publish(
    session: Session,
    around: Surroundings,
    commits: CommitIds = None,
    commit: MoreCommitIds = None,
    spec: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="The spec of a commit's table: its gate judges again if the table has moved on, and what it says of a"
            " tag and of done marks follows. May be repeated.",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option(help="Tag and mark done as the --spec says. Who publishes for a scheduler does not.")
    ] = True,
    by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Who answers for it: needed for what a gate rejected.", show_default=False),
    ] = None,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why all the same.", show_default=False)] = None,
) -> Job:
    """Publishes commits, all in one instant or none.

    They may be of any tables. What a gate rejected is published by a person who says why. To publish again what is
    published is a success with the same snapshots. With --spec the tag and the done marks that it says follow."""
    ids = read_commit_ids(commits, commit)
    if (by is None) != (reason is None):
        wrong_usage("--by and --reason go together")
    job = PublishArguments(
        commits=ids, specs=tuple(spec or ()), by=by, reason=reason, follow=follow, surroundings=around
    )

    def work() -> "Outcome":
        from lakelib.pipeline.deciding import publish

        return publish(job, session.start.spark)

    return Job(arguments=job, work=work, parts=_published)


def _published(outcome: "PublishedCommits") -> list[Part]:
    parts = [part for table, snapshot in outcome.published for part in _about_published(outcome, table, snapshot)]
    for table, why in outcome.failed:
        told = f"{table} is published; what its spec says follows was not done: {why.message}"
        parts.append(Failure(told, why.remedy))
    waiting = "Airflow's run {} does not know: clear its task review, and it wakes what comes after."
    return [*parts, *(Note(waiting.format(run)) for run in outcome.waiting)]


def _about_published(outcome: "PublishedCommits", table: str, snapshot: "Snapshot") -> Iterator[Part]:
    yield Sentence(f"{table}: commit {snapshot.commit_id} is snapshot {snapshot.id}")
    followed = outcome.followed.get(snapshot.commit_id)
    if followed is not None:
        yield from ([Sentence(f"{table}: tagged {followed.tag}")] if followed.tag else [])
        yield from (Sentence(f"{table}: {path or 'all of it'} is marked done") for path in followed.done)
    elif "partition" in snapshot.properties and table not in dict(outcome.failed):
        yield Note(f"{table}: a tag and done marks that its spec may want were not made: --spec FILE makes them.")


def reject(
    session: Session,
    around: Surroundings,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; kept with the commits.", show_default=False)],
    commits: CommitIds = None,
    commit: MoreCommitIds = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Who decides: they wait for nobody any more.", show_default=False),
    ] = None,
) -> Job:
    """Rejects commits.

    They stay inspectable (scan --staged) until they expire; nobody publishes them but a person by name and reason.
    Without --by they go on waiting for a person, who decides."""
    job = RejectArguments(commits=read_commit_ids(commits, commit), reason=reason, by=by, surroundings=around)

    def work() -> "Outcome":
        from lakelib.pipeline.deciding import reject

        return reject(job)

    return Job(arguments=job, work=work, parts=_rejected, document=_rejected_facts)


def _rejected(outcome: "RejectedCommits") -> list[Sentence]:
    found = outcome.rejected
    return [Sentence(f"{table}: commit {commit} {_REJECTED[commit in outcome.before]}") for table, commit in found]


def _rejected_facts(outcome: "RejectedCommits") -> Any:
    """Of one commit, an object; of several, a list of them."""
    found = [{"table": table, "commit": commit, "state": "rejected"} for table, commit in outcome.rejected]
    return found[0] if len(found) == 1 else found


def gate_show(
    session: Session,
    commit: Annotated[
        str, typer.Argument(metavar="COMMIT", help="The id of a commit, or a table's name.", show_default=False)
    ],
) -> Answer:
    """Shows the newest verdict on a commit, or the gates of a table.

    The verdict check by check, with some of what was not as expected. Of a table which gate it requires, which ones it
    has required, and who released it from them, and why.
    """
    if "." in commit:
        return gates.show_requirements(session, commit)
    staged = session.lake.staged(read_commit_id(commit))
    verdict = staged.verdict
    if verdict is None:
        raise NotFoundError(
            f"No gate has judged commit {staged.id} of {staged.table_name}.",
            kind="verdict_not_found",
            remedy=f"lake gate judge {staged.id} FILE has it judged.",
        )
    return _about_verdict(session, staged, verdict)


def gate_judge(
    session: Session,
    commit: CommitId,
    suite: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="The gate's suite, in YAML. (the one that the table requires)", show_default=False
        ),
    ] = None,
) -> Answer:
    """Has a gate judge a commit, in this process.

    A verdict that rejects also rejects the commit. The exit code is 6 then, and 7 if a check could not be carried out.
    """
    staged = session.lake.staged(read_commit_id(commit))
    with working(session, f"judging commit {staged.id}"):
        verdict = staged.judge(suite)
    return _about_verdict(session, staged, verdict, 0 if verdict.passed else _EXIT_CODES[verdict.outcome.value])


def gate_report(
    session: Session,
    commit: CommitId,
    output: Annotated[Path, typer.Argument(metavar="FILE", help="The page of HTML to write.", show_default=False)],
) -> Answer:
    """Writes the newest verdict on a commit as a page of HTML."""
    staged = session.lake.staged(read_commit_id(commit))
    path = staged.report(output)
    said = f"{staged.table_name}: the verdict on commit {staged.id} is in {path}"
    return Answer({"table": staged.table_name, "commit": staged.id, "report": path}, Sentence(said))


def _about_verdict(session: Session, staged: "StagedCommit", verdict: "Verdict", exit_code: int = 0) -> Answer:
    from lakelib.ops.judge import find_effect

    effect = find_effect(session.lake.runtime, verdict)
    document = {"table": staged.table_name, "state": staged.state, **effect.as_summary(), "verdict": verdict}
    return Answer(document, list(_parts(staged.table_name, staged.state, str(effect), verdict)), exit_code)


def _parts(table: str, state: str, effect: str, verdict: "Verdict") -> Iterator[Part]:
    yield Title(f"{verdict.outcome.value.upper()} by gate {verdict.gate}")
    fields = [
        ("table", table),
        ("commit", f"{verdict.commit_id}, {state}"),
        ("judged", f"{readable_time(verdict.judged_at)} UTC on {verdict.engine}, {readable_seconds(verdict.seconds)}"),
        ("made from", f"snapshot {verdict.base_snapshot_id}" if verdict.base_snapshot_id else "an empty table"),
        *([("rows", effect)] if effect else []),
    ]
    yield Fields(fields)
    yield GAP
    columns = (
        Column("result"),
        Column("severity"),
        Column("check", fold=True),
        Column("scope", optional=1),
        Column("unexpected", right=True),
        Column("of rows", right=True, optional=2),
        Column("observed", optional=3, fold=True),
    )
    rows = [
        (
            each.status.value,
            each.severity.value,
            each.name,
            each.scope.value,
            readable_count(each.unexpected_count),
            readable_count(each.row_count),
            "" if each.observed is None else escaped(measured_text(each.observed) or _short(json_text(each.observed))),
        )
        for each in verdict.checks
    ]
    yield Listing(columns, rows, "It has no checks.")
    for check in verdict.checks:
        yield from _evidence(check)


def _evidence(check: "CheckResult") -> Iterator[Part]:
    """Of a check that has not passed: some of what was found, or why it could not be carried out."""
    if check.status.value == "passed" or not (check.sample or check.detail):
        return
    yield GAP
    yield Title(check.name)
    sample = ", ".join(escaped(json_text(value)) for value in check.sample[:_LONGEST_SAMPLE])
    more = ", …" if len(check.sample) > _LONGEST_SAMPLE else ""
    fields = [("such as", sample + more)] if sample else []
    yield Fields(fields + ([("why", escaped(check.detail))] if check.detail else []))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


def _facts(commit: "CommitSummary") -> dict[str, Any]:
    return {
        "commit": commit.id,
        "table": commit.table,
        "state": commit.state,
        "kind": commit.kind,
        "gate": commit.gate,
        "outcome": commit.outcome,
        "staged_at": commit.staged_at,
        "decided_at": commit.decided_at,
        "reason": commit.reason,
        "base_snapshot": commit.base_snapshot or None,
        "head_snapshot": commit.head_snapshot or None,
        "snapshot": commit.snapshot,
        "application": commit.application,
        "version": commit.version,
        "approved_by": commit.approved_by,
        "approval_reason": commit.approval_reason,
        "summary": commit.summary,
        "properties": commit.properties,
    }
