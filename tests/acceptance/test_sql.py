"""SQL on the lake: what a query may say, what it reads, which moment it sees, and what is said of what is wrong."""

import math
import threading
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from lakelib import InvalidInputError, Lake, LakeError, NotFoundError, Table
from lakelib.result import Result
from tests.acceptance.support import NewTable

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("customer", pa.int32()),
        ("dt", pa.date32()),
        ("amount", pa.decimal128(15, 2)),
        ("score", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
        ("s", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ]
)
DAY, NEXT_DAY = date(2026, 11, 18), date(2026, 11, 19)


def order(number: int, *, amount: Any = None, score: float | None = None, dt: date = DAY) -> dict[str, Any]:
    return {
        "id": number,
        "customer": number % 3,
        "dt": dt,
        "amount": Decimal(number if amount is None else amount),
        "score": score,
        "at": datetime(2026, 11, 18, number % 24, tzinfo=UTC),
        "s": {"a": number, "b": "x"},
    }


def orders_of(*found: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(found), schema=SCHEMA)


@pytest.fixture
def orders(new_table: NewTable) -> Table:
    """Ten rows on two days, of which one was replaced, and one was deleted."""
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.upsert(orders_of(*(order(number, dt=DAY if number < 5 else NEXT_DAY) for number in range(10))))
    table.upsert(orders_of(order(1, amount=100, score=math.nan)))
    table.delete("id = 9")
    return table


@pytest.fixture
def customers(new_table: NewTable) -> Table:
    table = new_table(
        pa.schema([pa.field("id", pa.int32(), nullable=False), ("name", pa.string())]), primary_key=["id"]
    )
    table.append(pa.table({"id": pa.array([0, 1], pa.int32()), "name": ["zero", "one"]}))
    return table


def rows(lake: Lake, text: str, **values: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in lake.sql(text, **values).to_arrow().to_pylist()]


def test_a_query_reads_tables_as_their_readers_see_them(lake: Lake, orders: Table, customers: Table) -> None:
    query = f"""
        WITH spent AS (SELECT customer, sum(amount) AS total, count(*) AS n FROM {orders.name} GROUP BY customer)
        SELECT c.name, total, n FROM spent s LEFT JOIN {customers.name} c ON c.id = s.customer ORDER BY s.customer
    """
    assert rows(lake, query) == [
        ("zero", Decimal("9.00"), 3),
        ("one", Decimal("111.00"), 3),
        (None, Decimal("15.00"), 3),
    ]


def test_parameters_are_values_and_never_text(lake: Lake, orders: Table) -> None:
    query = f"SELECT id FROM {orders.name} WHERE dt = $day AND amount > :least AND id IN ($one, 2, 4) ORDER BY id"

    assert rows(lake, query, day=DAY, least=Decimal("1.5"), one=3) == [(2,), (3,), (4,)]
    assert rows(lake, "SELECT $said AS x", said="' OR 1=1 -- $day \\") == [("' OR 1=1 -- $day \\",)]
    assert rows(lake, "SELECT $at AS x, $none AS n", at=datetime(2026, 1, 1, 2, tzinfo=UTC), none=None) == [
        (datetime(2026, 1, 1, 2, tzinfo=UTC), None)
    ]
    with pytest.raises(InvalidInputError, match=r"the parameter 'day', which has no value \(line 1, column"):
        lake.sql(query, least=1, one=3)
    with pytest.raises(InvalidInputError, match="The parameter day is"):
        lake.sql("SELECT $day", day=datetime(2026, 1, 1))


def test_a_query_asks_for_older_snapshots(lake: Lake, orders: Table) -> None:
    orders.tag("eod", at=1)
    moment = orders.history()[1].committed_at

    def count(version: str, **values: Any) -> int:
        return int(rows(lake, f"SELECT count(*) FROM {orders.name} {version} o WHERE amount < 50", **values)[0][0])

    assert count("") == 8
    assert [count(f"FOR VERSION AS OF {at}") for at in ("1", "2", "'eod'", "'tag:eod'")] == [10, 9, 10, 10]
    assert count("VERSION AS OF $at", at=1) == 10
    assert count("FOR TIMESTAMP AS OF $at", at=moment) == 9
    assert count(f"FOR TIMESTAMP AS OF '{moment.isoformat()}'") == 9
    with pytest.raises(NotFoundError, match="has no tag 'nope'"):
        count("FOR VERSION AS OF 'nope'")
    with pytest.raises(InvalidInputError, match="means no snapshot"):
        count("FOR TIMESTAMP AS OF 3")


def test_a_query_asks_for_changes(lake: Lake, orders: Table) -> None:
    query = f"SELECT _op, id FROM changes('{orders.name}', after => $after) c ORDER BY id"

    assert rows(lake, query, after=1) == [("upsert", 1), ("delete", 9)]
    assert rows(lake, f"SELECT count(*) FROM changes({orders.name}, 0, 1)") == [(10,)]
    assert rows(lake, f"SELECT _change, id FROM changes('{orders.name}', after => 2, view => 'net')") == [("delete", 9)]
    with pytest.raises(InvalidInputError, match="these are no changes"):
        lake.sql(f"SELECT * FROM changes('{orders.name}', since => 3)")


def test_a_query_asks_what_is_known_of_a_table(lake: Lake, orders: Table) -> None:
    orders.tag("eod")
    orders.consumer("billing")

    def known(kind: str, columns: str) -> list[tuple[Any, ...]]:
        return rows(lake, f"SELECT {columns} FROM {orders.name}${kind} x ORDER BY 1")

    assert known("snapshots", "id, kind") == [(1, "upsert"), (2, "upsert"), (3, "delete")]
    assert known("files", "sum(row_count), count(*)") == [(12, len(orders.files()))]
    assert known("partitions", "`values`") == [('{"dt": "2026-11-18"}',), ('{"dt": "2026-11-19"}',)]
    assert known("tags", "name, snapshot_id") == [("eod", 3)]
    assert known("consumers", "name, position, head") == [("billing", 0, 3)]
    assert known("commits", "count(*)") == [(3,)]
    assert known("verdicts", "commit_id") == []
    with pytest.raises(InvalidInputError, match="'files' may be meant"):
        known("file", "*")


def test_all_tables_are_seen_at_one_moment(lake: Lake, new_table: NewTable) -> None:
    """While transactions move rows from one table to the other no query sees more of them, or fewer."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64())])
    one, other = new_table(schema, primary_key=["id"]), new_table(schema, primary_key=["id"])
    one.upsert(pa.table({"id": [1], "n": [100]}, schema=schema))
    other.upsert(pa.table({"id": [1], "n": [0]}, schema=schema))
    done = threading.Event()

    def move() -> None:
        for number in range(1, 15):
            with lake.transaction() as tx:
                tx.add(one.stage_upsert(pa.table({"id": [1], "n": [100 - number]}, schema=schema)))
                tx.add(other.stage_upsert(pa.table({"id": [1], "n": [number]}, schema=schema)))
        done.set()

    mover = threading.Thread(target=move)
    mover.start()
    seen = set()
    while not done.is_set():
        seen |= set(rows(lake, f"SELECT a.n + b.n FROM {one.name} a JOIN {other.name} b ON a.id = b.id"))
    mover.join()
    assert seen == {(100,)}


def test_a_result_is_pinned(lake: Lake, orders: Table) -> None:
    result = lake.sql(f"SELECT count(*) AS n FROM {orders.name}")
    before = result.to_arrow()
    orders.upsert(orders_of(order(77)))

    assert result.to_arrow() == before
    assert lake.sql(f"SELECT count(*) AS n FROM {orders.name}").to_arrow() != before


def test_a_result_is_handed_on(lake: Lake, orders: Table) -> None:
    result = lake.sql(f"SELECT id, at, amount / 3 AS third, s.a, s FROM {orders.name} WHERE id < 3 ORDER BY id")

    assert result.schema.field("at").type == pa.timestamp("us", "UTC")
    assert result.to_arrow().schema == result.schema
    assert pa.table(result).equals(result.to_arrow())
    assert pa.schema(result) == result.schema
    assert pl.DataFrame(result).equals(result.to_polars())
    assert duckdb.sql("SELECT max(a) FROM result").fetchall() == [(2,)]
    assert result.to_pandas()["id"].tolist() == [0, 1, 2]
    assert result.to_reader().read_all().num_rows == result.count() == 3
    assert result.head(2)["id"].to_pylist() == [0, 1]
    assert repr(result).startswith("<Result of SELECT id, at, amount / 3")
    assert "third" in result._repr_html_()
    with pytest.raises(InvalidInputError, match="-1 is no number of rows"):
        result.head(-1)


def test_what_the_query_says_of_rows_prunes(lake: Lake, orders: Table) -> None:
    def told(text: str, **values: Any) -> Any:
        (found,) = lake.sql(text, **values).explain().scans
        return found

    found = told(f"SELECT count(*) FROM {orders.name} o WHERE dt = $day AND o.amount > 3 AND s.a > 1", day=DAY)
    assert (found.partitions, found.where) == (1, "dt = DATE '2026-11-18' AND amount > 3.00")
    assert set(found.columns) == {"amount", "dt", "s"}
    assert told(f"SELECT 1 FROM {orders.name} WHERE dt = '2026-11-18' OR dt IS NULL").partitions == 1
    assert told(f"SELECT 1 FROM {orders.name} WHERE (dt IN ($a) AND id > 0)", a=NEXT_DAY).partitions == 1
    within = "dt >= DATE '2026-01-01' AND dt < DATE '2027-01-01'"
    assert told(f"SELECT id FROM {orders.name} WHERE year(dt) = 2026").where == within
    assert (
        told(f"SELECT id FROM {orders.name} WHERE id + 1 > 0 AND id % 2 = 0").where == "(id % CAST('2' AS BIGINT)) = 0"
    )
    assert told(f"SELECT id FROM {orders.name} WHERE CASE WHEN id > 0 THEN TRUE END").where == ""
    text = str(lake.sql(f"SELECT id FROM {orders.name} WHERE id = 3").explain())
    assert f"scan of {orders.name} at snapshot 3" in text
    assert "id = 3" in text


@pytest.mark.parametrize(
    ("join", "pruned"),
    [
        ("o JOIN {c} c ON c.id = o.customer AND o.dt = $day", 1),
        ("o LEFT JOIN {c} c ON c.id = o.customer AND o.dt = $day", 2),
        ("o LEFT JOIN {c} c ON c.id = o.customer WHERE o.dt = $day", 1),
        ("o RIGHT JOIN {c} c ON c.id = o.customer WHERE o.dt = $day", 1),
        ("o RIGHT JOIN {c} c ON c.id = o.customer WHERE o.dt IS NULL", 2),
        ("o FULL JOIN {c} c ON c.id = o.customer AND o.dt = $day", 2),
        ("o ANTI JOIN {c} c ON c.id = o.customer AND o.dt = $day", 2),
    ],
)
def test_a_join_prunes_only_where_it_drops_rows(
    lake: Lake, orders: Table, customers: Table, join: str, pruned: int
) -> None:
    query = f"SELECT count(*) FROM {orders.name} {join.format(c=customers.name)}"
    scans = lake.sql(query, day=DAY).explain().scans

    assert next(each.partitions for each in scans if each.table == orders.name) == pruned


@pytest.mark.parametrize(
    ("query", "pruned"),
    [
        ("SELECT * FROM (SELECT * FROM {o}) WHERE dt = '2026-11-18'", "dt = DATE '2026-11-18'"),
        ("SELECT k FROM (SELECT id + 1 AS k, dt AS d FROM {o} WHERE id < 9) WHERE d > $day AND k > 2", "both"),
        ("WITH a AS (SELECT dt AS d, id FROM {o}), b AS (SELECT * FROM a) SELECT id FROM b WHERE d = $day", "day"),
        ("SELECT * FROM (WITH a AS (SELECT * FROM {o}) SELECT dt AS d FROM a) WHERE d = $day", "day"),
        ("SELECT * FROM (SELECT dt, count(*) AS n FROM {o} GROUP BY dt) WHERE dt = $day AND n > 0", "day"),
        ("SELECT * FROM (SELECT DISTINCT dt FROM {o} ORDER BY dt) WHERE dt = $day", "day"),
        ("SELECT * FROM (SELECT dt FROM {o} UNION SELECT DATE '2026-11-18') u(d) WHERE d = $day", "day"),
        ("SELECT 1 FROM {c} c LEFT JOIN (SELECT * FROM {o}) o ON c.id = o.customer WHERE o.dt = $day", "day"),
        ("SELECT 1 FROM (SELECT o.dt FROM {c} c LEFT JOIN {o} o ON c.id = o.customer) WHERE dt = $day", "day"),
        ("WITH a AS (SELECT * FROM {o}) SELECT 1 FROM a x, a y WHERE x.dt = $day", None),
        ("SELECT * FROM (SELECT * FROM {o} LIMIT 3) WHERE dt = $day", None),
        ("SELECT * FROM (SELECT *, count(*) OVER () AS n FROM {o}) WHERE dt = $day", None),
        ("SELECT * FROM (SELECT max(dt) AS dt FROM {o}) WHERE dt = $day", None),
        ("SELECT 1 FROM (SELECT o.dt FROM {c} c LEFT JOIN {o} o ON c.id = o.customer) WHERE dt IS NULL", None),
        ("SELECT 1 FROM {c} c LEFT JOIN {o} o ON c.id = o.customer WHERE NOT isnan(o.score)", None),
        ("SELECT 1 FROM {c} c LEFT JOIN (SELECT * FROM {o}) o ON c.id = o.customer AND c.id = 1", None),
    ],
)
def test_conditions_go_through_queries_to_the_tables(
    lake: Lake, orders: Table, customers: Table, query: str, pruned: str | None
) -> None:
    told = {None: "", "day": "dt = DATE '2026-11-18'", "both": "id < 9 AND dt > DATE '2026-11-18'"}
    scans = lake.sql(query.format(o=orders.name, c=customers.name), day=DAY).explain().scans

    assert {each.where for each in scans if each.table == orders.name} == {told.get(pruned, pruned)}


def test_moments_and_numbers_mean_what_they_mean_on_spark(lake: Lake, orders: Table) -> None:
    def value(text: str) -> Any:
        ((found,),) = rows(lake, f"SELECT {text} FROM {orders.name} WHERE id = 1")
        return found

    assert value("dt + INTERVAL 1 MONTH - INTERVAL 18 DAYS") == date(2026, 11, 30)
    assert value("at + INTERVAL 1 HOUR") == datetime(2026, 11, 18, 2, tzinfo=UTC)
    assert value("1 / 4") == 0.25
    assert value("CAST('10.00' AS DECIMAL(10,2)) / CAST('3' AS DECIMAL(1,0))") == Decimal("3.333333")
    assert value("avg(amount) OVER ()") == Decimal("100.000000")
    assert value("date_trunc('hour', at + INTERVAL 30 MINUTES)") == datetime(2026, 11, 18, 1, tzinfo=UTC)
    assert (value("dayofweek(dt)"), value("extract(quarter FROM dt)")) == (4, 4)
    assert value("score > 1e300") is True
    with pytest.raises(InvalidInputError, match="a division by zero"):
        value("1 / 0")


@pytest.mark.parametrize("nested", [False, True])
def test_no_file_loses_rows_for_a_nan(lake: Lake, new_table: NewTable, nested: bool) -> None:
    """Parquet's statistics leave NaN out, and DuckDB goes by them where it reads a file by itself."""
    kind = pa.struct([("v", pa.float64())]) if nested else pa.float64()
    schema = pa.schema([("f", kind), ("n", pa.int64())])

    def table_of(*values: float) -> Table:
        table = new_table(schema)
        found = [{"f": {"v": value} if nested else value, "n": 1} for value in values]
        table.append(pa.Table.from_pylist(found, schema=schema))
        return table

    column = "f.v" if nested else "f"
    with_nan, without = table_of(0.0, 0.0, math.nan), table_of(0.0, 1.0, 2.0)
    for condition, count in ((f"{column} <> 0", 1), (f"{column} > 5", 1), (f"{column} = 0", 2), (f"{column} < 5", 2)):
        assert rows(lake, f"SELECT count(*) FROM {with_nan.name} WHERE {condition}") == [(count,)]
    assert rows(lake, f"SELECT max({column}) > 1e300 FROM {with_nan.name}") == [(True,)]
    assert rows(lake, f"SELECT count(*) FROM {without.name} WHERE {column} <> 0") == [(2,)]
    plan = lake.sql(f"SELECT {column} FROM {without.name}").explain().plan
    assert ("READ_PARQUET" in plan) == (not nested)
    assert "READ_PARQUET" in lake.sql(f"SELECT n FROM {with_nan.name}").explain().plan


def test_products_that_overflow_small_decimals_are_computed(lake: Lake, new_table: NewTable) -> None:
    schema = pa.schema([("a", pa.decimal128(15, 2))])
    table = new_table(schema)
    table.append(pa.Table.from_pylist([{"a": Decimal("9999999999999.99")}, {"a": Decimal("-1.10")}], schema=schema))

    assert rows(lake, f"SELECT sum(a * a) FROM {table.name}") == [(Decimal("99999999999999800000000001.2101"),)]
    assert rows(lake, f"SELECT sum(a * 100.00 + a * 100.00) FROM {table.name}") == [(Decimal("1999999999999778.0000"),)]
    assert rows(lake, f"SELECT sum(a * 900.00 + a * 900.00) FROM {table.name}") == [
        (Decimal("17999999999998002.0000"),)
    ]
    assert rows(lake, f"SELECT sum(-a * 900.00 - a * 900.0) FROM {table.name}") == [(Decimal("-17999999999998002.00"),)]


def test_a_limit_takes_some_of_the_rows_of_a_condition(lake: Lake, new_table: NewTable) -> None:
    table = new_table("id BIGINT, amount DECIMAL(10, 2), name STRING", primary_key=["id"])
    for shift in range(2):
        table.upsert([{"id": n, "amount": Decimal(n + shift), "name": f"n{n % 3}"} for n in range(40)])
    for chosen, where in (
        ("id", "amount <> 7"), ("id * 2", "amount > 3.5"), ("name", "amount = 9 OR id = 3"), ("id", "length(name) = 2"),
    ):  # fmt: skip
        text = f"SELECT {chosen} AS x FROM {table.name} WHERE {where}"
        every = lake.sql(text).to_arrow()["x"].to_pylist()
        for most in (1, 5, 49):
            found = lake.sql(f"{text} LIMIT {most}").to_arrow()["x"].to_pylist()
            assert len(found) == min(most, len(every))
            assert {*found} <= {*every}


def test_explain_in_the_text_is_answered_in_rows(lake: Lake, orders: Table) -> None:
    asked = f"SELECT id FROM {orders.name} WHERE id = 3"
    result = lake.sql(f"EXPLAIN {asked}")
    assert result.schema.names == ["plan"]
    assert result.to_arrow()["plan"].to_pylist() == str(result.explain()).splitlines()
    assert result.explain().scans == lake.sql(asked).explain().scans


WRONG = [
    ("SELEC 1", "invalid_sql|sql_refused", ""),
    ("", "invalid_sql", ""),
    ("SELECT 1; SELECT 2", "invalid_sql", "There are 2 statements, and one is run. Run them one after the other"),
    ("SELEC * FROM {o}", "invalid_sql", "near 'FROM': something is missing there"),
    ("EXPLAIN ANALYZE SELECT 1", "invalid_sql", r"Expected table name\. "),
    ("SELECT 'a", "invalid_sql", "a quote or a comment does not end"),
    ("orders.sql", "sql_refused", "'orders.sql' is no statement"),
    ("hello", "sql_refused", "'hello' is no statement"),
    ("SHOW COLUMNS IN {o}", "sql_refused", r"There are SHOW NAMESPACES, SHOW TABLES \[IN shop\] and DESCRIBE"),
    ("SELECT current_date()", "unknown_sql", "bind it as a parameter"),
    ("SELECT id FROM {o} WHERE dt = 2026 - 11 - 18", "unknown_sql", r"CAST\(.*DATE '2026-11-18'"),
    ("MERGE INTO {o} USING {o} s WHEN MATCHED THEN DELETE", "invalid_sql", "Write ON target.id = source.id"),
    ("SELECT id FROM {o} WHERE", "invalid_sql", "is not SQL"),
    (
        "SELECT\n  idd FROM {o}",
        "unknown_column",
        r"'idd', of which there is none \(line 2, column 3\). Do you mean id\?",
    ),
    ("SELECT id, FROM {o}", "invalid_sql", r"line 1, column 10\): Nothing stands behind the comma"),
    ("SELECT id, , dt FROM {o}", "invalid_sql", "Nothing stands behind the comma"),
    ("SELECT coalesce(id, ) FROM {o}", "invalid_sql", "Nothing stands behind the comma"),
    ("SELECT id FROM {o} WHERE tag = paid", "unknown_column", "a text stands in single quotes"),
    ("SELECT id FROM {o} a, {o} b", "ambiguous_column", r"more than one \(line 1, column 8\)"),
    ("SELECT s.c FROM {o}", "unknown_column", "the field 'c'"),
    ("SELECT id FROM {o} WHERE id = :least", "missing_parameter", r"lake\.sql\(text, least=…\)"),
    ("SELECT 1 FROM nowhere", "table_not_found", "namespace"),
    ("SELECT 1 FROM {o}x", "table_not_found", r"There is no table \S+ \(line 1, column 15\). Do you mean"),
    ("SELECT frobnicate(id) FROM {o}", "unknown_sql", r"line 1, column 8"),
    ("SELECT * FROM read_parquet('/etc/passwd')", "sql_refused", "is no table"),
    ("SELECT * FROM read_csv('/etc/passwd')", "sql_refused", "is no table"),
    ("SELECT * FROM glob('/*')", "invalid_sql", ""),
    ("SELECT * FROM '/etc/passwd'", "sql|table", ""),
    ("SELECT * FROM `/etc/passwd`", "table_not_found", ""),
    ("SELECT * FROM csv.`/etc/passwd`", "invalid_name|not_found", ""),
    ("SELECT getenv('HOME')", "unknown_sql", ""),
    ("SELECT current_setting('x')", "unknown_sql", ""),
    ("COPY {o} TO '/tmp/x'", "sql_refused", "COPY is no statement"),
    ("ATTACH 'x.db'", "sql", ""),
    ("INSTALL httpfs", "sql_refused", ""),
    ("LOAD httpfs", "sql", ""),
    ("PRAGMA version", "sql_refused", ""),
    ("SET memory_limit = 1", "sql_refused", ""),
    ("CREATE VIEW x AS SELECT 1", "sql|unknown_sql", ""),
    ("SELECT * FROM {o} TABLESAMPLE (10 PERCENT)", "unknown_sql", ""),
    ("SELECT id FROM {o} WHERE dt", "unknown_sql", ""),
    ("SELECT 'a\\'", "sql", ""),
    *(
        (
            f"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT {step}) SELECT n FROM r",
            "unknown_sql",
            "of none before",
        )
        for step in (
            "o.customer FROM {o} o LEFT JOIN r ON o.customer = r.n",
            "o.customer FROM r FULL JOIN {o} o ON o.customer = r.n",
            "o.customer FROM r RIGHT JOIN {o} o ON o.customer = r.n",
            "o.customer FROM r JOIN {o} p ON p.customer = r.n RIGHT JOIN {o} o ON o.id = p.id",
            "o.customer FROM {o} o LEFT SEMI JOIN r ON o.customer = r.n",
        )
    ),
]


@pytest.mark.parametrize(("text", "kinds", "message"), WRONG, ids=[each[0][:40] for each in WRONG])
def test_what_is_wrong_is_said_before_anything_is_read(
    lake: Lake, orders: Table, text: str, kinds: str, message: str
) -> None:
    with pytest.raises(LakeError, match=message or None) as raised:
        lake.sql(text.format(o=orders.name))

    assert any(kind in raised.value.kind for kind in kinds.split("|")), raised.value.kind
    assert raised.value.remedy


def doubling(steps: int) -> str:
    """2 ** (steps + 1) - 1 rows."""
    step = f"SELECT r.n + 1 FROM r CROSS JOIN (VALUES (1), (2)) AS v(x) WHERE r.n < {steps}"
    return f"WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL {step}) SELECT count(*) AS n FROM r"


def test_a_query_that_names_itself_makes_so_many_rows_and_no_more(lake: Lake) -> None:
    first = "WITH RECURSIVE r(n) AS (SELECT explode(sequence(1, {}))"
    one_more = f"{first} UNION ALL SELECT 0 FROM r WHERE n = 1) SELECT count(*) AS n FROM r"

    assert lake.sql(doubling(18)).to_arrow()["n"].to_pylist() == [2**19 - 1]
    assert lake.sql(one_more.format(999_999)).to_arrow()["n"].to_pylist() == [1_000_000]
    for text in (doubling(19), doubling(99), one_more.format(1_000_000)):
        with pytest.raises(InvalidInputError, match="makes more than 1,000,000 rows"):
            lake.sql(text).to_arrow()


def test_a_step_of_no_end_ends_where_it_has_made_too_many_rows(lake: Lake) -> None:
    many = "(SELECT explode(sequence(1, 30000)) AS x)"
    text = (
        f"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT v.x FROM r CROSS JOIN {many} AS v CROSS JOIN {many} AS w)"
    )

    with pytest.raises(InvalidInputError, match="makes more than 1,000,000 rows"):
        lake.sql(f"{text} SELECT count(*) FROM r").to_arrow()


def test_who_wants_few_rows_of_a_query_that_names_itself_gets_them(lake: Lake) -> None:
    text = doubling(99).replace("count(*) AS n", "n")

    assert len(lake.sql(f"{text} LIMIT 5").to_arrow()) == 5


def test_the_engine_reaches_no_other_file(lake: Lake, orders: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the allow-list is a second wall."""
    from lakelib.local.engine import Relation, run_query

    for sql in ("SELECT * FROM read_csv('/etc/passwd')", "COPY (SELECT 1) TO '/tmp/x'", "ATTACH '/tmp/x.db'"):
        for relations in ({}, {"t0": Relation(columns=(("id", "bigint"),), read=lambda names: iter(()))}):
            with pytest.raises(InvalidInputError, match="disabled"):
                list(run_query([sql], [("x", "string")], relations, {}, folder="/tmp/nowhere", threads=1))


def test_what_is_read_is_held_until_the_result_is_closed(lake: Lake, orders: Table) -> None:
    def held() -> list[int]:
        return [each.id for each in orders.expire(keep_last=1, older_than=timedelta(0), dry_run=True).kept_back]

    batches = lake.sql(f"SELECT id FROM {orders.name} FOR VERSION AS OF 2").to_batches()
    next(batches)
    assert held() == [2]
    batches.close()  # type: ignore[attr-defined]
    assert held() == []


def test_an_error_while_reading_is_the_lakes_own(lake: Lake, orders: Table) -> None:
    """Of files that streams are made of."""
    result = lake.sql(f"SELECT id FROM {orders.name}")
    for file in list(orders.files()):
        (Path(orders.location.removeprefix("file://")) / file.path).unlink()

    with pytest.raises(LakeError) as raised:
        result.to_arrow()
    assert raised.value.kind == "missing_file"


def test_a_file_that_is_gone_is_named(lake: Lake, customers: Table) -> None:
    """Of files that the engine reads by itself."""
    result = lake.sql(f"SELECT id FROM {customers.name}")
    for file in list(customers.files()):
        (Path(customers.location.removeprefix("file://")) / file.path).unlink()

    with pytest.raises(LakeError, match="parquet") as raised:
        result.to_arrow()
    assert raised.value.kind == "missing_file"


def test_quotients_of_decimals_are_rounded_half_up(lake: Lake, new_table: NewTable) -> None:
    schema = pa.schema([("a", pa.decimal128(12, 2)), ("b", pa.decimal128(5, 1))])
    table = new_table(schema)
    pairs = [
        ("1.10", "-2.0"),
        ("-1.10", "2.0"),
        ("-7.00", "-3.0"),
        ("0.05", "9.9"),
        ("123456789.25", "0.3"),
        ("0", "-1.0"),
    ]
    table.append(pa.Table.from_pylist([{"a": Decimal(a), "b": Decimal(b)} for a, b in pairs], schema=schema))

    found = dict(rows(lake, f"SELECT CONCAT(CAST(a AS STRING), '/', CAST(b AS STRING)), a / b FROM {table.name}"))

    for a, b in pairs:
        told = found[f"{Decimal(a):.2f}/{b}"]
        assert told == (Decimal(a) / Decimal(b)).quantize(Decimal(1).scaleb(-8), ROUND_HALF_UP)
    ((average,),) = rows(lake, f"SELECT avg(a) FROM {table.name} WHERE a < 0")
    assert average == Decimal("-4.050000")


def test_a_result_is_what_lake_sql_gives(lake: Lake) -> None:
    assert isinstance(lake.sql("SELECT 1"), Result)
    assert lake.sql("SELECT 1 AS a, 2 AS a").schema.names == ["a", "a_1"]
    assert lake.sql("SELECT count(*), 1 + 1").schema.names == ["count(*)", "1 + 1"]


def test_a_comment_is_no_part_of_a_columns_name(lake: Lake, orders: Table) -> None:
    assert lake.sql(f"SELECT 1 + 1 -- two\n/* more */ FROM {orders.name} -- all; of it").schema.names == ["1 + 1"]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("transform(array(array(1, 2)), x -> transform(x, x -> transform(array(10), y -> x + y)))", [[[11], [12]]]),
        ("transform(array(array(1)), x -> transform(x, x -> transform(array(5), y -> transform(x, z -> 1))))", None),
        ("transform(array(1, 2), ID -> id * 10)", [10, 20]),
        ("transform(array(1, 2), id -> ID * 10)", [10, 20]),
        ("transform(array(1, 2), Id -> filter(array(1, 2), iD -> iD > ID))", [[], []]),
        ("transform(array(s), O -> o.a + O.a)", [14]),
        ("exists(array(5, 6), ID -> id = 6)", True),
    ],
)
def test_a_name_for_elements_hides_others(lake: Lake, orders: Table, made: str, expected: Any) -> None:
    if expected is None:
        with pytest.raises(InvalidInputError, match="as an array"):
            lake.sql(f"SELECT {made} AS m")
        return
    assert rows(lake, f"SELECT {made} AS m FROM {orders.name} o WHERE id = 7") == [(expected,)]


def test_a_change_computes_with_elements_under_their_names(new_table: NewTable) -> None:
    table = new_table("id BIGINT, a ARRAY<BIGINT>", primary_key=["id"])
    table.upsert([{"id": 7, "a": [1, 2]}])
    table.update({"a": "transform(a, ID -> id * 10)"}, "exists(a, ID -> id = 2)")
    assert table.scan().to_arrow().to_pylist() == [{"id": 7, "a": [10, 20]}]


@pytest.mark.parametrize("at", [2, -1, 2**31 - 1, 2**63 - 1, -(2**63)])
def test_nothing_is_far_outside_of_an_array(lake: Lake, at: int) -> None:
    assert rows(lake, "SELECT get(array(1, 2), $at) AS v", at=at) == [(None,)]
    with pytest.raises(InvalidInputError, match="outside of its array"):
        rows(lake, "SELECT array(1, 2)[$at] AS v", at=at)
