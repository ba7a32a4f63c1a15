"""jobs/ingest.py without Spark: files of JSON lines are read, and commits are judged, in this process.

A file `_ERRORED` beside them stands for a gate that cannot be asked.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs.common import ingesting
from jobs.common.ingest_arguments import parse_ingest
from jobs.common.outcome import run_told
from jobs.common.partition_rows import PartitionRows
from lakelib import RetryableError
from lakelib.ops.arrival import Arrival


@contextmanager
def _opened_partition(*given: Any) -> Iterator[PartitionRows]:
    (arrival,) = (one for one in given if isinstance(one, Arrival))
    folder = Path(arrival.path).parent
    if (folder / "_ERRORED").exists():
        raise RetryableError("The gate cannot be asked.", kind="gate_errored", remedy="Try again.")
    rows = [json.loads(line) for file in sorted(folder.glob("*.json")) for line in file.read_text().splitlines()]
    yield PartitionRows(rows=pa.Table.from_pylist(rows), is_transformed=False)


ingesting.opened_session = lambda *given: nullcontext()  # type: ignore[assignment]
ingesting.told_progress = lambda *given: nullcontext()  # type: ignore[assignment]
ingesting.opened_partition = _opened_partition  # type: ignore[assignment]

job = parse_ingest(None)
sys.exit(run_told("ingest", None, job.surroundings.result, lambda: ingesting.ingest(job)))
