"""The measurements on the orders table, for one kind of key: load, upsert, merge-on-read, point lookup."""

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakelib.model.files import FileSummary
from lakelib.model.options import TableOptions
from lakelib.rows.hash import hash_prefixes, key_hashes
from lakelib.table import Table
from tests.bench.data import BUCKETS, make_keys, make_table, make_upsert, orders_schema
from tests.bench.lab import Lab, Work, interleave, median_seconds, seconds_of
from tests.bench.report import Line, at_most, at_most_times, times_faster

_ROWS = 10_000_000
_UPSERT_ROWS = 500_000
_QUICK_DIVISOR = 10
_UPSERTS = 4
_LOAD_ROUNDS = 3
_READ_ROUNDS = 7
_LOOKUPS = 50
_SMALL_UPSERTS = 200
_TWO_COLUMNS = ["amount", "status"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bars:
    load: float
    upsert: float
    read: float
    read_two: float
    lookup_ms: float = 25


_BARS = {
    "int64": _Bars(load=2.0, upsert=15, read=1.6, read_two=2.2),
    "string": _Bars(load=4.0, upsert=8, read=2.5, read_two=4.0),
}


class Orders:
    """The table of one kind of key. What several measurements need is made when the first one asks for it."""

    def __init__(self, lab: Lab, key_kind: str) -> None:
        self._lab = lab
        self._key_kind = key_kind
        self._bars = _BARS[key_kind]
        self._rows = _ROWS // (_QUICK_DIVISOR if lab.quick else 1)
        self._upsert_rows = _UPSERT_ROWS // (_QUICK_DIVISOR if lab.quick else 1)
        self._upsert_seconds: list[float] = []
        self._numbers = count()

    def measure_load(self) -> Iterator[Line]:
        """Each on a clean disk cache: what one left to be written must not slow the other down."""
        ours, plain = [], []
        for _ in range(_LOAD_ROUNDS):
            table = self._create_table()
            ours.append(seconds_of(lambda table=table: table.upsert(self._data), settle_disk=True))
            self._lab.lake.drop_table(table.name)
            shutil.rmtree(table.location.removeprefix("file://"))
            plain.append(seconds_of(self._write_plain, settle_disk=True))
        note = f"best of {_LOAD_ROUNDS}; peer: pyarrow, two threads, one file each"
        yield at_most_times(self._name(f"load {self._rows:,} rows"), min(ours), min(plain), self._bars.load, note)

    def measure_upsert(self) -> Iterator[Line]:
        """Four upserts follow each other on the same table, here and there."""
        ours = sorted(self._upserted_seconds())
        theirs = sorted(self._delta_seconds())
        yield times_faster(
            self._name(f"upsert {self._upsert_rows:,} rows"),
            median(ours),
            median(theirs),
            self._bars.upsert,
            f"median of {_UPSERTS}; peer: delta-rs MERGE",
        )

    def measure_read(self) -> Iterator[Line]:
        """Merge-on-read after the upserts; the baseline reads exactly the same files."""
        table = self._upserted
        paths = [f"{table.location}/{file.path}".removeprefix("file://") for file in table.files()]
        cases: tuple[tuple[str, list[str] | None, float], ...] = (
            ("all columns", None, self._bars.read),
            ("two columns without the key", _TWO_COLUMNS, self._bars.read_two),
        )
        for title, columns, bar in cases:
            ours, plain = interleave(
                _READ_ROUNDS,
                [
                    lambda columns=columns: self._check_count(table.scan(columns=columns).to_arrow()),
                    lambda columns=columns: _read_plain(paths, columns or table.schema.names),
                ],
            )
            note = f"best of {_READ_ROUNDS}; peer: pyarrow, two threads, the same {len(paths)} files"
            yield at_most_times(self._name(f"merge-on-read, {title}"), min(ours), min(plain), bar, note)

    def measure_changes(self) -> Iterator[Line]:
        """Of the last upsert, after which nothing was compacted."""
        table = self._upserted
        own = [file for file in table.files() if file.added_snapshot == _UPSERTS + 1]
        paths = [f"{table.location}/{file.path}".removeprefix("file://") for file in own]
        ours, plain = interleave(
            _READ_ROUNDS,
            [
                lambda: self._check_changes(table.changes().to_arrow(), self._upsert_rows),
                lambda: _read_plain(paths, table.schema.names),
            ],
        )
        note = f"best of {_READ_ROUNDS}; peer: pyarrow, two threads, the same {len(paths)} files"
        yield at_most_times(self._name(f"changes of {self._upsert_rows:,} rows"), min(ours), min(plain), 1.5, note)
        more, fewer = interleave(_READ_ROUNDS, [self._many_files.changes().to_arrow, table.changes().to_arrow])
        many, few = len(self._many_files.files()), len(table.files())
        assert many >= 10 * few, f"{many} files are not ten times {few}"
        files = f"{many} files in place of {few}"
        note = f"peer: the same upsert; {files}"
        yield at_most_times(self._name("… of a table of many files"), min(more), min(fewer), 1.2, note)
        net, full = interleave(
            _READ_ROUNDS,
            [
                lambda: self._check_changes(table.changes(view="net").to_arrow(), self._upsert_rows // 2 * 3),
                lambda: self._check_count(table.scan().to_arrow()),
            ],
        )
        note = f"best of {_READ_ROUNDS}; peer: lakelib's merged read of all rows"
        yield at_most_times(self._name("… net of them"), min(net), min(full), 0.6, note)

    def measure_lookup(self) -> Iterator[Line]:
        """By key alone. Checks that a lookup opens just the files that can hold the key."""
        table = self._upserted
        numbers = np.random.default_rng(5).choice(self._rows, _LOOKUPS + 1, replace=False)
        keys = make_keys(numbers, self._key_kind)
        live = [_open_range(table, file) for file in table.files()]
        opened = sorted(_check_files(table, keys.slice(place, 1), live) for place in range(_LOOKUPS))
        wheres = [f"order_id = {_literal(key)}" for key in keys]
        _look_up(table, wheres.pop())
        seconds = median_seconds(_lookups(table, wheres))
        yield at_most(
            self._name("point lookup by key"),
            f"{seconds * 1000:.1f} ms",
            seconds * 1000,
            self._bars.lookup_ms,
            "ms",
            f"median of {_LOOKUPS} keys; opens {median(opened):g} of {len(live)} files: those that can hold the key",
        )

    @cached_property
    def _data(self) -> pa.Table:
        return make_table(self._rows, self._key_kind)

    @cached_property
    def _upserts(self) -> list[pa.Table]:
        return [make_upsert(self._upsert_rows, self._rows, self._key_kind, number) for number in range(_UPSERTS)]

    @cached_property
    def _upserted(self) -> Table:
        table = self._create_table()
        table.upsert(self._data)
        self._upsert_seconds = [
            seconds_of(lambda rows=rows: table.upsert(rows), settle_disk=True) for rows in self._upserts
        ]
        return table

    @cached_property
    def _many_files(self) -> Table:
        """As the other one, with ten times as many files."""
        table = self._create_table()
        few = self._data.slice(0, self._rows // 10)
        for start in range(0, few.num_rows, few.num_rows // _SMALL_UPSERTS):
            table.upsert(few.slice(start, few.num_rows // _SMALL_UPSERTS))
        table.upsert(self._upserts[-1])
        return table

    def _upserted_seconds(self) -> list[float]:
        assert self._upserted is not None
        return self._upsert_seconds

    def _delta_seconds(self) -> list[float]:
        from deltalake import DeltaTable, write_deltalake

        folder = self._lab.folder / f"delta-{self._key_kind}"
        write_deltalake(str(folder), self._data, partition_by=["dt"])
        seconds = [
            seconds_of(lambda rows=rows: self._merge_delta(DeltaTable(str(folder)), rows), settle_disk=True)
            for rows in self._upserts
        ]
        shutil.rmtree(folder)
        return seconds

    def _merge_delta(self, table: Any, rows: pa.Table) -> None:
        """The partition is part of the condition, as it is of lakelib's key: the peer prunes by it where it can."""
        merge = table.merge(
            rows,
            predicate="target.order_id = source.order_id and target.dt = source.dt",
            source_alias="source",
            target_alias="target",
        )
        counts = merge.when_matched_update_all().when_not_matched_insert_all().execute()
        merged = counts["num_target_rows_updated"], counts["num_target_rows_inserted"]
        assert merged == (self._upsert_rows // 2, self._upsert_rows // 2), f"the peer updated and inserted {merged}"

    def _create_table(self) -> Table:
        return self._lab.lake.create_table(
            f"bench.orders_{self._key_kind}_{next(self._numbers)}",
            orders_schema(self._key_kind),
            primary_key=["order_id"],
            partition_by=["dt"],
            buckets=BUCKETS,
        )

    def _write_plain(self) -> None:
        folder = self._lab.folder / "plain"
        folder.mkdir(exist_ok=True)
        half = self._rows // 2
        halves = [self._data.slice(0, half), self._data.slice(half)]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(_write_file, halves, [folder / "0.parquet", folder / "1.parquet"]))

    def _check_count(self, rows: pa.Table) -> None:
        expected = self._rows + _UPSERTS * (self._upsert_rows // 2)
        assert rows.num_rows == expected, f"{rows.num_rows} rows were read, {expected} are in the table"

    def _check_changes(self, rows: pa.Table, expected: int) -> None:
        assert rows.num_rows == expected, f"{rows.num_rows} changes were read, there are {expected}"

    def _name(self, operation: str) -> str:
        return f"{operation}, {self._key_kind} key"


def _write_file(rows: pa.Table, path: Path) -> None:
    options = TableOptions()
    pq.write_table(
        rows,
        path,
        compression=options.compression,
        compression_level=options.compression_level,
        row_group_size=options.row_group_rows,
    )


def _read_plain(paths: Sequence[str], columns: Sequence[str]) -> None:
    def read(path: str) -> pa.Table:
        return pq.read_table(path, columns=list(columns), use_threads=False, partitioning=None)

    with ThreadPoolExecutor(2) as pool:
        pa.concat_tables(pool.map(read, paths))


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeyRange:
    """The keys that a file can hold: its hash prefix, and what its own footer says."""

    depth: int
    prefix: int
    lower: Any
    upper: Any

    def can_hold(self, key: pa.Array) -> bool:
        prefix = int(hash_prefixes(key_hashes([key]), self.depth)[0])
        return prefix == self.prefix and self.lower <= key[0].as_py() <= self.upper


def _open_range(table: Table, file: FileSummary) -> _KeyRange:
    footer = pq.read_metadata(f"{table.location}/{file.path}".removeprefix("file://"))
    statistics = [footer.row_group(group).column(0).statistics for group in range(footer.num_row_groups)]
    return _KeyRange(
        depth=file.depth,
        prefix=file.prefix,
        lower=min(statistic.min for statistic in statistics),
        upper=max(statistic.max for statistic in statistics),
    )


def _check_files(table: Table, key: pa.Array, live: Sequence[_KeyRange]) -> int:
    """How many files a lookup of the key opens; no other file can hold the key."""
    possible = sum(file.can_hold(key) for file in live)
    opened = table.scan(where=f"order_id = {_literal(key[0])}").explain().files
    assert opened == possible, f"{opened} files are opened, {possible} can hold the key"
    return opened


def _lookups(table: Table, wheres: Sequence[str]) -> Iterator[Work]:
    return (lambda where=where: _look_up(table, where) for where in wheres)


def _look_up(table: Table, where: str) -> None:
    found = table.scan(where=where).to_arrow()
    assert found.num_rows == 1, f"{found.num_rows} rows where {where}"


def _literal(key: pa.Scalar) -> str:
    value = key.as_py()
    return f"'{value}'" if isinstance(value, str) else str(value)
