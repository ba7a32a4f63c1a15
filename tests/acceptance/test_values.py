"""Values: what is written is what is read, and what cannot be kept is refused before anything is changed."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelib import InvalidInputError, Lake
from lakelib.settings import StorageSettings
from tests.acceptance.support import Engine, NewTable, data, in_process, refused, rows_of

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
MOMENTS = [
    datetime(1, 1, 1),
    datetime(1582, 10, 4, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(2300, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
]

KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tinyint": (pa.int8(), [-128, -1, 0, 127]),
    "smallint": (pa.int16(), [-(2**15), 0, 2**15 - 1]),
    "int": (pa.int32(), [-(2**31), -1, 0, 2**31 - 1]),
    "bigint": (pa.int64(), [-(2**63), -1, 0, 2**63 - 1]),
    "string": (pa.string(), ["", " ", "a", "A", "ü", "日本", "z\U0001f600", "x" * 300, "\0", "a\0b"]),
    "binary": (pa.binary(), [b"", b"\x00", b"\x00\x00", b"\xff" * 80]),
    "date": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(2026, 11, 18), date(9999, 12, 31)]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
            datetime(2300, 1, 1, tzinfo=UTC),
        ],
    ),
    "timestamp_ntz": (
        pa.timestamp("us"),
        [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 1), datetime(9999, 1, 1)],
    ),
    "decimal(38,10)": (
        pa.decimal128(38, 10),
        [Decimal("-9999999999999999999999999999.9999999999"), Decimal("0E-10"), Decimal("0.0000000001")],
    ),
    "boolean": (pa.bool_(), [False, True]),
}

PARTITION_VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "string": (
        pa.string(),
        [
            None,
            "",
            " ",
            "a,b",
            "a=b",
            "a/b",
            "%41",
            "A",
            "ü",
            "..",
            ".",
            "NULL",
            "__HIVE_DEFAULT_PARTITION__",
            "x" * 1000,
        ],
    ),
    "int": (pa.int32(), [None, -1, 0, 1]),
    "date": (pa.date32(), [None, date(1, 1, 1), date(2026, 11, 18)]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [None, datetime(1969, 12, 31, 23, 59, 59, 1, UTC), datetime(2300, 1, 1, tzinfo=UTC)],
    ),
    "decimal(38,10)": (pa.decimal128(38, 10), [None, Decimal("-1.5000000000"), Decimal("0E-10")]),
    "boolean": (pa.bool_(), [None, False, True]),
    "binary": (pa.binary(), [None, b"", b"\x00", b"/\xff"]),
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("buckets", [4, "postpone"])
def test_a_key_of_every_type_finds_its_row(engine: Engine, new_table: NewTable, kind: str, buckets: Any) -> None:
    arrow, keys = KEYS[kind]
    schema = pa.schema([("k", arrow), ("n", pa.int64())])
    table = new_table(schema, primary_key=["k"], buckets=buckets, options={"min_bucket_file_bytes": 0})
    engine.write(table, "upsert", data(schema, *((key, 1) for key in keys)))
    engine.write(table, "upsert", data(schema, *((key, 2) for key in keys[1:])))
    engine.write(table, "delete_keys", data({"k": arrow}, (keys[-1],)))
    expected = [(keys[0], 1), *((key, 2) for key in keys[1:-1])]
    assert rows_of(engine, table.scan()) == sorted(expected, key=repr)


def test_a_key_of_nan_free_columns_may_stand_in_any_order(engine: Engine, new_table: NewTable) -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.int32()), ("c", pa.date32()), ("v", pa.int64())])
    table = new_table(schema, primary_key=["c", "a", "b"], buckets=2, options={"min_bucket_file_bytes": 0})
    day = date(2026, 11, 18)
    engine.write(table, "upsert", data(schema, ("x", 1, day, 1), ("x", 2, day, 1), ("", 1, day, 1)))
    engine.write(table, "upsert", data(schema, ("x", 1, day, 2)))
    assert rows_of(engine, table.scan(columns=["a", "b", "v"])) == [("", 1, 1), ("x", 1, 2), ("x", 2, 1)]


@pytest.mark.parametrize("kind", PARTITION_VALUES)
def test_partition_values_stay_distinct(engine: Engine, new_table: NewTable, kind: str) -> None:
    arrow, values = PARTITION_VALUES[kind]
    schema = pa.schema([("id", pa.int64()), ("p", arrow)])
    table = new_table(schema, primary_key=["id"], partition_by=["p"])
    engine.write(table, "upsert", data(schema, *((1, value) for value in values)))
    assert sorted(repr(found.values["p"]) for found in table.partitions()) == sorted(map(repr, values))
    assert len({file.path.rpartition("/")[0] for file in table.files()}) == len(values)
    for value in values:
        engine.write(table, "overwrite", data(schema), {"p": value})
        remaining = {repr(found.values["p"]) for found in table.partitions()}
        assert repr(value) not in remaining
        assert table.scan().count() == len(remaining)
    assert rows_of(engine, table.scan()) == []


def test_dropping_the_empty_partition_keeps_null(engine: Engine, new_table: NewTable) -> None:
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    table = new_table(schema, primary_key=["id"], partition_by=["p"])
    engine.write(table, "upsert", data(schema, (1, None), (2, ""), (3, "a")))
    table.delete("p = ''")
    assert rows_of(engine, table.scan()) == [(1, None), (3, "a")]
    table.delete("p is null")
    assert rows_of(engine, table.scan()) == [(3, "a")]


@pytest.mark.parametrize("where", ["p like 'a%'", "p like '%b'", "p = q", "p in ('ab', null)", "not p like 'b%'"])
def test_a_delete_over_partition_columns_takes_no_other_partition(
    engine: Engine, new_table: NewTable, where: str
) -> None:
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("q", pa.string())])
    table = new_table(schema, primary_key=["id"], partition_by=["p", "q"])
    engine.write(table, "upsert", data(schema, (1, "ab", "ab"), (2, "bc", "b"), (3, None, "b"), (4, "bd", None)))
    table.delete(where)
    assert rows_of(engine, table.scan(columns=["id"])) == [(2,), (3,), (4,)]


def test_special_floats_come_back_to_the_bit(engine: Engine, new_table: NewTable) -> None:
    schema = pa.schema([("id", pa.int64()), ("f", pa.float32()), ("d", pa.float64())])
    values = [math.nan, math.inf, -math.inf, 0.0, -0.0]
    table = new_table(schema, primary_key=["id"], options={"row_group_rows": 1})
    engine.write(table, "upsert", data(schema, *((number, value, value) for number, value in enumerate(values))))
    read = sorted(engine.read(table.scan()).to_pylist(), key=lambda row: row["id"])
    assert [repr(row["d"]) for row in read] == [repr(row["f"]) for row in read] == list(map(repr, values))
    assert rows_of(engine, table.scan(columns=["id"], where="d > 5")) == [(0,), (1,)]
    assert rows_of(engine, table.scan(columns=["id"], where="f = 0")) == [(3,), (4,)]
    assert rows_of(engine, table.scan(columns=["id"], where="d = CAST('NaN' AS DOUBLE)")) == [(0,)]


def test_a_nan_is_found_in_a_column_of_an_odd_name(engine: Engine, new_table: NewTable) -> None:
    name = "a\u2028b\nc"
    schema = pa.schema([("id", pa.int64()), (name, pa.float64())])
    table = new_table(schema)
    engine.write(table, "append", data(schema, (1, math.nan), (2, 1.0)))
    assert rows_of(engine, table.scan(columns=["id"], where=f"`{name}` > 5")) == [(1,)]


def test_nested_values_come_back(engine: Engine, new_table: NewTable) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("s", pa.struct([("a", pa.int32()), ("l", pa.list_(pa.struct([("x", pa.string())])))])),
            ("m", pa.map_(pa.string(), pa.list_(pa.int64()))),
        ]
    )
    rows = [
        (1, {"a": 1, "l": [{"x": "y"}, None, {"x": None}]}, [("k", [1, None]), ("e", [])]),
        (2, None, None),
        (3, {"a": None, "l": None}, []),
    ]
    table = new_table(schema, primary_key=["id"])
    engine.write(table, "upsert", data(schema, *rows))
    engine.write(table, "upsert", data(schema, rows[0]))
    assert rows_of(engine, table.scan()) == rows


def test_far_timestamps_are_exact(engine: Engine, new_table: NewTable) -> None:
    schema = pa.schema([("id", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("n", pa.timestamp("us"))])
    table = new_table(schema, primary_key=["id"])
    rows = [(number, moment.replace(tzinfo=UTC), moment) for number, moment in enumerate(MOMENTS)]
    engine.write(table, "upsert", data(schema, *rows))
    assert rows_of(engine, table.scan()) == rows
    assert rows_of(engine, table.scan(columns=["id"], where="t < '1970-01-01'")) == [(0,), (1,), (2,)]


def test_a_timestamp_beyond_the_range_is_refused_not_wrapped(
    engine: Engine, new_table: NewTable, storage: StorageSettings
) -> None:
    table = new_table("id bigint, t timestamp_ntz", primary_key=["id"])
    beyond = pa.table({"id": [1, 2], "t": pa.array([0, 2**62], pa.timestamp("s"))})
    with refused(table, storage, "'t'", engine.row(1)):
        engine.write(table, "upsert", beyond)


@in_process
def test_nanoseconds_that_microseconds_cannot_hold_are_refused(
    engine: Engine, new_table: NewTable, storage: StorageSettings
) -> None:
    table = new_table("id bigint, t timestamp_ntz", primary_key=["id"])
    engine.write(table, "upsert", pa.table({"id": [1], "t": pa.array([1000], pa.timestamp("ns"))}))
    with refused(table, storage, "'t'", engine.row(0), "00:00:00.000000001"):
        engine.write(table, "upsert", pa.table({"id": [1], "t": pa.array([1], pa.timestamp("ns"))}))


@pytest.mark.parametrize("kind", ["upsert", "append", "overwrite", "delete_keys"])
def test_null_in_a_key_is_refused(engine: Engine, new_table: NewTable, storage: StorageSettings, kind: str) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    table = new_table(schema, primary_key=["a", "b"])
    engine.write(table, "upsert", data(schema, (1, "x")))
    with refused(table, storage, "'b'", "NULL", engine.row(1)):
        engine.write(table, kind, data(schema, (1, "x"), (2, None)))


@pytest.mark.parametrize("kind", ["upsert", "append", "overwrite", "delete_keys"])
@pytest.mark.parametrize("column", ["key", "tags"])
def test_text_that_is_no_utf_8_is_refused(
    engine: Engine, new_table: NewTable, storage: StorageSettings, kind: str, column: str
) -> None:
    table = new_table("id bigint, key string, tags array<string>", primary_key=["id", "key"])
    engine.write(table, "upsert", data(table.schema, (1, "caf", ["caf"])))
    latin = pa.array([b"caf", b"caf\xe9"])
    text = pa.Array.from_buffers(pa.string(), 2, latin.buffers())
    tags = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), text)
    rows = pa.table({"id": [1, 2], "key": ["a", "b"], "tags": pa.nulls(2, pa.list_(pa.string()))})
    rows = rows.set_column(rows.schema.get_field_index(column), column, text if column == "key" else tags)
    if kind == "delete_keys" and column == "tags":
        engine.write(table, kind, rows)  # keys only are looked at
        return
    with refused(table, storage, f"'{column}'", engine.row(1), r"caf\xe9"):
        engine.write(table, kind, rows)


@pytest.mark.parametrize("kind", ["float", "double", "array<int>", "struct<a:int>", "map<int,int>"])
@pytest.mark.parametrize("argument", ["primary_key", "partition_by"])
def test_a_type_without_exact_equality_is_refused_as_key(
    lake: Lake, storage_kind: str, kind: str, argument: str
) -> None:
    with pytest.raises(InvalidInputError, match=rf"{argument} names the column 'k' of type {kind}.*Use an integer"):
        lake.create_table(f"{storage_kind}.refused", f"k {kind}, id bigint", **{"primary_key": ["id"], argument: ["k"]})
    assert "refused" not in lake.tables(storage_kind)


@pytest.mark.parametrize("kind", ["upsert", "append", "overwrite"])
def test_the_last_of_equal_keys_in_a_batch_wins(engine: Engine, new_table: NewTable, kind: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    table = new_table(schema, primary_key=["id"])
    engine.write(table, kind, data(schema, (1, 1), (2, 1), (1, 2), (1, 3)))
    assert rows_of(engine, table.scan()) == [(1, 3), (2, 1)]


@pytest.mark.parametrize("kind", ["upsert", "append", "delete_keys"])
def test_an_empty_batch_is_a_commit_that_changes_nothing(engine: Engine, new_table: NewTable, kind: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    table = new_table(schema, primary_key=["id"])
    engine.write(table, "upsert", data(schema, (1, 1)))
    assert engine.write(table, kind, data(schema)).id == 2
    assert rows_of(engine, table.scan()) == [(1, 1)]


@pytest.mark.parametrize("kind", ["upsert", "append", "overwrite", "delete_keys"])
@pytest.mark.parametrize("rows", [0, 2])
def test_a_batch_without_columns_is_refused(
    engine: Engine, new_table: NewTable, storage: StorageSettings, kind: str, rows: int
) -> None:
    table = new_table("id bigint, v bigint", primary_key=["id"])
    batch = pa.table({"x": [1] * rows}).select([])
    with refused(table, storage, "no columns"):
        engine.write(table, kind, batch)


def test_columns_may_come_in_any_order_and_case(engine: Engine, new_table: NewTable) -> None:
    table = new_table("id bigint, Größe string, `Two Words` int", primary_key=["ID"])
    engine.write(table, "upsert", pa.table({"TWO WORDS": pa.array([7], pa.int32()), "GRÖSSE": ["m"], "Id": [1]}))
    assert table.schema.names == ["id", "Größe", "Two Words"]
    assert rows_of(engine, table.scan(columns=["größe", "ID", "two words"])) == [("m", 1, 7)]


def test_two_columns_that_differ_by_case_are_refused(
    engine: Engine, new_table: NewTable, storage: StorageSettings
) -> None:
    table = new_table("id bigint, v bigint", primary_key=["id"])
    with refused(table, storage, "'v'", "'V'", "case"):
        engine.write(table, "upsert", pa.table({"id": [1], "v": [1], "V": [2]}))


def test_a_missing_nullable_column_is_null(engine: Engine, new_table: NewTable) -> None:
    table = new_table("id bigint, v bigint, s struct<a:int>", primary_key=["id"])
    engine.write(table, "upsert", pa.table({"id": [1]}))
    assert rows_of(engine, table.scan()) == [(1, None, None)]


@pytest.mark.parametrize("missing", ["id", "v"])
def test_a_missing_required_column_is_refused(
    engine: Engine, new_table: NewTable, storage: StorageSettings, missing: str
) -> None:
    table = new_table("id bigint, v bigint not null, n bigint", primary_key=["id"])
    batch = pa.table({"id": [1], "v": [1], "n": [1]})
    with refused(table, storage, repr(missing), "Add it"):
        engine.write(table, "upsert", batch.drop_columns(missing))


@pytest.mark.parametrize("missing", ["p", "seq"])
@pytest.mark.parametrize("kind", ["append", "upsert", "overwrite"])
def test_a_missing_partition_or_sequence_column_is_refused(
    engine: Engine, new_table: NewTable, storage: StorageSettings, missing: str, kind: str
) -> None:
    schema = "id bigint, p string, seq bigint"
    table = new_table(schema, primary_key=["id"], partition_by=["p"], sequence_by=["seq"])
    batch = pa.table({"id": [1], "p": ["a"], "seq": [1]})
    engine.write(table, "upsert", batch)
    with refused(table, storage, repr(missing), "Add it"):
        engine.write(table, kind, batch.drop_columns(missing))


def test_null_in_a_required_column_is_refused(engine: Engine, new_table: NewTable, storage: StorageSettings) -> None:
    table = new_table("id bigint, v bigint not null", primary_key=["id"])
    with refused(table, storage, "'v'", "NULL", engine.row(2)):
        engine.write(table, "upsert", pa.table({"id": [1, 2, 3], "v": [1, 2, None]}))


def test_a_delete_works_beside_a_required_column(engine: Engine, new_table: NewTable) -> None:
    table = new_table("id bigint, v bigint not null", primary_key=["id"])
    engine.write(table, "upsert", pa.table({"id": [1, 2], "v": [1, 2]}))
    engine.write(table, "delete_keys", pa.table({"id": [1]}))
    assert rows_of(engine, table.scan()) == [(2, 2)]


@pytest.mark.parametrize("kind", ["upsert", "append", "overwrite"])
def test_an_extra_column_is_refused(engine: Engine, new_table: NewTable, storage: StorageSettings, kind: str) -> None:
    table = new_table("id bigint, v bigint", primary_key=["id"])
    with refused(table, storage, "'extra'", "merge_schema"):
        engine.write(table, kind, pa.table({"id": [1], "v": [1], "extra": [1]}))


@pytest.mark.parametrize("name", ["_commit", "_op", "_OP"])
def test_a_reserved_name_is_refused(engine: Engine, new_table: NewTable, storage: StorageSettings, name: str) -> None:
    table = new_table("id bigint", primary_key=["id"])
    for options in ({}, {"merge_schema": True}):
        with refused(table, storage, repr(name), "reserved"):
            engine.write(table, "upsert", pa.table({"id": [1], name: [1]}), **options)


WRONG = {
    "string for bigint": (pa.array(["1"]), "v"),
    "bigint for int": (pa.array([1], pa.int64()), "i"),
    "double for float": (pa.array([1.0]), "f"),
    "bigint for string": (pa.array([1]), "t"),
    "decimal with more digits": (pa.array([Decimal("1.50")], pa.decimal128(20, 4)), "d"),
    "unsigned": (pa.array([1], pa.uint64()), "v"),
}


@pytest.mark.parametrize("case", WRONG)
def test_another_type_is_refused_without_explicit_cast(
    engine: Engine, new_table: NewTable, storage: StorageSettings, case: str
) -> None:
    column, name = WRONG[case]
    table = new_table("id bigint, v bigint, i int, f float, t string, d decimal(10,2)", primary_key=["id"])
    batch = pa.table({"id": [1], name: column})
    with refused(table, storage, repr(name), str(column.type), "explicit_cast"):
        engine.write(table, "upsert", batch)
    engine.write(table, "upsert", batch, explicit_cast=True)
    assert rows_of(engine, table.scan(columns=["id"])) == [(1,)]


LOSSY = {
    "text that is no number": (pa.array(["1", "x"]), "v", "'x'"),
    "a fraction": (pa.array([1.0, 1.5]), "v", "1.5"),
    "beyond int": (pa.array([1, 2**40]), "i", str(2**40)),
    "beyond float": (pa.array([1.0, 1e300]), "f", "1e+300"),
    "too many digits": (pa.array([Decimal("1.00"), Decimal("1.555")], pa.decimal128(10, 3)), "d", "1.555"),
}


@pytest.mark.parametrize("case", LOSSY)
def test_a_lossy_cast_is_never_done(engine: Engine, new_table: NewTable, storage: StorageSettings, case: str) -> None:
    column, name, value = LOSSY[case]
    table = new_table("id bigint, v bigint, i int, f float, d decimal(10,2)", primary_key=["id"])
    with refused(table, storage, repr(name), engine.row(1), value):
        engine.write(table, "upsert", pa.table({"id": [1, 2], name: column}), explicit_cast=True)


def test_a_refused_value_late_in_a_stream_leaves_nothing(
    engine: Engine, new_table: NewTable, storage: StorageSettings
) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = new_table(schema, primary_key=["id"], options={"write_buffer_bytes": 65536})
    good = pa.record_batch([pa.array(range(50)), pa.array(["x" * 5000] * 50)], schema=schema)
    bad = pa.record_batch([pa.array([None], pa.int64()), pa.array(["x"])], schema=schema)
    with refused(table, storage, "'id'", "NULL"):
        engine.write(table, "upsert", pa.RecordBatchReader.from_batches(schema, [good, good, bad]))


def test_a_partition_value_that_is_too_long_is_refused(
    engine: Engine, new_table: NewTable, storage: StorageSettings
) -> None:
    table = new_table("id bigint, p string", primary_key=["id"], partition_by=["p"])
    with refused(table, storage, "p take 3000 bytes", "shorter"):
        engine.write(table, "upsert", pa.table({"id": [1], "p": ["x" * 3000]}))


def test_merge_schema_adds_columns_and_widens_types(
    engine: Engine, new_table: NewTable, storage: StorageSettings
) -> None:
    table = new_table("id bigint, i int, f float, d decimal(10,2), s struct<a:int>", primary_key=["id"])
    first = pa.table(
        {"id": [1], "i": pa.array([1], pa.int32()), "s": pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))}
    )
    engine.write(table, "upsert", first)
    batch = pa.table(
        {
            "id": [2],
            "I": pa.array([2**40]),
            "f": pa.array([0.1]),
            "d": pa.array([Decimal("1.50")], pa.decimal128(12, 2)),
            "s": pa.array([{"a": 2, "b": "new"}]),
            "note": ["hello"],
        }
    )
    with refused(table, storage, "'note'", "merge_schema"):
        engine.write(table, "upsert", batch)
    engine.write(table, "upsert", batch, merge_schema=True)
    assert [str(field.type) for field in table.schema] == [
        "int64", "int64", "double", "decimal128(12, 2)", "struct<a: int64, b: string>", "string",
    ]  # fmt: skip
    assert rows_of(engine, table.scan()) == [
        (1, 1, None, None, {"a": 1, "b": None}, None),
        (2, 2**40, 0.1, Decimal("1.50"), {"a": 2, "b": "new"}, "hello"),
    ]


def test_merge_schema_takes_a_name_in_another_case_as_no_change(engine: Engine, new_table: NewTable) -> None:
    table = new_table("id bigint, Value bigint", primary_key=["id"])
    snapshot = engine.write(table, "upsert", pa.table({"ID": [1], "VALUE": [1]}), merge_schema=True)
    assert snapshot.schema_id == 1
    assert table.schema.names == ["id", "Value"]


@pytest.mark.parametrize("kind", ["id", "p"])
def test_merge_schema_never_widens_a_key(
    engine: Engine, new_table: NewTable, storage: StorageSettings, kind: str
) -> None:
    table = new_table("id int, p int", primary_key=["id"], partition_by=["p"])
    batch = pa.table({name: pa.array([1], pa.int64() if name == kind else pa.int32()) for name in ("id", "p")})
    with refused(table, storage, repr(kind), "keeps its type"):
        engine.write(table, "upsert", batch, merge_schema=True)


def test_merge_schema_refuses_a_type_that_is_not_wider(
    engine: Engine, new_table: NewTable, storage: StorageSettings
) -> None:
    table = new_table("id bigint, v bigint", primary_key=["id"])
    with refused(table, storage, "'v'", "string", "bigint"):
        engine.write(table, "upsert", pa.table({"id": [1], "v": ["x"]}), merge_schema=True)


def test_merge_schema_refuses_a_column_without_a_type(
    engine: Engine, new_table: NewTable, storage: StorageSettings
) -> None:
    table = new_table("id bigint", primary_key=["id"])
    with refused(table, storage, "'v'", "null"):
        engine.write(table, "upsert", pa.table({"id": [1], "v": pa.nulls(1)}), merge_schema=True)


def test_what_is_no_arrow_data_is_refused(engine: Engine, new_table: NewTable, storage: StorageSettings) -> None:
    table = new_table("id bigint", primary_key=["id"])
    for given in (({"id": 1},), "id", None, 5):
        with refused(table, storage, type(given).__name__, "pyarrow Table"):
            engine.write(table, "upsert", given)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"idempotency_key": "app"}, ("idempotency_key", "'app'")),
        ({"idempotency_key": ("app", -1)}, ("idempotency_key", "-1")),
        ({"idempotency_key": ("app", True)}, ("idempotency_key", "True")),
        ({"idempotency_key": ("a\ud800", 1)}, ("idempotency_key",)),
        ({"properties": {"a": 1}}, ("'a'", "1")),
        ({"properties": {"a": "\0"}}, ("'a'",)),
        ({"properties": {"a": "\ud800"}}, ("'a'",)),
        ({"aux_order": ["nope"]}, ("'nope'", "aux_order")),
        ({"aux_order": ["v", "V"]}, ("'v', 'V'", "aux_order")),
        ({"aux_order": ["arrived", "arrived"]}, ("'arrived'", "aux_order")),
        ({"aux_order": ["_op"]}, ("'_op'",)),
    ],
)
def test_a_wrong_keyword_is_refused(
    engine: Engine, new_table: NewTable, storage: StorageSettings, options: dict[str, Any], words: tuple[str, ...]
) -> None:
    table = new_table("id bigint, v bigint, arrived bigint", primary_key=["id"])
    with refused(table, storage, *words):
        engine.write(table, "upsert", pa.table({"id": [1], "v": [1], "arrived": [1]}), **options)
