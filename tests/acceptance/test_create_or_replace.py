"""A table is replaced by one of the same name: new columns, no rows, and all of its past."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelib import ConflictError, InvalidInputError, Lake, RejectedError, Table
from lakelib.settings import StorageSettings
from tests.acceptance.support import Engine, NewTable, data, in_process, refused, rows_of

BEFORE = "id bigint, p string, v int, s string not null, d decimal(6,2)"
ROWS = pa.table(
    {
        "id": [1, 2],
        "p": ["a", "b"],
        "v": pa.array([10, 20], pa.int32()),
        "s": ["x", "y"],
        "d": pa.array([Decimal("1.50"), None], pa.decimal128(6, 2)),
    }
)


@pytest.fixture
def table(new_table: NewTable) -> Table:
    table = new_table(BEFORE, primary_key=["id"], partition_by=["p"], buckets=4)
    table.upsert(ROWS, idempotency_key=("loader", 1))
    table.tag("good")
    return table


def _replace(lake: Lake, table: Table, schema: Any, **more: Any) -> Table:
    return lake.create_or_replace_table(table.name, schema, **{"primary_key": ["id"], "partition_by": ["p"]} | more)


@in_process
def test_it_is_the_same_table_with_other_columns_and_no_rows(engine: Engine, lake: Lake, table: Table) -> None:
    consumer = table.consumer("billing")
    now = _replace(lake, table, "v string, id bigint comment 'the key', p string, d decimal(8,4), note string")
    assert (now.location, now.schema.names) == (table.location, ["v", "id", "p", "d", "note"])
    assert (now.scan().to_arrow().num_rows, now.partitions()) == (0, [])
    newest = now.history()[0]
    assert (newest.kind, newest.summary["rows_deleted"]) == ("overwrite", 2)
    assert table.scan(at="tag:good").to_arrow().equals(table.scan(at=1).to_arrow())
    assert table.scan(at=1).to_arrow().column("v").to_pylist() == [10, 20]
    assert [each.position for each in table.consumers()] == [0]
    assert consumer.read().to_arrow().num_rows == 0, "of the rows that came and went nothing is left"
    assert table.upsert(ROWS, idempotency_key=("loader", 1)).replayed
    assert table.info.buckets.fixed_depth == 2
    new = {"v": ["text"], "id": [7], "p": ["a"], "d": [Decimal("0.1234")], "note": ["n"]}
    types = {"v": pa.string(), "id": pa.int64(), "p": pa.string(), "d": pa.decimal128(8, 4), "note": pa.string()}
    table.upsert(pa.table(new, schema=pa.schema(types)))
    assert rows_of(engine, table.scan()) == [("text", 7, "a", Decimal("0.1234"), "n")]
    table.rollback(1)
    assert rows_of(engine, table.scan()) == [
        (None, 1, "a", Decimal("1.5000"), None),
        (None, 2, "b", None, None),
    ]


@in_process
def test_where_there_is_none_it_is_made(engine: Engine, lake: Lake, storage_kind: str) -> None:
    made = lake.create_or_replace_table(f"{storage_kind}.fresh", "id bigint", primary_key=["id"], buckets=2)
    assert (made.head, made.info.buckets.fixed_depth) == (None, 1)


@in_process
def test_options_and_buckets_that_are_given_are_set_and_others_stay(engine: Engine, lake: Lake, table: Table) -> None:
    table.set_options({"compact_runs": 7})
    now = _replace(lake, table, BEFORE, buckets="dynamic", options={"compact_delta_percent": 90})
    assert (now.options, now.info.buckets.mode) == ({"compact_runs": 7, "compact_delta_percent": 90}, "dynamic")
    assert now.info.schema.id == 1, "the same columns are no change of the schema"


@pytest.mark.parametrize(
    ("schema", "more", "words"),
    [
        ("id bigint, p string", {"primary_key": ["p"]}, ("primary_key is (p)", "(id)", "another name")),
        ("id bigint, p string", {"partition_by": []}, ("partition_by is ()",)),
        ("id bigint, p string", {"sequence_by": ["p"]}, ("sequence_by is (p)",)),
        ("id int, p string", {}, ("'id'", "int", "bigint")),
        ("id bigint, p string, w int not null", {}, ("'w'", "is new")),
        ("id bigint, p string, v int not null", {}, ("'v'", "may be NULL")),
        ("id bigint, p string, v foo", {}, ("foo",)),
        ("id bigint, p string", {"buckets": 3}, ("buckets",)),
        ("id bigint, p string", {"options": {"nope": 1}}, ("nope",)),
    ],
)
@in_process
def test_what_cannot_be_is_refused_and_changes_nothing(
    engine: Engine,
    lake: Lake,
    table: Table,
    storage: StorageSettings,
    schema: str,
    more: dict[str, Any],
    words: tuple[str, ...],
) -> None:
    with refused(table, storage, *words):
        _replace(lake, table, schema, **more)


@in_process
def test_what_was_staged_before_comes_by_the_columns_that_are_left(engine: Engine, lake: Lake, table: Table) -> None:
    staged = table.stage_upsert(ROWS.slice(0, 1))
    replaced = table.stage_overwrite(ROWS)
    _replace(lake, table, "id bigint, p string, s string, v string")
    staged.publish()
    assert rows_of(engine, table.scan()) == [(1, "a", "x", None)]
    with pytest.raises(ConflictError):
        replaced.publish()


@in_process
def test_a_gate_that_is_required_judges_what_is_left(engine: Engine, lake: Lake, table: Table, tmp_path: Any) -> None:
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "name: rows\nexpectations:\n  - type: expect_table_row_count_to_be_between\n"
        "    kwargs: {min_value: 1}\n    severity: critical\n    scope: table\n"
    )
    table.require_gate(suite, by="me")
    with pytest.raises(RejectedError):
        _replace(lake, table, "id bigint, p string")
    assert table.schema.names == ["id", "p", "v", "s", "d"]
    table.release_gate(by="me", reason="it is to be empty")
    assert _replace(lake, table, "id bigint, p string").schema.names == ["id", "p"]


@pytest.mark.parametrize("key", [["id"], []], ids=["key", "append"])
def test_an_overwrite_brings_its_own_columns(engine: Engine, new_table: NewTable, key: list[str]) -> None:
    table = new_table(BEFORE, primary_key=key, partition_by=["p"])
    engine.write(table, "append", ROWS)
    other = data(
        {"w": pa.float64(), "id": pa.int64(), "p": pa.string(), "v": pa.int64(), "s": pa.string()},
        (0.5, 9, "c", 2**40, "z"),
    )
    staged = engine.write(table, "stage_overwrite", other, overwrite_schema=True)
    assert table.schema.names == ["id", "p", "v", "s", "d"]
    assert rows_of(engine, staged.scan()) == [(0.5, 9, "c", 2**40, "z")]
    staged.publish()
    assert table.schema.names == ["w", "id", "p", "v", "s"]
    assert not table.schema.field("s").nullable
    assert rows_of(engine, table.scan(where="v > 5")) == [(0.5, 9, "c", 2**40, "z")]
    assert sorted(table.scan(at=1, columns=["id", "v"]).to_arrow().column("v").to_pylist()) == [10, 20]
    assert engine.write(table, "overwrite", other, overwrite_schema=True).schema_id == table.info.schema.id


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"partitions": "dynamic"}, ("all rows",)),
        ({"where": "p = 'a'"}, ("all rows",)),
        ({"merge_schema": True}, ("merge_schema", "overwrite_schema")),
        ({"overwrite_schema": "yes"}, ("overwrite_schema",)),
    ],
)
@in_process
def test_two_answers_are_none(
    engine: Engine, table: Table, storage: StorageSettings, options: dict[str, Any], words: tuple[str, ...]
) -> None:
    with refused(table, storage, *words):
        table.overwrite(ROWS, **{"overwrite_schema": True} | options)


@in_process
def test_the_columns_of_key_and_partition_have_to_be_there(
    engine: Engine, table: Table, storage: StorageSettings
) -> None:
    with refused(table, storage, "'p'"):
        table.overwrite(ROWS.drop_columns(["p"]), overwrite_schema=True)
    with refused(table, storage, "'id'"):
        table.overwrite(ROWS.set_column(0, "id", pa.array(["1", "2"])), overwrite_schema=True)
    with pytest.raises(InvalidInputError, match="'s'"):
        table.overwrite(ROWS.set_column(3, "s", pa.array([None, "y"])), overwrite_schema=True)
