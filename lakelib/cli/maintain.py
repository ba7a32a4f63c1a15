"""Commands that look after tables and the lake: compact, expire, vacuum, maintain, adopt.

What deletes is a dry run until it is told --yes.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.arguments import (
    LENGTH,
    Grace,
    GraceOfOrphans,
    OrphansOlderThan,
    Really,
    TableName,
    Where,
    option,
    read_buckets,
    read_duration,
    read_orphans_age,
)
from lakelib.cli.command import Session, command, wrong_usage
from lakelib.cli.job import Job, job_command
from lakelib.cli.show import Answer, Column, Failure, Fields, Listing, Note, Part, Sentence, Tell, Title, working
from lakelib.cli.values import counted, readable_seconds
from lakelib.model.upkeep import describe_holdings, readable_bytes
from lakelib.pipeline.arguments import CompactArguments, MaintainArguments, Selection, Surroundings

if TYPE_CHECKING:
    from lakelib.model.upkeep import CompactionResult
    from lakelib.pipeline.outcome import Outcome
    from lakelib.pipeline.upkeep import Compacted

_PANEL = "Maintain"

TableNames = Annotated[
    list[str] | None, typer.Argument(metavar="TABLE…", help="namespace.table; or one of these:", show_default=False)
]
Namespace = Annotated[str | None, option(metavar="NAMESPACE", help="All tables of a namespace.")]
AllTables = Annotated[bool, typer.Option("--all", help="All tables of the lake.")]
KeepLast = Annotated[int | None, typer.Option(min=1, help="So many snapshots stay, however old.", show_default=False)]
OlderThan = Annotated[
    str | None,
    option(metavar="LENGTH", help=f"Only what was superseded so long ago. {LENGTH}"),
]


def add_to(app: typer.Typer) -> None:
    job_command(app, "compact", panel=_PANEL)(compact)
    job_command(app, "rebucket", panel=_PANEL)(rebucket)
    command(app, "expire", panel=_PANEL)(expire)
    command(app, "vacuum", panel=_PANEL)(vacuum)
    job_command(app, "maintain", panel=_PANEL)(maintain)
    command(app, "adopt", panel=_PANEL)(adopt)


def compact(
    session: Session,
    around: Surroundings,
    tables: TableNames = None,
    namespace: Namespace = None,
    all_tables: AllTables = False,
    full: Annotated[bool, typer.Option("--full", help="Everything, not only where it is due.")] = False,
    where: Where = None,
) -> Job:
    """Puts the files of tables together.

    It runs beside the tables' writers: in this process, unless a master or a server is named."""
    selection = _read_selection(tables, namespace, all_tables)
    job = CompactArguments(selection=selection, full=full, where=where, surroundings=around)
    return _compacting(session, job, "compacting", _compacted)


def rebucket(
    session: Session,
    around: Surroundings,
    table: TableName,
    buckets: Annotated[
        str, typer.Argument(metavar="BUCKETS", help="A power of two, dynamic or postpone.", show_default=False)
    ],
    where: Where = None,
    rewrite: Annotated[bool, typer.Option(help="Rewrite what lies otherwise now; else later compactions do.")] = True,
) -> Job:
    """Spreads a table's keys over another number of buckets.

    It runs beside the table's writers: in this process, unless a master or a server is named. With a number, files that
    lie otherwise are rewritten. Safe to repeat."""
    selection = Selection(tables=(table,), namespace=None, all=False)
    wanted = read_buckets(buckets)
    job = CompactArguments(
        selection=selection, full=False, where=where, surroundings=around, buckets=wanted, rewrite=rewrite
    )

    def parts(outcome: "Compacted") -> list[Part]:
        said = [Sentence(f"{table}: buckets are {buckets} from now on")] if not outcome.failed else []
        rewritten = outcome.failed or any(result.snapshots or result.units_skipped for result in outcome.results)
        return [*said, *(_compacted(outcome) if rewritten else ())]

    return _compacting(session, job, "rebucketing", parts)


def _compacting(session: Session, job: CompactArguments, doing: str, parts: "Callable[[Compacted], list[Part]]") -> Job:
    around, tables = job.surroundings, job.selection.tables

    def work() -> "Outcome":
        from lakelib.pipeline.upkeep import compact

        if around.master or around.remote or session.start.spark:
            return compact(job, session.start.spark)
        with working(session, f"{doing} {', '.join(tables) or 'tables'}") as tell:
            return compact(job, tell=tell)

    return Job(arguments=job, work=work, parts=parts, document=_compaction if len(tables) == 1 else None)


def _read_selection(
    tables: list[str] | None, namespace: str | None, all_tables: bool, *, required: bool = True
) -> Selection:
    """The tables, said in one way."""
    ways = sum((bool(tables), namespace is not None, all_tables))
    if ways > 1 or (required and ways == 0):
        wrong_usage("give tables by name, or --namespace NAMESPACE, or --all")
    return Selection(tables=tuple(dict.fromkeys(tables or ())), namespace=namespace, all=all_tables)


def _compaction(outcome: "Compacted") -> dict[str, Any] | None:
    """Of the one table that was named, if it was compacted."""
    facts = outcome.facts()["tables"][0]
    names = ("table", "snapshots", "units", "units_skipped", "partitions")
    pairs = [f"{what}_{when}" for what in ("files", "runs", "rows", "bytes") for when in ("before", "after")]
    return None if outcome.failed else {name: facts[name] for name in (*names, *pairs, "seconds")}


def _compacted(outcome: "Compacted") -> list[Part]:
    parts = [part for result in outcome.results for part in _parts(result)]
    for table, failed in outcome.failed:
        parts.append(
            Failure(failed.message if table in failed.message else f"{table}: {failed.message}", failed.remedy)
        )
    return parts


def _parts(result: "CompactionResult") -> Iterator[Part]:
    table = result.table
    if not result.snapshots:
        skipped = f": writers are at work in {counted(result.units_skipped, 'place')}" if result.units_skipped else ""
        yield Sentence(f"{table}: nothing to compact{skipped}")
        return
    yield Title(f"{table}: compacted in {readable_seconds(result.seconds)}")
    pairs = [
        ("files", f"{result.files_before:,}", f"{result.files_after:,}"),
        ("runs", f"{result.runs_before:,}", f"{result.runs_after:,}"),
        ("stored rows", f"{result.rows_before:,}", f"{result.rows_after:,}"),
        ("size", readable_bytes(result.bytes_before), readable_bytes(result.bytes_after)),
    ]
    columns = (Column(""), Column("before", right=True), Column("after", right=True))
    yield Listing(columns, pairs)
    ids = ", ".join(str(each.id) for each in result.snapshots)
    yield Sentence(f"in {counted(result.partitions, 'partition')}, published as snapshot {ids}")
    if result.units_skipped:
        yield Note(f"{counted(result.units_skipped, 'place')} left as they are: writers are at work there")


def expire(
    session: Session,
    table: TableName,
    keep_last: KeepLast = None,
    older_than: OlderThan = None,
    grace: Grace = None,
    yes: Really = False,
) -> Answer:
    """Forgets old snapshots.

    Tags, readers and staged commits keep theirs; tags whose time is over go first. Without options the last 10 and
    those of the last 7 days stay."""
    age = read_duration(older_than, "--older-than")
    options = _given(grace=read_duration(grace, "--grace"))
    handle = session.table(table)
    with working(session, f"expiring snapshots of {table}"):
        result = handle.expire(keep_last=keep_last, older_than=age, dry_run=not yes, **options)
    expired = result.snapshots
    span = f", {expired[0]} to {expired[-1]}" if len(expired) > 1 else f", {expired[0]}" if expired else ""
    fields = [
        ("snapshots", f"{len(expired):,}{span}"),
        ("commits", f"{result.commits:,} that have waited too long"),
        *([("tags", f"{len(result.tags):,} whose time is over")] if result.tags else []),
        ("files", f"{result.files:,}, {readable_bytes(result.size_bytes)}, for a vacuum to delete"),
        *(("kept back", f"by {line}") for line in describe_holdings(result.holdings)),
        ("oldest left", "none" if result.oldest_id is None else f"snapshot {result.oldest_id}"),
    ]
    title = Title(f"{table}: what {'was' if yes else 'would be'} forgotten")
    return Answer(result, [title, Fields(fields), *_about_dry_run(yes)])


def vacuum(
    session: Session,
    orphans_older_than: OrphansOlderThan = None,
    grace: GraceOfOrphans = None,
    orphans: Annotated[bool, typer.Option(help="Look for files that no commit names.")] = True,
    files: Annotated[bool, typer.Option("--files", help="Name each file, a line each.")] = False,
    yes: Really = False,
) -> Answer:
    """Deletes files that nothing needs any more.

    Exit code 7 tells that some could not be deleted; the next vacuum tries again."""
    from lakelib.pipeline.upkeep import files_left

    options = read_orphans_age(orphans_older_than, grace)
    lake = session.lake
    with working(session, "deleting files" if yes else "looking for files") as tell:
        account = _Account(tell, names=files and not (session.json or session.csv))
        result = lake.vacuum(dry_run=not yes, orphans=orphans, tell=account.hear, **options)
    fields = [
        ("not needed", f"{counted(result.files, 'file')}, {readable_bytes(result.size_bytes)}"),
        ("orphans", f"{counted(result.orphans, 'file')}, {readable_bytes(result.orphan_bytes)}"),
        ("uploads", f"{result.uploads:,} that were never finished"),
        *([("dropped", ", ".join(result.dropped_tables))] if result.dropped_tables else []),
        ("not yet due", counted(result.waiting, "file")),
        *(("failed", f"{each.uri}: {each.reason}") for each in result.failed[:10]),
        *([("passed over", f"{', '.join(result.passed_over)}: others held them")] if result.passed_over else []),
    ]
    title = Title(f"what {'was' if yes else 'would be'} deleted")
    return Answer(result, [title, Fields(fields), *_about_dry_run(yes)], failure=files_left(result))


def maintain(
    session: Session,
    around: Surroundings,
    tables: TableNames = None,
    namespace: Namespace = None,
    all_tables: AllTables = False,
    expire: Annotated[bool, typer.Option("--expire", help="Forget snapshots.")] = False,
    vacuum: Annotated[
        bool, typer.Option("--vacuum", help="Delete files: of the whole lake, and after the expiry.")
    ] = False,
    keep_last: KeepLast = None,
    older_than: OlderThan = None,
    staged_older_than: Annotated[
        str | None,
        option(metavar="LENGTH", help="Commits that were staged or rejected longer ago are given up. (7d)"),
    ] = None,
    grace: Grace = None,
    orphans_older_than: OrphansOlderThan = None,
    orphans: Annotated[bool, typer.Option(help="Look for files that no commit names.")] = True,
    yes: Really = False,
) -> Job:
    """Expires snapshots of tables, and deletes the files of the lake that nothing needs any more.

    Where one table fails the others are done, and so is the vacuum. A dry run names each file that would go."""
    if not (expire or vacuum):
        wrong_usage("give --expire, --vacuum, or both")
    if not expire and (keep_last is not None or older_than is not None):
        wrong_usage("--keep-last and --older-than are for --expire")
    job = MaintainArguments(
        selection=_read_selection(tables, namespace, all_tables, required=expire),
        expire={
            "keep_last": keep_last,
            "older_than": read_duration(older_than, "--older-than"),
            **_given(staged_older_than=read_duration(staged_older_than, "--staged-older-than")),
            **_given(grace=read_duration(grace, "--grace")),
        }
        if expire
        else None,
        vacuum={"orphans": orphans, **read_orphans_age(orphans_older_than, None)} if vacuum else None,
        dry_run=not yes,
        surroundings=around,
    )

    def work() -> "Outcome":
        from lakelib.pipeline.upkeep import maintain

        return maintain(job, None if around.quiet else lambda uri: print(f"would delete {uri}"))

    return Job(arguments=job, work=work)


def _given(**keywords: Any) -> dict[str, Any]:
    """Those that are said; else it is as the library means it."""
    return {name: value for name, value in keywords.items() if value is not None}


def adopt(
    session: Session,
    by: Annotated[str, option(metavar="NAME", help="Who answers for it.")],
    reason: Annotated[str, option(metavar="TEXT", help="Why.")],
) -> Answer:
    """Makes this catalog the one that the warehouse belongs to.

    For a restored, promoted or copied catalog, or a copied folder, that is to be written to. Any other catalog of the
    lake may only read it from then on."""
    lake = session.lake
    before = lake.identity
    identity = lake.adopt(by, reason)
    difference = None if before.difference is None else before.difference.detail
    document = {
        "lake": identity.id,
        "epoch": identity.epoch,
        "warehouse": lake.warehouse,
        "adopted_by": identity.adopted_by,
        "adoption_reason": identity.adoption_reason,
        "difference": difference,
    }
    said = Sentence(f"adopted {lake.warehouse}: epoch {identity.epoch} of lake {identity.id}")
    return Answer(document, [*([Note(f"{difference}.")] if difference else []), said])


class _Account:
    """Counts the files that a vacuum tells of, and names them if that was asked for."""

    def __init__(self, tell: Tell, *, names: bool) -> None:
        self._tell = tell
        self._names = names
        self._count = 0

    def hear(self, uri: str) -> None:
        self._count += 1
        self._tell(self._count, None)
        if self._names:
            print(uri)


def _about_dry_run(yes: bool) -> list[Note]:
    return [] if yes else [Note("Nothing was changed. --yes does it.")]
