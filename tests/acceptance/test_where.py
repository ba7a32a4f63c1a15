"""What conditions compute means the same wherever it is asked, prunes what it may, and is refused before anything
changes."""

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from lakelib import Lake, Table
from lakelib.errors import InvalidInputError
from tests.acceptance.support import Engine, NewTable

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("dt", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("course", pa.struct([("grade", pa.int32()), ("at", pa.struct([("room", pa.string())]))])),
    ]
)
NAN = float("nan")


def course(grade: int | None, room: str | None) -> dict[str, object]:
    return {"grade": grade, "at": {"room": room}}


ROWS = [
    (1, date(2025, 12, 31), datetime(2025, 12, 31, 23, 59, tzinfo=UTC), 0, 1.0, "Straße", course(90, "A1")),
    (2, date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC), 1, NAN, "50% off", course(None, None)),
    (3, date(2026, 1, 1), None, 2, None, "a_b", None),
    (4, date(2026, 6, 30), datetime(2026, 6, 30, 12, tzinfo=UTC), 2**31 - 1, -0.0, "x9", course(80, "B2")),
    (5, None, datetime(2027, 1, 1, tzinfo=UTC), None, 5.0, None, course(81, "a1")),
]


def rows(*chosen: int) -> pa.Table:
    picked = [row for row in ROWS if not chosen or row[0] in chosen]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in picked], SCHEMA)


@pytest.fixture(scope="module")
def table(lake: Lake, storage_kind: str) -> Table:
    """Some rows are superseded, and one that was is back."""
    made = lake.create_table(
        f"{storage_kind}.computed", SCHEMA, primary_key=["id"], partition_by=["dt"], options={"row_group_rows": 2}
    )
    made.append(rows())
    made.upsert(rows(1, 4))
    made.delete("id = 2")
    made.upsert(rows(2))
    return made


def ids(engine: Engine, table: Table, where: str) -> list[int]:
    return sorted(engine.read(table.scan(columns=["id"], where=where)).column("id").to_pylist())


CONDITIONS = [
    ("course.grade > 80", [1, 5]),
    ("course.at.room IS NULL", [2, 3]),
    ("NOT course.at.room = 'A1'", [4, 5]),
    ("course.at.room ILIKE 'a_'", [1, 5]),
    ("s LIKE '50!%%' ESCAPE '!'", [2]),
    ("s RLIKE '[a-z]\\\\d$'", [4]),
    ("s ILIKE '%STRASSE'", []),
    ("upper(s) = 'STRASSE'", [1]),
    ("isnan(x)", [2]),
    ("NOT isnan(x)", [1, 3, 4, 5]),
    ("x > n", [1, 2]),
    ("n = id", []),
    ("id IN (n + 1L, 5)", [1, 2, 3, 5]),
    ("CAST(ts AS DATE) = dt", [1, 2, 4]),
    ("year(dt) = 2026", [2, 3, 4]),
    ("year(ts) <> 2026", [1, 5]),
    ("month(dt) = 1 OR month(ts) = 1", [2, 3, 5]),
    ("n <> 2147483647 AND n + 1 > 1", [2, 3]),
    ("n <> 0 AND n <> 2147483647 AND 10 / n >= 5", [2, 3]),
    ("n % 2 = 1", [2, 4]),
    ("2 > 1 AND id = 3", [3]),
    ("dt = DATE '2025-12-31' + INTERVAL 1 DAY", [2, 3]),
    ("coalesce(n, -1) < 0", [5]),
    ("TRY_CAST(s AS INT) IS NULL", [1, 2, 3, 4, 5]),
]


@pytest.mark.parametrize("chunk", range(3))
def test_a_condition_computes_the_same_everywhere(engine: Engine, table: Table, chunk: int) -> None:
    for where, expected in CONDITIONS[chunk::3]:
        assert (where, ids(engine, table, where)) == (where, expected)
        assert table.scan(where=where).count() == len(expected)


@pytest.mark.parametrize("where", ["n + 1 > 0", "10 / n > 1", "CAST(s AS INT) = 1"])
def test_a_row_that_cannot_be_asked_is_an_error(engine: Engine, table: Table, where: str) -> None:
    with pytest.raises(Exception, match="cannot be computed for a row"):
        engine.read(table.scan(where=where))


def test_rows_that_nobody_sees_are_not_asked(engine: Engine, new_table: NewTable) -> None:
    table = new_table("id BIGINT NOT NULL, n INT", primary_key=["id"], buckets=1)
    made = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int32())])
    table.append(pa.table({"id": [0, 1, 2], "n": [0, 0, 5]}, made))
    table.upsert(pa.table({"id": [1], "n": [2]}, made))
    table.delete("id = 0")
    assert ids(engine, table, "10 / n > 2 AND 10 / id > 2") == [1]


def test_a_year_prunes_partitions_and_files(table: Table) -> None:
    found = table.scan(where="year(dt) = 2026").explain()
    plain = table.scan(where="dt >= '2026-01-01' AND dt < '2027-01-01'").explain()
    assert str(found) == str(plain)
    assert "2 of" in str(found) or "partitions" in str(found)


def test_rows_are_deleted_and_replaced_by_what_is_computed(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    engine.write(table, "append", rows())
    table.delete("month(dt) = 6 OR course.grade > 80")
    assert ids(engine, table, "TRUE") == [2, 3]
    with pytest.raises(InvalidInputError, match="overwritten"):
        engine.write(table, "overwrite", rows(4), where="year(dt) = 2025")
    engine.write(table, "overwrite", rows(1), where="day(dt) = 31 OR n = 1")
    assert ids(engine, table, "TRUE") == [1, 3]
    with pytest.raises(InvalidInputError, match="cannot be computed for a row"):
        table.delete("10 / n > 1")
    assert table.history()[0].id == 3


def test_partitions_are_deleted_by_what_is_computed(new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.append(rows())
    table.delete("quarter(dt) = 1")
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [1, 4, 5]
    assert table.history()[0].summary.get("rows_deleted") in (2, None)


def test_changes_are_asked_the_same(table: Table) -> None:
    changes = table.changes(after=0, until=1, where="year(dt) = 2026 AND id % 2 = 0")
    assert sorted(changes.to_arrow().column("id").to_pylist()) == [2, 4]


def test_sql_prunes_by_what_is_computed_and_fails_only_where_it_asks(lake: Lake, table: Table) -> None:
    pytest.importorskip("duckdb")
    asked = lake.sql(f"SELECT id FROM {table.name} WHERE year(dt) = 2026 AND n <> 0 ORDER BY id")
    assert asked.to_arrow().column("id").to_pylist() == [2, 3, 4]
    assert "2026-01-01" in str(asked.explain())
    safe = f"SELECT id FROM {table.name} WHERE CASE WHEN n = 0 THEN FALSE ELSE TRUE END AND n % 2 = 1 ORDER BY id"
    assert lake.sql(safe).to_arrow().column("id").to_pylist() == [2, 4]
