"""The commands for DuckDB and what speaks to it: ducklake, views."""

from dataclasses import asdict
from typing import Annotated

import typer

from lakelib.cli.command import Session, command
from lakelib.cli.show import Answer, Note, Sentence


def add_to(app: typer.Typer) -> None:
    command(app, "ducklake", panel="Look")(ducklake)
    command(app, "views", panel="Look")(views)


def ducklake(
    session: Session,
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="Has its snapshots shown, and prints no statement.")
    ] = None,
) -> Answer:
    """Prints the statement with which DuckDB attaches the lake as a DuckLake, and what it sees then.

    Tables without a key are all there; those with one are, if they have the option ducklake. Whoever publishes shows
    their snapshots; with TABLE this goes on where publishers did not get that far."""
    if table is not None:
        done = session.table(table).show_in_ducklake()
        return Answer(asdict(done), Sentence(str(done)))
    found = session.lake.ducklake()
    notes = [Note(str(each)) for each in found.tables if each.remedy is not None]
    return Answer(asdict(found), [Sentence(found.attach), *notes])


def views(
    session: Session,
    path: Annotated[str, typer.Argument(metavar="FILE", help="The DuckDB file to write, lake.duckdb for instance.")],
    replace: Annotated[bool, typer.Option("--replace", help="Also if there is one of that name.")] = False,
) -> Answer:
    """Writes a DuckDB file with a view of each table that has a Delta log, for programs that open such files.

    It has no rows and no credentials: a view shows the table's head at the time it is read."""
    written = session.lake.write_views(path, replace=replace)
    notes = [
        Note(f"{name} is left out: it has no Delta log (`lake options {name} delta=head`), or no snapshot")
        for name in written.left_out
    ]
    return Answer(asdict(written), [Sentence(str(written)), *notes])
