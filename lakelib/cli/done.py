"""Commands about partitions that are complete: mark-done, done."""

from typing import Annotated, Any

import typer

from lakelib.cli.arguments import NULL_VALUE, TableName, read_choice, read_pairs, read_partition
from lakelib.cli.command import Session, command, wrong_usage
from lakelib.cli.show import Answer, Column, Listing, Sentence, working
from lakelib.cli.values import readable_time, readable_values

_PANEL = "Decide"
_ACTIONS = ("done_partition", "success_file")


def add_to(app: typer.Typer) -> None:
    command(app, "mark-done", panel=_PANEL)(mark_done)
    command(app, "done", panel=_PANEL)(done)


def mark_done(
    session: Session,
    table: TableName,
    partition: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=VALUE…",
            help=f"A value for each partition column; NULL is {NULL_VALUE}.",
            show_default=False,
        ),
    ] = None,
    action: Annotated[
        list[str] | None,
        typer.Option("--action", "-a", help="done_partition (a note in the catalog), success_file. (both)"),
    ] = None,
    report: Annotated[
        str | None, typer.Option(metavar="URL", help="A service to be told, which answers with the result SUCCESS.")
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Told to the service too; may be repeated.")
    ] = None,
) -> Answer:
    """Promises downstream that a partition is complete.

    The promise stands until other rows of it are published."""
    actions: list[Any] = [read_choice(each, _ACTIONS, "--action") for each in action or _ACTIONS]
    if report is not None:
        actions.append({"http_report": {"url": report, "params": read_pairs(param or (), "--param")}})
    elif param:
        wrong_usage("--param is for --report.")
    values = read_partition(partition or ())
    with working(session, f"marking {table}"):
        marked = session.table(table).mark_done(values, actions)
    return Answer({"table": table} | _facts(marked), Sentence(f"{table}: {_said(marked)}"))


def _said(marked: Any) -> str:
    where = readable_values(marked.values) or "the whole table"
    if marked.reset_at is not None:
        return f"{where} got other rows meanwhile: it is not done"
    as_of = f"as of snapshot {marked.snapshot_id}" if marked.snapshot_id else "without a snapshot yet"
    return f"{where} is done {as_of}"


def done(
    session: Session,
    table: TableName,
    with_reset: Annotated[
        bool, typer.Option("--all", help="Also those that got other rows since they were marked.")
    ] = False,
) -> Answer:
    """Lists the partitions that are marked done."""
    found = session.table(table).done_partitions(with_reset=with_reset)
    columns = (
        Column("partition", fold=True),
        Column("snapshot", right=True),
        Column("marked (UTC)"),
        Column("first marked (UTC)", optional=2),
        Column("reset (UTC)", optional=1),
    )
    rows = [
        (
            readable_values(each.values) or "(the whole table)",
            str(each.snapshot_id or ""),
            readable_time(each.modified_at),
            readable_time(each.created_at),
            readable_time(each.reset_at),
        )
        for each in found
    ]
    return Answer([_facts(each) for each in found], Listing(columns, rows, f"No partition of {table} is marked done."))


def _facts(marked: Any) -> dict[str, Any]:
    return {
        "partition": marked.values,
        "path": marked.path,
        "done": marked.is_done,
        "snapshot": marked.snapshot_id or None,
        "created_at": marked.created_at,
        "modified_at": marked.modified_at,
        "reset_at": marked.reset_at,
    }
