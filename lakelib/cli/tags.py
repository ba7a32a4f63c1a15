"""Commands about tags: tag create, tag list, tag delete."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.arguments import At, TableName, read_at
from lakelib.cli.command import Session, command
from lakelib.cli.show import Column, say, show_table
from lakelib.cli.values import readable_time

if TYPE_CHECKING:
    from lakelib.model.maintenance import Tag

TagName = Annotated[str, typer.Argument(metavar="TAG", help="The tag's name.", show_default=False)]


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="Names that pin snapshots: they do not expire.")
    command(group, "create")(create)
    command(group, "list")(list_)
    command(group, "delete")(delete)
    app.add_typer(group, name="tag", rich_help_panel="Maintain")


def create(session: Session, table: TableName, tag: TagName, at: At = None) -> None:
    """Pins a snapshot, the newest unless told, under a name. A tag does not move."""
    made = session.table(table).tag(tag, at=read_at(at))
    if session.json:
        return session.print_json(_facts(made))
    return say(session, f"{table}: tag {made.name} is on snapshot {made.snapshot_id}")


def list_(session: Session, table: TableName) -> None:
    """Lists a table's tags, those of the newest snapshots first."""
    found = session.table(table).tags()
    if session.json:
        return session.print_json([_facts(each) for each in found])
    columns = (Column("tag", fold=True), Column("snapshot", right=True), Column("created (UTC)"))
    rows = [(each.name, str(each.snapshot_id), readable_time(each.created_at)) for each in found]
    return show_table(session, columns, rows, empty=f"{table} has no tag.")


def delete(session: Session, table: TableName, tag: TagName) -> None:
    """Lets go of a tag's snapshot: it may expire from now on."""
    session.table(table).delete_tag(tag)
    if session.json:
        return session.print_json({"table": table, "deleted": tag})
    return say(session, f"{table}: tag {tag} is deleted")


def _facts(tag: "Tag") -> dict[str, Any]:
    return {"tag": tag.name, "snapshot": tag.snapshot_id, "created_at": tag.created_at}
