"""Ends staged commits that nobody is to see: they are rejected, and stay inspectable until they expire.

Run it as `python -m jobs.discard …`; `--help` lists the arguments.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from lakelib.pipeline.discarding import discard, parse_discard
from lakelib.pipeline.outcome import run_told


def main(arguments: Sequence[str] | None = None, session: object = None) -> int:
    """The exit code. A session is taken as by all jobs, and not used."""
    job = parse_discard(arguments)
    return run_told("discard", None, job.surroundings.result, lambda: discard(job))


if __name__ == "__main__":
    sys.exit(main())
