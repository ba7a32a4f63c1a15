"""Forgets old snapshots, and deletes the files that nothing needs any more. Needs no Spark.

Run it as `python -m jobs.maintain …`; `--help` lists the arguments.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # started by its path it knows the folder of this file only

from lakelib.pipeline.outcome import run_told
from lakelib.pipeline.upkeep import maintain, parse_maintain


def main(arguments: Sequence[str] | None = None, session: object = None) -> int:
    """The exit code. `session` is what other jobs take; this one leaves it alone."""
    job = parse_maintain(arguments)
    return run_told("maintain", None, job.surroundings.result, lambda: maintain(job))


if __name__ == "__main__":
    sys.exit(main())
