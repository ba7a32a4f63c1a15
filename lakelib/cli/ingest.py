"""Commands that fill tables as their specs say: ingest, backfill. What they stage is published by `lake publish`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakelib.cli.arguments import NewLake, Properties, check_folder, read_key, read_pairs
from lakelib.cli.command import MayMake, Session, wrong_usage
from lakelib.cli.job import Job, job_command
from lakelib.pipeline.arguments import BackfillArguments, IngestArguments, Surroundings

if TYPE_CHECKING:
    from lakelib.pipeline.outcome import Outcome

_PANEL = "Fill tables as their specs say"

WorkKey = Annotated[
    str,
    typer.Option(
        "--idempotency-key",
        metavar="APP:VERSION",
        help="Names this piece of work: with the same key it takes up what is there, with another it begins anew.",
        show_default=False,
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Where to write what was judged, as HTML.", show_default=False),
]


def add_to(app: typer.Typer) -> None:
    job_command(app, "ingest", panel=_PANEL)(ingest)
    job_command(app, "backfill", panel=_PANEL)(backfill)


def ingest(
    session: Session,
    around: Surroundings,
    spec: Annotated[Path, typer.Option(metavar="FILE", help="The table's spec.", show_default=False)],
    partition: Annotated[
        str, typer.Option(metavar="KEY", help="The key of the partition, such as 2026-11-18.", show_default=False)
    ],
    idempotency_key: WorkKey,
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE=WHEN",
            help="A table that the transform reads, as it was at a snapshot's id or tag:NAME, else as it is when the"
            " work begins; may be repeated.",
            show_default=False,
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="For a table whose spec follows changes: all is read, what is made takes the place of all that is"
            " there, and the next run goes on from there.",
        ),
    ] = False,
    properties: Properties = None,
    report: Report = None,
    new_lake: NewLake = False,
) -> Job:
    """Brings one partition of a source to a table: a commit that is staged and judged, not yet published.

    Makes the table if it is not there, reads the source, transforms it, stages the rows, and has the gate judge them.
    Where there is no lake, one is made in a warehouse that is named; else with --new-lake.
    """
    job = IngestArguments(
        spec=spec,
        partition=partition,
        key=read_key(idempotency_key),
        at=read_pairs(at or (), "--at"),
        properties=read_pairs(properties or (), "--property"),
        report=check_folder("--report", report),
        surroundings=around,
        full=full,
    )

    def work() -> "Outcome":
        from lakelib.pipeline.ingesting import ingest

        return ingest(job, session.start.spark)

    return Job(arguments=job, work=work, make=MayMake.ANYWHERE if new_lake else MayMake.WHERE_NAMED)


def backfill(
    session: Session,
    around: Surroundings,
    spec: Annotated[
        list[Path], typer.Option(metavar="FILE", help="A table's spec; may be repeated.", show_default=False)
    ],
    make: Annotated[
        list[str],
        typer.Option(
            metavar="TABLE=KEY",
            help="A partition of a table, of which there is a --spec; may be repeated, in the order in which they are"
            " made.",
            show_default=False,
        ),
    ],
    idempotency_key: WorkKey,
    downstream: Annotated[
        bool,
        typer.Option(
            "--downstream", help="Make what comes from them, too, of the tables whose --spec says schedule.after."
        ),
    ] = False,
    report: Report = None,
    new_lake: NewLake = False,
) -> Job:
    """Makes partitions of tables anew: commits that are staged and judged on top of each other, in order.

    They are to be published in one transaction (`lake publish`, which names them all)."""
    pairs = [text.partition("=") for text in make]
    if not all(table and key for table, _, key in pairs):
        wrong_usage("--make takes TABLE=KEY, such as shop.orders=2026-11-18")
    job = BackfillArguments(
        specs=tuple(spec),
        items=tuple(dict.fromkeys((table, key) for table, _, key in pairs)),
        key=read_key(idempotency_key),
        downstream=downstream,
        report=check_folder("--report", report),
        surroundings=around,
    )

    def work() -> "Outcome":
        from lakelib.pipeline.backfilling import backfill

        return backfill(job, session.start.spark)

    return Job(arguments=job, work=work, make=MayMake.ANYWHERE if new_lake else MayMake.WHERE_NAMED)
