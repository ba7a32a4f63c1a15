"""Compaction: fewer files, and no answer changes, whatever the runs are, at the head and at every older snapshot."""

import random
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest

from lakelib import InvalidInputError, Table
from lakelib.catalog.connect import Catalog
from lakelib.model.schema import COMMIT_COLUMN
from lakelib.settings import StorageSettings
from tests.acceptance.support import Engine, NewTable, data, in_places, in_process, stored_files

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64()), ("s", pa.string())])
SMALL = {"row_group_rows": 50, "target_file_bytes": 65_536, "write_buffer_bytes": 65_536}
LAYOUTS = [(1, 0), (8, 0), (8, 5_000), ("dynamic", 5_000), ("postpone", 0)]


@pytest.fixture(scope="module", params=["local", "s3"])
def storage_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


Content = list[tuple[Any, ...]]


def content(table: Table, at: int | None = None, where: str | None = None) -> Content:
    """All rows, with the commits that made them."""
    found = table.scan(at=at, where=where)
    columns = [*found.schema.names, COMMIT_COLUMN]
    rows = table.scan(columns=columns, at=at, where=where).to_arrow()
    return sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True), key=repr)


def contents(table: Table, known: Mapping[int, Content] = MappingProxyType({})) -> dict[int, Content]:
    """What the table holds at each of its snapshots; of some it is known already."""
    new = [snapshot.id for snapshot in table.history() if snapshot.id not in known]
    return {**known, **{snapshot: content(table, snapshot) for snapshot in new}}


def check_unchanged(table: Table, before: dict[int, Content]) -> None:
    assert content(table) == before[max(before)]
    assert {snapshot: content(table, snapshot) for snapshot in before} == before


def _work(engine: Engine, table: Table, seed: int, steps: int) -> None:
    """Loads, small upserts, and deletes of all kinds."""
    chance = random.Random(seed)
    for step in range(steps):
        count = 400 if step % 3 == 0 else 5
        rows = [(chance.randrange(500), chance.choice("ab"), step, "x" * chance.choice((1, 500))) for _ in range(count)]
        engine.write(table, "upsert", data(SCHEMA, *rows))
        gone = [(chance.randrange(500), chance.choice("ab")) for _ in range(20)]
        engine.write(table, "delete_keys", data({"id": pa.int64(), "p": pa.string()}, *gone))
        table.delete(f"v < {step - 3} and id < 250")


@in_places(("buckets", "least_bytes"), LAYOUTS, spark=(0, 2, 4), s3=(0, 3))
def test_compaction_changes_no_answer(engine: Engine, new_table: NewTable, buckets: Any, least_bytes: int) -> None:
    options = SMALL | {"min_bucket_file_bytes": least_bytes, "compact_runs": 3, "compact_delta_percent": 100}
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], buckets=buckets, options=options)
    before: dict[int, Content] = {}
    for seed in range(2):
        _work(engine, table, seed, 3)
        before, files = contents(table, before), len(table.files())
        done = engine.compact(table)
        assert len(table.files()) == files - done.files_before + done.files_after
        assert done.snapshot is not None
        assert done.snapshot.kind == "compact"
        check_unchanged(table, before)
    _work(engine, table, 3, 1)
    before = contents(table, before)
    engine.compact(table, full=True)
    check_unchanged(table, before)
    for number in (3, 250, 499):
        assert content(table, where=f"id = {number}") == [row for row in before[max(before)] if row[0] == number]
    assert sum(file.row_count for file in table.files()) == len(before[max(before)])
    assert "0 merge" in str(table.scan().explain()).split("which ")[1]
    assert engine.compact(table, full=True).snapshot is None


@pytest.mark.parametrize("buckets", [4, "dynamic"])
def test_late_rows_stay_deleted_after_a_compaction(engine: Engine, new_table: NewTable, buckets: Any) -> None:
    options = {"min_bucket_file_bytes": 0}
    schema = {"id": pa.int64(), "seq": pa.int64(), "v": pa.string()}
    table = new_table(
        "id bigint, seq bigint, v string", primary_key=["id"], sequence_by=["seq"], buckets=buckets, options=options
    )
    engine.write(table, "upsert", data(schema, *((number, 5, "first") for number in range(40))))
    engine.write(table, "upsert", data(schema, *((number, 4, "late") for number in range(0, 40, 2))))
    table.delete("id < 10")
    before = contents(table)
    engine.compact(table, full=True)
    check_unchanged(table, before)

    engine.write(table, "upsert", data(schema, (1, 4, "late"), (2, 6, "new"), (30, 4, "late"), (31, 6, "new")))

    found = {row[0]: row[2] for row in content(table)}
    assert 1 not in found
    assert (found[2], found[30], found[31]) == ("new", "first", "new")
    assert engine.compact(table, full=True).snapshot is not None
    assert {row[0]: row[2] for row in content(table)} == found
    assert engine.compact(table, full=True).snapshot is None


def test_of_equal_sequences_the_later_commit_still_wins_after_a_compaction(engine: Engine, new_table: NewTable) -> None:
    table = new_table(
        "id bigint, seq double, v bigint",
        primary_key=["id"],
        sequence_by=["seq"],
        options={"compact_runs": 3, "compact_delta_percent": 10_000},
    )
    schema = {"id": pa.int64(), "seq": pa.float64(), "v": pa.int64()}
    for step in range(9):
        nan_or_null = (float("nan"), None)[step % 2]
        engine.write(table, "upsert", data(schema, (1, 0.0 if step % 2 else -0.0, step), (2, nan_or_null, step)))
        engine.compact(table)
        found = {row[0]: row[2] for row in content(table)}
        assert found == {1: step, 2: step - step % 2}


def test_runs_of_different_schemas_become_one_of_the_newest(engine: Engine, new_table: NewTable) -> None:
    table = new_table("id bigint, a int, b string, c float", primary_key=["id"], buckets=2)
    old = {"id": pa.int64(), "a": pa.int32(), "b": pa.string(), "c": pa.float32()}
    engine.write(table, "upsert", data(old, *((number, number, f"b{number}", 0.5) for number in range(30))))
    table.evolve(add=[("d", "array<int>")], rename={"b": "bb"}, widen={"a": "bigint", "c": "double"})
    new = {"id": pa.int64(), "a": pa.int64(), "bb": pa.string(), "c": pa.float64(), "d": pa.list_(pa.int32())}
    engine.write(table, "upsert", data(new, *((number, 2**40, "new", 0.25, [number]) for number in range(20, 40))))
    table.evolve(drop=["bb"], add=[("b", "bigint")])
    table.delete("id in (0, 7, 14, 21, 28, 35)")
    before = contents(table)

    engine.compact(table, full=True)

    check_unchanged(table, before)
    assert content(table)[0] == (1, 1, 0.5, None, None, 1)
    assert len(table.files()) == 1


def test_a_changed_number_of_buckets_takes_effect(
    engine: Engine, new_table: NewTable, lake: Any, storage: StorageSettings
) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], buckets=2, options={"min_bucket_file_bytes": 0})
    _work(engine, table, 5, 2)
    for depth in (3, 1, 0):
        _set_depth(lake.runtime.catalog, table, depth)
        engine.write(table, "upsert", data(SCHEMA, *((number, "a", depth, "x") for number in range(60))))
        before = contents(table)
        engine.compact(table, full=True)
        assert {file.depth for file in table.files()} == {depth}
        check_unchanged(table, before)
        assert engine.compact(table, full=True).snapshot is None


def _set_depth(catalog: Catalog, table: Table, depth: int) -> None:
    statement = b"update lake.\"table\" set bucket_depth = %s where namespace || '.' || name = %s"
    catalog.run(lambda db: db.execute(statement, (depth, table.name)))


def test_an_append_table_keeps_the_order_of_its_rows(engine: Engine, new_table: NewTable) -> None:
    table = new_table("id bigint, v string", options={"row_group_rows": 7})
    for step in range(7):
        table.append(data({"id": pa.int64(), "v": pa.string()}, *((10 * step + n, "x") for n in range(5))))
    table.delete("id in (12, 33)")
    before, order = contents(table), table.scan().to_arrow().column("id").to_pylist()

    done = engine.compact(table)

    check_unchanged(table, before)
    assert done.files_before == 6
    assert len(table.files()) == 1
    assert table.scan().to_arrow().column("id").to_pylist() == order
    assert engine.compact(table, full=True).snapshot is None


def test_only_the_partitions_asked_for_are_compacted(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], buckets=1)
    for step in range(2):
        engine.write(table, "upsert", data(SCHEMA, (1, "a", step, ""), (2, "b", step, ""), (3, None, step, "")))
    before = contents(table)

    done = engine.compact(table, full=True, where="p is null or p = 'b'")

    check_unchanged(table, before)
    assert done.partitions == 2
    files = Counter(file.partition["p"] for file in table.files())
    assert files[None] == files["b"] == 1
    assert files["a"] > 1
    with pytest.raises(InvalidInputError, match="other columns"):
        engine.compact(table, where="v = 1")
    assert engine.compact(table, full=True, where="p = 'zzz'").snapshot is None


def test_a_table_whose_rows_are_all_deleted_has_no_file_left(
    engine: Engine, new_table: NewTable, storage: StorageSettings
) -> None:
    table = new_table(SCHEMA, primary_key=["id"], buckets=2)
    engine.write(table, "upsert", data(SCHEMA, (1, "a", 1, ""), (2, "b", 1, "")))
    table.delete("id > 0")
    stored = stored_files(table, storage)

    engine.compact(table, full=True)

    assert list(table.files()) == []
    assert content(table) == []
    assert stored_files(table, storage) == stored
    assert engine.compact(table).snapshot is None


def test_keys_and_values_of_every_kind_are_kept(engine: Engine, new_table: NewTable) -> None:
    schema = pa.schema(
        [
            ("k", pa.string()),
            ("n", pa.decimal128(38, 10)),
            ("b", pa.binary()),
            ("d", pa.date32()),
            ("t", pa.timestamp("us", "UTC")),
            ("f", pa.float64()),
            ("l", pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]))),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("z", pa.struct([("q", pa.float32())])),
        ]
    )
    options = {"min_bucket_file_bytes": 0}
    table = new_table(schema, primary_key=["k", "n", "b"], partition_by=["d"], buckets=4, options=options)
    for step in range(3):
        rows = [
            (
                ("", "ä\x00", "é" * 20, "é" * 20 + "x")[number % 4],
                Decimal(number - 5).scaleb(-(number % 10)),
                bytes([number % 3]) * (number % 5),
                (date(1969, 12, 31), None)[number % 2],
                datetime(1800 + number, 1, 1, tzinfo=UTC),
                (float("nan"), -0.0, None, 1e300)[(number + step) % 4],
                None if number % 3 else [{"x": step, "y": None}, None],
                [("a", step)] if number % 2 else None,
                {"q": None},
            )
            for number in range(step, 20 + step)
        ]
        table.upsert(data(schema, *rows))
    before = {snapshot: repr(found) for snapshot, found in contents(table).items()}

    engine.compact(table, full=True)

    assert {snapshot: repr(content(table, snapshot)) for snapshot in before} == before
    assert repr(content(table)) == before[3]


@in_process
def test_files_are_cut_at_the_target_size_and_read_without_a_merge(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], buckets=1, options=SMALL | {"row_group_rows": 100})
    for step in range(2):
        engine.write(table, "upsert", data(SCHEMA, *((number, "a", step, "x" * 300) for number in range(step, 2000))))
    before = contents(table)

    done = engine.compact(table, full=True)

    check_unchanged(table, before)
    assert done.files_after > 4
    assert done.runs_after == 1
    assert table.scan().explain().splits_merged == 0
    assert table.scan(where="id = 1234").explain().files == 1
    assert content(table, where="id = 1234 and v = 1") == [(1234, "a", 1, "x" * 300, 2)]
    assert engine.compact(table, full=True).snapshot is None


def test_the_result_says_what_was_done(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], buckets=1)
    assert str(engine.compact(table)) == f"nothing to compact in {table.name}"
    for step in range(3):
        engine.write(table, "upsert", data(SCHEMA, (1, "a", step, ""), (step, "a", step, "")))
    files, rows = list(table.files()), sum(file.row_count for file in table.files())

    done = engine.compact(table)

    assert (done.files_before, done.files_after) == (len(files), 1)
    assert (done.rows_before, done.rows_after) == (rows, 3)
    assert done.bytes_before == sum(file.size_bytes for file in files)
    assert done.bytes_after == next(iter(table.files())).size_bytes
    assert done.snapshot == table.head
    assert table.head is not None
    assert table.head.summary["files_removed"] == len(files)
    assert f"compacted {table.name}: {len(files)} files" in repr(done)
