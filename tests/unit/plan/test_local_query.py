"""What a query in Spark SQL becomes in DuckDB's, and what it is refused for. Its values are compared elsewhere."""

import pytest

from lakelib.errors import OnlySparkError
from lakelib.plan.local_query import LocalQuery, check_query, translate_query

ORDERS = (("id", "bigint"), ("dt", "date"), ("status", "string"), ("amount", "decimal(10,2)"), ("x", "double"))
VIEWS = {"source": ORDERS, "o": ORDERS, "Other": (("ID", "int"),)}


def translate(text: str, partition: str = "2026-11-18") -> LocalQuery:
    return translate_query(text, VIEWS, partition)


def test_columns_have_the_querys_names_and_sparks_types() -> None:
    found = translate("SELECT ID AS Key, count(*) OVER () AS n, amount * 2 AS twice, o.* FROM o")
    assert found.columns[:3] == (("Key", "bigint"), ("n", "bigint"), ("twice", "decimal(12,2)"))
    assert found.columns[3:] == ORDERS


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("SELECT id FROM source WHERE status = 'a'", {"source": ("status", "id")}),
        ("SELECT count(*) AS n FROM source", {"source": ()}),
        ("SELECT s.id FROM source s JOIN other o USING (id) WHERE 1 = 1 ", None),
        ("SELECT s.id FROM source s WHERE s.id IN (SELECT id FROM o)", {"source": ("id",), "o": ("id",)}),
        ("WITH c AS (SELECT id FROM o) SELECT id FROM c", {"o": ("id",)}),
    ],
)
def test_of_a_view_only_the_columns_that_are_looked_at_are_used(text: str, uses: dict[str, object] | None) -> None:
    if uses is None:
        with pytest.raises(OnlySparkError, match="unlike types"):
            translate(text)
    else:
        assert dict(translate(text).uses) == uses


@pytest.mark.parametrize(
    ("condition", "where"),
    [
        ("dt = DATE(:partition)", "`dt` = DATE '2026-11-18'"),
        ("dt >= '2026-11-01' AND id < 5 AND status <> ''", "`dt` >= DATE '2026-11-01' AND `id` < 5 AND `status` <> ''"),
        ("dt = DATE(:partition) AND upper(status) = 'A'", "`dt` = DATE '2026-11-18'"),
        ("dt = DATE(:partition) OR id = 1", None),
        ("dt = DATE('2026-1-1')", None),
        ("amount > 1", None),
        ("id = 'x' || 'y'", OnlySparkError),
        ("dt <=> DATE(:partition)", None),
    ],
)  # fmt: skip
def test_what_a_condition_leaves_out_need_not_be_read(condition: str, where: object) -> None:
    text = f"SELECT id FROM o WHERE {condition}"
    if where is OnlySparkError:
        with pytest.raises(OnlySparkError):
            translate(text)
    else:
        assert translate(text).where.get("o") == where


def test_of_a_view_that_is_read_twice_all_is_read() -> None:
    text = "SELECT id FROM o WHERE dt = DATE(:partition) AND id NOT IN (SELECT id FROM o WHERE id > 5)"
    assert dict(translate(text).where) == {}


def test_a_condition_on_the_other_side_of_a_join_leaves_rows_out_as_well() -> None:
    """A row for which the column is NULL, because nothing was joined to it, does not fulfil it."""
    text = "SELECT s.id FROM source s LEFT JOIN o ON s.id = o.id WHERE o.status = 'a'"
    assert dict(translate(text).where) == {"o": "`status` = 'a'"}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM source LIMIT 1",
        "SELECT id FROM source; SELECT 1 AS x",
        "INSERT INTO o SELECT * FROM source",
        "DROP TABLE o",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM parquet.`/tmp/x`",
        "SELECT * FROM shop.orders",
        "SELECT getenv('HOME') AS x",
        "SELECT id, id FROM source",
        "SELECT id + 1 FROM source",
        "SELECT x.id FROM source",
        "SELECT id FROM source, o",
        "SELECT id FROM source GROUP BY ROLLUP (id)",
        "SELECT id FROM source GROUP BY x",
        "SELECT DISTINCT x FROM source",
        "SELECT id FROM source TABLESAMPLE (10 PERCENT)",
        "SELECT s.id FROM source s NATURAL JOIN o",
        "SELECT * FROM source LATERAL VIEW explode(array(1)) t AS e",
        "SELECT (SELECT max(o.id) FROM o WHERE o.dt = s.dt) AS m FROM source s",
        "SELECT id FROM source QUALIFY row_number() OVER (ORDER BY id) = 1",
        "SELECT a.x FROM source a JOIN o b ON a.x = b.x",
        "SELECT id AS a FROM source UNION ALL SELECT status FROM o",
        "SELECT 'a\\tb' AS x",
        "SELECT * FROM (SELECT id FROM source ORDER BY id)",
        "SELECT",
        "",
        "SELECT " + "(" * 5000 + "1" + ")" * 5000 + " AS x",
    ],
)
def test_what_is_not_translated_takes_spark(text: str) -> None:
    with pytest.raises(OnlySparkError):
        translate(text)


@pytest.mark.parametrize("text", ["SELECT foo(id) AS x FROM a", "SELECT id FROM a LIMIT 1", "SELECT a[0] AS x FROM b"])
def test_some_of_it_is_known_without_any_column(text: str) -> None:
    with pytest.raises(OnlySparkError):
        check_query(text)
    check_query("WITH a AS (SELECT b.c, sum(d) OVER (ORDER BY e) AS s FROM f JOIN b ON b.x = f.y) SELECT * FROM a")


@pytest.mark.parametrize(
    ("text", "is_said"),
    [
        ("SELECT id FROM o WHERE id > 1", False),
        ("SELECT o.id FROM o LEFT JOIN source s ON s.id = o.id", True),
        ("SELECT id FROM o WHERE id NOT IN (SELECT id FROM source)", True),
        ("SELECT id, sum(id) OVER (PARTITION BY dt) AS s FROM o", True),
        ("SELECT count(*) AS n FROM o LEFT JOIN source s ON s.id = o.id", False),
        ("SELECT o.dt, count(*) AS n FROM o LEFT JOIN source s ON s.id = o.id GROUP BY o.dt", False),
        ("SELECT DISTINCT o.id FROM o LEFT JOIN source s ON s.id = o.id", False),
        ("SELECT c.id FROM (SELECT o.id FROM o JOIN source s ON s.id = o.id) c", False),
    ],
)
def test_the_order_of_the_first_view_is_kept_where_rows_stay_apart(text: str, is_said: bool) -> None:
    assert translate(text).sql.endswith("ORDER BY r1.rowid") is is_said


def test_what_may_be_a_slip_is_told_as_one() -> None:
    with pytest.raises(OnlySparkError, match="the column 'amonut', of which there is none") as mistyped:
        translate("SELECT amonut FROM source")
    assert mistyped.value.remedy == "Do you mean amount?"
    with pytest.raises(OnlySparkError, match=r"not understood without it \(line 2, near 'WHERE'\)"):
        translate("SELECT id FROM source\nWHERE")


def test_no_name_of_the_query_is_duckdbs() -> None:
    views = {"source": (('a"b', "int"), ("select", "int"), ("rowid", "int"))}
    sql = translate_query('SELECT `a"b`, `select` AS `x"y`, rowid FROM source AS `r1`', views, "all").sql
    assert sql == 'SELECT r1."a""b" AS "a""b", r1."select" AS "x""y", r1."rowid" AS "rowid" FROM "source" AS r1'
