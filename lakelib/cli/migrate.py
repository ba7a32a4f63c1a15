"""The command about the catalog's schema: migrate."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.command import Session, command, wrong_usage
from lakelib.cli.show import Answer, Column, Listing, Sentence

if TYPE_CHECKING:
    from lakelib.model.upgrade import Step, Upgrade

_PANEL = "Maintain"
_MEANING = {
    "pre": "clients of the version before go on working",
    "post": "clients of the version before are shut out: `lake migrate --post`, once there are none",
}


def add_to(app: typer.Typer) -> None:
    command(app, "migrate", panel=_PANEL)(migrate)


def migrate(
    session: Session,
    pre: Annotated[
        bool, typer.Option("--pre", help="Only add what this version needs; so it is without options.")
    ] = False,
    post: Annotated[bool, typer.Option("--post", help="And shut clients of the version before out, for good.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what is due.")] = False,
) -> Answer:
    """Brings the catalog to the schema of this version.

    Clients of the version before go on working, until it is told --post."""
    if pre and post:
        wrong_usage("--post does what --pre does, too: give one of them.")
    result = session.migrate(post=post, dry_run=dry_run)
    columns = (Column("phase"), Column("migration"), Column("name"), Column(""))
    is_done = "would be done" if dry_run else "done"
    rows = [(*_row(step), is_done) for step in result.done] + [(*_row(step), "due") for step in result.due]
    phases = dict.fromkeys(step.phase.value for step in result.due)
    listing = Listing(columns, rows, "The catalog has the schema of this version.")
    return Answer(_facts(result), [listing, *(Sentence(f"due: {_MEANING[phase]}") for phase in phases)])


def _row(step: "Step") -> tuple[str, str, str]:
    return step.phase.value, "" if step.version is None else str(step.version), step.name


def _facts(result: "Upgrade") -> dict[str, Any]:
    named = {
        name: [{"phase": step.phase.value, "version": step.version, "name": step.name} for step in steps]
        for name, steps in (("done", result.done), ("due", result.due))
    }
    return {"dry_run": result.dry_run, **named}
