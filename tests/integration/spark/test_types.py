"""Every type of Spark that a table can have comes back as it was, by Spark and by Arrow; the others are refused."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from pyspark.ml.linalg import Vectors
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

import lakelib.spark
from lakelib import InvalidInputError, Lake, Table

UTC_TIME = pa.timestamp("us", "UTC")
FAR = [datetime(1, 1, 1), datetime(1582, 10, 10), datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(9999, 12, 30)]
POINT = pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.string())), ("deep", pa.struct([("d", pa.date32())]))])

TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "tinyint": (pa.int8(), [-128, 127]),
    "smallint": (pa.int16(), [-(2**15), 2**15 - 1]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1]),
    "bigint": (pa.int64(), [-(2**63), 2**63 - 1]),
    "float": (pa.float32(), [math.nan, -0.0, 0.0, math.inf, -math.inf, 1.5]),
    "double": (pa.float64(), [math.nan, -0.0, 0.0, math.inf, -math.inf, 5e-324]),
    "decimal(5,2)": (pa.decimal128(5, 2), [Decimal("-999.99"), Decimal("0.00")]),
    "decimal(18,0)": (pa.decimal128(18, 0), [Decimal(10**18 - 1)]),
    "decimal(38,10)": (pa.decimal128(38, 10), [Decimal("-9999999999999999999999999999.9999999999")]),
    "decimal(38,38)": (pa.decimal128(38, 38), [Decimal("1e-38")]),
    "string": (pa.string(), ["", " ", "ü日本\U0001f600", "a\0b", "x" * 10_000]),
    "binary": (pa.binary(), [b"", b"\x00\xff", b"x" * 10_000]),
    "date": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)]),
    "timestamp": (UTC_TIME, [moment.replace(tzinfo=UTC) for moment in FAR]),
    "timestamp_ntz": (pa.timestamp("us"), [*FAR, datetime(2026, 3, 8, 2, 30)]),
    "array<int>": (pa.list_(pa.int32()), [[], [1, None, 3], [None]]),
    "array<array<string>>": (pa.list_(pa.list_(pa.string())), [[], [[]], [None, ["a", None]]]),
    "map<string,double>": (pa.map_(pa.string(), pa.float64()), [[], [("a", -0.0), ("b", None)]]),
    "map<date,array<struct>>": (
        pa.map_(pa.date32(), pa.list_(POINT)),
        [[(date(2026, 11, 18), [None, {"x": 1.0, "tags": [None], "deep": {"d": None}}]), (date(1, 1, 1), None)]],
    ),
    "struct": (
        POINT,
        [
            {"x": None, "tags": None, "deep": None},
            {"x": -0.0, "tags": [], "deep": {"d": None}},
            {"x": 2.5, "tags": ["", None], "deep": {"d": date(1, 1, 1)}},
        ],
    ),
    "array<struct>": (pa.list_(POINT), [[None, {"x": 1.0, "tags": ["a"], "deep": {"d": date(2026, 1, 1)}}], []]),
    "array<map<int,decimal(20,4)>>": (
        pa.list_(pa.map_(pa.int32(), pa.decimal128(20, 4))),
        [[[(1, Decimal("1.2345")), (-1, None)], None, []]],
    ),
    "struct of moments": (
        pa.struct([("a", UTC_TIME), ("b", pa.list_(pa.timestamp("us")))]),
        [{"a": moment.replace(tzinfo=UTC), "b": [moment, None]} for moment in FAR],
    ),
}

REFUSED = {
    "void": "NULL",
    "void in a map": "map('a', NULL)",
    "array of nothing": "array()",
    "days": "INTERVAL '1' DAY",
    "months": "INTERVAL '1' MONTH",
    "calendar interval": "make_interval(1, 2, 3)",
    "interval in a struct": "named_struct('i', INTERVAL '1' MONTH)",
    "variant": "parse_json('1')",
    "variant in an array": "array(parse_json('1'))",
    "time": "TIME'10:00:00'",
}

_NUMBERS = count()


@pytest.fixture
def name() -> str:
    return f"shop.t{next(_NUMBERS)}"


@contextmanager
def zone_of(spark: SparkSession, zone: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.fixture(params=["Asia/Kolkata", "America/New_York"])
def session(request: pytest.FixtureRequest, spark: SparkSession, lake: Lake) -> Iterator[SparkSession]:
    """Spark in a zone that is not UTC, with the lake's format."""
    lakelib.spark.register(spark, lake)
    with zone_of(spark, request.param):
        yield spark


@pytest.mark.parametrize("distribution", ["none", "hash"])
def test_every_type_comes_back_as_it_was(lake: Lake, name: str, session: SparkSession, distribution: str) -> None:
    table = lake.create_table(name, data([]).schema, primary_key=["id"], buckets=2)
    table.upsert(framed(session, data([None, "all"])), distribution=distribution)
    table.upsert(framed(session, data(["all"], first=1)), distribution=distribution)
    expected = shown(data([None, "all"]).schema, pa.concat_tables([data([None]), data(["all"], first=1)]))
    assert shown(table.schema, table.scan().to_arrow()) == expected
    assert shown(table.schema, table.scan().to_spark(session).toArrow()) == expected
    assert shown(table.schema, session.read.format("lake").load(name).toArrow()) == expected


def test_every_type_comes_back_through_sparks_own_reader(lake: Lake, name: str, session: SparkSession) -> None:
    """A table without a key: nothing is to be merged."""
    written = data([None, "all"]).drop_columns(["struct"])  # Spark is not left to judge floats inside a struct
    frame = framed(session, written)
    frame.write.format("lake").save(name)
    table = lake.table(name)
    read = table.scan().to_spark(session)
    plan = read._jdf.queryExecution().toString()
    assert "FileScan parquet" in plan
    assert "MapInArrow" not in plan
    expected = shown(table.schema, written)
    assert shown(table.schema, read.toArrow()) == expected
    assert shown(table.schema, table.scan().to_arrow()) == expected
    assert sparks_texts(read) == sparks_texts(frame)


def test_a_moment_inside_a_gap_of_the_clock_is_the_one_that_spark_means(lake: Lake, name: str, spark: Any) -> None:
    table = lake.create_table(name, "id INT, t TIMESTAMP, n TIMESTAMP_NTZ", primary_key=["id"])
    with zone_of(spark, "America/New_York"):
        text = "2026-03-08 02:30:00"
        frame = spark.sql(f"SELECT 1 AS id, TIMESTAMP_LTZ'{text}' AS t, TIMESTAMP_NTZ'{text}' AS n")
        table.upsert(frame)
        table.upsert(spark.sql(f"SELECT 2 AS id, TIMESTAMP_LTZ'{text}' AS t, TIMESTAMP_NTZ'{text}' AS n"))
        read = table.scan().to_spark(spark).select(sf.col("t").cast("string"), sf.col("n").cast("string")).collect()
        assert [tuple(row) for row in read] == [("2026-03-08 03:30:00", text)] * 2
    moments = table.scan(columns=["t", "n"]).to_arrow().to_pylist()
    assert moments == [{"t": datetime(2026, 3, 8, 7, 30, tzinfo=UTC), "n": datetime(2026, 3, 8, 2, 30)}] * 2


def test_char_and_varchar_are_strings(lake: Lake, name: str, spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS id, CAST('ab' AS CHAR(4)) AS c, CAST('ü' AS VARCHAR(2)) AS v")
    lakelib.spark.register(spark, lake)
    frame.write.format("lake").save(name)
    assert [str(field.type) for field in lake.table(name).schema] == ["int32", "string", "string"]
    assert lake.table(name).scan().to_spark(spark).collect() == frame.collect()


@pytest.mark.parametrize("kind", REFUSED)
def test_a_type_that_no_table_has_is_refused_before_any_task(
    lake: Lake, name: str, spark: SparkSession, kind: str
) -> None:
    frame = spark.sql(f"SELECT CAST(1 AS BIGINT) AS id, {REFUSED[kind]} AS odd")
    table = lake.create_table(name, "id BIGINT", primary_key=["id"])
    refused(spark, lambda: table.upsert(frame, merge_schema=True))
    check_untouched(table)
    lakelib.spark.register(spark, lake)
    refused(spark, lambda: frame.write.format("lake").save(f"{name}new"))
    assert f"{name}new".partition(".")[2] not in lake.tables("shop")


def test_a_user_defined_type_is_refused_before_any_task(lake: Lake, name: str, spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, Vectors.dense([1.0]))], ["id", "odd"])
    table = lake.create_table(name, "id BIGINT", primary_key=["id"])
    refused(spark, lambda: table.upsert(frame, merge_schema=True))
    check_untouched(table)


def refused(spark: SparkSession, act: Callable[[], Any]) -> None:
    """It ends in an InvalidInputError that names the column, and Spark has not run a job for it."""
    group = f"refused-{next(_NUMBERS)}"
    spark.sparkContext.setJobGroup(group, group)
    with pytest.raises(InvalidInputError, match="'odd'") as caught:
        act()
    assert caught.value.remedy
    assert not spark.sparkContext.statusTracker().getJobIdsForGroup(group)


def check_untouched(table: Table) -> None:
    assert table.head is None
    assert table.schema.names == ["id"]


# Values


def data(rows: list[str | None], first: int = 0) -> pa.Table:
    """A column of each type, and a key. None is a row of NULLs, "all" are rows that show all values of all types."""
    longest = max(len(values) for _, values in TYPES.values())
    picks = [pick for row in rows for pick in ([None] if row is None else range(longest))]
    columns = {"id": pa.array(range(first, first + len(picks)), pa.int64())}
    for kind, (arrow, values) in TYPES.items():
        taken = [None if pick is None else values[pick % len(values)] for pick in picks]
        columns[kind] = pa.array(taken, arrow)
    return pa.table(columns)


def framed(session: SparkSession, table: pa.Table) -> DataFrame:
    """The rows as Spark holds them, which must be these very rows."""
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    fields = [StructField(field.name, field.dataType, field.name != "id") for field in schema.fields]
    frame = session.createDataFrame(table, StructType(fields))
    assert shown(table.schema, frame.toArrow()) == shown(table.schema, table)
    return frame


def sparks_texts(frame: DataFrame) -> list[str]:
    """The rows as Spark's own texts, moments in the zone of the session."""
    texts = frame.select(*(sf.hex(sf.col(f"`{name}`").cast("string").cast("binary")) for name in frame.columns))
    return sorted(repr(tuple(row)) for row in texts.collect())


def shown(schema: pa.Schema, table: pa.Table) -> list[str]:
    """The rows as texts that tell NaN, 0.0 and -0.0, moments and decimals exactly; in the types given."""
    plain = pa.schema([field.remove_metadata().with_nullable(True) for field in schema])
    rows = table.select(plain.names).cast(plain).to_pylist()
    return [repr(row) for row in sorted(rows, key=lambda row: row["id"])]
