"""The measurements of keys across partitions: upserts half of whose rows move, beside the same upserts into a table in
which a key is unique in its partition."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from lakelib.table import Table
from tests.bench.data import BUCKETS, make_orders, orders_schema
from tests.bench.lab import Lab, seconds_of
from tests.bench.report import Line, at_most, at_most_times
from tests.bench.spark import open_session

_ROWS = 10_000_000
_UPSERT_ROWS = 500_000
_QUICK_DIVISOR = 10
_ROUNDS = 3
_FEW_PARTITIONS, _MANY_PARTITIONS = 10, 365
_MOST_TIMES = 5
_MOST_SECONDS_ON_SPARK = 3
_DAY = 20_454
"""2026-01-01."""

Numbers = npt.NDArray[np.int64]


@dataclass
class _Moving:
    """Orders, the day that each is in, and the upserts that move them."""

    row_count: int
    partitions: int
    days: Numbers = field(init=False)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.days = np.arange(self.row_count) % self.partitions

    def load(self) -> pa.Table:
        return self._orders(np.random.default_rng(1).permutation(self.row_count))

    def upsert(self, row_count: int) -> pa.Table:
        """Of distinct orders, half of which move."""
        chance = np.random.default_rng(100 + next(self.numbers))
        chosen = chance.choice(self.row_count, row_count, replace=False)
        moved = chosen[: -(-row_count // 2)]
        self.days[moved] = (self.days[moved] + chance.integers(1, self.partitions, len(moved))) % self.partitions
        return self._orders(chosen)

    def _orders(self, numbers: Numbers) -> pa.Table:
        rows = pa.Table.from_batches([make_orders(numbers, "int64", seed=next(self.numbers))])
        days = pa.array((_DAY + self.days[numbers]).astype(np.int32)).view(pa.date32())
        return rows.set_column(rows.schema.get_field_index("dt"), rows.schema.field("dt"), days)


def measure_cross_partition(lab: Lab) -> Iterator[Line]:
    rows = _ROWS // (_QUICK_DIVISOR if lab.quick else 1)
    upsert_rows = rows * _UPSERT_ROWS // _ROWS
    for partitions in (_FEW_PARTITIONS, _MANY_PARTITIONS):
        moving = _Moving(rows, partitions)
        plain, moves = (_make(lab, f"{name}_{partitions}", name == "moves") for name in ("plain", "moves"))
        load = moving.load()
        note = "peer: a table in which a key is unique in its partition"
        loads = [_seconds(table, load) for table in (plain, moves)]
        yield at_most_times(f"load {rows:,} rows into {partitions} partitions", loads[1], loads[0], 2, note)
        for count, bar in ((upsert_rows, _MOST_TIMES), (1, 1000)):
            times = _upsert(moving, (plain, moves), count)
            title = f"upsert {count:,} rows, half of them moved, of {partitions} partitions"
            told = note if bar == _MOST_TIMES else f"{note}; no bar"
            yield at_most_times(title, times[1], times[0], bar, f"best of {_ROUNDS}; {told}")
        assert moves.scan().count() == rows
        if partitions == _FEW_PARTITIONS:
            yield from _measure_spark(lab, moves, moving, upsert_rows)
        for table in (plain, moves):
            lab.lake.drop_table(table.name)


def _make(lab: Lab, name: str, moves: bool) -> Table:
    return lab.lake.create_table(
        f"bench.across_{name}",
        orders_schema("int64"),
        primary_key=["order_id"],
        partition_by=["dt"],
        buckets=BUCKETS,
        cross_partition=moves,
    )


def _upsert(moving: _Moving, tables: tuple[Table, Table], row_count: int) -> list[float]:
    """The best of some for each table, of the same rows."""
    seconds: list[list[float]] = [[], []]
    for _ in range(_ROUNDS):
        rows = moving.upsert(row_count)
        for times, table in zip(seconds, tables, strict=True):
            times.append(_seconds(table, rows))
    return [min(times) for times in seconds]


def _seconds(table: Table, rows: pa.Table) -> float:
    return seconds_of(lambda: table.upsert(rows), settle_disk=True)


def _measure_spark(lab: Lab, table: Table, moving: _Moving, row_count: int) -> Iterator[Line]:
    with open_session() as session:
        seconds = [_upsert_frame(lab, session, table, moving.upsert(row_count)) for _ in range(_ROUNDS)]
    title = f"Spark: upsert {row_count:,} rows, half of them moved"
    yield at_most(title, f"{min(seconds):.2f} s", min(seconds), _MOST_SECONDS_ON_SPARK, "s", f"best of {_ROUNDS}")


def _upsert_frame(lab: Lab, session: SparkSession, table: Table, rows: pa.Table) -> float:
    folder = Path(lab.folder) / "moved"
    folder.mkdir(exist_ok=True)
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(rows, path)
    frame = session.read.parquet(str(path))
    frame.count()
    return seconds_of(lambda: table.upsert(frame), settle_disk=True)
