"""The measurements of a table of very many columns: its files cost what its columns cost."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakelib.storage import parquet
from tests.bench.lab import Lab, interleave
from tests.bench.report import Line, at_most_times

_COLUMNS = 2000
_ROWS = 100
_ROUNDS = 5
_BAR = 3


def measure_wide(lab: Lab) -> Iterator[Line]:
    """An upsert, and a scan of the one file that a compaction leaves, beside pyarrow's writing and reading of the same
    rows on one thread."""
    rows = _make_rows(_COLUMNS // (10 if lab.quick else 1))
    table = lab.lake.create_table("bench.many_columns", rows.schema, primary_key=["c0"])
    path = str(lab.folder / "many-columns.parquet")
    wrote, wrote_plain = interleave(
        _ROUNDS, [partial(table.upsert, rows), partial(pq.write_table, rows, path, compression="zstd")]
    )
    table.compact(full=True)

    def read() -> None:
        parquet._footers.__init__(parquet.CACHE_BYTES)  # type: ignore[misc]  # the first read of a process
        assert table.scan().to_arrow().num_rows == _ROWS

    took, took_plain = interleave(_ROUNDS, [read, partial(pq.read_table, path, use_threads=False)])
    note = f"best of {_ROUNDS}; peer: pyarrow, one thread"
    yield at_most_times(
        f"upsert {_ROWS} rows of {rows.num_columns:,} columns", min(wrote), min(wrote_plain), _BAR, note
    )
    yield at_most_times("… scan all columns", min(took), min(took_plain), _BAR, note)


def _make_rows(column_count: int) -> pa.Table:
    random = np.random.default_rng(1)
    makers = (
        lambda: random.integers(0, 1000, _ROWS),
        lambda: random.random(_ROWS),
        lambda: [f"value {value}" for value in random.integers(0, 50, _ROWS)],
    )
    columns = {f"c{number}": makers[number % len(makers)]() for number in range(1, column_count)}
    return pa.table({"c0": np.arange(_ROWS)} | columns)
