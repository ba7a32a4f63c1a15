"""Commands that fill tables: ingest and backfill as their specs say, import with the rows of tables of other systems.
What the first two stage is published by `lake publish`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.arguments import (
    Buckets,
    Names,
    NewLake,
    Properties,
    TableName,
    check_folder,
    option,
    read_buckets,
    read_choice,
    read_key,
    read_names,
    read_pairs,
)
from lakelib.cli.command import MayMake, Session, wrong_usage
from lakelib.cli.job import Job, job_command
from lakelib.cli.show import working
from lakelib.pipeline.arguments import BackfillArguments, ImportArguments, IngestArguments, Surroundings

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
_IMPORT_PANEL = "Write"
_KINDS = ("delta", "parquet")
_DUPLICATES = ("refuse", "last")


def add_to(app: typer.Typer) -> None:
    job_command(app, "ingest", panel=_PANEL)(ingest)
    job_command(app, "backfill", panel=_PANEL)(backfill)
    job_command(app, "import", panel=_IMPORT_PANEL)(import_table)


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


def import_table(
    session: Session,
    around: Surroundings,
    table: TableName,
    source: Annotated[str, typer.Argument(metavar="PATH", help="The folder of a Delta table, or of Parquet files.")],
    kind: Annotated[str, option("--from", metavar="FORMAT", help=f"{' or '.join(_KINDS)}.")],
    primary_key: Names = None,
    partition_by: Names = None,
    sequence_by: Names = None,
    buckets: Buckets = None,
    columns: Annotated[
        str | None, option(metavar="DDL", help="The table's columns. (those of the source, in its types)")
    ] = None,
    version: Annotated[int | None, option(metavar="N", help="Of a Delta table. (the newest)")] = None,
    duplicates: Annotated[
        str, option(metavar="HOW", help="Which row of a key stays: refuse (none: an error) or last. (refuse)")
    ] = "refuse",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only look at the source and its keys.")] = False,
    new_lake: NewLake = False,
) -> Job:
    """Copies a Delta table, or a folder of Parquet files, into a new table.

    One that was killed goes on where it ended, when it is told the same again. In this process, unless a master or a
    server is named."""
    chosen = read_choice(kind, _KINDS, "--from")
    how: dict[str, Any] = {
        "primary_key": read_names(primary_key, "--primary-key"),
        "partition_by": None if partition_by is None else read_names(partition_by, "--partition-by"),
        "sequence_by": read_names(sequence_by, "--sequence-by"),
        "buckets": read_buckets(buckets),
        "schema": columns,
        "duplicates": read_choice(duplicates, _DUPLICATES, "--duplicates"),
        "dry_run": dry_run,
    }
    if version is not None and chosen != "delta":
        wrong_usage("--version is for --from delta")
    how |= {"version": version} if chosen == "delta" else {}
    job = ImportArguments(table=table, source=source, kind=chosen, how=how, surroundings=around)

    def work() -> "Outcome":
        from lakelib.pipeline.writing import carry_over

        if around.master or around.remote or session.start.spark:
            return carry_over(job, session.start.spark)
        with working(session, f"importing {source} into {table}") as tell:
            return carry_over(job, tell=tell)

    make = MayMake.ANYWHERE if new_lake else MayMake.NEVER
    return Job(arguments=job, work=work, table=table, make=make)
