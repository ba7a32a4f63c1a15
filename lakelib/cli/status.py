"""The command that tells how tables are doing: status."""

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakelib.cli.command import Session, command
from lakelib.cli.show import GAP, Answer, Column, Fields, Listing, Note, Part, Sentence, Title
from lakelib.cli.values import counted, readable_age, readable_count, readable_time
from lakelib.model.upkeep import readable_bytes

if TYPE_CHECKING:
    from lakelib.model.status import HeldBack, LakeStatus, PartitionStatus, TableDetail

_SIGNS = {"published": "·", "warned": "w", "stale": "s", "waiting": "?", "rejected": "x", "late": "l", "missing": "M"}
_ROWS = {"day": len("2026-11"), "hour": len("2026-11-18"), "month": len("2026")}
"""What the keys of one line of a calendar have in common."""
_MOST_LINES = 24
_MOST_TOLD = 50


def add_to(app: typer.Typer) -> None:
    command(app, "status", panel="Look")(status)


def status(
    session: Session,
    table: Annotated[
        str | None,
        typer.Argument(metavar="[TABLE]", help="Only this one, partition by partition.", show_default=False),
    ] = None,
    specs: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where the specs of tables are, which say what is due. (LAKE_TABLES; else nothing is due)",
            show_default=False,
        ),
    ] = None,
) -> Answer:
    """Tells how tables are doing: what waits for a person, what is missing, late or stale.

    With a table there is a calendar of its partitions."""
    from lakelib.ops.status import look, look_at_table, read_specs

    folder = specs or os.environ.get("LAKE_TABLES") or None
    found = None if folder is None else read_specs(folder)
    wrong = [error.message for error in found.errors.values()] if found else []
    known = found.specs if found else ()
    if table is None:
        seen = look(session.lake.runtime, known)
        return Answer({**_fields(seen), "wrong_specs": wrong}, [_listing(seen), *_about_wrong(wrong)])
    detail = look_at_table(session.lake.runtime, table, known)
    parts = [*_head(detail), *_calendar(detail), *_told(detail), *_about_wrong(wrong)]
    return Answer({**_fields(detail), "wrong_specs": wrong}, parts)


def _fields(value: "LakeStatus | TableDetail") -> dict[str, object]:
    return {name: getattr(value, name) for name in type(value).__slots__}


# All tables


def _listing(seen: "LakeStatus") -> Listing:
    columns = (
        Column("table", fold=True),
        Column("standing", fold=True),
        Column("head", right=True, optional=3),
        Column("age", right=True),
        Column("stored rows", right=True, optional=2),
        Column("verdict", optional=1),
        Column("to compact", right=True, optional=4),
        Column("kept from expiry by", optional=5, fold=True),
    )
    rows = [
        (
            each.table,
            each.standing,
            str(each.snapshot or ""),
            "" if each.committed_at is None else readable_age(seen.at - each.committed_at),
            readable_count(each.stored_rows) if each.snapshot else "",
            each.outcome or "",
            readable_count(each.partitions_due or None),
            "; ".join(map(_held, each.held_back)),
        )
        for each in seen.tables
    ]
    return Listing(columns, rows, "There is no table in the lake yet.")


def _held(held: "HeldBack") -> str:
    what = f"{held.kind} {held.example}" if held.holds == 1 else counted(held.holds, held.kind)
    return f"{what}: {counted(held.snapshots, 'snapshot')}"


def _about_wrong(wrong: Sequence[str]) -> list[Note]:
    return [Note(f"what is due is not known of a table whose spec is wrong: {message}") for message in wrong]


# One table


def _head(detail: "TableDetail") -> tuple[Title, Fields]:
    table = detail.status
    age = None if table.committed_at is None else readable_age(detail.at - table.committed_at)
    head = (
        f"snapshot {table.snapshot}, {readable_time(table.committed_at)} UTC, {age} ago"
        if table.snapshot
        else "none yet"
    )
    holds = f"{counted(table.stored_rows, 'stored row')}, {readable_bytes(table.size_bytes)}"
    return Title(table.table), Fields(
        [
            ("standing", table.standing),
            ("head", head),
            ("holds", f"{holds}; {counted(table.files, 'file')} in {counted(table.partitions, 'partition')}"),
            *(
                [("verdict", f"{table.outcome} by {table.gate}, snapshot {table.judged_snapshot}")]
                if table.outcome
                else []
            ),
            *([("made from", ", ".join(detail.reads))] if detail.reads else []),
            *([("to compact", counted(table.partitions_due, "partition"))] if table.partitions_due else []),
            *(("kept from expiry", _held(each)) for each in table.held_back),
        ],
    )


def _calendar(detail: "TableDetail") -> Iterator[Part]:
    from lakelib.plan.due import is_key

    every = detail.every or ""
    if every not in _ROWS:
        return
    known = [each for each in detail.partitions if is_key(every, each.partition)]
    lines = list(_calendar_lines(known, _ROWS[every], every == "hour"))
    if not lines:
        return
    yield GAP
    yield from (Sentence(f"{name}  {signs}") for name, signs in lines[-_MOST_LINES:])
    shown = {each.standing.value for each in detail.partitions}
    yield Note("  ".join(f"{sign} {word}" for word, sign in _SIGNS.items() if word in shown))


def _calendar_lines(partitions: Sequence["PartitionStatus"], common: int, is_hourly: bool) -> Iterator[tuple[str, str]]:
    """A line for each month of days, day of hours, year of months; each partition at its place in it."""
    for name, group in groupby(partitions, key=lambda each: each.partition[:common]):
        signs = {int(each.partition[common + 1 :]) - (not is_hourly): _SIGNS[each.standing.value] for each in group}
        yield name, "".join(signs.get(place, " ") for place in range(max(signs) + 1))


def _told(detail: "TableDetail") -> Iterator[Part]:
    """The partitions of which there is more to say than that they are published."""
    found = [each for each in detail.partitions if each.standing.value != "published"]
    columns = (
        Column("partition"),
        Column("standing"),
        Column("why", fold=True),
        Column("snapshot", right=True, optional=2),
        Column("commit", optional=3),
    )
    rows = [
        (each.partition, each.standing.value, each.why, str(each.snapshot or ""), str(each.commit or ""))
        for each in found[-_MOST_TOLD:]
    ]
    yield GAP
    if detail.every is None:
        empty = "No runs about partitions fill it; `lake partitions` lists what it holds."
    else:
        empty = f"{counted(len(detail.partitions), 'partition')}, all published."
    yield Listing(columns, rows, empty)
    if len(rows) < len(found):
        yield Note(f"the newest {len(rows):,} of {len(found):,}; --json has all")
