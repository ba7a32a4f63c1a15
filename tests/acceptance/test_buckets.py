"""Buckets and order: however keys are spread over files, and whenever rows arrive, the newest row of a key is read."""

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakelib import Table
from lakelib.settings import StorageSettings
from tests.acceptance.support import Engine, NewTable, data, in_places, in_process, refused, rows_of

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64()), ("s", pa.string())])
SMALL = {"row_group_rows": 7, "target_file_bytes": 65_536, "write_buffer_bytes": 65_536}
LAYOUTS = [(1, 0), (8, 0), (8, 5_000), ("dynamic", 5_000), ("postpone", 0)]


@pytest.fixture(scope="module", params=["local", "s3"])
def storage_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _work(engine: Engine, table: Table, seed: int) -> dict[tuple[int, str], tuple[Any, ...]]:
    """Loads, small upserts and deletes of all kinds; what the table must then hold."""
    chance = random.Random(seed)
    expected: dict[tuple[int, str], tuple[Any, ...]] = {}
    for step in range(8):
        count = 400 if step % 3 == 0 else 5
        rows = [(chance.randrange(500), chance.choice("ab"), step, "x" * chance.choice((1, 500))) for _ in range(count)]
        engine.write(table, "upsert", data(SCHEMA, *rows))
        expected |= {(row[0], row[1]): row for row in rows}
        gone = [(chance.randrange(500), chance.choice("ab")) for _ in range(20)]
        engine.write(table, "delete_keys", data({"id": pa.int64(), "p": pa.string()}, *gone))
        expected = {key: row for key, row in expected.items() if key not in gone}
        table.delete(f"v < {step - 3} and id < 250")
        expected = {key: row for key, row in expected.items() if not (row[2] < step - 3 and row[0] < 250)}
    return expected


@in_places(("buckets", "least_bytes"), LAYOUTS, spark=(1, 3), s3=(2, 4))
def test_buckets_never_change_what_is_read(
    engine: Engine, new_table: NewTable, storage_kind: str, buckets: Any, least_bytes: int
) -> None:
    row_group_rows = 7 if storage_kind == "local" else 500
    options = SMALL | {"min_bucket_file_bytes": least_bytes, "row_group_rows": row_group_rows}
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], buckets=buckets, options=options)
    expected = _work(engine, table, 7)
    assert rows_of(engine, table.scan()) == sorted(expected.values(), key=repr)
    for number in (3, 250, 499):
        wanted = [row for row in expected.values() if row[0] == number]
        assert rows_of(engine, table.scan(where=f"id = {number}")) == sorted(wanted, key=repr)
    some = sorted([(row[3],) for row in expected.values() if row[2] == 6])
    assert rows_of(engine, table.scan(columns=["s"], where="v = 6")) == some


@in_process
def test_a_small_write_is_shallow_and_a_load_is_deep(engine: Engine, new_table: NewTable) -> None:
    options = SMALL | {"min_bucket_file_bytes": 5_000}
    table = new_table(SCHEMA, primary_key=["id"], buckets=4, options=options)
    engine.write(table, "upsert", data(SCHEMA, *((number, "a", 0, "x" * 100) for number in range(1000))))
    assert sorted((file.depth, file.prefix) for file in table.files()) == [(2, 0), (2, 1), (2, 2), (2, 3)]
    engine.write(table, "upsert", data(SCHEMA, *((number, "a", 1, "y") for number in range(0, 1000, 200))))
    assert sorted(file.depth for file in table.files()) == [0, 2, 2, 2, 2]
    assert table.scan(where="v = 1").count() == 5
    assert table.scan().count() == 1000


def test_a_stream_larger_than_the_buffer_is_several_runs_of_which_the_last_wins(
    engine: Engine, new_table: NewTable
) -> None:
    table = new_table(SCHEMA, primary_key=["id"], buckets=2, options=SMALL | {"min_bucket_file_bytes": 0})
    batches = [
        pa.record_batch(
            [pa.array(range(40)), pa.array(["a"] * 40), pa.array([run] * 40), pa.array(["x" * 2000] * 40)],
            schema=SCHEMA,
        )
        for run in range(5)
    ]
    engine.write(table, "upsert", pa.RecordBatchReader.from_batches(SCHEMA, batches))
    assert len(table.files()) > 2
    assert rows_of(engine, table.scan(columns=["id", "v"])) == sorted([(number, 4) for number in range(40)], key=repr)


@pytest.fixture(params=[4, "dynamic", "postpone"])
def sequenced(request: pytest.FixtureRequest, new_table: NewTable) -> Callable[..., Table]:
    def make(sequence_by: list[str], schema: Any = "id bigint, a double, b string, v string") -> Table:
        options = {"min_bucket_file_bytes": 0}
        return new_table(schema, primary_key=["id"], sequence_by=sequence_by, buckets=request.param, options=options)

    return make


def _versions(*rows: tuple[Any, ...]) -> pa.Table:
    return data({"id": pa.int64(), "a": pa.float64(), "b": pa.string(), "v": pa.string()}, *rows)


def test_late_data_does_not_replace_what_is_newer(engine: Engine, sequenced: Callable[..., Table]) -> None:
    table = sequenced(["a"])
    engine.write(table, "upsert", _versions((1, 5.0, None, "new"), (2, 5.0, None, "new")))
    engine.write(table, "upsert", _versions((1, 4.0, None, "late"), (2, 6.0, None, "newer")))
    assert rows_of(engine, table.scan(columns=["id", "v"])) == [(1, "new"), (2, "newer")]
    assert rows_of(engine, table.scan(columns=["v"], where="v = 'late'")) == []


def test_of_equal_sequences_the_later_commit_wins(engine: Engine, sequenced: Callable[..., Table]) -> None:
    table = sequenced(["a"])
    for value in ("first", "second"):
        engine.write(table, "upsert", _versions((1, 0.0 if value == "first" else -0.0, None, value)))
    assert rows_of(engine, table.scan(columns=["v"])) == [("second",)]


def test_a_sequence_orders_null_lowest_and_nan_highest(engine: Engine, sequenced: Callable[..., Table]) -> None:
    table = sequenced(["a", "b"])
    ascending = [
        (None, None),
        (None, "x"),
        (float("-inf"), None),
        (1.0, None),
        (1.0, ""),
        (1.0, "ä"),
        (float("inf"), None),
    ]
    ascending.append((float("nan"), None))
    for number, (a, b) in enumerate(ascending):
        engine.write(table, "upsert", _versions((1, a, b, str(number)), (2, *ascending[-1 - number], str(number))))
        assert rows_of(engine, table.scan(columns=["v"], where="id = 1")) == [(str(number),)]
    assert rows_of(engine, table.scan(columns=["v"], where="id = 2")) == [("0",)]


def test_within_a_batch_the_sequence_decides_too(engine: Engine, sequenced: Callable[..., Table]) -> None:
    table = sequenced(["a"])
    engine.write(table, "upsert", _versions((1, 2.0, None, "new"), (1, 1.0, None, "old"), (1, None, None, "null")))
    assert rows_of(engine, table.scan(columns=["v"])) == [("new",)]


def test_late_data_does_not_undo_a_delete(engine: Engine, sequenced: Callable[..., Table]) -> None:
    table = sequenced(["a"])
    engine.write(table, "upsert", _versions((1, 5.0, None, "x"), (2, 5.0, None, "x"), (3, 5.0, None, "x")))
    table.delete("id = 1")
    engine.write(table, "delete_keys", pa.table({"id": [2]}))
    engine.write(table, "delete_keys", pa.table({"id": [3], "a": [6.0]}))
    engine.write(table, "upsert", _versions((1, 4.0, None, "late"), (2, 4.0, None, "late"), (3, 5.5, None, "late")))
    assert rows_of(engine, table.scan()) == []
    engine.write(table, "upsert", _versions((1, 6.0, None, "new"), (2, 6.0, None, "new"), (3, 7.0, None, "new")))
    assert rows_of(engine, table.scan(columns=["id", "v"])) == [(1, "new"), (2, "new"), (3, "new")]


def test_a_late_delete_does_not_remove_what_is_newer(engine: Engine, sequenced: Callable[..., Table]) -> None:
    table = sequenced(["a"])
    engine.write(table, "upsert", _versions((1, 5.0, None, "x")))
    engine.write(table, "delete_keys", pa.table({"id": [1], "a": [4.0]}))
    assert rows_of(engine, table.scan(columns=["v"])) == [("x",)]


def test_a_delete_of_a_key_that_is_not_there_changes_nothing(engine: Engine, sequenced: Callable[..., Table]) -> None:
    table = sequenced(["a"])
    engine.write(table, "upsert", _versions((1, 5.0, None, "x")))
    engine.write(table, "delete_keys", pa.table({"id": [2]}))
    engine.write(table, "upsert", _versions((2, None, None, "y")))
    assert rows_of(engine, table.scan(columns=["id"])) == [(1,), (2,)]


def test_the_auxiliary_order_decides_within_a_batch_and_is_not_stored(
    engine: Engine, sequenced: Callable[..., Table]
) -> None:
    table = sequenced([])
    batch = _versions((1, 1.0, None, "old"), (1, 2.0, None, "new"), (1, 3.0, None, "null"), (2, 1.0, None, "x"))
    batch = batch.append_column("Arrived", pa.array([1, 2, None, 1]))
    engine.write(table, "upsert", batch, aux_order=["arrived"])
    assert table.schema.names == ["id", "a", "b", "v"]
    assert rows_of(engine, table.scan(columns=["id", "v"])) == [(1, "new"), (2, "x")]
    engine.write(table, "upsert", batch.slice(0, 1), aux_order=["arrived"])
    assert rows_of(engine, table.scan(columns=["v"], where="id = 1")) == [("old",)]


def test_the_sequence_comes_before_the_auxiliary_order(engine: Engine, sequenced: Callable[..., Table]) -> None:
    table = sequenced(["a"])
    batch = _versions((1, 2.0, None, "high"), (1, 1.0, None, "low"), (2, 1.0, None, "p"), (2, 1.0, None, "q"))
    engine.write(table, "upsert", batch.append_column("x", pa.array([1, 9, 9, 1])), aux_order=["x"])
    assert rows_of(engine, table.scan(columns=["id", "v"])) == [(1, "high"), (2, "p")]


@in_process
def test_an_auxiliary_order_beyond_one_buffer_is_refused(
    engine: Engine, new_table: NewTable, storage: StorageSettings
) -> None:
    table = new_table("id bigint, s string", primary_key=["id"], options=SMALL)
    batch = pa.record_batch({"id": [1, 2], "s": ["x" * 50_000] * 2, "x": [1, 2]})
    with refused(table, storage, "aux_order", "65536 bytes", "write_buffer_bytes"):
        engine.write(table, "upsert", pa.RecordBatchReader.from_batches(batch.schema, [batch]), aux_order=["x"])


def test_an_append_table_keeps_every_row_and_takes_no_order(
    engine: Engine, new_table: NewTable, storage: StorageSettings
) -> None:
    table = new_table("id bigint, v bigint")
    for _ in range(2):
        engine.write(table, "append", pa.table({"id": [1, 1], "v": [1, 1]}))
    assert rows_of(engine, table.scan()) == [(1, 1)] * 4
    for kind, word in (("upsert", "append"), ("delete_keys", "predicate")):
        with refused(table, storage, "no primary key", word):
            engine.write(table, kind, pa.table({"id": [1]}))
    with refused(table, storage, "aux_order", "no primary key"):
        engine.write(table, "append", pa.table({"id": [1], "x": [1]}), aux_order=["x"])


def test_a_delete_on_an_append_table_leaves_the_commits_of_other_rows(engine: Engine, new_table: NewTable) -> None:
    table = new_table("id bigint, v bigint")
    engine.write(table, "append", pa.table({"id": [1, 2], "v": [1, 1]}))
    engine.write(table, "append", pa.table({"id": [3, 4], "v": [1, 1]}))
    table.delete("id = 1 or id = 4")
    assert rows_of(engine, table.scan(columns=["id", "_commit"])) == [(2, 1), (3, 2)]
    assert rows_of(engine, table.scan(columns=["id"], where="_commit = 2")) == [(3,)]
