"""Commands about tags: tag create, tag list, tag delete."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.arguments import At, TableName, read_at, read_duration
from lakelib.cli.command import Session, command
from lakelib.cli.show import Answer, Column, Listing, Sentence
from lakelib.cli.values import readable_time

if TYPE_CHECKING:
    from lakelib.model.upkeep import Tag

TagName = Annotated[str, typer.Argument(metavar="TAG", help="The tag's name.", show_default=False)]


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="Names that pin snapshots: they do not expire.")
    command(group, "create")(create)
    command(group, "list")(list_)
    command(group, "delete")(delete)
    app.add_typer(group, name="tag", rich_help_panel="Maintain")


def create(
    session: Session,
    table: TableName,
    tag: TagName,
    at: At = None,
    keep: Annotated[
        str | None,
        typer.Option(metavar="LENGTH", help='How long it stays, such as "90d". (for ever)', show_default=False),
    ] = None,
    keep_last: Annotated[
        int | None,
        typer.Option(min=1, help="It stays while it is among so many of its family's newest.", show_default=False),
    ] = None,
    family: Annotated[str, typer.Option(metavar="NAME", help="Which tags are counted with it.")] = "",
) -> Answer:
    """Pins a snapshot, the newest unless told, under a name. A tag does not move.

    It stays until it is deleted; with --keep or --keep-last, an expiry takes it away once neither holds it any more."""
    length = read_duration(keep, "--keep")
    made = session.table(table).tag(tag, at=read_at(at), keep=length, keep_last=keep_last, family=family)
    said = f"{table}: tag {made.name} is on snapshot {made.snapshot_id}, {_end_of(made)}"
    return Answer(_facts(made), Sentence(said))


def list_(session: Session, table: TableName) -> Answer:
    """Lists a table's tags, those of the newest snapshots first."""
    found = session.table(table).tags()
    columns = (Column("tag", fold=True), Column("snapshot", right=True), Column("created (UTC)"), Column("stays"))
    rows = [(each.name, str(each.snapshot_id), readable_time(each.created_at), _end_of(each)) for each in found]
    return Answer([_facts(each) for each in found], Listing(columns, rows, f"{table} has no tag."))


def delete(session: Session, table: TableName, tag: TagName) -> Answer:
    """Lets go of a tag's snapshot: it may expire from now on."""
    session.table(table).delete_tag(tag)
    return Answer({"table": table, "deleted": tag}, Sentence(f"{table}: tag {tag} is deleted"))


def _facts(tag: "Tag") -> dict[str, Any]:
    end = {"until": tag.until, "keep_last": tag.keep_last, "family": tag.family}
    return {"tag": tag.name, "snapshot": tag.snapshot_id, "created_at": tag.created_at, **end}


def _end_of(tag: "Tag") -> str:
    if tag.family is None:
        return "for ever"
    told = [f"until {readable_time(tag.until)}"] if tag.until is not None else []
    if tag.keep_last is not None:
        told.append(f"among the last {tag.keep_last:,}{f' of {tag.family}' if tag.family else ''}")
    return " and ".join(told)
