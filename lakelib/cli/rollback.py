"""The command rollback: a table has the content of an older snapshot again. A dry run until it is told --yes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.arguments import Key, Really, TableName, read_at, read_key
from lakelib.cli.command import Session, command
from lakelib.cli.show import Answer, Fields, Note, Sentence, Title, working
from lakelib.cli.values import counted, readable_values

if TYPE_CHECKING:
    from lakelib.model.rollback import RollbackPlan
    from lakelib.model.table import Snapshot

_MOST_NAMED = 10
_NOTHING = Note("Nothing was changed. --yes does it.")

Gate = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A suite that has to pass before anybody sees the change.", show_default=False),
]


def add_to(app: typer.Typer) -> None:
    command(app, "rollback", panel="Write")(rollback)


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
