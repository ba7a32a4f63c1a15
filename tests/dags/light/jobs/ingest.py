"""jobs/ingest.py, but for a file `_ERRORED` beside those of a partition: it stands for a gate that cannot be asked."""

import os
import sys
from pathlib import Path

from jobs.common.ingest_arguments import parse_ingest
from jobs.common.ingesting import ingest
from jobs.common.outcome import Outcome, run_told
from lakelib import RetryableError


def work() -> Outcome:
    if Path(os.environ["LANDING"], "feed", job.partition, "_ERRORED").exists():
        raise RetryableError("The gate cannot be asked.", kind="gate_errored", remedy="Try again.")
    return ingest(job)


job = parse_ingest(None)
sys.exit(run_told("ingest", None, job.surroundings.result, work))
