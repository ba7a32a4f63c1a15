"""The command about a table's Delta log: delta."""

from dataclasses import asdict

import typer

from lakelib.cli.arguments import TableName
from lakelib.cli.command import Session, command
from lakelib.cli.show import Answer, Sentence


def add_to(app: typer.Typer) -> None:
    command(app, "delta", panel="Maintain")(delta)


def delta(session: Session, table: TableName) -> Answer:
    """Brings a table's Delta log up to date, which other engines read.

    With the table's option delta whoever publishes does it; this goes on where they did not get that far. Snapshot n is
    version n - 1."""
    done = session.table(table).export_delta()
    return Answer(asdict(done), Sentence(str(done)))
