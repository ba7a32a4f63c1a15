"""CREATE, ALTER, DROP, TRUNCATE, CALL, SHOW and DESCRIBE: a statement does what the method does."""

from datetime import date
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from lakelib import InvalidInputError, Lake, LakeError, NotFoundError, RejectedError, Table
from lakelib.ops import write
from lakelib.specs.suite import parse_suite
from tests.acceptance.support import NewTable

SCHEMA = "id BIGINT NOT NULL, n INT, s STRING, dt DATE"
DAY = date(2026, 11, 18)
_numbers = count()


@pytest.fixture
def name(new_table: NewTable) -> str:
    """Of a table that is not there."""
    made = new_table("id INT")
    return f"{made.name}_{next(_numbers)}"


@pytest.fixture
def table(new_table: NewTable) -> Table:
    made = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    made.upsert(pa.Table.from_pylist([{"id": 1, "n": 1, "s": "a", "dt": DAY}], schema=made.schema))
    return made


def told(lake: Lake, text: str, *options: Any, **values: Any) -> dict[str, Any]:
    (row,) = lake.sql(text, *options, **values).to_arrow().to_pylist()
    return dict(row)


def definition(table: Table) -> tuple[Any, ...]:
    info = table.info
    names = [[each.name for each in columns] for columns in (info.primary_key, info.partition_by, info.sequence_by)]
    columns = [(each.name, each.type, each.nullable, each.comment) for each in info.schema.columns]
    return columns, names, info.buckets, info.options, info.merge.in_names(info.schema)


CREATED: list[tuple[str, str, dict[str, Any]]] = [
    ("(id BIGINT NOT NULL COMMENT 'it''s', s STRUCT<a: INT, b: ARRAY<STRING>>)", "", {}),
    ("(id BIGINT PRIMARY KEY, n INT)", "", {"primary_key": ["id"]}),
    ("(id BIGINT, dt DATE, CONSTRAINT pk PRIMARY KEY (id, dt))", "PARTITIONED BY (dt)",
     {"primary_key": ["id", "dt"], "partition_by": ["dt"]}),
    ("(id BIGINT, n INT, PRIMARY KEY (id)) USING lake", "PARTITIONED BY (dt DATE) CLUSTERED BY (ID) INTO 4 BUCKETS",
     {"primary_key": ["id"], "partition_by": ["dt"], "buckets": 4}),
    ("(id BIGINT, n INT, dt DATE)",
     "OPTIONS ('primary_key' = 'id', partition_by = 'dt', sequence_by = 'n', buckets = 'postpone', compact_runs = 7)",
     {"primary_key": ["id"], "partition_by": ["dt"], "sequence_by": ["n"], "buckets": "postpone",
      "options": {"compact_runs": 7}}),
    ("(id BIGINT PRIMARY KEY, n BIGINT)",
     """OPTIONS (merge = '{"engine": "aggregate", "functions": {"n": "sum"}}')""",
     {"primary_key": ["id"], "merge": {"engine": "aggregate", "functions": {"n": "sum"}}}),
    ("(id BIGINT PRIMARY KEY, n BIGINT)", "OPTIONS (cross_partition = true) PARTITIONED BY (p STRING)",
     {"primary_key": ["id"], "partition_by": ["p"], "cross_partition": True}),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "clauses", "arguments"), CREATED)
def test_a_table_is_created_as_by_the_method(
    lake: Lake, name: str, columns: str, clauses: str, arguments: dict[str, Any]
) -> None:
    assert told(lake, f"CREATE TABLE {name} {columns} {clauses}")["statement"] == "CREATE TABLE"
    made = lake.table(name)
    other = lake.create_table(f"{name}_other", made.schema, **arguments)

    assert definition(made) == definition(other)
    with pytest.raises(InvalidInputError) as error:
        lake.sql(f"CREATE TABLE {name} (id INT)")
    assert error.value.kind == "table_exists"
    told(lake, f"CREATE TABLE IF NOT EXISTS {name} (id INT)")
    assert definition(lake.table(name)) == definition(other)


def test_a_table_is_made_of_a_query(lake: Lake, table: Table, name: str) -> None:
    query = f"SELECT id, n + 1.5 AS x, s, dt FROM {table.name}"
    row = told(lake, f"CREATE TABLE {name} PARTITIONED BY (dt) TBLPROPERTIES (primary_key = 'id') AS {query}")

    made = lake.table(name)
    assert made.scan().to_arrow().to_pylist() == [{"id": 1, "x": Decimal("2.5"), "s": "a", "dt": DAY}]
    assert (made.primary_key, made.partition_by, row["snapshot_id"]) == (["id"], ["dt"], 1)
    told(lake, f"CREATE TABLE IF NOT EXISTS {name} AS {query}")
    assert len(made.history()) == 1


def test_a_query_that_fails_leaves_no_table(lake: Lake, table: Table, name: str) -> None:
    with pytest.raises(InvalidInputError, match="division by zero"):
        lake.sql(f"CREATE TABLE {name} AS SELECT 1 / (n - 1) AS x FROM {table.name}")
    with pytest.raises(InvalidInputError, match="always NULL"):
        lake.sql(f"CREATE TABLE {name} AS SELECT NULL AS x")
    assert name not in lake.tables()
    check = "{type: expect_column_values_to_be_between, kwargs: {column: id, min_value: 2}}"
    with pytest.raises(RejectedError):
        lake.sql(
            f"CREATE TABLE {name} AS SELECT * FROM {table.name}",
            {"gate": parse_suite(f"name: g\nexpectations:\n- {check}\n")},
        )
    assert lake.table(name).head is None


def test_a_query_that_fails_takes_no_rows_of_others(lake: Lake, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is there before its rows are."""
    written = write.write

    def beside(*arguments: Any, **options: Any) -> Any:
        with monkeypatch.context() as plain:
            plain.setattr(write, "write", written)
            lake.table(name).append(pa.table({"id": pa.array([7], pa.int32())}))
        raise InvalidInputError("It fails.", kind="sql_failed", remedy="None.")

    monkeypatch.setattr(write, "write", beside)
    with pytest.raises(InvalidInputError, match="It fails"):
        lake.sql(f"CREATE TABLE {name} AS SELECT 1 AS id")
    assert lake.table(name).scan().to_arrow().to_pylist() == [{"id": 7}]


def test_a_table_is_replaced_in_one_commit(lake: Lake, table: Table) -> None:
    keys = "PARTITIONED BY (dt) TBLPROPERTIES (primary_key = 'id', compact_runs = 9)"
    told(lake, f"CREATE OR REPLACE TABLE {table.name} {keys} AS SELECT id, 'x' AS new, dt FROM {table.name}")

    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "new": "x", "dt": DAY}]
    assert ([each.kind for each in table.history()], table.options) == (["overwrite", "upsert"], {"compact_runs": 9})
    told(lake, f"CREATE OR REPLACE TABLE {table.name} (id BIGINT, dt DATE, z INT) {keys}")
    assert (table.scan().count(), table.schema.names) == (0, ["id", "dt", "z"])
    with pytest.raises(InvalidInputError, match="cannot become this one: primary_key is"):
        lake.sql(f"CREATE OR REPLACE TABLE {table.name} (id BIGINT)")


ALTERED: list[tuple[str, dict[str, Any]]] = [
    ("ADD COLUMN x INT COMMENT 'c'", {"add": "x INT COMMENT 'c'"}),
    ("ADD COLUMNS (x INT, y STRING)", {"add": "x INT, y STRING"}),
    ("ADD COLUMNS (x INT AFTER id, y STRING FIRST)",
     {"add": "x INT, y STRING", "move": {"x": "after id", "y": "first"}}),
    ("ADD COLUMN IF NOT EXISTS n INT", {}),
    ("DROP COLUMN n", {"drop": ["n"]}),
    ("DROP COLUMNS (n, s)", {"drop": ["n", "s"]}),
    ("DROP COLUMN IF EXISTS nope", {}),
    ("RENAME COLUMN n TO m", {"rename": {"n": "m"}}),
    ("ALTER COLUMN n TYPE BIGINT", {"widen": {"n": "bigint"}}),
    ("ALTER COLUMN n TYPE BIGINT COMMENT 'c'", {"widen": {"n": "bigint"}, "comment": {"n": "c"}}),
    ("CHANGE COLUMN n n BIGINT", {"widen": {"n": "bigint"}}),
    ("ALTER COLUMN n COMMENT 'it''s'", {"comment": {"n": "it's"}}),
    ("ALTER COLUMN n FIRST", {"move": {"n": "first"}}),
    ("ALTER COLUMN n AFTER dt", {"move": {"n": "after dt"}}),
    ("ALTER COLUMN n DROP NOT NULL", {"nullable": ["n"]}),
]  # fmt: skip


@pytest.mark.parametrize(("action", "arguments"), ALTERED, ids=[action for action, _ in ALTERED])
def test_a_table_is_altered_as_by_the_method(
    lake: Lake, new_table: NewTable, table: Table, action: str, arguments: dict[str, Any]
) -> None:
    other = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    if arguments:
        other.evolve(**arguments)
    before = table.head
    assert lake.sql(f"EXPLAIN ALTER TABLE {table.name} {action}").asks_explanation
    assert table.head == before
    row = told(lake, f"ALTER TABLE {table.name} {action}", {"properties": {"by": "me"}} if arguments else None)

    assert definition(table) == definition(other)
    assert row["snapshot_id"] == (2 if arguments else None)
    assert len(lake.sql(f"SELECT * FROM {table.name}").to_arrow()) == 1


def test_options_of_a_table_are_set(lake: Lake, table: Table) -> None:
    told(lake, f"ALTER TABLE {table.name} SET TBLPROPERTIES ('compact_runs' = '7', delta = head)")
    assert table.options == {"compact_runs": 7, "delta": "head"}


def test_a_table_is_dropped_and_emptied(lake: Lake, table: Table) -> None:
    table.upsert(pa.Table.from_pylist([{"id": 2, "dt": None}], schema=table.schema))
    told(lake, f"TRUNCATE TABLE {table.name} PARTITION (dt = $day)", day=DAY)
    assert table.scan(["id"]).to_arrow().to_pylist() == [{"id": 2}]
    assert told(lake, f"TRUNCATE TABLE {table.name}")["statement"] == "TRUNCATE TABLE"
    assert table.scan().count() == 0
    told(lake, f"DROP TABLE {table.name}")
    assert table.name not in lake.tables()
    told(lake, f"DROP TABLE IF EXISTS {table.name}")
    with pytest.raises(NotFoundError, match=r"line 1, column 12"):
        lake.sql(f"DROP TABLE {table.name}")


def test_tables_are_looked_after(lake: Lake, table: Table) -> None:
    lake.sql(f"INSERT INTO {table.name} VALUES (2, 2, 'b', DATE '2026-11-18')")
    assert told(lake, f"CALL tag('{table.name}', $tag, at => 1)", tag="eod")["snapshot_id"] == 1
    assert told(lake, f"CALL compact(table => '{table.name}', full => true)")["files_after"] == 1
    assert "rows) go" in str(lake.sql(f"EXPLAIN CALL rollback('{table.name}', 'tag:eod')").explain())
    told(lake, f"CALL rollback('{table.name}', to => 'tag:eod')", {"properties": {"why": "x"}})
    assert table.scan().count() == 1
    told(lake, f"CALL delete_tag('{table.name}', name => 'eod')")
    assert table.tags() == []
    dry = told(lake, f"CALL expire('{table.name}', keep_last => 1, dry_run => true)")
    assert (dry["snapshots"], len(table.history())) == (3, 4)
    told(lake, f"CALL expire('{table.name}', keep_last => 1, older_than => INTERVAL '0' DAY)")
    assert len(table.history()) == 1
    told(lake, f"CALL rebucket('{table.name}', 2)")
    assert table.info.buckets.fixed_depth == 1


def test_what_there_is_is_shown(lake: Lake, table: Table) -> None:
    namespace, _, name = table.name.partition(".")
    tables = lake.sql("SHOW TABLES").to_arrow().to_pylist()
    assert {"namespace": namespace, "table": name} in tables
    assert lake.sql(f"SHOW TABLES IN {namespace}").to_arrow().column("table").to_pylist() == lake.tables(namespace)
    assert lake.sql("SHOW NAMESPACES").to_arrow().column("namespace").to_pylist() == lake.namespaces()
    assert lake.sql(f"DESCRIBE {table.name}").to_arrow().to_pylist()[0] == {
        "column": "id",
        "type": "bigint",
        "nullable": False,
        "role": "primary key",
        "comment": "",
    }


def test_a_namespace_is_created(lake: Lake, name: str) -> None:
    made = name.replace(".", "_")
    told(lake, f"CREATE NAMESPACE {made}")
    told(lake, f"CREATE SCHEMA IF NOT EXISTS {made}")
    assert made in lake.namespaces()
    with pytest.raises(InvalidInputError, match="There is a namespace"):
        lake.sql(f"CREATE DATABASE {made}")


WRONG = [
    ("CREATE TABLE {n} (id INT) USING parquet", "unknown_sql"),
    ("CREATE TABLE {n} (id INT) LOCATION '/tmp/x'", "unknown_sql"),
    ("CREATE EXTERNAL TABLE {n} (id INT)", "unknown_sql"),
    ("CREATE TEMPORARY TABLE {n} (id INT)", "unknown_sql"),
    ("CREATE TABLE {n} LIKE {t}", "unknown_sql"),
    ("CREATE TABLE {n} (id INT DEFAULT 3)", "invalid_schema"),
    ("CREATE TABLE {n} (id INT GENERATED ALWAYS AS IDENTITY)", "invalid_schema"),
    ("CREATE TABLE {n} (id INT, ID INT)", "duplicate_column"),
    ("CREATE TABLE {n} (id INTERVAL DAY)", "unsupported_type"),
    ("CREATE TABLE {n}", "invalid_sql"),
    ("CREATE TABLE {n} (id INT) AS SELECT 1 AS id", "invalid_sql"),
    ("CREATE TABLE {n} (id INT PRIMARY KEY, PRIMARY KEY (id))", "invalid_sql"),
    ("CREATE TABLE {n} (id INT) TBLPROPERTIES (primary_key = 'idd')", "unknown_column"),
    ("CREATE TABLE {n} (id INT) TBLPROPERTIES (compact_run = 3)", "unknown_option"),
    ("CREATE TABLE {n} (id INT) TBLPROPERTIES (merge = '{{')", "invalid_merge"),
    ("CREATE TABLE {n} (id INT) PARTITIONED BY (bucket(4, id))", "unknown_sql"),
    ("CREATE TABLE {n} (id INT) PARTITIONED BY (nope)", "unknown_column"),
    ("CREATE TABLE {n} (id INT) CLUSTERED BY (id) INTO 4 BUCKETS", "invalid_buckets"),
    ("CREATE TABLE {n} (id INT PRIMARY KEY) CLUSTERED BY (id) INTO 5 BUCKETS", "invalid_buckets"),
    ("CREATE OR REPLACE TABLE IF NOT EXISTS {n} (id INT)", "invalid_sql"),
    ("CREATE TABLE nope (id INT)", "table_not_found"),
    ("CREATE VIEW {n} AS SELECT 1", "sql_refused"),
    ("CREATE FUNCTION f AS 'x'", "sql_refused|invalid_sql"),
    ("CREATE NAMESPACE `a/b`", "invalid_name"),
    ("ALTER TABLE {t} DROP COLUMN nn", "unknown_column"),
    ("ALTER TABLE {t} DROP COLUMN id", "invalid_evolution"),
    ("ALTER TABLE {t} ADD COLUMN n INT", "duplicate_column"),
    ("ALTER TABLE {t} ADD COLUMN x INT NOT NULL", "invalid_evolution"),
    ("ALTER TABLE {t} ADD COLUMN x INT AFTER nope", "unknown_column"),
    ("ALTER TABLE {t} ADD COLUMN s.x INT", "unknown_sql"),
    ("ALTER TABLE {t} ALTER COLUMN n TYPE STRING", "invalid_evolution"),
    ("ALTER TABLE {t} ALTER COLUMN n SET NOT NULL", "invalid_evolution"),
    ("ALTER TABLE {t} ALTER COLUMN n AFTER nope", "unknown_column"),
    ("ALTER TABLE {t} ALTER COLUMN nn FIRST", "unknown_column"),
    ("ALTER TABLE {t} CHANGE COLUMN n m BIGINT", "unknown_sql"),
    ("ALTER TABLE {t} RENAME COLUMN n TO s", "duplicate_column"),
    ("ALTER TABLE {t} RENAME TO {n}", "unknown_sql"),
    ("ALTER TABLE {t} SET TBLPROPERTIES (compact_run = 3)", "unknown_option"),
    ("ALTER TABLE {t} SET LOCATION '/tmp/x'", "unknown_sql"),
    ("ALTER TABLE {t} DROP PARTITION (dt = '2026-11-18')", "unknown_sql"),
    ("ALTER TABLE {t} ADD COLUMN a INT, ADD COLUMN b INT", "unknown_sql|sql_refused"),
    ("ALTER VIEW {t} AS SELECT 1", "unknown_sql|sql_refused"),
    ("DROP VIEW {t}", "sql_refused"),
    ("DROP TABLE {t} PURGE", "unknown_sql"),
    ("DROP TABLE {t}, {n}", "invalid_sql"),
    ("DROP NAMESPACE local", "sql_refused"),
    ("TRUNCATE TABLE {t} PARTITION (n = 1)", "invalid_partitions"),
    ("TRUNCATE TABLE {t} PARTITION (dt)", "invalid_partitions"),
    ("CALL compac('{t}')", "unknown_procedure"),
    ("CALL compact()", "invalid_argument"),
    ("CALL compact('{t}', ful => true)", "invalid_argument"),
    ("CALL compact('{t}', 'yes')", "invalid"),
    ("CALL compact('{t}', true, 'n = 1', 4)", "invalid_argument"),
    ("CALL compact('{t}') UNION SELECT 1", "sql_refused"),
    ("CALL compact('{t}') LIMIT 1", "sql_refused"),
    ("CALL rollback('{t}')", "invalid_argument"),
    ("CALL rollback('{t}', 99)", "not_found"),
    ("CALL expire('{t}', keep_last => 0)", "invalid_retention"),
    ("CALL expire('{t}', older_than => '7 fortnights')", "invalid_argument"),
    ("CALL expire('{t}', older_than => INTERVAL '99999999999' DAY)", "invalid_argument"),
    ("CALL tag('{t}', '')", "invalid"),
    ("CALL", "sql"),
    ("SHOW CREATE TABLE {t}", "sql_refused"),
    ("SHOW TABLES LIKE 'x'", "sql_refused"),
    ("DESCRIBE {t}x", "table_not_found"),
    ("DESCRIBE FUNCTION x", "sql|unknown"),
]


@pytest.mark.parametrize(("text", "kinds"), WRONG, ids=[text for text, _ in WRONG])
def test_what_is_wrong_changes_nothing(lake: Lake, table: Table, name: str, text: str, kinds: str) -> None:
    before = definition(table), table.head, sorted(lake.tables()), lake.namespaces()
    with pytest.raises(LakeError) as raised:
        lake.sql(text.format(t=table.name, n=name)).to_arrow()
    assert any(kind in raised.value.kind for kind in kinds.split("|")), (raised.value.kind, str(raised.value))
    assert (definition(table), table.head, sorted(lake.tables()), lake.namespaces()) == before


def test_what_makes_no_commit_takes_no_options(lake: Lake, table: Table, name: str) -> None:
    for text in (
        f"CREATE TABLE {name} (id INT)",
        f"DROP TABLE {table.name}",
        f"CALL compact('{table.name}')",
        "SHOW TABLES",
    ):
        with pytest.raises(InvalidInputError) as error:
            lake.sql(text, {"properties": {"a": "b"}})
        assert error.value.kind == "invalid_option"
    assert (name in lake.tables(), table.name in lake.tables()) == (False, True)


def test_in_a_transaction_are_statements_that_change_rows(lake: Lake, table: Table, name: str) -> None:
    for text in (
        f"CREATE TABLE {name} (id INT)",
        f"DROP TABLE {table.name}",
        f"ALTER TABLE {table.name} DROP COLUMN n",
    ):
        with pytest.raises(InvalidInputError, match="In a transaction"), lake.transaction() as tx:
            tx.sql(text)
    with lake.transaction() as tx:
        tx.sql(f"TRUNCATE TABLE {table.name}")
        tx.sql(f"INSERT INTO {table.name} VALUES (5, 5, 'x', DATE '2026-11-18')")
    assert table.scan(["id"]).to_arrow().to_pylist() == [{"id": 5}]
