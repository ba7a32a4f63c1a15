"""Overwrite: exactly the target is replaced, and a staged overwrite never hides what it did not see."""

from typing import Any

import pyarrow as pa
import pytest

from lakelib import ConflictError, Table
from lakelib.settings import StorageSettings
from tests.acceptance.support import Engine, NewTable, data, refused, rows_of

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("q", pa.string())])
START = ((1, "a", "x"), (2, "a", "y"), (3, "b", "x"), (4, None, "x"))


@pytest.fixture(scope="module", params=["local", "s3"])
def storage_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[["id"], []], ids=["key", "append"])
def table(request: pytest.FixtureRequest, engine: Engine, new_table: NewTable) -> Table:
    table = new_table(SCHEMA, primary_key=request.param, partition_by=["p", "q"])
    engine.write(table, "append", data(SCHEMA, *START))
    return table


def test_all_replaces_everything(engine: Engine, table: Table) -> None:
    engine.write(table, "overwrite", data(SCHEMA, (9, "z", "z")))
    assert rows_of(engine, table.scan()) == [(9, "z", "z")]
    assert rows_of(engine, table.scan(at=1)) == sorted(START, key=repr)


def test_all_with_no_rows_empties_the_table(engine: Engine, table: Table) -> None:
    engine.write(table, "overwrite", data(SCHEMA))
    assert rows_of(engine, table.scan()) == []
    assert table.partitions() == []


def test_dynamic_replaces_the_partitions_of_the_rows(engine: Engine, table: Table) -> None:
    engine.write(table, "overwrite", data(SCHEMA, (9, "a", "x"), (8, None, "x")), "dynamic")
    assert rows_of(engine, table.scan()) == [(2, "a", "y"), (3, "b", "x"), (8, None, "x"), (9, "a", "x")]


def test_dynamic_with_no_rows_changes_nothing(engine: Engine, table: Table) -> None:
    assert engine.write(table, "overwrite", data(SCHEMA), "dynamic").id == 2
    assert rows_of(engine, table.scan()) == sorted(START, key=repr)


def test_dynamic_on_a_table_without_partitions_replaces_all(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"])
    engine.write(table, "append", data(SCHEMA, *START))
    engine.write(table, "overwrite", data(SCHEMA), "dynamic")
    assert table.scan().count() == 4
    engine.write(table, "overwrite", data(SCHEMA, (9, "z", "z")), "dynamic")
    assert rows_of(engine, table.scan()) == [(9, "z", "z")]


def test_static_replaces_every_partition_with_the_values(engine: Engine, table: Table) -> None:
    engine.write(table, "overwrite", data(SCHEMA, (9, "a", "z")), {"p": "a"})
    assert rows_of(engine, table.scan()) == [(3, "b", "x"), (4, None, "x"), (9, "a", "z")]


def test_static_with_null_replaces_the_null_partition(engine: Engine, table: Table) -> None:
    engine.write(table, "overwrite", data(SCHEMA, (9, None, "x")), {"P": None})
    assert rows_of(engine, table.scan(where="p is null")) == [(9, None, "x")]
    assert table.scan().count() == 4


def test_static_with_no_rows_empties_its_target(engine: Engine, table: Table) -> None:
    engine.write(table, "overwrite", data(SCHEMA), {"p": "a", "q": "x"})
    assert rows_of(engine, table.scan()) == sorted(START[1:], key=repr)


def test_static_fills_in_the_columns_that_the_rows_lack(engine: Engine, table: Table) -> None:
    engine.write(table, "overwrite", data({"id": pa.int64(), "q": pa.string()}, (9, "z")), {"p": "a"})
    assert rows_of(engine, table.scan(where="p = 'a'")) == [(9, "a", "z")]


@pytest.mark.parametrize("value", ["b", None])
@pytest.mark.parametrize("stream", [False, True])
def test_static_refuses_a_row_outside_its_target(
    engine: Engine, table: Table, storage: StorageSettings, value: Any, stream: bool
) -> None:
    batch: Any = data(SCHEMA, (8, "a", "x"), (9, value, "x"))
    if stream:
        batch = pa.RecordBatchReader.from_batches(SCHEMA, batch.to_batches(max_chunksize=1))
    with refused(table, storage, f"p = {value}", "p = a", "dynamic"):
        engine.write(table, "overwrite", batch, {"p": "a"})


@pytest.mark.parametrize(
    ("partitions", "words"),
    [
        ("some", ("'some'", "dynamic")),
        ({}, ("{}", "dynamic")),
        ({"id": 1}, ("'id'", "p, q")),
        ({"p": 5}, ("'p'", "5", "text")),
        ({"p": "a", "P": "b"}, ("'p'", "twice")),
    ],
)
def test_a_wrong_target_is_refused(
    engine: Engine, table: Table, storage: StorageSettings, partitions: Any, words: tuple[str, ...]
) -> None:
    with refused(table, storage, *words):
        engine.write(table, "overwrite", data(SCHEMA), partitions)


TARGETS = ["all", "dynamic", {"p": "a"}, {"p": "a", "q": "x"}]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_staged_overwrite_conflicts_with_rows_added_to_its_target(engine: Engine, table: Table, target: Any) -> None:
    staged = table.stage_overwrite(data(SCHEMA, (9, "a", "x")), target)
    engine.write(table, "append", data(SCHEMA, (5, "a", "x")))
    with pytest.raises(ConflictError, match="rows were added"):
        staged.publish()
    assert rows_of(engine, table.scan(where="id > 4")) == [(5, "a", "x")]


@pytest.mark.parametrize("target", TARGETS[:1] + TARGETS[2:3], ids=str)
def test_a_staged_overwrite_conflicts_with_a_partition_that_is_new_in_its_target(
    engine: Engine, table: Table, target: Any
) -> None:
    staged = table.stage_overwrite(data(SCHEMA, (9, "a", "x")), target)
    engine.write(table, "append", data(SCHEMA, (5, "a", "new")))
    with pytest.raises(ConflictError, match="rows were added"):
        staged.publish()


@pytest.mark.parametrize("target", TARGETS[1:], ids=str)
def test_a_staged_overwrite_publishes_beside_rows_added_elsewhere(engine: Engine, table: Table, target: Any) -> None:
    staged = table.stage_overwrite(data(SCHEMA, (9, "a", "x")), target)
    engine.write(table, "append", data(SCHEMA, (5, "b", "x"), (6, "new", "x")))
    staged.publish()
    assert rows_of(engine, table.scan(where="p <> 'a'")) == [(3, "b", "x"), (5, "b", "x"), (6, "new", "x")]
    assert rows_of(engine, table.scan(where="q = 'x' and p = 'a'")) == [(9, "a", "x")]


def test_of_two_staged_overwrites_of_one_target_one_publishes(engine: Engine, table: Table) -> None:
    first, second = (table.stage_overwrite(data(SCHEMA, (number, "a", "x")), "dynamic") for number in (8, 9))
    second.publish()
    with pytest.raises(ConflictError):
        first.publish()
    assert rows_of(engine, table.scan(where="p = 'a' and q = 'x'")) == [(9, "a", "x")]


def test_a_replayed_overwrite_does_not_undo_what_came_after_it(engine: Engine, table: Table) -> None:
    done = engine.write(table, "overwrite", data(SCHEMA, (8, "a", "x")), idempotency_key=("job", 1))
    engine.write(table, "append", data(SCHEMA, (9, "a", "x")))
    again = engine.write(table, "overwrite", data(SCHEMA, (8, "a", "x")), idempotency_key=("job", 1))
    assert again.id == done.id
    assert rows_of(engine, table.scan()) == [(8, "a", "x"), (9, "a", "x")]
