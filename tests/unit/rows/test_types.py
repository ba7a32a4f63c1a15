"""Types have one text each, and values three forms: raw, Python and text."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelib.errors import InvalidInputError
from lakelib.model.schema import COMMIT_COLUMN, OP_COLUMN, Column
from lakelib.rows.types import arrow_schema, arrow_type, python_value, raw_value, raw_values, type_text

TEXTS = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(38,10)",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "array<int>",
    "map<string,array<double>>",
    "struct<a:int,`b c`:struct<`x``y`:date>,`ü`:string>",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_type_has_one_text(text: str) -> None:
    assert type_text(arrow_type(text)) == text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.large_binary(), "binary"),
        (pa.binary(16), "binary"),
        (pa.date64(), "date"),
        (pa.timestamp("ns", "Europe/Berlin"), "timestamp"),
        (pa.timestamp("s"), "timestamp_ntz"),
        (pa.large_list(pa.int64()), "array<bigint>"),
        (pa.list_(pa.int64(), 3), "array<bigint>"),
        (pa.decimal32(5, 2), "decimal(5,2)"),
        (pa.decimal64(15, 0), "decimal(15,0)"),
        (pa.map_(pa.large_string(), pa.date64()), "map<string,date>"),
    ],
)
def test_variants_of_a_type_share_its_text(given: pa.DataType, text: str) -> None:
    assert type_text(given) == text


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (pa.uint32(), "uint32.*bigint"),
        (pa.uint64(), r"uint64.*decimal\(20,0\)"),
        (pa.float16(), "halffloat.*float"),
        (pa.time64("us"), "time64.*string"),
        (pa.duration("s"), "duration.*bigint"),
        (pa.month_day_nano_interval(), "interval.*bigint"),
        (pa.decimal256(50, 2), "decimal256.*38"),
        (pa.decimal128(5, -2), r"decimal\(5,-2\).*scale"),
        (pa.dense_union([pa.field("a", pa.int8())]), "union.*Declare"),
        (pa.null(), "null.*Declare"),
        (pa.uuid(), r"uuid.*fixed_size_binary\[16\]"),
        (pa.list_(pa.uint8()), "uint8.*smallint"),
        (pa.struct([]), "at least one field"),
        (pa.struct([("a", pa.int8()), ("A", pa.int8())]), "two fields named 'a'"),
    ],
)
def test_an_unsupported_type_is_refused_with_what_to_declare(given: pa.DataType, named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        type_text(given)


def test_aliases_case_and_spaces_do_not_matter() -> None:
    assert type_text(arrow_type(" STRUCT< a : Long , b: ARRAY<Integer>, c: numeric(10, 2) > ")) == (
        "struct<a:bigint,b:array<int>,c:decimal(10,2)>"
    )


@pytest.mark.parametrize(
    "text",
    ["", "foo", "array<int", "array", "int>", "struct<>", "struct<a>", "decimal(39,1)", "decimal(5,6)", "array<" * 40],
)
def test_text_that_names_no_type_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        arrow_type(text)


def test_a_schema_carries_column_ids_nullability_and_hidden_columns() -> None:
    columns = [Column(id=3, name="id", type="bigint", nullable=False), Column(id=7, name="v", type="string")]
    schema = arrow_schema(columns, hidden=(COMMIT_COLUMN, OP_COLUMN))
    assert schema.names == ["id", "v", "_commit", "_op"]
    assert [field.nullable for field in schema] == [False, True, True, True]
    assert [schema.field(name).metadata for name in ("id", "v")] == [
        {b"PARQUET:field_id": b"3"},
        {b"PARQUET:field_id": b"7"},
    ]
    assert schema.field("_commit").type == pa.int64()
    assert schema.field("_op").type == pa.int8()


def test_raw_values_are_exact_beyond_the_range_of_python_dates() -> None:
    far = 2**62
    stamps = pa.array([far, -far, None], pa.int64()).view(pa.timestamp("us", "UTC"))
    days = pa.array([2**30, -(2**30), None], pa.int32()).view(pa.date32())
    assert raw_values(stamps) == [far, -far, None]
    assert raw_values(days) == [2**30, -(2**30), None]


def test_raw_decimals_are_unscaled_and_keep_all_38_digits() -> None:
    largest = 10**38 - 1
    array = pa.array([Decimal(largest), Decimal("-1"), None], pa.decimal128(38, 0))
    assert raw_values(array) == [largest, -1, None]
    assert raw_values(pa.array([Decimal("1.50")], pa.decimal128(10, 2)).slice(0)) == [150]


def test_raw_values_of_slices_and_dictionaries() -> None:
    array = pa.array(["a", None, "ü"])
    assert raw_values(array.slice(1)) == [None, "ü"]
    assert raw_values(array.dictionary_encode()) == ["a", None, "ü"]


UTC = dt.UTC


@pytest.mark.parametrize(
    ("text", "raw", "value"),
    [
        ("date", 20_775, dt.date(2026, 11, 18)),
        ("timestamp", -1, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("timestamp_ntz", 1, dt.datetime(1970, 1, 1, 0, 0, 0, 1)),
        ("decimal(38,10)", 10**38 - 1, Decimal("9999999999999999999999999999.9999999999")),
        ("boolean", True, True),
        ("bigint", -(2**63), -(2**63)),
        ("double", 0.1, 0.1),
        ("string", "ü", "ü"),
        ("binary", b"\xff", b"\xff"),
    ],
)
def test_python_and_raw_values_lead_to_each_other(text: str, raw: Any, value: Any) -> None:
    assert python_value(text, raw) == value
    assert raw_value(text, value) == raw


def test_moments_that_python_cannot_hold_come_as_text() -> None:
    assert python_value("timestamp", 2**62) == "148108-07-06T14:00:27.387904Z"
    assert python_value("date", 2**30) == "2941775-04-07"


@pytest.mark.parametrize(
    ("type_name", "text", "raw"),
    [
        ("date", "2026-11-18", 20_775),
        ("timestamp", "1970-01-01", 0),
        ("timestamp", "1970-01-01 00:00:00.000001", 1),
        ("timestamp", "1970-01-01T01:00:00+01:00", 0),
        ("timestamp", "1970-01-01 00:00Z", 0),
        ("timestamp_ntz", "1970-01-01 00:00:01", 1_000_000),
        ("decimal(10,2)", "-1.5", -150),
        ("decimal(10,2)", "1e3", 100_000),
        ("bigint", "-12", -12),
        ("boolean", "TRUE", True),
        ("double", "1e3", 1000.0),
        ("binary", "ü", "ü".encode()),
    ],
)
def test_text_of_a_value_is_taken(type_name: str, text: str, raw: Any) -> None:
    assert raw_value(type_name, text) == raw


def test_a_timestamp_without_a_zone_is_utc() -> None:
    assert raw_value("timestamp", dt.datetime(1970, 1, 1, 1)) == raw_value("timestamp", "1970-01-01 01:00:00Z")


def test_nan_is_a_value_of_a_double() -> None:
    assert math.isnan(float(raw_value("double", "NaN")))


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("date", "18.11.2026"),
        ("date", "2026-02-30"),
        ("date", dt.datetime(2026, 11, 18)),
        ("timestamp", "2026-11-18 10:00:00.1234567"),
        ("timestamp", 5),
        ("timestamp_ntz", "2026-11-18 10:00:00Z"),
        ("decimal(4,2)", "100"),
        ("decimal(4,2)", "1.234"),
        ("decimal(4,2)", 1.5),
        ("tinyint", 128),
        ("bigint", True),
        ("bigint", "1.0"),
        ("bigint", 1.0),
        ("boolean", 1),
        ("string", 1),
        ("string", "\ud800"),
        ("binary", 1),
        ("double", "abc"),
        ("double", True),
        ("date", None),
        ("array<int>", [1]),
    ],
)
def test_what_is_not_exactly_a_value_is_refused_with_what_to_give(type_name: str, value: Any) -> None:
    with pytest.raises(InvalidInputError) as refused:
        raw_value(type_name, value)
    assert refused.value.kind == "wrong_value"
    assert refused.value.remedy
