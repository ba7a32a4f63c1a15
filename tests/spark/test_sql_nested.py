"""Arrays, maps, groupings, lateral joins and queries that name themselves: what they give in process is what they give
on Spark."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakelib.spark
from lakelib import InvalidInputError, Lake, Table
from tests.spark.test_sql import same

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("g", pa.string()),
        ("h", pa.int32()),
        ("n", pa.int32()),
        ("a", pa.list_(pa.int32())),
        ("names", pa.list_(pa.string())),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("parts", pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]))),
        ("score", pa.float64()),
    ]
)
ARRAYS = ([3, 1, None, 3], [], None, [2], [None], [1, 2, 3, -4])
NAMES = (["b", None, "a"], [], None, ["", "ä"], [None], ["a", "a"])
MAPS = ({"k": 1, "j": None}, {}, None, {"k": None}, {"j": 2}, {"k": 3, "ä": 4})
PARTS = ([{"x": 1, "y": "a"}, {"x": None, "y": None}], [], None, [{"x": 2, "y": ""}], [], [{"x": 3, "y": "c"}])


@pytest.fixture(scope="module")
def lists(lake: Lake) -> Table:
    table = lake.create_table("shop.lists", SCHEMA, primary_key=["id"], buckets=2)
    rows = [
        {
            "id": number,
            "g": (None, "a", "b")[number % 3],
            "h": number % 2,
            "n": None if number == 4 else number,
            "a": ARRAYS[number % 6],
            "names": NAMES[number % 6],
            "m": None if MAPS[number % 6] is None else list((MAPS[number % 6] or {}).items()),
            "parts": PARTS[number % 6],
            "score": float("nan") if number == 5 else number / 4,
        }
        for number in range(12)
    ]
    table.upsert(pa.Table.from_pylist(rows, schema=SCHEMA))
    table.upsert(pa.Table.from_pylist(rows[3:7], schema=SCHEMA))
    return table


GROUPED = (
    "SELECT g, sum(n) AS s, count(g) AS c, grouping(g) AS o FROM shop.lists GROUP BY ROLLUP (g)",
    "SELECT g, h, count(*) AS n, grouping_id() AS i, grouping_id(g, h) AS j FROM shop.lists GROUP BY CUBE (g, h)",
    "SELECT g, h, max(n) AS m FROM shop.lists GROUP BY GROUPING SETS ((g, h), h, ())",
    "SELECT g, h, max(n) AS m FROM shop.lists GROUP BY g, ROLLUP (h)",
    "SELECT g, h, count(*) AS n FROM shop.lists GROUP BY g, h WITH CUBE",
    "SELECT g, h, count(*) AS n FROM shop.lists GROUP BY g, h WITH ROLLUP",
    "SELECT g, h, count(*) AS n FROM shop.lists GROUP BY g, h GROUPING SETS ((g), (h))",
    "SELECT upper(g) AS u, sum(n) AS s FROM shop.lists GROUP BY ROLLUP (upper(g)) HAVING sum(n) > 10",
    "SELECT * FROM (SELECT g, sum(n) AS s FROM shop.lists GROUP BY ROLLUP (g)) WHERE g IS NULL",
    "SELECT * FROM (SELECT g, sum(n) AS s FROM shop.lists GROUP BY CUBE (g)) WHERE g = 'a' OR s > 40",
    "SELECT h, score, count(*) AS n FROM shop.lists GROUP BY ROLLUP (h, score)",
    "SELECT g AS x, count(*) AS n FROM shop.lists GROUP BY ROLLUP (1)",
)
ROWS_OF_ONE = (
    "SELECT id, e FROM shop.lists LATERAL VIEW explode(a) v AS e",
    "SELECT id, e FROM shop.lists LATERAL VIEW OUTER explode(a) v AS e",
    "SELECT id, p, e FROM shop.lists LATERAL VIEW posexplode(names) v AS p, e WHERE id > 2",
    "SELECT id, v.* FROM shop.lists LATERAL VIEW OUTER posexplode(m) v",
    "SELECT id, key, value FROM shop.lists LATERAL VIEW explode(m) v WHERE key = 'k'",
    "SELECT id, x, y FROM shop.lists LATERAL VIEW inline(parts) v",
    "SELECT id, e, f FROM shop.lists LATERAL VIEW explode(a) v AS e LATERAL VIEW explode(array(e, e * 10)) w AS f",
    "SELECT id, explode(a) FROM shop.lists WHERE n > 1",
    "SELECT id, explode_outer(a) AS e FROM shop.lists",
    "SELECT posexplode(m) AS (p, k, v), id FROM shop.lists",
    "SELECT DISTINCT explode(names) AS e FROM shop.lists",
    "SELECT e, count(*) AS n FROM (SELECT explode(a) AS e FROM shop.lists) GROUP BY e",
    "SELECT explode(array(1, 2, NULL)) AS e",
    "SELECT id, v.e FROM shop.lists, LATERAL explode(a) AS v(e) WHERE v.e > 1",
    "SELECT * FROM explode(array(1, 2)) AS v(e)",
    "SELECT t.id, q.k FROM shop.lists t, LATERAL (SELECT t.id * 2 AS k) q",
    "SELECT t.id, q.k FROM shop.lists t LEFT JOIN LATERAL (SELECT max(u.n) AS k FROM shop.lists u WHERE u.h = t.n) q",
    "SELECT t.id, q.k FROM shop.lists t JOIN LATERAL (SELECT u.n FROM shop.lists u WHERE u.id = t.n) AS q(k) ON k > 3",
)
VALUES = (
    "SELECT id, size(a) AS s, cardinality(m) AS c, array_size(names) AS d FROM shop.lists",
    "SELECT id, get(a, 0) AS b, get(a, -1) AS c, try_element_at(a, -1) AS d, try_element_at(a, 9) AS e FROM shop.lists",
    "SELECT id, a[0] AS b, element_at(a, -1) AS c FROM shop.lists WHERE size(a) > 0",
    "SELECT id, m['k'] AS b, element_at(m, 'j') AS c, try_element_at(m, 'z') AS d FROM shop.lists",
    "SELECT id, array_contains(a, 3) AS b, array_contains(a, CAST(NULL AS INT)) AS c FROM shop.lists",
    "SELECT id, array_contains(names, 'a') AS b FROM shop.lists WHERE array_contains(a, 1)",
    "SELECT id, array_min(a) AS b, array_max(names) AS c FROM shop.lists",
    "SELECT id, sort_array(a) AS b, sort_array(names, false) AS c, array_sort(a) AS d FROM shop.lists",
    "SELECT id, array_distinct(a) AS b, array_distinct(names) AS c FROM shop.lists",
    "SELECT id, array_join(names, '-') AS b FROM shop.lists",
    "SELECT id, map_keys(m) AS b, map_values(m) AS c FROM shop.lists",
    "SELECT id, transform(a, x -> x * 2 + id) AS b, filter(a, x -> x > 1) AS c FROM shop.lists",
    "SELECT id, transform(parts, p -> p.x) AS b FROM shop.lists",
    "SELECT id, exists(a, x -> x > 2) AS b, forall(a, x -> x > 0) AS c FROM shop.lists",
    "SELECT transform(array(1, 2), x -> transform(array(10, 20), y -> x + y)) AS b",
    "SELECT array(1, NULL, 2) AS b, array(1, 2.5) AS c, array(array(1), array(2)) AS d, sequence(1, 3) AS e",
    "SELECT sequence(3, 1) AS b, sequence(CAST(2 AS BIGINT), 2) AS c",
    "SELECT map('a', 1, 'b', NULL) AS b, named_struct('p', 1, 'q', 'x') AS c, struct(id, 2) AS d FROM shop.lists",
    "SELECT named_struct('p', id).p AS b FROM shop.lists",
    "SELECT g, sort_array(collect_list(n)) AS b, size(collect_list(a)) AS c FROM shop.lists GROUP BY g",
    "SELECT sort_array(array_agg(names[0])) AS b FROM shop.lists WHERE size(names) > 0",
    "SELECT m['k'] AS k, count(*) AS n FROM shop.lists GROUP BY m['k']",
    "SELECT * FROM VALUES (1, array('a')), (2, array('b', NULL)) AS v(x, y)",
)
THEMSELVES = (
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT n FROM r",
    "WITH RECURSIVE r AS (SELECT id, 0 AS d FROM shop.lists WHERE id < 2 UNION ALL SELECT t.id, r.d + 1 FROM r"
    " JOIN shop.lists t ON t.id = r.id + 2) SELECT * FROM r",
    "WITH RECURSIVE r(n, s) AS (SELECT 1, 'a' UNION ALL SELECT n + 1, concat(s, 'b') FROM r WHERE n < 4),"
    " b AS (SELECT max(n) AS n FROM r) SELECT r.s FROM r JOIN b USING (n)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 100) SELECT max(n) AS n FROM r",
)


@pytest.mark.parametrize("text", [*GROUPED, *ROWS_OF_ONE, *VALUES, *THEMSELVES])
def test_a_query_gives_what_it_gives_in_process(lake: Lake, lists: Table, spark: SparkSession, text: str) -> None:
    assert same(lake, spark, text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a[9] AS b FROM shop.lists",
        "SELECT element_at(a, 9) AS b FROM shop.lists",
        "SELECT element_at(a, 0) AS b FROM shop.lists",
        "SELECT try_element_at(array(1), 0) AS b",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) AS n FROM r",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT v.x FROM r CROSS JOIN"
        " (SELECT explode(sequence(1, 2000)) AS x) AS v) SELECT max(n) AS n FROM r",
    ],
)
def test_what_is_an_error_of_a_row_is_one_in_both(lake: Lake, lists: Table, spark: SparkSession, text: str) -> None:
    with pytest.raises(InvalidInputError, match="a value that it cannot be carried out with"):
        lake.sql(text).to_arrow()
    with pytest.raises(Exception, match=r"INVALID_ARRAY_INDEX|INVALID_INDEX_OF_ZERO|RECURSION_\w+_LIMIT"):
        lakelib.spark.sql(spark, lake, text).toArrow()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT array_union(a, a) FROM shop.lists", "line 1, column 8"),
        ("SELECT aggregate(a, 0, (x, y) -> x + y) FROM shop.lists", "line 1, column 8"),
        ("SELECT explode(a), explode(a) FROM shop.lists", "line 1, column 8"),
        ("SELECT id FROM shop.lists LATERAL VIEW explode(g) v", "line 1, column 4"),
        ("SELECT grouping_id(h) FROM shop.lists GROUP BY CUBE (g, h)", "line 1, column 8"),
        ("SELECT transform(a, x -> z) FROM shop.lists", "line 1, column"),
    ],
)
def test_what_is_not_known_is_told_with_its_place(lake: Lake, lists: Table, text: str, place: str) -> None:
    with pytest.raises(InvalidInputError, match=place) as refused:
        lake.sql(text)

    assert refused.value.remedy
