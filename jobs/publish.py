"""Publishes staged commits: all of them become visible in one instant, or none does.

Run it as `python -m jobs.publish …`; `--help` lists the arguments. Spark is started only if a commit has to be judged
once more, because its tables have moved on since, and its spec has that done by Spark.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).resolve().parents[1]))  # spark-submit knows the folder of this file only

from lakelib.pipeline.deciding import parse_publish, publish
from lakelib.pipeline.outcome import run_told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(arguments: Sequence[str] | None = None, session: "SparkSession | None" = None) -> int:
    """The exit code. A session that is given is used if one is needed, and left running."""
    job = parse_publish(arguments)
    return run_told("publish", None, job.surroundings.result, lambda: publish(job, session))


if __name__ == "__main__":
    sys.exit(main())
