"""Filters give the same rows wherever they are decided: by the kernels, by Spark, or by Spark's Parquet reader."""

import random
from collections.abc import Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lakelib import Lake, Table
from lakelib.model.predicate import Compare, Comparison, In, Predicate
from lakelib.model.schema import Column
from lakelib.rows.raw_arrays import arrow_values
from lakelib.work.spark.conditions import condition, named
from tests.conftest import EXAMPLES, WHOLE_MATRICES
from tests.property.test_predicates import COLUMNS, LITERALS, SAMPLES, predicates

TEXTS = ["", "a", "a%", "a_", "a\\", "%", "_", "\\", "ü", "Ü", "日本", "a\n", " "]
OLD = [-62_135_596_800_000_000, -14_830_974_000_000_000, -2_208_988_800_000_001]
"""The first moments of the year 1, some of 1500, and the last of 1899."""
MORE: dict[str, list[Any]] = {"string": TEXTS, "timestamp": OLD, "timestamp_ntz": OLD, "date": [-719_162, -171_670]}
ROWS = 60
PROPERTY = settings(
    max_examples=max(3, EXAMPLES // 100),
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def rows_from(seed: int, ids: Sequence[int]) -> pa.Table:
    """A row an id, of values that are hard on comparisons, NULL among them."""
    chance = random.Random(seed)
    arrays = []
    for column in COLUMNS:
        samples = [None, *SAMPLES[column.type], *MORE.get(column.type, [])]
        # Few values a file: they come as a dictionary, and bounds are narrow.
        few = chance.sample(samples, 3)
        arrays.append(arrow_values(column.type, [chance.choice(few) for _ in ids]))
    return pa.table([*arrays, pa.array(ids, pa.int64())], names=[*(column.name for column in COLUMNS), "id"])


@pytest.fixture(scope="module")
def tables(lake: Lake) -> dict[str, Table]:
    """Tables that Spark's reader reads, as they are and by masks, that the kernels must merge, for a column has two
    types, and of both kinds of splits."""
    first = rows_from(0, range(1))
    schema = pa.schema([*first.schema, pa.field("half", pa.string()), pa.field("wide", pa.float32())])
    options = {"row_group_rows": 7}
    made = {
        "plain": lake.create_table("shop.plain", schema, options=options),
        "masked": lake.create_table("shop.masked", schema, primary_key=["id"], buckets=2, options=options),
        "merged": lake.create_table("shop.merged", schema, primary_key=["id"], buckets=2, options=options),
        "mixed": lake.create_table(
            "shop.mixed", schema, primary_key=["id"], partition_by=["half"], buckets=1, options=options
        ),
    }
    for name, table in made.items():
        for number in range(4):
            low = number * ROWS // 4 if name == "plain" else number * ROWS // 8
            ids = range(low, low + ROWS // 4)
            rows = rows_from(number, ids)
            halves = ["new" if name == "mixed" and number == 3 else "old"] * len(ids)
            if number == 3 and name in ("merged", "mixed"):
                table.evolve(widen={"wide": "double"})
            wide = pa.nulls(len(ids), pa.float32())
            table.append(rows.append_column("half", pa.array(halves)).append_column("wide", wide))
        if name != "plain":
            table.delete("id = 3")
    return made


@pytest.fixture(scope="module")
def memory(spark: SparkSession, tables: dict[str, Table]) -> DataFrame:
    """The rows of the plain table, which Spark holds in memory. Spark's cache would prune for bounds without NaN."""
    scan = tables["plain"].scan()
    return spark.createDataFrame(scan.to_arrow(), scan.to_spark(spark).schema)


def ids_of(frames: Sequence[DataFrame]) -> list[list[int]]:
    """The ids in each of the frames, sorted, by one job."""
    numbered = [frame.select(sf.lit(number).alias("frame"), "id") for number, frame in enumerate(frames)]
    found: list[list[int]] = [[] for _ in frames]
    for number, row_id in sorted(map(tuple, reduce(DataFrame.unionAll, numbered).collect())):
        found[number].append(row_id)
    return found


def test_the_tables_are_read_as_they_are_meant_to(spark: SparkSession, tables: dict[str, Table]) -> None:
    def plan(name: str) -> str:
        return str(tables[name].scan().to_spark(spark)._jdf.queryExecution().executedPlan())

    assert ("FileScan parquet" in plan("plain"), "MapInArrow" in plan("plain")) == (True, False)
    assert ("FileScan parquet" in plan("masked"), "MapInArrow" in plan("masked")) == (True, False)
    assert ("FileScan parquet" in plan("merged"), "MapInArrow" in plan("merged")) == (False, True)
    assert ("FileScan parquet" in plan("mixed"), "MapInArrow" in plan("mixed")) == (True, True)


@pytest.mark.parametrize("name", ["plain", "masked", "merged", "mixed"])
def test_a_frame_has_the_rows_of_the_scan_to_the_bit(spark: SparkSession, tables: dict[str, Table], name: str) -> None:
    scan = tables[name].scan(columns=["id", "half", "_commit", *reversed([column.name for column in COLUMNS])])
    found = scan.to_spark(spark).toArrow().cast(scan.schema).sort_by([("id", "ascending"), ("half", "ascending")])
    expected = scan.to_arrow().sort_by([("id", "ascending"), ("half", "ascending")])
    assert repr(found.to_pylist()) == repr(expected.to_pylist())


@PROPERTY
@given(asked=st.lists(predicates, min_size=3, max_size=3))
def test_a_predicate_finds_the_same_rows_in_scans_and_frames(
    spark: SparkSession, tables: dict[str, Table], asked: list[Predicate]
) -> None:
    scans = [table.scan(columns=["id"], where=predicate) for table in tables.values() for predicate in asked]
    given = [scan.to_spark(spark) for scan in scans]
    added = [table.scan().to_spark(spark).where(condition(each)) for table in tables.values() for each in asked]
    expected = [sorted(scan.to_arrow().column("id").to_pylist()) for scan in scans]
    assert ids_of(given + added) == expected + expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("double", value) for value in (float("nan"), 0.0, -0.0, 1.0, 0.1, 1e300, float("inf"))),
        *(("float", value) for value in (float("nan"), -0.0, 0.1, 1e300)),
        *([("float", value) for value in (0.0, 1.0, float("inf"))] if WHOLE_MATRICES else []),
    ],
)
def test_floats_are_compared_alike_by_everybody(
    spark: SparkSession, tables: dict[str, Table], kind: str, value: float
) -> None:
    columns = [column for column in COLUMNS if column.type == kind]
    asked: list[Predicate] = [Compare(column=column, op=op, value=value) for column in columns for op in Comparison]
    asked += [In(column=column, values=(value, 7.0)) for column in columns]
    scans = [tables["plain"].scan(columns=["id"], where=each) for each in asked]
    expected = [sorted(scan.to_arrow().column("id").to_pylist()) for scan in scans]
    assert ids_of([scan.to_spark(spark) for scan in scans]) == expected
    frame = tables["plain"].scan().to_spark(spark)
    assert ids_of([frame.where(condition(each)) for each in asked]) == expected


@st.composite
def spark_filters(draw: st.DrawFn) -> tuple[str, SparkColumn]:
    """A filter as Spark's users write them, shown as text."""
    column = draw(st.sampled_from(COLUMNS))
    value: SparkColumn = named(column.name)
    kind = draw(st.sampled_from(("predicate", "null safe", "text", "in", "null", "not")))
    if kind == "text" and column.type == "string":
        text = draw(st.sampled_from(TEXTS))
        method = draw(st.sampled_from(("startswith", "endswith", "contains", "like")))
        pattern = text.replace("\\", "\\\\") if method == "like" else text
        return f"{column.name} {method} {pattern!r}", getattr(value, method)(pattern)
    if kind in ("null safe", "in", "not"):
        raw = draw(LITERALS[column.type])
        literal = condition_literal(column, raw)
        if kind == "null safe":
            return f"{column.name} <=> {raw!r}", value.eqNullSafe(literal)
        if kind == "in":
            return f"{column.name} in ({raw!r}, NULL)", value.isin([literal, sf.lit(None)])
        return f"not {column.name} in ({raw!r})", ~value.isin([literal])
    if kind == "null":
        return f"{column.name} is null", value.isNull()
    predicate = draw(predicates)
    return repr(predicate), condition(predicate)


def condition_literal(column: Column, raw: Any) -> SparkColumn:
    """The value alone: the right side of a comparison."""
    array = arrow_values(column.type, [raw])
    return sf.lit(array[0].as_py() if column.type != "timestamp_ntz" else str(array[0])).cast(column.type)


@pytest.fixture(scope="module")
def views(spark: SparkSession, tables: dict[str, Table]) -> list[DataFrame]:
    """The plain table as a frame, as a view of the data source, and the view once more."""
    name = tables["plain"].name
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW plain USING lake OPTIONS (path '{name}')")
    return [spark.read.format("lake").load(name), spark.table("plain"), spark.table("plain")]


@PROPERTY
@given(asked=st.lists(spark_filters(), min_size=3, max_size=3))
def test_what_is_loaded_is_filtered_as_the_same_frame_in_memory(
    memory: DataFrame, views: list[DataFrame], asked: list[tuple[str, SparkColumn]]
) -> None:
    expected = ids_of([memory.where(each) for _, each in asked])
    assert ids_of([view.where(each) for view in views for _, each in asked]) == expected * len(views)


@pytest.mark.parametrize(
    "text",
    [
        "a_tinyint = 1",
        "a_bigint > -1",
        "`a_decimal(38,4)` <= 1.0000",
        "a_double > 1",
        "a_double = double('NaN')",
        "a_float <> float(1.5)",
        "a_string = 'ü'",
        "a_string LIKE 'a\\\\_%'",
        "startswith(a_string, '%')",
        "endswith(a_string, '_')",
        "contains(a_string, '\\\\\\\\')",
        "a_string IN ('a', '日本')",
        "a_binary = X'ff'",
        "a_date >= DATE '1500-01-01'",
        "a_timestamp < TIMESTAMP '1900-01-01 00:00:00'",
        "a_timestamp_ntz < TIMESTAMP_NTZ '1900-01-01 00:00:00'",
        "a_boolean",
        "NOT a_boolean",
        "a_string <=> 'a'",
        "a_string IS NOT NULL AND a_bigint IS NULL",
    ],
)
def test_filters_reach_the_files_and_mean_the_same_there(
    spark: SparkSession, tables: dict[str, Table], memory: DataFrame, text: str
) -> None:
    filtered = spark.read.format("lake").load(tables["plain"].name).where(text)
    plan = str(filtered._jdf.queryExecution().executedPlan())
    assert ("PushedFilters: []" in plan) == any(word in text for word in ("double", "float"))
    assert ids_of([filtered]) == ids_of([memory.where(text)])


def test_only_what_may_match_and_is_wanted_is_read(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("shop.days", "id bigint, dt date, v string", partition_by=["dt"])
    table.append(pa.table({"id": [1, 2], "dt": arrow_values("date", [1, 2]), "v": ["x", "y"]}))
    reader = spark.read.format("lake")
    assert len(reader.load(table.name).inputFiles()) == 2
    found = reader.option("where", "dt = '1970-01-02'").load(table.name).select("id")
    assert len(found.inputFiles()) == 1
    assert "v:string" not in str(found._jdf.queryExecution().executedPlan())
