"""SELECT over tables of the lake gives what DuckDB gives of tables of its own: random rows, random statements.

LAKE_SQL_STATEMENTS says how many; a statement that differs is shown, and LAKE_SQL_SEED repeats a run.
"""

import math
import os
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lakelib
from lakelib import Lake

STATEMENTS = int(os.environ.get("LAKE_SQL_STATEMENTS", "250"))
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("part", pa.string()),
        ("small", pa.int32()),
        ("amount", pa.decimal128(10, 2)),
        ("wide", pa.decimal128(30, 4)),
        ("name", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("score", pa.float64()),
        ("flag", pa.bool_()),
        ("nested", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ]
)
TABLES = ("merged", "mixed", "plain")
NUMBERS = ("id", "small", "amount", "wide")
FLOATS = (None, 0.0, -0.0, 1.5, -3.25, math.nan, math.inf, -math.inf, 7.0)
NAMES = (None, "", "a", "A", "ab", "b%", "ä", "zz")
ORIGIN = datetime(1969, 12, 31, 22, tzinfo=UTC)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, module_catalog_url: str) -> Iterator[Lake]:
    warehouse: Path = tmp_path_factory.mktemp("lake")
    with lakelib.connect(warehouse=str(warehouse), catalog=module_catalog_url) as lake:
        lake.create_namespace("x")
        yield lake


@pytest.fixture(scope="module")
def plain(lake: Lake, chance: random.Random) -> Iterator[duckdb.DuckDBPyConnection]:
    """The lake's tables, and the same rows in DuckDB's own."""
    options = {"min_bucket_file_bytes": 0, "row_group_rows": 16}
    merged = lake.create_table("x.merged", SCHEMA, primary_key=["id"], buckets=2, options=options)
    for start in (0, 20, 10):
        merged.upsert(rows(chance, range(start, start + 40)))
    merged.delete("small = 3 or id in (5, 25)")
    mixed = lake.create_table("x.mixed", SCHEMA, primary_key=["id"], partition_by=["part"], options=options)
    mixed.upsert(rows(chance, range(60)))
    mixed.compact(full=True)
    mixed.upsert(rows(chance, range(10), part="p1"))
    appended = lake.create_table("x.plain", SCHEMA, partition_by=["day"], options=options)
    appended.append(rows(chance, range(30)))
    appended.append(rows(chance, range(20, 50)))
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for table in TABLES:
            put(db, table, lake.table(f"x.{table}").scan().to_arrow())
        yield db


def put(db: duckdb.DuckDBPyConnection, table: str, found: pa.Table) -> None:
    """The rows as a table of DuckDB's, where a moment has no zone."""
    place = found.schema.get_field_index("at")
    db.register("found", found.set_column(place, "at", found.column("at").cast(pa.timestamp("us"))))
    db.execute(f"CREATE OR REPLACE TABLE {table} AS FROM found")


def rows(chance: random.Random, ids: range, part: str | None = None) -> pa.Table:
    def row(number: int) -> dict[str, Any]:
        def some(value: Any) -> Any:
            return None if chance.random() < 0.2 else value

        return {
            "id": number,
            "part": part or some(chance.choice(("p1", "p2", ""))),
            "small": some(chance.randrange(-4, 9)),
            "amount": some(Decimal(chance.randrange(-900, 900)) / 100),
            "wide": some(Decimal(chance.randrange(-(10**20), 10**20)) / 10**4),
            "name": chance.choice(NAMES),
            "day": some(date(2026, 11, 1) + timedelta(days=chance.randrange(6))),
            "at": some(ORIGIN + timedelta(hours=chance.randrange(60), microseconds=chance.randrange(3))),
            "score": chance.choice(FLOATS),
            "flag": some(chance.random() < 0.5),
            "nested": some({"a": some(chance.randrange(4)), "b": some("x")}),
        }

    return pa.Table.from_pylist([row(number) for number in ids], schema=SCHEMA)


class Writer:
    """Writes statements, each in both dialects: `{x}` stands where one of ours has a namespace."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def one(self, *choices: Any) -> Any:
        return self._chance.choice(choices)

    def statement(self) -> str:
        shape = self.one(
            self.rows, self.rows, self.groups, self.groupings, self.joined, self.joined, self.combined, self.windows,
            self.beside, self.steps,
        )  # fmt: skip
        return str(shape())

    def rows(self) -> str:
        listed = ", ".join(f"{self.value('t')} AS c{place}" for place in range(self.one(1, 2, 3)))
        distinct = "" if "t.nested AS" in listed else self.one("", "DISTINCT ")
        listed = self.one(listed, listed, listed, "*" if not distinct else listed)
        return f"SELECT {distinct}{listed} FROM {self.table()} t{self.where('t')}"

    def groups(self) -> str:
        key = self.one("t.part", "t.small", "t.day", "t.flag", "coalesce(t.name, 'none')", "t.nested.a", "t.score")
        made = ", ".join(f"{self.aggregate('t')} AS c{place}" for place in range(self.one(1, 2, 3)))
        having = self.one("", "", " HAVING count(*) > 2", f" HAVING max(t.small) >= {self.one(1, 3, 5)}")
        return f"SELECT {key} AS k, {made} FROM {self.table()} t{self.where('t')} GROUP BY {key}{having}"

    def groupings(self) -> str:
        keys = self.one("t.part, t.flag", "t.day, t.part", "t.small, t.flag", "t.part, t.nested.a")
        one, other = keys.split(", ")
        group = self.one(
            f"ROLLUP ({keys})", f"CUBE ({keys})", f"GROUPING SETS (({keys}), {other}, ())", f"{one}, ROLLUP ({other})"
        )
        made = f"{one} AS k, {other} AS j, {self.aggregate('t')} AS c0, grouping({one}) AS c1"
        query = f"SELECT {made} FROM {self.table()} t{self.where('t')} GROUP BY {group}"
        return str(
            self.one(query, f"SELECT * FROM ({query}) q WHERE q.{self.one('k', 'j')} IS {self.one('', 'NOT ')}NULL")
        )

    def beside(self) -> str:
        value = self.one("max(u.small)", "count(*)", "min(u.wide)")
        inner = f"SELECT {value} AS k FROM {{x}}{self.one(*TABLES)} u WHERE u.id = t.{self.one('id', 'small')}"
        join = self.one(", LATERAL ({}) q", " LEFT JOIN LATERAL ({}) q ON true").format(inner)
        where = self.one(
            "", f" WHERE {self.condition('t')}", " WHERE q.k > 1", f" WHERE q.k IS NULL OR {self.bare('t')}"
        )
        return f"SELECT t.id AS c0, {self.value('t')} AS c1, q.k AS c2 FROM {self.table()} t{join}{where}"

    def steps(self) -> str:
        first = f"SELECT t.id AS n, 0 AS d FROM {{x}}{self.one(*TABLES)} t{self.where('t')}"
        step = f"SELECT u.id, r.d + 1 FROM r JOIN {{x}}{self.one(*TABLES)} u ON u.id = r.n + {self.one(3, 7)}"
        end = self.one("r.d < 4", "u.small > 0", f"r.d < 3 AND {self.bare('u')}")
        return f"WITH RECURSIVE r AS ({first} UNION ALL {step} WHERE {end}) SELECT r.n AS c0, r.d AS c1 FROM r"

    def joined(self) -> str:
        kind = self.one("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
        on = self.one("a.id = b.id", "a.small = b.small AND a.day = b.day", f"a.id = b.id AND {self.bare('b')}")
        on = self.one(on, f"a.id = b.id AND {self.bare('a')}")
        other = "a" if kind in ("SEMI JOIN", "ANTI JOIN") else "b"
        columns = f"a.id AS c0, {self.value('a')} AS c1, {self.value(other)} AS c2"
        where = self.one("", f" WHERE {self.condition('a')}", f" WHERE {self.condition(other)}")
        where = self.one(where, f" WHERE {self.condition('a')} AND {self.condition(other)}")
        return f"SELECT {columns} FROM {self.table()} a {kind} {self.table()} b ON {on}{where}"

    def combined(self) -> str:
        word = self.one("UNION", "UNION ALL", "EXCEPT", "INTERSECT")
        columns, condition = self.one(
            ("t.small, t.name", "w.small > 1 AND w.name <> 'a'"),
            ("t.part, t.day", "w.part = 'p1'"),
            ("t.amount, t.flag", "w.amount < 2 OR w.flag"),
        )
        parts = [f"SELECT {columns} FROM {self.table()} t{self.where('t')}" for _ in range(2)]
        where = self.one("", f" WHERE {condition}", f" WHERE NOT ({condition})")
        rest = self.one("", "", f" UNION ALL SELECT * FROM w{self.one('', f' WHERE {condition}')}")
        return f"WITH w AS ({parts[0]} {word} {parts[1]}) SELECT * FROM w{where}{rest}"

    def windows(self) -> str:
        over = f"(PARTITION BY t.part ORDER BY t.id{self.one('', ' DESC')}, t.small NULLS LAST, t.wide NULLS LAST"
        frame = self.one("", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW")
        made = self.one(
            f"sum(t.small) OVER {over}{frame})", f"row_number() OVER {over})", f"lag(t.id) OVER {over})",
            f"count(t.name) OVER {over}{frame})", f"max(t.amount) OVER {over}{frame})",
        )  # fmt: skip
        return f"SELECT t.id AS c0, {made} AS c1 FROM {self.one('{x}merged', '{x}mixed')} t{self.where('t')}"

    def table(self) -> str:
        named, other = self.one(*TABLES), self.one(*TABLES)
        if self._chance.random() < 0.7:
            return f"{{x}}{named}"
        return str(
            self.one(
                f"(SELECT * FROM {{x}}{named} i{self.where('i')})",
                f"(SELECT j.* FROM {{x}}{other} i {self.one('LEFT', 'RIGHT')} JOIN {{x}}{named} j ON i.id = j.id)",
                f"(SELECT * FROM {{x}}merged i{self.where('i')} ORDER BY i.id LIMIT {self.one(0, 5, 30)})",
                f"(WITH c AS (SELECT * FROM {{x}}{named}) SELECT * FROM c i{self.where('i')})",
            )
        )

    def where(self, alias: str) -> str:
        return f" WHERE {self.condition(alias)}" if self._chance.random() < 0.7 else ""

    def bare(self, alias: str) -> str:
        """A condition without a query in it: DuckDB has none where a join keeps rows."""
        while "SELECT" in (found := self.condition(alias)):
            pass
        return found

    def condition(self, alias: str, depth: int = 0) -> str:
        if depth < 2 and self._chance.random() < 0.4:
            one, other = self.condition(alias, depth + 1), self.condition(alias, depth + 1)
            return str(self.one(f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"))
        sign = self.one("=", "<>", "<", "<=", ">", ">=")
        number = f"{alias}.{self.one(*NUMBERS)}"
        return str(
            self.one(
                f"{number} {sign} {self.number()}", f"{self.number()} {sign} {number}",
                f"{number} {sign} {alias}.{self.one(*NUMBERS)}", f"{alias}.score {sign} {self.one(0, 1.5, -3, 7)}",
                f"{alias}.score {sign} {alias}.score", f"{alias}.name {sign} '{self.one('', 'a', 'ab', 'zz')}'",
                f"{alias}.name LIKE '{self.one('a%', '%b%', '_', '%', 'z_')}'",
                f"{alias}.day {sign} DATE '2026-11-0{self.one(1, 3, 5)}'",
                f"{alias}.at {sign} TIMESTAMP '1970-01-01 0{self.one(0, 4)}:00:00'", f"{alias}.flag",
                f"NOT {alias}.flag",
                f"{alias}.part {self.one('=', '<>')} '{self.one('p1', '')}'", f"{alias}.part IN ('p1', 'p2')",
                f"{alias}.{self.one(*SCHEMA.names)} IS {self.one('', 'NOT ')}NULL",
                f"{number} BETWEEN {self.one(-2, 0)} AND {self.one(3, 5)}",
                f"{alias}.small {self.one('', 'NOT ')}IN ({self.number()}, 1, 4)",
                f"{alias}.id IN (SELECT s.small FROM {{x}}{self.one(*TABLES)} s WHERE s.small IS NOT NULL)",
                f"EXISTS (SELECT 1 FROM {{x}}{self.one(*TABLES)} e WHERE e.id = {alias}.small AND {number} > 0)",
                f"{alias}.nested.a = {self.one(0, 1, 2)}", f"{alias}.small + 1 > {alias}.id - 20",
                f"{alias}.amount * 2 {sign} {alias}.small", f"coalesce({alias}.small, 0) {sign} 2",
            )
        )  # fmt: skip

    def number(self) -> Any:
        return self.one(0, 1, 3, -2, 2.5, "1.25", "-0.01", 7)

    def value(self, alias: str) -> str:
        number = f"{alias}.{self.one(*NUMBERS)}"
        return str(
            self.one(
                *(f"{alias}.{name}" for name in SCHEMA.names), f"{number} + {alias}.small",
                f"{number} - {self.number()}",
                f"{alias}.amount * {alias}.small",
                f"CASE WHEN {self.condition(alias, 2)} THEN {alias}.small ELSE -1 END",
                f"coalesce({alias}.name, 'none')", f"upper(substring({alias}.part, 1, 1))", f"year({alias}.day)",
                f"{alias}.nested.b", f"length({alias}.name)",
                f"(SELECT max(m.id) FROM {{x}}plain m WHERE m.small = {alias}.small)",
            )
        )  # fmt: skip

    def aggregate(self, alias: str) -> str:
        column = f"{alias}.{self.one('id', 'small', 'amount', 'wide')}"
        return str(
            self.one(
                "count(*)", f"count({alias}.{self.one(*SCHEMA.names)})", f"sum({column})", f"min({alias}.score)",
                f"max({alias}.score)", f"min({column})", f"max({alias}.at)", f"count(DISTINCT {column})",
                f"sum({column}) FILTER (WHERE {self.condition(alias, 2)})",
                f"sum(CASE WHEN {alias}.flag THEN 1 ELSE 0 END)",
            )
        )  # fmt: skip


def plainly(found: pa.Table) -> list[str]:
    """Rows in an order of their own: numbers by their value, moments without their zone."""

    def told(value: Any) -> str:
        match value:
            case bool():
                return str(value)
            case float():
                return str(value + 0.0)
            case int() | Decimal():
                return format(Decimal(value).normalize() + 0, "f")
            case datetime():
                return value.replace(tzinfo=None).isoformat()
        return repr(value)

    return sorted(repr([told(value) for value in row.values()]) for row in found.to_pylist())


def test_a_query_gives_what_duckdb_gives_of_its_own_tables(
    lake: Lake, plain: duckdb.DuckDBPyConnection, chance: random.Random
) -> None:
    writer = Writer(chance)
    known = 0
    for _ in range(STATEMENTS):
        statement = writer.statement()
        expected = plainly(plain.execute(statement.replace("{x}", "")).to_arrow_table())
        found = plainly(lake.sql(statement.replace("{x}", "x.")).to_arrow())
        assert found == expected, statement
        known += bool(expected)
    assert known > STATEMENTS / 3, "most statements have to find something"
