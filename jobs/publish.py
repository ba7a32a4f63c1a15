"""Publishes staged commits: all of them become visible in one instant, or none does.

It is `lake publish --no-follow` for spark-submit: `spark-submit jobs/publish.py …` takes the same arguments.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # spark-submit knows the folder of this file only

from lakelib.cli.main import run_job


def main(arguments: Sequence[str] | None = None, session: object = None) -> int:
    """The exit code. A session that is given is used, and left running."""
    return run_job("publish", ["publish", "--no-follow"], arguments, session)


if __name__ == "__main__":
    sys.exit(main())
