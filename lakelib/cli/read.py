"""Commands that read rows, or tell what reading them takes: scan, changes, explain."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakelib.cli.arguments import (
    At,
    Columns,
    TableName,
    Where,
    option,
    read_at,
    read_choice,
    read_columns,
    read_commit_id,
)
from lakelib.cli.command import Session, command, wrong_usage
from lakelib.cli.formats import FORMATS, write_rows
from lakelib.cli.show import Answer, Sentence, working

if TYPE_CHECKING:
    from lakelib.changes import Changes
    from lakelib.ops.explain import ChangesExplanation
    from lakelib.scan import Scan

_PANEL = "Read"
_MOST_ROWS = 50
_BOUND = "a snapshot id, tag:NAME, consumer:NAME, or a moment"

Limit = Annotated[
    int | None,
    typer.Option("--limit", "-n", min=0, help=f"So many rows; 0 is all. (a table {_MOST_ROWS}, else all)"),
]
Format = Annotated[
    str | None, typer.Option("--format", "-f", help=f"{', '.join(FORMATS)}; json is a line a row. (table)")
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Into a file, which is there once it is complete."),
]


def add_to(app: typer.Typer) -> None:
    command(app, "scan", panel=_PANEL)(scan)
    command(app, "changes", panel=_PANEL)(changes)
    command(app, "explain", panel=_PANEL)(explain)


def scan(
    session: Session,
    table: TableName,
    columns: Columns = None,
    where: Where = None,
    at: At = None,
    staged: Annotated[
        str | None,
        typer.Option(metavar="COMMIT", help="The rows of a commit that is staged or was rejected.", show_default=False),
    ] = None,
    limit: Limit = None,
    format: Format = None,
    output: Output = None,
    count: Annotated[bool, typer.Option("--count", help="Only how many rows there are.")] = False,
) -> Answer | None:
    """Reads rows.

    They come in no certain order, and in little memory however many they are."""
    chosen = choose_format(session, format, output)
    if staged and at:
        wrong_usage("--staged and --at are two ways to say what is read.")
    names = read_columns(columns)
    handle = session.table(table)
    if staged:
        commit = session.lake.staged(read_commit_id(staged))
        found = commit.scan(columns=names, where=where, scope="staged")
    else:
        found = handle.scan(columns=names, where=where, at=read_at(at))
    if count:
        return _count(session, table, found)
    return write_rows(session, found, chosen, most_rows(limit, chosen), output, told=limit is not None)


def _count(session: Session, table: str, found: "Scan") -> Answer:
    with working(session, f"counting the rows of {table}"):
        rows = found.count()
    return Answer({"table": table, "snapshot": found.snapshot_id, "rows": rows}, Sentence(str(rows)))


def changes(
    session: Session,
    table: TableName,
    after: Annotated[
        str | None, option(metavar="WHEN", help=f"What came after this: {_BOUND}; 0 is before the first.")
    ] = None,
    until: Annotated[str | None, option(metavar="WHEN", help=f"Until this, which counts: {_BOUND}. (the head)")] = None,
    view: Annotated[
        str,
        typer.Option(
            metavar="VIEW", help="latest: each key as it is in the end; all: what each commit did; net: what differs."
        ),
    ] = "latest",
    columns: Columns = None,
    where: Where = None,
    limit: Limit = None,
    format: Format = None,
    output: Output = None,
    count: Annotated[bool, typer.Option("--count", help="Only how many changes there are.")] = False,
    explained: Annotated[bool, typer.Option("--explain", help="Only what would be read, and how.")] = False,
) -> Answer | None:
    """Reads what has changed: of the newest commit, unless --after or --until says otherwise."""
    chosen = choose_format(session, format, output)
    found = session.table(table).changes(
        after=after, until=until, view=view, columns=read_columns(columns), where=where
    )
    if explained:
        return _answer_of(found.explain())
    if count:
        return _count_changes(session, found)
    return write_rows(session, found, chosen, most_rows(limit, chosen), output, told=limit is not None)


def most_rows(limit: int | None, format: str) -> int | None:
    return _MOST_ROWS if limit is None and format == "table" else limit or None


def _count_changes(session: Session, found: "Changes") -> Answer:
    with working(session, f"counting the changes of {found.table_name}"):
        rows = found.count()
    document = {"table": found.table_name, "after": found.after_id, "until": found.until_id, "view": found.view}
    return Answer(document | {"rows": rows}, Sentence(str(rows)))


def _answer_of(explained: "ChangesExplanation") -> Answer:
    facts = {field.name: getattr(explained, field.name) for field in fields(explained)}
    document = {"table": facts.pop("table"), "after": facts.pop("after_id"), "until": facts.pop("until_id")} | facts
    return Answer(document, Sentence(str(explained)))


def explain(session: Session, table: TableName, columns: Columns = None, where: Where = None, at: At = None) -> Answer:
    """Tells what a scan would read, and what not."""
    found = session.table(table).scan(columns=read_columns(columns), where=where, at=read_at(at)).explain()
    facts = {field.name: getattr(found, field.name) for field in fields(found)}
    document = {"table": facts.pop("table"), "snapshot": facts.pop("snapshot_id")} | facts
    return Answer(document, Sentence(str(found)))


def choose_format(session: Session, given: str | None, output: Path | None) -> str:
    if given is None:
        by_name = output.suffix.removeprefix(".") if output is not None else ""
        asked = "json" if session.json or by_name in ("jsonl", "ndjson") else "csv" if session.csv else by_name
        given = asked if asked in FORMATS else "table"
    chosen = read_choice(given, FORMATS, "--format")
    if session.json and chosen != "json":
        wrong_usage(f"--json and --format {chosen} are two formats.")
    if session.csv and chosen != "csv":
        wrong_usage(f"--csv and --format {chosen} are two formats.")
    if chosen == "table" and output is not None:
        wrong_usage(f"--output {output} needs --format json, csv or parquet, or a name that ends so.")
    if chosen == "parquet" and output is None:
        wrong_usage("--format parquet needs --output.")
    if output is not None and not output.absolute().parent.is_dir():
        wrong_usage(f"The folder of --output {output} does not exist.")
    return chosen
