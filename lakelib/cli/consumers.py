"""Commands about who reads on: consumers, consumer create, consumer advance, consumer remove, watch."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.arguments import Really, TableName, read_duration
from lakelib.cli.command import Session, command, wrong_usage
from lakelib.cli.look import snapshot_facts
from lakelib.cli.show import Answer, Column, Listing, Note, Sentence, say
from lakelib.cli.values import counted, readable_age, readable_time
from lakelib.errors import InvalidInputError
from lakelib.plan.meant import CONSUMER_PREFIX, parse_at
from lakelib.specs.texts import LONGEST_LENGTH

if TYPE_CHECKING:
    from lakelib.model.positions import ConsumerStatus
    from lakelib.model.table import Snapshot

ConsumerName = Annotated[str, typer.Argument(metavar="CONSUMER", help="The consumer's name.", show_default=False)]
KeepFor = Annotated[
    str | None,
    typer.Option(
        metavar="LENGTH",
        help='How long what it has not read is kept from expiry, such as "7d". (7d)',
        show_default=False,
    ),
]
After = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN",
        help="The snapshot after which it begins: an id (0 is before the first), tag:NAME, consumer:NAME, or a moment.",
        show_default=False,
    ),
]


def add_to(app: typer.Typer) -> None:
    command(app, "consumers", panel="Look")(consumers)
    command(app, "watch", panel="Look")(watch)
    group = typer.Typer(
        no_args_is_help=True, help="Named positions in tables' histories, from which somebody reads on."
    )
    command(group, "create")(create)
    command(group, "advance")(advance)
    command(group, "remove")(remove)
    app.add_typer(group, name="consumer", rich_help_panel="Maintain")


def consumers(
    session: Session,
    table: Annotated[str | None, typer.Argument(metavar="TABLE", help="namespace.table", show_default=False)] = None,
) -> Answer:
    """Lists consumers, of a table or of all: how far behind each is, and how many snapshots it holds."""
    found = session.lake.consumers() if table is None else session.table(table).consumers()
    columns = (
        Column("table", fold=True),
        Column("consumer", fold=True),
        Column("position", right=True),
        Column("head", right=True),
        Column("unread", right=True),
        Column("rows", right=True, optional=1),
        Column("since", right=True),
        Column("keeps for", optional=2),
        Column("holds", right=True, optional=3),
        Column("moved (UTC)", optional=4),
    )
    rows = [
        (
            each.table,
            each.name,
            str(each.position),
            str(each.head),
            f"{each.lag.snapshots:,}",
            f"{each.lag.rows:,}",
            readable_age(each.lag.age) if each.lag.snapshots else "",
            readable_age(each.keep_for),
            f"{each.holds:,}",
            readable_time(each.advanced_at),
        )
        for each in found
    ]
    empty = "There are no consumers." if table is None else f"{table} has no consumer."
    return Answer([_facts(each) for each in found], Listing(columns, rows, empty))


def create(
    session: Session, table: TableName, consumer: ConsumerName, after: After = None, keep_for: KeepFor = None
) -> Answer:
    """Makes a consumer, which begins before the first snapshot unless told.

    One that is there stays where it is; what is told of how long it keeps counts from now on."""
    length = read_duration(keep_for, "--keep-for")
    session.table(table).consumer(consumer, keep_for=length, after=_read_after(after))
    status = _status(session, table, consumer)
    said = f"{table}: consumer {consumer} stands at snapshot {status.position} of {status.head}"
    return Answer(_facts(status), Sentence(said))


def advance(
    session: Session,
    table: TableName,
    consumer: ConsumerName,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="A snapshot: an id, tag:NAME, consumer:NAME, or a moment. (the head)",
            show_default=False,
        ),
    ] = None,
    backwards: Annotated[bool, typer.Option("--backwards", help="It may go back: what follows is read again.")] = False,
    yes: Really = False,
) -> Answer:
    """Moves a consumer by hand: what lies between it will not read, or read once more."""
    from lakelib.ops.consumers import check_direction, resolve_after

    handle = session.table(table)
    before = _status(session, table, consumer)
    target = before.head if to is None else resolve_after(session.lake.runtime, handle.info, _read_after(to, "--to"))
    check_direction(before, target, backwards=backwards)
    if yes:
        handle.consumer(consumer).advance(target, backwards=backwards)
    facts = {"table": table, "consumer": consumer, "dry_run": not yes, "position": before.position, "to": target}
    would = "moved" if yes else "would move"
    said = f"{table}: consumer {consumer} {would} from snapshot {before.position} to {target}"
    return Answer(facts, [Sentence(said), *_about_dry_run(yes)])


def remove(session: Session, table: TableName, consumer: ConsumerName, yes: Really = False) -> Answer:
    """Removes a consumer: its position is forgotten, and it holds nothing any more."""
    status = _status(session, table, consumer)
    if yes:
        session.table(table).consumer(consumer).remove()
    facts = {"table": table, "consumer": consumer, "dry_run": not yes, "position": status.position}
    lets_go = f", and lets go of {counted(status.holds, 'snapshot')}" if status.holds else ""
    said = f"{table}: consumer {consumer} {'is' if yes else 'would be'} removed{lets_go}"
    return Answer(facts | {"holds": status.holds}, [Sentence(said), *_about_dry_run(yes)])


def watch(
    session: Session,
    table: TableName,
    after: After = None,
    for_: Annotated[
        float | None,
        typer.Option("--for", metavar="SECONDS", help="How long. (until it is interrupted)", show_default=False),
    ] = None,
) -> Answer | None:
    """Prints a table's commits as they come; those after the present head, unless told.

    With --json there is a line for each, as they come."""
    if for_ is not None and not 0 <= for_ <= LONGEST_LENGTH.total_seconds():
        wrong_usage(f"--for {for_} is no number of seconds from 0 on")
    found: list[dict[str, Any]] = []
    for snapshot in session.lake.watch(table, after=_read_after(after), timeout=for_):
        if session.csv:
            found.append(snapshot_facts(snapshot))
            continue
        if session.json:
            session.print_line(snapshot_facts(snapshot))
        else:
            say(session, _line(snapshot))
        sys.stdout.flush()
    return Answer(found, []) if session.csv else None


def _line(snapshot: "Snapshot") -> str:
    rows, deletes = snapshot.summary.get("rows_written", 0), snapshot.summary.get("deletes_written", 0)
    told = counted(rows, "row") + (f", {counted(deletes, 'delete')}" if deletes else "")
    return f"{readable_time(snapshot.committed_at)}  {snapshot.id}  {snapshot.kind}  {told}"


def _read_after(text: str | None, option: str = "--after") -> Any:
    """What lakelib takes as `after`."""
    if text is None or text.startswith(CONSUMER_PREFIX):
        return text
    try:
        return parse_at(text)
    except InvalidInputError:
        wrong_usage(f"{option} {text!r} is no snapshot id, no tag:NAME, no consumer:NAME and no moment.")


def _status(session: Session, table: str, name: str) -> "ConsumerStatus":
    from lakelib.ops.consumers import look_at_consumer

    return look_at_consumer(session.lake.runtime, session.table(table).ref, name)


def _facts(status: "ConsumerStatus") -> dict[str, Any]:
    return {
        "table": status.table,
        "consumer": status.name,
        "position": status.position,
        "head": status.head,
        "snapshots": status.lag.snapshots,
        "rows": status.lag.rows,
        "age_seconds": status.lag.age.total_seconds(),
        "keep_for_seconds": status.keep_for.total_seconds(),
        "holds": status.holds,
        "created_at": status.created_at,
        "created_by": status.created_by,
        "advanced_at": status.advanced_at,
        "advanced_by": status.advanced_by,
    }


def _about_dry_run(yes: bool) -> list[Note]:
    return [] if yes else [Note("Nothing was changed. --yes does it.")]
