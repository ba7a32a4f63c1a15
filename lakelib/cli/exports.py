"""Commands for other programs that read tables: delta, ducklake, views, hive."""

import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from lakelib.cli.arguments import LENGTH, TableName, option, read_duration
from lakelib.cli.command import Session, command, wrong_usage
from lakelib.cli.show import Answer, Column, Failure, Listing, Note, Part, Sentence
from lakelib.cli.values import counted
from lakelib.errors import EXIT_CODES, RetryableError

if TYPE_CHECKING:
    from lakelib.model.exports import HiveResult

_VARIABLE = "LAKE_VAR_HIVE_METASTORE"


def add_to(app: typer.Typer) -> None:
    command(app, "delta", panel="Maintain")(delta)
    command(app, "ducklake", panel="Look")(ducklake)
    command(app, "views", panel="Look")(views)
    command(app, "hive", panel="Maintain")(hive)


def delta(session: Session, table: TableName) -> Answer:
    """Brings a table's Delta log up to date, which other engines read.

    With the table's option delta whoever publishes does it; this goes on where they did not get that far. Snapshot n is
    version n - 1."""
    done = session.table(table).export_delta()
    return Answer(asdict(done), Sentence(str(done)))


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


def hive(
    session: Session,
    table: TableName,
    metastore: Annotated[
        str | None, option(metavar="thrift://HOST:PORT", help=f"The metastore, in place of {_VARIABLE}.")
    ] = None,
    database: Annotated[str | None, option(metavar="NAME", help="Where the table is there. (its namespace)")] = None,
    idle: Annotated[
        str | None, option(metavar="LENGTH", help=f"Only partitions to which no rows have come for so long. {LENGTH}")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what the metastore does not know.")] = False,
) -> Answer:
    """Tells a Hive metastore of a table and its partitions: what it does not know yet.

    Readers of Hive see the files in folders, whatever the lake says of them: docs/specs.md tells for which tables that
    is right."""
    address = metastore or os.environ.get(_VARIABLE)
    if not address:
        wrong_usage(f"give --metastore, or set {_VARIABLE}")
    result = session.table(table).report_hive(
        address, database=database, idle=read_duration(idle, "--idle"), dry_run=dry_run
    )
    code = EXIT_CODES[RetryableError] if result.failed else 0
    return Answer(asdict(result), list(_parts(result)), code)


def _parts(result: "HiveResult") -> Iterator[Part]:
    there = f"{result.database}.{result.name} at {result.metastore}"
    new = ", which is new there" if result.is_new and not result.dry_run else ""
    is_behind = "is not there" if result.is_new else "is there"
    yield Sentence(f"{result.table}: {there}{f' {is_behind}' if result.dry_run else new}")
    verb = "to be told" if result.dry_run else "told"
    yield Sentence(f"{counted(len(result.told), 'partition')} of {result.partitions:,} {verb}")
    if result.told and result.dry_run:
        yield Listing((Column("not known", fold=True),), [(path,) for path in result.told])
    if result.dropped:
        yield Sentence(f"{counted(len(result.dropped), 'partition')} without rows taken out")
    if result.at_work:
        yield Note(f"{counted(result.at_work, 'partition')} not at rest yet")
    for each in result.failed:
        yield Failure(f"{each.path}: {each.why}", "The next report tries again.")
