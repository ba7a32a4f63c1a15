"""Incoming rows become the table's rows, or are refused with column, row, value and remedy."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column, TableSchema
from lakelib.rows.align import merge_source_columns, plan_alignment, plan_file_alignment

KEY = frozenset((1,))


def schema_of(*columns: tuple[str, str]) -> TableSchema:
    return TableSchema(
        id=1,
        columns=tuple(Column(id=number, name=name, type=kind) for number, (name, kind) in enumerate(columns, start=1)),
    )


TARGET = schema_of(("id", "bigint"), ("v", "int"), ("ts", "timestamp"))


def aligned(data: pa.Table, target: TableSchema = TARGET, **choices: Any) -> pa.RecordBatch:
    batch = data.to_batches()[0] if data.num_rows else pa.RecordBatch.from_pylist([], schema=data.schema)
    result = plan_alignment(data.schema, target, **({"required_ids": KEY} | choices)).apply(batch)
    result.validate(full=True)
    return result


def one_column(kind: str, values: Any, explicit_cast: bool = False) -> list[Any]:
    """The raw-exact values of one column after alignment, as Arrow shows them."""
    result: list[Any] = aligned(
        pa.table({"v": values}), schema_of(("v", kind)), required_ids=frozenset(), explicit_cast=explicit_cast
    )["v"].to_pylist()
    return result


def refused(data: pa.Table, target: TableSchema = TARGET, **choices: Any) -> str:
    with pytest.raises(InvalidInputError) as error:
        aligned(data, target, **choices)
    assert error.value.remedy
    return str(error.value)


def test_columns_match_in_any_order_and_case_and_missing_ones_are_null() -> None:
    result = aligned(pa.table({"V": pa.array([7], pa.int8()), "ID": [1]}))
    assert result.schema.names == ["id", "v", "ts"]
    assert result.to_pylist() == [{"id": 1, "v": 7, "ts": None}]


def test_columns_that_fit_are_not_copied() -> None:
    data = pa.table({"id": [1, 2], "v": pa.array([1, 2], pa.int32())})
    result = aligned(data)
    assert result["id"].buffers()[1].address == data["id"].chunk(0).buffers()[1].address


def test_two_columns_that_differ_only_by_case_are_refused() -> None:
    assert "'id' and 'ID'" in refused(pa.table({"id": [1], "ID": [1]}))


def test_data_without_columns_is_refused() -> None:
    assert "no columns" in refused(pa.table({}))


def test_an_unknown_column_is_refused_with_merge_schema_as_remedy() -> None:
    message = refused(pa.table({"id": [1], "new": [1]}))
    assert "'new'" in message
    assert "merge_schema=True" in message


def test_a_hidden_column_in_the_data_is_refused() -> None:
    assert "'_commit' of the data has a reserved name" in refused(pa.table({"id": [1], "_commit": [1]}))


def test_a_missing_key_is_refused() -> None:
    assert "'id' is missing" in refused(pa.table({"v": pa.array([1], pa.int32())}))


def test_null_in_a_key_is_refused_with_its_row() -> None:
    assert "'id' is NULL in row 1 " in refused(pa.table({"id": [1, None]}))


def test_null_in_a_column_declared_not_null_is_refused() -> None:
    target = TableSchema(id=1, columns=(Column(id=1, name="a", type="int", nullable=False),))
    assert "'a' is NULL in row 0 " in refused(
        pa.table({"a": pa.array([None], pa.int32())}), target, required_ids=frozenset()
    )
    assert "'a' is missing" in refused(pa.table({"b": [1]}), target, required_ids=frozenset(), only_ids=KEY)


def test_a_column_of_type_null_fits_any_nullable_column() -> None:
    target = schema_of(("id", "bigint"), ("s", "struct<a:int>"), ("l", "array<string>"))
    assert aligned(pa.table({"id": [1], "s": pa.nulls(1), "l": pa.nulls(1)}), target).to_pylist() == [
        {"id": 1, "s": None, "l": None}
    ]


def test_an_empty_batch_stays_empty() -> None:
    assert aligned(pa.table({"id": pa.array([], pa.null())})).num_rows == 0


def test_extra_columns_are_carried_along_untouched() -> None:
    data = pa.table({"id": [1], "Pos": pa.array([3], pa.uint8()), "v": pa.array([1], pa.int32())})
    result = aligned(data, extra=["pos", "v"])
    assert result.schema.names == ["id", "v", "ts", "pos"]
    assert result.schema.field("pos").type == pa.uint8()
    assert "'gone' is not in the data" in refused(data, extra=["gone"])


def test_only_the_wanted_columns_are_looked_at() -> None:
    result = aligned(pa.table({"id": [1], "v": ["not a number"], "x": [1]}), only_ids=KEY)
    assert result.to_pylist() == [{"id": 1}]


@pytest.mark.parametrize(
    ("kind", "given", "values"),
    [
        ("bigint", pa.array([1], pa.int8()), [1]),
        ("bigint", pa.array([2**32 - 1], pa.uint32()), [2**32 - 1]),
        ("double", pa.array([0.5], pa.float32()), [0.5]),
        ("double", pa.array([2**31 - 1], pa.int32()), [2**31 - 1]),
        ("float", pa.array([0.5], pa.float16()), [0.5]),
        ("float", pa.array([-(2**15)], pa.int16()), [-(2**15)]),
        ("string", pa.array(["ü"], pa.large_string()), ["ü"]),
        ("string", pa.array(["a", "a"]).dictionary_encode(), ["a", "a"]),
        ("binary", pa.array([b"ab"], pa.binary(2)), [b"ab"]),
    ],
)
def test_types_are_cast_where_every_value_fits(kind: str, given: pa.Array, values: list[Any]) -> None:
    assert one_column(kind, given) == values


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("decimal(12,2)", pa.decimal128(10, 2)),
        ("decimal(12,4)", pa.decimal128(10, 2)),
        ("decimal(20,0)", pa.uint64()),
        ("decimal(12,2)", pa.int32()),
        ("date", pa.date64()),
        ("timestamp", pa.timestamp("us", "Europe/Berlin")),
        ("timestamp", pa.timestamp("ns", "UTC")),
        ("timestamp_ntz", pa.timestamp("s")),
    ],
)
def test_types_that_fit_are_planned_without_explicit_cast(kind: str, given: pa.DataType) -> None:
    assert aligned(pa.table({"v": pa.nulls(2, given)}), schema_of(("v", kind)), required_ids=frozenset()).num_rows == 2


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("int", pa.int64()),
        ("int", pa.uint32()),
        ("bigint", pa.uint64()),
        ("bigint", pa.string()),
        ("string", pa.int64()),
        ("float", pa.float64()),
        ("float", pa.int32()),
        ("double", pa.int64()),
        ("decimal(11,4)", pa.decimal128(10, 2)),
        ("decimal(12,2)", pa.decimal128(12, 3)),
        ("decimal(11,2)", pa.int32()),
        ("timestamp", pa.timestamp("us")),
        ("timestamp_ntz", pa.timestamp("us", "UTC")),
        ("date", pa.timestamp("us")),
        ("string", pa.binary()),
        ("array<int>", pa.list_(pa.int64())),
        ("array<int>", pa.int32()),
        ("timestamp", pa.int64()),
    ],
)
def test_types_that_may_lose_a_value_are_refused_without_explicit_cast(kind: str, given: pa.DataType) -> None:
    message = refused(pa.table({"v": pa.nulls(1, given)}), schema_of(("v", kind)), required_ids=frozenset())
    assert "Column 'v" in message
    assert "explicit_cast=True" in message


@pytest.mark.parametrize(
    ("kind", "given", "values"),
    [
        ("bigint", ["12", None], [12, None]),
        ("int", pa.array([5], pa.int64()), [5]),
        ("int", pa.array([5.0]), [5]),
        ("string", pa.array([5], pa.int64()), ["5"]),
        ("boolean", pa.array([0, 1], pa.int8()), [False, True]),
        ("float", pa.array([0.1]), [pa.scalar(0.1, pa.float32()).as_py()]),
    ],
)
def test_an_explicit_cast_converts_values_that_fit(kind: str, given: Any, values: list[Any]) -> None:
    assert one_column(kind, given, explicit_cast=True) == values


def test_timestamps_in_text_without_a_zone_are_utc_under_an_explicit_cast() -> None:
    given = ["2026-11-18", "2026-11-18 10:00:00.5", "2026-11-18T11:00:00.5+01:00", None]
    day, morning, same, nothing = one_column("timestamp", given, explicit_cast=True)
    assert [str(day), str(morning)] == ["2026-11-18 00:00:00+00:00", "2026-11-18 10:00:00.500000+00:00"]
    assert same == morning
    assert nothing is None


@pytest.mark.parametrize(
    ("kind", "given", "shown"),
    [
        ("bigint", ["1", "abc"], "row 1 .*'abc'"),
        ("bigint", ["16", "0x10"], "row 1 .*'0x10'"),
        ("tinyint", pa.array([1, 2, 128]), "row 2 .*128"),
        ("int", pa.array([1.0, 1.5]), "row 1 .*1.5"),
        ("int", pa.array([float("nan")]), "row 0 .*nan"),
        ("bigint", pa.array([2**63], pa.uint64()), "row 0 .*9223372036854775808"),
        ("double", pa.array([2**53 + 1]), "row 0 .*9007199254740993"),
        ("float", pa.array([1.0, 1e300]), "row 1 .*1e"),
        ("double", ["1e400"], "row 0 .*1e400"),
        ("decimal(4,2)", pa.array([1.25, 1.255]), "row 1 .*1.255"),
        ("decimal(4,2)", pa.array([99, 100]), "row 1 .*100"),
        ("decimal(4,2)", ["1.234"], "row 0 .*'1.234'"),
        ("boolean", pa.array([1, 2]), "row 1 .*2"),
        ("date", pa.array([0, 1], pa.timestamp("us")), "row 1 .*1970-01-01T00:00:00.000001"),
        ("timestamp", ["2026-13-01"], "row 0 .*2026-13-01"),
        ("string", pa.array([b"ok", b"\xff"]), r"row 1 .*xff"),
        ("array<int>", pa.array([[1], None, [2, 2**40]]), r"row 2 .*1099511627776"),
    ],
)
def test_a_value_that_does_not_convert_exactly_is_named_with_its_row(kind: str, given: Any, shown: str) -> None:
    with pytest.raises(InvalidInputError, match=f"Column 'v', {shown}"):
        one_column(kind, given, explicit_cast=True)


@pytest.mark.parametrize(
    ("unit", "value", "shown"),
    [("ns", 1_001, "000001001"), ("s", 2**60, "Z does not convert"), ("ms", -(2**62), "Z does not convert")],
)
def test_timestamps_out_of_range_or_finer_than_microseconds_are_refused_not_wrapped(
    unit: str, value: int, shown: str
) -> None:
    stamps = pa.array([0, value], pa.int64()).view(pa.timestamp(unit, "UTC"))
    message = refused(pa.table({"id": [1, 2], "ts": stamps}))
    assert "Column 'ts', row 1 " in message
    assert shown in message


def test_timestamps_before_1970_and_after_2262_are_exact() -> None:
    stamps = pa.array([-1, 10**11], pa.int64()).view(pa.timestamp("s", "UTC"))
    result = aligned(pa.table({"id": [1, 2], "ts": stamps}))
    assert result["ts"].view(pa.int64()).to_pylist() == [-(10**6), 10**17]


NESTED = schema_of(
    ("id", "bigint"), ("s", "struct<a:bigint,b:string>"), ("l", "array<struct<x:int>>"), ("m", "map<string,double>")
)


def test_nested_fields_match_by_name_and_missing_ones_are_null() -> None:
    data = pa.table(
        {
            "id": [1, 2],
            "S": pa.array([{"A": 1}, None], pa.struct([("A", pa.int8())])),
            "l": pa.array([[{"X": 1}, None], None], pa.large_list(pa.struct([("X", pa.int16())]))),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.large_string(), pa.int8())),
        }
    )
    assert aligned(data, NESTED).to_pylist() == [
        {"id": 1, "s": {"a": 1, "b": None}, "l": [{"x": 1}, None], "m": [("k", 1.0)]},
        {"id": 2, "s": None, "l": None, "m": None},
    ]


@pytest.mark.parametrize("rows", [(0, 5), (1, 3), (2, 1), (3, 2)])
def test_slices_of_nested_columns_convert_alike(rows: tuple[int, int]) -> None:
    data = pa.table(
        {
            "id": [1, 2, 3, 4, 5],
            "s": pa.array([{"a": n} if n % 2 else None for n in range(5)], pa.struct([("a", pa.int16())])),
            "l": pa.array(
                [[{"x": 1}] * n if n != 2 else None for n in range(5)], pa.list_view(pa.struct([("x", pa.int8())]))
            ),
            "m": pa.array([[("k", n)] * n if n != 3 else None for n in range(5)], pa.map_(pa.string(), pa.float32())),
        }
    )
    plan = plan_alignment(data.schema, NESTED, required_ids=KEY)
    batch = data.to_batches()[0]
    sliced = plan.apply(batch.slice(*rows))
    sliced.validate(full=True)
    assert sliced.to_pylist() == plan.apply(batch).slice(*rows).to_pylist()


def test_fixed_size_lists_with_null_convert() -> None:
    values = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2))
    assert one_column("array<bigint>", values) == [[1, 2], None, [3, 4]]


def test_an_unknown_nested_field_is_refused_by_its_path() -> None:
    message = refused(pa.table({"id": [1], "l": [[{"x": 1, "y": 2}]]}), NESTED)
    assert "'l.element.y'" in message
    assert "merge_schema=True" in message


def merged(data: pa.Table, target: TableSchema = TARGET, **choices: Any) -> TableSchema | None:
    return merge_source_columns(data.schema, target, 9, **({"explicit_cast": False} | choices))


def test_merging_appends_new_columns_as_nullable_with_new_ids() -> None:
    result = merged(pa.table({"B": [1.5], "id": [1], "a": ["x"]}), ignore=["A"])
    assert result == TableSchema(id=2, columns=(*TARGET.columns, Column(id=9, name="B", type="double")))


def test_merging_what_the_table_has_already_changes_nothing() -> None:
    assert merged(pa.table({"ID": pa.array([1], pa.int8()), "V": pa.array([1], pa.int32()), "ts": pa.nulls(1)})) is None


@pytest.mark.parametrize(
    ("before", "given", "after"),
    [
        ("int", pa.int64(), "bigint"),
        ("tinyint", pa.int16(), "smallint"),
        ("float", pa.float64(), "double"),
        ("decimal(10,2)", pa.decimal128(12, 2), "decimal(12,2)"),
        ("decimal(10,2)", pa.decimal128(12, 4), "decimal(12,4)"),
        ("struct<a:int>", pa.struct([("A", pa.int64()), ("B", pa.string())]), "struct<a:bigint,B:string>"),
        ("array<struct<a:int>>", pa.list_(pa.struct([("b", pa.date64())])), "array<struct<a:int,b:date>>"),
        ("map<string,int>", pa.map_(pa.string(), pa.int64()), "map<string,bigint>"),
        ("int", pa.dictionary(pa.int8(), pa.int64()), "bigint"),
    ],
)
def test_merging_widens_types(before: str, given: pa.DataType, after: str) -> None:
    result = merged(pa.table({"v": pa.nulls(1, given)}), schema_of(("v", before)))
    assert result is not None
    assert result.columns[0].type == after


@pytest.mark.parametrize(
    ("before", "given"),
    [
        ("bigint", pa.string()),
        ("string", pa.int64()),
        ("decimal(10,2)", pa.decimal128(10, 3)),
        ("int", pa.float64()),
        ("float", pa.int64()),
        ("struct<a:bigint>", pa.struct([("a", pa.string())])),
        ("timestamp", pa.timestamp("us")),
    ],
)
def test_merging_refuses_a_conflict_of_types_without_explicit_cast(before: str, given: pa.DataType) -> None:
    data, target = pa.table({"v": pa.nulls(1, given)}), schema_of(("v", before))
    with pytest.raises(InvalidInputError, match=r"Column 'v.*explicit_cast=True"):
        merged(data, target)
    assert merged(data, target, explicit_cast=True) is None


def test_merging_never_widens_a_key() -> None:
    data, target = pa.table({"id": pa.array([1], pa.int64())}), schema_of(("id", "int"))
    with pytest.raises(InvalidInputError, match="'id' has type int64 in the data and int in the table"):
        merged(data, target, fixed_ids=KEY)
    assert merged(data, target, fixed_ids=KEY, explicit_cast=True) is None


def test_merging_refuses_columns_that_no_table_can_have() -> None:
    with pytest.raises(InvalidInputError, match=r"'t'.*time64"):
        merged(pa.table({"t": pa.nulls(1, pa.time64("us"))}))
    with pytest.raises(InvalidInputError, match="'_op' is reserved"):
        merged(pa.table({"_op": [1]}))


OLD = TableSchema(
    id=1,
    columns=(
        Column(id=1, name="a", type="int"),
        Column(id=2, name="b", type="struct<x:int>"),
        Column(id=3, name="gone", type="string"),
    ),
)


def test_rows_of_older_files_are_renamed_widened_and_filled_by_column_id() -> None:
    wanted = (
        Column(id=2, name="B2", type="struct<x:bigint,y:string>"),
        Column(id=9, name="a", type="date"),
        Column(id=1, name="b", type="bigint"),
    )
    plan = plan_file_alignment(OLD, wanted)
    assert plan.file_columns == ("b", "a")
    stored = pa.table(
        {
            "a": pa.chunked_array([[1], [2]], pa.int32()),
            "b": pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())])),
            "_commit": pa.array([5, None], pa.int64()),
            "_op": pa.array([0, 1], pa.int8()),
        }
    )
    result = plan.apply(stored)
    result.validate(full=True)
    assert result.schema.names == ["B2", "a", "b", "_commit", "_op"]
    assert result.to_pylist() == [
        {"B2": {"x": 1, "y": None}, "a": None, "b": 1, "_commit": 5, "_op": 0},
        {"B2": None, "a": None, "b": 2, "_commit": None, "_op": 1},
    ]


def test_files_of_the_wanted_schema_are_not_copied() -> None:
    stored = pa.table({"a": pa.array([1, 2], pa.int32()), "gone": ["x", "y"]})
    result = plan_file_alignment(OLD, (OLD.columns[2], OLD.columns[0])).apply(stored)
    for name in ("a", "gone"):
        before, after = stored[name].chunk(0).buffers(), result[name].chunk(0).buffers()
        assert [b and b.address for b in before] == [b and b.address for b in after]


def test_a_newer_file_is_read_under_an_older_schema_where_values_fit() -> None:
    new = TableSchema(id=2, columns=(Column(id=2, name="b", type="struct<x:bigint,y:string>"),))
    plan = plan_file_alignment(new, (OLD.columns[1],))
    rows = pa.array([{"x": 1, "y": "later"}], pa.struct([("x", pa.int64()), ("y", pa.string())]))
    assert plan.apply(pa.table({"b": rows})).to_pylist() == [{"b": {"x": 1}}]


@pytest.mark.parametrize(("kind", "view"), [("string", pa.string_view()), ("binary", pa.binary_view())])
def test_codes_of_a_dictionary_of_views_become_text(kind: str, view: pa.DataType) -> None:
    words = pa.array(["x", "y", None, "unused"], view)
    coded = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 2, 1], pa.uint32()), words)
    expected = ["y", "x", None, None, "y"]
    assert one_column(kind, coded) == (expected if kind == "string" else [word and word.encode() for word in expected])
    assert one_column(kind, coded[1:2]) == one_column(kind, coded)[1:2]
    nested = pa.ListArray.from_arrays(pa.array([0, 2, 5], pa.int32()), coded)
    assert one_column(f"array<{kind}>", nested) == [one_column(kind, coded)[:2], one_column(kind, coded)[2:]]


def test_whole_numbers_for_a_narrower_column_are_refused_with_the_way_out() -> None:
    assert "int64 in the data and int in the table" in refused(pa.table({"id": [1], "v": [1]}))
    assert "explicit_cast=True" in refused(pa.table({"id": [1], "v": [1]}))
    assert aligned(pa.table({"id": [1], "v": [1]}), explicit_cast=True)["v"].to_pylist() == [1]


def test_rows_of_a_known_schema_are_aligned_by_the_plan_that_was_made_for_it() -> None:
    source = pa.schema([("id", pa.int64()), ("v", pa.int32()), ("at", pa.int32())])
    again = pa.schema([field.with_metadata({"written": "later"}) for field in source])
    same = TableSchema(id=TARGET.id, columns=TARGET.columns)
    first = plan_alignment(source, TARGET, required_ids=KEY, extra=["at"])
    assert plan_alignment(source, same, required_ids=KEY, extra=["at"]) is first
    assert plan_alignment(again, TARGET, required_ids=KEY, extra=["at"]).schema.equals(first.schema, True)


@pytest.mark.parametrize(
    "changed",
    [
        {"required_ids": frozenset((1, 2))},
        {"extra": ["id"]},
        {"explicit_cast": True},
        {"only_ids": KEY},
        {"target": schema_of(("id", "bigint"), ("v", "bigint"), ("ts", "timestamp"))},
        {"source": pa.schema([("id", pa.int64()), ("v", pa.int16())])},
    ],
)
def test_a_plan_is_for_what_it_was_made_for(changed: dict[str, Any]) -> None:
    asked = {"source": pa.schema([("id", pa.int64()), ("v", pa.int32())]), "target": TARGET, "required_ids": KEY}
    assert plan_alignment(**(asked | changed)) is not plan_alignment(**asked)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_a_float_becomes_the_decimal_that_is_written_like_it(kind: pa.DataType) -> None:
    """Prices as pandas reads them: the nearest float's further digits are no part of the price."""
    prices = [Decimal(number) / 100 for number in range(0, 100_000, 7)]
    floats = pa.array([float(price) for price in prices], kind)
    assert one_column("decimal(10,2)", floats, explicit_cast=True) == prices


def test_a_float_with_more_digits_than_the_decimal_is_refused() -> None:
    for value in (142.205, 0.1 + 0.2, 1e9, float("nan"), float("inf")):
        data, target = pa.table({"v": [1.0, value]}), schema_of(("v", "decimal(10,2)"))
        told = refused(data, target, required_ids=frozenset(), explicit_cast=True)
        assert "row 1" in told


def test_several_wrong_values_are_told_together_in_the_order_of_their_rows() -> None:
    data = pa.table({"id": [1, None, 3, 4], "v": ["1", "2", "x", "y"]})
    told = refused(data, explicit_cast=True)
    assert told.startswith(
        "Column 'id' is NULL in row 1 (counted from 0), and may not be NULL. The row: id = None, v ="
    )
    both = [f"Column 'v', row {row} (counted from 0): '{text}' does not convert" for row, text in ((2, "x"), (3, "y"))]
    assert f"Wrong, too: {both[0]} exactly from string to int; {both[1]} exactly from string to int." in told


def test_rows_are_counted_from_where_the_batch_begins() -> None:
    batch = pa.record_batch({"id": [1, 2], "v": ["1", "x"]})
    with pytest.raises(InvalidInputError, match=r"'v', row 1001 "):
        plan_alignment(batch.schema, TARGET, required_ids=KEY, explicit_cast=True).apply(batch, 1000)


def test_of_very_many_wrong_values_it_is_said_how_many_there_are_at_least() -> None:
    told = refused(pa.table({"id": range(5_000), "v": ["x"] * 5_000}), explicit_cast=True)
    assert told.count("does not convert") == 10
    assert "; and at least 990 more." in told


NANOS = [0, 1, 499, 500, 1_499, 1_500, -1, -499, -500, -501, -1_500, 2**63 - 1, -(2**63) + 1, None]


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_are_rounded_where_that_is_asked_for(zone: str | None) -> None:
    target = schema_of(("a", "timestamp" if zone else "timestamp_ntz"))
    given = pa.array(NANOS, pa.timestamp("ns", zone))
    plan = plan_alignment(pa.schema([("a", given.type)]), target, required_ids=frozenset(), explicit_cast=True)
    found = plan.apply(pa.record_batch({"a": given})).column("a").cast(pa.int64()).to_pylist()
    assert found == [None if each is None else math.floor(Fraction(each, 1000) + Fraction(1, 2)) for each in NANOS]


def test_nested_nanoseconds_are_rounded_too() -> None:
    given = pa.array([[1_501, None], None, []], pa.list_(pa.timestamp("ns")))
    target = schema_of(("a", "array<timestamp_ntz>"))
    plan = plan_alignment(pa.schema([("a", given.type)]), target, required_ids=frozenset(), explicit_cast=True)
    found = plan.apply(pa.record_batch({"a": given})).column("a").cast(pa.list_(pa.int64())).to_pylist()
    assert found == [[2, None], None, []]


@pytest.mark.parametrize("kind", ["timestamp_ntz", "array<timestamp_ntz>"])
def test_nanoseconds_that_nobody_asked_to_round_are_refused_with_the_way(kind: str) -> None:
    given = pa.array([1_501], pa.timestamp("ns"))
    values = given if kind == "timestamp_ntz" else pa.ListArray.from_arrays([0, 1], given)
    plan = plan_alignment(pa.schema([("a", values.type)]), schema_of(("a", kind)), required_ids=frozenset())
    with pytest.raises(InvalidInputError, match="does not convert exactly") as caught:
        plan.apply(pa.record_batch({"a": values}))
    assert "explicit_cast=True" in str(caught.value.remedy)
