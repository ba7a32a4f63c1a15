"""Brings one partition of a source to a table, as its spec says: a commit that is staged and judged, not yet published.

Run it as `python -m jobs.ingest …` or `spark-submit jobs/ingest.py …`; `--help` lists the arguments.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).resolve().parents[1]))  # spark-submit knows the folder of this file only

from lakelib.pipeline.ingest_arguments import parse_ingest
from lakelib.pipeline.ingesting import ingest
from lakelib.pipeline.outcome import run_told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(arguments: Sequence[str] | None = None, session: "SparkSession | None" = None) -> int:
    """The exit code. A session that is given is used, and left running."""
    job = parse_ingest(arguments)
    return run_told("ingest", None, job.surroundings.result, lambda: ingest(job, session))


if __name__ == "__main__":
    sys.exit(main())
