"""Commands about snapshots: rollback, by which a table has the content of an older one again, a dry run until it is
told --yes; tag create, tag list, tag delete."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.arguments import At, Key, Really, TableName, read_at, read_duration, read_key
from lakelib.cli.command import Session, command
from lakelib.cli.show import Answer, Column, Fields, Listing, Note, Sentence, Title, working
from lakelib.cli.values import counted, readable_time, readable_values

if TYPE_CHECKING:
    from lakelib.model.rollback import RollbackPlan
    from lakelib.model.table import Snapshot
    from lakelib.model.upkeep import Tag

_MOST_NAMED = 10
_NOTHING = Note("Nothing was changed. --yes does it.")

Gate = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A suite that has to pass before anybody sees the change.", show_default=False),
]
TagName = Annotated[str, typer.Argument(metavar="TAG", help="The tag's name.", show_default=False)]


def add_to(app: typer.Typer) -> None:
    command(app, "rollback", panel="Write")(rollback)
    group = typer.Typer(no_args_is_help=True, help="Names that pin snapshots: they do not expire.")
    command(group, "create")(create)
    command(group, "list")(list_)
    command(group, "delete")(delete)
    app.add_typer(group, name="tag", rich_help_panel="Maintain")


def rollback(
    session: Session,
    table: TableName,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="WHEN",
            help="A snapshot id, tag:NAME, or a moment such as 2026-11-18T10:30 (UTC if no zone is given).",
            show_default=False,
        ),
    ],
    idempotency_key: Key = None,
    gate: Gate = None,
    yes: Really = False,
) -> Answer:
    """Gives a table the content of an older snapshot again.

    It is a new snapshot: nothing is destroyed, and no row is read or written. The columns stay as they are."""
    handle = session.table(table)
    wanted = read_at(to, "--to")
    assert wanted is not None
    plan = snapshot = None
    with working(session, f"{'bringing back' if yes else 'looking at'} {table}"):
        if yes:
            key = idempotency_key and read_key(idempotency_key)
            snapshot = handle.rollback(wanted, idempotency_key=key or None, gate=gate)
        else:
            plan = handle.preview_rollback(wanted)
    document = {"table": table, "dry_run": not yes} | _moved(plan, snapshot) | _published(snapshot)
    if plan is None:
        assert snapshot is not None
        return Answer(document, Sentence(f"{table}: {_said_restored(snapshot)}"))
    fields = [
        ("come back", f"{counted(plan.files_restored, 'file')}, {counted(plan.rows_restored, 'stored row')}"),
        ("go", f"{counted(plan.files_removed, 'file')}, {counted(plan.rows_removed, 'stored row')}"),
        ("partitions", _named_partitions(plan)),
    ]
    return Answer(document, [Title(f"{table}: back from snapshot {plan.head} to {plan.to}"), Fields(fields), _NOTHING])


def _moved(plan: "RollbackPlan | None", snapshot: "Snapshot | None") -> dict[str, Any]:
    """What a rollback has done, or would do; of one that is done rows and partitions are not counted."""
    if plan is not None:
        names = ("to", "files_restored", "files_removed", "rows_restored", "rows_removed")
        return {name: getattr(plan, name) for name in names} | {"partitions": list(plan.partitions)}
    told = {} if snapshot is None else snapshot.summary
    files = {"files_restored": told.get("files_added"), "files_removed": told.get("files_removed")}
    return {"to": told.get("restores")} | files | dict.fromkeys(("rows_restored", "rows_removed", "partitions"))


def _published(snapshot: "Snapshot | None") -> dict[str, Any]:
    """All null if nothing was."""
    names = ("snapshot", "commit", "committed_at", "replayed")
    if snapshot is None:
        return dict.fromkeys(names)
    return dict(zip(names, (snapshot.id, snapshot.commit_id, snapshot.committed_at, snapshot.replayed), strict=True))


def _named_partitions(plan: "RollbackPlan") -> str:
    if not plan.partitions:
        return "none: it holds the same rows"
    named = [readable_values(each) or "the whole table" for each in plan.partitions[:_MOST_NAMED]]
    more = len(plan.partitions) - len(named)
    return f"{len(plan.partitions):,}: {'; '.join(named)}{f' and {more:,} more' if more else ''}"


def _said_restored(snapshot: "Snapshot") -> str:
    if snapshot.replayed:
        return f"was done before: snapshot {snapshot.id}"
    told = snapshot.summary
    came, went = counted(told.get("files_added", 0), "file"), counted(told.get("files_removed", 0), "file")
    return f"{came} came back and {went} went, published as snapshot {snapshot.id}"


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
