"""Stages and judges partitions of tables, and what is made from them, to be published in one transaction.

Run it as `python -m jobs.backfill …` or `spark-submit jobs/backfill.py …`; `--help` lists the arguments.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).resolve().parents[1]))  # spark-submit knows the folder of this file only

from lakelib.pipeline.backfill_arguments import parse_backfill
from lakelib.pipeline.backfilling import backfill
from lakelib.pipeline.outcome import run_told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(arguments: Sequence[str] | None = None, session: "SparkSession | None" = None) -> int:
    """The exit code. A session that is given is used, and left running."""
    job = parse_backfill(arguments)
    return run_told("backfill", None, job.surroundings.result, lambda: backfill(job, session))


if __name__ == "__main__":
    sys.exit(main())
