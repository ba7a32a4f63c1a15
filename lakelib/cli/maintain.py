"""Commands that look after tables and the lake: compact, expire, vacuum, adopt.

What deletes is a dry run until it is told --yes.
"""

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.arguments import Really, TableName, Where, read_duration
from lakelib.cli.command import Session, command
from lakelib.cli.show import Column, Tell, say, show_fields, show_table, show_title, working
from lakelib.cli.values import counted, readable_seconds
from lakelib.model.upkeep import describe_holdings, readable_bytes

if TYPE_CHECKING:
    from lakelib.model.upkeep import CompactionResult

_PANEL = "Maintain"
_LENGTH = 'A length of time such as "7d" or "12h".'


def add_to(app: typer.Typer) -> None:
    command(app, "compact", panel=_PANEL)(compact)
    command(app, "expire", panel=_PANEL)(expire)
    command(app, "vacuum", panel=_PANEL)(vacuum)
    command(app, "adopt", panel=_PANEL)(adopt)


def compact(
    session: Session,
    table: TableName,
    full: Annotated[bool, typer.Option("--full", help="Everything, not only where it is due.")] = False,
    where: Where = None,
) -> None:
    """Puts a table's files together.

    It runs in this process, beside the table's writers. For big tables there is jobs/compact.py, on Spark."""
    handle = session.table(table)
    with working(session, f"compacting {table}") as tell:
        result = handle.compact(full=full, where=where, tell=tell)
    if session.json:
        return session.print_json(_compaction(result))
    if not result.snapshots:
        skipped = f": writers are at work in {counted(result.units_skipped, 'place')}" if result.units_skipped else ""
        return say(session, f"{table}: nothing to compact{skipped}")
    show_title(session, f"{table}: compacted in {readable_seconds(result.seconds)}")
    pairs = [
        ("files", f"{result.files_before:,}", f"{result.files_after:,}"),
        ("runs", f"{result.runs_before:,}", f"{result.runs_after:,}"),
        ("stored rows", f"{result.rows_before:,}", f"{result.rows_after:,}"),
        ("size", readable_bytes(result.bytes_before), readable_bytes(result.bytes_after)),
    ]
    columns = (Column(""), Column("before", right=True), Column("after", right=True))
    show_table(session, columns, pairs, empty="")
    ids = ", ".join(str(each.id) for each in result.snapshots)
    say(session, f"in {counted(result.partitions, 'partition')}, published as snapshot {ids}")
    if result.units_skipped:
        session.note(f"{counted(result.units_skipped, 'place')} left as they are: writers are at work there")
    return None


def _compaction(result: "CompactionResult") -> dict[str, Any]:
    names = [field.name for field in fields(result) if field.name not in ("table", "snapshots")]
    facts = {name: getattr(result, name) for name in names}
    return {"table": result.table, "snapshots": [each.id for each in result.snapshots], **facts}


def expire(
    session: Session,
    table: TableName,
    keep_last: Annotated[
        int | None, typer.Option(min=1, help="So many snapshots stay, however old.", show_default=False)
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="LENGTH", help=f"Only what was superseded so long ago. {_LENGTH}", show_default=False),
    ] = None,
    yes: Really = False,
) -> None:
    """Forgets old snapshots.

    Tags, readers and staged commits keep theirs; tags whose time is over go first. Without options the last 10 and
    those of the last 7 days stay."""
    age = read_duration(older_than, "--older-than")
    handle = session.table(table)
    with working(session, f"expiring snapshots of {table}"):
        result = handle.expire(keep_last=keep_last, older_than=age, dry_run=not yes)
    if session.json:
        return session.print_json(result)
    show_title(session, f"{table}: what {'was' if yes else 'would be'} forgotten")
    expired = result.snapshots
    span = f", {expired[0]} to {expired[-1]}" if len(expired) > 1 else f", {expired[0]}" if expired else ""
    show_fields(
        session,
        [
            ("snapshots", f"{len(expired):,}{span}"),
            ("commits", f"{result.commits:,} that have waited too long"),
            *([("tags", f"{len(result.tags):,} whose time is over")] if result.tags else []),
            ("files", f"{result.files:,}, {readable_bytes(result.size_bytes)}, for a vacuum to delete"),
            *(("kept back", f"by {line}") for line in describe_holdings(result.holdings)),
            ("oldest left", "none" if result.oldest_id is None else f"snapshot {result.oldest_id}"),
        ],
    )
    return _note_dry_run(session, yes)


def vacuum(
    session: Session,
    grace: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help=f"How old orphans and dropped tables have to be: longer than the longest write. (1d) {_LENGTH}",
            show_default=False,
        ),
    ] = None,
    orphans: Annotated[bool, typer.Option(help="Look for files that no commit names.")] = True,
    files: Annotated[bool, typer.Option("--files", help="Name each file, a line each.")] = False,
    yes: Really = False,
) -> None:
    """Deletes files that nothing needs any more."""
    options: dict[str, Any] = {} if grace is None else {"grace": read_duration(grace, "--grace")}
    lake = session.lake
    with working(session, "deleting files" if yes else "looking for files") as tell:
        account = _Account(tell, names=files and not session.json)
        result = lake.vacuum(dry_run=not yes, orphans=orphans, tell=account.hear, **options)
    if session.json:
        return session.print_json(result)
    show_title(session, f"what {'was' if yes else 'would be'} deleted")
    show_fields(
        session,
        [
            ("not needed", f"{counted(result.files, 'file')}, {readable_bytes(result.size_bytes)}"),
            ("orphans", f"{counted(result.orphans, 'file')}, {readable_bytes(result.orphan_bytes)}"),
            ("uploads", f"{result.uploads:,} that were never finished"),
            *([("dropped", ", ".join(result.dropped_tables))] if result.dropped_tables else []),
            ("not yet due", counted(result.waiting, "file")),
            *(("failed", f"{each.uri}: {each.reason}") for each in result.failed[:10]),
            *([("passed over", f"{', '.join(result.passed_over)}: others held them")] if result.passed_over else []),
        ],
    )
    return _note_dry_run(session, yes)


def adopt(
    session: Session,
    by: Annotated[str, typer.Option(metavar="NAME", help="Who answers for it.", show_default=False)],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why.", show_default=False)],
) -> None:
    """Makes this catalog the one that the warehouse belongs to.

    For a restored, promoted or copied catalog, or a copied folder, that is to be written to. Any other catalog of the
    lake may only read it from then on."""
    lake = session.lake
    before = lake.identity
    identity = lake.adopt(by, reason)
    if session.json:
        return session.print_json(
            {"lake": identity.id, "epoch": identity.epoch, "warehouse": lake.warehouse}
            | {"adopted_by": identity.adopted_by, "adoption_reason": identity.adoption_reason}
            | {"difference": None if before.difference is None else before.difference.detail}
        )
    if before.difference is not None:
        session.note(f"{before.difference.detail}.")
    return say(session, f"adopted {lake.warehouse}: epoch {identity.epoch} of lake {identity.id}")


class _Account:
    """Counts the files that a vacuum tells of, and names them if that was asked for."""

    def __init__(self, tell: Tell, *, names: bool) -> None:
        self._tell = tell
        self._names = names
        self._count = 0

    def hear(self, uri: str) -> None:
        self._count += 1
        self._tell(self._count, None)
        if self._names:
            print(uri)


def _note_dry_run(session: Session, yes: bool) -> None:
    if not yes:
        session.note("Nothing was changed. --yes does it.")
