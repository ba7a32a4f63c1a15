"""The measurements on Spark, local[2]: each beside what Spark does with plain Parquet, in the same session."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import count
from pathlib import Path
from statistics import median
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from lakelib.table import Table
from lakelib.work.spark.files import FileSource, find_all_files, open_files
from tests.bench.data import BUCKETS, make_table, make_upsert, orders_schema
from tests.bench.lab import Lab, interleave, seconds_of
from tests.bench.report import Line, at_most, at_most_times, show_seconds

_KEY = "int64"
_ROWS = 10_000_000
_UPSERT_ROWS = 500_000
_JOINED_ROWS = 20_000
_QUICK_DIVISOR = 10
_UPSERTS = 4
_PARTITIONS = 32
_SOURCE_FILES = 4
_LOAD_ROUNDS = 4
_READ_ROUNDS = 7
_TWO_COLUMNS = ["amount", "status"]
_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def measure_spark(lab: Lab) -> Iterator[Line]:
    with open_session() as session:
        orders = _SparkOrders(lab, session)
        yield from orders.measure_load()
        yield from orders.measure_upsert()
        yield from orders.measure_partitions()
        yield from orders.measure_read()
        yield from orders.measure_net()
        yield from orders.measure_clean_read()
        yield from orders.measure_join()


@contextmanager
def open_session(settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[SparkSession]:
    """`settings` are for those that are other ones."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in {**_SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


class _SparkOrders:
    """The orders as Parquet files, as data frames, and as tables of the lake."""

    def __init__(self, lab: Lab, session: SparkSession) -> None:
        self._lab = lab
        self._session = session
        divisor = _QUICK_DIVISOR if lab.quick else 1
        self._rows, self._upsert_rows = _ROWS // divisor, _UPSERT_ROWS // divisor
        self._numbers = count()

    def measure_load(self) -> Iterator[Line]:
        """The first round warms the JVM up for all."""
        frame = self._source
        storage = self._lab.lake.runtime.storage
        files = open_files(self._session, storage, find_all_files(storage, [str(self._source_folder)]), "parquet")
        tables: list[Table] = []
        ours, shuffled, direct, plain = interleave(
            _LOAD_ROUNDS,
            [
                lambda: self._load(frame, "auto", tables),
                lambda: self._load(frame, "hash", tables),
                lambda: self._load(files, "auto", tables),
                lambda: self._write_plain(frame),
            ],
            settle_disk=True,
        )
        note = (
            f"best of {_LOAD_ROUNDS}; each task writes its own runs; shuffled to one run a bucket: "
            f"{show_seconds(min(shuffled))}; peer: Spark's own Parquet write"
        )
        yield at_most_times(f"Spark: load {self._rows:,} rows of a data frame", min(ours), min(plain), 1.2, note)
        note = f"best of {_LOAD_ROUNDS}; tasks read the files with Arrow; peer: Spark's own Parquet read and write"
        yield at_most_times(f"Spark: load {self._rows:,} rows of files", min(direct), min(plain), 0.6, note)

    def measure_upsert(self) -> Iterator[Line]:
        table, frames = self._loaded, self._upserts
        ours, plain = [], []
        for frame in frames:
            ours.append(seconds_of(lambda frame=frame: table.upsert(frame), settle_disk=True))
            plain.append(seconds_of(lambda frame=frame: self._write_plain(frame), settle_disk=True))
        title = f"Spark: upsert {self._upsert_rows:,} rows"
        note = f"median of {_UPSERTS}; peer: Spark's own Parquet write of these rows"
        yield at_most(title, show_seconds(median(ours)), median(ours), 1.0, "s", note, show_seconds(median(plain)))
        yield at_most_times(f"{title}, beside plain Parquet", median(ours), median(plain), 2.5, note)

    def measure_partitions(self) -> Iterator[Line]:
        """A frame that the executors hold, of more partitions than should be runs: its rows are shuffled, for those of
        one key may be in any of them."""
        frame = self._frame_of(make_upsert(self._upsert_rows, self._rows, _KEY, _UPSERTS)).repartition(_PARTITIONS)
        frame = frame.persist()
        frame.count()
        tables: list[Table] = []
        ours, unshuffled, plain = interleave(
            _LOAD_ROUNDS,
            [
                lambda: self._load(frame, "auto", tables),
                lambda: self._load(frame, "none", tables),
                lambda: self._write_plain(frame),
            ],
            settle_disk=True,
        )
        frame.unpersist()
        note = (
            f"best of {_LOAD_ROUNDS}; a run of each task: {show_seconds(min(unshuffled))}; "
            "peer: Spark's own Parquet write of these rows"
        )
        title = f"Spark: upsert {self._upsert_rows:,} rows in {_PARTITIONS} partitions"
        yield at_most_times(title, min(ours), min(plain), 2.5, note)

    def measure_read(self) -> Iterator[Line]:
        """After the upserts, and after a load whose runs overlap; the peer reads the same files, superseded rows and
        all."""
        table = self._loaded
        assert len(table.history()) == 1 + _UPSERTS
        yield from self._measure_masked(table, "merge-on-read")
        unshuffled = self._create()
        unshuffled.upsert(self._source, distribution="none")
        yield from self._measure_masked(unshuffled, "read of an unshuffled load")

    def _measure_masked(self, table: Table, title: str) -> Iterator[Line]:
        """The first read finds the masks; those that are measured find them kept."""
        first = seconds_of(lambda: _consume(table.scan(columns=_TWO_COLUMNS).to_spark(self._session)))
        for what, columns, bar in (("two columns", _TWO_COLUMNS, 1.3), ("all columns", None, 1.15)):
            line = self._measure_scan(table, f"Spark: {title}, {what}", columns, bar)
            yield replace(line, note=f"{line.note}; the first read took {show_seconds(first)}")

    def measure_net(self) -> Iterator[Line]:
        """What the last upsert has changed, with the rows as they were before."""
        table = self._loaded
        expected = self._upsert_rows // 2 * 3
        found = table.changes(view="net").to_spark(self._session).count()
        assert found == expected, f"{found} changes were read, there are {expected}"
        net, full = interleave(
            _READ_ROUNDS,
            [
                lambda: _consume(table.changes(view="net").to_spark(self._session)),
                lambda: _consume(table.scan().to_spark(self._session)),
            ],
        )
        note = f"best of {_READ_ROUNDS}; peer: lakelib's merged read of all rows on Spark"
        title = f"Spark: net of the last {self._upsert_rows:,} rows"
        yield at_most_times(title, min(net), min(full), 1.0, note)

    def measure_clean_read(self) -> Iterator[Line]:
        table = self._create()
        table.upsert(self._source, distribution="hash")
        yield self._measure_scan(table, "Spark: read with no pending deltas", None, 1.1)

    def measure_join(self) -> Iterator[Line]:
        """Spark takes a join for the product of its sides: what is written of it must not have tasks for that."""
        left, right = (self._frame_of(make_table(_JOINED_ROWS, _KEY)) for _ in range(2))
        joined = left.join(right.select("order_id"), "order_id")
        auto, none = interleave(
            _LOAD_ROUNDS,
            [
                lambda: self._create().upsert(joined, distribution="auto"),
                lambda: self._create().upsert(joined, distribution="none"),
            ],
        )
        note = f"best of {_LOAD_ROUNDS}; peer: the same without a shuffle"
        yield at_most_times(f"Spark: upsert a join of {_JOINED_ROWS:,} rows", min(auto), min(none), 1.5, note)

    def _measure_scan(self, table: Table, title: str, columns: list[str] | None, bar: float) -> Line:
        paths = [f"{table.location}/{file.path}" for file in table.files()]
        names = columns or table.schema.names
        kept = self._session.read.parquet(*paths).select(*names)
        ours, plain, opened_before = interleave(
            _READ_ROUNDS,
            [
                lambda: _consume(table.scan(columns=columns).to_spark(self._session)),
                lambda: _consume(self._session.read.parquet(*paths).select(*names)),
                lambda: _consume(kept),
            ],
        )
        note = (
            f"best of {_READ_ROUNDS}; the session has opened the files before; peer: Spark opens and reads the same"
            f" {len(paths)} files as plain Parquet; {show_seconds(min(opened_before))} if it has opened them, too"
        )
        return at_most_times(title, min(ours), min(plain), bar, note)

    @property
    def _source_folder(self) -> Path:
        return self._lab.folder / "source"

    @cached_property
    def _source(self) -> DataFrame:
        rows = make_table(self._rows, _KEY)
        step = -(-rows.num_rows // _SOURCE_FILES)
        folder = self._source_folder
        folder.mkdir()
        for number in range(_SOURCE_FILES):
            pq.write_table(rows.slice(number * step, step), folder / f"{number}.parquet")
        return self._session.read.parquet(str(folder))

    @cached_property
    def _upserts(self) -> list[DataFrame]:
        return [self._frame_of(make_upsert(self._upsert_rows, self._rows, _KEY, each)) for each in range(_UPSERTS)]

    def _frame_of(self, rows: pa.Table) -> DataFrame:
        path = self._lab.folder / f"upsert-{next(self._numbers)}.parquet"
        pq.write_table(rows, path)
        return self._session.read.parquet(str(path))

    @cached_property
    def _loaded(self) -> Table:
        """A table to upsert into: one run a bucket."""
        table = self._create()
        table.upsert(self._source, distribution="hash")
        return table

    def _load(self, rows: DataFrame | FileSource, distribution: str, tables: list[Table]) -> None:
        """Into a new table. The table before it is gone by then: the disk has room for few."""
        while tables:
            _remove(self._lab, tables.pop())
        table = self._create()
        tables.append(table)
        table.upsert(rows, distribution=distribution)

    def _create(self) -> Table:
        return self._lab.lake.create_table(
            f"bench.spark_{next(self._numbers)}",
            orders_schema(_KEY),
            primary_key=["order_id"],
            partition_by=["dt"],
            buckets=BUCKETS,
        )

    def _write_plain(self, frame: DataFrame) -> None:
        frame.write.mode("overwrite").parquet(str(self._lab.folder / "spark-plain"))


def _remove(lab: Lab, table: Table) -> None:
    lab.lake.drop_table(table.name)
    shutil.rmtree(Path(table.location.removeprefix("file://")))


def _consume(frame: DataFrame) -> None:
    """Reads every row and every column, and keeps nothing."""
    frame.write.format("noop").mode("overwrite").save()
