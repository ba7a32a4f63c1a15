"""Overwrite by a predicate: the rows take the place of just those that match, in one commit, or nothing is written."""

import threading
from typing import Any

import pyarrow as pa
import pytest

from lakelib import ConflictError, InvalidInputError, Lake, RejectedError, Table
from lakelib.settings import StorageSettings
from tests.acceptance.support import Engine, NewTable, data, refused, rows_of

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int32())])
START = ((1, "a", 1), (2, "a", 20), (3, "b", 30), (4, None, None))


@pytest.fixture(params=[["id"], []], ids=["key", "append"])
def table(request: pytest.FixtureRequest, engine: Engine, new_table: NewTable) -> Table:
    table = new_table(SCHEMA, primary_key=request.param, partition_by=["p"])
    engine.write(table, "append", data(SCHEMA, *START))
    return table


CASES = [
    ("v >= 20", ((9, "c", 90), (2, "a", 21)), ((1, "a", 1), (2, "a", 21), (4, None, None), (9, "c", 90))),
    ("v >= 20", (), ((1, "a", 1), (4, None, None))),
    ("p = 'a'", ((9, "a", 1),), ((3, "b", 30), (4, None, None), (9, "a", 1))),
    ("p = 'a' or p is null", ((8, None, 1), (1, "a", 5)), ((1, "a", 5), (3, "b", 30), (8, None, 1))),
    ("p like 'c%'", ((9, "c", 9),), (*START, (9, "c", 9))),
    ("v is null", ((4, None, None), (5, "a", None)), (*START, (5, "a", None))),
    ("true", ((7, "x", 7),), ((7, "x", 7),)),
    ("false", (), START),
]


@pytest.mark.parametrize(("where", "rows", "expected"), CASES, ids=[each[0] for each in CASES])
def test_rows_take_the_place_of_those_that_match(
    engine: Engine, table: Table, where: str, rows: tuple[Any, ...], expected: tuple[Any, ...]
) -> None:
    snapshot = engine.write(table, "overwrite", data(SCHEMA, *rows), where=where)
    assert (snapshot.kind, snapshot.id) == ("replace", 2)
    assert rows_of(engine, table.scan()) == sorted(expected, key=repr)
    assert rows_of(engine, table.scan(at=1)) == sorted(START, key=repr)
    table.compact(full=True)
    assert rows_of(engine, table.scan()) == sorted(expected, key=repr)
    table.rollback(1)
    assert rows_of(engine, table.scan()) == sorted(START, key=repr)


@pytest.mark.parametrize(
    ("where", "row", "words"),
    [
        ("v >= 20", (9, "a", 19), ("1 row is not", "v >= 20", "id = 9", "v = 19")),
        ("v >= 20", (9, "a", None), ("v = None",)),
        ("p = 'b'", (9, None, 20), ("p = 'b'", "p = None")),
        ("v >= 20 and p = 'b'", (9, "a", 20), ("p = 'a'",)),
    ],
)
def test_a_row_outside_is_refused_before_anything_is_written(
    engine: Engine, table: Table, storage: StorageSettings, where: str, row: tuple[Any, ...], words: tuple[str, ...]
) -> None:
    with refused(table, storage, *words):
        engine.write(table, "overwrite", data(SCHEMA, (3, "b", 40), row), where=where)
    assert rows_of(engine, table.scan()) == sorted(START, key=repr)


def test_a_row_outside_at_the_end_of_a_stream_leaves_nothing(table: Table, storage: StorageSettings) -> None:
    batches = [data(SCHEMA, (number, "a", 20)).to_batches()[0] for number in range(50)]
    batches.append(data(SCHEMA, (99, "a", 1)).to_batches()[0])
    with refused(table, storage, "v = 1"):
        table.overwrite(pa.RecordBatchReader.from_batches(SCHEMA, batches), where="v >= 20")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"where": "x = 1"}, ("x",)),
        ({"where": "v >="}, ("v >=",)),
        ({"where": ""}, ("",)),
        ({"where": "v = 1", "partitions": "dynamic"}, ("where and partitions",)),
        ({"where": "_commit = 1"}, ("which commit",)),
        ({"where": "v >= 20", "merge_schema": True}, ("evolve",)),
    ],
)
def test_a_wrong_predicate_is_refused(
    table: Table, storage: StorageSettings, options: dict[str, Any], words: tuple[str, ...]
) -> None:
    with refused(table, storage, *words):
        table.overwrite(data(SCHEMA, (9, "a", 20)), **options)


def test_whole_partitions_may_bring_columns(engine: Engine, table: Table) -> None:
    wide = pa.schema([*SCHEMA, ("note", pa.string())])
    engine.write(table, "overwrite", data(wide, (9, "a", 1, "new")), where="p = 'a'", merge_schema=True)
    assert rows_of(engine, table.scan(where="p = 'a'")) == [(9, "a", 1, "new")]


def test_in_a_table_with_a_sequence_whole_partitions_are_replaced_and_no_single_rows(
    engine: Engine, new_table: NewTable, storage: StorageSettings
) -> None:
    """An older row would stay hidden behind the newer one in whose place it was to come."""
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], sequence_by=["v"])
    engine.write(table, "upsert", data(SCHEMA, (1, "a", 9), (2, "b", 9)))
    with refused(table, storage, "sequence v", "whole partitions"):
        engine.write(table, "overwrite", data(SCHEMA, (1, "a", 9)), where="v = 9")
    engine.write(table, "overwrite", data(SCHEMA, (1, "a", 2)), where="p = 'a'")
    assert rows_of(engine, table.scan()) == [(1, "a", 2), (2, "b", 9)]


def test_a_staged_one_conflicts_with_rows_that_came_where_it_has_looked(engine: Engine, table: Table) -> None:
    staged = engine.write(table, "stage_overwrite", data(SCHEMA, (9, "a", 20)), where="p = 'a' and v >= 20")
    elsewhere = engine.write(table, "stage_overwrite", data(SCHEMA, (8, "b", 20)), where="p = 'b' and v >= 20")
    assert rows_of(engine, staged.scan(where="p = 'a'")) == [(1, "a", 1), (9, "a", 20)]
    engine.write(table, "append", data(SCHEMA, (7, "a", 70)))
    with pytest.raises(ConflictError, match="rows"):
        staged.publish()
    elsewhere.publish()
    assert rows_of(engine, table.scan(where="v >= 20")) == [(2, "a", 20), (7, "a", 70), (8, "b", 20)]


def test_a_staged_one_outlives_a_compaction_or_is_a_conflict(table: Table) -> None:
    for number in range(6):
        table.append(data(SCHEMA, (10 + number, "a", 5)))
    staged = table.stage_overwrite(data(SCHEMA, (9, "a", 20)), where="v >= 20")
    table.compact(full=True)
    staged.publish()
    expected = [(1, "a", 1), *((10 + number, "a", 5) for number in range(6)), (4, None, None), (9, "a", 20)]
    assert sorted(table.scan().to_arrow().to_pylist(), key=repr) == sorted(
        (dict(zip(("id", "p", "v"), row, strict=True)) for row in expected), key=repr
    )


def test_a_replayed_one_does_nothing_again(engine: Engine, table: Table) -> None:
    key = ("loader", 1)
    first = engine.write(table, "overwrite", data(SCHEMA, (9, "a", 20)), where="v >= 20", idempotency_key=key)
    engine.write(table, "append", data(SCHEMA, (7, "a", 70)))
    again = engine.write(table, "overwrite", data(SCHEMA, (9, "a", 20)), where="v >= 20", idempotency_key=key)
    assert (again.id, again.replayed) == (first.id, True)
    assert rows_of(engine, table.scan(where="v >= 20")) == [(7, "a", 70), (9, "a", 20)]


@pytest.mark.parametrize("key", [["id"], []], ids=["key", "append"])
def test_beside_writers_each_row_is_there_once_or_was_replaced(lake: Lake, new_table: NewTable, key: list[str]) -> None:
    """Four writers add rows of each kind, and one replaces the even ones: of these just its newest are left, and those
    that came after."""
    table = new_table("id bigint, kind int, v int", primary_key=key)
    failed: list[BaseException] = []

    def add(writer: int) -> None:
        try:
            own = lake.table(table.name)
            for number in range(12):
                at = 1000 * (writer + 1) + number
                own.append(
                    pa.table(
                        {"id": [at], "kind": pa.array([number % 2], pa.int32()), "v": pa.array([number], pa.int32())}
                    )
                )
        except BaseException as error:
            failed.append(error)

    writers = [threading.Thread(target=add, args=(writer,)) for writer in range(4)]
    for each in writers:
        each.start()
    for turn in range(5):
        rows = pa.table({"id": [turn], "kind": pa.array([0], pa.int32()), "v": pa.array([-1], pa.int32())})
        snapshot = table.overwrite(rows, where="kind = 0")
        seen = table.scan(where="kind = 0", at=snapshot.id).to_arrow()
        assert seen.column("id").to_pylist() == [turn]
    for each in writers:
        each.join()
    assert failed == []
    odd = table.scan(where="kind = 1").to_arrow().column("id").to_pylist()
    assert sorted(odd) == sorted(1000 * (writer + 1) + number for writer in range(4) for number in range(1, 12, 2))
    table.overwrite(pa.table({"id": [5], "kind": pa.array([0], pa.int32())}), where="kind = 0")
    assert table.scan(where="kind = 0").to_arrow().to_pylist() == [{"id": 5, "kind": 0, "v": None}]


def test_a_gate_sees_what_is_left(table: Table, tmp_path: Any) -> None:
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "name: few\nexpectations:\n  - type: expect_table_row_count_to_be_between\n"
        "    kwargs: {max_value: 3}\n    severity: critical\n    scope: table\n"
    )
    table.overwrite(data(SCHEMA, (9, "a", 20)), where="v >= 20", gate=suite)
    with pytest.raises(RejectedError):
        table.overwrite(data(SCHEMA, (9, "a", 20), (10, "a", 20)), where="v >= 20", gate=suite)
    assert table.scan().count() == 3


def test_changes_tell_what_was_replaced(table: Table) -> None:
    table.overwrite(data(SCHEMA, (2, "a", 21), (9, "a", 90)), where="v >= 20")
    net = table.changes(after=1, view="net").to_arrow().to_pylist()
    told = sorted((row["_change"], row["id"], row["v"]) for row in net)
    if table.primary_key:
        assert told == [("delete", 3, 30), ("insert", 9, 90), ("update_after", 2, 21), ("update_before", 2, 20)]
    else:
        assert told == [("delete", 2, 20), ("delete", 3, 30), ("insert", 2, 21), ("insert", 9, 90)]
    with pytest.raises(InvalidInputError):
        table.overwrite(data(SCHEMA), where="nope")
