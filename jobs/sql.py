"""Carries out a statement of SQL over tables of the lake; or with --into a query over files and tables, whose rows are
written to a table.

It is `lake sql --yes` for spark-submit: `spark-submit jobs/sql.py …` takes the same arguments.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # spark-submit knows the folder of this file only

from lakelib.cli.main import run_job


def main(arguments: Sequence[str] | None = None, session: object = None) -> int:
    """The exit code. A session that is given is used, and left running."""
    return run_job("sql", ["sql", "--yes"], arguments, session)


if __name__ == "__main__":
    sys.exit(main())
