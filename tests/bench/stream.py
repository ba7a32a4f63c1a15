"""The measurement of a write from a stream: in a process of its own, whose memory is nobody else's.

Run as a program it is that process: `python -m tests.bench.stream WAREHOUSE CATALOG ROWS`.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

import lakelib
from tests.bench.data import BUCKETS, make_orders, orders_schema, scattered
from tests.bench.lab import Lab, resident_mb
from tests.bench.report import Line, at_most

_ROWS = 50_000_000
_BATCH_ROWS = 100_000
_MOST_MB = 700
_TABLE = "bench.streamed"


def measure_stream(lab: Lab) -> Iterator[Line]:
    rows = _ROWS // (10 if lab.quick else 1)
    command = [sys.executable, "-m", "tests.bench.stream", lab.warehouse, lab.catalog_url, str(rows)]
    answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    yield at_most(
        f"write from a reader of {rows:,} rows",
        f"{answer['seconds']:.1f} s",
        answer["peak_mb"],
        _MOST_MB,
        "MB",
        f"peak of the whole process; {answer['start_mb']:.0f} MB before the write, {answer['files']} files; "
        f"{answer['making_seconds']:.1f} s of it went into making the rows",
    )
    lab.lake.drop_table(_TABLE)


def _write_stream(warehouse: str, catalog_url: str, row_count: int) -> dict[str, float]:
    with lakelib.connect(warehouse, catalog_url) as lake:
        schema = orders_schema("int64")
        table = lake.create_table(_TABLE, schema, primary_key=["order_id"], partition_by=["dt"], buckets=BUCKETS)
        source = _Source(row_count)
        start_mb = resident_mb()
        start = time.perf_counter()
        table.upsert(pa.RecordBatchReader.from_batches(schema, source.batches()))
        seconds = time.perf_counter() - start
        return {
            "seconds": seconds,
            "making_seconds": source.seconds,
            "start_mb": start_mb,
            "peak_mb": resident_mb("VmHWM"),
            "files": len(table.files()),
        }


class _Source:
    """Orders made while they are read."""

    def __init__(self, row_count: int) -> None:
        self._row_count = row_count
        self.seconds = 0.0

    def batches(self) -> Iterator[pa.RecordBatch]:
        for first in range(0, self._row_count, _BATCH_ROWS):
            start = time.perf_counter()
            numbers = np.arange(first, min(first + _BATCH_ROWS, self._row_count))
            batch = make_orders(scattered(numbers), "int64", seed=first)
            self.seconds += time.perf_counter() - start
            yield batch


if __name__ == "__main__":
    print(json.dumps(_write_stream(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
