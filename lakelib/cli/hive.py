"""The command that tells a Hive metastore of tables: hive."""

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
    command(app, "hive", panel="Maintain")(hive)


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
