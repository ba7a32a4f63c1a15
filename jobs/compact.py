"""Puts the files of tables together, where many writes have left many.

Run it as `python -m jobs.compact …` or `spark-submit jobs/compact.py …`; `--help` lists the arguments.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).resolve().parents[1]))  # spark-submit knows the folder of this file only

from lakelib.pipeline.compacting import compact, parse_compact
from lakelib.pipeline.outcome import run_told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(arguments: Sequence[str] | None = None, session: "SparkSession | None" = None) -> int:
    """The exit code. A session that is given is used, and left running."""
    job = parse_compact(arguments)
    return run_told("compact", None, job.surroundings.result, lambda: compact(job, session))


if __name__ == "__main__":
    sys.exit(main())
