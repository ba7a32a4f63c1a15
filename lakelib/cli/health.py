"""Commands about a lake's health and what is kept of it elsewhere: doctor, backup, restore."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.arguments import (
    LENGTH,
    GraceOfOrphans,
    OrphansOlderThan,
    Really,
    read_choice,
    read_duration,
    read_orphans_age,
)
from lakelib.cli.command import Session, command, wrong_usage
from lakelib.cli.show import Answer, Column, Fields, Listing, Note, Part, Sentence, Title, working
from lakelib.cli.values import counted, readable_seconds, readable_time
from lakelib.errors import EXIT_CODES, CorruptionError
from lakelib.model.doctor import REPAIRS
from lakelib.model.upkeep import readable_bytes

if TYPE_CHECKING:
    from lakelib.model.doctor import DoctorReport, Finding

_PANEL = "Maintain"
_MOST_OF_A_KIND = 5
"""Of findings in a lake that was just restored: where its files are gone there is one for each."""
_DAMAGED_EXIT_CODE = EXIT_CODES[CorruptionError]


def add_to(app: typer.Typer) -> None:
    command(app, "doctor", panel=_PANEL)(doctor)
    command(app, "backup", panel=_PANEL)(backup)
    command(app, "restore", panel=_PANEL)(restore)


def doctor(
    session: Session,
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="TABLE…", help="Only these tables.", show_default=False)
    ] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Read every page and look at every row.")] = False,
    repair: Annotated[
        list[str] | None,
        typer.Option("--repair", metavar="WHAT", help=f"Put right: {', '.join(REPAIRS)}; may be repeated."),
    ] = None,
    backup: Annotated[
        str | None,
        typer.Option("--from", metavar="BACKUP", help="Where damaged files come back from.", show_default=False),
    ] = None,
    orphans_older_than: OrphansOlderThan = None,
    grace: GraceOfOrphans = None,
    yes: Really = False,
) -> Answer:
    """Compares the catalog with what is stored.

    Exit code 8 tells that something is damaged or at risk. Nothing is changed but what --repair names, with --yes."""
    repairs = [read_choice(each, REPAIRS, "--repair") for each in repair or ()]
    if ("files" in repairs) != (backup is not None):
        wrong_usage("--repair files and --from BACKUP belong together.")
    with working(session, "looking at every row" if deep else "looking at catalog and files"):
        report = session.lake.doctor(
            *(tables or ()),
            deep=deep,
            repair=repairs,
            from_backup=backup,
            dry_run=not yes,
            **read_orphans_age(orphans_older_than, grace),
        )
    document = {"healthy": report.is_healthy, "severity": report.severity, **_facts(report)}
    parts = [*_report(report), *_repaired(report, bool(repairs), yes)]
    return Answer(document, parts, 0 if report.is_healthy else _DAMAGED_EXIT_CODE)


def _facts(report: "DoctorReport") -> dict[str, Any]:
    from dataclasses import fields

    return {each.name: getattr(report, each.name) for each in fields(report)}


def _report(report: "DoctorReport", most: int | None = None) -> Iterator[Part]:
    """With so many findings of each kind, or all that it holds."""
    looked = f"{counted(len(report.tables), 'table')}, {counted(report.files, 'file')}"
    yield Title(f"looked at {looked}, {readable_bytes(report.size_bytes)} in {readable_seconds(report.seconds)}")
    columns = (
        Column("severity"),
        Column("kind"),
        Column("table", optional=1),
        Column("place", fold=True),
        Column("what", fold=True),
        Column("what to do", fold=True, optional=2),
    )
    rows = [
        (each.severity.value, each.kind, each.table or "", each.place, each.detail, each.remedy)
        for each in (report.findings if most is None else _first_of_each_kind(report.findings, most))
    ]
    yield Listing(columns, rows) if rows else Sentence("nothing was found")
    if sum(report.counts.values()) > len(rows):
        yield Fields([(kind, f"{count:,}") for kind, count in report.counts.items()])
    if len(report.findings) > len(rows):
        yield Note(f"the first {most} of each kind; `lake doctor` lists more, --json too")
    if report.unstaged:
        yield Note(f"{counted(report.unstaged, 'file')} of no commit: too young to be told from a writer's")


def _first_of_each_kind(findings: "Sequence[Finding]", most: int) -> list["Finding"]:
    seen: Counter[str] = Counter()
    shown = []
    for each in findings:
        seen[each.kind] += 1
        if seen[each.kind] <= most:
            shown.append(each)
    return shown


def _repaired(report: "DoctorReport", asked: bool, yes: bool) -> Iterator[Part]:
    for each in report.repairs:
        yield Sentence(f"{'repaired' if yes else 'to be repaired'}: {each.kind}, {each.table}: {each.place}")
    if asked and not yes:
        yield Note("Nothing was changed. --yes does it.")


def backup(
    session: Session,
    destination: Annotated[
        str, typer.Argument(metavar="DESTINATION", help="A folder of its own, outside of the warehouse.")
    ],
    tables: Annotated[
        list[str] | None,
        typer.Option("--tables", "-t", metavar="TABLE", help="Only this table; may be repeated.", show_default=False),
    ] = None,
    with_files: Annotated[bool, typer.Option("--with-files", help="Copy the data files too.")] = False,
    hold_for: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help=f"Without files: how long the lake keeps them for the backup. (7d) {LENGTH}",
            show_default=False,
        ),
    ] = None,
) -> Answer:
    """Puts what is published at this moment into a folder, beside readers and writers.

    It holds the catalog's dump and the list of the files that it needs; with --with-files these files too."""
    options: dict[str, Any] = {} if hold_for is None else {"hold_for": read_duration(hold_for, "--hold-for")}
    if with_files and options:
        wrong_usage("--hold-for is for a backup without files.")
    with working(session, "copying" if with_files else "writing the catalog's dump"):
        result = session.lake.backup(destination, tables=tables or None, with_files=with_files, **options)
    kept = "copied" if result.held_until is None else f"kept by the lake until {readable_time(result.held_until)}"
    fields = [
        ("in", result.destination),
        ("of", f"{readable_time(result.made_at)} (UTC)"),
        ("tables", f"{len(result.tables):,}"),
        ("dump", readable_bytes(result.dump_bytes)),
        ("files", f"{result.files:,}, {readable_bytes(result.size_bytes)}, {kept}"),
    ]
    return Answer(result, [Title(f"backup {result.id} in {readable_seconds(result.seconds)}"), Fields(fields)])


def restore(
    session: Session,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The folder that a backup was made in.")],
) -> Answer:
    """Makes a lake of a backup, in an empty database, beside the original.

    --catalog names the database, or a new embedded one is made. A backup with files goes into the empty --warehouse and
    is a lake of its own; one without reads the original's files and can only be read until it is adopted. Exit code 8
    tells that something is damaged."""
    import lakelib

    with working(session, "restoring"):
        result = lakelib.restore(source, warehouse=session.common.warehouse, catalog=session.common.catalog)
    facts = {name: getattr(result, name) for name in ("id", "made_at", "warehouse", "with_files")}
    counts = {"tables": result.tables, "files": result.files, "size_bytes": result.size_bytes}
    health = {"healthy": result.report.is_healthy, "findings": result.report.findings}
    files = f"{result.files:,}, {readable_bytes(result.size_bytes)}"
    fields = [
        ("warehouse", result.warehouse),
        ("tables", f"{len(result.tables):,}"),
        ("files", files if result.with_files else f"{files}, the original's: this lake can only be read"),
    ]
    title = Title(f"restored what was published at {readable_time(result.made_at)} (UTC)")
    report = result.report
    parts = [title, Fields(fields), *_report(report, _MOST_OF_A_KIND), *_repaired(report, asked=False, yes=False)]
    return Answer(facts | counts | health, parts, 0 if result.report.is_healthy else _DAMAGED_EXIT_CODE)
