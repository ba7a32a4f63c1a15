"""Appends rows of files, or of a query, to a table.

Run it as `python -m jobs.append …` or `spark-submit jobs/append.py …`; `--help` lists the arguments.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.append(str(Path(__file__).resolve().parents[1]))  # spark-submit knows the folder of this file only

from lakelib.pipeline.writing import run_job

DESCRIPTION = """\
Appends rows to a table. On a table with a primary key a row takes the place of the one of its key, as in an upsert.
The rows come from files (--path) or from a query (--sql). They become visible in one instant, all or none.

  python -m jobs.append shop.events --format json --path s3://landing/events/2026-11-18 --idempotency-key events:18
  spark-submit jobs/append.py shop.events --path /in/events --columns id,dt,kind --where 'amount > 0'"""


def main(arguments: Sequence[str] | None = None, session: SparkSession | None = None) -> int:
    return run_job("append", DESCRIPTION, arguments, session)


if __name__ == "__main__":
    sys.exit(main())
