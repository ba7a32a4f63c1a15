"""jobs/ingest.py, but for a file `_ERRORED` beside those of a partition: it stands for a gate that cannot be asked."""

import os
import sys
from pathlib import Path

from lakelib import RetryableError
from lakelib.pipeline.ingest_arguments import parse_ingest
from lakelib.pipeline.ingesting import ingest
from lakelib.pipeline.outcome import Outcome, run_told


def work() -> Outcome:
    if Path(os.environ["LANDING"], "feed", job.partition, "_ERRORED").exists():
        raise RetryableError("The gate cannot be asked.", kind="gate_errored", remedy="Try again.")
    return ingest(job)


job = parse_ingest(None)
sys.exit(run_told("ingest", None, job.surroundings.result, work))
