"""The measurements of compaction: beside plain reads and writes of the same bytes, and how much memory a task takes.

Run as a program it is the process whose memory is measured: `python -m tests.bench.compaction WAREHOUSE CATALOG ROWS`.
"""

import gc
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lakelib
from lakelib.model.options import TableOptions
from lakelib.table import Table
from tests.bench.data import BUCKETS, make_orders, make_table, make_upsert, orders_schema, scattered
from tests.bench.lab import Lab, interleave, resident_mb, seconds_of
from tests.bench.report import Line, at_most, at_most_times, show_seconds
from tests.bench.spark import open_session

_KEY = "int64"
_ROWS = 10_000_000
_UPSERT_ROWS = 500_000
_UPSERTS = 4
_QUICK_DIVISOR = 10
_ROUNDS = 3
_READ_ROUNDS = 7

_WIDE_ROWS = 100_000_000
"""Of orders in one bucket: 5 GB in memory."""
_WIDE_BATCH_ROWS = 100_000
_WIDE_TABLE = "bench.one_bucket"
_MOST_MB = 800


def measure_compaction(lab: Lab) -> Iterator[Line]:
    """In process and on Spark, each table made anew: once compacted, there is nothing to do."""
    tables = _Tables(lab)
    yield tables.measure(
        "compaction of {rows:,} rows after four upserts",
        lambda table: table.compact(full=True),
        _rewrite_plainly,
        1.5,
        "peer: pyarrow reads and writes the same files, two threads",
    )
    yield tables.measure_read()
    with open_session() as session:
        frame_of = session.read.parquet

        def rewrite_by_spark(paths: Sequence[str], folder: Path) -> None:
            frame_of(*paths).write.mode("overwrite").parquet(str(folder))

        yield tables.measure(
            "Spark: compaction of {rows:,} rows after four upserts",
            lambda table: table.compact(full=True, session=session),
            rewrite_by_spark,
            1.2,
            "peer: Spark reads and writes the same files",
        )


class _Tables:
    """Orders after four upserts."""

    def __init__(self, lab: Lab) -> None:
        divisor = _QUICK_DIVISOR if lab.quick else 1
        self._lab = lab
        self._rows, self._upsert_rows = _ROWS // divisor, _UPSERT_ROWS // divisor
        self._numbers = count()
        self._last: Table | None = None

    def measure(
        self,
        title: str,
        compact: Callable[[Table], Any],
        rewrite_plainly: Callable[[Sequence[str], Path], None],
        bar: float,
        note: str,
    ) -> Line:
        ours, plain = [], []
        for _ in range(_ROUNDS):
            table = self._new_table()
            paths = _paths(table)
            folder = self._lab.folder / "compacted"
            folder.mkdir()
            plain.append(seconds_of(lambda: rewrite_plainly(paths, folder), settle_disk=True))  # noqa: B023 - called here
            shutil.rmtree(folder)
            ours.append(seconds_of(lambda: compact(table), settle_disk=True))  # noqa: B023 - called here
            assert len(table.files()) == len({(file.prefix, str(file.partition)) for file in table.files()})
        rows = self._rows + _UPSERTS * self._upsert_rows // 2
        return at_most_times(title.format(rows=rows), min(ours), min(plain), bar, f"best of {_ROUNDS}; {note}")

    def measure_read(self) -> Line:
        """Of the table that was compacted last; the peer reads the same files."""
        table = self._last
        assert table is not None
        paths = _paths(table)
        ours, plain = interleave(_READ_ROUNDS, [lambda: table.scan().to_arrow(), lambda: _read_plainly(paths)])
        note = f"best of {_READ_ROUNDS}; peer: pyarrow, two threads, the same {len(paths)} files"
        return at_most_times("read after compaction", min(ours), min(plain), 1.1, note)

    def _new_table(self) -> Table:
        if self._last is not None:
            self._lab.lake.drop_table(self._last.name)
            shutil.rmtree(self._last.location.removeprefix("file://"))
        table = self._lab.lake.create_table(
            f"bench.compacted_{next(self._numbers)}",
            orders_schema(_KEY),
            primary_key=["order_id"],
            partition_by=["dt"],
            buckets=BUCKETS,
        )
        table.upsert(make_table(self._rows, _KEY))
        for number in range(_UPSERTS):
            table.upsert(make_upsert(self._upsert_rows, self._rows, _KEY, number))
        self._last = table
        gc.collect()
        return table


def _paths(table: Table) -> list[str]:
    return [f"{table.location}/{file.path}".removeprefix("file://") for file in table.files()]


def _rewrite_plainly(paths: Sequence[str], folder: Path) -> None:
    options = TableOptions()

    def rewrite(path: str) -> None:
        pq.write_table(
            pq.read_table(path, use_threads=False, partitioning=None),
            folder / Path(path).name,
            compression=options.compression,
            compression_level=options.compression_level,
            row_group_size=options.row_group_rows,
        )

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(rewrite, paths))


def _read_plainly(paths: Sequence[str]) -> None:
    def read(path: str) -> pa.Table:
        return pq.read_table(path, use_threads=False, partitioning=None)

    with ThreadPoolExecutor(2) as pool:
        pa.concat_tables(pool.map(read, paths))


def measure_compaction_memory(lab: Lab) -> Iterator[Line]:
    """Of a bucket with as many runs as a writer makes that streams into it, in a process of its own."""
    rows = _WIDE_ROWS // (_QUICK_DIVISOR if lab.quick else 1)
    table = lab.lake.create_table(_WIDE_TABLE, orders_schema(_KEY), primary_key=["order_id"], buckets=1)
    schema = orders_schema(_KEY)
    batches = (
        make_orders(scattered(np.arange(first, min(first + _WIDE_BATCH_ROWS, rows))), _KEY, seed=first)
        for first in range(0, rows, _WIDE_BATCH_ROWS)
    )
    table.upsert(pa.RecordBatchReader.from_batches(schema, batches))
    command = [sys.executable, "-m", "tests.bench.compaction", lab.warehouse, lab.catalog_url]
    answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    yield at_most(
        f"compaction of one bucket of {answer['gb']:.1f} GB",
        show_seconds(answer["seconds"]),
        answer["peak_mb"],
        _MOST_MB,
        "MB",
        f"peak of the whole process, {answer['start_mb']:.0f} MB before; {answer['runs']} runs",
    )
    lab.lake.drop_table(_WIDE_TABLE)
    shutil.rmtree(table.location.removeprefix("file://"))


def _compact_alone(warehouse: str, catalog_url: str) -> dict[str, float]:
    with lakelib.connect(warehouse, catalog_url) as lake:
        table = lake.table(_WIDE_TABLE)
        start_mb = resident_mb()
        start = time.perf_counter()
        done = table.compact(full=True)
        return {
            "seconds": time.perf_counter() - start,
            "start_mb": start_mb,
            "peak_mb": resident_mb("VmHWM"),
            "runs": done.runs_before,
            "gb": done.rows_before * _row_bytes() / 1e9,
        }


def _row_bytes() -> float:
    sample = make_orders(np.arange(1000), _KEY, seed=0)
    return sample.nbytes / sample.num_rows


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    print(json.dumps(_compact_alone(sys.argv[1], sys.argv[2])))
