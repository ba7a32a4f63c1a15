"""INSERT: what a statement brings into a table is what the method brings; what is wrong with one changes nothing."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelib import InvalidInputError, Lake, NotFoundError, RejectedError, Table
from lakelib.specs.suite import parse_suite
from tests.acceptance.support import NewTable

SCHEMA = "id BIGINT NOT NULL, name STRING, amount DECIMAL(10,2), dt DATE, s STRUCT<a: INT, b: STRING>"
DAY, NEXT_DAY = date(2026, 11, 18), date(2026, 11, 19)


@pytest.fixture
def keyed(new_table: NewTable) -> Table:
    return new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])


@pytest.fixture
def plain(new_table: NewTable) -> Table:
    return new_table(SCHEMA, partition_by=["dt"])


def found(table: Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.scan().to_arrow().to_pylist()), key=repr)


def told(lake: Lake, text: str, *options: Any, **values: Any) -> dict[str, Any]:
    (row,) = lake.sql(text, *options, **values).to_arrow().to_pylist()
    return dict(row)


def test_rows_in_the_text_are_upserted_where_there_is_a_key(lake: Lake, keyed: Table) -> None:
    first = told(
        lake, f"INSERT INTO {keyed.name} VALUES (1, 'it''s', 1.5, $day, NULL), (2, $b, -2, $day, NULL)", day=DAY, b="x"
    )
    told(lake, f"INSERT INTO TABLE {keyed.name} (dt, id) VALUES ($day, 2)", day=DAY)

    assert found(keyed) == [(1, "it's", Decimal("1.50"), DAY, None), (2, None, None, DAY, None)]
    head = keyed.history()[1]
    assert (first["statement"], first["table"], first["snapshot_id"]) == ("INSERT", keyed.name, head.id)
    assert (first["commit_id"], first["rows_written"], first["replayed"]) == (str(head.commit_id), 2, False)


def test_rows_of_a_query_are_appended_where_there_is_none(lake: Lake, keyed: Table, plain: Table) -> None:
    told(lake, f"INSERT INTO {keyed.name} VALUES (1, 'a', 1, DATE '2026-11-18', NULL)")
    rows = [{"id": 2, "name": "b", "amount": None, "dt": DAY, "s": {"a": 1, "b": "x"}}]
    keyed.upsert(pa.Table.from_pylist(rows, schema=keyed.schema))
    for _ in range(2):
        row = told(lake, f"INSERT INTO {plain.name} SELECT * FROM {keyed.name}")

    assert found(plain) == sorted([*found(keyed), *found(keyed)], key=repr)
    assert (row["rows_inserted"], row["rows_updated"], row["rows_deleted"]) == (2, 0, 0)


def test_columns_may_be_matched_by_their_names(lake: Lake, plain: Table) -> None:
    told(lake, f"INSERT INTO {plain.name} BY NAME SELECT DATE '2026-11-18' AS dt, 7 AS ID")
    assert found(plain) == [(7, None, None, DAY, None)]
    with pytest.raises(InvalidInputError, match=r"has no column 'nam' \(line 1, column \d+\)\. Do you mean name\?"):
        lake.sql(f"INSERT INTO {plain.name} BY NAME SELECT 1 AS id, DATE '2026-11-18' AS dt, 'x' AS nam")


def test_a_query_may_be_named_before_the_rows(lake: Lake, plain: Table) -> None:
    select = "SELECT id, CAST($day AS DATE) FROM w"
    told(lake, f"INSERT INTO {plain.name} (id, dt) WITH w AS (SELECT 1 AS id) {select}", day=DAY)
    told(lake, f"WITH w AS (SELECT 2 AS id) INSERT INTO {plain.name} (id, dt) {select}", day=DAY)
    assert [row[0] for row in found(plain)] == [1, 2]


def test_a_statement_that_reads_its_own_table_sees_it_as_it_was(lake: Lake, plain: Table) -> None:
    told(lake, f"INSERT INTO {plain.name} (id, dt) VALUES (1, DATE '2026-11-18')")
    for _ in range(3):
        told(lake, f"INSERT INTO {plain.name} SELECT id + 1, name, amount, dt, s FROM {plain.name}")
    assert sorted(row[0] for row in found(plain)) == [1, 2, 2, 2, 3, 3, 3, 4]


STORED = [
    ("tinyint", "127", 127),
    ("bigint", "CAST(3 AS TINYINT)", 3),
    ("int", "2.9", 2),
    ("int", "-2.9e0", -2),
    ("smallint", "CAST(2.5 AS DECIMAL(10,3))", 2),
    ("decimal(5,2)", "1.005", Decimal("1.01")),
    ("decimal(5,2)", "1.005e0", Decimal("1.01")),
    ("decimal(5,2)", "-0.125e0", Decimal("-0.13")),
    ("decimal(5,2)", "7", Decimal("7.00")),
    ("double", "0.1", 0.1),
    ("float", "1.5e0", 1.5),
    ("double", "CAST(123456789012345678 AS DECIMAL(20,0))", 123456789012345678.0),
    ("string", "12", "12"),
    ("string", "1.50", "1.50"),
    ("string", "true", "true"),
    ("string", "DATE '2026-11-18'", "2026-11-18"),
    ("string", "TIMESTAMP '2026-11-18 10:00:00.5'", "2026-11-18 10:00:00.5"),
    ("date", "TIMESTAMP '2026-11-18 10:00:00'", DAY),
    ("timestamp", "DATE '2026-11-18'", datetime(2026, 11, 18, tzinfo=UTC)),
    ("int", "NULL", None),
    ("array<int>", "NULL", None),
]


def test_values_are_cast_as_spark_stores_them(lake: Lake, new_table: NewTable) -> None:
    """Spark's own answers, with ANSI mode, in UTC."""
    table = new_table(", ".join(f"c{place} {kind}" for place, (kind, _, _) in enumerate(STORED)))
    told(lake, f"INSERT INTO {table.name} VALUES ({', '.join(sql for _, sql, _ in STORED)})")
    assert table.scan().to_arrow().to_pylist() == [{f"c{place}": value for place, (*_, value) in enumerate(STORED)}]


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("int", "'1'", r"Column 'c' has type int, and .* type string \(line 1, column"),
        ("date", "'2026-11-18'", r"CAST\(… AS DATE\)"),
        ("boolean", "1", "has type boolean, and .* int"),
        ("int", "true", "has type int, and .* boolean"),
        ("int", "DATE '2026-11-18'", "has type int, and .* date"),
        ("date", "1", "has type date, and .* int"),
        ("array<int>", "1", "has type array<int>"),
        ("tinyint", "128", "cannot be carried out"),
        ("int", "3e9", "cannot be carried out"),
        ("decimal(3,2)", "10", "cannot be carried out"),
        ("decimal(3,2)", "CAST('nan' AS DOUBLE)", "a text that is cast to double"),
        ("string", "1.5e0", "Cast it to text"),
    ],
)
def test_values_that_cannot_be_stored_are_refused(
    lake: Lake, new_table: NewTable, kind: str, value: str, said: str
) -> None:
    table = new_table(f"c {kind}")
    with pytest.raises(InvalidInputError, match=said):
        lake.sql(f"INSERT INTO {table.name} VALUES ({value})")
    with pytest.raises(InvalidInputError, match=said):
        lake.sql(f"INSERT INTO {table.name} SELECT {value} AS c")
    assert table.head is None


OVERWRITES = {
    "{t} VALUES (9, 'n', NULL, DATE '2026-11-18', NULL)": [(9, DAY)],
    "{t} PARTITION (dt = '2026-11-18') (id) VALUES (9)": [(2, NEXT_DAY), (3, None), (9, DAY)],
    "{t} PARTITION (dt = $day) (id) SELECT 9": [(2, NEXT_DAY), (3, None), (9, DAY)],
    "{t} PARTITION (dt = NULL) (id) VALUES (9)": [(1, DAY), (2, NEXT_DAY), (9, None)],
    "{t} PARTITION (dt) (id, dt) VALUES (9, DATE '2026-11-19')": [(1, DAY), (3, None), (9, NEXT_DAY)],
    "{t} PARTITION (dt) SELECT id + 1, name, amount, dt, s FROM {t} WHERE id < 3": [(2, DAY), (3, NEXT_DAY), (3, None)],
    "{t} PARTITION (dt = '2026-11-20') SELECT id, name, amount, s FROM {t} WHERE id = 1": [
        (1, DAY), (1, date(2026, 11, 20)), (2, NEXT_DAY), (3, None),
    ],
    "{t} SELECT * FROM {t} WHERE id < 1": [],
    "{t} PARTITION (dt) SELECT * FROM {t} WHERE id < 1": [(1, DAY), (2, NEXT_DAY), (3, None)],
}  # fmt: skip


@pytest.mark.parametrize("text", OVERWRITES)
@pytest.mark.parametrize("has_key", [True, False])
def test_an_overwrite_replaces_what_it_names(lake: Lake, keyed: Table, plain: Table, text: str, has_key: bool) -> None:
    table = keyed if has_key else plain
    rows = "VALUES (1, DATE '2026-11-18'), (2, DATE '2026-11-19'), (3, NULL)"
    told(lake, f"INSERT INTO {table.name} (id, dt) {rows}")
    statement = f"INSERT OVERWRITE {text.format(t=table.name)}"
    values = {"day": DAY} if "$day" in text else {}

    plan = lake.sql(f"EXPLAIN {statement}", **values)
    assert (plan.asks_explanation, len(table.history())) == (True, 1)
    assert told(lake, statement, **values)["statement"] == "INSERT OVERWRITE"
    assert sorted([(row[0], row[3]) for row in found(table)], key=repr) == sorted(OVERWRITES[text], key=repr)


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("INTO {t} VALUES (1)", "wrong_columns", r"The query has 1 column, and .* takes 5 \(line 1, column 13\)"),
        ("INTO {t} (id) VALUES (1, 2)", "wrong_columns", "The query has 2 columns, and .* takes 1"),
        ("INTO {t} (id, nam) VALUES (1, 2)", "unknown_column", r"no column 'nam' \(line 1.*Do you mean name\?"),
        ("INTO {t} (id, ID) VALUES (1, 2)", "duplicate_column", "'ID' is named twice"),
        ("INTO {t} (name, dt) VALUES ('x', NULL)", "missing_column", "'id' is missing"),
        ("INTO {t} (id, dt) VALUES (1, NULL), (NULL, NULL)", "null_value", "Column 'id' is NULL in row 1"),
        ("INTO {t} (id) VALUES (1)", "missing_column", "lacks the partition column 'dt'"),
        ("INTO {t} VALUES (1, 2), (1)", "invalid_sql", "rows of unlike width"),
        ("INTO {t} (id) VALUES (x)", "unknown_column", r"the column 'x', of which there is none \(line 1"),
        ("INTO {t} PARTITION (id = 3) VALUES (1)", "invalid_partitions", "'id' is no partition column"),
        ("INTO {t} PARTITION (dt = 'x') (id) VALUES (1)", "invalid_partitions", "'x' is not a value of type date"),
        ("INTO {t} PARTITION (dt = '2026-11-18') (id, dt) VALUES (1, 2)", "duplicate_column", "from PARTITION already"),
        ("INTO {t} AS a (id) VALUES (1)", "unknown_sql", "not known in SQL on the lake"),
        ("INTO {t} (id) SELECT 1 ON CONFLICT DO NOTHING", "unknown_sql", "ON CONFLICT"),
        ("INTO {t}$files VALUES (1)", "invalid_name", "not a name for a table"),
        ("INTO orders VALUES (1)", "table_not_found", "'orders' is no table"),
        ("OVERWRITE DIRECTORY '/tmp/x' SELECT 1", "unknown_sql", "DIRECTORY"),
        ("INTO {t} (id, dt) SELECT 1, CAST(NULL AS DATE) FROM read_parquet('/etc/passwd')", "sql_refused", "no table"),
    ],
)
def test_what_is_wrong_with_an_insert_is_said_with_its_place(
    lake: Lake, keyed: Table, text: str, kind: str, said: str
) -> None:
    with pytest.raises((InvalidInputError, NotFoundError), match=said) as error:
        lake.sql(f"INSERT {text.format(t=keyed.name)}")
    assert (error.value.kind, keyed.head) == (kind, None)
    with pytest.raises(NotFoundError, match=r"There is no table .*x \(line 1, column 13\)\. Do you mean"):
        lake.sql(f"INSERT INTO {keyed.name}x VALUES (1)")


def test_options_are_those_of_a_write(lake: Lake, plain: Table) -> None:
    text = f"INSERT INTO {plain.name} (id, dt) VALUES ($id, NULL)"
    options = {"idempotency_key": ("loader", 1), "properties": {"run": "r1"}}

    assert [told(lake, text, options, id=number)["replayed"] for number in (1, 2)] == [False, True]
    assert [row[0] for row in found(plain)] == [1]
    head = plain.head
    assert head is not None
    assert head.properties == {"run": "r1"}
    for wrong, kind in (({"propertie": {}}, "unknown_option"), (5, "invalid_option")):
        with pytest.raises(InvalidInputError) as error:
            lake.sql(text, wrong, id=1)  # type: ignore[arg-type]
        assert error.value.kind == kind
    with pytest.raises(InvalidInputError, match="A query changes nothing"):
        lake.sql("SELECT 1", {"properties": {}})
    assert told(lake, text.replace("$id", "$options"), options=3)["rows_written"] == 1


def test_a_gate_judges_what_is_inserted(lake: Lake, plain: Table) -> None:
    check = "{type: expect_column_values_to_be_between, kwargs: {column: id, min_value: 1}}"
    suite = parse_suite(f"name: positive\nexpectations:\n- {check}\n")
    text = f"INSERT INTO {plain.name} (id, dt) VALUES ($id, NULL)"
    with pytest.raises(RejectedError):
        lake.sql(text, {"gate": suite}, id=0)
    plain.require_gate(suite)
    with pytest.raises(RejectedError):
        lake.sql(text, id=0)
    assert plain.head is None
    assert told(lake, text, id=1)["snapshot_id"] == 1


def test_a_merge_engine_means_what_it_means_for_an_upsert(lake: Lake, new_table: NewTable) -> None:
    table = new_table(
        "id INT, n BIGINT, s STRING",
        primary_key=["id"],
        merge={"engine": "aggregate", "functions": {"n": "sum", "s": "max"}},
    )
    told(lake, f"INSERT INTO {table.name} VALUES (1, 2, 'a'), (1, 3, 'b')")
    told(lake, f"INSERT INTO {table.name} (id, n) VALUES (1, 5)")
    assert table.scan().to_arrow().column("n").to_pylist() == [10]


def test_a_key_that_is_unique_in_the_table_leaves_its_old_partition(lake: Lake, new_table: NewTable) -> None:
    table = new_table("id INT, dt DATE", primary_key=["id"], partition_by=["dt"], cross_partition=True)
    for day in (DAY, NEXT_DAY):
        told(lake, f"INSERT INTO {table.name} VALUES (1, $day)", day=day)
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "dt": NEXT_DAY}]


def test_many_rows_of_one_key_come_in_the_order_of_the_text(lake: Lake, new_table: NewTable) -> None:
    table = new_table("id INT, n INT", primary_key=["id"])
    told(lake, f"INSERT INTO {table.name} VALUES {', '.join(f'({n % 7}, {n})' for n in range(20_000))}")
    assert sorted(table.scan().to_arrow().column("n").to_pylist()) == list(range(19_993, 20_000))


def test_values_are_rows_of_a_query_too(lake: Lake) -> None:
    assert lake.sql("SELECT sum(b) AS s FROM VALUES (1, 2.5), (2, NULL) AS t(a, b)").to_arrow().to_pylist() == [
        {"s": Decimal("2.5")}
    ]
    assert (
        lake.sql("VALUES (1, 'x'), ($two, NULL)", two=2)
        .to_arrow()
        .equals(pa.table({"col1": pa.array([1, 2], pa.int32()), "col2": ["x", None]}))
    )
