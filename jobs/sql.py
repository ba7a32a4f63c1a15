"""Runs a query over files and tables of the lake, and writes its result to a table.

Run it as `python -m jobs.sql …` or `spark-submit jobs/sql.py …`; `--help` lists the arguments.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.append(str(Path(__file__).resolve().parents[1]))  # spark-submit knows the folder of this file only

from lakelib.pipeline.writing import run_job

DESCRIPTION = """\
Runs one query in Spark SQL, over views of files (--view) and of tables of the lake (--lake-view), and writes its rows
to a table. A table is seen as it is when the job begins, or as it was (NAME=TABLE@AT). The rows become visible in one
instant, all or none.

  python -m jobs.sql --into shop.daily --mode overwrite --partitions dynamic --lake-view orders=shop.orders \\
      --sql 'SELECT dt, count(*) AS orders FROM orders GROUP BY dt'
  spark-submit jobs/sql.py --into shop.orders --mode upsert --view raw=parquet:/in/orders --sql-file clean.sql"""


def main(arguments: Sequence[str] | None = None, session: SparkSession | None = None) -> int:
    return run_job(None, DESCRIPTION, arguments, session)


if __name__ == "__main__":
    sys.exit(main())
