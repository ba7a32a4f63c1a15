"""Brings one partition of a source to a table, as its spec says: a commit that is staged and judged, not yet published.

Run it as `python -m jobs.ingest …` or `spark-submit jobs/ingest.py …`; `--help` lists the arguments.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).resolve().parents[1]))  # spark-submit knows the folder of this file only

from jobs.common.ingest_arguments import IngestArguments, parse_ingest
from jobs.common.outcome import run_told
from jobs.common.sessions import start_ahead
from lakelib.errors import LakeError
from lakelib.specs.table_spec import load_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.common.outcome import Outcome


def main(arguments: Sequence[str] | None = None, session: "SparkSession | None" = None) -> int:
    """The exit code. A session that is given is used, and left running."""
    job = parse_ingest(arguments)
    return run_told("ingest", None, job.surroundings.result, lambda: _ingest(job, session))


def _ingest(job: IngestArguments, session: "SparkSession | None") -> "Outcome":
    with suppress(LakeError):  # what is wrong with a spec is said below
        if session is None and load_spec(job.spec).engine == "spark":
            start_ahead(job.surroundings.master)
    from jobs.common.ingesting import ingest  # Arrow and the rest load while the JVM starts

    return ingest(job, session)


if __name__ == "__main__":
    sys.exit(main())
