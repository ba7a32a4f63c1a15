"""Promises of `spark.read.format("lake")` and of `CREATE TEMPORARY VIEW … USING lake`."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakelib import Lake, LakeError, Table
from tests.spark.conftest import NewTable

Load = Callable[..., DataFrame]


@pytest.fixture(params=["frame", "view"])
def load(request: pytest.FixtureRequest, spark: SparkSession) -> Load:
    """Reads a table with options, as Python does and as SQL does."""

    def as_frame(name: str, **options: Any) -> DataFrame:
        return spark.read.format("lake").options(**options).load(name)

    def as_view(name: str, **options: Any) -> DataFrame:
        given = {"path": name, **options}
        shown = ", ".join(f"""{key} '{str(value).replace("'", chr(92) + "'")}'""" for key, value in given.items())
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW loaded USING lake OPTIONS ({shown})")
        return spark.table("loaded")

    return as_frame if request.param == "frame" else as_view


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()))


@pytest.fixture
def orders(new_table: NewTable) -> Table:
    """Three snapshots: two rows, one of them changed, one added."""
    table = new_table("id bigint, dt string, amount double", primary_key=["id"])
    table.upsert(pa.table({"id": [1, 2], "dt": ["a", "b"], "amount": [1.0, 2.0]}))
    table.upsert(pa.table({"id": [2], "dt": ["b"], "amount": [20.0]}))
    table.upsert(pa.table({"id": [3], "dt": ["c"], "amount": [3.0]}))
    return table


@pytest.mark.parametrize("has_snapshot", [False, True])
def test_a_table_without_rows_is_a_frame_without_rows(load: Load, new_table: NewTable, has_snapshot: bool) -> None:
    table = new_table("id bigint, v string", primary_key=["id"])
    if has_snapshot:
        table.upsert(pa.table({"id": [1], "v": ["x"]}))
        table.delete("TRUE")
    assert load(table.name).columns == ["id", "v"]
    assert rows_of(load(table.name)) == []
    assert load(table.name).where("id > 1").count() == 0


def test_a_filter_that_no_row_matches_gives_no_rows(load: Load, orders: Table) -> None:
    assert rows_of(load(orders.name).where("id = 99")) == []
    assert rows_of(load(orders.name, where="id = 99")) == []


def test_every_type_comes_as_it_was_written(load: Load, new_table: NewTable) -> None:
    ddl = (
        "id bigint, y tinyint, s smallint, i int, f float, g double, d decimal(38,10), t string, x binary, b boolean,"
        " a date, m timestamp, n timestamp_ntz, l array<struct<k:int>>, p map<string,array<int>>, c struct<`a.b`:int>"
    )
    table = new_table(ddl, primary_key=["id"])
    moment = datetime(1890, 1, 1, tzinfo=UTC)
    numbers = (1, -1, -2, -3, 1.5, float("inf"), Decimal("1.0000000001"))
    others = ("ü", b"\x00", True, date(1500, 2, 28), moment, moment.replace(tzinfo=None))
    nested = ([{"k": 1}, None], [("k", [1, None])], {"a.b": None})
    row = (*numbers, *others, *nested)
    given = pa.Table.from_pylist([dict(zip(table.schema.names, row, strict=True)), {"id": 2}], table.schema)
    table.upsert(given)
    found = load(table.name).orderBy("id").toArrow().cast(given.schema)
    assert found.to_pylist() == given.to_pylist()


def test_at_names_a_snapshot_a_tag_or_a_moment(load: Load, orders: Table, module_catalog_url: str) -> None:
    with psycopg.connect(module_catalog_url, autocommit=True) as connection:
        table = connection.execute('select id from lake."table" where name = %s', [orders.name.partition(".")[2]])
        connection.execute(
            "insert into lake.tag (table_id, name, snapshot_id) values (%s, 'start', 1)", table.fetchone()
        )
    first = [(1, "a", 1.0), (2, "b", 2.0)]
    second = orders.history()[1]
    assert rows_of(load(orders.name, at=1)) == first
    assert rows_of(load(orders.name, at="tag:start")) == first
    assert rows_of(load(orders.name, AT=second.committed_at.isoformat())) == [(1, "a", 1.0), (2, "b", 20.0)]
    assert len(rows_of(load(orders.name))) == 3


def test_columns_and_where_say_what_is_read(load: Load, new_table: NewTable) -> None:
    table = new_table("id bigint, `a.b` struct<c:int>, a struct<b:int>, `x,y` string", primary_key=["id"])
    table.upsert(pa.Table.from_pylist([{"id": 1, "a.b": {"c": 2}, "a": {"b": 3}, "x,y": "z"}, {"id": 2}], table.schema))
    frame = load(table.name, columns="`x,y`, A, a.b, _commit", where="`x,y` = 'z'")
    assert frame.columns == ["x,y", "a", "a.b", "_commit"]
    assert rows_of(frame) == [("z", (3,), (2,), 1)]
    assert rows_of(frame.where("a.b = 3 and `a.b`.c = 2 and _commit = 1")) == rows_of(frame)
    assert rows_of(frame.where("_commit > 1")) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"colums": "id"}, ["unknown_option", "'colums'", "Known: path, table, at, columns, where"]),
        ({"at": "99"}, ["snapshot_not_found", "no snapshot 99", "history()"]),
        ({"at": "yesterday"}, ["invalid_at", "yesterday", "Give a snapshot id"]),
        ({"at": "2001-11-18 10:00:00"}, ["snapshot_not_found", "2001-11-18T10:00:00+00:00"]),
        ({"at": "tag:none"}, ["tag_not_found", "'none'"]),
        ({"columns": "id,,dt"}, ["invalid_option", "columns"]),
        ({"columns": "nothing"}, ["unknown_column", "'nothing'", "Columns: id"]),
        ({"where": "nothing = 1"}, ["unknown_column", "'nothing'"]),
        ({"where": "id ="}, ["invalid_predicate"]),
    ],
)
def test_what_is_wrong_with_a_read_is_told_by_kind_and_remedy(
    load: Load, orders: Table, options: dict[str, str], words: list[str]
) -> None:
    with pytest.raises((LakeError, AnalysisException)) as caught:
        load(orders.name, **options)
    kind, *others = words
    assert (
        f"[{kind}]" in str(caught.value) if isinstance(caught.value, AnalysisException) else caught.value.kind == kind
    )
    for word in others:
        assert word in str(caught.value)


def test_a_table_that_is_not_there_is_told(spark: SparkSession, lake: Lake, load: Load) -> None:
    for name in ("shop.nothing", "nothing"):
        with pytest.raises((LakeError, AnalysisException), match=name):
            load(name)
    with pytest.raises(LakeError, match="Give its name"):
        spark.read.format("lake").load()
    with pytest.raises(AnalysisException, match=r"(?s)\[missing_table\].*Give its name"):
        spark.sql("CREATE TEMPORARY VIEW nothing USING lake")


def test_a_frame_shows_what_was_there_when_it_was_loaded(spark: SparkSession, orders: Table) -> None:
    frame = spark.read.format("lake").load(orders.name)
    orders.evolve(rename={"amount": "total"})
    orders.delete("id > 1")
    assert rows_of(frame) == [(1, "a", 1.0), (2, "b", 20.0), (3, "c", 3.0)]
    assert frame.columns == ["id", "dt", "amount"]


@pytest.mark.parametrize("at", [None, 3])
def test_a_view_shows_what_is_there_when_it_is_queried_first(
    spark: SparkSession, orders: Table, at: int | None
) -> None:
    pinned = "" if at is None else f", at '{at}'"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW late USING lake OPTIONS (path '{orders.name}'{pinned})")
    orders.delete("id = 1")
    counts = [spark.table("late").count()]
    orders.delete("id = 2")
    counts += [spark.table("late").count()]
    assert counts == ([2, 2] if at is None else [3, 3])


def test_the_filters_of_one_use_are_not_those_of_the_next(load: Load, orders: Table) -> None:
    frame = load(orders.name)
    few = frame.where("id > 2")
    assert (few.count(), frame.count(), frame.where("id < 3").count()) == (1, 3, 2)
    assert few.unionAll(frame.where("id < 3")).unionAll(frame).count() == 6
    assert frame.alias("a").join(frame.alias("b"), "id").where("a.id > 1 and b.id < 3").count() == 1


def test_a_view_whose_columns_changed_before_it_was_queried_says_so(spark: SparkSession, new_table: NewTable) -> None:
    def viewed() -> tuple[Table, DataFrame]:
        table = new_table("id bigint, v int", primary_key=["id"])
        table.upsert(pa.table({"id": [1], "v": pa.array([1], pa.int32())}))
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW changed USING lake OPTIONS (path '{table.name}')")
        return table, spark.table("changed")

    table, frame = viewed()
    table.evolve(widen={"v": "bigint"})
    with pytest.raises(PySparkException, match=r"(?s)\[schema_changed\].*'v'.*is bigint, and not int.*again"):
        frame.collect()
    table, frame = viewed()
    table.evolve(rename={"v": "w"})
    with pytest.raises(PySparkException, match=r"(?s)\[unknown_column\].*'v'.*Columns: id, w"):
        frame.where("id = 1").collect()
    table, frame = viewed()
    table.evolve(add=[pa.field("w", pa.string())])
    assert rows_of(frame) == [(1, 1)]


def test_a_schema_of_ones_own_chooses_columns(spark: SparkSession, load: Load, orders: Table) -> None:
    frame = spark.read.format("lake").schema("amount double, id bigint").load(orders.name)
    assert rows_of(frame) == [(1.0, 1), (3.0, 3), (20.0, 2)]
    wrong = spark.read.format("lake").schema("id string").load(orders.name)
    with pytest.raises(PySparkException, match=r"(?s)\[schema_changed\].*'id'.*bigint"):
        wrong.collect()


def test_sql_views_use_the_lake_and_can_be_joined(spark: SparkSession, orders: Table) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW now USING lake OPTIONS (path '{orders.name}')")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW before USING lake OPTIONS (table '{orders.name}', at '1')")
    joined = spark.sql(
        "SELECT n.id, n.amount, b.amount FROM now n LEFT JOIN before b ON n.id = b.id WHERE n.id > 1 ORDER BY n.id"
    )
    assert list(map(tuple, joined.collect())) == [(2, 20.0, 2.0), (3, 3.0, None)]
    with pytest.raises(AnalysisException, match=r"(?s)\[unsupported_write\].*register"):
        spark.sql("INSERT INTO now SELECT * FROM before")
    with pytest.raises(AnalysisException, match=r"\[unknown_option\]"):
        spark.sql(f"CREATE TEMPORARY VIEW odd USING lake OPTIONS (path '{orders.name}', mode 'fast')").collect()


def test_the_snapshot_that_is_read_is_held(load: Load, orders: Table, module_catalog_url: str) -> None:
    with psycopg.connect(module_catalog_url, autocommit=True) as connection:
        connection.execute("delete from lake.lease")
        load(orders.name, at=2).collect()
        held = connection.execute("select snapshot_id from lake.lease where expires_at > now() + interval '1 hour'")
        assert held.fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        ({"changes_after": "1"}, [(1, "x2", 2, "upsert"), (2, None, 3, "delete")]),
        ({"changes_after": "0", "changes_until": "1", "view": "all"}, [(1, "x", 1, "upsert"), (2, "y", 1, "upsert")]),
        ({"changes_after": "1", "view": "net", "where": "id = 2"}, [(2, "y", 1, "delete")]),
        ({"changes_until": "2", "columns": "id"}, [(1, 2, "upsert")]),
        ({"view": "latest"}, [(2, None, 3, "delete")]),
    ],
)
def test_changes_are_asked_for_by_options(
    load: Load, new_table: NewTable, options: dict[str, str], changes: list[tuple[Any, ...]]
) -> None:
    table = new_table("id bigint, v string", primary_key=["id"])
    table.upsert(pa.table({"id": [1, 2], "v": ["x", "y"]}))
    table.upsert(pa.table({"id": [1], "v": ["x2"]}))
    table.delete_keys(pa.table({"id": [2]}))
    assert sorted(map(tuple, load(table.name, **options).collect()), key=repr) == changes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"changes_after": "1", "at": "1"}, "Option at names a snapshot"),
        ({"changes_after": "9"}, "after is snapshot 9"),
        ({"changes_after": "-1"}, "after is '-1'"),
        ({"view": "some"}, "view is 'some'"),
    ],
)
def test_changes_that_mean_nothing_are_refused(
    load: Load, new_table: NewTable, options: dict[str, str], message: str
) -> None:
    table = new_table("id bigint, v string", primary_key=["id"])
    table.upsert(pa.table({"id": [1], "v": ["x"]}))
    with pytest.raises((LakeError, PySparkException), match=message):
        load(table.name, **options).collect()
