"""One job from its arguments to its exit code; read this first.

What can be wrong without Spark is said before Spark is started, and work that was published before starts none.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import lakelib
from lakelib import Lake, Snapshot, Table
from lakelib.model.table import TableInfo
from lakelib.ops.commit import check_writable, find_done
from lakelib.ops.create import find_table
from lakelib.ops.overwrite import parse_target
from lakelib.ops.request import WriteRequest, parse_request
from lakelib.ops.write import check_keyed
from lakelib.pipeline.arguments import JobArguments, parse_job
from lakelib.pipeline.outcome import Done, run_told
from lakelib.pipeline.sessions import opened_session, told_progress
from lakelib.pipeline.sources import opened_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_job(
    mode: str | None, description: str, arguments: Sequence[str] | None, session: "SparkSession | None" = None
) -> int:
    """The exit code. `arguments` are the command line's if None is given; a session that is given is used, and left
    running."""
    job = parse_job(mode, description, arguments)
    return run_told(job.mode, job.table, job.surroundings.result, lambda: _do(job, session))


def _do(job: JobArguments, given_session: "SparkSession | None") -> Done:
    around = job.surroundings
    with lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake:
        info = find_table(lake.runtime, job.table)
        write = parse_request(**job.write)
        done = find_done(lake.runtime, info, write)
        if done is not None:
            return Done(snapshot=done)
        _check_can_succeed(lake, info, job, write)
        with (
            opened_session(f"{job.mode} {job.table}", around, given_session) as session,
            told_progress(session, around.progress),
            opened_rows(session, lake, info, job.source, write) as rows,
        ):
            return Done(snapshot=_write(lake.table(job.table), rows, job))


def _check_can_succeed(lake: Lake, table: TableInfo, job: JobArguments, write: WriteRequest) -> None:
    """Raises before one row is read, where no rows whatever could be published."""
    check_writable(lake.runtime, table, write)
    if job.mode == "upsert":
        check_keyed(table)
    if job.mode == "overwrite" and job.partitions != "dynamic":
        parse_target(table, job.partitions)


def _write(table: Table, rows: Any, job: JobArguments) -> Snapshot:
    match job.mode:
        case "append":
            return table.append(rows, **job.write)
        case "upsert":
            return table.upsert(rows, **job.write)
        case _:
            return table.overwrite(rows, job.partitions, **job.write)
