"""Upserts rows of files, or of a query, into a table: each takes the place of the one of its key.

Run it as `python -m jobs.upsert …` or `spark-submit jobs/upsert.py …`; `--help` lists the arguments.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.append(str(Path(__file__).resolve().parents[1]))  # spark-submit knows the folder of this file only

from lakelib.pipeline.writing import run_job

DESCRIPTION = """\
Upserts rows into a table: each row takes the place of the one of its primary key, or is new. The rows come from files
(--path) or from a query (--sql). They become visible in one instant, all or none.

  python -m jobs.upsert shop.orders --path s3://landing/orders/2026-11-18 --idempotency-key 'orders 2026-11-18:1'
  spark-submit jobs/upsert.py shop.orders --format csv --option header=true --path '/in/orders-*.csv.gz'"""


def main(arguments: Sequence[str] | None = None, session: SparkSession | None = None) -> int:
    return run_job("upsert", DESCRIPTION, arguments, session)


if __name__ == "__main__":
    sys.exit(main())
