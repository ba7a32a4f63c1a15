"""Puts rows of files, or of a query, in place of what is in a table or in some of its partitions.

Run it as `python -m jobs.overwrite …` or `spark-submit jobs/overwrite.py …`; `--help` lists the arguments.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.append(str(Path(__file__).resolve().parents[1]))  # spark-submit knows the folder of this file only

from lakelib.pipeline.writing import run_job

DESCRIPTION = """\
Puts rows in place of all that is in the table, in the partitions of the rows (--partitions dynamic), or in the
partitions of given values (--partitions dt=2026-11-18). The rows come from files (--path) or from a query (--sql).
Readers see the old rows until they see the new ones.

  python -m jobs.overwrite shop.orders --partitions dt=2026-11-18 --path s3://landing/orders/2026-11-18
  spark-submit jobs/overwrite.py shop.daily --partitions dynamic --lake-view orders=shop.orders \\
      --sql 'SELECT dt, sum(amount) AS amount FROM orders GROUP BY dt'"""


def main(arguments: Sequence[str] | None = None, session: SparkSession | None = None) -> int:
    return run_job("overwrite", DESCRIPTION, arguments, session)


if __name__ == "__main__":
    sys.exit(main())
