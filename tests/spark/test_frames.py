"""Promises of `Scan.to_spark`: the rows of the scan, whatever the settings and however the files came about."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from lakelib import CorruptionError, InvalidInputError, Scan, Table
from lakelib.work.spark.opened import opened
from tests.spark.conftest import NewTable

Rows = list[dict[str, Any]]
Change = Callable[[dict[str, str]], None]


def rows_of(spark: SparkSession, scan: Scan) -> Rows:
    """The scan's rows as a frame gives them; they are those that the scan itself gives."""
    frame = scan.to_spark(spark)
    assert frame.columns == scan.schema.names
    found = frame.toArrow().cast(scan.schema).to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, scan.to_arrow().to_pylist()))
    return sorted(found, key=repr)


def table_of(new_table: NewTable, schema: Any, *rows: dict[str, Any], **definition: Any) -> Table:
    table = new_table(schema, **definition)
    table.append(pa.Table.from_pylist(list(rows), table.schema))
    return table


@pytest.fixture
def old(new_table: NewTable) -> Table:
    """Old moments, bytes, and text."""
    moments = [datetime(1, 1, 1, tzinfo=UTC), datetime(1582, 10, 10, tzinfo=UTC), datetime(1899, 12, 31, tzinfo=UTC)]
    rows = [
        {"id": n, "m": each, "n": each.replace(tzinfo=None), "d": each.date(), "b": b"\xff\x00", "t": "ü", "x": 1.5}
        for n, each in enumerate(moments)
    ]
    ddl = "id bigint, m timestamp, n timestamp_ntz, d date, b binary, t string, x double"
    return table_of(new_table, ddl, *rows)


_SETTINGS = pytest.mark.parametrize(
    "settings",
    [
        {"spark.sql.ansi.enabled": "false"},
        {"spark.sql.caseSensitive": "true"},
        {"spark.sql.timestampType": "TIMESTAMP_NTZ"},
        {"spark.sql.session.timeZone": "America/Los_Angeles"},
        {"spark.sql.parquet.filterPushdown": "false"},
        {"spark.sql.parquet.enableVectorizedReader": "false"},
        {"spark.sql.parquet.recordLevelFilter.enabled": "true", "spark.sql.parquet.enableVectorizedReader": "false"},
        {"spark.sql.parquet.binaryAsString": "true"},
        {"spark.sql.parquet.int96AsTimestamp": "false"},
        {"spark.sql.parquet.inferTimestampNTZ.enabled": "false"},
        {"spark.sql.parquet.fieldId.read.enabled": "true"},
        {"spark.sql.parquet.mergeSchema": "true"},
        {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"},
        {"spark.sql.parquet.datetimeRebaseModeInRead": "EXCEPTION"},
        {"spark.sql.sources.useV1SourceList": "", "spark.sql.parquet.aggregatePushdown": "true"},
    ],
    ids=lambda settings: next(iter(settings)).rpartition(".")[2] + "=" + next(iter(settings.values())),
)


@_SETTINGS
def test_settings_change_no_row(
    spark: SparkSession, old: Table, with_settings: Change, settings: dict[str, str]
) -> None:
    with_settings(settings)
    assert len(rows_of(spark, old.scan())) == 3
    asked = "m < '1900-01-01' AND n < TIMESTAMP_NTZ'1899-12-31 00:00:00' AND d >= DATE'1582-10-10' AND x = 1.5"
    assert [row["id"] for row in rows_of(spark, old.scan(where=asked))] == [1]
    old.evolve(add=[pa.field("later", pa.timestamp("us", "UTC")), pa.field("text", pa.string())])
    old.append(pa.Table.from_pylist([{"id": 9, "later": datetime(2026, 1, 1, tzinfo=UTC)}], old.schema))
    assert [row["id"] for row in rows_of(spark, old.scan(columns=["later", "id"], where="later IS NOT NULL"))] == [9]


@_SETTINGS
def test_settings_show_no_masked_row(
    spark: SparkSession, new_table: NewTable, with_settings: Change, settings: dict[str, str]
) -> None:
    table = new_table("id bigint, x double", primary_key=["id"])
    table.upsert(pa.table({"id": range(200), "x": [1.0] * 200}))
    table.upsert(pa.table({"id": range(0, 200, 3), "x": [2.0] * 67}))
    table.delete_keys(pa.table({"id": [1, 6]}))
    with_settings(settings)
    assert len(rows_of(spark, table.scan())) == 198
    assert len(rows_of(spark, table.scan(where="x = 1"))) == 132


@pytest.mark.parametrize("newest", [10, 150], ids=["one frame", "two frames"])
def test_files_without_a_mask_keep_their_rows_beside_masked_ones_of_their_size(
    spark: SparkSession, new_table: NewTable, newest: int
) -> None:
    table = new_table("id bigint, x double", primary_key=["id"], options={"min_bucket_file_bytes": 0})
    table.upsert(pa.table({"id": range(200), "x": [1.0] * 200}))
    for value in (2.0, 3.0):
        table.upsert(pa.table({"id": range(newest), "x": [value] * newest}))
    sizes = [file.size_bytes for file in table.files()]
    assert len(sizes) == 3 > len(set(sizes)), "the last two differ in nothing but a value"
    assert Counter(row["x"] for row in rows_of(spark, table.scan())) == {1.0: 200 - newest, 3.0: newest}
    plan = str(table.scan().to_spark(spark)._jdf.queryExecution().executedPlan())
    assert ("Union" in plan) == (newest > 10)


def test_a_masked_file_of_another_size_is_told_before_anything_is_read(
    spark: SparkSession, new_table: NewTable
) -> None:
    table = new_table("id bigint, x double", primary_key=["id"])
    for value in (1.0, 2.0):
        table.upsert(pa.table({"id": range(200), "x": [value] * 200}))
    assert len(rows_of(spark, table.scan())) == 200
    path = Path(table.location.removeprefix("file://"), next(iter(table.files(at=1))).path)
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(CorruptionError, match=path.name):
        table.scan().to_spark(spark)


def test_masks_that_tasks_find_are_those_of_this_process(
    spark: SparkSession, new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table("id bigint, x double", primary_key=["id"], buckets=4, options={"min_bucket_file_bytes": 0})
    for step in (1, 3, 5):
        table.upsert(pa.table({"id": range(0, 300, step), "x": [float(step)] * len(range(0, 300, step))}))
    monkeypatch.setattr("lakelib.work.engines._MOST_ROWS_HERE", 0)
    assert len(rows_of(spark, table.scan())) == 300


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("setting", [None, "ignoreMissingFiles", "ignoreCorruptFiles"])
def test_a_file_that_is_missing_is_never_passed_over(
    spark: SparkSession, old: Table, with_settings: Change, when: str, setting: str | None
) -> None:
    if setting:
        with_settings({f"spark.sql.files.{setting}": "true"})
    path = Path(old.location.removeprefix("file://"), *(file.path for file in old.scan()._plan.splits[0].files))
    frame = old.scan().to_spark(spark)
    if when == "before":
        path.unlink()
    else:
        frame = old.scan().to_spark(spark)
        path.write_bytes(b"PAR1 nonsense PAR1")
    with pytest.raises(Exception, match=path.name):
        frame.collect()
    with pytest.raises(Exception, match=path.name):
        old.scan().to_spark(spark).collect()


@pytest.mark.parametrize("options", [{}, {"delta": "head"}], ids=["", "files keep names"])
@pytest.mark.parametrize("primary_key", [[], ["id"]], ids=["append", "keyed"])
def test_columns_that_were_renamed_added_dropped_or_widened_between_files(
    spark: SparkSession, new_table: NewTable, primary_key: list[str], options: dict[str, str]
) -> None:
    table = table_of(
        new_table,
        "id bigint, a int, b string, c string",
        *({"id": n, "a": n, "b": "b", "c": "c"} for n in (1, 2)),
        primary_key=primary_key,
        options=options,
    )
    table.evolve(rename={"a": "A", "b": "x.y"}, drop=["c"])
    table.append(pa.Table.from_pylist([{"id": 3, "A": 3, "x.y": "new"}], table.schema))
    table.evolve(add=[pa.field("c", pa.list_(pa.int32()))], widen={"A": "bigint"})
    table.append(pa.Table.from_pylist([{"id": 4, "A": 2**40, "x.y": "newer", "c": [1]}], table.schema))
    assert [row["A"] for row in rows_of(spark, table.scan())] == [1, 2, 3, 2**40]
    assert [row["c"] for row in rows_of(spark, table.scan(columns=["c", "id"], where="id > 2"))] == [None, [1]]
    assert len(rows_of(spark, table.scan(columns=["x.y"], where="`x.y` = 'b'"))) == 2
    assert [row["_commit"] for row in rows_of(spark, table.scan(columns=["_commit"], where="_commit > 1"))] == [3, 5]


def test_names_of_any_kind(spark: SparkSession, new_table: NewTable) -> None:
    names = ["a.b", "x y", "a,b", "tick`", "ü", "1", "select", "Σ", "a:b", "{}", "q'"]
    schema = pa.schema(
        [("id", pa.int64()), ("a", pa.struct([("b", pa.int64())])), *((name, pa.int64()) for name in names)]
    )
    for primary_key in ([], ["id"]):
        table = new_table(schema, primary_key=primary_key)
        row = {"id": 1, "a": {"b": 7}} | {name: number for number, name in enumerate(names)}
        table.append(pa.Table.from_pylist([row], table.schema))
        table.append(pa.Table.from_pylist([row | {"id": 2}], table.schema))
        for number, name in enumerate(names):
            quoted = "`" + name.replace("`", "``") + "`"
            scan = table.scan(columns=[name, "a"], where=f"{quoted} = {number} AND id = 2")
            assert rows_of(spark, scan) == [{name: number, "a": {"b": 7}}]
        assert table.scan().to_spark(spark).where("a.b = 7 AND `a.b` = 0").count() == 2


def test_partition_values_of_any_kind(spark: SparkSession, new_table: NewTable) -> None:
    values = [
        "a/b",
        "%41",
        "A",
        " ",
        "a b",
        "a:b",
        "a=b",
        "a,b",
        "ü",
        "",
        None,
        "{x}",
        "*",
        "..",
        "a'b",
        "_a",
        ".a",
        "+",
    ]
    for primary_key in ([], ["id"]):
        table = new_table("id bigint, `_p` string", primary_key=primary_key, partition_by=["_p"])
        rows = [{"id": number, "_p": value} for number, value in enumerate(values)]
        table.append(pa.Table.from_pylist(rows, table.schema))
        assert sorted(row["id"] for row in rows_of(spark, table.scan())) == list(range(len(values)))
        for number in (0, 1, 7, 9):
            found = rows_of(spark, table.scan(where=f"`_p` = '{values[number]}'"))
            assert found == [rows[number]]
        assert rows_of(spark, table.scan(where="`_p` IS NULL")) == [{"id": 10, "_p": None}]


def test_no_files_and_no_matches_are_frames_without_rows(spark: SparkSession, new_table: NewTable) -> None:
    table = new_table("id bigint, v struct<a:int>", primary_key=["id"])
    assert rows_of(spark, table.scan()) == []
    table.append(pa.Table.from_pylist([{"id": 1, "v": {"a": 1}}], table.schema))
    assert rows_of(spark, table.scan(where="FALSE")) == []
    assert rows_of(spark, table.scan(columns=["_commit"], where="id = 5")) == []


def test_a_predicate_of_many_values(spark: SparkSession, new_table: NewTable) -> None:
    table = table_of(new_table, "id bigint, v string", *({"id": n, "v": str(n)} for n in range(10)))
    many = ", ".join(map(str, range(5, 5000)))
    assert len(rows_of(spark, table.scan(where=f"id IN ({many})"))) == 5
    ored = " OR ".join(f"v = '{n}'" for n in range(5, 400))
    assert len(rows_of(spark, table.scan(where=ored))) == 5


def test_floats_inside_structs_keep_their_rows(spark: SparkSession, new_table: NewTable) -> None:
    rows = [{"id": n, "s": {"x": float("nan") if n % 2 else 1.0}} for n in range(10)]
    table = table_of(new_table, "id bigint, s struct<x:double>", *rows)
    assert table.scan().to_spark(spark).where("s.x > 5").count() == 5


def test_a_frame_may_be_used_twice_and_joined_with_itself(spark: SparkSession, new_table: NewTable) -> None:
    table = table_of(new_table, "id bigint, v string", *({"id": n, "v": str(n)} for n in range(4)), primary_key=["id"])
    frame = table.scan().to_spark(spark)
    table.delete("id = 1")
    joined = frame.where("id > 1").alias("a").join(frame.alias("b"), sf.col("a.id") == sf.col("b.id") + 1)
    assert (joined.count(), frame.count()) == (2, 4)


def test_frames_of_the_same_files_are_joined_by_the_columns_of_each(spark: SparkSession, new_table: NewTable) -> None:
    """They stand on files that were opened once."""
    table = new_table("id bigint, v bigint", primary_key=["id"])
    for value in (1, 2):
        table.upsert(pa.table({"id": range(4), "v": [value] * 4}))
    left, right = table.scan().to_spark(spark), table.scan().to_spark(spark)
    joined = left.join(right, left["id"] == right["id"] + 1).select(left["id"], right["v"])
    assert sorted(map(tuple, joined.collect())) == [(1, 2), (2, 2), (3, 2)]
    assert left.unionAll(right).count() == 8


def test_a_session_opens_files_once_for_the_same_masks_and_schema(spark: SparkSession) -> None:
    made: list[str] = []

    def open_again(session: SparkSession, schema: str, *masks: bytes) -> DataFrame:
        def open_files() -> DataFrame:
            made.append(schema)
            return session.range(1).select(sf.lit(len(made)))

        return opened(session, ["file:///a", "file:///b"], StructType.fromDDL(schema), masks, open_files)

    first = open_again(spark, "id bigint", b"1", b"23")
    others = [
        open_again(spark, "id bigint"),
        open_again(spark, "id bigint", b"12", b"3"),
        open_again(spark, "id bigint, v string", b"1", b"23"),
        open_again(spark.newSession(), "id bigint", b"1", b"23"),
    ]
    assert open_again(spark, "id bigint", b"1", b"23") is first
    assert len({id(each) for each in (first, *others)}) == len(made) == 5
    for number in range(20):
        open_again(spark, f"c{number} bigint")
    assert open_again(spark, "id bigint", b"1", b"23") is not first


def test_days_of_the_old_calendar_are_those_of_the_scan(spark: SparkSession, old: Table) -> None:
    """Spark's calendar of filters has no such day: in a file of its own the row would be ruled out by the bounds."""
    day = datetime(1582, 10, 10, 12, tzinfo=UTC)
    old.append(pa.Table.from_pylist([{"id": 7, "d": day.date(), "m": day}], old.schema))
    assert [row["id"] for row in rows_of(spark, old.scan(where="d = DATE'1582-10-10'"))] == [1, 7]
    assert [row["id"] for row in rows_of(spark, old.scan(where=f"m = '{day.isoformat(sep=' ')}'"))] == [7]


@pytest.mark.parametrize("distribution", ["none", "hash"])
def test_a_frame_with_names_of_any_kind_is_written(spark: SparkSession, new_table: NewTable, distribution: str) -> None:
    names = ["a.b", "k`1", "a b", "größe"]
    table = new_table(pa.schema([(name, pa.int64()) for name in names]), primary_key=["k`1"], partition_by=["a.b"])
    frame = spark.createDataFrame([(1, 2, 3, 4), (1, 3, 3, 5)], "a long, b long, c long, d long").toDF(*names)
    table.upsert(frame, distribution=distribution)
    assert sorted(map(tuple, (row.values() for row in table.scan().to_arrow().to_pylist()))) == [
        (1, 2, 3, 4),
        (1, 3, 3, 5),
    ]


def test_keys_given_as_text_meet_whatever_the_zone_of_the_session(spark: SparkSession, new_table: NewTable) -> None:
    """Text without a zone is UTC for lakelib; Spark would take it for the session's."""
    table = new_table("at timestamp, v string", primary_key=["at"])
    moments = [f"2026-11-{day:02d} {hour:02d}:00:00" for day in range(1, 29) for hour in (1, 13)]
    rows = [(f"{moment}{zone}", version, version) for moment in moments for zone, version in (("", 2), ("Z", 1))]
    frame = spark.createDataFrame(rows, "at string, v string, version int").repartition(4)
    table.upsert(frame, explicit_cast=True, aux_order=["version"])
    assert table.scan().to_arrow()["v"].to_pylist() == ["2"] * len(moments)


@pytest.mark.parametrize("kind", ["bigint", "timestamp", "date"])
def test_keys_that_text_does_not_spell_are_told_by_column_and_row(
    spark: SparkSession, new_table: NewTable, kind: str
) -> None:
    table = new_table(f"k {kind}, v int", primary_key=["k"])
    frame = spark.createDataFrame([("no key", 1)], "k string, v int")
    with pytest.raises(InvalidInputError, match=r"Column 'k', row 0 .*'no key' does not convert"):
        table.upsert(frame, explicit_cast=True, distribution="hash")
