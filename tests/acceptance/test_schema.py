"""Schemas: they change without a file being rewritten, and never bring back what was dropped."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelib import ConflictError, InvalidInputError, Lake, Table
from lakelib.settings import StorageSettings
from tests.acceptance.support import Engine, NewTable, data, refused, rows_of


@pytest.fixture(params=[{}, {"delta": "head"}], ids=["", "files keep names"])
def table(engine: Engine, new_table: NewTable, request: pytest.FixtureRequest) -> Table:
    schema = "id bigint, p string, n int, s string"
    table = new_table(schema, primary_key=["id"], partition_by=["p"], sequence_by=["n"], options=request.param)
    engine.write(table, "upsert", _rows((1, "a", 1, "one"), (2, "a", 2, "two")))
    return table


def _rows(*rows: tuple[Any, ...], **types: pa.DataType) -> pa.Table:
    return data({"id": pa.int64(), "p": pa.string(), "n": pa.int32(), "s": pa.string()} | types, *rows)


def test_an_added_column_is_null_in_old_rows(engine: Engine, table: Table) -> None:
    snapshot = table.evolve(add=[("note", "string"), pa.field("m", pa.float64()), "k array<int>"])
    assert (snapshot.kind, snapshot.id) == ("evolve", 2)
    assert table.schema.names == ["id", "p", "n", "s", "note", "m", "k"]
    assert rows_of(engine, table.scan(columns=["id", "note", "m", "k"])) == [
        (1, None, None, None),
        (2, None, None, None),
    ]
    assert rows_of(engine, table.scan(columns=["id"], where="note is null and not m > 1")) == []
    assert table.scan(where="note is null").count() == 2


def test_a_dropped_and_readded_column_does_not_resurrect_its_values(engine: Engine, table: Table) -> None:
    table.evolve(drop=["s"])
    table.evolve(add=[("s", "string")])
    assert rows_of(engine, table.scan(columns=["id", "s"])) == [(1, None), (2, None)]
    assert table.scan(where="s = 'one'").count() == 0
    engine.write(table, "upsert", _rows((1, "a", 9, "new")))
    assert rows_of(engine, table.scan(columns=["id", "s"])) == [(1, "new"), (2, None)]
    assert rows_of(engine, table.scan(columns=["id", "s"], at=1)) == [(1, "one"), (2, "two")]


def test_dropping_and_adding_one_name_at_once_makes_a_new_column(engine: Engine, table: Table) -> None:
    table.evolve(drop=["s"], add=[("s", "bigint")])
    assert rows_of(engine, table.scan(columns=["id", "s"])) == [(1, None), (2, None)]


def test_renamed_columns_keep_their_values_also_when_they_swap_names(engine: Engine, table: Table) -> None:
    table.evolve(rename={"s": "p", "p": "s"})
    assert table.schema.names == ["id", "s", "n", "p"]
    assert table.partition_by == ["s"]
    assert rows_of(engine, table.scan(where="s = 'a' and p = 'one'")) == [(1, "a", 1, "one")]
    engine.write(
        table, "upsert", data({"id": pa.int64(), "s": pa.string(), "n": pa.int32(), "p": pa.string()}, (1, "a", 5, "x"))
    )
    assert rows_of(engine, table.scan(columns=["id", "p"])) == [(1, "x"), (2, "two")]


def test_the_key_may_be_renamed(engine: Engine, table: Table) -> None:
    table.evolve(rename={"id": "ID", "n": "seq"})
    table.evolve(rename={"ID": "key"})
    engine.write(table, "delete_keys", data({"key": pa.int64(), "p": pa.string()}, (1, "a")))
    assert (table.primary_key, rows_of(engine, table.scan(columns=["key", "seq"]))) == (["key"], [(2, 2)])


WIDER = [
    ("tinyint", pa.int8(), "bigint", -128, 2**40),
    ("int", pa.int32(), "bigint", 2**31 - 1, -(2**63)),
    ("float", pa.float32(), "double", 1.5, 1e300),
    ("decimal(5,2)", pa.decimal128(5, 2), "decimal(38,2)", Decimal("-999.99"), Decimal("123456789.01")),
    ("decimal(6,2)", pa.decimal128(6, 2), "decimal(9,5)", Decimal("-999.99"), Decimal("0.00001")),
    ("struct<a:int>", pa.struct([("a", pa.int32())]), "struct<a:bigint,b:string>", {"a": 1}, {"a": 2**40, "b": "x"}),
]


@pytest.mark.parametrize(("old", "arrow", "new", "small", "large"), WIDER, ids=[each[0] for each in WIDER])
@pytest.mark.parametrize("key", [["id"], []], ids=["key", "append"])
def test_a_widened_column_reads_old_and_new_files(
    engine: Engine, new_table: NewTable, old: str, arrow: pa.DataType, new: str, small: Any, large: Any, key: list[str]
) -> None:
    table = new_table(f"id bigint, v {old}", primary_key=key)
    engine.write(table, "append", data({"id": pa.int64(), "v": arrow}, (1, small), (2, None)))
    table.evolve(widen={"v": new})
    wide = table.schema.field("v").type
    engine.write(table, "append", data({"id": pa.int64(), "v": wide}, (3, large)))
    engine.write(table, "append", data({"id": pa.int64(), "v": arrow}, (4, small)))
    first = small | {"b": None} if isinstance(small, dict) else small
    assert rows_of(engine, table.scan()) == [(1, first), (2, None), (3, large), (4, first)]
    assert engine.read(table.scan(at=1)).schema.field("v").type == arrow
    if not isinstance(small, dict):
        assert rows_of(engine, table.scan(columns=["id"], where=f"v = {small}")) == [(1,), (4,)]
        assert rows_of(engine, table.scan(columns=["id"], where=f"v = {large}")) == [(3,)]


@pytest.mark.parametrize("key", [["id"], []], ids=["key", "append"])
def test_old_bounds_of_a_decimal_of_another_scale_hide_no_row(
    engine: Engine, new_table: NewTable, key: list[str]
) -> None:
    """As digits 99.00 is 9900, and 0.5 is 50000 with more places behind the point."""
    table = new_table("id bigint, v decimal(6,2)", primary_key=key)
    arrow = {"id": pa.int64(), "v": pa.decimal128(6, 2)}
    engine.write(table, "append", data(arrow, (1, Decimal("0.10")), (2, Decimal("99.00"))))
    table.evolve(widen={"v": "decimal(9,5)"})
    wide = arrow | {"v": pa.decimal128(9, 5)}
    engine.write(table, "append", data(wide, (3, Decimal("0.50000"))))
    for where, ids in (
        ("v > 0.5", [2]),
        ("v >= 0.5", [2, 3]),
        ("v < 0.5", [1]),
        ("not v < 0.5", [2, 3]),
        ("v in (99, 0.1)", [1, 2]),
        ("v <> 99", [1, 3]),
        ("v is not null", [1, 2, 3]),
        ("v is null", []),
    ):
        assert [id for (id,) in rows_of(engine, table.scan(columns=["id"], where=where))] == ids, where
        assert table.scan(where=where).count() == len(ids), where
    assert rows_of(engine, table.scan(columns=["id"], where="v > 50", at=1)) == [(2,)]
    table.compact(full=True)
    assert rows_of(engine, table.scan(columns=["id"], where="v > 0.5")) == [(2,)]
    table.rollback(1)
    assert rows_of(engine, table.scan(columns=["id"], where="v > 0.5")) == [(2,)]


def test_rows_bring_more_places_behind_the_point(engine: Engine, new_table: NewTable) -> None:
    table = new_table("id bigint, v decimal(6,2)", primary_key=["id"])
    engine.write(table, "upsert", data({"id": pa.int64(), "v": pa.decimal128(6, 2)}, (1, Decimal("99.00"))))
    finer = data({"id": pa.int64(), "v": pa.decimal128(9, 5)}, (2, Decimal("0.50000")))
    engine.write(table, "upsert", finer, merge_schema=True)
    assert table.schema.field("v").type == pa.decimal128(9, 5)
    assert rows_of(engine, table.scan(columns=["id"], where="v > 0.6")) == [(1,)]
    assert [row[:2] for row in rows_of(engine, table.changes(after=0, columns=["id", "v"]))] == [
        (1, Decimal("99.00000")),
        (2, Decimal("0.50000")),
    ]


def test_not_null_is_taken_back(engine: Engine, new_table: NewTable, storage: StorageSettings) -> None:
    table = new_table("id bigint, v int not null", primary_key=["id"])
    full, empty = (data({"id": pa.int64(), "v": pa.int32()}, row) for row in ((1, 1), (2, None)))
    engine.write(table, "upsert", full)
    with refused(table, storage, "'v'", "NULL"):
        engine.write(table, "upsert", empty)
    table.evolve(nullable=["v"])
    engine.write(table, "upsert", empty)
    assert rows_of(engine, table.scan()) == [(1, 1), (2, None)]
    assert rows_of(engine, table.scan(where="v is null")) == [(2, None)]
    assert table.schema.field("v").nullable
    assert not table.scan(at=1).schema.field("v").nullable
    assert rows_of(engine, table.scan(at=1)) == [(1, 1)]
    assert [row["_change"] for row in table.diff(3, 1).to_arrow().to_pylist()] == ["delete"]
    table.compact(full=True)
    assert rows_of(engine, table.scan()) == [(1, 1), (2, None)]


def test_moved_columns_are_read_in_their_new_order(engine: Engine, table: Table) -> None:
    staged = table.stage_upsert(_rows((3, "a", 3, "three")))
    table.evolve(move={"s": "first", "id": "after n"})
    staged.publish()
    assert table.schema.names == ["s", "p", "n", "id"]
    assert (table.primary_key, table.partition_by) == (["id"], ["p"])
    assert rows_of(engine, table.scan()) == [("one", "a", 1, 1), ("three", "a", 3, 3), ("two", "a", 2, 2)]
    assert rows_of(engine, table.scan(at=1)) == [(1, "a", 1, "one"), (2, "a", 2, "two")]
    engine.write(table, "upsert", _rows((1, "a", 9, "new")))
    assert rows_of(engine, table.scan(where="id = 1")) == [("new", "a", 9, 1)]


def test_comments_are_kept_with_the_schema(engine: Engine, new_table: NewTable, storage: StorageSettings) -> None:
    schema = pa.schema([("id", pa.int64()), pa.field("v", pa.int32(), metadata={"comment": "first"})])
    table = new_table(schema, primary_key=["id"])
    assert table.schema.field("v").metadata == {b"comment": b"first"}
    table.evolve(comment={"v": "gross, in EUR; it's 'new'", "id": "ü"}, rename={"v": "w"})
    assert table.schema.field("w").metadata == {b"comment": b"gross, in EUR; it's 'new'"}
    table.evolve(comment={"id": ""})
    assert table.schema.field("id").metadata is None
    newest, first = table.history()
    assert (newest.kind, newest.summary["columns"]) == ("evolve", "comments on id")
    assert "evolve comments on id, renames v to w, comments on w at" in repr(first)
    engine.write(table, "upsert", pa.table({"id": [1], "w": pa.array([1], pa.int32())}))
    assert rows_of(engine, table.scan()) == [(1, 1)]
    with refused(table, storage, "'w'", "at most 4,000"):
        table.evolve(comment={"w": "x" * 4001})


def test_new_fields_deep_inside_are_null_in_old_rows(engine: Engine, new_table: NewTable) -> None:
    table = new_table("id bigint, v array<struct<a:int,m:map<string,struct<x:int>>>>", primary_key=["id"])
    arrow = table.schema.field("v").type
    engine.write(table, "upsert", data({"id": pa.int64(), "v": arrow}, (1, [{"a": 1, "m": [("k", {"x": 1})]}])))
    table.evolve(widen={"v": "array<struct<a:int,m:map<string,struct<x:bigint,y:string>>,c:string>>"})
    assert rows_of(engine, table.scan()) == [(1, [{"a": 1, "m": [("k", {"x": 1, "y": None})], "c": None}])]


def test_a_widened_sequence_still_orders(engine: Engine, table: Table) -> None:
    table.evolve(widen={"n": "bigint"})
    engine.write(
        table, "upsert", data({"id": pa.int64(), "p": pa.string(), "n": pa.int64()}, (1, "a", 0), (2, "a", 2**40))
    )
    assert rows_of(engine, table.scan(columns=["id", "n"])) == [(1, 1), (2, 2**40)]


REFUSED: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({}, ("No change",)),
    ({"drop": ["id"]}, ("'id'", "primary key")),
    ({"drop": ["p"]}, ("'p'", "partition")),
    ({"drop": ["n"]}, ("'n'", "sequence")),
    ({"drop": ["x"]}, ("'x'", "id, p, n, s")),
    ({"drop": "nope"}, ("'nope'", "id, p, n, s")),
    ({"rename": {"x": "y"}}, ("'x'",)),
    ({"rename": {"s": "N"}}, ("'n'", "'N'")),
    ({"rename": {"s": "_commit"}}, ("'_commit'", "reserved")),
    ({"rename": {"s": ""}}, ("no name",)),
    ({"rename": {"s": "a\0"}}, ("NUL",)),
    ({"rename": {"s": "a\ud800"}}, ("surrogate",)),
    ({"add": [("S", "int")]}, ("'S'",)),
    ({"add": [("x", "varchar")]}, ("'x'", "'varchar'")),
    ({"add": ["x int not null"]}, ("'x'", "nullable")),
    ({"add": [("x", pa.null())]}, ("'x'", "null")),
    ({"add": [5]}, ("5", "pair")),
    ({"widen": {"s": "bigint"}}, ("'s'", "string", "bigint")),
    ({"widen": {"n": "tinyint"}}, ("'n'", "tinyint")),
    ({"widen": {"n": "double"}}, ("'n'", "double")),
    ({"nullable": ["id"]}, ("'id'", "primary key")),
    ({"move": {"s": "before n"}}, ("'s'", '"after NAME"')),
    ({"move": {"s": "after x"}}, ("'x'", "id, p, n")),
    ({"comment": {"x": "?"}}, ("'x'", "id, p, n, s")),
    ({"widen": {"id": "decimal(38,0)"}}, ("'id'", "keeps its type")),
    ({"drop": ["s"], "rename": {"s": "t"}}, ("'s'", "at once")),
    ({"rename": ["s"]}, ("rename is ['s']", '{"old": "new"}')),
    ({"rename": {"s": 5}}, ("rename is {'s': 5}", "texts")),
    ({"widen": {5: "bigint"}}, ("widen is {5: 'bigint'}", "texts")),
]


@pytest.mark.parametrize(("change", "words"), REFUSED, ids=lambda value: repr(value) if isinstance(value, dict) else "")
def test_an_impossible_change_is_refused(
    table: Table, storage: StorageSettings, change: dict[str, Any], words: tuple[str, ...]
) -> None:
    with refused(table, storage, *words):
        table.evolve(**change)


def test_a_commit_staged_before_a_change_is_read_by_column_not_by_name(engine: Engine, table: Table) -> None:
    staged = table.stage_upsert(_rows((3, "a", 3, "three")))
    table.evolve(rename={"s": "text"}, drop=[], add=[("s", "string")])
    table.evolve(widen={"n": "bigint"})
    staged.publish()
    assert rows_of(engine, table.scan(where="id = 3")) == [(3, "a", 3, "three", None)]


def test_two_staged_changes_of_the_schema_conflict(engine: Engine, table: Table) -> None:
    first, second = (
        table.stage_upsert(_rows((3, "a", 3, "x", 1), **{name: pa.int64()}), merge_schema=True) for name in ("u", "v")
    )
    second.publish()
    with pytest.raises(ConflictError, match="changed the table's schema"):
        first.publish()
    assert table.schema.names == ["id", "p", "n", "s", "v"]


def test_a_staged_change_of_the_schema_is_seen_in_its_scan_only(engine: Engine, table: Table) -> None:
    staged = table.stage_upsert(_rows((3, "a", 3, "x", 1), extra=pa.int64()), merge_schema=True)
    assert rows_of(engine, staged.scan(columns=["id", "extra"])) == [(1, None), (2, None), (3, 1)]
    assert "extra" not in table.schema.names
    staged.reject("not wanted")
    assert "extra" not in table.schema.names


@pytest.mark.parametrize(
    ("schema", "definition", "words"),
    [
        ("id bigint,, x", {}, ["not supported in a schema"]),
        ("id bigint, ID int", {}, ["'id'", "'ID'"]),
        ("_op int", {}, ["'_op'", "reserved"]),
        ("", {}, ["schema"]),
        (5, {}, ["int", "DDL text"]),
        (pa.schema([("v", pa.uint64())]), {}, ["'v'", "uint64", "decimal"]),
        (pa.schema([("v", pa.time64("us"))]), {}, ["'v'", "time64", "string"]),
        (pa.schema([("a\0b", pa.int64())]), {}, ["NUL"]),
        ("id bigint", {"primary_key": ["x"]}, ["primary_key", "'x'", "id"]),
        ("id bigint", {"primary_key": "id"}, ["primary_key=['id']"]),
        ("id bigint", {"primary_key": ["id", "ID"]}, ["'id'", "twice"]),
        ("id bigint", {"primary_key": ["id"], "buckets": 3}, ["3", "power of two"]),
        ("id bigint", {"primary_key": ["id"], "buckets": 0}, ["0", "power of two"]),
        ("id bigint", {"buckets": 4}, ["no primary key"]),
        ("id bigint", {"sequence_by": ["id"]}, ["sequence_by", "no primary key"]),
        ("id bigint, a array<int>", {"primary_key": ["id"], "sequence_by": ["a"]}, ["'a'", "array<int>", "no order"]),
        ("id bigint", {"primary_key": ["id"], "merge": "sum"}, ["'sum'", "deduplicate"]),
        ("id bigint", {"options": {"nope": 1}}, ["'nope'", "row_group_rows"]),
        ("id bigint", {"options": {"row_group_rows": 0}}, ["row_group_rows", "0", "at least 1"]),
        ("id bigint", {"options": {"row_group_rows": 1.5}}, ["row_group_rows", "1.5"]),
        ("id bigint", {"options": {"compression": "rar"}}, ["'rar'", "zstd"]),
        ("id bigint", {"options": {"compression_level": 99}}, ["compression_level", "99", "22"]),
        ("id bigint", {"options": {"compression": "gzip", "compression_level": 10}}, ["compression_level", "10", "9"]),
    ],
)
def test_a_wrong_definition_is_refused(
    lake: Lake, storage_kind: str, schema: Any, definition: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        lake.create_table(f"{storage_kind}.wrong", schema, **definition)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert caught.value.remedy
    assert "wrong" not in lake.tables(storage_kind)


def test_a_dropped_table_leaves_nothing_to_one_of_the_same_name(engine: Engine, lake: Lake, storage_kind: str) -> None:
    name = f"{storage_kind}.again_{type(engine).__name__}"
    old = lake.create_table(name, "id bigint", primary_key=["id"])
    engine.write(old, "upsert", pa.table({"id": [1]}))
    lake.drop_table(name)
    new = lake.create_table(name, "id bigint", primary_key=["id"])
    assert (new.head, new.scan().count()) == (None, 0)
    assert new.location != old.location
