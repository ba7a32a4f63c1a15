"""What docs/concepts.md says of each of Paimon's bucket modes, row by row."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from lakelib import Table
from tests.acceptance.support import Engine, NewTable, data, rows_of

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("s", pa.string())])
LARGE = [(number, "ab"[number % 2], "x" * 200) for number in range(400)]
SMALL = [(1, "b", "new"), (2, "a", "new")]
OPTIONS = {"min_bucket_file_bytes": 2_000, "target_file_bytes": 65_536, "write_buffer_bytes": 1 << 20}


def _make(new_table: NewTable, buckets: Any, **options: Any) -> Table:
    return new_table(SCHEMA, primary_key=["id"], partition_by=["p"], buckets=buckets, options=OPTIONS | options)


def _places(table: Table, since: int) -> set[tuple[str, int, int]]:
    found = [file for file in table.files() if file.added_snapshot >= since]
    return {(file.partition["p"], file.depth, file.prefix) for file in found}


def _check_rows(engine: Engine, table: Table) -> None:
    expected = {(row[0], row[1]): row for row in (*LARGE, *SMALL)}
    assert rows_of(engine, table.scan()) == sorted(expected.values(), key=repr)


def test_hash_fixed(engine: Engine, new_table: NewTable) -> None:
    table = _make(new_table, 4, min_bucket_file_bytes=0)
    engine.write(table, "upsert", data(SCHEMA, *LARGE))
    assert _places(table, 1) == {(p, 2, prefix) for p in "ab" for prefix in range(4)}
    table = _make(new_table, 4)
    engine.write(table, "upsert", data(SCHEMA, *LARGE))
    engine.write(table, "upsert", data(SCHEMA, *SMALL))
    assert _places(table, 2) == {("a", 0, 0), ("b", 0, 0)}
    _check_rows(engine, table)


def test_hash_fixed_with_sparks_own_hash(new_table: NewTable, spark: SparkSession) -> None:
    """No function of ours is asked for: what Spark computes is the bucket of each row."""
    table = _make(new_table, 4, min_bucket_file_bytes=0)
    table.upsert(spark.createDataFrame(LARGE, "id bigint, p string, s string"), distribution="hash")
    bucket = sf.expr("shiftrightunsigned(xxhash64(id), 62)")
    for file in table.files():
        frame = spark.read.parquet(f"{table.location}/{file.path}")
        assert [row[0] for row in frame.select(bucket).distinct().collect()] == [file.prefix]


def test_key_dynamic(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], cross_partition=True, options=OPTIONS)
    engine.write(table, "upsert", data(SCHEMA, *LARGE))
    moved = [(number, "ba"[number % 2], "new") for number in range(0, 400, 3)]
    engine.write(table, "upsert", data(SCHEMA, *moved))
    expected = {row[0]: row for row in (*LARGE, *moved)}
    assert rows_of(engine, table.scan()) == sorted(expected.values(), key=repr)
    assert table.head is not None
    assert table.head.summary["deletes_written"] == len(moved)


def test_without_it_a_key_is_unique_in_its_partition(engine: Engine, new_table: NewTable) -> None:
    table = _make(new_table, "dynamic")
    engine.write(table, "upsert", data(SCHEMA, (1, "a", "old")))
    engine.write(table, "upsert", data(SCHEMA, (1, "b", "new")))
    assert rows_of(engine, table.scan()) == [(1, "a", "old"), (1, "b", "new")]
    engine.write(table, "delete_keys", data({"id": pa.int64(), "p": pa.string()}, (1, "a")))
    assert rows_of(engine, table.scan()) == [(1, "b", "new")]


def test_hash_dynamic_first_write(engine: Engine, new_table: NewTable) -> None:
    large = [(number, "a", "x" * 200) for number in range(2000)]
    table = _make(new_table, "dynamic")
    engine.write(table, "upsert", data(SCHEMA, *large))
    assert max(file.depth for file in table.files()) >= (1 if type(engine).__name__ == "ArrowEngine" else 0)
    assert table.scan().count() == 2000


def test_hash_dynamic_later_writes(engine: Engine, new_table: NewTable) -> None:
    """Any number of writers, none of which knows where a key is."""
    table = _make(new_table, "dynamic")
    engine.write(table, "upsert", data(SCHEMA, *LARGE))
    staged = [engine.write(table, "stage_upsert", data(SCHEMA, row)) for row in SMALL]
    for each in staged:
        each.publish()
    assert _places(table, 2) == {("a", 0, 0), ("b", 0, 0)}
    _check_rows(engine, table)


def test_bucket_unaware(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, partition_by=["p"])
    for _ in range(2):
        engine.write(table, "append", data(SCHEMA, *SMALL))
    assert {file.depth for file in table.files()} == {0}
    assert rows_of(engine, table.scan()) == sorted(2 * SMALL, key=repr)


def test_postpone_mode(engine: Engine, new_table: NewTable) -> None:
    table = _make(new_table, "postpone", target_file_bytes=65_536)
    large = [(number, "a", "x" * 200) for number in range(8000)]
    engine.write(table, "upsert", data(SCHEMA, *large))
    engine.write(table, "upsert", data(SCHEMA, (1, "a", "new")))
    assert {file.depth for file in table.files()} == {0}
    assert rows_of(engine, table.scan(where="id = 1")) == [(1, "a", "new")]
    table.compact(full=True)
    assert min(file.depth for file in table.files()) >= 1
    assert rows_of(engine, table.scan(where="id = 1")) == [(1, "a", "new")]


@pytest.mark.parametrize("compacted", [False, True])
def test_postpone_mode_with_fixed_buckets(engine: Engine, new_table: NewTable, compacted: bool) -> None:
    table = _make(new_table, "postpone", min_bucket_file_bytes=0)
    engine.write(table, "upsert", data(SCHEMA, *LARGE))
    engine.write(table, "upsert", data(SCHEMA, *SMALL))
    if compacted:
        table.compact(full=True)
    table.rebucket(4)
    assert _places(table, 1) == {(p, 2, prefix) for p in "ab" for prefix in range(4)}
    _check_rows(engine, table)
