"""The Delta log: what telling of an upsert costs, how fast a log catches up, and what others read through it, and
through DuckLake's views."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq

from lakelib.table import Table
from tests.bench.data import BUCKETS, make_table, make_upsert, orders_schema
from tests.bench.lab import Lab, interleave, seconds_of
from tests.bench.report import Line, at_least, at_most, at_most_times
from tests.delta_readers import duckdb_with_delta, folder_of
from tests.ducklake_readers import attached

_ROWS = 10_000_000
_UPSERT_ROWS = 500_000
_UPSERTS = 4
_COMMITS = 1000
_KEYS = 700
_ROUNDS = 7
_TELL_TIMES, _TELL_SECONDS, _CAUGHT_UP, _READ_TIMES = 2.0, 1.0, 100, 2.0


def measure_delta(lab: Lab) -> Iterator[Line]:
    yield from _catching_up(lab)
    yield from _telling(lab)


def _catching_up(lab: Lab) -> Iterator[Line]:
    """Without a key, and with one, where each commit supersedes rows of others."""
    count = _COMMITS // (10 if lab.quick else 1)
    for title, key in (("appends", []), ("upserts", ["id"])):
        table = lab.lake.create_table(f"bench.small_{title}", "id bigint NOT NULL, value string", primary_key=key)
        for number in range(count):
            table.append(pa.table({"id": [number % _KEYS], "value": ["x"]}))
        seconds = seconds_of(table.export_delta, settle_disk=True)
        assert table.export_delta().is_complete
        yield at_least(f"{count:,} small {title} told of", count / seconds, _CAUGHT_UP, "versions/s")


def _telling(lab: Lab) -> Iterator[Line]:
    """Of each upsert: the masks and the version, beside the upsert itself."""
    divisor = 10 if lab.quick else 1
    rows, upsert_rows = _ROWS // divisor, _UPSERT_ROWS // divisor
    table = lab.lake.create_table(
        "bench.told", orders_schema("int64"), primary_key=["order_id"], partition_by=["dt"], buckets=BUCKETS
    )
    table.upsert(make_table(rows, "int64"))
    table.export_delta()
    upserts, exports = [], []
    for number in range(_UPSERTS):
        batch = make_upsert(upsert_rows, rows, "int64", number)
        upserts.append(seconds_of(lambda batch=batch: table.upsert(batch), settle_disk=True))
        exports.append(seconds_of(table.export_delta))
    note = f"median of {_UPSERTS}; peer: the upsert without the log"
    told, wrote = median(exports), median(upserts)
    yield at_most_times(f"masks and version of {upsert_rows:,} rows", told, wrote, _TELL_TIMES, note)
    yield at_most("… in seconds", f"{told:.2f} s", told, _TELL_SECONDS, "s", note)
    table.set_options({"ducklake": "head"})
    shown = seconds_of(table.show_in_ducklake)
    yield at_most("masks for DuckLake's views, all at once", f"{shown:.2f} s", shown, _TELL_SECONDS, "s")
    yield from _reading(lab, table)


def _reading(lab: Lab, table: Table) -> Iterator[Line]:
    """By DuckDB: the log, and one plain file of the same rows a partition."""
    plain = lab.folder / "plain-told"
    plain.mkdir()
    for number, batch in enumerate(table.scan().to_arrow().to_batches(max_chunksize=2**21)):
        pq.write_table(pa.Table.from_batches([batch]), plain / f"{number}.parquet", compression="zstd")
    question = "select count(*), sum(amount) from "
    told, seen = duckdb_with_delta().cursor(), attached(lab.lake)
    log = lambda: told.sql(f"{question} delta_scan('{folder_of(table)}')").fetchall()  # noqa: E731
    views = lambda: seen.sql(f"{question} lake.{table.name}").fetchall()  # noqa: E731
    files = lambda: told.sql(f"{question} read_parquet({_files(plain)})").fetchall()  # noqa: E731
    answers = {read()[0][0] for read in (log, views, files)}
    assert len(answers) == 1, answers
    by_log, by_views, theirs = map(min, interleave(_ROUNDS, [log, views, files]))
    note = f"best of {_ROUNDS}; peer: the same rows in plain Parquet, {table.head.summary['rows_in']:,} changed last"
    yield at_most_times("DuckDB's count and sum through the log", by_log, theirs, _READ_TIMES, note)
    yield at_most_times("… through DuckLake's views", by_views, theirs, _READ_TIMES, note)
    seen.close()


def _files(folder: Path) -> Sequence[str]:
    return sorted(map(str, folder.glob("*.parquet")))
