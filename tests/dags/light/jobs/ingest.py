"""jobs/ingest.py, but for a file `_ERRORED` beside those of a partition: it stands for a gate that cannot be asked."""

import os
import sys
from dataclasses import replace
from pathlib import Path

from lakelib import RetryableError
from lakelib.cli import job as jobs
from lakelib.cli.command import Session, Start
from lakelib.cli.main import main
from lakelib.pipeline.outcome import Outcome


def carry_out(session: Session, name: str, job: jobs.Job) -> int:
    def work() -> Outcome:
        if Path(os.environ["LANDING"], "feed", job.arguments.partition, "_ERRORED").exists():
            raise RetryableError("The gate cannot be asked.", kind="gate_errored", remedy="Try again.")
        return job.work()

    return jobs.carry_out(session, name, replace(job, work=work))


sys.exit(main(["ingest", *sys.argv[1:]], Start(job="ingest", carry_out=carry_out)))
