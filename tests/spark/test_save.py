"""Promises of `frame.write.format("lake")`: modes, options, and that all other formats are left alone."""

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import lakelib
import lakelib.spark
from lakelib import InvalidInputError, Lake, NotFoundError
from lakelib.settings import Settings, StorageSettings
from tests.spark.conftest import NewTable

Rows = list[tuple[Any, ...]]


def frame_of(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), "id bigint, dt string, v string")


def rows_in(lake: Lake, name: str) -> Rows:
    return sorted(tuple(row.values()) for row in lake.table(name).scan().to_arrow().to_pylist())


@pytest.mark.parametrize("mode", ["append", "overwrite", "ignore", "errorifexists", None])
def test_each_mode_makes_the_table_that_is_missing(
    spark: SparkSession, lake: Lake, new_name: str, mode: str | None
) -> None:
    writer = frame_of(spark, (1, "a", "x")).write.format("lake").option("primary-key", "id")
    writer.option("sequence-by", "v").option("buckets", 4).partitionBy("dt").mode(mode).save(new_name)
    table = lake.table(new_name)
    assert rows_in(lake, new_name) == [(1, "a", "x")]
    assert (table.primary_key, table.partition_by) == (["id"], ["dt"])
    assert [field.nullable for field in table.schema] == [False, True, True]


def test_an_existing_table_is_refused_unless_a_mode_says_what_to_do(
    spark: SparkSession, lake: Lake, new_name: str
) -> None:
    frame_of(spark, (1, "a", "x")).write.format("lake").save(new_name)
    more = frame_of(spark, (2, "b", "y"))
    for mode in ("errorifexists", "error", "default", "ERRORIFEXISTS", None):
        with pytest.raises(InvalidInputError) as caught:
            more.write.format("LAKE").mode(mode).save(new_name)
        assert caught.value.kind == "table_exists"
    more.write.format("lake").mode("ignore").save(new_name)
    assert rows_in(lake, new_name) == [(1, "a", "x")]
    more.write.format("lake").mode("Append").save(new_name)
    assert rows_in(lake, new_name) == [(1, "a", "x"), (2, "b", "y")]
    more.write.mode("overwrite").saveAsTable(new_name, format="lake")
    assert rows_in(lake, new_name) == [(2, "b", "y")]


def test_a_made_field_inside_of_a_column_may_be_null_later(spark: SparkSession, lake: Lake, new_name: str) -> None:
    """Spark says of the elements of `array(1)` that they are never NULL."""
    frame = spark.range(1).select("id", sf.array(sf.struct(sf.lit(1).alias("x"))).alias("c"))
    frame.write.format("lake").save(new_name)
    later = spark.createDataFrame([(2, [None, (None,)])], "id bigint, c array<struct<x: int>>")
    later.write.format("lake").mode("append").save(new_name)
    assert rows_in(lake, new_name) == [(0, [{"x": 1}]), (2, [None, {"x": None}])]


def test_a_made_column_may_be_null_later_but_a_key_may_not(spark: SparkSession, lake: Lake, new_name: str) -> None:
    ids = spark.range(1).withColumn("v", sf.lit("x"))
    ids.write.format("lake").option("primary-key", "id").save(new_name)
    spark.createDataFrame([(2, None)], "id bigint, v string").write.format("lake").mode("append").save(new_name)
    assert rows_in(lake, new_name)[1] == (2, None)
    nothing = spark.createDataFrame([(None, "y")], "id bigint, v string")
    with pytest.raises(InvalidInputError, match="id"):
        nothing.write.format("lake").mode("append").save(new_name)


@pytest.mark.parametrize(
    "options", [{"distribution": "sideways"}, {"write.merge-schema": "yes"}, {"idempotency.version": "7"}]
)
def test_a_wrong_option_makes_no_table(spark: SparkSession, lake: Lake, new_name: str, options: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError):
        frame_of(spark, (1, "a", "x")).write.format("lake").options(**options).save(new_name)
    with pytest.raises(NotFoundError):
        lake.table(new_name)


def test_rows_that_cannot_be_written_leave_no_table(spark: SparkSession, lake: Lake, new_name: str) -> None:
    wrong_key = spark.createDataFrame([(None, "y")], "id bigint, v string")
    wrong_query = frame_of(spark, (1, "a", "x")).withColumn("v", sf.raise_error(sf.lit("no luck")).cast("string"))
    for frame, error in ((wrong_key, InvalidInputError), (wrong_query, PySparkException)):
        with pytest.raises(error):
            frame.write.format("lake").option("primary-key", "id").save(new_name)
        with pytest.raises(NotFoundError):
            lake.table(new_name)


@pytest.mark.parametrize("by_option", [True, False], ids=["option", "setting"])
def test_an_overwrite_replaces_the_partitions_of_its_rows_if_told_so(
    spark: SparkSession, lake: Lake, new_name: str, with_settings: Any, by_option: bool
) -> None:
    frame_of(spark, (1, "a", "x"), (2, "b", "y")).write.format("lake").partitionBy("dt").save(new_name)
    writer = frame_of(spark, (3, "b", "z")).write.format("lake").mode("overwrite")
    if by_option:
        writer = writer.option("partitionoverwritemode", "DYNAMIC")
    else:
        with_settings({"spark.sql.sources.partitionOverwriteMode": "dynamic"})
    writer.save(new_name)
    assert rows_in(lake, new_name) == [(1, "a", "x"), (3, "b", "z")]
    writer.option("partitionOverwriteMode", "static").save(new_name)
    assert rows_in(lake, new_name) == [(3, "b", "z")]


def test_rows_take_the_place_of_those_that_match(spark: SparkSession, lake: Lake, new_name: str) -> None:
    frame_of(spark, (1, "a", "x"), (2, "b", "y"), (3, "b", "z")).write.format("lake").save(new_name)
    writer = frame_of(spark, (4, "b", "y")).write.format("lake").mode("overwrite")
    writer.option("replaceWhere", "v = 'y'").save(new_name)
    assert rows_in(lake, new_name) == [(1, "a", "x"), (3, "b", "z"), (4, "b", "y")]
    with pytest.raises((InvalidInputError, PySparkException), match="not of those that are overwritten"):
        writer.option("replaceWhere", "v = 'x'").save(new_name)
    assert [each.kind for each in lake.table(new_name).history()] == ["replace", "append"]


def test_an_overwrite_may_bring_its_own_columns(spark: SparkSession, lake: Lake, new_name: str) -> None:
    frame_of(spark, (1, "a", "x")).write.format("lake").save(new_name)
    other = spark.createDataFrame([(2.5, 7)], "w double, id bigint")
    with pytest.raises(InvalidInputError, match="overwriteSchema"):
        other.write.format("lake").mode("append").option("overwriteSchema", "true").save(new_name)
    other.write.format("lake").mode("overwrite").option("overwriteSchema", "true").save(new_name)
    assert rows_in(lake, new_name) == [(2.5, 7)]
    assert lake.table(new_name).scan(at=1).to_arrow().num_rows == 1


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("append", {"replaceWhere": "v = 'y'"}),
        ("overwrite", {"replaceWhere": " "}),
        ("overwrite", {"replaceWhere": "v = 'y'", "partitionOverwriteMode": "dynamic"}),
    ],
)
def test_what_is_replaced_is_said_once(
    spark: SparkSession, lake: Lake, new_name: str, mode: str, options: dict[str, str]
) -> None:
    frame_of(spark, (1, "a", "x")).write.format("lake").save(new_name)
    with pytest.raises(InvalidInputError, match="replaceWhere"):
        frame_of(spark, (2, "b", "y")).write.format("lake").mode(mode).options(**options).save(new_name)
    assert rows_in(lake, new_name) == [(1, "a", "x")]


def test_a_misspelt_overwrite_mode_replaces_nothing(spark: SparkSession, lake: Lake, new_name: str) -> None:
    frame_of(spark, (1, "a", "x"), (2, "b", "y")).write.format("lake").partitionBy("dt").save(new_name)
    writer = frame_of(spark, (3, "b", "z")).write.format("lake").mode("overwrite")
    with pytest.raises(InvalidInputError, match="partitionOverwriteMode"):
        writer.option("partitionOverwriteMode", "dynamc").save(new_name)
    assert rows_in(lake, new_name) == [(1, "a", "x"), (2, "b", "y")]


def test_the_schema_grows_if_told_so(spark: SparkSession, lake: Lake, new_name: str) -> None:
    frame_of(spark, (1, "a", "x")).write.format("lake").save(new_name)
    wider = frame_of(spark, (2, "b", "y")).withColumn("more", sf.lit(5))
    with pytest.raises(InvalidInputError, match="more"):
        wider.write.format("lake").mode("append").save(new_name)
    wider.write.format("lake").mode("append").option("write.merge-schema", True).save(new_name)
    text = spark.createDataFrame([("3", "c")], "id string, dt string")
    with pytest.raises(InvalidInputError, match="id"):
        text.write.format("lake").mode("append").save(new_name)
    text.write.format("lake").mode("append").option("write.merge-schema.explicit-cast", "TRUE").save(new_name)
    assert rows_in(lake, new_name) == [(1, "a", "x", None), (2, "b", "y", 5), (3, "c", None, None)]


def test_an_idempotent_write_happens_once_and_says_so_the_second_time(
    spark: SparkSession, lake: Lake, new_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    for version in (7, 7, 6):
        assert not caplog.messages or "snapshot 1 already" in caplog.messages[-1]
        writer = frame_of(spark, (1, "a", "x")).write.format("lake").mode("append")
        writer.options(**{"idempotency.application": "loader", "idempotency.version": version}).save(new_name)
    assert len(caplog.messages) == 2
    assert rows_in(lake, new_name) == [(1, "a", "x")]


@pytest.mark.parametrize(
    ("told", "named"),
    [
        (lambda writer: writer.option("primary-key", "v"), "primary-key"),
        (lambda writer: writer.option("sequence-by", "v"), "sequence-by"),
        (lambda writer: writer.option("buckets", "8"), "buckets"),
        (lambda writer: writer.partitionBy("v"), "partitionBy"),
        (lambda writer: writer.bucketBy(4, "id"), "bucketBy"),
        (lambda writer: writer.clusterBy("id"), "clusterBy"),
        (lambda writer: writer.option("compression", "gzip"), "compression"),
    ],
)
def test_what_a_table_is_not_is_refused_and_not_ignored(
    spark: SparkSession, lake: Lake, new_name: str, told: Any, named: str
) -> None:
    first = frame_of(spark, (1, "a", "x")).write.format("lake").option("primary-key", "ID")
    first.option("buckets", 4).partitionBy("dt").save(new_name)
    first.mode("append").save(new_name)
    with pytest.raises(InvalidInputError, match=named):
        told(frame_of(spark, (2, "a", "x")).write.format("lake").mode("append")).save(new_name)
    assert rows_in(lake, new_name) == [(1, "a", "x")]


def test_names_with_commas_stand_in_backticks(spark: SparkSession, lake: Lake, new_name: str) -> None:
    frame = spark.createDataFrame([(1, 2, 3)], "`a,b` int, ` c` int, d int")
    frame.write.format("lake").option("primary-key", "`a,b` , ` c`,d ").save(new_name)
    assert lake.table(new_name).primary_key == ["a,b", " c", "d"]
    with pytest.raises(InvalidInputError, match="sequence-by"):
        frame.write.format("lake").option("sequence-by", "a,,b").mode("append").save(new_name)


def test_no_table_and_no_mode_are_named(spark: SparkSession, lake: Lake) -> None:
    frame = frame_of(spark, (1, "a", "x"))
    with pytest.raises(InvalidInputError, match="No table"):
        frame.write.format("lake").option("path", None).save()
    with pytest.raises(InvalidInputError, match="namespace and name"):
        frame.write.format("lake").save("orders")
    with pytest.raises(NotFoundError, match="nowhere"):
        frame.write.format("lake").save("nowhere.orders")
    with pytest.raises(PySparkException, match="upsert"):
        frame.write.format("lake").mode("upsert").save("shop.orders")


def test_other_formats_are_left_alone(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    frame = frame_of(spark, (1, "a", "x"), (2, "b", "y"))
    expected = sorted(map(tuple, frame.collect()))

    def is_there(found: DataFrame) -> bool:
        return sorted(map(tuple, found.select("id", "dt", "v").collect())) == expected

    frame.write.partitionBy("dt").mode("overwrite").option("compression", "gzip").parquet(f"{tmp_path}/parquet")
    assert is_there(spark.read.parquet(f"{tmp_path}/parquet"))
    frame.write.save(f"{tmp_path}/saved", format="json", mode="append", partitionBy="dt", dateFormat="yyyy")
    assert is_there(spark.read.json(f"{tmp_path}/saved"))
    frame.write.format("lake").mode("append").json(f"{tmp_path}/json")
    assert is_there(spark.read.json(f"{tmp_path}/json"))
    writer = frame.write.bucketBy(2, "id").sortBy("id").option("path", f"{tmp_path}/table").format("parquet")
    try:
        writer.saveAsTable("bucketed")
        assert is_there(spark.table("bucketed"))
        spark.sql(f"CREATE TABLE unbucketed (id bigint, dt string, v string) USING parquet LOCATION '{tmp_path}/plain'")
        frame.write.insertInto("unbucketed")
        assert is_there(spark.table("unbucketed"))
    finally:
        spark.sql("DROP TABLE IF EXISTS bucketed")
        spark.sql("DROP TABLE IF EXISTS unbucketed")
    with pytest.raises(AnalysisException):
        frame.write.format("parquet").save(f"{tmp_path}/parquet")
    with pytest.raises(Exception, match="No suitable driver"):
        frame.write.jdbc("jdbc:nothing:here", "t", mode="append", properties={"user": "u"})


def test_a_writer_made_before_the_lake_was_known_says_what_to_do(
    spark: SparkSession, lake: Lake, new_name: str
) -> None:
    frame = frame_of(spark, (1, "a", "x"))
    sparks = next(each for each in type(frame.write).__mro__ if each.__module__.startswith("pyspark."))
    before = sparks(frame)
    with pytest.raises(PySparkException, match=r"(?s)unsupported_write.*register"):
        before.format("lake").mode("append").save(new_name)


def test_two_sessions_write_each_to_its_own_lake(
    spark: SparkSession, lake: Lake, new_name: str, catalog_url: str, tmp_path: Path
) -> None:
    other_session = spark.newSession()
    with pytest.raises(InvalidInputError, match="register"):
        frame_of(other_session, (9, "z", "z")).write.format("lake").save(new_name)
    with lakelib.connect(warehouse=str(tmp_path), catalog=catalog_url) as other_lake:
        other_lake.create_namespace("shop")
        lakelib.spark.register(other_session, other_lake)
        frame_of(other_session, (2, "b", "y")).write.format("lake").save(new_name)
        frame_of(spark, (1, "a", "x")).write.format("lake").save(new_name)
        assert rows_in(lake, new_name) == [(1, "a", "x")]
        assert rows_in(other_lake, new_name) == [(2, "b", "y")]
        assert spark.read.format("lake").load(new_name).first()[0] == 1
        assert other_session.read.format("lake").load(new_name).first()[0] == 2


def test_registering_again_replaces_the_lake(
    spark: SparkSession, lake: Lake, new_name: str, catalog_url: str, tmp_path: Path
) -> None:
    session = spark.newSession()
    lakelib.spark.register(session, lake)
    with lakelib.connect(warehouse=str(tmp_path), catalog=catalog_url) as other_lake:
        other_lake.create_namespace("shop")
        lakelib.spark.register(session, other_lake)
        frame_of(session, (2, "b", "y")).write.format("lake").save(new_name)
        assert rows_in(other_lake, new_name) == [(2, "b", "y")]
        assert session.read.format("lake").load(new_name).count() == 1
    with pytest.raises(NotFoundError):
        lake.table(new_name)


def test_a_lake_that_was_closed_is_told_from_one_that_cannot_be_reached(
    spark: SparkSession, new_name: str, catalog_url: str, tmp_path: Path
) -> None:
    session = spark.newSession()
    lake = lakelib.connect(warehouse=str(tmp_path), catalog=catalog_url)
    lakelib.spark.register(session, lake)
    lake.close()
    with pytest.raises(lakelib.LakeError, match="closed"):
        frame_of(session, (1, "a", "x")).write.format("lake").save(new_name)


def test_without_a_lake_the_environment_names_it(
    spark: SparkSession, new_name: str, catalog_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_WAREHOUSE", str(tmp_path))
    monkeypatch.setenv("LAKE_CATALOG", catalog_url)
    session = spark.newSession()
    lakelib.spark.register(session)
    with lakelib.connect() as lake:
        lake.create_namespace("shop")
        frame_of(session, (1, "a", "x")).write.format("lake").save(new_name)
        assert rows_in(lake, new_name) == [(1, "a", "x")]
    assert session.read.format("lake").load(new_name).count() == 1


def test_settings_travel_with_their_secrets_and_show_none() -> None:
    settings = Settings(
        warehouse="s3://bucket/lake",
        catalog="postgresql://user:hush@host/db",
        storage=StorageSettings(s3_access_key="key", s3_secret_key="hush"),
    )
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert "hush" not in repr(settings)


def test_the_batches_of_a_stream_are_written_to_the_sessions_lake(
    spark: SparkSession, lake: Lake, new_name: str, tmp_path: Path
) -> None:
    frame_of(spark, (1, "a", "x"), (2, "b", "y")).write.parquet(f"{tmp_path}/in")
    stream = spark.readStream.schema("id bigint, dt string, v string").parquet(f"{tmp_path}/in")

    def write(batch: DataFrame, _number: int) -> None:
        batch.write.format("lake").mode("append").save(new_name)

    started = stream.writeStream.foreachBatch(write).option("checkpointLocation", f"{tmp_path}/at")
    started.trigger(availableNow=True).start().awaitTermination()
    assert rows_in(lake, new_name) == [(1, "a", "x"), (2, "b", "y")]


def test_a_keyed_table_takes_the_newest_row_of_a_key(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table("id bigint, dt string, v string", primary_key=["id"])
    table.upsert(pa.table({"id": [1, 2], "dt": ["a", "a"], "v": ["old", "old"]}))
    frame_of(spark, (2, "a", "new"), (3, "a", "new")).write.format("lake").mode("append").save(table.name)
    assert rows_in(lake, table.name) == [(1, "a", "old"), (2, "a", "new"), (3, "a", "new")]


@pytest.mark.parametrize("is_named", [True, False])
def test_a_frame_is_inserted_by_position(spark: SparkSession, lake: Lake, new_name: str, is_named: bool) -> None:
    def writer(frame: DataFrame) -> Any:
        return frame.write.format("lake") if is_named else frame.write

    lake.create_table(new_name, "id bigint, dt string, v string", partition_by=["dt"])
    swapped = frame_of(spark, (1, "a", "x"), (2, "b", "y")).toDF("v", "id", "dt")
    writer(swapped).insertInto(new_name)
    writer(swapped.limit(0)).insertInto(new_name)
    assert rows_in(lake, new_name) == [(1, "a", "x"), (2, "b", "y")]
    other = frame_of(spark, (3, "a", "z"))
    writer(other).option("partitionOverwriteMode", "dynamic").insertInto(new_name, overwrite=True)
    assert rows_in(lake, new_name) == [(2, "b", "y"), (3, "a", "z")]
    writer(other).mode("overwrite").insertInto(new_name, overwrite=False)
    assert rows_in(lake, new_name) == [(2, "b", "y"), (3, "a", "z"), (3, "a", "z")]
    writer(other).mode("overwrite").insertInto(new_name)
    assert rows_in(lake, new_name) == [(3, "a", "z")]
    narrower = other.select(sf.col("id").cast("int"), "dt", "v")
    writer(narrower).insertInto(new_name)
    assert rows_in(lake, new_name) == [(3, "a", "z"), (3, "a", "z")]


def test_what_cannot_be_inserted_says_why(spark: SparkSession, lake: Lake, new_name: str) -> None:
    lake.create_table(new_name, "id bigint, dt string, v string")
    frame = frame_of(spark, (1, "a", "x"))
    with pytest.raises(InvalidInputError, match=r"2 columns \(id, dt\), and .* has 3 \(id, dt, v\).*by position"):
        frame.select("id", "dt").write.insertInto(new_name)
    with pytest.raises(InvalidInputError, match="Leave partitionBy out"):
        frame.write.partitionBy("dt").insertInto(new_name)
    with pytest.raises(InvalidInputError, match="string"):
        frame.select("v", "dt", "id").write.insertInto(new_name)
    assert rows_in(lake, new_name) == []
    with pytest.raises(NotFoundError):
        frame.write.format("lake").insertInto("shop.nowhere")
    with pytest.raises(AnalysisException):
        frame.write.insertInto("shop.nowhere")
