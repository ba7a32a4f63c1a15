"""Tables in which a key is in one partition at most: a row that comes to another leaves its own in the same commit."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelib import ConflictError, InvalidInputError, Lake, Table
from lakelib.ops import evolve, moves
from lakelib.specs.suite import parse_suite
from lakelib.work import known_keys
from lakelib.work import moves as work_moves
from tests.acceptance.support import Engine, NewTable, data, in_process, raised, rows_of

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())])
KEYS = pa.schema([("id", pa.int64())])
Row = tuple[Any, ...]


@pytest.fixture(autouse=True)
def looked_for_by_whoever_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many rows: the keys of a few are looked up in process."""
    monkeypatch.setattr(moves, "_FEW_ROWS", 2)


@pytest.fixture
def table(new_table: NewTable) -> Table:
    return new_table(SCHEMA, primary_key=["id"], partition_by=["p"], buckets=4, cross_partition=True)


def _rows(*rows: Row) -> pa.Table:
    return data(SCHEMA, *rows)


def test_a_row_leaves_its_old_partition_in_the_commit_that_moves_it(engine: Engine, table: Table) -> None:
    engine.write(table, "upsert", _rows((1, "a", 1), (2, "a", 1), (3, "b", 1), (4, None, 1)))
    engine.write(table, "upsert", _rows((1, "b", 2), (3, None, 2), (4, "a", 2), (5, "c", 2)))
    expected = [(1, "b", 2), (2, "a", 1), (3, None, 2), (4, "a", 2), (5, "c", 2)]
    assert rows_of(engine, table.scan()) == expected
    assert rows_of(engine, table.scan(where="p = 'a'")) == [(2, "a", 1), (4, "a", 2)]
    assert rows_of(engine, table.scan(where="p is null")) == [(3, None, 2)]
    assert rows_of(engine, table.scan(at=1)) == [(1, "a", 1), (2, "a", 1), (3, "b", 1), (4, None, 1)]
    assert [each.id for each in table.history()] == [2, 1]
    engine.compact(table, full=True)
    assert rows_of(engine, table.scan()) == expected
    assert table.options["cross_partition"] is True


@pytest.mark.parametrize("few_rows", [known_keys._FEW_ROWS, 0])
def test_a_few_keys_are_looked_for_only_in_files_that_may_have_them(
    new_table: NewTable, monkeypatch: pytest.MonkeyPatch, few_rows: int
) -> None:
    """By what a process remembers of small files' keys, or by row groups' bounds and Bloom filters."""
    monkeypatch.setattr(known_keys, "_FEW_ROWS", few_rows)
    table = new_table(SCHEMA, primary_key=["id", "v"], partition_by=["p"], cross_partition=True)
    for start in range(0, 60_000, 30_000):
        ids = range(start, start + 30_000)
        table.upsert(data(SCHEMA, *((key, chr(ord("a") + key % 3), 1) for key in ids)))
    table.delete("id = 31")
    read: list[str] = []
    opened = known_keys.open_alike
    monkeypatch.setattr(
        known_keys, "open_alike", lambda *given: read.extend(file.path for file in given[2]) or opened(*given)
    )
    there: list[int] = []
    look = work_moves.files_with_keys
    monkeypatch.setattr(
        work_moves, "files_with_keys", lambda *given: (found := look(*given), there.append(len(found)))[0]
    )
    table.upsert(_rows((30, "b", 1), (31, "c", 1), (70_000, "a", 1)))
    table.upsert(_rows((30, "c", 1), (32, "a", 1), (70_001, "a", 1)))
    assert max(there) <= 4
    assert len(read) == len(set(read))
    assert bool(read) == bool(few_rows)
    expected = {(30, "c", 1), (31, "c", 1), (32, "a", 1), (70_000, "a", 1), (70_001, "a", 1)}
    found = table.scan(where="id in (30, 31, 32, 70000, 70001)").to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == sorted(expected)
    assert table.scan().count() == 60_002


@pytest.mark.parametrize("buckets", [1, 4, "dynamic", "postpone"])
def test_random_moves_leave_each_key_once(engine: Engine, new_table: NewTable, buckets: Any) -> None:
    options = {"min_bucket_file_bytes": 0, "write_buffer_bytes": 65_536}
    table = new_table(
        SCHEMA, primary_key=["id"], partition_by=["p"], buckets=buckets, cross_partition=True, options=options
    )
    chance, expected = random.Random(7), {}
    for number in range(6):
        rows = [(chance.randrange(300), chance.choice("abcdef"), number) for _ in range(200)]
        rows = list({row[0]: row for row in rows}.values())  # Spark's tasks have an order of their own
        engine.write(table, "upsert", _rows(*rows))
        expected |= {row[0]: row for row in rows}
        if number == 3:
            table.rebucket(2, session=getattr(engine, "session", None))
            gone = [key for key in expected if key % 5 == 0]
            table.delete_keys(data(KEYS, *((key,) for key in gone)))
            for key in gone:
                del expected[key]
    assert rows_of(engine, table.scan()) == sorted(expected.values(), key=repr)


@in_process
def test_of_one_batch_the_last_row_counts_whichever_partition_it_is_in(engine: Engine, new_table: NewTable) -> None:
    options = {"write_buffer_bytes": 65_536}
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], cross_partition=True, options=options)
    chance = random.Random(3)
    rows = [(chance.randrange(20_000), chance.choice("abc"), number) for number in range(60_000)]
    batches = [_rows(*rows[start : start + 5000]).to_batches()[0] for start in range(0, len(rows), 5000)]
    table.upsert(pa.RecordBatchReader.from_batches(batches[0].schema, batches))
    assert len({file.path.split("/")[-1].split("-")[0] for file in table.files()}) == 2  # rows, and what leaves
    assert rows_of(engine, table.scan()) == sorted({row[0]: row for row in rows}.values(), key=repr)


@pytest.mark.parametrize("key", ["text", "two"])
def test_keys_of_any_kind_move(engine: Engine, new_table: NewTable, key: str) -> None:
    schema = pa.schema([("k", pa.string()), ("n", pa.int32()), ("p", pa.date32()), ("v", pa.int64())])
    primary_key = ["k"] if key == "text" else ["n", "k"]
    table = new_table(schema, primary_key=primary_key, partition_by=["p"], cross_partition=True)
    expected: dict[Any, Row] = {}
    chance = random.Random(1)
    for number in range(3):
        rows = [(f"k{n}ä" * 3, n % 3, chance.randrange(3), number) for n in chance.sample(range(60), 40)]
        engine.write(table, "upsert", data(schema, *rows))
        expected |= {row[0]: row for row in rows}
    found = [(k, n, p.toordinal() - 719_163, v) for k, n, p, v in rows_of(engine, table.scan())]
    assert sorted(found) == sorted(expected.values())


@pytest.mark.parametrize("merged", [False, True])
def test_an_older_version_does_not_take_a_key_back(engine: Engine, new_table: NewTable, merged: bool) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], sequence_by=["v"], cross_partition=True)

    def upsert(*rows: Row) -> None:
        engine.write(table, "upsert", _rows(*rows))
        if merged:
            engine.compact(table, full=True)

    upsert((1, "a", 5), (2, "a", 5), (3, "a", 5), (4, "a", 5))
    upsert((1, "b", 7), (2, "b", 4), (3, "a", 6), (4, "b", None))
    assert rows_of(engine, table.scan()) == [(1, "b", 7), (2, "a", 5), (3, "a", 6), (4, "a", 5)]
    upsert((1, "a", 6), (2, "b", 5), (3, "c", 6), (4, "c", 5))
    expected = [(1, "b", 7), (2, "b", 5), (3, "c", 6), (4, "c", 5)]
    assert rows_of(engine, table.scan()) == expected
    upsert((1, "c", 6), (2, "c", 1), (3, "a", 5), (4, "a", 4))
    assert rows_of(engine, table.scan()) == expected
    upsert((1, "c", 7), (2, "a", 5), (3, "a", 7), (4, "a", 6))
    assert rows_of(engine, table.scan()) == [(1, "c", 7), (2, "a", 5), (3, "a", 7), (4, "a", 6)]


def test_commits_staged_beside_each_other_look_again(engine: Engine, lake: Lake, table: Table) -> None:
    engine.write(table, "upsert", _rows((1, "a", 0), (2, "a", 0)))
    staged = [
        engine.write(table, "stage_upsert", _rows((1, p, n), (2, p, n), (10 + n, p, n)))
        for n, p in enumerate("bcd", start=1)
    ]
    for one in staged:
        one.publish()
    rest = [(11, "b", 1), (12, "c", 2), (13, "d", 3)]
    assert rows_of(engine, table.scan()) == sorted([(1, "d", 3), (2, "d", 3), *rest], key=repr)
    staged = [engine.write(table, "stage_upsert", _rows((1, p, n), (2, "x", n))) for n, p in enumerate("ef", start=4)]
    assert rows_of(engine, staged[1].scan())[0] == (1, "f", 5)
    with lake.transaction() as together:
        for one in staged:
            together.add(one)
    assert rows_of(engine, table.scan()) == sorted([(1, "f", 5), (2, "x", 5), *rest], key=repr)


@in_process
def test_a_verdict_stands_where_what_came_has_none_of_the_keys(engine: Engine, lake: Lake, table: Table) -> None:
    gate = parse_suite(
        "{name: g, expectations: [{type: expect_column_values_to_not_be_null, kwargs: {column: v}, scope: merged}]}"
    )
    table.upsert(_rows((1, "a", 0), (2, "b", 0)))
    staged = table.stage_upsert(_rows((1, "c", 1)))
    assert staged.judge(gate).outcome.value == "accept"
    table.upsert(_rows((3, "b", 0)))
    staged.publish()
    staged = table.stage_upsert(_rows((1, "d", 2)))
    staged.judge(gate)
    table.upsert(_rows((1, "e", 1)))
    with raised(ConflictError, "verdict_stale"):
        lake.staged(staged.id).publish()
    staged.publish()  # it knows how it was judged
    assert rows_of(engine, table.scan()) == [(1, "d", 2), (2, "b", 0), (3, "b", 0)]
    assert table.upsert(_rows((1, "f", 3)), gate=gate).id == table.head.id  # type: ignore[union-attr]


def test_overwrites_take_keys_from_other_partitions(engine: Engine, table: Table) -> None:
    engine.write(table, "upsert", _rows((1, "a", 1), (2, "a", 1), (3, "b", 1), (4, "c", 1)))
    engine.write(table, "overwrite", _rows((3, "a", 2), (5, "a", 2), (1, "a", 2)), {"p": "a"})
    assert rows_of(engine, table.scan()) == [(1, "a", 2), (3, "a", 2), (4, "c", 1), (5, "a", 2)]
    engine.write(table, "overwrite", _rows((4, "b", 3), (1, "a", 3), (6, "a", 3)), "dynamic")
    assert rows_of(engine, table.scan()) == [(1, "a", 3), (4, "b", 3), (6, "a", 3)]
    engine.write(table, "upsert", _rows((7, "c", 4), (8, "c", 4), (9, "d", 4)))
    engine.write(table, "overwrite", _rows((9, "c", 5), (7, "c", 5), (4, "c", 5)), where="p = 'c'")
    assert rows_of(engine, table.scan()) == [(1, "a", 3), (4, "c", 5), (6, "a", 3), (7, "c", 5), (9, "c", 5)]
    engine.write(table, "overwrite", _rows((1, "d", 6), (2, "e", 6), (4, "d", 6)), where="v >= 5")
    assert rows_of(engine, table.scan()) == [(1, "d", 6), (2, "e", 6), (4, "d", 6), (6, "a", 3)]
    engine.write(table, "overwrite", _rows((1, "z", 7), (2, "z", 7), (3, "y", 7)))
    assert rows_of(engine, table.scan()) == [(1, "z", 7), (2, "z", 7), (3, "y", 7)]


@in_process
@pytest.mark.parametrize("sequence", [(), ("v",)])
def test_what_overtakes_an_overwrite_is_looked_at(engine: Engine, new_table: NewTable, sequence: Any) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], sequence_by=sequence, cross_partition=True)
    table.upsert(_rows((1, "a", 1), (2, "b", 1)))

    def late(others: Row, *rows: Row) -> pa.RecordBatchReader:
        """Another writer is faster than the one who reads these."""

        def batches() -> Iterator[pa.RecordBatch]:
            table.upsert(_rows(others))
            yield from _rows(*rows).to_batches()

        return pa.RecordBatchReader.from_batches(_rows().schema, batches())

    staged = table.stage_overwrite(_rows((2, "a", 5)), {"p": "a"})
    table.upsert(_rows((2, "c", 3)))
    with pytest.raises(ConflictError):
        staged.publish()
    table.overwrite(late((2, "d", 4), (2, "a", 5)), {"p": "a"})
    assert rows_of(engine, table.scan()) == [(2, "a", 5)]
    table.overwrite(late((2, "b", 6), (3, "a", 7), (2, "a", 7)), "dynamic")
    assert rows_of(engine, table.scan()) == [(2, "a", 7), (3, "a", 7)]
    table.upsert(late((3, "d", 8), (3, "c", 9), (2, "c", 9)))
    assert rows_of(engine, table.scan()) == [(2, "c", 9), (3, "c", 9)]
    if sequence:
        table.upsert(late((3, "d", 11), (3, "b", 10), (2, "b", 10)))
        assert rows_of(engine, table.scan()) == [(2, "b", 10), (3, "d", 11)]


def test_a_delete_by_key_finds_it_in_whichever_partition(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], cross_partition=True)
    engine.write(table, "upsert", _rows((1, "a", 1), (2, "b", 1), (3, "c", 1), (4, "d", 1)))
    engine.write(table, "delete_keys", data(KEYS, (1,), (9,)))
    assert rows_of(engine, table.scan()) == [(2, "b", 1), (3, "c", 1), (4, "d", 1)]
    stale = data(pa.schema([("id", pa.int64()), ("p", pa.string())]), (2, "a"), (3, "c"), (9, "x"))
    engine.write(table, "delete_keys", stale)
    assert rows_of(engine, table.scan()) == [(4, "d", 1)]
    engine.write(table, "upsert", _rows((1, "b", 2), (2, "b", 2), (3, "b", 2)))
    engine.write(table, "delete", "v = 2 and id < 3")
    assert rows_of(engine, table.scan()) == [(3, "b", 2), (4, "d", 1)]


@in_process
def test_a_delete_has_its_place_among_versions_of_other_partitions(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], sequence_by=["v"], cross_partition=True)
    table.upsert(_rows((1, "a", 5), (2, "a", 5), (3, "a", 5), (4, "a", 5)))
    keys = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    table.delete_keys(data(keys, (1, 4), (2, 5)))
    table.delete_keys(data(SCHEMA, (3, "b", 6), (4, "b", 4)))
    assert rows_of(engine, table.scan()) == [(1, "a", 5), (4, "a", 5)]
    table.upsert(_rows((2, "a", 4), (3, "c", 5), (4, "c", 6)))
    assert rows_of(engine, table.scan()) == [(1, "a", 5), (4, "c", 6)]
    table.delete_keys(data(KEYS, (1,), (4,)))
    assert rows_of(engine, table.scan()) == []


@in_process
def test_a_rollback_and_what_was_staged_before_it(engine: Engine, table: Table) -> None:
    table.upsert(_rows((1, "a", 1)))
    table.upsert(_rows((1, "b", 2)))
    staged = table.stage_upsert(_rows((1, "c", 3)))
    table.rollback(1)
    assert rows_of(engine, table.scan()) == [(1, "a", 1)]
    with raised(ConflictError, "keys_lost"):
        staged.publish()
    table.upsert(_rows((1, "c", 3)))
    assert rows_of(engine, table.scan()) == [(1, "c", 3)]


@in_process
@pytest.mark.parametrize(
    ("definition", "named"),
    [
        ({"partition_by": ["p"]}, "no primary key"),
        ({"primary_key": ["id"]}, "no partitions"),
        ({"primary_key": ["id", "p"], "partition_by": ["p"]}, "part of the key"),
        ({"primary_key": ["id"], "partition_by": ["p"], "sequence_by": ["v", "p"]}, "'p' says both"),
        ({"primary_key": ["id"], "partition_by": ["p"], "merge": "first_row"}, "first_row"),
        ({"primary_key": ["id"], "partition_by": ["p"], "merge": {"engine": "partial_update"}}, "partial_update"),
    ],
)
def test_tables_that_cannot_be_so_are_refused(
    engine: Engine, new_table: NewTable, definition: dict[str, Any], named: str
) -> None:
    with raised(InvalidInputError, "invalid_cross_partition") as caught:
        new_table(SCHEMA, cross_partition=True, **definition)
    assert named in str(caught.value)


def _changes(table: Table, view: str, *names: str, **given: Any) -> list[Row]:
    found = table.changes(view=view, columns=["id", "p", "v"], **given)
    rows = found.to_arrow()
    assert found.count() == rows.num_rows
    told = rows.select(["id", "p", "v", "_change" if view == "net" else "_op", *names])
    return sorted(zip(*(column.to_pylist() for column in told.columns), strict=True), key=repr)


@in_process
@pytest.mark.parametrize("sequence", [(), ("v",)])
def test_a_move_is_told_as_one_rows_change(engine: Engine, new_table: NewTable, sequence: Any) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], sequence_by=sequence, cross_partition=True)
    table.upsert(_rows((1, "a", 1), (2, "a", 1), (3, "a", 1), (4, "b", 1), (5, "b", 1)))
    table.upsert(_rows((1, "b", 2), (2, "c", 2), (3, "a", 2), (4, "a", 2)))
    assert _changes(table, "latest") == [
        (1, "b", 2, "upsert"),
        (2, "c", 2, "upsert"),
        (3, "a", 2, "upsert"),
        (4, "a", 2, "upsert"),
    ]
    table.upsert(_rows((2, "b", 3), (6, "a", 3)))
    table.delete("id = 4")
    table.upsert(_rows((1, "a", 5)))
    assert _changes(table, "latest", after=1) == [
        (1, "a", 5, "upsert"),
        (2, "b", 3, "upsert"),
        (3, "a", 2, "upsert"),
        (4, "b", 2, "delete") if sequence else (4, "a", None, "delete"),
        (6, "a", 3, "upsert"),
    ]
    assert _changes(table, "net", after=1) == [
        (1, "a", 1, "update_before"),
        (1, "a", 5, "update_after"),
        (2, "a", 1, "update_before"),
        (2, "b", 3, "update_after"),
        (3, "a", 1, "update_before"),
        (3, "a", 2, "update_after"),
        (4, "b", 1, "delete"),
        (6, "a", 3, "insert"),
    ]
    assert table.diff(5, 1).count() == 8
    assert _changes(table, "latest", after=1, where="p = 'b'") == [
        *([] if sequence else [(1, "b", None, "delete")]),  # that it came and went is known without a sequence
        (2, "b", 3, "upsert"),
        (4, "b", 2 if sequence else None, "delete"),
    ]
    told = table.changes(view="all", after=1, until=2, columns=["id", "p"]).to_arrow()
    assert told.column("_op").to_pylist() == ["delete"] * 3 + ["upsert"] * 4
    table.overwrite(_rows((1, "c", 9), (3, "c", 9)), {"p": "c"})
    assert _changes(table, "net") == [
        (1, "a", 5, "update_before"),
        (1, "c", 9, "update_after"),
        (3, "a", 2, "update_before"),
        (3, "c", 9, "update_after"),
    ]
    assert table.history(exact=True)[0].summary["rows_updated"] == 2


@in_process
def test_a_version_that_comes_too_late_is_no_change(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], sequence_by=["v"], cross_partition=True)
    table.upsert(_rows((1, "a", 5), (2, "a", 5)))
    table.upsert(_rows((1, "b", 4), (2, "b", 6)))
    assert _changes(table, "latest") == [(2, "b", 6, "upsert")]
    assert _changes(table, "net") == [(2, "a", 5, "update_before"), (2, "b", 6, "update_after")]


@in_process
@pytest.mark.parametrize("sequence", [(), ("v",)])
def test_a_table_with_rows_becomes_such_a_one_once_each_key_is_in_one_partition(
    engine: Engine, new_table: NewTable, sequence: Any
) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], sequence_by=sequence)
    table.upsert(_rows((1, "a", 3), (2, "a", 1), (3, "b", 1), (4, "a", 9), (4, "b", 1)))
    table.upsert(_rows((1, "b", 2), (3, "c", 2), (5, "c", 2)))
    table.delete("id = 4 and p = 'a'")
    staged = table.stage_upsert(_rows((2, "c", 5)))
    with raised(InvalidInputError, "keys_in_several_partitions") as caught:
        table.set_options({"cross_partition": True})
    stray = {"id": 1, "p": "b" if sequence else "a"}
    assert f"2 rows stand in another partition than the newest of their key: {stray}" in str(caught.value)
    assert (table.options, table.head.id) == ({}, 3)  # type: ignore[union-attr]
    settled = table.settle_keys()
    assert settled is not None
    first = (1, "a", 3) if sequence else (1, "b", 2)
    assert rows_of(engine, table.scan()) == [first, (2, "a", 1), (3, "c", 2), (4, "b", 1), (5, "c", 2)]
    assert table.settle_keys() is None
    table.set_options({"cross_partition": "true"})
    staged.publish()  # by the old rule: it looks now
    table.upsert(_rows((3, "a", 4), (4, "b", 2)))
    expected = [first, (2, "c", 5), (3, "a", 4), (4, "b", 2), (5, "c", 2)]
    assert rows_of(engine, table.scan()) == expected
    with raised(InvalidInputError, "keys_in_several_partitions"):
        table.rollback(2)
    table.set_options({"cross_partition": False})
    table.upsert(_rows((5, "a", 5)))
    assert table.scan(where="id = 5").count() == 2


@in_process
def test_rows_that_come_while_keys_are_looked_at_are_looked_at_as_well(
    engine: Engine, new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"])
    table.upsert(_rows((1, "a", 1)))
    check, late = evolve.check_each_once, [(2, "a", 1), (1, "b", 1)]

    def overtaken(*given: Any) -> None:
        check(*given)
        table.upsert(_rows(late.pop(0)))

    monkeypatch.setattr(evolve, "check_each_once", overtaken)
    with raised(InvalidInputError, "keys_in_several_partitions"):
        table.set_options({"cross_partition": True})
    assert (table.options, late) == ({}, [])


@in_process
def test_the_doctor_finds_keys_in_several_partitions_and_settles_them(
    engine: Engine, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], cross_partition=True)
    table.upsert(_rows((1, "a", 1), (2, "a", 1)))
    assert lake.doctor(table.name, deep=True).counts == {}
    change = f"""update lake."table" set options = '%s' where location = '{table.location}'"""
    lake.runtime.catalog.run(lambda db: db.execute((change % "{}").encode()))
    table.upsert(_rows((1, "b", 2)))
    lake.runtime.catalog.run(lambda db: db.execute((change % '{"cross_partition": true}').encode()))
    report = lake.doctor(table.name, deep=True)
    assert (report.counts, report.is_healthy) == ({"key_in_several_partitions": 1}, False)
    told = lake.doctor(table.name, repair=["keys"], dry_run=True)
    assert [(each.kind, each.table) for each in told.repairs] == [("keys", table.name)]
    assert table.scan().count() == 3
    lake.doctor(table.name, repair=["keys"], dry_run=False)
    assert rows_of(engine, table.scan()) == [(1, "b", 2), (2, "a", 1)]
    assert lake.doctor(table.name, deep=True).is_healthy


@in_process
def test_a_replaced_table_stays_such_a_one(engine: Engine, lake: Lake, table: Table) -> None:
    table.upsert(_rows((1, "a", 1)))
    lake.create_or_replace_table(table.name, SCHEMA, primary_key=["id"], partition_by=["p"])
    table.upsert(_rows((1, "a", 1)))
    table.upsert(_rows((1, "b", 1)))
    assert rows_of(engine, table.scan()) == [(1, "b", 1)]


def test_an_import_says_which_keys_are_in_several_partitions(engine: Engine, lake: Lake, tmp_path: Path) -> None:
    session = getattr(engine, "session", None)
    pq.write_table(_rows((1, "a", 1), (2, "b", 1)), tmp_path / "one.parquet")
    pq.write_table(_rows((1, "b", 2)), tmp_path / "two.parquet")
    wanted: dict[str, Any] = {"primary_key": ["id"], "partition_by": ["p"], "options": {"cross_partition": True}}
    name = f"local.imported_{'arrow' if session is None else 'spark'}"
    with raised(InvalidInputError, "duplicate_key"):
        lake.import_parquet(str(tmp_path), name, session=session, **wanted)
    lake.import_parquet(str(tmp_path), name, session=session, duplicates="last", **wanted)
    assert rows_of(engine, lake.table(name).scan()) == [(1, "b", 2), (2, "b", 1)]


@in_process
def test_a_gate_that_bounds_what_a_commit_does_counts_a_move_as_one_update(engine: Engine, table: Table) -> None:
    table.upsert(_rows((1, "a", 1), (2, "a", 1), (3, "b", 1)))
    kinds = ("inserted", "updated", "deleted")
    checks = [f"{{type: expect_rows_{kind}_to_be_between, kwargs: {{max_value: 9}}, scope: merged}}" for kind in kinds]
    staged = table.stage_upsert(_rows((1, "b", 2), (2, "c", 2), (3, "b", 2), (4, "c", 2)))
    verdict = staged.judge(parse_suite(f"{{name: g, expectations: [{', '.join(checks)}]}}"))
    assert [next(iter(check.observed.values())) for check in verdict.checks] == [1, 3, 0]
