"""The command that brings tables of other systems into the lake: import."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.arguments import Buckets, Names, NewLake, TableName, option, read_buckets, read_choice, read_names
from lakelib.cli.command import MayMake, Session, wrong_usage
from lakelib.cli.job import Job, job_command
from lakelib.cli.show import working
from lakelib.pipeline.arguments import ImportArguments, Surroundings

if TYPE_CHECKING:
    from lakelib.pipeline.outcome import Outcome

_PANEL = "Write"
_KINDS = ("delta", "parquet")
_DUPLICATES = ("refuse", "last")


def add_to(app: typer.Typer) -> None:
    job_command(app, "import", panel=_PANEL)(import_table)


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
