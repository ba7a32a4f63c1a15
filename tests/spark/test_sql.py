"""`lakelib.spark.sql`: the text that `lake.sql` takes, carried out by Spark, gives the same rows in the same types."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakelib.spark
from lakelib import InvalidInputError, Lake, NotFoundError, Table
from lakelib.rows.types import type_text
from lakelib.work.spark.types import arrow_schema_of
from tests.spark.conftest import NewTable

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("dt", pa.date32()),
        ("name", pa.string()),
        ("amount", pa.decimal128(10, 2)),
        ("score", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
        ("parts", pa.list_(pa.int32())),
        ("s", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ]
)


@pytest.fixture(scope="module")
def orders(lake: Lake) -> Table:
    """Of three snapshots: rows, some of them changed, and one gone."""
    table = lake.create_table("shop.orders", SCHEMA, primary_key=["id"], partition_by=["dt"], buckets=2)
    table.upsert(rows(range(1, 21)))
    table.upsert(rows(range(5, 9), name="changed"))
    table.delete("id = 3")
    table.tag("two", at=2)
    return table


def rows(numbers: range, name: str | None = None) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "id": number,
                "dt": date(2026, 11, 1 + number % 3),
                "name": None if number % 7 == 0 else name or f"n{number}",
                "amount": Decimal(number) / 4,
                "score": float("nan") if number % 5 == 0 else number / 3,
                "at": datetime(2026, 3, 29, 20 + number % 4, number, tzinfo=UTC),
                "parts": list(range(number % 3)),
                "s": {"a": number, "b": "x"},
            }
            for number in numbers
        ],
        schema=SCHEMA,
    )


def same(lake: Lake, spark: SparkSession, text: str, **values: Any) -> list[str]:
    """The rows, which are the same in process, in the same types."""
    expected = lake.sql(text, **values)
    frame = lakelib.spark.sql(spark, lake, text, **values)
    assert typed(arrow_schema_of(frame.schema)) == typed(expected.schema)
    found = told(frame.toArrow().cast(expected.schema))
    assert found == told(expected.to_arrow())
    return found


def typed(schema: pa.Schema) -> list[tuple[str, str]]:
    """Spark alone knows of what it has made that no element is NULL."""
    return [(each.name, type_text(each.type)) for each in schema]


def told(found: pa.Table) -> list[str]:
    return sorted(map(repr, found.to_pylist()))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM shop.orders",
        "SELECT *, _commit FROM shop.orders o",
        "SELECT * FROM shop.orders WHERE name LIKE 'ch%' AND s.a > 2",
        "SELECT * FROM shop.orders a JOIN (SELECT name, dt AS other FROM shop.orders WHERE id < 9) b USING (name)",
        "SELECT o.*, _commit AS c FROM shop.orders AS o WHERE _commit = 2",
        "SELECT * EXCEPT (parts, s), _commit FROM shop.orders",
        "SELECT a.*, b._commit FROM shop.orders a JOIN shop.orders b USING (id)",
        "SELECT * FROM (SELECT *, _commit FROM shop.orders) JOIN (SELECT id AS other FROM shop.orders) ON id = other",
        "SELECT orders.id, s.b, orders.s.a FROM shop.orders WHERE orders.amount > 2",
        "SELECT count(*), sum(amount), max(at), min(score) FROM shop.orders WHERE dt = '2026-11-02'",
        "SELECT id, id FROM shop.orders WHERE name LIKE 'ch%'",
        "SELECT name, count(*) FROM shop.orders FOR VERSION AS OF 1 GROUP BY name HAVING count(*) > 0",
        "SELECT id, name FROM shop.orders FOR VERSION AS OF 'two' WHERE id < 6",
        "SELECT n.id FROM shop.orders n LEFT ANTI JOIN shop.orders FOR VERSION AS OF 1 o ON n.name = o.name",
        "SELECT id, _op, _commit FROM changes('shop.orders', after => 1)",
        "SELECT id, kind, committed_at FROM shop.orders$snapshots",
        "SELECT count(*) AS n FROM shop.orders$files f JOIN shop.orders$snapshots s ON f.added_snapshot = s.id",
        "WITH big AS (SELECT id, amount FROM shop.orders WHERE amount > 2) SELECT max(amount) AS m FROM big",
        "SELECT CAST(at AS DATE) AS d, EXTRACT(HOUR FROM at) AS h, date_trunc('DAY', at) AS t FROM shop.orders",
        "SELECT id FROM shop.orders WHERE at < TIMESTAMP '2026-03-29 22:30:00' AND at >= DATE '2026-03-29'",
        "SELECT id, row_number() OVER (PARTITION BY dt ORDER BY id DESC) AS n FROM shop.orders QUALIFY n = 1",
        "SELECT '{id}' AS a, '${env:HOME}' AS b, '$x' AS c",
        "SELECT DISTINCT (SELECT max(m.id) FROM shop.orders m WHERE m.dt = t.dt) AS c FROM shop.orders t",
        "SELECT 1 AS one",
        "SELECT amount / 3 AS a, amount * id AS b, id / 2 AS c, id % 3 AS d, -id AS e FROM shop.orders",
        "SELECT id FROM shop.orders UNION ALL SELECT 7 UNION ALL SELECT 8",
        "SELECT /* {t0} -- */ id FROM shop.orders -- ${env:HOME}",
    ],
)
def test_a_query_gives_what_it_gives_in_process(lake: Lake, orders: Table, spark: SparkSession, text: str) -> None:
    assert same(lake, spark, text)


def test_an_order_is_kept(lake: Lake, orders: Table, spark: SparkSession) -> None:
    text = "SELECT id, name FROM shop.orders ORDER BY name DESC, id LIMIT 7"

    found = lakelib.spark.sql(spark, lake, text).toArrow()

    assert found.to_pylist() == lake.sql(text).to_arrow().to_pylist()


VALUES = (
    None, True, 7, -(2**31), 2**31, -(2**63), 2**63, "it's", "a\\' OR 1=1 --", "{t0} ${env:HOME} :x", b"\x00\xff", b"",
    1.5, float("inf"), float("nan"), date(1500, 2, 28), date(2026, 3, 29),
    datetime(1500, 2, 28, 1, 2, 3, 4, tzinfo=UTC), datetime(2026, 3, 29, 2, 30, tzinfo=UTC),
    Decimal("0.00"), Decimal("-12345678901234567890.123456789"),
)  # fmt: skip


def test_parameters_are_bound_as_they_are(lake: Lake, orders: Table, spark: SparkSession) -> None:
    listed = ", ".join(f"$p{place} AS c{place}, :p{place} AS d{place}" for place in range(len(VALUES)))

    assert same(lake, spark, f"SELECT {listed}", **{f"p{place}": value for place, value in enumerate(VALUES)})


def test_parameters_prune(lake: Lake, orders: Table, spark: SparkSession) -> None:
    assert same(lake, spark, "SELECT id FROM shop.orders WHERE dt = $day AND id IN ($a, 2)", day=date(2026, 11, 2), a=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT sum(e) AS n FROM shop.orders LATERAL VIEW explode(array_union(parts, array(1))) p AS e", [19]),
        ("SELECT count(*) AS n FROM shop.orders WHERE name RLIKE '^n1[0-2]$'", [3]),
        ("SELECT sum(aggregate(parts, 0, (x, y) -> x + y)) AS n FROM shop.orders", [7]),
        ("SELECT count(*) AS n FROM shop.orders GROUP BY ROLLUP (dt), pmod(id, 1)", [5, 7, 7, 19]),
        ("SELECT count(_commit) AS n FROM shop.orders WHERE size(array_union(parts, array(1))) > 1", [14]),
        ("SELECT count(DISTINCT pmod(id, 5)) AS n FROM shop.orders", [5]),
    ],
)
def test_what_spark_alone_computes(
    lake: Lake, orders: Table, spark: SparkSession, text: str, expected: list[int]
) -> None:
    with pytest.raises(InvalidInputError):
        lake.sql(text)

    assert sorted(row.n for row in lakelib.spark.sql(spark, lake, text).collect()) == expected


REFUSED = (
    "SELECT reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT java_method('java.lang.System', 'exit', '1')",
    "SELECT input_file_name() FROM shop.orders",
    "SELECT * FROM parquet.`/etc/passwd`",
    "SELECT * FROM read_files('/etc')",
    "SELECT * FROM range(5)",
    "SELECT TRANSFORM(id) USING 'cat' FROM shop.orders",
    "SELECT * FROM shop.orders TABLESAMPLE (10 PERCENT)",
    "SELECT * FROM some_view",
    "SELECT my_udf(id) FROM shop.orders",
    "SELECT current_user()",
    "SELECT `${env:HOME}` FROM (SELECT 1 AS `${env:HOME}`)",
    "SET spark.sql.ansi.enabled = false",
    "ADD JAR '/tmp/x.jar'",
    "CACHE TABLE shop.orders",
    "SELECT 1; SELECT 2",
    "SELECT nothing FROM shop.orders",
    "SELECT nothing, size(parts) FROM shop.orders",
    "SELECT *, _commit, pmod(id, 2) FROM shop.orders",
    "SELECT $y",
    "selec",
)


def test_what_is_refused(lake: Lake, orders: Table, spark: SparkSession) -> None:
    for text in REFUSED:
        with pytest.raises(InvalidInputError) as refused:
            lakelib.spark.sql(spark, lake, text)

        assert refused.value.remedy, text
        assert "JVM" not in str(refused.value)


def test_a_table_that_is_not_there_is_named(lake: Lake, spark: SparkSession) -> None:
    with pytest.raises(NotFoundError, match=r"shop\.nothing.*line 1"):
        lakelib.spark.sql(spark, lake, "SELECT * FROM shop.nothing")


def test_all_tables_are_seen_at_one_moment_that_stays(lake: Lake, spark: SparkSession, new_table: NewTable) -> None:
    one = new_table(pa.schema([("x", pa.int32())]))
    one.append(pa.table({"x": pa.array([1], pa.int32())}))
    frame = lakelib.spark.sql(spark, lake, f"SELECT a.x FROM {one.name} a JOIN {one.name} b ON a.x = b.x")

    one.overwrite(pa.table({"x": pa.array([2, 3], pa.int32())}))
    one.expire(keep_last=1)

    assert [row.x for row in frame.collect()] == [1]
    assert [row.x for row in frame.filter("x > 0").union(frame).collect()] == [1, 1]


def test_names_with_odd_characters(lake: Lake, spark: SparkSession) -> None:
    lake.create_namespace("odd-ns")
    columns = ["a b", "c`d", "e.f", 'g"h', "{t0}", "ß", "x$y", ":p"]
    table = lake.create_table("odd-ns.t-1", pa.schema([(name, pa.int32()) for name in columns]))
    table.append(pa.table({name: pa.array([place], pa.int32()) for place, name in enumerate(columns)}))
    listed = ", ".join("`" + name.replace("`", "``") + "`" for name in columns)

    same(lake, spark, "SELECT *, _commit FROM `odd-ns`.`t-1`")
    same(lake, spark, f"SELECT {listed} FROM `odd-ns`.`t-1` WHERE `e.f` = 2")


def test_nothing_of_the_session_is_other_than_before(lake: Lake, orders: Table, spark: SparkSession) -> None:
    zone, before = spark.conf.get("spark.sql.session.timeZone"), views(spark)
    spark.range(3).createOrReplaceTempView("t0")

    found = lakelib.spark.sql(spark, lake, "WITH t0 AS (SELECT id FROM shop.orders) SELECT max(id) AS n FROM t0")

    assert [row.n for row in found.collect()] == [20]
    assert spark.table("t0").count() == 3
    assert spark.conf.get("spark.sql.session.timeZone") == zone
    spark.catalog.dropTempView("t0")
    assert views(spark) == before


def views(spark: SparkSession) -> set[str]:
    """Besides those that queries leave on a server."""
    names = {each.name for each in spark.catalog.listTables() if each.isTemporary}
    return {name for name in names if not name.startswith("lake_sql_")}


def test_the_session_s_settings_do_not_change_what_a_query_means(
    lake: Lake, orders: Table, spark: SparkSession, with_settings: Callable[..., None]
) -> None:
    with_settings(
        {
            "spark.sql.ansi.enabled": "false",
            "spark.sql.caseSensitive": "true",
            "spark.sql.session.timeZone": "Asia/Kolkata",
        }
    )
    text = "SELECT ID, CAST(at AS DATE) AS d, TIMESTAMP '2026-03-29 01:00:00' AS m FROM shop.orders"

    same(lake, spark, text)
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        lakelib.spark.sql(spark, lake, "SELECT CAST(name AS INT) AS n FROM shop.orders").collect()


@pytest.mark.parametrize(
    "source", ["(SELECT * FROM shop.orders ORDER BY id DESC LIMIT 3)", "last", "(SELECT * FROM last WHERE id > 0)"]
)
def test_a_value_that_is_looked_up_for_the_first_rows_leaves_them_the_first(
    lake: Lake, orders: Table, spark: SparkSession, source: str
) -> None:
    looked_up = "(SELECT max(m.id) FROM shop.orders m WHERE m.id = o.id)"
    last = "WITH last AS (SELECT * FROM shop.orders ORDER BY id DESC LIMIT 3)"
    same(lake, spark, f"{last} SELECT o.id, {looked_up} AS found FROM {source} o")


def test_explain_tells_spark_s_plan(lake: Lake, orders: Table, spark: SparkSession) -> None:
    (row,) = lakelib.spark.sql(spark, lake, "EXPLAIN SELECT count(*) FROM shop.orders").collect()

    assert "Physical Plan" in row[0]


def test_two_threads_ask_at_once(lake: Lake, orders: Table, spark: SparkSession) -> None:
    def ask(number: int) -> int:
        text = "SELECT count(*) AS n FROM shop.orders WHERE id <= $most AND CAST(at AS DATE) = DATE '2026-03-29'"
        return int(lakelib.spark.sql(spark, lake, text, most=number).collect()[0].n)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, [1, 2, 1, 2, 20, 1])) == [1, 2, 1, 2, 19, 1]


def test_statements_here_and_on_spark_are_one_transaction(lake: Lake, new_table: NewTable, spark: SparkSession) -> None:
    keyed, loose = new_table("id BIGINT NOT NULL, n INT", primary_key=["id"]), new_table("id BIGINT, n INT")

    with lake.transaction() as tx:
        tx.sql(f"INSERT INTO {keyed.name} VALUES (1, 1), (2, 2)")
        lakelib.spark.sql(spark, tx, f"UPDATE {keyed.name} SET n = n + $more WHERE id = 2", more=5)
        tx.sql(f"INSERT INTO {loose.name} SELECT * FROM {keyed.name}")
        assert lakelib.spark.sql(spark, tx, f"SELECT sum(n) AS n FROM {loose.name}").first().n == 8
        assert (keyed.head, loose.head) == (None, None)

    found = [sorted((row["id"], row["n"]) for row in each.scan().to_arrow().to_pylist()) for each in (keyed, loose)]
    assert found == [[(1, 1), (2, 7)]] * 2
    assert tx.snapshots[1].summary["rows_updated"] == 1
